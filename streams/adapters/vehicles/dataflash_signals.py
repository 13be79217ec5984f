"""Signals in ArduPilot logs: battery, motor controllers, vibration, radio, processor; mode and arming.

    MODE, EV    mode (as pymavlink names it), armed
    BAT         battery[i].voltage_v, .current_a, .remaining, .temperature_c
    ESC         esc[i].rpm, .voltage_v, .current_a, .temperature_c
    VIBE        vibration.x, .y, .z of the first IMU
    RAD         radio.rssi, radio.remote_rssi, radio.noise, radio.remote_noise
    PM          cpu.load
    GPS         gps.fix, gps.sats

Columns that a version of ArduPilot does not have are left out. Other numbers are chosen by pattern in `[recordings]`,
and called message.field (chosen.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watchkeeper.streams.adapters.table import Table
from watchkeeper.streams.adapters.vehicles.chosen import Chosen, numbers_of
from watchkeeper.streams.adapters.vehicles.dataflash_told import EV_ARMED, EV_DISARMED
from watchkeeper.streams.messages import FIELDS, SIGNAL, VALUE_MAX, Kind
from watchkeeper.streams.signals import label, name_columns

_INSTANCES = ("I", "Instance", "Inst")
KINDS = ("BAT", "ESC", "VIBE", "RAD", "PM")
# Message: how its instance is called, our name with {} for it, and the columns with the unit of each.
_PLAIN: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, float]]]] = {
    "BAT": (("Inst", "Instance"), {
        "battery[{}].voltage_v": ("Volt", 1.0), "battery[{}].current_a": ("Curr", 1.0),
        "battery[{}].remaining": ("RemPct", 0.01), "battery[{}].temperature_c": ("Temp", 1.0),
    }),
    "ESC": (("Instance",), {
        "esc[{}].rpm": ("RPM", 1.0), "esc[{}].voltage_v": ("Volt", 1.0), "esc[{}].current_a": ("Curr", 1.0),
        "esc[{}].temperature_c": ("Temp", 1.0),
    }),
    "VIBE": (("IMU",), {"vibration.x": ("VibeX", 1.0), "vibration.y": ("VibeY", 1.0), "vibration.z": ("VibeZ", 1.0)}),
    "RAD": ((), {
        "radio.rssi": ("RSSI", 1.0), "radio.remote_rssi": ("RemRSSI", 1.0), "radio.noise": ("Noise", 1.0),
        "radio.remote_noise": ("RemNoise", 1.0),
    }),
    "PM": ((), {"cpu.load": ("Load", 1e-3)}),
    "GPS": ((), {"gps.fix": ("Status", 1.0), "gps.sats": ("NSats", 1.0)}),
}  # fmt: skip


class Signals:
    """Takes messages in the order of the file. Times are seconds since boot until `table` moves them."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._t: list[float] = []
        self._names: list[str] = []
        self._values: list[float] = []

    def take(self, kind: str, message: Any, mode: object) -> None:
        """One message; `mode` is the reader's name of the flight mode. May raise what a damaged message raises."""
        t = float(message.TimeUS) / 1e6
        if kind == "MODE":
            known = mode if isinstance(mode, str) and mode not in ("", "UNKNOWN") else f"mode_{int(message.Mode)}"
            self._usual(t, "mode", label(known))
        elif kind == "EV" and int(message.Id) in (EV_ARMED, EV_DISARMED):
            self._usual(t, "armed", float(int(message.Id) == EV_ARMED))
        elif kind in _PLAIN:
            instances, columns = _PLAIN[kind]
            instance = next((int(getattr(message, name)) for name in instances if hasattr(message, name)), 0)
            if kind == "VIBE" and instance != 0:
                return
            for name, (column, unit) in columns.items():
                if hasattr(message, column):
                    self._usual(t, name.format(instance), unit * float(getattr(message, column)))

    def take_chosen(self, kind: str, message: Any) -> None:
        """Its other numbers, as far as they are chosen by pattern."""
        columns = message.get_fieldnames()
        # logs before 2019 do not say which column it is
        which = message.fmt.instance_field or next((name for name in _INSTANCES if name in columns), None)
        instance = int(getattr(message, which)) if which else 0
        for column, name in numbers_of(kind, columns, instance):
            value = getattr(message, column)
            if isinstance(value, (int, float)) and self._chosen.more(name):
                self._add(float(message.TimeUS) / 1e6, name, float(value))

    def _usual(self, t: float, name: str, value: float) -> None:
        if self._chosen.usual(name):
            self._add(t, name, value)

    def _add(self, t: float, name: str, value: float) -> None:
        if math.isfinite(value) and abs(value) <= VALUE_MAX:
            self._t.append(t)
            self._names.append(name)
            self._values.append(value)

    def table(self, offset_s: float) -> Table | None:
        """All of them, one row for each value; None when there are only figures of the receiver."""
        if all(name.startswith("gps.") for name in set(self._names)):
            return None
        columns = name_columns(self._names)
        fields = {field.name: columns[i] for i, field in enumerate(FIELDS[Kind.SIGNAL][SIGNAL.name_0 :])}
        t = np.array(self._t) + offset_s
        return t, np.zeros(len(t), np.int32), {"value": np.array(self._values), **fields}
