"""The probability that two aircraft lose separation within the horizon. What `conflict` alarms on.

A straight line is right about most losses of separation, but most of what it announces never happens: aircraft turn,
level off, and are kept apart by people whose plan is not in the data. So the pairs that the scan finds are judged
again, each on its own predicted paths:
- a turn goes on at the measured rate for `turn_hold_s`, then the aircraft flies straight;
- a climb ends where it is known to end (the state's level-off: the selected altitude, or the one being captured);
- where it is not known, an aircraft that is about to fly into another's level may be cleared to stop short of it, with
  probability `level_off`, as long as it still can: seconds before the limit at full rate it cannot (CAPTURE);
- where an aircraft will be is uncertain, the more the further ahead, the older its report and the tighter its turn;
- the further ahead a loss is, the more likely it is that somebody does something about it: a chance that decays with
  `act_s`.

Every STEP_S along the paths: probability of being horizontally too close, times that of being vertically too close.
The errors at neighbouring times are the same errors, so the largest of these is the answer. The constants are
measured, see docs/detectors/conflict.md.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.kernels.approach import (
    ALT_FT,
    CLIMB_FTS,
    LEVEL_S,
    ON_LIMIT_FT,
    ON_LIMIT_M,
    SEPARATION_M,
    VERTICAL_FT,
    altitude_gap,
    travel,
)
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import WGS84_E2
from watchkeeper.streams.kernels import njit

STEP_S = 4.0
# Standard deviation of a predicted position: at once, times the seconds squared, per deg/s of turn and second of it.
PLACE_M, DRIFT_M, TURN_M, TURN_FROM_S = 90.0, 0.16, 30.0, 10.0
# The same for altitude: at once, per second, and as a share of the predicted climb.
LEVEL_FT, LEVEL_DRIFT_FTS, CLIMB_SHARE = 20.0, 1.5, 0.25
# A level-off takes this many seconds at the present rate, and this many feet.
CAPTURE_S, CAPTURE_FT = 5.0, 200.0
# Further off than this many standard deviations there is no chance worth computing.
_FAR_STD = 3.0
_D = 1.0 / (1.0 - WGS84_E2)

# Columns of a motion: what an aircraft does beyond its state.
TURN_RADS, AGE_S, FREE = range(3)
MOTION = 3


@njit(cache=True, inline="always")
def _below(x: float) -> float:
    """The normal distribution function."""
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


@njit(cache=True)
def _moved(vx: float, vy: float, turn_rads: float, hold_s: float, t_s: float) -> tuple[float, float]:
    """Displacement in a plane after t_s: a turn to the right (clockwise) for hold_s, then straight."""
    if turn_rads == 0.0:
        return vx * t_s, vy * t_s
    turning_s = min(t_s, hold_s)
    angle = turn_rads * turning_s
    sin, cos = math.sin(angle), math.cos(angle)
    x = (vx * sin + vy * (1.0 - cos)) / turn_rads
    y = (vy * sin - vx * (1.0 - cos)) / turn_rads
    rest_s = t_s - turning_s
    return x + (vx * cos + vy * sin) * rest_s, y + (vy * cos - vx * sin) * rest_s


@njit(cache=True)
def may_go_on(a: F8, b: F8, free_a: float, free_b: float, vertical_ft: float, level_off: float) -> float:
    """Probability that nobody stops the two from losing vertical separation by levelling off before."""
    gap_ft = a[ALT_FT] - b[ALT_FT]
    closing_fts = (b[CLIMB_FTS] - a[CLIMB_FTS]) if gap_ft > 0.0 else (a[CLIMB_FTS] - b[CLIMB_FTS])
    room_ft = abs(gap_ft) - vertical_ft
    if not (room_ft >= 0.0 and closing_fts > 0.0):
        return 1.0
    # only who closes in and whose plan is unknown may stop
    mover_a = free_a * (-a[CLIMB_FTS] if gap_ft > 0.0 else a[CLIMB_FTS])
    mover_b = free_b * (b[CLIMB_FTS] if gap_ft > 0.0 else -b[CLIMB_FTS])
    if max(mover_a, mover_b) <= 0.0:
        return 1.0
    return 1.0 - level_off * min(1.0, float(room_ft) / (CAPTURE_FT + CAPTURE_S * float(closing_fts)))


@njit(cache=True, inline="always")
def _climb_std(state: F8, t_s: float, aged_s: float) -> float:
    """Uncertainty of the climb in ft; who has levelled off where he was expected to is where he was expected."""
    return CLIMB_SHARE * float(state[CLIMB_FTS]) * aged_s if t_s < state[LEVEL_S] else 0.0


@njit(cache=True)
def chance(
    a: F8, b: F8, motion_a: F8, motion_b: F8, horizon_s: float, separation_m: float, vertical_ft: float,
    turn_hold_s: float, level_off: float, act_s: float,
) -> tuple[float, float]:  # fmt: skip
    """Probability of a loss within the horizon, and when (s) it first is at least half as likely as at its worst.

    States as in kernels/approach.py. Symmetric in a and b.
    """
    half = 0.5 * horizon_s
    ax, ay, az, avx, avy, avz = travel(a[0], a[1], a[2], a[3], a[4], a[5], -half)
    bx, by, bz, bvx, bvy, bvz = travel(b[0], b[1], b[2], b[3], b[4], b[5], -half)
    # a plane that touches the Earth midway: up, east, north (at a pole any direction is east)
    ux, uy, uz = ax + bx, ay + by, _D * (az + bz)
    length = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / length, uy / length, uz / length
    level = math.sqrt(ux * ux + uy * uy)
    ex, ey = (-uy / level, ux / level) if level > 1e-12 else (0.0, 1.0)
    nx, ny, nz = -uz * ey, uz * ex, ux * ey - uy * ex
    x0, y0 = (ax - bx) * ex + (ay - by) * ey, (ax - bx) * nx + (ay - by) * ny + (az - bz) * nz
    va_e, va_n = avx * ex + avy * ey, avx * nx + avy * ny + avz * nz
    vb_e, vb_n = bvx * ex + bvy * ey, bvx * nx + bvy * ny + bvz * nz

    go_on = may_go_on(a, b, motion_a[FREE], motion_b[FREE], vertical_ft, level_off)
    known = not math.isnan(a[ALT_FT] + b[ALT_FT])
    turn_a, turn_b = TURN_M * abs(math.degrees(motion_a[TURN_RADS])), TURN_M * abs(math.degrees(motion_b[TURN_RADS]))
    best, best_t = 0.0, math.nan
    for k in range(int(horizon_s / STEP_S) + 1):
        t = k * STEP_S
        ta, tb = t + motion_a[AGE_S], t + motion_b[AGE_S]
        sa = PLACE_M + DRIFT_M * ta * ta + turn_a * max(0.0, ta - TURN_FROM_S)
        sb = PLACE_M + DRIFT_M * tb * tb + turn_b * max(0.0, tb - TURN_FROM_S)
        std_m = math.sqrt(sa * sa + sb * sb)
        da_e, da_n = _moved(va_e, va_n, motion_a[TURN_RADS], turn_hold_s, t)
        db_e, db_n = _moved(vb_e, vb_n, motion_b[TURN_RADS], turn_hold_s, t)
        x, y = x0 + da_e - db_e, y0 + da_n - db_n
        distance_m = math.sqrt(x * x + y * y)
        if distance_m > separation_m + _FAR_STD * std_m:
            continue
        p = math.exp(-t / act_s) * _below((separation_m - ON_LIMIT_M - distance_m) / std_m)
        if known:
            climb_a, climb_b = _climb_std(a, t, ta), _climb_std(b, t, tb)
            held_a, held_b = LEVEL_FT + LEVEL_DRIFT_FTS * ta, LEVEL_FT + LEVEL_DRIFT_FTS * tb
            std_ft = math.sqrt(held_a * held_a + held_b * held_b + climb_a * climb_a + climb_b * climb_b)
            p *= go_on * _below((vertical_ft - ON_LIMIT_FT - abs(altitude_gap(a, b, t))) / std_ft)
        if p > best:
            if not best >= 0.5 * p:
                best_t = t
            best = p
    return best, best_t


@njit(cache=True)
def judge(
    pair_a: I4, pair_b: I4, row_of: I4, state: F8, motion: F8, horizon_s: float, separation_m: float,
    vertical_ft: float, turn_hold_s: float, level_off: float, act_s: float, probability: F8, when_s: F8,
) -> None:  # fmt: skip
    """`chance` for many pairs of slots; `row_of` maps a slot to its row in state and motion."""
    for k in range(pair_a.size):
        i, j = row_of[pair_a[k]], row_of[pair_b[k]]
        a, b = state[i], state[j]
        near_m = larger(a[SEPARATION_M], b[SEPARATION_M], separation_m)
        near_ft = larger(a[VERTICAL_FT], b[VERTICAL_FT], vertical_ft)
        probability[k], when_s[k] = chance(
            a, b, motion[i], motion[j], horizon_s, near_m, near_ft, turn_hold_s, level_off, act_s
        )


@njit(cache=True, inline="always")
def larger(one: float, other: float, default: float) -> float:
    """The larger of two minima; NaN stands for the default."""
    one = default if math.isnan(one) else one
    return max(one, default if math.isnan(other) else other)
