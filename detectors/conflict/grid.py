"""The grid of the conflict search: every aircraft in a cell, cells in an order that keeps neighbours near in memory.

Called by search.py, once a tick. Cells are cubes of Earth-centred space by where an aircraft will be at the middle of
the horizon: no poles, no antimeridian. A cell is as wide as two of its aircraft can reach, so only cells that touch can
hold a pair. The few that fly faster than FAST_MS live in coarser levels of doubled cells, so that one absurd speed
does not widen the cells of everyone.

A key is level, x, y, z of a cell, as one number with z counting by ones. Aircraft are sorted by key, so three cells on
top of each other are one run, and the columns beside it are found by pointers that only ever move forward.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.approach import SEPARATION_M, VERTICAL_FT
from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.kernels import njit

# 700 kt: an airliner in the strongest jet stream is slower.
FAST_MS = 360.0
LEVELS = 8
# Cells per axis at most: eight levels of their cubes still fit into a key.
_MOST_CELLS = 1 << 19
_DIGIT_BITS = 11
# A level with no more aircraft than this is looked through whole: cheaper than finding the cells that touch.
_FEW = 32
# Columns beside a cell that come after it in the order: together with the cell above they see every pair once.
_COLUMNS = 4
RUNS = 1 + _COLUMNS + 9 * LEVELS

# Entries of a frame, the numbers that describe a grid.
STRIDE_X, STRIDE_Y, STRIDE_LEVEL = range(3)
FRAME = 3


@njit(cache=True)
def extremes(n: int, separation_m: float, vertical_ft: float, state: F8, low: F8) -> tuple[float, float, float, float]:
    """Fastest speed, widest and highest minimum, and the largest extent; the corner of the fleet goes into `low`."""
    fastest, widest_m, highest_ft = 0.0, separation_m, vertical_ft
    low[:] = math.inf
    high_x = high_y = high_z = -math.inf
    for i in range(n):
        fastest = max(fastest, state[i, 3] ** 2 + state[i, 4] ** 2 + state[i, 5] ** 2)
        if not math.isnan(state[i, SEPARATION_M]):
            widest_m = max(widest_m, state[i, SEPARATION_M])
            highest_ft = max(highest_ft, state[i, VERTICAL_FT])
        low[0], high_x = min(low[0], state[i, 0]), max(high_x, state[i, 0])
        low[1], high_y = min(low[1], state[i, 1]), max(high_y, state[i, 1])
        low[2], high_z = min(low[2], state[i, 2]), max(high_z, state[i, 2])
    extent_m = max(high_x - low[0], high_y - low[1], high_z - low[2])
    return math.sqrt(fastest), widest_m, highest_ft, extent_m


@njit(cache=True)
def assign(
    n: int, state: F8, low: F8, horizon_s: float, reach_m: float, fastest_ms: float, extent_m: float,
    key: I8, row: I4, level_start: I8, frame: I8,
) -> None:  # fmt: skip
    """Give every aircraft its key; `reach_m` is the widest minimum. Afterwards `level_start` has the levels' ends."""
    base_m = max(
        reach_m + min(fastest_ms, FAST_MS) * horizon_s,
        (reach_m + fastest_ms * horizon_s) / (1 << (LEVELS - 1)),
        extent_m / _MOST_CELLS,
    )
    # one empty cell on each side, so that a neighbour's key is never that of a cell at the other end
    side = int(extent_m / base_m) + 3
    frame[STRIDE_Y], frame[STRIDE_X], frame[STRIDE_LEVEL] = side, side * side, side * side * side
    level_start[:] = 0
    for i in range(n):
        speed_ms = math.sqrt(state[i, 3] ** 2 + state[i, 4] ** 2 + state[i, 5] ** 2)
        wanted_m = reach_m + speed_ms * horizon_s
        level, width_m = 0, base_m
        while width_m < wanted_m and level < LEVELS - 1:
            level += 1
            width_m *= 2.0
        x = int((state[i, 0] - low[0]) / width_m) + 1
        y = int((state[i, 1] - low[1]) / width_m) + 1
        z = int((state[i, 2] - low[2]) / width_m) + 1
        key[i] = level * frame[STRIDE_LEVEL] + x * frame[STRIDE_X] + y * frame[STRIDE_Y] + z
        row[i] = i
        level_start[level + 1] += 1
    for level in range(LEVELS):
        level_start[level + 1] += level_start[level]


@njit(cache=True)
def sort_by_key(n: int, key: I8, row: I4, other_key: I8, other_row: I4, counts: I8) -> bool:
    """Sort by key, digit by digit; True if the result is in the other two arrays."""
    least, most = key[0], key[0]
    for i in range(n):
        least, most = min(least, key[i]), max(most, key[i])
    bits = 1
    while (most - least) >> bits:
        bits += 1
    passes = (bits + _DIGIT_BITS - 1) // _DIGIT_BITS
    width = (bits + passes - 1) // passes
    mask = (1 << width) - 1
    swapped = False
    for p in range(passes):
        shift = p * width
        counts[: mask + 2] = 0
        for i in range(n):
            counts[((key[i] - least) >> shift & mask) + 1] += 1
        for d in range(mask + 1):
            counts[d + 1] += counts[d]
        for i in range(n):
            digit = (key[i] - least) >> shift & mask
            at = counts[digit]
            counts[digit] = at + 1
            other_key[at], other_row[at] = key[i], row[i]
        key, other_key, row, other_row = other_key, key, other_row, row
        swapped = not swapped
    return swapped


@njit(cache=True)
def first_at_least(key: I8, lo: int, hi: int, wanted: int) -> int:
    """The first of the sorted rows lo … hi-1 whose key is not below `wanted`; hi if there is none."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if key[mid] < wanted:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(cache=True)
def begin_level(start: int, pointer: I8) -> None:
    """Set the pointers of `neighbours` to the start of a level."""
    pointer[:] = start


@njit(cache=True)
def neighbours(
    at: int, end: int, level: int, key: I8, frame: I8, level_start: I8, pointer: I8, run: I8
) -> tuple[int, int]:
    """Where the partners of one cell's aircraft are, for the cell that is rows at … end-1.

    Fills `run` with (from, to) rows and returns how many there are and where the run ends that begins with the cell
    itself and goes on with the one above it. Cells of a level must come in order.
    """
    cell, stop = key[at], level_start[level + 1]
    above = max(pointer[0], end)
    while above < stop and key[above] <= cell + 1:
        above += 1
    pointer[0] = above
    count = 0
    for k in range(_COLUMNS):
        # +y; then +x with y-1, y, y+1
        middle = cell + (frame[STRIDE_Y] if k == 0 else frame[STRIDE_X] + (k - 2) * frame[STRIDE_Y])
        lo = pointer[1 + 2 * k]
        while lo < stop and key[lo] < middle - 1:
            lo += 1
        hi = max(pointer[2 + 2 * k], lo)
        while hi < stop and key[hi] <= middle + 1:
            hi += 1
        pointer[1 + 2 * k], pointer[2 + 2 * k] = lo, hi
        if lo < hi:
            run[count, 0], run[count, 1] = lo, hi
            count += 1
    for coarse in range(level + 1, LEVELS):
        lo, hi = level_start[coarse], level_start[coarse + 1]
        if hi - lo > _FEW:
            count = _coarse_runs(
                cell - level * frame[STRIDE_LEVEL], coarse - level, coarse, key, frame, lo, hi, run, count
            )
        elif lo < hi:
            run[count, 0], run[count, 1] = lo, hi
            count += 1
    return count, above


@njit(cache=True)
def _coarse_runs(
    cell: int, doublings: int, coarse: int, key: I8, frame: I8, lo: int, hi: int, run: I8, count: int
) -> int:  # fmt: skip
    """Add the nine columns of a coarser level that touch a cell (its key without the level)."""
    x, y, z = cell // frame[STRIDE_X], cell % frame[STRIDE_X] // frame[STRIDE_Y], cell % frame[STRIDE_Y]
    x, y, z = ((x - 1) >> doublings) + 1, ((y - 1) >> doublings) + 1, ((z - 1) >> doublings) + 1
    middle = coarse * frame[STRIDE_LEVEL] + x * frame[STRIDE_X] + y * frame[STRIDE_Y] + z
    for dx in range(-1, 2):
        for dy in range(-1, 2):
            wanted = middle + dx * frame[STRIDE_X] + dy * frame[STRIDE_Y]
            first = first_at_least(key, lo, hi, wanted - 1)
            last = first
            while last < hi and key[last] <= wanted + 1:
                last += 1
            if first < last:
                run[count, 0], run[count, 1] = first, last
                count += 1
    return count


class Grid:
    """Work arrays for up to `capacity` aircraft. After `build`, `key` and `row` are sorted by key."""

    def __init__(self, capacity: int) -> None:
        self.key: I8 = np.empty(capacity, np.int64)
        self.row: I4 = np.empty(capacity, np.int32)
        self._other_key: I8 = np.empty(capacity, np.int64)
        self._other_row: I4 = np.empty(capacity, np.int32)
        self._counts: I8 = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
        self._low: F8 = np.empty(3)
        self.level_start: I8 = np.empty(LEVELS + 1, np.int64)
        self.frame: I8 = np.empty(FRAME, np.int64)
        self.pointer: I8 = np.empty(1 + 2 * _COLUMNS, np.int64)
        self.run: NDArray[np.int64] = np.empty((RUNS, 2), np.int64)

    def build(
        self, n: int, state: F8, horizon_s: float, separation_m: float, vertical_ft: float, margin_m: float
    ) -> tuple[float, float]:
        """Sort n > 0 aircraft into cells; returns the widest and the highest minimum among them."""
        fastest_ms, widest_m, highest_ft, extent_m = extremes(n, separation_m, vertical_ft, state, self._low)
        assign(
            n, state, self._low, horizon_s, widest_m + margin_m, fastest_ms, extent_m,
            self.key, self.row, self.level_start, self.frame,
        )  # fmt: skip
        if sort_by_key(n, self.key, self.row, self._other_key, self._other_row, self._counts):
            self.key, self._other_key = self._other_key, self.key
            self.row, self._other_row = self._other_row, self.row
        return widest_m, highest_ft
