"""The probability that two aircraft lose separation within the horizon. What `conflict` alarms on.

A straight line is right about most losses of separation, but most of what it announces never happens: aircraft turn,
level off, and are kept apart by people whose plan is not in the data. So the pairs that the scan finds are judged
again, each on its own predicted paths:
- a turn goes on at the measured rate for `turn_hold_s` and is straight flight after that, or it ends now;
- a climb ends where it is known to end (the state's level-off: the selected altitude, or the one being captured);
- where it is not known, it may end at each of the next whole thousands or go on: at each with the probability with
  which aircraft level off there, and at the last one before the other aircraft's level with `level_off` at least,
  because that is where a controller stops it; at none that is too near to be captured at the present rate (CAPTURE);
- where an aircraft will be is uncertain, the more the further ahead, the older its report and the tighter its turn;
- the further ahead a loss is, the more likely it is that somebody does something about it: a chance that decays with
  `act_s`.

So each aircraft has several futures, each with a weight. For each combination of two, every STEP_S along the paths:
probability of being horizontally too close, times that of being vertically too close. The errors at neighbouring times
are the same errors, so the largest of these counts; the answer is their mean over all combinations by weight.
constants.py says where the numbers come from.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import (
    CAPTURE_FT,
    CAPTURE_S,
    CLIMB_SHARE,
    DRIFT_M,
    ENDS,
    FAR_STD,
    HIGH_FT,
    LEVEL_DRIFT_FTS,
    LEVEL_HIGH,
    LEVEL_LOW,
    LEVEL_STD_FT,
    LEVELS_FT,
    PLACE_STD_M,
    STEP_S,
    TURN_FROM_S,
    TURN_M,
    TURNS_ON,
    WAYS,
)
from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, State, travel
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, I4
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


class Way:
    """One way that an aircraft may go (detectors/kernels/records.py)."""

    rads: float
    weight: float


class End:
    """One moment at which a climb or descent may end."""

    level_s: float
    weight: float


class Futures(NamedTuple):
    """Room for the futures of two aircraft: their ways and ends, and the worst moment of each combination.

    `before_m`: how far apart they were one step ago.
    """

    turn: NDArray[Any]
    level: NDArray[Any]
    vertical: F8
    worst: F8
    before_m: F8


def futures() -> Futures:
    """Room for one pair."""
    ways, ends = WAYS * WAYS, ENDS * ENDS
    return Futures(
        blank(Way, (2, WAYS)), blank(End, (2, ENDS)), np.empty(ends), np.empty((ways, ends)), np.empty(ways)
    )  # fmt: skip


class Needed(NamedTuple):
    """The minima that hold for a pair."""

    separation_m: float
    """Too close until the closest approach, and"""
    apart_m: float
    """after it: the same, unless a tau makes the first larger (kernels/approach.py)."""
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


@njit(cache=True, inline="always")
def _climb_std(state: State, level_s: float, t_s: float, aged_s: float) -> float:
    """Uncertainty of the climb in ft; an aircraft that has levelled off where it was expected to has none."""
    return CLIMB_SHARE * float(state.climb_fts) * aged_s if t_s < level_s else 0.0


@njit(cache=True, inline="always")
def _altitude(state: State, level_s: float, t_s: float) -> float:
    """Altitude in ft after t_s of a climb that ends after level_s."""
    return float(state.alt_ft) + float(state.climb_fts) * min(t_s, level_s)


@njit(cache=True)
def ways(motion: Motion, found: NDArray[Any]) -> int:
    """The ways an aircraft may go, with their weights; returns how many: straight on, or the turn goes on or ends."""
    found[0].rads, found[0].weight = motion.turn_rads, 1.0
    if motion.turn_rads == 0.0:
        return 1
    found[0].weight = TURNS_ON
    found[1].rads, found[1].weight = 0.0, 1.0 - TURNS_ON
    return 2


@njit(cache=True)
def ends(state: State, free: bool, other: State, vertical_ft: float, level_off: float, found: NDArray[Any]) -> int:
    """When a climb or descent may end (`level_s`), with weights; returns how many: at the next levels, or not here.

    A level that is too near to be captured at the present rate is the less probable. The last one before the other
    aircraft's, where a controller would stop it, has the probability `level_off` at least.
    """
    found[0].level_s, found[0].weight = float(state.level_s), 1.0
    if not free or state.level_s < math.inf or state.climb_fts == 0.0:
        return 1
    climb_fts, alt_ft, count, left = float(state.climb_fts), float(state.alt_ft), 0, 1.0
    up = 1.0 if climb_fts > 0.0 else -1.0
    level_ft = LEVELS_FT * (math.floor(alt_ft / LEVELS_FT) if up > 0.0 else math.ceil(alt_ft / LEVELS_FT))
    # as far as its last level that keeps the other's away
    short_ft = up * (float(other.alt_ft) - up * vertical_ft)
    while count < ENDS - 1:
        level_ft += up * LEVELS_FT
        room_ft = up * (level_ft - alt_ft)
        chance_here = LEVEL_HIGH if level_ft >= HIGH_FT else LEVEL_LOW
        if up * level_ft <= short_ft < up * level_ft + LEVELS_FT:
            chance_here = max(chance_here, level_off)
        chance_here *= min(1.0, room_ft / (CAPTURE_FT + CAPTURE_S * abs(climb_fts)))
        found[count].level_s, found[count].weight = room_ft / abs(climb_fts), left * chance_here
        left *= 1.0 - chance_here
        count += 1
    found[count].level_s, found[count].weight = math.inf, left
    return ENDS


@njit(cache=True)
def chance(
    a: State, b: State, motion_a: Motion, motion_b: Motion, needed: Needed, outlook: Outlook, futures: Futures
) -> tuple[float, float]:
    """Probability of a loss within the horizon, and when (s) it first is at least half as likely as at its worst.

    States as in kernels/approach.py, `futures` is room to work in. Symmetric in a and b.
    """
    vertical_ft = needed.vertical_ft
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

    ways_a = ways(motion_a, futures.turn[0])
    ways_b = ways(motion_b, futures.turn[1])
    ends_a = ends(a, motion_a.free, b, vertical_ft, outlook.level_off, futures.level[0])
    ends_b = ends(b, motion_b.free, a, vertical_ft, outlook.level_off, futures.level[1])
    known = not math.isnan(a.alt_ft + b.alt_ft)
    if not known:
        ends_a = ends_b = 1
    turn_a, turn_b = TURN_M * abs(math.degrees(motion_a.turn_rads)), TURN_M * abs(math.degrees(motion_b.turn_rads))
    worst, most, most_t = futures.worst, 0.0, math.nan
    worst[: ways_a * ways_b, : ends_a * ends_b] = 0.0
    futures.before_m[:] = math.inf
    for k in range(int(outlook.horizon_s / STEP_S) + 1):
        t = k * STEP_S
        ta, tb = t + motion_a.age_s, t + motion_b.age_s
        acted = math.exp(-t / outlook.act_s)
        at_once = 0.0
        if known:
            held_a, held_b = LEVEL_STD_FT + LEVEL_DRIFT_FTS * ta, LEVEL_STD_FT + LEVEL_DRIFT_FTS * tb
            for v in range(ends_a * ends_b):
                end_a, end_b = futures.level[0][v // ends_b], futures.level[1][v % ends_b]
                climb_a, climb_b = _climb_std(a, end_a.level_s, t, ta), _climb_std(b, end_b.level_s, t, tb)
                std_ft = math.sqrt(held_a * held_a + held_b * held_b + climb_a * climb_a + climb_b * climb_b)
                gap_ft = _altitude(a, end_a.level_s, t) - _altitude(b, end_b.level_s, t)
                futures.vertical[v] = _below((vertical_ft - ON_LIMIT_FT - abs(gap_ft)) / std_ft)
        else:
            futures.vertical[0] = 1.0
        for h in range(ways_a * ways_b):
            way_a, way_b = futures.turn[0][h // ways_b], futures.turn[1][h % ways_b]
            sa = PLACE_STD_M + DRIFT_M * ta * ta + (turn_a * max(0.0, ta - TURN_FROM_S) if way_a.rads != 0.0 else 0.0)
            sb = PLACE_STD_M + DRIFT_M * tb * tb + (turn_b * max(0.0, tb - TURN_FROM_S) if way_b.rads != 0.0 else 0.0)
            std_m = math.sqrt(sa * sa + sb * sb)
            da_e, da_n = _moved(va_e, va_n, way_a.rads, outlook.turn_hold_s, t)
            db_e, db_n = _moved(vb_e, vb_n, way_b.rads, outlook.turn_hold_s, t)
            x, y = x0 + da_e - db_e, y0 + da_n - db_n
            distance_m = math.sqrt(x * x + y * y)
            separation_m = needed.separation_m if distance_m <= futures.before_m[h] else needed.apart_m
            futures.before_m[h] = distance_m
            if distance_m > separation_m + FAR_STD * std_m:
                continue
            level_p = acted * _below((separation_m - ON_LIMIT_M - distance_m) / std_m)
            for v in range(ends_a * ends_b):
                p = level_p * futures.vertical[v]
                worst[h, v] = max(worst[h, v], p)
                weight = way_a.weight * way_b.weight
                if known:
                    weight *= futures.level[0][v // ends_b].weight * futures.level[1][v % ends_b].weight
                at_once += weight * p
        if at_once > most:
            if not most >= 0.5 * at_once:
                most_t = t
            most = at_once
    total = 0.0
    for h in range(ways_a * ways_b):
        for v in range(ends_a * ends_b):
            weight = futures.turn[0][h // ways_b].weight * futures.turn[1][h % ways_b].weight
            if known:
                weight *= futures.level[0][v // ends_b].weight * futures.level[1][v % ends_b].weight
            total += weight * worst[h, v]
    return min(total, 1.0), most_t  # weights add up to 1 but for rounding


@njit(cache=True)
def judge(
    pairs: NDArray[Any], row_of: I4, state: NDArray[Any], motion: NDArray[Any], outlook: Outlook, work: Futures
) -> None:
    """`chance` for many pairs of slots, into the pairs; `row_of` maps a slot to its row in state and motion."""
    for k in range(pairs.size):
        pair = pairs[k]
        i, j = row_of[pair.a], row_of[pair.b]
        a, b = state[i], state[j]
        needed = Needed(pair.reach_m, pair.apart_m, pair.level_ft)
        pair.probability, pair.when_s = chance(a, b, motion[i], motion[j], needed, outlook, work)
