"""Signals in PX4 logs: battery, motors, controllers, vibration, processor, the receiver's figures; mode and arming.

    vehicle_status       armed, mode (nav_state in words)
    battery_status       battery[i].voltage_v, .current_a, .remaining, .temperature_c, .cell_v (by cell or the mean)
    actuator_motors      motor[k].output
    esc_status           esc[k].rpm, .voltage_v, .current_a, .temperature_c
    vehicle_imu_status   vibration.accel[i], vibration.gyro[i]
    cpuload              cpu.load, cpu.ram
    the GPS topic        gps.fix, gps.sats, gps.eph_m, gps.jamming, gps.noise
    radio_status         radio.rssi, radio.remote_rssi, radio.noise, radio.remote_noise

Only what a log has is read. Other numbers are chosen by pattern in `[recordings]`, and called topic.field (chosen.py).
Values that are not finite are absent. An actuator that is never used is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from watchkeeper.streams.adapters.table import Table
from watchkeeper.streams.adapters.vehicles.chosen import Chosen, numbers_of
from watchkeeper.streams.adapters.vehicles.ulog_told import ARMED, MODES, STATUS
from watchkeeper.streams.batch import F8
from watchkeeper.streams.messages import FIELDS, NAME_COLUMNS, SIGNAL, VALUE_MAX, Kind
from watchkeeper.streams.signals import label, name_numbers

TOPICS = ("battery_status", "actuator_motors", "esc_status", "vehicle_imu_status", "cpuload", "radio_status")
MOTORS_MAX = 12
Series = Iterator[tuple[str, F8, F8]]
# Topic: our name with {} for the instance, and the column; in this order.
_PLAIN: dict[str, tuple[tuple[str, str], ...]] = {
    "battery_status": (
        ("battery[{}].voltage_v", "voltage_v"), ("battery[{}].current_a", "current_a"),
        ("battery[{}].remaining", "remaining"), ("battery[{}].temperature_c", "temperature"),
    ),
    "vehicle_imu_status": (
        ("vibration.accel[{}]", "accel_vibration_metric"), ("vibration.gyro[{}]", "gyro_vibration_metric"),
    ),
    "cpuload": (("cpu.load", "load"), ("cpu.ram", "ram_usage")),
    "radio_status": (
        ("radio.rssi", "rssi"), ("radio.remote_rssi", "remote_rssi"), ("radio.noise", "noise"),
        ("radio.remote_noise", "remote_noise"),
    ),
}  # fmt: skip
_GPS = (
    ("gps.fix", "fix_type"), ("gps.sats", "satellites_used"), ("gps.eph_m", "eph"),
    ("gps.jamming", "jamming_indicator"), ("gps.noise", "noise_per_ms"),
)  # fmt: skip
_ESC = (
    ("rpm", "esc_rpm"),
    ("voltage_v", "esc_voltage"),
    ("current_a", "esc_current"),
    ("temperature_c", "esc_temperature"),
)


def signal_table(log: Any, gps: Mapping[str, F8] | None, offset_s: float, chosen: Chosen) -> Table | None:
    """All signals of a log as one table, one row for each value; None when it has none."""
    found = [series for data in log.data_list for series in _series(data.name, data.multi_id, data.data)]
    if gps is not None and found:
        found += list(_columns(gps, _GPS, 0))
    found = [series for series in found if chosen.usual(series[0])]
    found += [series for data in log.data_list for series in _more(data.name, data.multi_id, data.data, chosen)]
    times, values, names = [], [], []
    for name, stamp_us, x in found:
        there = np.isfinite(x) & (np.abs(x) <= VALUE_MAX)
        times.append(stamp_us[there].astype(np.float64) / 1e6 + offset_s)
        values.append(x[there])
        names.append(np.tile(np.array(name_numbers(name)).reshape(-1, 1), (1, int(there.sum()))))
    if not sum(map(len, values)):
        return None
    t, columns = np.concatenate(times), np.concatenate(names, axis=1)
    fields = {field.name: columns[i] for i, field in enumerate(FIELDS[Kind.SIGNAL][SIGNAL.name_0 :])}
    assert len(fields) == NAME_COLUMNS
    return t, np.zeros(len(t), np.int32), {"value": np.concatenate(values), **fields}


def _series(topic: str, instance: int, data: Mapping[str, F8]) -> Series:
    t = data["timestamp"]
    if topic == STATUS and instance == 0:
        if "arming_state" in data:
            yield "armed", t, (data["arming_state"] == ARMED).astype(np.float64)
        if "nav_state" in data:
            words = {
                code: label(MODES.get(code, f"mode_{code}").upper()) for code in np.unique(data["nav_state"]).tolist()
            }
            yield "mode", t, np.array([words[code] for code in data["nav_state"].tolist()])
    elif topic in _PLAIN:
        yield from _columns(data, _PLAIN[topic], instance)
        if topic == "battery_status":
            yield from _cells(data, instance)
    elif topic == "actuator_motors" and instance == 0:
        for k in range(MOTORS_MAX):
            x = data.get(f"control[{k}]")
            if x is not None and np.any(x[np.isfinite(x)] > 0.0):
                yield f"motor[{k}].output", t, x.astype(np.float64)
    elif topic == "esc_status" and instance == 0:
        for k in range(8):
            for name, column in _ESC:
                x = data.get(f"esc[{k}].{column}")
                if x is not None and np.any(x != 0):
                    yield f"esc[{k}].{name}", t, np.abs(x.astype(np.float64))


def _more(topic: str, instance: int, data: Mapping[str, F8], chosen: Chosen) -> Series:
    for column, name in numbers_of(topic, list(data), instance):
        if chosen.more(name):
            yield name, data["timestamp"], data[column].astype(np.float64)


def _cells(data: Mapping[str, F8], instance: int) -> Series:
    """The voltage of single cells where it is measured, else the mean of all."""
    t, single = data["timestamp"], False
    for k in range(14):
        x = data.get(f"voltage_cell_v[{k}]")
        if x is not None and np.any(x > 0.0):
            single = True
            yield f"battery[{instance}].cell_v[{k}]", t, np.where(x > 0.0, x, np.nan).astype(np.float64)
    count = data.get("cell_count")
    if not single and count is not None and "voltage_v" in data:
        yield f"battery[{instance}].cell_v", t, np.where(count > 0, data["voltage_v"] / np.maximum(count, 1), np.nan)


def _columns(data: Mapping[str, F8], wanted: tuple[tuple[str, str], ...], instance: int) -> Series:
    for name, column in wanted:
        if column in data:
            yield name.format(instance), data["timestamp"], data[column].astype(np.float64)
