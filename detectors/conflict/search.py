"""Every pair of aircraft that will lose separation within the horizon, in time proportional to the fleet.

Called once a tick by the conflict detector. One thread; all work arrays are made once and reused.

grid.py sorts the aircraft into cells by where they will be at the middle of the horizon: from there nobody strays
further than half the horizon's flight, so the search radius is half of what it would be from where they are now. Of
the pairs in touching cells, the altitude bands flown through within the horizon decide first, then straight-line
closest approach with a margin for the curvature of the Earth, and what is left is computed exactly (cpa.approach).

The first two tests read eight float32 an aircraft, copied in the order of the cells: what is compared lies together in
memory, and only pairs that pass touch the states themselves.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.grid import LEVELS, Cells, Grid, begin_level, neighbours
from watchkeeper.detectors.conflict.minima import Minima, minima_of, widest
from watchkeeper.detectors.kernels.approach import (
    ON_LIMIT_M,
    STILL_MS,
    TERMS,
    State,
    altitude_gap,
    later,
    passing,
    reach,
    scratch,
    vertical_window,
)
from watchkeeper.detectors.kernels.records import Float4, Int4, blank
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.geo import WGS84_A_M, WGS84_B_M
from watchkeeper.streams.kernels import njit

# No normal section of the ellipsoid is bent more than the meridian at the equator.
_BEND = 0.5 * WGS84_A_M / (WGS84_B_M * WGS84_B_M)
# What float32 takes from an altitude band, and from the distance of two positions (a quarter metre per coordinate).
_BAND_SLACK_FT, _PLACE_SLACK_M = 1.0, 2.0
# A closest approach this near the end of the horizon is the end of the horizon.
AT_END_S = 1e-6


class Pair:
    """Two aircraft that lose separation, or nearly do (detectors/kernels/records.py)."""

    a: Int4
    b: Int4
    """Slots."""
    tcpa_s: float
    dcpa_m: float
    t_in_s: float
    t_out_s: float
    now_m: float
    vsep_ft: float
    """At closest approach."""
    lost: bool
    """Separation is lost now."""
    reach_m: float
    """The horizontal distance that counts: the minimum, or what a tau makes of it (kernels/approach.py)."""
    apart_m: float
    level_ft: float
    """The minima that hold for the pair (minima.py)."""
    probability: float
    when_s: float
    """Of a loss, and when; see probability.py."""
    asked: float
    """The probability that counts as a conflict, so far ahead."""


class Course:
    """Position and velocity of an aircraft, as the coarse test reads them."""

    x_m: Float4
    y_m: Float4
    z_m: Float4
    vx_ms: Float4
    vy_ms: Float4
    vz_ms: Float4


class Band:
    """The altitudes that an aircraft flies through within the horizon."""

    low_ft: Float4
    high_ft: Float4


class Work(NamedTuple):
    """What the search needs to work: courses and bands in the order of the cells, partners that passed, scratch."""

    course: NDArray[Any]
    band: NDArray[Any]
    near: I4
    gap: F8
    pair: NDArray[Any]


class Scan:
    """Work arrays for up to `capacity` aircraft, results for up to `max_pairs` pairs.

    Fill `slot[:n]` and `state[:n]` (see kernels/approach.py), call `run(n, minima)`; rows 0 … found-1 of `pairs` are
    what was found, with values from `slot`. `overflow` counts those that found no room.
    """

    def __init__(self, capacity: int, max_pairs: int) -> None:
        self.slot: I4 = np.empty(capacity, np.int32)
        self.state: NDArray[Any] = blank(State, capacity)
        self._grid = Grid(capacity)
        self._work = Work(
            blank(Course, capacity), blank(Band, capacity), np.empty(capacity + 1, np.int32), scratch(), blank(Pair, 1)
        )
        self.pairs: NDArray[Any] = blank(Pair, max_pairs)
        self.overflow = 0
        # the largest minima, of those that were last searched with
        self._minima: Minima | None = None
        self._widest = (0.0, 0.0)

    def run(self, n: int, minima: Minima) -> int:
        """Search the first n aircraft; returns how many pairs were found and stored."""
        self.overflow = 0
        if n == 0:
            return 0
        m, grid = minima, self._grid
        if m is not self._minima:
            self._minima, self._widest = m, widest(m)
        widest_m, highest_ft = grid.build(n, self.state, m.horizon_s, *self._widest, m.margin_m)
        _lay_out(n, grid.cells.row, self.state, m.horizon_s, self._work)
        found = _search(m, widest_m, highest_ft, grid.cells, self.slot, self.state, self._work, self.pairs)
        stored = min(found, len(self.pairs))
        self.overflow = found - stored
        return stored


@njit(cache=True)
def add_pairs(
    a: I4, b: I4, row_of: I4, slot: I4, n: int, minima: Minima, state: NDArray[Any], pairs: NDArray[Any]
) -> int:
    """Pairs of slots that the search did not find, because they are harmless; returns how many were filled in.

    `slot[:n]` are the aircraft of this tick, at `row_of` them: pairs of which one is not among them are left out.
    """
    gap = np.empty((TERMS, 3))
    count = 0
    for k in range(a.size):
        i, j = row_of[a[k]], row_of[b[k]]
        if count == pairs.size or i >= n or j >= n or slot[i] != a[k] or slot[j] != b[k]:
            continue
        one, other = state[i], state[j]
        separation_m, vertical_ft, tau_s = minima_of(one, other, minima)
        if separation_m <= 0.0:
            continue
        reach_m = reach(one, other, minima.horizon_s, separation_m, tau_s)
        way = passing(one, other, minima.horizon_s, separation_m, vertical_ft, reach_m, gap)
        pair = pairs[count]
        pair.reach_m, pair.apart_m, pair.level_ft = reach_m, separation_m, vertical_ft
        pair.a, pair.b = a[k], b[k]
        pair.tcpa_s, pair.dcpa_m, pair.now_m = way.tcpa_s, way.dcpa_m, way.now_m
        pair.t_in_s, pair.t_out_s = way.t_in_s, way.t_out_s
        pair.vsep_ft = abs(altitude_gap(one, other, way.tcpa_s))
        pair.lost, pair.probability, pair.when_s = False, 0.0, math.nan
        count += 1
    return count


@njit(cache=True)
def look_further(rows: I8, pairs: NDArray[Any], row_of: I4, state: NDArray[Any], horizon_s: float) -> None:
    """Closest approach beyond the horizon for those of these pairs that are still closing in at its end."""
    gap = np.empty((TERMS, 3))
    for k in range(rows.size):
        pair = pairs[rows[k]]
        if pair.tcpa_s >= horizon_s - AT_END_S:
            a, b = state[row_of[pair.a]], state[row_of[pair.b]]
            pair.tcpa_s, pair.dcpa_m = later(a, b, horizon_s, gap)
            pair.vsep_ft = abs(altitude_gap(a, b, pair.tcpa_s))


@njit(cache=True)
def _lay_out(n: int, row: I4, state: NDArray[Any], horizon_s: float, work: Work) -> None:
    """Copy what the coarse tests need in the order of the cells: position, velocity, and the band flown through."""
    for at in range(n):
        a, course, band = state[row[at]], work.course[at], work.band[at]
        course.x_m, course.y_m, course.z_m = a.x_m, a.y_m, a.z_m
        course.vx_ms, course.vy_ms, course.vz_ms = a.vx_ms, a.vy_ms, a.vz_ms
        alt0_ft = a.alt_ft
        alt1_ft = alt0_ft + a.climb_fts * min(horizon_s, a.level_s)
        known = not math.isnan(alt0_ft)
        band.low_ft = min(alt0_ft, alt1_ft) if known else -math.inf
        band.high_ft = max(alt0_ft, alt1_ft) if known else math.inf


@njit(cache=True)
def _search(
    minima: Minima, widest_m: float, highest_ft: float, cells: Cells, slot: I4, state: NDArray[Any], work: Work,
    pairs: NDArray[Any],
) -> int:  # fmt: skip
    """Walk the cells, each aircraft against those after it in its cell and against the cells it touches."""
    half = 0.5 * minima.horizon_s
    bend = _BEND * half * half
    coarse_m = widest_m + _slack_m(minima) + _PLACE_SLACK_M
    reach_ft = highest_ft + minima.margin_ft + _BAND_SLACK_FT
    key, row, level_start, near = cells.key, cells.row, cells.level_start, work.near
    found = 0
    for level in range(LEVELS):
        begin_level(level, cells)
        at = level_start[level]
        while at < level_start[level + 1]:
            end = at + 1
            while end < level_start[level + 1] and key[end] == key[at]:
                end += 1
            runs, above = neighbours(at, end, level, cells)
            for i in range(at, end):
                passed = _same_band(i, above, runs, cells.run, work.band, reach_ft, near)
                passed = _same_place(i, passed, work.course, half, coarse_m, bend, near)
                for m in range(passed):
                    j = near[m]
                    if not _meet(state[row[i]], state[row[j]], minima, work):
                        continue
                    if found < pairs.size:
                        pairs[found] = work.pair[0]
                        pairs[found].a, pairs[found].b = slot[row[i]], slot[row[j]]
                    found += 1
            at = end
    return found


@njit(cache=True, inline="always")
def _slack_m(minima: Minima) -> float:
    """By how much a straight line may miss the separation minimum."""
    return minima.margin_m + STILL_MS * minima.horizon_s


@njit(cache=True, inline="always")
def _same_band(i: int, above: int, runs: int, run: I8, band: NDArray[Any], reach_ft: float, near: I4) -> int:
    """The partners of i that come near its altitudes, into `near`; returns how many."""
    floor_ft, ceiling_ft = np.float32(band[i].low_ft - reach_ft), np.float32(band[i].high_ft + reach_ft)
    passed = 0
    # written without a branch: whether a row passes cannot be predicted
    for j in range(i + 1, above):
        near[passed] = j
        passed += (band[j].low_ft <= ceiling_ft) & (band[j].high_ft >= floor_ft)
    for k in range(runs):
        for j in range(run[k, 0], run[k, 1]):
            near[passed] = j
            passed += (band[j].low_ft <= ceiling_ft) & (band[j].high_ft >= floor_ft)
    return passed


@njit(cache=True, inline="always")
def _same_place(i: int, count: int, course: NDArray[Any], half: float, coarse_m: float, bend: float, near: I4) -> int:
    """Keep of `near` those whose straight line passes that of i closely enough; returns how many."""
    a = course[i]
    ax, ay, az = float(a.x_m), float(a.y_m), float(a.z_m)
    au, av, aw = float(a.vx_ms), float(a.vy_ms), float(a.vz_ms)
    limit_m = coarse_m + bend * (au * au + av * av + aw * aw)
    passed = 0
    for m in range(count):
        j = near[m]
        b = course[j]
        bu, bv, bw = float(b.vx_ms), float(b.vy_ms), float(b.vz_ms)
        x, y, z = ax - float(b.x_m), ay - float(b.y_m), az - float(b.z_m)
        u, v, w = au - bu, av - bv, aw - bw
        xx, xu, uu = x * x + y * y + z * z, x * u + y * v + z * w, u * u + v * v + w * w
        t = min(max(-xu / (uu + 1e-9), -half), half)
        reach_m = limit_m + bend * (bu * bu + bv * bv + bw * bw)
        near[passed] = j
        passed += xx + t * (2.0 * xu + t * uu) < reach_m * reach_m
    return passed


@njit(cache=True)
def _meet(a: State, b: State, minima: Minima, work: Work) -> bool:
    """Judge a pair that may meet, by its own minima; if it does, `work.pair` has how."""
    separation_m, vertical_ft, tau_s = minima_of(a, b, minima)
    if separation_m <= 0.0:
        return False
    horizon_s, margin_m = minima.horizon_s, minima.margin_m
    w0, w1 = vertical_window(a, b, vertical_ft + minima.margin_ft, horizon_s)
    if w0 >= w1:
        return False
    # the straight line again, while vertically close
    half = 0.5 * horizon_s
    bend = _BEND * half * half
    x, y, z = a.x_m - b.x_m, a.y_m - b.y_m, a.z_m - b.z_m
    u, v, w = a.vx_ms - b.vx_ms, a.vy_ms - b.vy_ms, a.vz_ms - b.vz_ms
    xx, xu, uu = x * x + y * y + z * z, x * u + y * v + z * w, u * u + v * v + w * w
    a_v2 = a.vx_ms * a.vx_ms + a.vy_ms * a.vy_ms + a.vz_ms * a.vz_ms
    b_v2 = b.vx_ms * b.vx_ms + b.vy_ms * b.vy_ms + b.vz_ms * b.vz_ms
    reach_m = reach(a, b, horizon_s, separation_m, tau_s)
    limit_m = reach_m + _slack_m(minima) + bend * (a_v2 + b_v2)
    t = min(max(-xu / uu if uu > 0.0 else 0.0, w0 - half), w1 - half)
    if xx + t * (2.0 * xu + t * uu) >= limit_m * limit_m:
        return False
    way = passing(a, b, horizon_s, separation_m, vertical_ft, reach_m, work.gap)
    if math.isnan(way.t_in_s) and (margin_m == 0.0 or way.dcpa_m >= separation_m + margin_m):
        return False
    pair = work.pair[0]
    pair.tcpa_s, pair.dcpa_m, pair.now_m = way.tcpa_s, way.dcpa_m, way.now_m
    pair.t_in_s, pair.t_out_s = way.t_in_s, way.t_out_s
    pair.vsep_ft = abs(altitude_gap(a, b, way.tcpa_s))
    pair.lost = way.t_in_s == 0.0 and way.now_m < reach_m - ON_LIMIT_M
    pair.reach_m, pair.apart_m, pair.level_ft = reach_m, separation_m, vertical_ft
    return True
