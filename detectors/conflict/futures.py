"""What an aircraft may do next: its ways and the ends of its climb, each with a weight, and where they lead.

A way is a horizontal path: a turn that goes on or ends now, or straight flight. An end is the moment at which a climb
or descent stops: where it is known to (the state's level-off: the selected altitude, or the one being captured), else
at each of the next whole thousands or not at all. probability.py compares the futures of two aircraft.

Positions and altitudes are laid out for BLOCK moments at once, STEP_S apart, so that the compiler can work on several
of them in one instruction. constants.py says where the numbers come from.
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
    DRIFT_HIGH_M,
    DRIFT_LOW_M,
    ENDS,
    HIGH_FT,
    LEVEL_DRIFT_HIGH_FTS,
    LEVEL_DRIFT_LOW_FTS,
    LEVEL_HIGH,
    LEVEL_LOW,
    LEVEL_STD_FT,
    LEVELS_FT,
    PLACE_STD_M,
    SETTLE_NEAR_FT,
    SETTLE_S,
    SETTLE_SHARE,
    SETTLED_STD_FT,
    STEADY_FPM,
    STEP_S,
    TURN_FROM_S,
    TURN_M,
    TURNS_ON,
    WAYS,
)
from watchkeeper.detectors.kernels.approach import State
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# Moments that are worked on at once: the default horizon of 120 s is one block. Their times from its beginning.
BLOCK = 32
MOMENT_S: F8 = np.arange(BLOCK, dtype=np.float64) * STEP_S
# How much is left by then of what a level aircraft is off its level.
_LEFT: F8 = np.exp(-MOMENT_S / SETTLE_S)


class Motion:
    """What an aircraft does beyond its state (detectors/kernels/records.py)."""

    turn_rads: float
    age_s: float
    """Of its last report."""
    free: bool
    """It climbs or descends and nobody knows where that ends."""
    level_ft: float = math.nan
    """The altitude of level flight, averaged; NaN: that of the state."""


class Way:
    """One way that an aircraft may go (detectors/kernels/records.py)."""

    rads: float
    weight: float


class End:
    """One moment at which a climb or descent may end."""

    level_s: float
    weight: float


class Futures(NamedTuple):
    """Room for the futures of two aircraft, one block of moments at a time."""

    turn: NDArray[Any]
    level: NDArray[Any]
    place: F8
    """[aircraft, way, east / north / standard deviation (m), moment]."""
    height: F8
    """[aircraft, end, altitude (ft) / variance (ft2), moment]."""
    near: F8
    """[combination of ways, moment]: how probably they are horizontally too close."""
    vertical: F8
    """[moment, combination of ends]: and vertically."""
    level_mean: F8
    """[moment]: the mean of that over all ends."""
    apart_m: F8
    """[moment]: the distance on one combination of ways."""
    worst: F8
    """[ways, ends]: the highest product of the two so far."""
    before_m: F8
    """[ways]: the distance at the last moment of the block before."""


def futures() -> Futures:
    """Room for one pair."""
    ways_, ends_ = WAYS * WAYS, ENDS * ENDS
    return Futures(
        blank(Way, (2, WAYS)), blank(End, (2, ENDS)), np.zeros((2, WAYS, 3, BLOCK)), np.zeros((2, ENDS, 2, BLOCK)),
        np.zeros((ways_, BLOCK)), np.zeros((BLOCK, ends_)), np.zeros(BLOCK), np.zeros(BLOCK), np.zeros((ways_, ends_)),
        np.zeros(ways_),
    )  # fmt: skip


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
    """When a climb or descent may end (`level_s`, ascending), with weights; returns how many: next levels, or not here.

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
def lay_way(way: Way, high: bool, vx: float, vy: float, age_s: float, hold_s: float, first: int, out: F8) -> None:
    """East, north and standard deviation along one way from moment `first` on: a turn for hold_s, then straight."""
    rads = float(way.rads)
    spread_m = TURN_M * abs(math.degrees(rads))
    drift_m = DRIFT_HIGH_M if high else DRIFT_LOW_M
    begin_s = first * STEP_S
    east_m, north_m, std_m = out[0], out[1], out[2]
    for k in range(BLOCK):
        aged_s = begin_s + MOMENT_S[k] + age_s
        std_m[k] = PLACE_STD_M + drift_m * aged_s * aged_s + spread_m * max(0.0, aged_s - TURN_FROM_S)
    if rads == 0.0:
        for k in range(BLOCK):
            t = begin_s + MOMENT_S[k]
            east_m[k], north_m[k] = vx * t, vy * t
        return
    per_rad = 1.0 / rads
    sin, cos = math.sin(rads * hold_s), math.cos(rads * hold_s)
    x, y = (vx * sin + vy * (1.0 - cos)) * per_rad, (vy * sin - vx * (1.0 - cos)) * per_rad
    u, v = vx * cos + vy * sin, vy * cos - vx * sin
    for k in range(BLOCK):
        rest_s = begin_s + MOMENT_S[k] - hold_s
        east_m[k], north_m[k] = x + u * rest_s, y + v * rest_s
    turning = min(BLOCK, math.ceil(hold_s / STEP_S) - first)
    if turning > 0:
        # one rotation a step instead of a sine and a cosine
        sin, cos = math.sin(rads * begin_s), math.cos(rads * begin_s)
        sin_step, cos_step = math.sin(rads * STEP_S), math.cos(rads * STEP_S)
        for k in range(turning):
            east_m[k], north_m[k] = (
                (vx * sin + vy * (1.0 - cos)) * per_rad,
                (vy * sin - vx * (1.0 - cos)) * per_rad,
            )
            sin, cos = sin * cos_step + cos * sin_step, cos * cos_step - sin * sin_step


@njit(cache=True)
def lay_end(state: State, end: End, motion: Motion, first: int, out: F8) -> None:
    """Altitude and its variance from moment `first` on: a climb until its end, level flight after it."""
    alt_ft, climb_fts, level_s = float(state.alt_ft), float(state.climb_fts), float(end.level_s)
    if abs(climb_fts) * 60.0 < STEADY_FPM:
        # level flight: its rate is noise, and would lead through the next level within minutes
        climb_fts = 0.0
        alt_ft = alt_ft if math.isnan(motion.level_ft) else float(motion.level_ft)
        off_ft = alt_ft - LEVELS_FT * np.rint(alt_ft / LEVELS_FT)
        if alt_ft >= HIGH_FT and abs(off_ft) <= SETTLE_NEAR_FT:
            _settle(alt_ft, off_ft, motion.age_s, first, out)
            return
    drift_fts = LEVEL_DRIFT_HIGH_FTS if alt_ft >= HIGH_FT else LEVEL_DRIFT_LOW_FTS
    begin_s, heights_ft, var_ft2 = first * STEP_S, out[0], out[1]
    for k in range(BLOCK):
        t = begin_s + MOMENT_S[k]
        aged_s = t + motion.age_s
        held_ft = LEVEL_STD_FT + drift_fts * aged_s
        # an aircraft that has levelled off where it was expected to has no uncertainty of climb
        climb_ft = CLIMB_SHARE * climb_fts * aged_s if t < level_s else 0.0
        heights_ft[k] = alt_ft + climb_fts * min(t, level_s)
        var_ft2[k] = held_ft * held_ft + climb_ft * climb_ft


@njit(cache=True)
def _settle(alt_ft: float, off_ft: float, age_s: float, first: int, out: F8) -> None:
    """Level flight near a whole thousand: it comes back to it, the less surely the further off it is."""
    begin = math.exp(-(first * STEP_S + age_s) / SETTLE_S)
    held_ft2, swing_ft = SETTLED_STD_FT * SETTLED_STD_FT, SETTLE_SHARE * off_ft
    heights_ft, var_ft2 = out[0], out[1]
    for k in range(BLOCK):
        back = 1.0 - begin * _LEFT[k]
        heights_ft[k] = alt_ft - off_ft * back
        var_ft2[k] = held_ft2 + swing_ft * back * swing_ft * back
