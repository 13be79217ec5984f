"""A flight written as autopilots and ground stations record it: DataFlash `.bin`, ULog `.ulg`, MAVLink `.tlog`.

The formats are written here after their definitions, with the columns that the readers look for and no others.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from pymavlink.dialects.v20 import ardupilotmega

from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.attacks.scene import DEGREE_M, FORCE, PLACE, RATE, VELOCITY

LAT, LON = 47.4, 8.5
UNIX_S = 1_700_000_000.0


def samples(flight: Flight) -> Iterator[tuple[float, np.ndarray | None, np.ndarray | None]]:
    """Time, and force and rates of an IMU sample or latitude, longitude, altitude and velocity of a fix; in order."""
    imu = np.vstack((flight.imu.data[FORCE], flight.imu.data[RATE])).T
    north, east, down = flight.gps.data[PLACE]
    place = np.array((LAT + north / DEGREE_M, LON + east / (DEGREE_M * math.cos(math.radians(LAT))), -down))
    gps = np.vstack((place, flight.gps.data[VELOCITY])).T
    rows = [(t, row, None) for t, row in zip(flight.imu.t.tolist(), imu, strict=True)]
    rows += [(t, None, row) for t, row in zip(flight.gps.t.tolist(), gps, strict=True)]
    yield from sorted(rows, key=lambda row: row[0])


def course(velocity: np.ndarray) -> tuple[float, float]:
    """Speed over ground, m/s, and course, degrees."""
    return math.hypot(velocity[0], velocity[1]), math.degrees(math.atan2(velocity[1], velocity[0])) % 360.0


def write_tlog(path: Path, flight: Flight) -> None:
    """A ground station's recording."""
    mav = ardupilotmega.MAVLink(None, srcSystem=1, srcComponent=1)
    parts = []
    for t, imu, gps in samples(flight):
        us = round((1000.0 + t) * 1e6)
        if imu is not None:
            sent = mav.highres_imu_encode(us, *imu.tolist(), 0, 0, 0, 0, 0, 0, 0, 0xFFFF)
        else:
            speed, degrees = course(gps[3:])
            place = (round(gps[0] * 1e7), round(gps[1] * 1e7), round(gps[2] * 1e3))
            sent = mav.gps_raw_int_encode(us, 3, *place, 90, 90, round(speed * 100), round(degrees * 100) % 36_000, 12)
        parts.append(struct.pack(">Q", round((UNIX_S + t) * 1e6)) + sent.pack(mav))
    path.write_bytes(b"".join(parts))


_BIN = {
    "IMU": (131, "Qffffff", "TimeUS,GyrX,GyrY,GyrZ,AccX,AccY,AccZ", "<Qffffff"),
    "GPS": (130, "QBIHBcLLefff", "TimeUS,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt,Spd,GCrs,VZ", "<QBIHBhiiifff"),
}


def write_bin(path: Path, flight: Flight) -> None:
    """ArduPilot's own log."""
    head = b"\xa3\x95"
    parts = [head + b"\x80" + struct.pack("<BB4s16s64s", 128, 89, b"FMT", b"BBnNZ", b"Type,Length,Name,Format,Columns")]
    for name, (number, form, columns, packed) in _BIN.items():
        size = 3 + struct.calcsize(packed)
        known = struct.pack("<BB4s16s64s", number, size, name.encode(), form.encode(), columns.encode())
        parts.append(head + b"\x80" + known)
    for t, imu, gps in samples(flight):
        us = round((2.0 + t) * 1e6)
        if imu is not None:
            parts.append(head + b"\x83" + struct.pack(_BIN["IMU"][3], us, *imu[3:].tolist(), *imu[:3].tolist()))
        else:
            place = (round(gps[0] * 1e7), round(gps[1] * 1e7), round(gps[2] * 100))
            time = (345_600_000 + round(t * 1000), 2290)
            fix = struct.pack(_BIN["GPS"][3], us, 3, *time, 12, 90, *place, *course(gps[3:]), gps[5])
            parts.append(head + b"\x82" + fix)
    path.write_bytes(b"".join(parts))


_ULG = (
    "sensor_combined:uint64_t timestamp;float[3] gyro_rad;float[3] accelerometer_m_s2;",
    (
        "vehicle_gps_position:uint64_t timestamp;uint64_t time_utc_usec;int32_t lat;int32_t lon;int32_t alt;"
        "float hdop;float vel_n_m_s;float vel_e_m_s;float vel_d_m_s;uint8_t fix_type;uint8_t satellites_used;"
    ),
)


def write_ulg(path: Path, flight: Flight) -> None:
    """PX4's own log."""

    def message(kind: bytes, body: bytes) -> bytes:
        return struct.pack("<H", len(body)) + kind + body

    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0), *(message(b"F", text.encode()) for text in _ULG)]
    parts += [message(b"A", struct.pack("<BH", 0, i) + text.split(":")[0].encode()) for i, text in enumerate(_ULG)]
    for t, imu, gps in samples(flight):
        us = round((3.0 + t) * 1e6)
        if imu is not None:
            parts.append(message(b"D", struct.pack("<HQffffff", 0, us, *imu[3:].tolist(), *imu[:3].tolist())))
        else:
            place = (round(gps[0] * 1e7), round(gps[1] * 1e7), round(gps[2] * 1e3))
            utc = round((UNIX_S + t) * 1e6)
            parts.append(message(b"D", struct.pack("<HQQiiiffffBB", 1, us, utc, *place, 0.9, *gps[3:].tolist(), 3, 12)))
    path.write_bytes(b"".join(parts))


WRITERS: dict[str, Callable[[Path, Flight], None]] = {".bin": write_bin, ".ulg": write_ulg, ".tlog": write_tlog}
