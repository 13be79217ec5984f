"""One fix in the test for slow faults: whiten its innovations, add them up, compare, and learn what is healthy."""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.eskf import POS, VEL
from watchkeeper.detectors.gps_imu.slow.constants import (
    BLOCK_S,
    BOTH,
    GAP_S,
    GAP_TIMES,
    MANOEUVRE_MS2,
    RELUCTANT,
    STRAIN_S,
    SUSPICIOUS,
    TERMS,
    WINDOWS,
)
from watchkeeper.detectors.gps_imu.slow.levels import add_squares, add_up, learn_squares, over_limit, set_limits
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.slow.whiten import (
    add_products,
    learn_products,
    remember_innovations,
    solve,
    whiten,
)
from watchkeeper.detectors.gps_imu.state import LIES, TRACKING, Settings, Vehicle, Work
from watchkeeper.streams.kernels import njit

# Fixes after a gap until the terms are full.
FULL = 2
# Memory of the interval, as a part of each.
INTERVAL_PART = 0.05


@njit(cache=True)
def begin_slow(slow: Slow) -> None:
    """Nothing before this fix says anything about the next."""
    slow.fixes = 0
    slow.sums[:] = 0.0


@njit(cache=True)
def settle_again(slow: Slow, par: Settings) -> None:
    """The filter goes on from another state after a fault: nothing is judged for as long as a vehicle warms up."""
    begin_slow(slow)
    slow.settled_s = -par.warmup_s


@njit(cache=True)
def look_for_slow(slow: Slow, row: Vehicle, work: Work, dt: float) -> None:
    """Fill `work.slow` with what lasts, horizontally and vertically, as a part of its limit; 0: nothing is known.

    The residual, the variances and the covariance are those from before the update.
    """
    work.slow[:] = 0.0
    if row.phase != TRACKING:
        begin_slow(slow)
        slow.settled_s = min(slow.settled_s, 0.0)
        return
    # of a velocity that lies, or a position that is displaced, the alarm speaks already; another verdict would end it
    if math.isnan(work.residual[0] + work.residual[3]) or row.lying == LIES or row.away_t > 0.0:
        begin_slow(slow)
        return
    if slow.interval == 0.0:
        slow.interval = dt
        solve(slow, work)
        set_limits(slow)
    if dt > GAP_S + GAP_TIMES * slow.interval:
        begin_slow(slow)
        return
    slow.interval += INTERVAL_PART * (dt - slow.interval)
    slow.settled_s += dt
    slow.strain = max(row.accel, slow.strain * math.exp(-dt / STRAIN_S))
    for k in range(3):
        place = work.residual[k] / math.sqrt(row.cov[POS + k, POS + k] + work.variance[k])
        speed = work.residual[3 + k] / math.sqrt(row.cov[VEL + k, VEL + k] + work.variance[3 + k])
        # a receiver may tell no altitude, or no climb
        work.innovation[k, 0] = 0.0 if math.isnan(place) else place
        work.innovation[k, 1] = 0.0 if math.isnan(speed) else speed
    if slow.fixes >= FULL and slow.settled_s >= 0.0:
        regime = 1 if slow.strain > MANOEUVRE_MS2 else 0
        whiten(slow, work)
        add_up(slow, work, dt)
        worst = over_limit(slow, work, regime, slow.settled_s, work.slow)
        add_products(slow, work)
        add_squares(slow, work, regime, dt)
        # a vehicle with a verdict teaches nothing
        slow.block_worst = max(slow.block_worst, 1.0 if row.latched == 1 else worst)
        slow.block_all_s += dt
        if slow.block_all_s >= BLOCK_S:
            _end_block(slow, work)
    remember_innovations(slow, work, dt)
    slow.fixes += 1


@njit(cache=True)
def _end_block(slow: Slow, work: Work) -> None:
    """Let the block before this one count if both were harmless; near the limit it counts a little."""
    worst = max(slow.waiting_worst, slow.block_worst)
    if worst < 1.0 and slow.waiting_fixes > 0.0:
        willing = 1.0 if worst < SUSPICIOUS else RELUCTANT
        learn_products(slow, work, willing)
        learn_squares(slow, willing)
    # number by number: to assign an array to an array makes Numba compile what it would say of shapes that differ
    for h in range(2):
        for i in range(TERMS):
            for j in range(TERMS):
                slow.waiting_gram[h, i, j], slow.block_gram[h, i, j] = slow.block_gram[h, i, j], 0.0
            for j in range(BOTH):
                slow.waiting_cross[h, i, j], slow.block_cross[h, i, j] = slow.block_cross[h, i, j], 0.0
        for i in range(BOTH):
            for j in range(BOTH):
                slow.waiting_power[h, i, j], slow.block_power[h, i, j] = slow.block_power[h, i, j], 0.0
        for i in range(2):
            for j in range(WINDOWS):
                slow.waiting_sq[h, i, j], slow.block_sq[h, i, j] = slow.block_sq[h, i, j], 0.0
                slow.waiting_s[h, i, j], slow.block_s[h, i, j] = slow.block_s[h, i, j], 0.0
    slow.waiting_fixes, slow.waiting_worst = slow.block_fixes, slow.block_worst
    slow.block_fixes = slow.block_all_s = slow.block_worst = 0.0
