"""PX4 flight logs, `.ulg`, read with pyulog (extra `px4`): the IMU and the GPS receiver as the autopilot heard them.

    sensor_combined        IMU: gyro_rad, accelerometer_m_s2 (body axes forward, right, down)
    vehicle_gps_position   GPS: position, velocity (north, east, down), fix_type, satellites_used, hdop, eph, epv, and
    or sensor_gps          the receiver's own words: s_variance_m_s, jamming_indicator, jamming_state, spoofing_state,
                           noise_per_ms, automatic_gain_control; whichever of the two was logged more often

Times are the autopilot's microseconds since boot. If the receiver knew UTC, samples are in Unix time, otherwise they
count from boot. Before PX4 1.14 positions are integers of 1e-7 degrees and millimetres, since then degrees and metres.
The vehicle is called after the autopilot's serial number, or after the file where the log has none (simulation).

Nothing that the autopilot estimated is judged: no attitude, no fused position. Battery, motors, mode and arming are
signals (ulog_signals.py); failsafes and the receiver's own figures are read for reports (ulog_told.py).
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.table import Table, TableLog
from watchkeeper.streams.adapters.vehicles.chosen import Chosen
from watchkeeper.streams.adapters.vehicles.ulog_signals import TOPICS, signal_table
from watchkeeper.streams.adapters.vehicles.ulog_told import STATUS, told
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.library import library
from watchkeeper.streams.logs.base import Format, LogError
from watchkeeper.streams.messages import ID_MAX, Kind

IMU, GPS = "sensor_combined", ("vehicle_gps_position", "sensor_gps")
_AXES = "xyz"
# The length of a message is a number of two bytes, so no message has more values.
MESSAGE_BYTES = 65_535
# All topics of a large log have some 30,000 fields together.
FIELDS_MAX = 200_000
# Formats within formats; PX4 has two levels.
DEPTH_MAX = 8
# Bytes between messages that are searched one by one for the next. A damaged card leaves blocks of some kilobytes.
GARBAGE_MAX = 200_000
# Our field: what it may be called, and what one unit of it is.
_POSITION: dict[str, tuple[tuple[str, float], ...]] = {
    "lat": (("latitude_deg", 1.0), ("lat", 1e-7)),
    "lon": (("longitude_deg", 1.0), ("lon", 1e-7)),
    "alt_m": (("altitude_msl_m", 1.0), ("alt", 1e-3)),
}
_RECEIVER = {
    "fix": "fix_type", "sats": "satellites_used", "hdop": "hdop", "eph": "eph", "epv": "epv",
    "speed_acc": "s_variance_m_s", "jamming": "jamming_indicator", "jamming_state": "jamming_state",
    "spoofing_state": "spoofing_state", "noise": "noise_per_ms", "agc": "automatic_gain_control",
}  # fmt: skip
_VELOCITY = {"gps_vx": "vel_n_m_s", "gps_vy": "vel_e_m_s", "gps_vz": "vel_d_m_s"}


def open_ulog(path: Path, recordings: Recordings | None = None) -> TableLog:
    """A flight log. Raises LogError."""
    try:
        from pyulog import ULog  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LogError(path, 'a PX4 log needs pyulog: pip install "watchkeeper[px4]"') from error
    chosen = Chosen(recordings)
    # it prints what it does not understand
    with library(path, "not a PX4 log"), contextlib.redirect_stdout(io.StringIO()):
        wanted = [IMU, *GPS, STATUS, *TOPICS]
        if chosen.patterns:
            head = _limited(ULog)(os.fspath(path), parse_header_only=True)
            wanted += [name for name in head.message_formats if name not in wanted and chosen.might(name)]
        log = _limited(ULog)(os.fspath(path), wanted)
        topics = _topics(log)
        gps = max((topics[name] for name in GPS if name in topics), key=lambda t: len(t["timestamp"]), default=None)
        if IMU not in topics and gps is None:
            raise LogError(path, f"no {IMU}, no {' or '.join(GPS)}: neither IMU nor GPS was logged")
        offset_s = _utc_offset_s(gps) if gps is not None else 0.0
        tables: dict[Kind, Table] = {}
        if gps is not None:
            tables[Kind.GPS] = _table(gps, offset_s, _gps(gps))
        if IMU in topics:
            tables[Kind.IMU] = _table(topics[IMU], offset_s, _imu(topics[IMU]))
        if (signals := signal_table(log, gps, offset_s, chosen)) is not None:
            tables[Kind.SIGNAL] = signals
        name = _name(log, path)
        tells = told(log, topics.get(STATUS, {}), gps or {}, name, offset_s)
    problems = ["the log is damaged: what could be read was read"] if log.file_corruption else []
    problems += chosen.problems()
    return TableLog(path, "ulog", [name], tables, problems=problems, told=tells)


def _limited(reader: Any) -> Any:
    """The reader of pyulog with limits: a short format may claim millions of fields, and garbage costs by the byte."""
    add_logged = reader._MessageAddLogged
    unpack_types: Mapping[str, tuple[Any, ...]] = reader._UNPACK_TYPES

    def size_of(name: str, formats: Mapping[str, Any], depth: int = 0) -> int:
        """How many values a message has once nested formats and arrays are laid out."""
        if depth > DEPTH_MAX:
            raise ValueError(f"{name}: formats within formats without end")
        total = 0
        for kind, count, _ in formats[name].fields:
            total += max(1, count) * (1 if kind in unpack_types else size_of(kind, formats, depth + 1))
            if total > MESSAGE_BYTES:
                raise ValueError(f"{name}: more fields than a message has bytes")
        return total

    class Limited(reader):  # type: ignore[misc]
        fields = garbage = 0

        def _MessageAddLogged(self, data: bytes, header: Any, formats: Mapping[str, Any]) -> Any:  # noqa: N802
            self.fields += size_of(reader.parse_string(data[3:]), formats)
            if self.fields > FIELDS_MAX:
                raise ValueError(f"more than {FIELDS_MAX:,} fields in all")
            return add_logged(data, header, formats)

        def _check_packet_corruption(self, header: Any) -> bool:
            corrupt: bool = super()._check_packet_corruption(header)
            self.garbage += corrupt
            if self.garbage > GARBAGE_MAX:
                raise struct.error("too much that is no message")  # ends the reading: what was read is kept
            return corrupt

    return Limited


def _topics(log: Any) -> dict[str, dict[str, F8]]:
    """The first instance of each topic."""
    return {
        data.name: data.data for data in reversed(log.data_list) if data.multi_id == 0 and len(data.data["timestamp"])
    }


def _name(log: Any, path: Path) -> str:
    uuid = str(log.msg_info_dict.get("sys_uuid", ""))
    return f"px4-{uuid[-12:]}" if uuid.strip("0") else path.name.removesuffix(".ulg")[:ID_MAX]


def _utc_offset_s(gps: Mapping[str, F8]) -> float:
    """Unix time at boot; 0 if the receiver never knew it."""
    utc_us = gps.get("time_utc_usec", np.zeros(0))
    known = utc_us > 0
    if not known.any():
        return 0.0
    # integers of 64 bits: as floats they would lose microseconds
    apart_us = utc_us[known].astype(np.int64) - gps["timestamp"][known].astype(np.int64)
    return float(np.median(apart_us)) / 1e6


def _table(topic: Mapping[str, F8], offset_s: float, fields: dict[str, F8]) -> Table:
    t = topic["timestamp"].astype(np.float64) / 1e6 + offset_s
    return t, np.zeros(len(t), np.int32), fields


def _imu(topic: Mapping[str, F8]) -> dict[str, F8]:
    fields = {f"imu_a{axis}": topic[f"accelerometer_m_s2[{i}]"] for i, axis in enumerate(_AXES)}
    return fields | {f"imu_w{axis}": topic[f"gyro_rad[{i}]"] for i, axis in enumerate(_AXES)}


def _gps(topic: Mapping[str, F8]) -> dict[str, F8]:
    fields = {name: topic[column].astype(np.float64) for name, column in _RECEIVER.items() if column in topic}
    for name, choices in _POSITION.items():
        for column, unit in choices:
            if column in topic:
                fields[name] = topic[column] * unit
                break
    valid = topic.get("vel_ned_valid", np.ones(len(topic["timestamp"]))) != 0
    for name, column in _VELOCITY.items():
        if column in topic:
            fields[name] = np.where(valid, topic[column], np.nan)
    return fields


ULOG = AdapterDeclaration(
    name="ulog",
    help="flight logs of PX4",
    docs="adapters/px4.md",
    extra="watchkeeper[px4]",
    formats=(Format("ulog", f"{__name__}:open_ulog", (".ulg",), b"ULog\x01\x12\x35", chooses=True),),
)
