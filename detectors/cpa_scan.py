"""Every pair of aircraft that will lose separation within the horizon, in time proportional to the fleet.

Called once a tick by the conflict detector. One thread; all work arrays are made once and reused.

Aircraft are sorted into cubic cells by where they will be at the middle of the horizon: from there nobody strays
further than half the horizon's flight, so the search radius is half of what it would be from where they are now.
A cell is as wide as two of its aircraft can reach, therefore only cells that touch can hold a pair, and half of
the neighbours suffice to see each pair once. Cells are cubes in Earth-centred space: no poles, no antimeridian.
The few that fly faster than FAST_MS live in coarser grids of doubled cells, so that one absurd speed does not
widen the cells of everyone; the others look into those grids as well.

Of the pairs in touching cells, the altitude bands flown through within the horizon decide first, then straight-line
closest approach with a margin for the curvature of the Earth, and what is left is computed exactly (cpa.approach).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.cpa import (
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

# 700 kt: an airliner in the strongest jet stream is slower.
FAST_MS = 360.0
LEVELS = 8
# No normal section of the ellipsoid is bent more than the meridian at the equator.
_BEND = 0.5 * WGS84_A_M / (WGS84_B_M * WGS84_B_M)
_ORIGIN_M = 6_400_000.0
_BITS = 20  # per axis: enough for cells of 13 m
_BAND_SLACK_FT = 1.0  # bands are float32
_SEGMENTS = 2 + 3 * (4 + 9 * LEVELS)

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

    Fill `slot[:n]` and `state[:n]` (see cpa.py), call `run(n, minima)`; rows 0 … found-1 of `pair_a`, `pair_b`
    (values from `slot`) and `result` are the pairs. `overflow` counts those that found no room.
    """

    def __init__(self, capacity: int, max_pairs: int) -> None:
        buckets = _bucket_count(capacity)
        self.slot: I4 = np.empty(capacity, np.int32)
        self.state: F8 = np.full((capacity, STATE), np.nan)
        self.state[:, LEVEL_S] = np.inf
        self._key: I8 = np.empty(capacity, np.int64)
        self._bucket: I4 = np.empty(capacity, np.int32)
        self._start: I4 = np.empty(buckets + 1, np.int32)
        self._sorted_slot: I4 = np.empty(capacity, np.int32)
        self._sorted_key: I8 = np.empty(capacity, np.int64)
        self._sorted_state: F8 = np.empty((capacity, STATE))
        self._sorted_band: F4 = np.empty((capacity, 2), np.float32)
        self._segment: I8 = np.empty((_SEGMENTS, 4), np.int64)
        self._near: I4 = np.empty(capacity + 1, np.int32)
        self._gap: F8 = np.empty((TERMS, 3))
        self.pair_a: I4 = np.empty(max_pairs, np.int32)
        self.pair_b: I4 = np.empty(max_pairs, np.int32)
        self.result: F8 = np.empty((max_pairs, RESULT))
        self.overflow = 0

    def run(self, n: int, minima: Minima) -> int:
        """Search the first n aircraft; returns how many pairs were found and stored."""
        m = minima
        mask = _bucket_count(n) - 1
        levels, highest_ft = _sort(
            n, m.horizon_s, m.separation_m, m.vertical_ft, m.margin_m, mask,
            self.slot, self.state, self._key, self._bucket, self._start,
            self._sorted_slot, self._sorted_key, self._sorted_state, self._sorted_band,
        )  # fmt: skip
        found = _search(
            n, m.horizon_s, m.margin_m, m.margin_ft, highest_ft, mask, levels, self._start,
            self._sorted_slot, self._sorted_key, self._sorted_state, self._sorted_band,
            self._segment, self._near, self._gap, self.pair_a, self.pair_b, self.result,
        )  # fmt: skip
        stored = min(found, len(self.pair_a))
        self.overflow = found - stored
        return stored


def _bucket_count(n: int) -> int:
    """A power of two of at least twice n: most buckets then hold one cell."""
    return 1 << max(6, (2 * n - 1).bit_length())


@njit(cache=True, inline="always")
def _bucket(column: int, z: int, mask: int) -> int:
    """Bucket of a cell. `column` is its key without z: cells on top of each other are in adjacent buckets."""
    # two odd multipliers with a fold between them: one alone keeps the lattice, and neighbouring columns collide
    h = column * 0x2545F4914F6CDD1D
    h = (h ^ (h >> 29)) * 0x369DEA0F31A53F85
    return ((h >> 32) + z) & mask


@njit(cache=True, inline="always")
def _width(speed_ms: float, horizon_s: float, separation_m: float) -> float:
    """How far apart at mid-horizon two aircraft of this speed can be and still meet."""
    return separation_m + speed_ms * horizon_s


@njit(cache=True)
def _sort(
    n: int, horizon_s: float, separation_m: float, vertical_ft: float, margin_m: float, mask: int,
    slot: I4, state: F8, key: I8, bucket: I4, start: I4,
    sorted_slot: I4, sorted_key: I8, sorted_state: F8, sorted_band: F4,
) -> tuple[int, float]:  # fmt: skip
    """Give every aircraft its cell and sort by cell. Returns the levels in use (bits) and the largest vertical minimum.

    A key is level, x, y, z of the cell, _BITS bits for each coordinate. Afterwards bucket h is start[h]:start[h + 1].
    """
    fastest = 0.0
    widest_m, highest_ft = separation_m, vertical_ft
    for i in range(n):
        fastest = max(fastest, state[i, 3] ** 2 + state[i, 4] ** 2 + state[i, 5] ** 2)
        if not math.isnan(state[i, SEPARATION_M]):
            widest_m = max(widest_m, state[i, SEPARATION_M])
            highest_ft = max(highest_ft, state[i, VERTICAL_FT])
    fastest = math.sqrt(fastest)
    reach_m = widest_m + margin_m
    base_m = max(
        _width(min(fastest, FAST_MS), horizon_s, reach_m),
        _width(fastest, horizon_s, reach_m) / (1 << (LEVELS - 1)),
    )
    start[: mask + 2] = 0
    levels = 0
    for i in range(n):
        speed_ms = math.sqrt(state[i, 3] ** 2 + state[i, 4] ** 2 + state[i, 5] ** 2)
        wanted_m = _width(speed_ms, horizon_s, reach_m)
        level, width_m = 0, base_m
        while width_m < wanted_m and level < LEVELS - 1:
            level += 1
            width_m *= 2.0
        levels |= 1 << level
        # cells count from 1, so that the neighbour below the first is 0 and not negative
        x = int((state[i, 0] + _ORIGIN_M) / width_m) + 1
        y = int((state[i, 1] + _ORIGIN_M) / width_m) + 1
        z = int((state[i, 2] + _ORIGIN_M) / width_m) + 1
        column = (((level << _BITS) | x) << _BITS) | y
        key[i] = (column << _BITS) | z
        bucket[i] = _bucket(column, z, mask)
        start[bucket[i]] += 1
    # counts become ends, and each aircraft placed from the last moves the end of its bucket towards the start
    for h in range(mask + 1):
        start[h + 1] += start[h]
    for i in range(n - 1, -1, -1):
        start[bucket[i]] -= 1
        at = start[bucket[i]]
        sorted_slot[at] = slot[i]
        sorted_key[at] = key[i]
        for c in range(STATE):
            sorted_state[at, c] = state[i, c]
        if math.isnan(state[i, SEPARATION_M]):
            sorted_state[at, SEPARATION_M], sorted_state[at, VERTICAL_FT] = separation_m, vertical_ft
        alt0_ft = state[i, ALT_FT]
        alt1_ft = alt0_ft + state[i, CLIMB_FTS] * min(horizon_s, state[i, LEVEL_S])
        known = not math.isnan(alt0_ft)
        sorted_band[at, 0] = min(alt0_ft, alt1_ft) if known else -math.inf
        sorted_band[at, 1] = max(alt0_ft, alt1_ft) if known else math.inf
    return levels, highest_ft


@njit(cache=True)
def _add_column(column: int, z: int, mask: int, start: I4, segment: I8, count: int) -> int:
    """Note where the three cells z-1 … z+1 of a column lie: rows of (from, to, lowest key, highest key)."""
    key = (column << _BITS) | z
    h = _bucket(column, z, mask)
    if 0 < h < mask:
        if start[h - 1] < start[h + 2]:
            segment[count, 0], segment[count, 1] = start[h - 1], start[h + 2]
            segment[count, 2], segment[count, 3] = key - 1, key + 1
            count += 1
        return count
    for dz in range(-1, 2):  # here too
        g = (h + dz) & mask
        segment[count, 0], segment[count, 1] = start[g], start[g + 1]
        segment[count, 2], segment[count, 3] = key + dz, key + dz
        count += 1
    return count


@njit(cache=True)
def _neighbours(key: int, levels: int, mask: int, start: I4, segment: I8) -> int:
    """Where the partners of a cell's aircraft are; returns the number of segments.

    The first segment is the cell itself and the one above it; the caller moves its beginning behind the aircraft.
    """
    low = (1 << _BITS) - 1
    z, y, x, level = key & low, (key >> _BITS) & low, (key >> 2 * _BITS) & low, key >> 3 * _BITS
    at = ((level << _BITS) | x) << _BITS | y
    east = 1 << _BITS  # one cell further in x
    h = _bucket(at, z, mask)
    segment[0, 0], segment[0, 1], segment[0, 2], segment[0, 3] = start[h], start[h + 1], key, key
    count = 1
    if h < mask:
        segment[0, 1], segment[0, 3] = start[h + 2], key + 1
    else:  # the buckets wrap around here
        segment[1, 0], segment[1, 1], segment[1, 2], segment[1, 3] = start[0], start[1], key + 1, key + 1
        count = 2
    count = _add_column(at + 1, z, mask, start, segment, count)
    for dy in range(-1, 2):
        count = _add_column(at + east + dy, z, mask, start, segment, count)
    for coarse in range(level + 1, LEVELS):
        if (levels >> coarse) & 1:
            k = coarse - level
            at = ((coarse << _BITS) | (((x - 1) >> k) + 1)) << _BITS | (((y - 1) >> k) + 1)
            for dx in range(-1, 2):
                for dy in range(-1, 2):
                    count = _add_column(at + dx * east + dy, ((z - 1) >> k) + 1, mask, start, segment, count)
    return count


@njit(cache=True)
def _search(
    n: int, horizon_s: float, margin_m: float, margin_ft: float, highest_ft: float, mask: int, levels: int, start: I4,
    slot: I4, key: I8, state: F8, band: F4, segment: I8, near: I4, gap: F8, pair_a: I4, pair_b: I4, result: F8,
) -> int:  # fmt: skip
    """Walk the sorted aircraft, each against those after it in its cell and against the cells it touches."""
    half = 0.5 * horizon_s
    bend = _BEND * half * half
    slack_m = margin_m + STILL_MS * horizon_s
    reach_ft = highest_ft + margin_ft + _BAND_SLACK_FT
    found, count, cell = 0, 0, -1
    for i in range(n):
        if key[i] != cell:
            cell = key[i]
            count = _neighbours(cell, levels, mask, start, segment)
        segment[0, 0] = i + 1
        # Altitude first. Written without a branch: whether a row passes cannot be predicted.
        floor_ft = np.float32(band[i, 0] - reach_ft)
        ceiling_ft = np.float32(band[i, 1] + reach_ft)
        passed = 0
        for k in range(count):
            key_lo, key_hi = segment[k, 2], segment[k, 3]
            for j in range(segment[k, 0], segment[k, 1]):
                near[passed] = j
                passed += (
                    (band[j, 0] <= ceiling_ft) & (band[j, 1] >= floor_ft) & (key[j] >= key_lo) & (key[j] <= key_hi)
                )

        a = state[i]
        a_v2 = a[3] * a[3] + a[4] * a[4] + a[5] * a[5]
        for m in range(passed):
            b = state[near[m]]
            x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            u, v, w = a[3] - b[3], a[4] - b[4], a[5] - b[5]
            xx, xu, uu = x * x + y * y + z * z, x * u + y * v + z * w, u * u + v * v + w * w
            separation_m = max(a[SEPARATION_M], b[SEPARATION_M])
            vertical_ft = max(a[VERTICAL_FT], b[VERTICAL_FT])
            limit_m = separation_m + slack_m + bend * (a_v2 + b[3] * b[3] + b[4] * b[4] + b[5] * b[5])
            # straight-line closest approach, at any time and then while vertically close: most fail the first already
            t = min(max(-xu / uu if uu > 0.0 else 0.0, -half), half)
            if xx + t * (2.0 * xu + t * uu) >= limit_m * limit_m:
                continue
            w0, w1 = vertical_window(a, b, vertical_ft + margin_ft, horizon_s)
            t = min(max(t, w0 - half), w1 - half)
            if w0 >= w1 or xx + t * (2.0 * xu + t * uu) >= limit_m * limit_m:
                continue
            tcpa_s, dcpa_m, t_in, t_out, now_m = approach(a, b, horizon_s, separation_m, vertical_ft, gap)
            if math.isnan(t_in) and (margin_m == 0.0 or dcpa_m >= separation_m + margin_m):
                continue
            if found < pair_a.size:
                pair_a[found], pair_b[found] = slot[i], slot[near[m]]
                row = result[found]
                row[TCPA_S], row[DCPA_M], row[T_IN_S], row[T_OUT_S], row[NOW_M] = tcpa_s, dcpa_m, t_in, t_out, now_m
                row[VSEP_FT] = abs(altitude_gap(a, b, tcpa_s))
                row[LOST] = 1.0 if t_in == 0.0 and now_m < separation_m - ON_LIMIT_M else 0.0
            found += 1
    return found
