"""Every known limit fits a name that the adapters of autopilots deliver; one that never does would be a blind spot."""

from __future__ import annotations

from fnmatch import fnmatchcase

from watchkeeper.detectors.signal.presets import PRESETS
from watchkeeper.streams.adapters.vehicles import dataflash_signals, ulog_signals

# What MAVLink has besides: streams/adapters/vehicles/mavlink_signals.py
MAVLINK = ("battery[0].cell_v[0]", "battery[0].temperature_c", "vibration.x", "esc[0].rpm", "gps.fix", "gps.eph_m")
# Of vehicles that name their own signals: no adapter of ours reads temperatures of boards and sensors.
OWN = {("*cpu*temp*", "*imu*temp*", "*baro*temp*")}


def delivered() -> set[str]:
    px4 = {name.format(0) for columns in ulog_signals._PLAIN.values() for name, _ in columns}
    px4 |= {name for name, _ in ulog_signals._GPS} | {f"esc[0].{name}" for name, _ in ulog_signals._ESC}
    ardupilot = {name.format(0) for _, columns in dataflash_signals._PLAIN.values() for name in columns}
    return px4 | ardupilot | {"motor[0].output", *MAVLINK}


def test_every_known_limit_fits_a_name_that_is_delivered():
    names = delivered()
    for limits in PRESETS.values():
        for limit in limits:
            fits = any(fnmatchcase(name, pattern) for name in names for pattern in limit.names)
            assert fits is (limit.names not in OWN), limit.names
