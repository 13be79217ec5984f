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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.grid import LEVELS, Grid, begin_level, neighbours
from watchkeeper.detectors.kernels.approach import (
    ALT_FT,
    CLIMB_FTS,
    LEVEL_S,
    ON_LIMIT_M,
    SEPARATION_M,
    STATE,
    STILL_MS,
    TERMS,
    VERTICAL_FT,
    altitude_gap,
    approach,
    vertical_window,
)
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.geo import WGS84_A_M, WGS84_B_M
from watchkeeper.streams.kernels import njit

F4 = NDArray[np.float32]

# No normal section of the ellipsoid is bent more than the meridian at the equator.
_BEND = 0.5 * WGS84_A_M / (WGS84_B_M * WGS84_B_M)
# What float32 takes from an altitude band, and from the distance of two positions (a quarter metre per coordinate).
_BAND_SLACK_FT, _PLACE_SLACK_M = 1.0, 2.0

# Columns of a pair's result.
TCPA_S, DCPA_M, T_IN_S, T_OUT_S, NOW_M, VSEP_FT, LOST = range(7)
RESULT = 7


@dataclass(frozen=True, slots=True)
class Minima:
    """What counts as lost separation, and how far ahead.

    An aircraft whose state says otherwise has its own; of a pair the larger ones hold. Pairs that miss the minima by
    less than the margins are found too; their times of loss are NaN.
    """

    horizon_s: float
    separation_m: float
    vertical_ft: float
    margin_m: float = 0.0
    margin_ft: float = 0.0


class Scan:
    """Work arrays for up to `capacity` aircraft, results for up to `max_pairs` pairs.

    Fill `slot[:n]` and `state[:n]` (see kernels/approach.py), call `run(n, minima)`; rows 0 … found-1 of `pair_a`,
    `pair_b` (values from `slot`) and `result` are the pairs. `overflow` counts those that found no room.
    """

    def __init__(self, capacity: int, max_pairs: int) -> None:
        self.slot: I4 = np.empty(capacity, np.int32)
        self.state: F8 = np.full((capacity, STATE), np.nan)
        self.state[:, LEVEL_S] = np.inf
        self._grid = Grid(capacity)
        self._place: F4 = np.empty((capacity, 6), np.float32)
        self._band: F4 = np.empty((capacity, 2), np.float32)
        self._near: I4 = np.empty(capacity + 1, np.int32)
        self._gap: F8 = np.empty((TERMS, 3))
        self.pair_a: I4 = np.empty(max_pairs, np.int32)
        self.pair_b: I4 = np.empty(max_pairs, np.int32)
        self.result: F8 = np.empty((max_pairs, RESULT))
        self.overflow = 0

    def run(self, n: int, minima: Minima) -> int:
        """Search the first n aircraft; returns how many pairs were found and stored."""
        self.overflow = 0
        if n == 0:
            return 0
        m, grid = minima, self._grid
        widest_m, highest_ft = grid.build(n, self.state, m.horizon_s, m.separation_m, m.vertical_ft, m.margin_m)
        _lay_out(n, grid.row, self.state, m.horizon_s, self._place, self._band)
        found = _search(
            m.horizon_s, m.separation_m, m.vertical_ft, m.margin_m, m.margin_ft, widest_m, highest_ft,
            grid.key, grid.row, grid.frame, grid.level_start, grid.pointer, grid.run,
            self.slot, self.state, self._place, self._band, self._near, self._gap,
            self.pair_a, self.pair_b, self.result,
        )  # fmt: skip
        stored = min(found, len(self.pair_a))
        self.overflow = found - stored
        return stored


@njit(cache=True)
def _lay_out(n: int, row: I4, state: F8, horizon_s: float, place: F4, band: F4) -> None:
    """Copy what the coarse tests need in the order of the cells: position, velocity, and the band flown through."""
    for at in range(n):
        a = state[row[at]]
        for c in range(6):
            place[at, c] = a[c]
        alt0_ft = a[ALT_FT]
        alt1_ft = alt0_ft + a[CLIMB_FTS] * min(horizon_s, a[LEVEL_S])
        known = not math.isnan(alt0_ft)
        band[at, 0] = min(alt0_ft, alt1_ft) if known else -math.inf
        band[at, 1] = max(alt0_ft, alt1_ft) if known else math.inf


@njit(cache=True)
def _search(
    horizon_s: float, separation_m: float, vertical_ft: float, margin_m: float, margin_ft: float,
    widest_m: float, highest_ft: float, key: I8, row: I4, frame: I8, level_start: I8, pointer: I8, run: I8,
    slot: I4, state: F8, place: F4, band: F4, near: I4, gap: F8, pair_a: I4, pair_b: I4, result: F8,
) -> int:  # fmt: skip
    """Walk the cells, each aircraft against those after it in its cell and against the cells it touches."""
    half = 0.5 * horizon_s
    bend = _BEND * half * half
    slack_m = margin_m + STILL_MS * horizon_s
    coarse_m = widest_m + slack_m + _PLACE_SLACK_M
    reach_ft = highest_ft + margin_ft + _BAND_SLACK_FT
    found = 0
    for level in range(LEVELS):
        begin_level(level_start[level], pointer)
        at = level_start[level]
        while at < level_start[level + 1]:
            end = at + 1
            while end < level_start[level + 1] and key[end] == key[at]:
                end += 1
            runs, above = neighbours(at, end, level, key, frame, level_start, pointer, run)
            for i in range(at, end):
                passed = _same_band(i, above, runs, run, band, reach_ft, near)
                passed = _same_place(i, passed, place, half, coarse_m, bend, near)
                for m in range(passed):
                    found = _meet(
                        row[i], row[near[m]], horizon_s, separation_m, vertical_ft, margin_m, margin_ft,
                        slack_m, bend, slot, state, gap, pair_a, pair_b, result, found,
                    )  # fmt: skip
            at = end
    return found


@njit(cache=True, inline="always")
def _same_band(i: int, above: int, runs: int, run: I8, band: F4, reach_ft: float, near: I4) -> int:
    """The partners of i that come near its altitudes, into `near`; returns how many."""
    floor_ft, ceiling_ft = np.float32(band[i, 0] - reach_ft), np.float32(band[i, 1] + reach_ft)
    passed = 0
    # written without a branch: whether a row passes cannot be predicted
    for j in range(i + 1, above):
        near[passed] = j
        passed += (band[j, 0] <= ceiling_ft) & (band[j, 1] >= floor_ft)
    for k in range(runs):
        for j in range(run[k, 0], run[k, 1]):
            near[passed] = j
            passed += (band[j, 0] <= ceiling_ft) & (band[j, 1] >= floor_ft)
    return passed


@njit(cache=True, inline="always")
def _same_place(i: int, count: int, place: F4, half: float, coarse_m: float, bend: float, near: I4) -> int:
    """Keep of `near` those whose straight line passes that of i closely enough; returns how many."""
    ax, ay, az = float(place[i, 0]), float(place[i, 1]), float(place[i, 2])
    au, av, aw = float(place[i, 3]), float(place[i, 4]), float(place[i, 5])
    limit_m = coarse_m + bend * (au * au + av * av + aw * aw)
    passed = 0
    for m in range(count):
        j = near[m]
        bu, bv, bw = float(place[j, 3]), float(place[j, 4]), float(place[j, 5])
        x, y, z = ax - place[j, 0], ay - place[j, 1], az - place[j, 2]
        u, v, w = au - bu, av - bv, aw - bw
        xx, xu, uu = x * x + y * y + z * z, x * u + y * v + z * w, u * u + v * v + w * w
        t = min(max(-xu / (uu + 1e-9), -half), half)
        reach_m = limit_m + bend * (bu * bu + bv * bv + bw * bw)
        near[passed] = j
        passed += xx + t * (2.0 * xu + t * uu) < reach_m * reach_m
    return passed


@njit(cache=True)
def _meet(
    i: int, j: int, horizon_s: float, separation_m: float, vertical_ft: float, margin_m: float, margin_ft: float,
    slack_m: float, bend: float, slot: I4, state: F8, gap: F8, pair_a: I4, pair_b: I4, result: F8, found: int,
) -> int:  # fmt: skip
    """Judge a pair that may meet, by its own minima, and store it if it does; returns the new number of pairs."""
    a, b = state[i], state[j]
    separation_m = max(_or(a[SEPARATION_M], separation_m), _or(b[SEPARATION_M], separation_m))
    vertical_ft = max(_or(a[VERTICAL_FT], vertical_ft), _or(b[VERTICAL_FT], vertical_ft))
    w0, w1 = vertical_window(a, b, vertical_ft + margin_ft, horizon_s)
    if w0 >= w1:
        return found
    # the straight line again, while vertically close
    half = 0.5 * horizon_s
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    u, v, w = a[3] - b[3], a[4] - b[4], a[5] - b[5]
    xx, xu, uu = x * x + y * y + z * z, x * u + y * v + z * w, u * u + v * v + w * w
    a_v2, b_v2 = a[3] * a[3] + a[4] * a[4] + a[5] * a[5], b[3] * b[3] + b[4] * b[4] + b[5] * b[5]
    limit_m = separation_m + slack_m + bend * (a_v2 + b_v2)
    t = min(max(-xu / uu if uu > 0.0 else 0.0, w0 - half), w1 - half)
    if xx + t * (2.0 * xu + t * uu) >= limit_m * limit_m:
        return found
    tcpa_s, dcpa_m, t_in, t_out, now_m = approach(a, b, horizon_s, separation_m, vertical_ft, gap)
    if math.isnan(t_in) and (margin_m == 0.0 or dcpa_m >= separation_m + margin_m):
        return found
    if found < pair_a.size:
        pair_a[found], pair_b[found] = slot[i], slot[j]
        row = result[found]
        row[TCPA_S], row[DCPA_M], row[T_IN_S], row[T_OUT_S], row[NOW_M] = tcpa_s, dcpa_m, t_in, t_out, now_m
        row[VSEP_FT] = abs(altitude_gap(a, b, tcpa_s))
        row[LOST] = 1.0 if t_in == 0.0 and now_m < separation_m - ON_LIMIT_M else 0.0
    return found + 1


@njit(cache=True, inline="always")
def _or(value: float, default: float) -> float:
    return default if math.isnan(value) else value
