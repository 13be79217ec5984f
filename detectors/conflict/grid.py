"""The grid of the conflict search: every aircraft in a cell, cells in an order that keeps neighbours near in memory.

Called by search.py, once a tick. Cells are cubes of Earth-centred space by where an aircraft will be at the middle of
the horizon: no poles, no antimeridian. A cell is as wide as two of its aircraft can reach, so only cells that touch can
hold a pair. The few that fly faster than FAST_MS live in coarser levels of doubled cells, so that one absurd speed
does not widen the cells of everyone.

A key is level, x, y, z of a cell, as one number with z counting by ones. Aircraft are sorted by key, so three cells on
top of each other are one run, and the columns next to it are found by pointers that only ever move forward.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import FAST_MS
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import I4, I8
from watchkeeper.streams.kernels import njit

LEVELS = 8
# Cells per axis at most: eight levels of their cubes still fit into a key.
_MOST_CELLS = 1 << 19
_DIGIT_BITS = 11
# A level with no more aircraft than this is looked through whole: cheaper than finding the cells that touch.
_FEW = 32
# Columns next to a cell that come after it in the order: together with the cell above they see every pair once.
_COLUMNS = 4
RUNS = 1 + _COLUMNS + 9 * LEVELS


class Frame:
    """The numbers that describe a grid (kernels/records.py): how far apart the keys of neighbouring cells are."""

    stride_x: int
    stride_y: int
    stride_level: int


class Cells(NamedTuple):
    """The aircraft of a tick in their cells."""

    key: I8
    row: I4
    """Both sorted by key: where an aircraft is, and its row in the states."""
    level_start: I8
    """Where each level begins among them."""
    frame: NDArray[Any]
    pointer: I8
    run: I8
    """Scratch of `neighbours`."""


class Extremes(NamedTuple):
    """Of a fleet: fastest speed, widest and highest minimum, its corner and its largest extent."""

    fastest_ms: float
    widest_m: float
    highest_ft: float
    low_x_m: float
    low_y_m: float
    low_z_m: float
    extent_m: float


@njit(cache=True)
def extremes(n: int, separation_m: float, vertical_ft: float, state: NDArray[Any]) -> Extremes:
    """Of the first n states; the two minima are those of aircraft that have none of their own."""
    fastest, widest_m, highest_ft = 0.0, separation_m, vertical_ft
    low_x = low_y = low_z = math.inf
    high_x = high_y = high_z = -math.inf
    for i in range(n):
        a = state[i]
        fastest = max(fastest, a.vx_ms**2 + a.vy_ms**2 + a.vz_ms**2)
        if not math.isnan(a.separation_m):
            widest_m = max(widest_m, a.separation_m)
            highest_ft = max(highest_ft, a.vertical_ft)
        low_x, high_x = min(low_x, a.x_m), max(high_x, a.x_m)
        low_y, high_y = min(low_y, a.y_m), max(high_y, a.y_m)
        low_z, high_z = min(low_z, a.z_m), max(high_z, a.z_m)
    extent_m = max(high_x - low_x, high_y - low_y, high_z - low_z)
    return Extremes(math.sqrt(fastest), widest_m, highest_ft, low_x, low_y, low_z, extent_m)


@njit(cache=True)
def assign(n: int, state: NDArray[Any], ends: Extremes, horizon_s: float, margin_m: float, cells: Cells) -> None:
    """Give every aircraft its key, not yet sorted. Afterwards `level_start` has the levels' ends."""
    key, row, level_start, frame = cells.key, cells.row, cells.level_start, cells.frame[0]
    reach_m = ends.widest_m + margin_m
    base_m = max(
        reach_m + min(ends.fastest_ms, FAST_MS) * horizon_s,
        (reach_m + ends.fastest_ms * horizon_s) / (1 << (LEVELS - 1)),
        ends.extent_m / _MOST_CELLS,
    )
    # one empty cell on each side, so that a neighbour's key is never that of a cell at the other end
    side = int(ends.extent_m / base_m) + 3
    frame.stride_y, frame.stride_x, frame.stride_level = side, side * side, side * side * side
    level_start[:] = 0
    for i in range(n):
        a = state[i]
        speed_ms = math.sqrt(a.vx_ms**2 + a.vy_ms**2 + a.vz_ms**2)
        wanted_m = reach_m + speed_ms * horizon_s
        level, width_m = 0, base_m
        while width_m < wanted_m and level < LEVELS - 1:
            level += 1
            width_m *= 2.0
        x = int((a.x_m - ends.low_x_m) / width_m) + 1
        y = int((a.y_m - ends.low_y_m) / width_m) + 1
        z = int((a.z_m - ends.low_z_m) / width_m) + 1
        key[i] = level * frame.stride_level + x * frame.stride_x + y * frame.stride_y + z
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
def begin_level(level: int, cells: Cells) -> None:
    """Set the pointers of `neighbours` to the start of a level."""
    cells.pointer[:] = cells.level_start[level]


@njit(cache=True)
def neighbours(at: int, end: int, level: int, cells: Cells) -> tuple[int, int]:
    """Where the partners of one cell's aircraft are, for the cell that is rows at … end-1.

    Fills `run` with (from, to) rows and returns how many there are and where the run ends that begins with the cell
    itself and goes on with the one above it. Cells of a level must come in order.
    """
    key, pointer, run, frame = cells.key, cells.pointer, cells.run, cells.frame[0]
    cell, stop = key[at], cells.level_start[level + 1]
    above = max(pointer[0], end)
    while above < stop and key[above] <= cell + 1:
        above += 1
    pointer[0] = above
    # no literal: what is called with one would be compiled for it, and again for what follows
    count = int(np.int64(0))
    for k in range(_COLUMNS):
        # +y; then +x with y-1, y, y+1
        middle = cell + (frame.stride_y if k == 0 else frame.stride_x + (k - 2) * frame.stride_y)
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
        lo, hi = cells.level_start[coarse], cells.level_start[coarse + 1]
        if hi - lo > _FEW:
            count = _coarse_runs(cell - level * frame.stride_level, coarse - level, coarse, cells, count)
        elif lo < hi:
            run[count, 0], run[count, 1] = lo, hi
            count += 1
    return count, above


@njit(cache=True)
def _coarse_runs(cell: int, doublings: int, coarse: int, cells: Cells, count: int) -> int:
    """Add the nine columns of a coarser level that touch a cell (its key without the level)."""
    key, run, frame = cells.key, cells.run, cells.frame[0]
    lo, hi = cells.level_start[coarse], cells.level_start[coarse + 1]
    x, y, z = cell // frame.stride_x, cell % frame.stride_x // frame.stride_y, cell % frame.stride_y
    x, y, z = ((x - 1) >> doublings) + 1, ((y - 1) >> doublings) + 1, ((z - 1) >> doublings) + 1
    middle = coarse * frame.stride_level + x * frame.stride_x + y * frame.stride_y + z
    for dx in range(-1, 2):
        for dy in range(-1, 2):
            wanted = middle + dx * frame.stride_x + dy * frame.stride_y
            first = first_at_least(key, lo, hi, wanted - 1)
            last = first
            while last < hi and key[last] <= wanted + 1:
                last += 1
            if first < last:
                run[count, 0], run[count, 1] = first, last
                count += 1
    return count


class Grid:
    """Work arrays for up to `capacity` aircraft. After `build`, `cells` are sorted by key."""

    def __init__(self, capacity: int) -> None:
        self._counts: I8 = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
        first = Cells(
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int32),
            np.empty(LEVELS + 1, np.int64),
            blank(Frame, 1),
            np.empty(1 + 2 * _COLUMNS, np.int64),
            np.empty((RUNS, 2), np.int64),
        )
        # sorting goes to and fro between two sets of keys and rows
        self._either = first, first._replace(key=np.empty(capacity, np.int64), row=np.empty(capacity, np.int32))
        self.cells = first

    def build(
        self, n: int, state: NDArray[Any], horizon_s: float, separation_m: float, vertical_ft: float, margin_m: float
    ) -> tuple[float, float]:
        """Sort n > 0 aircraft into cells; returns the widest and the highest minimum among them."""
        here, there = self._either
        ends = extremes(n, separation_m, vertical_ft, state)
        assign(n, state, ends, horizon_s, margin_m, here)
        swapped = sort_by_key(n, here.key, here.row, there.key, there.row, self._counts)
        self.cells = there if swapped else here
        return ends.widest_m, ends.highest_ft
