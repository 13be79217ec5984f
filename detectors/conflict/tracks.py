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

from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import (
    ALT_REACQUIRE,
    BASE_MAX_S,
    BASE_S,
    BREAK_S,
    CLIMB_S,
    DERIVE_S,
    FASTEST_MS,
    HOVER_MS,
    LEVEL_FT,
    LEVEL_FTS,
    LEVEL_NEAR_FT,
    LEVEL_S,
    PLACE_M,
    PLACE_MS,
    RETURN_DEG,
    SUSPECT_S,
    TIGHTEST_DPS,
    TURN_GAP_S,
    TURN_S,
)
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import EARTH_M, KT_MS
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB


class Track:
    """One aircraft (detectors/kernels/records.py)."""

    heard_t: float = math.nan
    trusted: int = 0
    """Reports since the track was last (re)established."""
    # position, velocity, turn, altitude, climb and its slow mean, each with the time it was measured
    t: float = math.nan
    lat_deg: float = math.nan
    lon_deg: float = math.nan
    velocity_t: float = math.nan
    gs_ms: float = math.nan
    trk_deg: float = math.nan
    turn_dps: float = math.nan
    alt_t: float = math.nan
    alt_ft: float = math.nan
    level_ft: float = math.nan
    """The altitude of level flight: a mean over LEVEL_S."""
    climb_t: float = math.nan
    climb_fpm: float = math.nan
    slow_climb_fpm: float = math.nan
    # where the displacement and the altitude change began that velocity and climb are derived from
    base_t: float = math.nan
    base_lat_deg: float = math.nan
    base_lon_deg: float = math.nan
    base_alt_t: float = math.nan
    base_alt_ft: float = math.nan
    # another place that was seen, how many reports in a row agree about it, and when and on which track it jumped there
    new_t: float = math.nan
    new_lat_deg: float = math.nan
    new_lon_deg: float = math.nan
    new_n: int = 0
    jump_t: float = math.nan
    old_trk_deg: float = math.nan
    long: bool = False
    """Whether it had a long track before."""
    new_alt_ft: float = math.nan
    new_alt_n: int = 0


_UNKNOWN = blank(Track, 1)


class Tracks:
    """One record per slot."""

    def __init__(self, slots: int | Growing) -> None:
        self.rows: NDArray[Any] = Growing.whole(slots).rows(_UNKNOWN)

    def update(self, samples: Samples) -> None:
        """Take in one window of ADS-B reports."""
        _update(samples.slot, samples.t, samples.data, self.rows)

    def forget(self, slots: I4) -> None:
        """Clear these slots."""
        self.rows[slots] = _UNKNOWN

    def snapshot(self, high: int) -> dict[str, Any]:
        """The slots below `high`."""
        return {"rows": self.rows[:high]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        take_over(self.rows, state["rows"])


@njit(cache=True)
def _update(slot: I4, t: F8, data: F8, rows: NDArray[Any]) -> None:
    for i in range(slot.size):
        if not t[i] - rows[slot[i]].heard_t <= BREAK_S:
            rows[slot[i]] = _UNKNOWN[0]
        row = rows[slot[i]]
        gs_ms, trk_deg = data[ADSB.gs_kt, i] * KT_MS, data[ADSB.trk_deg, i]
        if _place(row, t[i], data[ADSB.lat, i], data[ADSB.lon, i], gs_ms):
            row.trusted += 1
        if not (math.isnan(gs_ms) or math.isnan(trk_deg)):
            _velocity(row, t[i], gs_ms, trk_deg)
        _altitude(row, t[i], data[ADSB.alt_ft, i], data[ADSB.vs_fpm, i])
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
def _place(row: Track, t: float, lat_deg: float, lon_deg: float, gs_ms: float) -> bool:
    """Take in a position; whether it continues the track."""
    if math.isnan(lat_deg) or math.isnan(lon_deg):
        return False
    speed_ms = row.gs_ms if math.isnan(gs_ms) else gs_ms
    row.heard_t = t
    if not math.isnan(row.t):
        if lat_deg == row.lat_deg and lon_deg == row.lon_deg and not speed_ms < HOVER_MS:
            return False
        straight = _explained(_far(row.lat_deg, row.lon_deg, lat_deg, lon_deg), t - row.t, speed_ms)
        if not straight or row.new_n > 0:
            return _settle(row, t, lat_deg, lon_deg, speed_ms, straight)
    row.t, row.lat_deg, row.lon_deg, row.new_n = t, lat_deg, lon_deg, 0
    row.long = row.long or row.trusted >= REACQUIRE
    return True


@njit(cache=True)
def _settle(row: Track, t: float, lat_deg: float, lon_deg: float, speed_ms: float, straight: bool) -> bool:
    """A position after a jump; whether it ends the dispute about where the aircraft is."""
    if row.new_n == 0:
        row.jump_t, row.old_trk_deg = t, row.trk_deg
    agrees = row.new_n > 0 and _explained(
        _far(row.new_lat_deg, row.new_lon_deg, lat_deg, lon_deg), t - row.new_t, speed_ms
    )
    row.new_n = row.new_n + 1 if agrees else 1
    row.new_t, row.new_lat_deg, row.new_lon_deg = t, lat_deg, lon_deg
    row.trusted = 0
    back = straight and t - row.jump_t <= BREAK_S  # a spike: the very next report may be good again
    if not back:
        off_deg = (_bearing(row.lat_deg, row.lon_deg, lat_deg, lon_deg) - row.old_trk_deg + 540.0) % 360.0 - 180.0
        returned = straight and abs(off_deg) <= RETURN_DEG
        believed = not row.long or returned or t - row.jump_t >= SUSPECT_S
        if row.new_n < REACQUIRE or not believed:
            return False
    row.t, row.lat_deg, row.lon_deg, row.new_n = t, lat_deg, lon_deg, 0
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
def _velocity(row: Track, t: float, gs_ms: float, trk_deg: float) -> None:
    dt_s = t - row.velocity_t
    if 0.0 < dt_s <= TURN_GAP_S:
        raw = ((trk_deg - row.trk_deg + 540.0) % 360.0 - 180.0) / dt_s
        share = 1.0 - math.exp(-dt_s / TURN_S)
        row.turn_dps += share * (min(max(raw, -TIGHTEST_DPS), TIGHTEST_DPS) - row.turn_dps)
    elif dt_s != 0.0:
        row.turn_dps = 0.0
    row.velocity_t, row.gs_ms, row.trk_deg = t, gs_ms, trk_deg


@njit(cache=True)
def _altitude(row: Track, t: float, alt_ft: float, vs_fpm: float) -> None:
    if not math.isnan(vs_fpm):
        share = 1.0 - math.exp(-(t - row.climb_t) / CLIMB_S) if t - row.climb_t <= BREAK_S else 1.0
        slow = row.slow_climb_fpm if share < 1.0 else 0.0
        row.slow_climb_fpm = slow + share * (vs_fpm - slow)
        row.climb_t, row.climb_fpm = t, vs_fpm
    if math.isnan(alt_ft):
        return
    dt_s = t - row.alt_t
    climb_fts = row.climb_fpm / 60.0 if t - row.climb_t <= BASE_MAX_S else 0.0
    room_ft = LEVEL_FT + LEVEL_FTS * dt_s
    if dt_s <= BREAK_S and abs(alt_ft - row.alt_ft - climb_fts * dt_s) > room_ft:
        row.new_alt_n = row.new_alt_n + 1 if abs(alt_ft - row.new_alt_ft) <= room_ft else 1
        row.new_alt_ft = alt_ft
        if row.new_alt_n < ALT_REACQUIRE:
            return
    near = abs(alt_ft - row.level_ft) <= LEVEL_NEAR_FT
    share = 1.0 - math.exp(-dt_s / LEVEL_S) if near and dt_s <= BREAK_S else 1.0
    row.level_ft = row.level_ft + share * (alt_ft - row.level_ft) if share < 1.0 else alt_ft
    row.alt_t, row.alt_ft, row.new_alt_ft, row.new_alt_n = t, alt_ft, math.nan, 0


@njit(cache=True)
def _derive(row: Track, t: float) -> None:
    """Velocity from displacement and climb from altitude, where none is reported."""
    dt_s = row.t - row.base_t
    if not dt_s < BASE_S:
        if dt_s <= BASE_MAX_S and not t - row.velocity_t <= DERIVE_S:
            row.gs_ms = _far(row.base_lat_deg, row.base_lon_deg, row.lat_deg, row.lon_deg) / dt_s
            row.trk_deg = _bearing(row.base_lat_deg, row.base_lon_deg, row.lat_deg, row.lon_deg)
            row.velocity_t, row.turn_dps = row.t, 0.0
        row.base_t, row.base_lat_deg, row.base_lon_deg = row.t, row.lat_deg, row.lon_deg
    dt_s = row.alt_t - row.base_alt_t
    if not dt_s < BASE_S:
        if dt_s <= BASE_MAX_S and not t - row.climb_t <= DERIVE_S:
            row.climb_fpm = row.slow_climb_fpm = 60.0 * (row.alt_ft - row.base_alt_ft) / dt_s
            row.climb_t = row.alt_t
        row.base_alt_t, row.base_alt_ft = row.alt_t, row.alt_ft
