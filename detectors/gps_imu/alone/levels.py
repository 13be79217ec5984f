"""What the statistics of one receiver are like while it is healthy, and how far the present ones are from that.

Score first, learn after, with a delay: a block of seconds counts when the next one has ended without suspicion, and
lifts a level by a limited factor. What is expected before anything is known counts like some seconds of data.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.constants import (
    BLOCK_S,
    CLIP,
    LEAST,
    LIMITS,
    MANOEUVRE_MS2,
    MEMORY_S,
    PRIOR_S,
    RELUCTANT,
    RISE,
    STATISTICS,
    SUSPICIOUS,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def expect_levels(row: Receiver) -> None:
    """What is expected of a receiver of which nothing is known."""
    if row.learned_s[0] == 0.0:
        row.mean_sq[:] = 1.0
        row.learned_s[:] = PRIOR_S


@njit(cache=True)
def _regime(row: Receiver) -> int:
    return 1 if row.strain_sq > MANOEUVRE_MS2**2 else 0


@njit(cache=True)
def over_limit(row: Receiver, found: F8, ratio: F8) -> float:
    """Each statistic as a part of its limit, and the largest of them."""
    worst, mean_sq = 0.0, row.mean_sq[_regime(row)]
    for c in range(STATISTICS):
        ratio[c] = found[c] / (LIMITS[c] * math.sqrt(mean_sq[c]))
        worst = max(worst, ratio[c])
    return worst


@njit(cache=True)
def learn_levels(row: Receiver, found: F8, worst: float, dt: float) -> None:
    """Add these statistics to the block, and let the block before it count when this one has ended well."""
    r = _regime(row)
    for c in range(STATISTICS):
        row.block_sq[r, c] += dt * min(found[c] ** 2, CLIP**2 * row.mean_sq[r, c])
    row.block_s[r] += dt
    row.block_worst = max(row.block_worst, worst)
    if row.block_s[0] + row.block_s[1] < BLOCK_S:
        return
    if max(row.waiting_worst, row.block_worst) < SUSPICIOUS:
        _learn(row, 1.0)
    elif max(row.waiting_worst, row.block_worst) < 1.0:
        # near the limit and not over it: the level may be too low, and learns a little
        _learn(row, RELUCTANT)
    for r in range(2):
        for c in range(STATISTICS):
            row.waiting_sq[r, c] = row.block_sq[r, c]
            row.block_sq[r, c] = 0.0
        row.waiting_s[r] = row.block_s[r]
        row.block_s[r] = 0.0
    row.waiting_worst = row.block_worst
    row.block_worst = 0.0


@njit(cache=True)
def _learn(row: Receiver, willing: float) -> None:
    """Let the block that waits count."""
    for r in range(2):
        seconds = row.waiting_s[r]
        if seconds == 0.0:
            continue
        part = willing * seconds / (min(row.learned_s[r], MEMORY_S) + seconds)
        row.learned_s[r] = min(row.learned_s[r] + willing * seconds, MEMORY_S)
        for c in range(STATISTICS):
            seen = min(row.waiting_sq[r, c] / seconds, RISE * row.mean_sq[r, c])
            row.mean_sq[r, c] = max(row.mean_sq[r, c] + part * (seen - row.mean_sq[r, c]), LEAST)
