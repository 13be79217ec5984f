"""A running quantile of five numbers: the P² algorithm of Jain and Chlamtac (1985), with their names.

A quantile is a row of WIDTH numbers, so that it can be kept in a table and written to a snapshot: the quantile that is
wanted, and for each of the five markers how far its desired position moves with a value, its desired position, its
position and its height. The third marker's height is the estimate. Before there are five values, these are the heights.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.kernels.order import sort_by
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

MARKERS = 5
WIDTH = 1 + 4 * MARKERS
_STEP, _DESIRED, _PLACE, _HEIGHT = (1 + k * MARKERS for k in range(4))


def empty(quantile: float) -> F8:
    """The row of a quantile that has seen nothing."""
    q = quantile
    step = [0.0, q / 2.0, q, (1.0 + q) / 2.0, 1.0]
    desired = [1.0, 1.0 + 2.0 * q, 1.0 + 4.0 * q, 3.0 + 2.0 * q, 5.0]
    return np.array([q, *step, *desired, 1.0, 2.0, 3.0, 4.0, 5.0, *[0.0] * MARKERS])


def is_sound(row: F8) -> bool:
    """Whether this can be a row: markers have places of their own, in order."""
    return row.dtype == np.float64 and row.shape == (WIDTH,) and bool((np.diff(row[_PLACE:_HEIGHT]) >= 1.0).all())


@njit(cache=True)
def estimate(row: F8) -> float:
    """The quantile so far; of at least five values."""
    return float(row[_HEIGHT + 2])


@njit(cache=True)
def update(row: F8, seen: int, value: float) -> None:
    """Take one more value; `seen` is how many there were before."""
    height, place = row[_HEIGHT : _HEIGHT + MARKERS], row[_PLACE : _PLACE + MARKERS]
    if seen < MARKERS:
        height[seen] = value
        if seen == MARKERS - 1:
            sort_by(height, np.zeros(MARKERS, np.int64))
        return
    if value < height[0]:
        height[0] = value
    elif value > height[4]:
        height[4] = value
    for k in range(1, MARKERS):
        # the highest marker moves always, the lowest never
        if k == MARKERS - 1 or value < height[k]:
            place[k] += 1.0
        row[_DESIRED + k] += row[_STEP + k]
    for k in range(1, MARKERS - 1):
        off = row[_DESIRED + k] - place[k]
        if (off >= 1.0 and place[k + 1] - place[k] > 1.0) or (off <= -1.0 and place[k - 1] - place[k] < -1.0):
            d = 1.0 if off > 0.0 else -1.0
            between = _parabola(height, place, k, d)
            if not height[k - 1] < between < height[k + 1]:
                other = k + int(d)
                between = height[k] + d * (height[other] - height[k]) / (place[other] - place[k])
            height[k] = between
            place[k] += d


@njit(cache=True)
def _parabola(height: F8, place: F8, k: int, d: float) -> float:
    """The height of marker k one place on, by the parabola through it and its neighbours."""
    before, here, after = place[k - 1], place[k], place[k + 1]
    rise_after = (here - before + d) * (height[k + 1] - height[k]) / (after - here)
    rise_before = (after - here - d) * (height[k] - height[k - 1]) / (here - before)
    return float(height[k] + d / (after - before) * (rise_after + rise_before))
