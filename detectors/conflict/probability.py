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
The errors at neighbouring times are the same errors, so the largest of these is the answer. constants.py says
where the numbers come from.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import (
    CAPTURE_FT,
    CAPTURE_S,
    CLIMB_SHARE,
    DRIFT_M,
    FAR_STD,
    LEVEL_DRIFT_FTS,
    LEVEL_STD_FT,
    PLACE_STD_M,
    STEP_S,
    TURN_FROM_S,
    TURN_M,
)
from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, State, altitude_gap, travel
from watchkeeper.streams.batch import I4
from watchkeeper.streams.geo import WGS84_E2
from watchkeeper.streams.kernels import njit

_D = 1.0 / (1.0 - WGS84_E2)


class Motion:
    """What an aircraft does beyond its state (detectors/kernels/records.py)."""

    turn_rads: float
    age_s: float
    """Of its last report."""
    free: bool
    """It climbs or descends and nobody knows where that ends."""


class Outlook(NamedTuple):
    """How far ahead, and what people do meanwhile; see config/detectors/conflict.py."""

    horizon_s: float
    turn_hold_s: float
    level_off: float
    act_s: float


class Needed(NamedTuple):
    """The minima that hold for a pair."""

    separation_m: float
    vertical_ft: float


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
def may_go_on(a: State, b: State, free_a: bool, free_b: bool, vertical_ft: float, level_off: float) -> float:
    """Probability that nobody stops the two from losing vertical separation by levelling off before."""
    gap_ft = a.alt_ft - b.alt_ft
    closing_fts = (b.climb_fts - a.climb_fts) if gap_ft > 0.0 else (a.climb_fts - b.climb_fts)
    room_ft = abs(gap_ft) - vertical_ft
    if not (room_ft >= 0.0 and closing_fts > 0.0):
        return 1.0
    # only who closes in and whose plan is unknown may stop
    mover_a = (-a.climb_fts if gap_ft > 0.0 else a.climb_fts) if free_a else 0.0
    mover_b = (b.climb_fts if gap_ft > 0.0 else -b.climb_fts) if free_b else 0.0
    if max(mover_a, mover_b) <= 0.0:
        return 1.0
    return 1.0 - level_off * min(1.0, float(room_ft) / (CAPTURE_FT + CAPTURE_S * float(closing_fts)))


@njit(cache=True, inline="always")
def _climb_std(state: State, t_s: float, aged_s: float) -> float:
    """Uncertainty of the climb in ft; who has levelled off where he was expected to is where he was expected."""
    return CLIMB_SHARE * float(state.climb_fts) * aged_s if t_s < state.level_s else 0.0


@njit(cache=True)
def chance(
    a: State, b: State, motion_a: Motion, motion_b: Motion, needed: Needed, outlook: Outlook
) -> tuple[float, float]:
    """Probability of a loss within the horizon, and when (s) it first is at least half as likely as at its worst.

    States as in kernels/approach.py. Symmetric in a and b.
    """
    separation_m, vertical_ft = needed.separation_m, needed.vertical_ft
    half = 0.5 * outlook.horizon_s
    ax, ay, az, avx, avy, avz = travel(a.x_m, a.y_m, a.z_m, a.vx_ms, a.vy_ms, a.vz_ms, -half)
    bx, by, bz, bvx, bvy, bvz = travel(b.x_m, b.y_m, b.z_m, b.vx_ms, b.vy_ms, b.vz_ms, -half)
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

    go_on = may_go_on(a, b, motion_a.free, motion_b.free, vertical_ft, outlook.level_off)
    known = not math.isnan(a.alt_ft + b.alt_ft)
    turn_a, turn_b = TURN_M * abs(math.degrees(motion_a.turn_rads)), TURN_M * abs(math.degrees(motion_b.turn_rads))
    best, best_t = 0.0, math.nan
    for k in range(int(outlook.horizon_s / STEP_S) + 1):
        t = k * STEP_S
        ta, tb = t + motion_a.age_s, t + motion_b.age_s
        sa = PLACE_STD_M + DRIFT_M * ta * ta + turn_a * max(0.0, ta - TURN_FROM_S)
        sb = PLACE_STD_M + DRIFT_M * tb * tb + turn_b * max(0.0, tb - TURN_FROM_S)
        std_m = math.sqrt(sa * sa + sb * sb)
        da_e, da_n = _moved(va_e, va_n, motion_a.turn_rads, outlook.turn_hold_s, t)
        db_e, db_n = _moved(vb_e, vb_n, motion_b.turn_rads, outlook.turn_hold_s, t)
        x, y = x0 + da_e - db_e, y0 + da_n - db_n
        distance_m = math.sqrt(x * x + y * y)
        if distance_m > separation_m + FAR_STD * std_m:
            continue
        p = math.exp(-t / outlook.act_s) * _below((separation_m - ON_LIMIT_M - distance_m) / std_m)
        if known:
            climb_a, climb_b = _climb_std(a, t, ta), _climb_std(b, t, tb)
            held_a, held_b = LEVEL_STD_FT + LEVEL_DRIFT_FTS * ta, LEVEL_STD_FT + LEVEL_DRIFT_FTS * tb
            std_ft = math.sqrt(held_a * held_a + held_b * held_b + climb_a * climb_a + climb_b * climb_b)
            p *= go_on * _below((vertical_ft - ON_LIMIT_FT - abs(altitude_gap(a, b, t))) / std_ft)
        if p > best:
            if not best >= 0.5 * p:
                best_t = t
            best = p
    return best, best_t


@njit(cache=True)
def judge(
    pairs: NDArray[Any], row_of: I4, state: NDArray[Any], motion: NDArray[Any], general: Needed, outlook: Outlook
) -> None:
    """`chance` for many pairs of slots, into the pairs; `row_of` maps a slot to its row in state and motion."""
    for k in range(pairs.size):
        pair = pairs[k]
        i, j = row_of[pair.a], row_of[pair.b]
        a, b = state[i], state[j]
        needed = Needed(
            larger(a.separation_m, b.separation_m, general.separation_m),
            larger(a.vertical_ft, b.vertical_ft, general.vertical_ft),
        )
        pair.probability, pair.when_s = chance(a, b, motion[i], motion[j], needed, outlook)


@njit(cache=True, inline="always")
def larger(one: float, other: float, default: float) -> float:
    """The larger of two minima; NaN stands for the default."""
    one = default if math.isnan(one) else one
    return max(one, default if math.isnan(other) else other)
