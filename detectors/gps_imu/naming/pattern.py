"""The pattern of a contradiction: what its channels have shown since it began, and how likely each name is by that.

A pattern begins with an epoch over the threshold and ends after CALM_S without one. Of each channel, in thresholds and
clipped at CAP, it has the mean over its time, the largest, and what the first epoch showed; a step and a drift end
alike and begin differently. It also has the share of its time that the channel itself was over the threshold: errors
that scatter are there and gone, those that last stay. The probabilities are those of a multinomial logistic model
whose coefficients are fitted and frozen (coefficients.py). Evidence adds up: the longer the pattern, the less one
epoch moves the name.

One thread of sums in a fixed order, so that the same epochs give the same bytes however vehicles are spread.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.state import CHANNELS
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit

# The names, each as facts and the diagnosis have it.
NAMES = (
    "spoofing", "jamming", "receiver_fault", "frozen_receiver", "clock",
    "imu_bias", "imu_scale", "imu_stuck", "imu_saturation",
)  # fmt: skip
# The most that one channel counts, in thresholds. Chosen: how far over says how strong an attack is, not what it is.
CAP = 4.0
# A pattern ends after so many seconds under the threshold. Chosen: longer than an intermittent spoofer is away
# (evaluation/attacks/gps.py: 3 s) less the time in which channels fall.
CALM_S = 3.0
# The most that one epoch counts, and what the first one does, s. Chosen: the intervals of 1 Hz and 5 Hz.
MOST_S, FIRST_S = 1.0, 0.2
# A name is said once a pattern is so old, and another one no sooner than so long after it, s. Chosen: an incident is
# first looked into 3 s after its alarm.
SAID_S, AGAIN_S = 2.0, 4.0
WIDTH = 4 * len(CHANNELS) + 1
_CHANNELS = len(CHANNELS)


class Pattern:
    """One vehicle's (detectors/kernels/records.py)."""

    t: float
    """Of the last epoch; 0: none yet."""
    seconds: float
    """Age of the pattern; 0: there is none."""
    calm_s: float
    total: Annotated[F8, (_CHANNELS,)]
    """Integrals over its time."""
    peak: Annotated[F8, (_CHANNELS,)]
    first: Annotated[F8, (_CHANNELS,)]
    over_s: Annotated[F8, (_CHANNELS,)]
    """For how long each channel was over the threshold."""
    said: int
    """Number of the name that was said last, from 1; 0: none."""
    said_s: float
    """At which age."""


@njit(cache=True)
def grow(row: Pattern, t: float, over: bool, level: F8) -> bool:
    """Add one epoch, channels in thresholds; whether there is a pattern now."""
    step_s = FIRST_S if row.t == 0.0 else min(max(t - row.t, 0.0), MOST_S)
    row.t = t
    row.calm_s = 0.0 if over else row.calm_s + step_s
    if row.seconds > 0.0 and row.calm_s > CALM_S:
        row.seconds = 0.0
        row.said = 0
    if row.seconds == 0.0:
        if not over:
            return False
        for c in range(level.size):
            row.total[c] = row.peak[c] = row.over_s[c] = 0.0
            row.first[c] = _clip(level[c])
    row.seconds += step_s
    for c in range(level.size):
        row.total[c] += step_s * _clip(level[c])
        row.peak[c] = max(row.peak[c], _clip(level[c]))
        row.over_s[c] += step_s if level[c] >= 1.0 else 0.0
    return row.seconds > 0.0


@njit(cache=True)
def _clip(level: float) -> float:
    return 0.0 if math.isnan(level) else min(max(level, 0.0), CAP)


@njit(cache=True)
def features(row: Pattern, out: F8) -> None:
    """What the model sees of a pattern: means, peaks, the first epoch, shares of time, and its age."""
    n = row.total.size
    for c in range(n):
        out[c] = row.total[c] / row.seconds
        out[n + c] = row.peak[c]
        out[2 * n + c] = row.first[c]
        out[3 * n + c] = row.over_s[c] / row.seconds
    out[4 * n] = math.log1p(row.seconds)


@njit(cache=True)
def likely(seen: F8, table: F8, out: F8) -> None:
    """The probability of each name; `table` has a row for each feature and one for the constant, last."""
    top = -math.inf
    for k in range(out.size):
        total = table[seen.size, k]
        for f in range(seen.size):
            total += seen[f] * table[f, k]
        out[k] = total
        top = max(top, total)
    whole = 0.0
    for k in range(out.size):
        out[k] = math.exp(out[k] - top)
        whole += out[k]
    for k in range(out.size):
        out[k] /= whole


@njit(cache=True)
def follow(
    patterns: NDArray[Any], slot: I4, t: F8, over: Bool, level: F8, table: F8, out: F8, news: Bool
) -> None:  # fmt: skip
    """Take epochs in order of vehicle and time: probabilities by [epoch, name], NaN without a pattern.

    `news`: epochs with another name than the one that was said last.
    """
    seen = np.empty(table.shape[0] - 1)
    for i in range(t.size):
        row = patterns[slot[i]]
        if not grow(row, t[i], over[i], level[i]):
            out[i, :] = math.nan
            continue
        features(row, seen)
        likely(seen, table, out[i])
        best = 1
        for name in range(1, out.shape[1]):
            if out[i, name] > out[i, best - 1]:
                best = name + 1
        old_enough = row.seconds >= (SAID_S if row.said == 0 else row.said_s + AGAIN_S)
        if best != row.said and old_enough:
            row.said, row.said_s = best, row.seconds
            news[i] = True
