"""Signals in MAVLink: battery, vibration, motor controllers, radio, load; flight mode and whether it is armed.

    HEARTBEAT                    armed, mode (in words, as ground stations name it)
    SYS_STATUS                   battery.voltage_v, battery.current_a, battery.remaining, cpu.load, radio.drop_rate
    BATTERY_STATUS               battery[i].cell_v[k], battery[i].temperature_c, battery[i].current_a, …remaining
    VIBRATION                    vibration.x, .y, .z, vibration.clip[k]
    ESC_STATUS, ESC_TELEMETRY_*  esc[i].rpm, .voltage_v, .current_a, .temperature_c
    RADIO_STATUS                 radio.rssi, radio.remote_rssi, radio.noise, radio.remote_noise
    GPS_RAW_INT                  gps.fix, gps.sats, gps.eph_m; of systems that send a HEARTBEAT, next to the GPS sample

Values that a message marks as unknown are left out. `signals_of` makes names and numbers of one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from watchkeeper.streams.signals import label

_ARMED = 128
_NO_AUTOPILOT = 8
_UNKNOWN_U16, _UNKNOWN_I16 = 65_535, 32_767
# The sum of all cells is in the first place where single cells are not measured: more than any cell has.
CELL_MAX_V = 5.0

Pairs = Iterator[tuple[str, float]]


def _heartbeat(m: Any) -> Pairs:
    if m.autopilot == _NO_AUTOPILOT:
        return
    from pymavlink import mavutil  # noqa: PLC0415  an optional dependency

    yield "armed", float(bool(m.base_mode & _ARMED))
    yield "mode", label(str(mavutil.mode_string_v10(m)))


def _sys_status(m: Any) -> Pairs:
    if m.voltage_battery not in (0, _UNKNOWN_U16):
        yield "battery.voltage_v", m.voltage_battery * 1e-3
    if m.current_battery >= 0:
        yield "battery.current_a", m.current_battery * 1e-2
    if m.battery_remaining >= 0:
        yield "battery.remaining", m.battery_remaining * 1e-2
    yield "cpu.load", m.load * 1e-3
    yield "radio.drop_rate", m.drop_rate_comm * 1e-4


def _battery(m: Any) -> Pairs:
    name = f"battery[{m.id}]"
    cells = [volts * 1e-3 for volts in m.voltages if volts not in (0, _UNKNOWN_U16)]
    if len(cells) == 1 and cells[0] > CELL_MAX_V:
        yield f"{name}.voltage_v", cells[0]
    else:
        yield from ((f"{name}.cell_v[{k}]", volts) for k, volts in enumerate(cells))
    if m.temperature != _UNKNOWN_I16:
        yield f"{name}.temperature_c", m.temperature * 1e-2
    if m.current_battery >= 0:
        yield f"{name}.current_a", m.current_battery * 1e-2
    if m.battery_remaining >= 0:
        yield f"{name}.remaining", m.battery_remaining * 1e-2


def _vibration(m: Any) -> Pairs:
    for axis in "xyz":
        yield f"vibration.{axis}", float(getattr(m, f"vibration_{axis}"))
    for k in range(3):
        yield f"vibration.clip_count[{k}]", float(getattr(m, f"clipping_{k}"))


def _esc_status(m: Any) -> Pairs:
    for k, (rpm, volts, amperes) in enumerate(zip(m.rpm, m.voltage, m.current, strict=True)):
        name = f"esc[{m.index + k}]"
        yield f"{name}.rpm", float(abs(rpm))
        yield f"{name}.voltage_v", float(volts)
        yield f"{name}.current_a", float(amperes)


def _esc_telemetry(m: Any) -> Pairs:
    first = int(m.get_type().split("_")[2]) - 1
    for k in range(4):
        name = f"esc[{first + k}]"
        yield f"{name}.rpm", float(m.rpm[k])
        yield f"{name}.voltage_v", m.voltage[k] * 1e-2
        yield f"{name}.current_a", m.current[k] * 1e-2
        yield f"{name}.temperature_c", float(m.temperature[k])


def _radio(m: Any) -> Pairs:
    fields = {"rssi": m.rssi, "remote_rssi": m.remrssi, "noise": m.noise, "remote_noise": m.remnoise}
    yield from ((f"radio.{name}", float(value)) for name, value in fields.items() if value != 255)


def _gps(m: Any) -> Pairs:
    yield "gps.fix", float(m.fix_type)
    if m.satellites_visible != 255:
        yield "gps.sats", float(m.satellites_visible)
    if m.h_acc:
        yield "gps.eph_m", m.h_acc * 1e-3


_READERS: dict[str, Callable[[Any], Pairs]] = {
    "HEARTBEAT": _heartbeat, "SYS_STATUS": _sys_status, "BATTERY_STATUS": _battery, "VIBRATION": _vibration,
    "ESC_STATUS": _esc_status, "RADIO_STATUS": _radio, "GPS_RAW_INT": _gps,
    **{f"ESC_TELEMETRY_{first}_TO_{first + 3}": _esc_telemetry for first in (1, 5, 9, 13)},
}  # fmt: skip


def signals_of(message: Any, kind: str) -> dict[str, float]:
    """The signals of a message by name; none of a message that has none."""
    reader = _READERS.get(kind)
    return dict(reader(message)) if reader is not None else {}
