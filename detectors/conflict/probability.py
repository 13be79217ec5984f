"""The probability that two aircraft lose separation within the horizon. What `conflict` alarms on.

A straight line is right about most losses of separation, but most of what it announces never happens: aircraft turn,
level off, and are kept apart by people whose plan is not in the data. So the pairs that the scan finds are judged
again, each on its own predicted paths:
- a turn goes on at the measured rate for `turn_hold_s` and is straight flight after that, or it ends now;
- a climb ends where it is known to end (the state's level-off: the selected altitude, or the one being captured);
- where it is not known, it may end at each of the next whole thousands or go on: at each with the probability with
  which aircraft level off there, and at the last one before the other aircraft's level with `level_off` at least,
  because that is where a controller stops it; at none that is too near to be captured at the present rate (CAPTURE);
- where an aircraft will be is uncertain, the more the further ahead, the older its report, the lower it flies and the
  tighter its turn; most fly as predicted, and some do something else (TAIL): no bell curve has so narrow a middle and
  such wide ends;
- a level aircraft stays level: a climb under STEADY_FPM is noise;
- the further ahead, the likelier it is that a flight does what nothing in its motion tells (PLAN_S).

What people do about a loss that they foresee is no part of it: this is the probability if nobody acts, and detector.py
asks the more of it the further ahead the loss is.

So each aircraft has several futures, each with a weight. For each combination of two, every STEP_S along the paths:
probability of being horizontally too close, times that of being vertically too close. The errors at neighbouring times
are the same errors, so the largest of these counts; the answer is their mean over all combinations by weight, and a
little more, because errors do change: a pair that is safe at the worst moment may lose separation at another (EVER).
constants.py says where the numbers come from.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import EVER, FAR_STD, HIGH_FT, PLAN_S, STEP_S, TAIL, TAIL_WIDER
from watchkeeper.detectors.conflict.futures import BLOCK, Futures, Motion, ends, lay_end, lay_way, ways
from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, State, travel
from watchkeeper.detectors.kernels.kinds import AIRCRAFT
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import WGS84_E2
from watchkeeper.streams.kernels import njit

_D = 1.0 / (1.0 - WGS84_E2)


class Outlook(NamedTuple):
    """How far ahead, and what aircraft do meanwhile; see config/detectors/conflict.py."""

    horizon_s: float
    turn_hold_s: float
    level_off: float
    step_ft: float = 0.0
    """How much of the step of altitude is put back that was taken off the vertical minima (STEP_SHARE)."""


class Asked(NamedTuple):
    """How probable a loss must be to count as a conflict; see config/detectors/conflict.py."""

    near: float
    high_ratio: float
    far: float
    act_s: float
    act_high_s: float


class Needed(NamedTuple):
    """The minima that hold for a pair."""

    separation_m: float
    """Too close until the closest approach, and"""
    apart_m: float
    """after it: the same, unless a tau makes the first larger (kernels/approach.py)."""
    vertical_ft: float


def _share_below(x: float) -> float:
    """The share of predictions that are off by less than x standard deviations: most as predicted, some not at all."""

    def normal(z: float) -> float:
        return 0.5 * math.erfc(-z * math.sqrt(0.5))

    return (1.0 - TAIL) * normal(x) + TAIL * normal(x / TAIL_WIDER)


# That function in steps of 1/64 from -20 to 20: a line between two of them is off by 1e-5 at most, and it is asked for
# up to twenty times at each moment of each pair.
_FINE, _END = 64.0, 20.0
_BELOW: F8 = np.array([_share_below(k / _FINE - _END) for k in range(int(2.0 * _END * _FINE) + 2)])


@njit(cache=True, inline="always")
def _below(x: float) -> float:
    """`_share_below`, from the table."""
    at = (min(max(x, -_END), _END) + _END) * _FINE
    k = int(at)
    return float(_BELOW[k] + (at - k) * (_BELOW[k + 1] - _BELOW[k]))


@njit(cache=True)
def chance(
    a: State, b: State, motion_a: Motion, motion_b: Motion, needed: Needed, outlook: Outlook, futures: Futures
) -> tuple[float, float]:
    """Probability of a loss within the horizon, and when (s) it first is at least half as likely as at its worst.

    States as in kernels/approach.py, `futures` is room to work in. Symmetric in a and b.
    """
    plane = _on_a_plane(a, b, outlook.horizon_s)
    turn_a, turn_b, level_a, level_b = futures.turn[0], futures.turn[1], futures.level[0], futures.level[1]
    ways_a, ways_b = ways(motion_a, turn_a), ways(motion_b, turn_b)
    known = not math.isnan(a.alt_ft + b.alt_ft)
    high_a, high_b = a.alt_ft >= HIGH_FT, b.alt_ft >= HIGH_FT
    ends_a = ends(a, motion_a.free, b, needed.vertical_ft, outlook.level_off, level_a) if known else 1
    ends_b = ends(b, motion_b.free, a, needed.vertical_ft, outlook.level_off, level_b) if known else 1
    if not known:
        level_a[0].weight = level_b[0].weight = 1.0
    for h in range(ways_a * ways_b):
        futures.before_m[h] = math.inf
        for v in range(ends_a * ends_b):
            futures.worst[h, v] = 0.0
    limit_ft, most, most_t = needed.vertical_ft + outlook.step_ft - ON_LIMIT_FT, 0.0, math.nan
    steps = int(outlook.horizon_s / STEP_S) + 1
    for first in range(0, steps, BLOCK):
        count = min(BLOCK, steps - first)
        for k in range(ways_a):
            lay_way(
                turn_a[k],
                high_a,
                plane.va_e,
                plane.va_n,
                motion_a.age_s,
                outlook.turn_hold_s,
                first,
                futures.place[0, k],
            )
        for k in range(ways_b):
            lay_way(
                turn_b[k],
                high_b,
                plane.vb_e,
                plane.vb_n,
                motion_b.age_s,
                outlook.turn_hold_s,
                first,
                futures.place[1, k],
            )
        low, high = _horizontal(plane, ways_a, ways_b, needed, first, count, futures)
        if low >= high:
            continue
        if known:
            for k in range(ends_a):
                lay_end(a, level_a[k], motion_a, first, futures.height[0, k])
            for k in range(ends_b):
                lay_end(b, level_b[k], motion_b, first, futures.height[1, k])
            _vertical(ends_a, ends_b, limit_ft, first, low, high, futures)
        else:
            futures.vertical[:, 0], futures.level_mean[:] = 1.0, 1.0
        most, most_t = _worst(ways_a, ways_b, ends_a * ends_b, first, low, high, (most, most_t), futures)
    total = 0.0
    for h in range(ways_a * ways_b):
        weight = float(turn_a[h // ways_b].weight * turn_b[h % ways_b].weight)
        for i in range(ends_a):
            for j in range(ends_b):
                total += weight * level_a[i].weight * level_b[j].weight * futures.worst[h, i * ends_b + j]
    total = min(total, 1.0)  # weights add up to 1 but for rounding
    if (high_a and high_b) or a.kind != AIRCRAFT or b.kind != AIRCRAFT:
        return total, most_t
    return 1.0 - (1.0 - total) ** EVER, most_t


class Plane(NamedTuple):
    """Where two aircraft are on a plane, the first from the second, and how each of them moves; m and m/s."""

    x0: float
    y0: float
    va_e: float
    va_n: float
    vb_e: float
    vb_n: float


@njit(cache=True)
def _on_a_plane(a: State, b: State, horizon_s: float) -> Plane:
    """Two aircraft on the plane that touches the Earth midway between them, now."""
    half = 0.5 * horizon_s
    ax, ay, az, avx, avy, avz = travel(a.x_m, a.y_m, a.z_m, a.vx_ms, a.vy_ms, a.vz_ms, -half)
    bx, by, bz, bvx, bvy, bvz = travel(b.x_m, b.y_m, b.z_m, b.vx_ms, b.vy_ms, b.vz_ms, -half)
    # up, east, north (at a pole any direction is east)
    ux, uy, uz = ax + bx, ay + by, _D * (az + bz)
    length = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / length, uy / length, uz / length
    level = math.sqrt(ux * ux + uy * uy)
    ex, ey = (-uy / level, ux / level) if level > 1e-12 else (0.0, 1.0)
    nx, ny, nz = -uz * ey, uz * ex, ux * ey - uy * ex
    return Plane(
        (ax - bx) * ex + (ay - by) * ey, (ax - bx) * nx + (ay - by) * ny + (az - bz) * nz,
        avx * ex + avy * ey, avx * nx + avy * ny + avz * nz, bvx * ex + bvy * ey, bvx * nx + bvy * ny + bvz * nz,
    )  # fmt: skip


@njit(cache=True)
def _horizontal(
    plane: Plane, ways_a: int, ways_b: int, needed: Needed, first: int, count: int, futures: Futures
) -> tuple[int, int]:
    """How probably they are horizontally too close, into `near`; from which moment to which that is not 0."""
    low, high = count, 0
    apart_m = futures.apart_m
    decay = math.exp(-STEP_S / PLAN_S)
    limit_m, later_m = needed.separation_m - ON_LIMIT_M, needed.apart_m - ON_LIMIT_M
    for h in range(ways_a * ways_b):
        near = futures.near[h]
        one_e, one_n, one_std = futures.place[0, h // ways_b]
        other_e, other_n, other_std = futures.place[1, h % ways_b]
        for k in range(count):
            x, y = plane.x0 + one_e[k] - other_e[k], plane.y0 + one_n[k] - other_n[k]
            apart_m[k] = math.sqrt(x * x + y * y)
        if later_m == limit_m:
            for k in range(count):
                # not `/`, which asks each time whether this is 0 and so takes them one by one
                std_m = math.sqrt(one_std[k] * one_std[k] + other_std[k] * other_std[k])
                near[k] = np.true_divide(limit_m - apart_m[k], std_m)
        else:
            before_m = futures.before_m[h]
            for k in range(count):
                std_m = math.sqrt(one_std[k] * one_std[k] + other_std[k] * other_std[k])
                near[k] = ((limit_m if apart_m[k] <= before_m else later_m) - apart_m[k]) / std_m
                before_m = apart_m[k]
            futures.before_m[h] = before_m
        as_it_flies = math.exp(-first * STEP_S / PLAN_S)
        for k in range(count):
            if near[k] >= -FAR_STD:
                low, high = min(low, k), max(high, k + 1)
                near[k] = as_it_flies * _below(near[k])
            else:
                near[k] = 0.0
            as_it_flies *= decay
    return low, high


@njit(cache=True)
def _vertical(ends_a: int, ends_b: int, limit_ft: float, first: int, low: int, high: int, futures: Futures) -> None:
    """How probably they are vertically too close in these moments, for every combination of ends, and on average."""
    vertical, mean, gap, last = futures.vertical, futures.level_mean, futures.apart_m, ends_a * ends_b - 1
    mean[low:high] = 0.0
    # backwards: until one of two ends has come, they are what the last ones are, and those never come before the others
    for v in range(last, -1, -1):
        end_a, end_b = futures.level[0][v // ends_b], futures.level[1][v % ends_b]
        one_ft, one_var = futures.height[0, v // ends_b]
        other_ft, other_var = futures.height[1, v % ends_b]
        weight = float(end_a.weight * end_b.weight)
        start = low
        if v < last:
            come_s = min(end_a.level_s, end_b.level_s)
            while start < high and (first + start) * STEP_S < come_s:
                vertical[start, v] = vertical[start, last]
                mean[start] += weight * vertical[start, v]
                start += 1
        _margins(one_ft[start:high], one_var[start:high], other_ft[start:high], other_var[start:high], limit_ft, gap)
        for k in range(start, high):
            p = _below(gap[k - start])
            vertical[k, v] = p
            mean[k] += weight * p


@njit(cache=True)
def _margins(one_ft: F8, one_var: F8, other_ft: F8, other_var: F8, limit_ft: float, out: F8) -> None:
    """By how many standard deviations two aircraft are closer than the limit. From 0 on, so that it is vectorised."""
    for k in range(one_ft.size):
        std_ft = math.sqrt(one_var[k] + other_var[k])
        out[k] = np.true_divide(limit_ft - abs(one_ft[k] - other_ft[k]), std_ft)


@njit(cache=True)
def _worst(
    ways_a: int, ways_b: int, ends: int, first: int, low: int, high: int, so_far: tuple[float, float], futures: Futures
) -> tuple[float, float]:
    """Keep the worst of each combination in these moments.

    Returns the highest probability over all of them at one moment, and when it first was half as high as at its worst.
    """
    most, most_t = so_far
    some = futures.apart_m
    some[low:high] = 0.0
    for h in range(ways_a * ways_b):
        near, worst = futures.near[h], futures.worst[h]
        weight = float(futures.turn[0][h // ways_b].weight * futures.turn[1][h % ways_b].weight)
        for k in range(low, high):
            p = near[k]
            if p > 0.0:
                some[k] += weight * p
                vertical = futures.vertical[k]
                for v in range(ends):
                    worst[v] = max(worst[v], p * vertical[v])
    for k in range(low, high):
        at_once = some[k] * futures.level_mean[k]
        if at_once > most:
            if not most >= 0.5 * at_once:
                most_t = (first + k) * STEP_S
            most = at_once
    return most, most_t


@njit(cache=True)
def judge(
    pairs: NDArray[Any],
    row_of: I4,
    state: NDArray[Any],
    motion: NDArray[Any],
    outlook: Outlook,
    asked: Asked,
    work: Futures,
) -> None:
    """`chance` for many pairs of slots, into the pairs, and what is asked of it; `row_of` maps a slot to its row."""
    for k in range(pairs.size):
        pair = pairs[k]
        i, j = row_of[pair.a], row_of[pair.b]
        a, b = state[i], state[j]
        needed = Needed(pair.reach_m, pair.apart_m, pair.level_ft)
        pair.probability, pair.when_s = chance(a, b, motion[i], motion[j], needed, outlook, work)
        high = a.alt_ft >= HIGH_FT and b.alt_ft >= HIGH_FT
        pair.asked = _asked(pair.when_s, high, asked)


@njit(cache=True)
def _asked(when_s: float, high: bool, asked: Asked) -> float:
    """The threshold for a loss so far ahead: it rises with the time, up to `far`."""
    near, act_s = (asked.near * asked.high_ratio, asked.act_high_s) if high else (asked.near, asked.act_s)
    if math.isnan(when_s):
        return near
    return max(near, min(asked.far, near * math.exp(when_s / act_s)))
