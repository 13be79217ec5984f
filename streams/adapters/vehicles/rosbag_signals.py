"""Named numbers in ROS recordings: battery, temperatures, plain numbers, diagnostics; mode and arming of MAVROS.

    sensor_msgs/BatteryState                  battery.voltage_v, .current_a, .remaining, .temperature_c, .cell_v[k]
    sensor_msgs/Temperature, FluidPressure,   the topic, with the quantity behind it: motor.0.temperature_c,
    RelativeHumidity, Range, Illuminance      …pressure_pa, …humidity, …range_m, …illuminance_lx
    std_msgs/Float*, Int*, UInt*, Bool        the topic
    diagnostic_msgs/DiagnosticArray           the name of the status and the key, where the value is a number
    mavros_msgs/State                         mode, armed (a bag has the layout of such messages in it)

A topic's name is without its vehicle and with points for slashes. What is NaN was not measured, and is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from watchkeeper.streams.adapters.table import Table
from watchkeeper.streams.adapters.vehicles.chosen import Chosen, numbers_in
from watchkeeper.streams.messages import FIELDS, SIGNAL, VALUE_MAX, Kind
from watchkeeper.streams.signals import RESERVED, as_name, label, name_columns

Found = Iterator[tuple[str, float]]
CELLS_MAX, DIAGNOSTICS_MAX = 32, 256
# A number, and behind it perhaps a unit.
_NUMBER = re.compile(r"\s*([+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,3})?)\s*[A-Za-z%°/²]{0,8}\s*")


def _battery(_topic: str, message: Any) -> Found:
    yield "battery.voltage_v", float(message.voltage)
    yield "battery.current_a", float(message.current)
    yield "battery.remaining", float(message.percentage)
    yield "battery.temperature_c", float(getattr(message, "temperature", math.nan))  # versions of 2018 have none
    for k, volt in enumerate(list(message.cell_voltage)[:CELLS_MAX]):
        if volt > 0.0:
            yield f"battery.cell_v[{k}]", float(volt)


def _quantity(field: str, name: str) -> Callable[[str, Any], Found]:
    def take(topic: str, message: Any) -> Found:
        yield f"{topic}.{name}", float(getattr(message, field))

    return take


def _plain(topic: str, message: Any) -> Found:
    yield topic, float(message.data)


def _diagnostics(_topic: str, message: Any) -> Found:
    for status in list(message.status)[:DIAGNOSTICS_MAX]:
        for pair in list(status.values)[:DIAGNOSTICS_MAX]:
            if match := _NUMBER.fullmatch(str(pair.value)):
                yield f"{status.name}.{pair.key}", float(match[1])


def _state(_topic: str, message: Any) -> Found:
    yield "armed", float(bool(message.armed))
    if message.mode:
        yield "mode", label(str(message.mode))


TAKE: dict[str, Callable[[str, Any], Found]] = {
    "sensor_msgs/msg/BatteryState": _battery,
    "sensor_msgs/msg/Temperature": _quantity("temperature", "temperature_c"),
    "sensor_msgs/msg/FluidPressure": _quantity("fluid_pressure", "pressure_pa"),
    "sensor_msgs/msg/RelativeHumidity": _quantity("relative_humidity", "humidity"),
    "sensor_msgs/msg/Range": _quantity("range", "range_m"),
    "sensor_msgs/msg/Illuminance": _quantity("illuminance", "illuminance_lx"),
    **{
        f"std_msgs/msg/{word}": _plain
        for word in (
            "Float32", "Float64", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
        )
    },
    "diagnostic_msgs/msg/DiagnosticArray": _diagnostics,
    "mavros_msgs/msg/State": _state,
}  # fmt: skip


class Signals:
    """Takes messages of the topics in `plan`: topic to vehicle, and what of its name is left without that."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._t: list[float] = []
        self._vehicles: list[str] = []
        self._names: list[str] = []
        self._values: list[float] = []

    def take(self, vehicle: str, topic: str, kind: str, t: float, message: Any) -> None:
        """One message. May raise what a damaged message raises."""
        usual = [(as_name(text), value) for text, value in TAKE[kind](topic, message)] if kind in TAKE else []
        found = [(name, value) for name, value in usual if self._chosen.usual(name)]
        if kind not in TAKE:
            found = [(name, value) for name, value in numbers_in(message, topic) if self._chosen.more(name)]
        for name, value in found:
            if math.isfinite(value) and abs(value) <= VALUE_MAX and name not in RESERVED:
                self._t.append(t)
                self._vehicles.append(vehicle)
                self._names.append(name)
                self._values.append(value)

    @property
    def vehicles(self) -> list[str]:
        """The vehicles that have any, in order of appearance."""
        return list(dict.fromkeys(self._vehicles))

    def table(self, names: list[str]) -> Table:
        """One row for each value; `names` are the vehicles."""
        columns, place = name_columns(self._names), {name: i for i, name in enumerate(names)}
        fields = {field.name: columns[i] for i, field in enumerate(FIELDS[Kind.SIGNAL][SIGNAL.name_0 :])}
        vid = np.array([place[vehicle] for vehicle in self._vehicles], np.int32)
        return np.array(self._t), vid, {"value": np.array(self._values), **fields}
