"""One IMU by itself: axes that are stuck, axes at the end of their range, and vibration; second by second.

A sensor has noise, so an axis that does not change while others do is stuck, and one whose largest value comes again
and again is saturated: of healthy axes the largest value of a second comes once. What is usual is learned, because
some IMUs round their values or are sent several times.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.alone.constants import (
    AXES_KNOWN,
    AXES_MEMORY,
    AXES_N,
    AXES_S,
    OTHERS,
    SHAKEN_MS2,
    SHAKEN_TIMES,
    STEPS,
    TIED,
    TIED_TIMES,
    VARIES,
)
from watchkeeper.detectors.gps_imu.alone.state import Axes
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import IMU

ALL_STUCK, ONE_STUCK, SATURATED, SHAKEN = range(4)


@njit(cache=True)
def watch_axes(table: NDArray[Any], slot: I4, t: F8, data: F8, ended: Bool) -> None:
    """Take IMU samples, sorted by vehicle and time; `ended` marks those with which a second was judged."""
    for i in range(t.size):
        row = table[slot[i]]
        if row.imu_t > 0.0 and t[i] <= row.imu_t:
            continue
        if row.n == 0 or t[i] - row.imu_t > AXES_S:
            _begin(row, t[i], data, i)
            row.begin_t = t[i]
        elif t[i] - row.start_t >= AXES_S:
            if row.n >= AXES_N:
                _judge(row)
                ended[i] = True
            _begin(row, t[i], data, i)
        _add(row, data, i)
        row.imu_t = t[i]


@njit(cache=True)
def _begin(row: Axes, t: float, data: F8, i: int) -> None:
    row.start_t = t
    row.n = 0
    row.shake = 0.0
    for k in range(6):
        row.changes[k] = row.at_top[k] = row.at_bottom[k] = 0
        row.least[k] = 0.0
        row.top[k] = row.bottom[k] = data[i, IMU.imu_ax + k]


@njit(cache=True)
def _add(row: Axes, data: F8, i: int) -> None:
    for k in range(6):
        x = data[i, IMU.imu_ax + k]
        change = abs(x - row.last[k])
        row.changes[k] += change > 0.0
        if change > 0.0 and row.n > 0 and (change < row.least[k] or row.least[k] == 0.0):
            row.least[k] = change
        if k < 3 and row.n > 0:
            row.shake += (x - row.last[k]) ** 2
        row.last[k] = x
        if x > row.top[k]:
            row.top[k], row.at_top[k] = x, 0
        if x < row.bottom[k]:
            row.bottom[k], row.at_bottom[k] = x, 0
        row.at_top[k] += x == row.top[k]
        row.at_bottom[k] += x == row.bottom[k]
    row.n += 1


@njit(cache=True)
def _judge(row: Axes) -> None:
    """Judge the second that has ended, then learn from it."""
    n = float(row.n)
    known = row.blocks >= AXES_KNOWN
    stuck = varying = able = 0
    tied = 0.0
    for k in range(6):
        if known and row.usual_change[k] >= VARIES:
            able += 1
            stuck += row.changes[k] == 0
        varying += row.changes[k] > 0
        share = max(row.at_top[k], row.at_bottom[k]) / n
        # of a signal of a few steps of rounding the largest comes often
        fine = row.top[k] - row.bottom[k] >= STEPS * row.least[k]
        if known and fine and row.changes[k] > 0 and row.usual_change[k] >= VARIES:
            tied = max(tied, share / max(TIED, TIED_TIMES * row.usual_tie[k]))
    # half the mean squared change of three axes: the variance of each
    shaken = math.sqrt(row.shake / (6.0 * max(n - 1.0, 1.0)))
    said = row.said
    said[ALL_STUCK] = 2.0 if able >= OTHERS and stuck == able and varying == 0 else 0.0
    said[ONE_STUCK] = 2.0 if stuck > 0 and varying >= OTHERS else 0.0
    # for a second a healthy axis may rest at one value; one at the end of its range does so again
    said[SATURATED] = min(tied, row.tied)
    row.tied = tied
    said[SHAKEN] = shaken / max(SHAKEN_MS2, SHAKEN_TIMES * row.usual_shake) if known else 0.0
    for k in range(said.size):
        if said[k] >= 1.0 or tied >= 1.0:
            return
    row.blocks += 1
    part = 1.0 / min(float(row.blocks), AXES_MEMORY)
    for k in range(6):
        row.usual_change[k] += part * (row.changes[k] / n - row.usual_change[k])
        share = max(row.at_top[k], row.at_bottom[k]) / n if row.changes[k] > 0 else 0.0
        row.usual_tie[k] += part * (share - row.usual_tie[k])
    row.usual_shake += part * (shaken - row.usual_shake)
