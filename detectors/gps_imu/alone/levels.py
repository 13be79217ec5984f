"""What the statistics of one receiver are like while it is healthy, and how far the present ones are from that.

Score first, learn after, with a delay: a block of seconds counts when the next one has ended without suspicion, and
lifts a level by a limited factor. What is expected before anything is known counts like some looks, and what is known
of a short window says what the next longer one is like: a receiver that strays little in a second is one that strays
little in half a minute, long before that has been seen often.

A limit is that of a look whose variance is itself an estimate from few looks (Fisher's F with two degrees of freedom in
the numerator): wide at first, and close to the Gaussian one after minutes.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.constants import (
    AXES,
    BLOCK_S,
    CLIP,
    FREEDOM,
    FROM_SHORTER_LOOKS,
    GROWTH,
    HORIZONTAL,
    LEAST,
    LOOK_S,
    MANOEUVRE_MS2,
    MEMORY_S,
    OTHER_REGIME,
    OTHER_REGIME_LOOKS,
    PRIOR_LOOKS,
    RELUCTANT,
    RISE,
    STATISTICS,
    SURPRISE,
    SUSPICIOUS,
    TAIL,
    TIMING,
    UPRIGHT,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def expect_levels(row: Receiver) -> None:
    """What is expected of a receiver of which nothing is known."""
    if row.limit_sq[0, 0] == 0.0:
        _set_limits(row)


@njit(cache=True)
def _regime(row: Receiver) -> int:
    return 1 if row.strain_sq > MANOEUVRE_MS2**2 else 0


@njit(cache=True)
def _set_limits(row: Receiver) -> None:
    """Work out what is usual, and the limits, from what was learned."""
    for r in range(2):
        for c in range(STATISTICS):
            own = row.learned_s[r, c] / LOOK_S[c]
            first = c == TIMING or c % UPRIGHT <= 1
            prior, looks = 1.0, PRIOR_LOOKS
            if not first:
                prior, looks = GROWTH * row.usual_sq[r, c - 1], FROM_SHORTER_LOOKS
            elif row.learned_s[1 - r, c] > 0.0:
                more = min(OTHER_REGIME * row.learned_s[1 - r, c] / LOOK_S[c], OTHER_REGIME_LOOKS)
                prior = (PRIOR_LOOKS + more * row.mean_sq[1 - r, c]) / (PRIOR_LOOKS + more)
            row.usual_sq[r, c] = max((looks * prior + own * row.mean_sq[r, c]) / (looks + own), LEAST)
            freedom = FREEDOM * (looks + own)
            axes = 2.0 / AXES[c]
            row.limit_sq[r, c] = TAIL**2 * axes * freedom * math.expm1(SURPRISE[c] / freedom) * row.usual_sq[r, c]


@njit(cache=True)
def over_limit(row: Receiver, found: F8, grown: F8, ratio: F8) -> float:
    """Each statistic as a part of its limit (0 where there is none); the largest of those that are not of one epoch."""
    worst, r = 0.0, _regime(row)
    for c in range(STATISTICS):
        # a manoeuvre makes nothing smaller than it is in straight flight
        ratio[c] = max(found[c], 0.0) / math.sqrt(max(row.limit_sq[r, c] * grown[c], row.limit_sq[0, c]))
        if c not in (HORIZONTAL, UPRIGHT):
            worst = max(worst, ratio[c])
    return worst


@njit(cache=True)
def learn_levels(row: Receiver, found: F8, grown: F8, worst: float, dt: float) -> None:
    """Add these statistics to the block, and let the block before it count when this one has ended well."""
    r = _regime(row)
    for c in range(STATISTICS):
        if found[c] >= 0.0:
            row.block_sq[r, c] += dt * min(found[c] ** 2 / grown[c], CLIP**2 * row.usual_sq[r, c])
            row.block_s[r, c] += dt
    row.block_all_s += dt
    row.block_worst = max(row.block_worst, worst)
    if row.block_all_s < BLOCK_S:
        return
    if max(row.waiting_worst, row.block_worst) < SUSPICIOUS:
        _learn(row, 1.0)
    elif max(row.waiting_worst, row.block_worst) < 1.0:
        # near the limit and not over it: the level may be too low, and learns a little
        _learn(row, RELUCTANT)
    for r in range(2):
        for c in range(STATISTICS):
            row.waiting_sq[r, c], row.waiting_s[r, c] = row.block_sq[r, c], row.block_s[r, c]
            row.block_sq[r, c] = row.block_s[r, c] = 0.0
    row.block_all_s = 0.0
    row.waiting_worst = row.block_worst
    row.block_worst = 0.0


@njit(cache=True)
def _learn(row: Receiver, willing: float) -> None:
    """Let the block that waits count."""
    for r in range(2):
        for c in range(STATISTICS):
            seconds = willing * row.waiting_s[r, c]
            if seconds == 0.0:
                continue
            seen = min(row.waiting_sq[r, c] / row.waiting_s[r, c], RISE * row.usual_sq[r, c])
            part = seconds / (min(row.learned_s[r, c], MEMORY_S) + seconds)
            row.mean_sq[r, c] += part * (seen - row.mean_sq[r, c])
            row.learned_s[r, c] = min(row.learned_s[r, c] + seconds, MEMORY_S)
    _set_limits(row)
