"""A GPS fix as the filter takes it: north-east-down metres and metres per second, NaN where the receiver says nothing.

Fixes come as local x/y/z or as latitude, longitude and altitude, with or without velocity. Geodetic fixes are added up
step by step along the local north and east, which is what a velocity in north and east integrates to, wherever the
vehicle goes.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.constants import HELD_SPEED, ROUNDING_MPS
from watchkeeper.detectors.gps_imu.state import MEASURED, Settings, Vehicle, Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import WGS84_A_M, WGS84_E2
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import FIX_MIN, GPS


@njit(cache=True)
def read_fix(row: Vehicle | Receiver, par: Settings, data: F8, i: int, fix: F8) -> bool:
    """The fix as north, east, down position and velocity, NaN where absent; False when there is no position."""
    if data[i, GPS.fix] < FIX_MIN:
        return False  # NaN, the usual "not told", passes
    if par.enu:
        fix[0], fix[1], fix[2] = data[i, GPS.gps_y], data[i, GPS.gps_x], -data[i, GPS.gps_z]
        fix[3], fix[4], fix[5] = data[i, GPS.gps_vy], data[i, GPS.gps_vx], -data[i, GPS.gps_vz]
    else:
        fix[0], fix[1], fix[2] = data[i, GPS.gps_x], data[i, GPS.gps_y], data[i, GPS.gps_z]
        fix[3], fix[4], fix[5] = data[i, GPS.gps_vx], data[i, GPS.gps_vy], data[i, GPS.gps_vz]
    if math.isnan(fix[3] + fix[4]):
        fix[3] = fix[4] = math.nan
    if not math.isnan(fix[0] + fix[1]):
        return True
    lat, lon = data[i, GPS.lat], data[i, GPS.lon]
    if math.isnan(lat + lon):
        return False
    fix[2] = -data[i, GPS.alt_m]
    if row.anchored == 0:
        fix[0] = fix[1] = 0.0
        return True
    mid = math.radians(0.5 * (lat + row.lat))
    curve = 1.0 - WGS84_E2 * math.sin(mid) ** 2
    east = math.radians((lon - row.lon + 540.0) % 360.0 - 180.0)
    fix[0] = row.fix[0] + math.radians(lat - row.lat) * WGS84_A_M * (1.0 - WGS84_E2) / (curve * math.sqrt(curve))
    fix[1] = row.fix[1] + east * WGS84_A_M * math.cos(mid) / math.sqrt(curve)
    return True


@njit(cache=True)
def hold_course(row: Vehicle | Receiver, work: Work) -> None:
    """Take the direction out of a slow velocity whose course has not changed at all.

    Receivers hold the last course when they hardly move, so such a velocity may point anywhere: it tells a speed.
    """
    fix, told, before = work.fix, work.told, row.told
    told[0], told[1] = fix[3], fix[4]
    work.loose_mps = 0.0
    speed, speed_before = math.hypot(told[0], told[1]), math.hypot(before[0], before[1])
    if row.fix_t == 0.0 or not speed < HELD_SPEED:
        return
    across = abs(told[0] * before[1] - told[1] * before[0])
    along = told[0] * before[0] + told[1] * before[1]
    if across <= ROUNDING_MPS * (speed + speed_before) and along >= 0.0:
        work.loose_mps = speed
        fix[3] = fix[4] = 0.0


@njit(cache=True)
def remember(row: Vehicle | Receiver, work: Work, data: F8, i: int, t: float) -> None:
    """Keep this fix for the comparison with the next."""
    row.fix_t = t
    for k in range(6):
        row.fix[k] = work.fix[k]
    row.told[0], row.told[1] = work.told[0], work.told[1]
    row.loose_mps = work.loose_mps
    row.lat, row.lon = data[i, GPS.lat], data[i, GPS.lon]
    row.anchored = 0 if math.isnan(row.lat + row.lon) else 1


@njit(cache=True)
def has_changed(row: Vehicle | Receiver, work: Work) -> bool:
    """Whether anything in the fix differs from the one before (absent equals absent)."""
    same = 0
    for k in range(MEASURED):
        now, before = work.fix[k], row.fix[k]
        if 3 <= k <= 4:
            now, before = work.told[k - 3], row.told[k - 3]
        same += now == before or (math.isnan(now) and math.isnan(before))
    return same < MEASURED
