"""Sums of whitened innovations against what they are like while the vehicle is healthy.

A leaky mean over 2 to 16 s is the likelihood ratio of a constant shift that began that long ago: in position and
velocity of two axes horizontally, of one vertically. Whitened, its square has the same mean for every memory and nearly
every vehicle; what a vehicle differs by is learned, score first and learn after, and a block counts when the next one
has ended without suspicion. A limit is that of a square whose variance is itself an estimate from few looks (Fisher's
F), at this memory's share of the budget.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.slow.constants import (
    BOTH,
    FIRST_LOOKS,
    FIRST_SQ,
    FREEDOM,
    GROWTH,
    LEAST_SQ,
    LOG_CHANCE,
    MEMORIES_PER_LOOK,
    MEMORY_S,
    MOST_SQ,
    OTHER_REGIME,
    OTHER_REGIME_LOOKS,
    RISE,
    SETTLING,
    SETTLING_S,
    TAIL,
    WINDOWS,
    WINDOWS_S,
)
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.slow.whiten import kind_of
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# Steps of the search for a limit: its error is then below a thousandth.
STEPS = 8


@njit(cache=True)
def add_up(row: Slow, work: Work, dt: float) -> None:
    """Add the whitened innovations to the sums; fill `seen_sq` with their squares, 1 where they are white."""
    work.seen_sq[:] = 0.0
    for w in range(WINDOWS):
        keep = math.exp(-dt / WINDOWS_S[w])
        gain = (1.0 + keep) / (1.0 - keep)
        for k in range(3):
            kind = kind_of(k)
            for c in range(BOTH):
                mean = keep * row.sums[k, c, w] + (1.0 - keep) * work.white[k, c]
                row.sums[k, c, w] = mean
                work.seen_sq[kind, w] += gain * mean * mean / FREEDOM[kind]


@njit(cache=True)
def over_limit(row: Slow, work: Work, regime: int, settled_s: float, found: F8) -> float:
    """Fill `found` (horizontal, vertical) with the largest sum as a part of its limit; the larger of both."""
    wider = 1.0 + SETTLING * math.exp(-settled_s / SETTLING_S)
    for kind in range(2):
        most = 0.0
        for w in range(WINDOWS):
            # a manoeuvre makes nothing smaller than it is in straight flight
            limit = max(row.limit_sq[kind, regime, w], row.limit_sq[kind, 0, w])
            most = max(most, work.seen_sq[kind, w] / limit)
        found[kind] = math.sqrt(most / wider)
    return float(max(found[0], found[1]))


@njit(cache=True)
def add_squares(row: Slow, work: Work, regime: int, dt: float) -> None:
    """Add the sums' squares to the block."""
    for kind in range(2):
        for w in range(WINDOWS):
            most = MOST_SQ * max(row.mean_sq[kind, regime, w], FIRST_SQ[kind][regime] * LEAST_SQ)
            row.block_sq[kind, regime, w] += dt * min(work.seen_sq[kind, w], most)
            row.block_s[kind, regime, w] += dt


@njit(cache=True)
def learn_squares(row: Slow, willing: float) -> None:
    """Let the block that waits count."""
    for kind in range(2):
        for r in range(2):
            for w in range(WINDOWS):
                seconds = willing * row.waiting_s[kind, r, w]
                if seconds == 0.0:
                    continue
                known = row.mean_sq[kind, r, w] if row.learned_s[kind, r, w] > 0.0 else FIRST_SQ[kind][r]
                seen = min(row.waiting_sq[kind, r, w] / row.waiting_s[kind, r, w], RISE * max(known, LEAST_SQ))
                part = seconds / (min(row.learned_s[kind, r, w], MEMORY_S) + seconds)
                row.mean_sq[kind, r, w] += part * (seen - row.mean_sq[kind, r, w])
                row.learned_s[kind, r, w] = min(row.learned_s[kind, r, w] + seconds, MEMORY_S)
    set_limits(row)


@njit(cache=True)
def set_limits(row: Slow) -> None:
    """Work out the limits from what was learned."""
    for kind in range(2):
        for r in range(2):
            usual = FIRST_SQ[kind][r]
            for w in range(WINDOWS):
                own = row.learned_s[kind, r, w] / (MEMORIES_PER_LOOK * WINDOWS_S[w])
                looks = FIRST_LOOKS[kind]
                if w == 0:
                    more = min(OTHER_REGIME * row.learned_s[kind, 1 - r, 0] / WINDOWS_S[0], OTHER_REGIME_LOOKS)
                    usual = (looks * usual + more * row.mean_sq[kind, 1 - r, 0]) / (looks + more)
                else:
                    usual *= GROWTH
                usual = max((looks * usual + own * row.mean_sq[kind, r, w]) / (looks + own), LEAST_SQ)
                freedom = FREEDOM[kind]
                limit = rare(freedom, freedom * (looks + own), LOG_CHANCE[w])
                row.limit_sq[kind, r, w] = TAIL**2 * usual * limit / freedom


@njit(cache=True)
def rare(freedom: int, looked: float, log_chance: float) -> float:
    """The sum of 2 or 4 squares that is as rare, if their variance is an estimate with so many degrees of freedom.

    For an even number of squares the tail of F is elementary: with y = sum / looked it is (1 + y)^(-looked / 2), times
    1 + looked / 2 * y / (1 + y) for four. The factor changes slowly, so it is put in again until nothing moves.
    """
    y = math.expm1(-2.0 * log_chance / looked)
    if freedom == FREEDOM[0]:
        for _ in range(STEPS):
            y = math.expm1(2.0 / looked * (math.log1p(0.5 * looked * y / (1.0 + y)) - log_chance))
    return float(looked * y)
