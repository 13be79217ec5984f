"""How far the GPS position has moved without a reason that its velocity or the IMU knows, and until when.

From fix to fix the position moves by something else than the filter says. Over the last seconds this adds up to
`shift`: a few metres on a healthy receiver, the whole bias on a spoofed one. While a verdict is latched nothing of it
is forgotten, and it grows only as long as the GPS's own position and velocity contradict each other: what strays slowly
after that is no part of it. When the filter takes the GPS as true in the end, the shift is kept as `away`: the position
is not re-established until the fixes come back by as much. Called by fix.py and verdict.py for each fix; metres in
north-east-down.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.constants import (
    AWAY_LEVELS,
    AWAY_SIGMA,
    DISPLACED_M,
    GATE,
    KNOWN,
    PAUSE_S,
    PULL_S,
    RETURN_M,
    RETURN_PART,
    RETURN_S,
    SHIFT_S,
    SURE_POSITION,
    VERTICAL_POSITION,
)
from watchkeeper.detectors.gps_imu.eskf import POS
from watchkeeper.detectors.gps_imu.state import (
    AGAINST,
    AGAINST_VERTICAL,
    DRIFT,
    JUMP,
    LIES,
    NOISE,
    POSITION,
    STEP,
    STOOD_GPS,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# Channels in which the position parts from its own velocity.
PARTS = 1 << JUMP | 1 << STEP | 1 << AGAINST | 1 << AGAINST_VERTICAL


@njit(cache=True)
def add_shift(row: Vehicle, par: Settings, work: Work, sigma: F8, dt: float) -> None:
    """Before the update: by how much this fix has moved without a reason since the last."""
    told = not math.isnan(work.residual[3])
    jump = work.ratio[JUMP] >= GATE
    if not told:
        north, east = work.residual[0] - row.left[0], work.residual[1] - row.left[1]
        jump = math.sqrt(north * north + east * east) >= par.lasting_m
    # a jump stands for itself: what strayed before is no part of it; and without a velocity the filter itself strays
    keep = 0.0 if jump or not told else math.exp(-dt / SHIFT_S)
    # over a pause the filter knows for some seconds where it is; position and velocity were not compared then
    paused = dt >= PAUSE_S
    if paused and _std(row, 0.0) >= SURE_POSITION:
        row.shift[:] = 0.0
        return
    calm = row.latched == 0 and row.suspect_run == 0
    if calm:
        row.jumped_away = 0
    if jump or _contradicts(par, work, sigma, AGAINST):
        row.jumped_away = 1
    # where neither position nor velocity is fused the filter coasts on the IMU
    coasting = told and row.held & (1 << VELOCITY | 1 << DRIFT) != 0 and row.held & (1 << POSITION) != 0
    sinking = not math.isnan(work.residual[5]) and row.held & (1 << VERTICAL) != 0
    # of fixes that scatter every step counts, or the sum of those that do is a walk to nowhere
    scatters = jump or sigma[NOISE] >= par.threshold
    # next to a velocity that lies every step looks like a jump: the IMU's word counts alone
    believed = row.lying == LIES and work.ratio[POSITION] < GATE
    for k in range(3):
        step = work.residual[k] - row.left[k]
        if math.isnan(step) or row.stood != 0 or (believed and k < 2):
            continue
        against = scatters or _contradicts(par, work, sigma, AGAINST_VERTICAL if k == 2 else AGAINST)
        if not told:
            against = jump or row.latched == 0  # the filter soon knows too little: only what happens at once counts
        if calm:
            row.shift[k] = keep * row.shift[k] + step
        elif against and (sinking if k == 2 else coasting):
            row.shift[k] += row.gap[k]
        elif against or paused or (coasting and row.jumped_away == 0):
            row.shift[k] += step


@njit(cache=True)
def _contradicts(par: Settings, work: Work, sigma: F8, channel: int) -> bool:
    """Whether the GPS's own position and velocity do not belong together, now or in the last seconds."""
    contradicts: bool = work.ratio[channel] >= GATE or sigma[channel] >= par.threshold
    return contradicts


@njit(cache=True)
def forget_pull(row: Vehicle, dt: float) -> None:
    """After long what the position was pulled by means nothing any more."""
    row.pulled_s += dt
    if row.pulled_s > PULL_S:
        row.pulled[:] = 0.0


@njit(cache=True)
def note_left(row: Vehicle, work: Work, before: F8) -> None:
    """After the update, which moved the filter from `before`: how far from it the fix is left."""
    for k in range(3):
        left = work.residual[k] - (row.pos[k] - before[k])
        row.left[k] = 0.0 if math.isnan(left) else left


@njit(cache=True)
def _total(row: Vehicle, work: Work) -> float:
    """Fill `work.total` with where the fix is, seen from the last position that was established; its length."""
    total = work.total
    for k in range(3):
        total[k] = row.away[k] + row.shift[k]
    return _length(total[0], total[1], total[2])


@njit(cache=True)
def _length(north: float, east: float, down: float) -> float:
    """How far that is; vertical metres count half, because GPS is worse there."""
    return math.sqrt(north * north + east * east + (down / VERTICAL_POSITION) ** 2)


@njit(cache=True)
def _std(row: Vehicle, variance: float) -> float:
    """Standard deviation of the filter's horizontal position, with that of a fix."""
    return math.sqrt(max(row.cov[POS, POS], row.cov[POS + 1, POS + 1]) + variance)


@njit(cache=True)
def look_after_outage(row: Vehicle, fix: F8) -> None:
    """The GPS is back after a long pause: a displaced position may have come back meanwhile."""
    near = max(RETURN_M, RETURN_PART * row.farthest)
    if row.away_t == 0.0 or _std(row, 0.0) >= near:
        return
    north, east = row.away[0] + fix[0] - row.pos[0], row.away[1] + fix[1] - row.pos[1]
    if math.sqrt(north * north + east * east) < near:
        forget_displacement(row)


@njit(cache=True)
def has_returned(row: Vehicle, par: Settings, work: Work, dt: float) -> bool:
    """Whether a position that had been displaced is back where it was, and stays there.

    Less than what would be kept as a displacement is nothing to return from: other rules end such a verdict.
    """
    total = _total(row, work)
    row.farthest = max(row.farthest, total)
    near = max(RETURN_M, RETURN_PART * row.farthest)
    back = row.farthest >= max(par.lasting_m, near) and total < near
    row.back_s = row.back_s + dt if back or _undoes_pull(row) else 0.0
    return row.back_s >= RETURN_S and row.self_s >= RETURN_S


@njit(cache=True)
def is_displaced(row: Vehicle, par: Settings, work: Work) -> bool:
    """Whether the position left its own velocity since the latch and has not come back, by less than what is kept.

    A filter that agrees with it by now has only followed.
    """
    if row.blamed & PARTS == 0 or row.stood != 0 or row.lying == LIES or math.isnan(work.residual[3]):
        return False
    far = _total(row, work)
    return bool(row.farthest >= DISPLACED_M and RETURN_PART * row.farthest <= far < par.lasting_m)


@njit(cache=True)
def _undoes_pull(row: Vehicle) -> bool:
    """Whether the position came back by what it may have been pulled away before, or since then at the same rate."""
    pulled, shift = row.pulled, row.shift
    square = pulled[0] ** 2 + pulled[1] ** 2 + (pulled[2] / VERTICAL_POSITION) ** 2
    if square == 0.0:
        return False
    along = pulled[0] * shift[0] + pulled[1] * shift[1] + pulled[2] * shift[2] / VERTICAL_POSITION**2
    times = min(max(1.0, -along / square), 1.0 + row.pulled_s / row.pulling_s)
    left = _length(times * pulled[0] + shift[0], times * pulled[1] + shift[1], times * pulled[2] + shift[2])
    return bool(left < RETURN_PART * times * math.sqrt(square))


@njit(cache=True)
def keep_displacement(row: Vehicle, par: Settings, work: Work) -> bool:
    """The filter takes the fix as true: keep how far it is displaced, if that is more than the sensors' own errors.

    Nothing is kept of a vehicle that is hardly known: receivers find their position then, by tens of metres.
    """
    least, std = AWAY_LEVELS * row.usual[AGAINST] * math.sqrt(work.variance[0]), _std(row, work.variance[0])
    told = not math.isnan(work.residual[3])
    if row.stood != 0 or row.jumped_away == 0 or not told:
        least = AWAY_SIGMA * std  # the filter coasted on the IMU alone
    if row.stood != 0:
        # that tells something for some seconds, and nothing if the IMU stood still
        for k in range(3):
            row.shift[k] = row.left[k] if row.stood == STOOD_GPS and std < SURE_POSITION else 0.0
    total = _total(row, work)
    if row.good_s < KNOWN * par.warmup_s:
        forget_displacement(row)
        return False
    small = total < max(par.lasting_m, least)
    if small or (row.jumped_away == 0 and row.stood == 0 and row.away_t == 0.0):
        if row.taken == 1 and total < RETURN_M:
            row.shift[:] = 0.0  # believed a moment ago: what it was pulled by until then is still to be known
            return False
        # a few metres, or position and velocity of the GPS agreed all the time: it may as well be the IMU that was
        # wrong. Nothing that lasts, but when the position goes back by as much, that is no new displacement either
        forget_displacement(row)
        if row.stood == 0 and total >= RETURN_M:
            for k in range(3):
                row.pulled[k] = work.total[k]
            row.pulled_s, row.pulling_s = 0.0, max(row.fix_t - row.latched_t, 1.0)
        return False
    for k in range(3):
        row.away[k] = work.total[k]
        row.shift[k] = row.pulled[k] = 0.0
    if row.away_t == 0.0:
        row.away_t = row.latched_t
    row.farthest = total
    return True


@njit(cache=True)
def forget_displacement(row: Vehicle) -> None:
    """The position is established."""
    row.away[:] = 0.0
    row.shift[:] = 0.0
    row.pulled[:] = 0.0
    row.away_t = row.farthest = row.back_s = 0.0
