"""A GPS fix as the filter takes it: north-east-down metres and metres per second, NaN where the receiver says nothing.

Fixes come as local x/y/z or as latitude, longitude and altitude, with or without velocity. Geodetic fixes are added up
step by step along the local north and east, which is what a velocity in north and east integrates to, wherever the
vehicle goes.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu_state import MEASURED, Settings, Vehicle
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

WGS84_A, WGS84_E2 = 6_378_137.0, 6.694379990141e-3
# Columns of the GPS stream (messages.FIELDS), which the kernel reads by number.
X, LAT, LON, ALT, VX, FIX = 0, 3, 4, 5, 6, 9
# Fix types below this are no position.
FIX_MIN = 2.0


@njit(cache=True)
def read_fix(row: Vehicle, par: Settings, data: F8, i: int, fix: F8) -> bool:
    """The fix as north, east, down position and velocity, NaN where absent; False when there is no position."""
    if data[i, FIX] < FIX_MIN:
        return False  # NaN, the usual "not told", passes
    if par.enu:
        fix[0], fix[1], fix[2] = data[i, X + 1], data[i, X], -data[i, X + 2]
        fix[3], fix[4], fix[5] = data[i, VX + 1], data[i, VX], -data[i, VX + 2]
    else:
        for k in range(3):
            fix[k], fix[3 + k] = data[i, X + k], data[i, VX + k]
    if math.isnan(fix[3] + fix[4]):
        fix[3] = fix[4] = math.nan
    if not math.isnan(fix[0] + fix[1]):
        return True
    lat, lon = data[i, LAT], data[i, LON]
    if math.isnan(lat + lon):
        return False
    fix[2] = -data[i, ALT]
    if row.anchored == 0:
        fix[0] = fix[1] = 0.0
        return True
    mid = math.radians(0.5 * (lat + row.lat))
    curve = 1.0 - WGS84_E2 * math.sin(mid) ** 2
    east = math.radians((lon - row.lon + 540.0) % 360.0 - 180.0)
    fix[0] = row.fix[0] + math.radians(lat - row.lat) * WGS84_A * (1.0 - WGS84_E2) / (curve * math.sqrt(curve))
    fix[1] = row.fix[1] + east * WGS84_A * math.cos(mid) / math.sqrt(curve)
    return True


@njit(cache=True)
def remember(row: Vehicle, data: F8, i: int, fix: F8, t: float) -> None:
    """Keep this fix for the comparison with the next."""
    row.fix_t = t
    for k in range(6):
        row.fix[k] = fix[k]
    row.lat, row.lon = data[i, LAT], data[i, LON]
    row.anchored = 0 if math.isnan(row.lat + row.lon) else 1


@njit(cache=True)
def has_changed(row: Vehicle, fix: F8) -> bool:
    """Whether anything in the fix differs from the one before (absent equals absent)."""
    same = 0
    for k in range(MEASURED):
        same += fix[k] == row.fix[k] or (math.isnan(fix[k]) and math.isnan(row.fix[k]))
    return same < MEASURED
