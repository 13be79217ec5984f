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
from numba import njit
from numpy.typing import NDArray

from watchkeeper.detectors.cpa import STATE, TERMS, approach, vertical_window
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.geo import WGS84_A_M, WGS84_B_M

F4 = NDArray[np.float32]

# 700 kt: an airliner in the strongest jet stream is slower.
FAST_MS = 360.0
LEVELS = 8
# No normal section of the ellipsoid is bent more than the meridian at the equator.
_BEND = 0.5 * WGS84_A_M / (WGS84_B_M * WGS84_B_M)
_ORIGIN_M = 6_400_000.0
_BITS = 20  # per axis: enough for cells of 13 m
_BAND_SLACK_FT = 1.0  # bands are float32
_SEGMENTS = 3 * (4 + 9 * LEVELS)

# Columns of a pair's result.
TCPA_S, DCPA_M, T_IN_S, T_OUT_S, NOW_M, VSEP_FT, NOW_FT = range(7)
RESULT = 7


@dataclass(frozen=True, slots=True)
class Minima:
    """What counts as lost separation, and how far ahead."""

    horizon_s: float
    separation_m: float
    vertical_ft: float


class Scan:
    """Work arrays for up to `capacity` aircraft, results for up to `max_pairs` pairs.

    Fill `slot[:n]` and `state[:n]` (see cpa.py), call `run(n, minima)`; rows 0 … found-1 of `pair_a`, `pair_b`
    (values from `slot`) and `result` are the pairs. `overflow` counts those that found no room.
    """

    def __init__(self, capacity: int, max_pairs: int) -> None:
        buckets = _bucket_count(capacity)
        self.slot: I4 = np.empty(capacity, np.int32)
        self.state: F8 = np.empty((capacity, STATE))
        self._key: I8 = np.empty(capacity, np.int64)
        self._bucket: I4 = np.empty(capacity, np.int32)
        self._start: I4 = np.empty(buckets + 1, np.int32)
        self._sorted_slot: I4 = np.empty(capacity, np.int32)
        self._sorted_key: I8 = np.empty(capacity, np.int64)
        self._sorted_state: F8 = np.empty((capacity, STATE))
        self._sorted_band: F4 = np.empty((capacity, 2), np.float32)
        self._segment: I8 = np.empty((_SEGMENTS, 4), np.int64)
        self._gap: F8 = np.empty((TERMS, 3))
        self.pair_a: I4 = np.empty(max_pairs, np.int32)
        self.pair_b: I4 = np.empty(max_pairs, np.int32)
        self.result: F8 = np.empty((max_pairs, RESULT))
        self.overflow = 0

    def run(self, n: int, minima: Minima) -> int:
        """Search the first n aircraft; returns how many pairs were found and stored."""
        horizon_s, separation_m, vertical_ft = minima.horizon_s, minima.separation_m, minima.vertical_ft
        mask = _bucket_count(n) - 1
        levels = _sort(
            n, horizon_s, separation_m, mask, self.slot, self.state, self._key, self._bucket, self._start,
            self._sorted_slot, self._sorted_key, self._sorted_state, self._sorted_band,
        )  # fmt: skip
        found = _search(
            n, horizon_s, separation_m, vertical_ft, mask, levels, self._start,
            self._sorted_slot, self._sorted_key, self._sorted_state, self._sorted_band,
            self._segment, self._gap, self.pair_a, self.pair_b, self.result,
        )  # fmt: skip
        stored = min(found, len(self.pair_a))
        self.overflow = found - stored
        return stored


def _bucket_count(n: int) -> int:
    """A power of two of at least twice n: most buckets then hold one cell."""
    return 1 << max(6, (2 * n - 1).bit_length())


@njit(cache=True, inline="always")
def _hash(column: int, mask: int) -> int:
    """Bucket of a column of cells (a key without its z): cells on top of each other are in adjacent buckets."""
    h = column * 0x2545F4914F6CDD1D
    return (h ^ (h >> 29)) & mask


@njit(cache=True)
def _sort(
    n: int, horizon_s: float, separation_m: float, mask: int, slot: I4, state: F8, key: I8, bucket: I4, start: I4,
    sorted_slot: I4, sorted_key: I8, sorted_state: F8, sorted_band: F4,
) -> int:  # fmt: skip
    """Give every aircraft its cell and sort by cell (counting sort). Returns a bit mask of the levels in use.

    A key is level, x, y, z of the cell, _BITS bits for each coordinate.
    """
    half = 0.5 * horizon_s
    fastest = 0.0
    for i in range(n):
        v2 = state[i, 3] * state[i, 3] + state[i, 4] * state[i, 4] + state[i, 5] * state[i, 5]
        fastest = max(fastest, v2)
    fastest = math.sqrt(fastest)
    base_m = max(
        _reach(min(fastest, FAST_MS), half, separation_m), _reach(fastest, half, separation_m) / (1 << (LEVELS - 1))
    )
    start[: mask + 2] = 0
    levels = 0
    for i in range(n):
        v2 = state[i, 3] * state[i, 3] + state[i, 4] * state[i, 4] + state[i, 5] * state[i, 5]
        wanted_m = _reach(math.sqrt(v2), half, separation_m)
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
        bucket[i] = (_hash(column, mask) + z) & mask
        start[bucket[i] + 1] += 1
    for h in range(mask + 1):
        start[h + 1] += start[h]
    # placing from the back with decreasing ends would need a second array; placing forward shifts starts by one
    for i in range(n - 1, -1, -1):
        h = bucket[i] + 1
        start[h] -= 1
        at = start[h]
        sorted_slot[at] = slot[i]
        sorted_key[at] = key[i]
        for c in range(STATE):
            sorted_state[at, c] = state[i, c]
        low = state[i, 6]
        high = low + state[i, 7] * horizon_s
        if math.isnan(high):
            sorted_band[at, 0], sorted_band[at, 1] = -np.inf, np.inf
        else:
            sorted_band[at, 0], sorted_band[at, 1] = min(low, high), max(low, high)
    # every start has come down to the start of its own bucket, one place too far right
    for h in range(mask + 1):
        start[h] = start[h + 1]
    start[mask + 1] = n
    return levels
