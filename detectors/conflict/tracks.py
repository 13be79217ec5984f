"""Tracks: what each aircraft is doing now, as far as its reports can be believed. The base of every prediction.

Fed by the conflict detector with each window's ADS-B reports. Per aircraft it keeps position, velocity, turn rate,
altitude and climb, each with the time it was measured, and decides what to believe:
- a position that the reported speed cannot explain is set aside; the aircraft has no track (`trusted` is 0) until
  REACQUIRE reports in a row agree with each other about the new place. If it had a long track before, that is not
  enough, for a spoofer's places agree with each other too: it must be back about where the old track led, or SUSPECT_S
  must have passed;
- an altitude that the climb cannot explain is set aside until ALT_REACQUIRE reports agree about the new one, and the
  old one is carried on meanwhile: spikes of one or two reports leave no trace;
- a position that is repeated while the aircraft moves is not a measurement (feeds hold the last value);
- speed and track missing for DERIVE_S are derived from displacement, climb from altitude, over BASE_S at least.
`kinematics` judges the same contradictions and raises the alarm about them; here they only must not do harm.

Angles in degrees, speeds in m/s and ft/min, times are event time in seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

# After a longer break the track starts anew.
BREAK_S = 60.0
# How long a long track that jumped is not believed in its new place, and how far off its old course it may return.
SUSPECT_S, RETURN_DEG = 1800.0, 20.0
# What a position may be off: noise and time-stamp error, and per second since the last one.
PLACE_M, PLACE_MS = 400.0, 80.0
# Without a speed nothing is known but that no aircraft flies faster than this.
FASTEST_MS = 770.0
# The same for altitude: steps and noise, and per second beyond the reported climb.
LEVEL_FT, LEVEL_FTS = 400.0, 50.0
ALT_REACQUIRE = 3
# Velocity is derived when none was reported for this long, over a displacement at least that old.
DERIVE_S, BASE_S, BASE_MAX_S = 5.0, 5.0, 15.0
# A turn is averaged over about this long, and the climb that a level-off is measured against over that long.
TURN_S, CLIMB_S = 4.0, 10.0
# Reports further apart say nothing about a turn.
TURN_GAP_S = 15.0
# Track angles are quantised and noisy: less is straight, and nobody turns faster.
STRAIGHT_DPS, TIGHTEST_DPS = 0.3, 6.0
# Slower than this a repeated position is a measurement: it hovers.
HOVER_MS = 3.0
EARTH_M = 6_371_000.0

# Columns.
(T, LAT, LON, T_VEL, GS_MS, TRK_DEG, TURN_DPS, T_ALT, ALT_FT, T_VS, VS_FPM, VS_SLOW_FPM, TRUSTED) = range(13)
_BASE_T, _BASE_LAT, _BASE_LON, _BASE_T_ALT, _BASE_ALT = range(13, 18)
_NEW_T, _NEW_LAT, _NEW_LON, _NEW_N, _NEW_ALT, _NEW_ALT_N = range(18, 24)
_HEARD_T, _JUMP_T, _LONG, _OLD_TRK = range(24, 28)
COLUMNS = 28

_LAT, _LON, _ALT, _GS, _TRK, _VS = (
    COLUMN[Kind.ADSB][name] for name in ("lat", "lon", "alt_ft", "gs_kt", "trk_deg", "vs_fpm")
)


class Tracks:
    """One row of COLUMNS per slot; `row[TRUSTED]` counts the reports since the track was last (re)established."""

    def __init__(self, capacity: int) -> None:
        self.rows: F8 = np.full((capacity, COLUMNS), np.nan)

    def update(self, samples: Samples) -> None:
        """Take in one window of ADS-B reports."""
        _update(samples.slot, samples.t, samples.data, self.rows)

    def forget(self, slots: I4) -> None:
        """Clear these slots."""
        self.rows[slots] = np.nan

    def snapshot(self, high: int) -> dict[str, Any]:
        """The slots below `high`."""
        return {"rows": self.rows[:high]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        saved = state["rows"]
        self.rows[: len(saved)] = saved


@njit(cache=True)
def _update(slot: I4, t: F8, data: F8, rows: F8) -> None:
    for i in range(slot.size):
        row = rows[slot[i]]
        if not t[i] - row[_HEARD_T] <= BREAK_S:
            row[:] = np.nan
            row[TRUSTED] = row[_LONG] = 0.0
        gs_ms, trk_deg = data[_GS, i] * KT_MS, data[_TRK, i]
        if _place(row, t[i], data[_LAT, i], data[_LON, i], gs_ms):
            row[TRUSTED] += 1.0
        if not (math.isnan(gs_ms) or math.isnan(trk_deg)):
            _velocity(row, t[i], gs_ms, trk_deg)
        _altitude(row, t[i], data[_ALT, i], data[_VS, i])
        _derive(row, t[i])


@njit(cache=True)
def _far(lat1_deg: float, lon1_deg: float, lat2_deg: float, lon2_deg: float) -> float:
    """Distance in m on a sphere: good to half a percent, at the poles too."""
    rad = math.pi / 180.0
    north, east = (lat2_deg - lat1_deg) * rad, (lon2_deg - lon1_deg) * rad
    if abs(lat1_deg) < 80.0 and abs(north) + abs(east) < 0.01:
        # most reports: a few hundred metres from the last, which is flat
        east *= math.cos(lat1_deg * rad)
        return EARTH_M * math.sqrt(north * north + east * east)
    a, b = math.sin(0.5 * north) ** 2, math.sin(0.5 * east) ** 2
    return 2.0 * EARTH_M * math.asin(min(1.0, math.sqrt(a + math.cos(lat1_deg * rad) * math.cos(lat2_deg * rad) * b)))


@njit(cache=True, inline="always")
def _explained(distance_m: float, dt_s: float, gs_ms: float) -> bool:
    """Whether an aircraft of this speed (NaN: unknown) can have covered the distance in the time."""
    if math.isnan(gs_ms):
        return distance_m <= PLACE_M + FASTEST_MS * dt_s
    return abs(distance_m - gs_ms * dt_s) <= PLACE_M + PLACE_MS * dt_s


@njit(cache=True)
def _place(row: F8, t: float, lat_deg: float, lon_deg: float, gs_ms: float) -> bool:
    """Take in a position; whether it continues the track."""
    if math.isnan(lat_deg) or math.isnan(lon_deg):
        return False
    speed_ms = row[GS_MS] if math.isnan(gs_ms) else gs_ms
    row[_HEARD_T] = t
    if not math.isnan(row[T]):
        if lat_deg == row[LAT] and lon_deg == row[LON] and not speed_ms < HOVER_MS:
            return False
        straight = _explained(_far(row[LAT], row[LON], lat_deg, lon_deg), t - row[T], speed_ms)
        if not straight or row[_NEW_N] > 0.0:
            return _settle(row, t, lat_deg, lon_deg, speed_ms, straight)
    row[T], row[LAT], row[LON], row[_NEW_N] = t, lat_deg, lon_deg, 0.0
    row[_LONG] = 1.0 if row[TRUSTED] >= REACQUIRE else row[_LONG]
    return True


@njit(cache=True)
def _settle(row: F8, t: float, lat_deg: float, lon_deg: float, speed_ms: float, straight: bool) -> bool:
    """A position after a jump; whether it ends the dispute about where the aircraft is."""
    if row[_NEW_N] == 0.0 or math.isnan(row[_NEW_N]):
        row[_JUMP_T], row[_OLD_TRK] = t, row[TRK_DEG]
    agrees = row[_NEW_N] > 0.0 and _explained(
        _far(row[_NEW_LAT], row[_NEW_LON], lat_deg, lon_deg), t - row[_NEW_T], speed_ms
    )
    row[_NEW_N] = row[_NEW_N] + 1.0 if agrees else 1.0
    row[_NEW_T], row[_NEW_LAT], row[_NEW_LON] = t, lat_deg, lon_deg
    row[TRUSTED] = 0.0
    back = straight and t - row[_JUMP_T] <= BREAK_S  # a spike: the very next report may be good again
    if not back:
        off_deg = (_bearing(row[LAT], row[LON], lat_deg, lon_deg) - row[_OLD_TRK] + 540.0) % 360.0 - 180.0
        returned = straight and abs(off_deg) <= RETURN_DEG
        believed = row[_LONG] == 0.0 or returned or t - row[_JUMP_T] >= SUSPECT_S
        if row[_NEW_N] < REACQUIRE or not believed:
            return False
    row[T], row[LAT], row[LON], row[_NEW_N] = t, lat_deg, lon_deg, 0.0
    return True


@njit(cache=True)
def _bearing(lat1_deg: float, lon1_deg: float, lat2_deg: float, lon2_deg: float) -> float:
    """Which way the second point is from the first, in degrees."""
    rad = math.pi / 180.0
    lat0, lat1, dlon = lat1_deg * rad, lat2_deg * rad, (lon2_deg - lon1_deg) * rad
    east = math.sin(dlon) * math.cos(lat1)
    north = math.cos(lat0) * math.sin(lat1) - math.sin(lat0) * math.cos(lat1) * math.cos(dlon)
    return math.atan2(east, north) / rad % 360.0


@njit(cache=True)
def _velocity(row: F8, t: float, gs_ms: float, trk_deg: float) -> None:
    dt_s = t - row[T_VEL]
    if 0.0 < dt_s <= TURN_GAP_S:
        raw = ((trk_deg - row[TRK_DEG] + 540.0) % 360.0 - 180.0) / dt_s
        share = 1.0 - math.exp(-dt_s / TURN_S)
        row[TURN_DPS] += share * (min(max(raw, -TIGHTEST_DPS), TIGHTEST_DPS) - row[TURN_DPS])
    elif dt_s != 0.0:
        row[TURN_DPS] = 0.0
    row[T_VEL], row[GS_MS], row[TRK_DEG] = t, gs_ms, trk_deg


@njit(cache=True)
def _altitude(row: F8, t: float, alt_ft: float, vs_fpm: float) -> None:
    if not math.isnan(vs_fpm):
        share = 1.0 - math.exp(-(t - row[T_VS]) / CLIMB_S) if t - row[T_VS] <= BREAK_S else 1.0
        slow = row[VS_SLOW_FPM] if share < 1.0 else 0.0
        row[VS_SLOW_FPM] = slow + share * (vs_fpm - slow)
        row[T_VS], row[VS_FPM] = t, vs_fpm
    if math.isnan(alt_ft):
        return
    dt_s = t - row[T_ALT]
    climb_fts = row[VS_FPM] / 60.0 if t - row[T_VS] <= BASE_MAX_S else 0.0
    room_ft = LEVEL_FT + LEVEL_FTS * dt_s
    if dt_s <= BREAK_S and abs(alt_ft - row[ALT_FT] - climb_fts * dt_s) > room_ft:
        row[_NEW_ALT_N] = row[_NEW_ALT_N] + 1.0 if abs(alt_ft - row[_NEW_ALT]) <= room_ft else 1.0
        row[_NEW_ALT] = alt_ft
        if row[_NEW_ALT_N] < ALT_REACQUIRE:
            return
    row[T_ALT], row[ALT_FT], row[_NEW_ALT], row[_NEW_ALT_N] = t, alt_ft, np.nan, 0.0


@njit(cache=True)
def _derive(row: F8, t: float) -> None:
    """Velocity from displacement and climb from altitude, where none is reported."""
    dt_s = row[T] - row[_BASE_T]
    if not dt_s < BASE_S:
        if dt_s <= BASE_MAX_S and not t - row[T_VEL] <= DERIVE_S:
            row[GS_MS] = _far(row[_BASE_LAT], row[_BASE_LON], row[LAT], row[LON]) / dt_s
            row[TRK_DEG] = _bearing(row[_BASE_LAT], row[_BASE_LON], row[LAT], row[LON])
            row[T_VEL], row[TURN_DPS] = row[T], 0.0
        row[_BASE_T], row[_BASE_LAT], row[_BASE_LON] = row[T], row[LAT], row[LON]
    dt_s = row[T_ALT] - row[_BASE_T_ALT]
    if not dt_s < BASE_S:
        if dt_s <= BASE_MAX_S and not t - row[T_VS] <= DERIVE_S:
            row[VS_FPM] = row[VS_SLOW_FPM] = 60.0 * (row[ALT_FT] - row[_BASE_ALT]) / dt_s
            row[T_VS] = row[T_ALT]
        row[_BASE_T_ALT], row[_BASE_ALT] = row[T_ALT], row[ALT_FT]
