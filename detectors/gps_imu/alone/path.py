"""The path of a receiver's fixes against its own velocity: what the position moved by that the velocity does not show.

A step shows in the shortest window, a drift in the longest. Where the receiver tells no velocity, that of its own path
takes its place: a jump shows then, a drift does not.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.constants import (
    ACCEL_MAX,
    ACCEL_S,
    BASE_M,
    CLIP,
    EPOCH_MAX_S,
    FAR,
    FAR_STEP_S,
    GAP_MS2,
    GAP_S,
    GAP_TIMES,
    HORIZONTAL,
    LEAD_PRIOR_SQ,
    NEAR_S,
    PAUSE_S,
    RING,
    RING_STEP_S,
    SHORT,
    STEP_LEAST_M,
    STEP_PART,
    STEP_S,
    STEP_TIMES,
    STRAIN_S,
    STRAIN_SQ,
    TIMING,
    UPRIGHT,
    VERTICAL,
    WAY_S,
    WINDOWS_S,
    WITHOUT_VELOCITY,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.constants import LEAD_MAX, LEAD_S
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def begin_path(row: Receiver) -> None:
    """Nothing before this fix says anything about the next."""
    row.ring_count = row.far_count = 0
    row.doubt_sq = 0.0
    row.step_t[:] = 0.0
    for k in range(3):
        row.way[k] = row.stray[k] = row.way_change[k] = 0.0


@njit(cache=True)
def look_at_path(row: Receiver, work: Work, dt: float, worse: float, found: F8, grown: F8) -> None:
    """Fill `found` with the size of each window's stray over what is expected at rest, -1 where there is none.

    `grown` is how many times as much, squared, is expected as the vehicle moves; `worse` the receiver's own factor.
    """
    for c in range(TIMING):
        found[c], grown[c] = -1.0, 1.0
    if dt > PAUSE_S:
        begin_path(row)
        return
    fix, known = work.fix, row.ring_count > 0
    across, upright = not math.isnan(fix[3] + row.fix[3]), not math.isnan(fix[5] + row.fix[5])
    accel_sq = along = square = 0.0
    loose_mps = work.loose_mps + row.loose_mps
    if dt > max(GAP_S, GAP_TIMES * row.interval):
        # nobody knows what the velocity did in a gap
        row.strain_sq = max(row.strain_sq, (GAP_MS2 * dt) ** 2)
    for k in range(3):
        told = upright if k == 2 else across
        gap = fix[k] - row.fix[k] - dt * (0.5 * (fix[3 + k] + row.fix[3 + k]) if told else row.way[k])
        if math.isnan(gap):
            gap = 0.0
        if told:
            change = fix[3 + k] - row.fix[3 + k]
        elif known:
            change = _follow(row, k, gap, dt)
        else:
            row.way[k], change, gap = gap / dt, 0.0, 0.0
        accel_sq += (change / dt) ** 2
        row.stray[k] += gap - (row.lead_s * change if told else 0.0)
        # an attack must not teach it
        usual = abs(gap) < CLIP * BASE_M[0] * math.sqrt(row.usual_sq[0, 0]) + LEAD_MAX * abs(change)
        if told and k < 2 and loose_mps == 0.0 and usual:
            along += gap * change
            square += change * change
    keep = math.exp(-dt / LEAD_S)
    row.lead_sum, row.lead_weight = keep * row.lead_sum + along, keep * row.lead_weight + square
    row.lead_s = min(max(row.lead_sum / (row.lead_weight + LEAD_PRIOR_SQ), -LEAD_MAX), LEAD_MAX)
    row.accel_sq += (1.0 - math.exp(-dt / ACCEL_S)) * (min(accel_sq, ACCEL_MAX**2) - row.accel_sq)
    row.strain_sq = max(row.accel_sq, row.strain_sq * math.exp(-dt / STRAIN_S))
    # beyond a g or so receivers lose satellites, and their tracking loops lag
    harder = 1.0 + min(1.0, math.sqrt(row.strain_sq) / GRAVITY_MS2)
    row.doubt_sq += STRAIN_SQ * row.strain_sq * harder * harder * dt
    # a mean of two velocities is not the one between: by as much as an acceleration that comes and goes meanwhile does
    row.doubt_sq += row.strain_sq * (dt * dt / 12.0) ** 2
    if known:
        _look_back(row, work, dt, worse, across, upright, found, grown)


@njit(cache=True)
def _look_back(
    row: Receiver, work: Work, dt: float, worse: float, across: bool, upright: bool, found: F8, grown: F8
) -> None:  # fmt: skip
    """The stray over one epoch, and over each window that the path is long enough for."""
    at, then = (row.ring_count - 1) % RING, work.then
    for w in range(1 + len(WINDOWS_S)):
        span_s = dt if w == 0 else WINDOWS_S[w - 1]
        near = span_s <= NEAR_S
        if w > 0 and near:
            at = _before(row.ring_t, row.ring_count, work.t - span_s)
        elif w > 0:
            at = _before(row.far_t, row.far_count, work.t - span_s)
        if at < 0:
            break
        for k in range(4):
            then[k] = row.ring[at, k] if near else row.far[at, k]
        doubt_sq = row.doubt_sq - then[3]
        if w == 0 and dt > EPOCH_MAX_S:
            continue
        # without a velocity a manoeuvre adds up to as much as an attack
        if across or w <= SHORT:
            expected = _expected_m(row, across, w, span_s, dt)
            off = math.hypot(row.stray[0] - then[0], row.stray[1] - then[1])
            found[HORIZONTAL + w] = off / (worse * expected)
            grown[HORIZONTAL + w] = 1.0 + doubt_sq / (expected * expected)
        if upright or w <= SHORT:
            expected = _expected_m(row, upright, w, span_s, dt)
            found[UPRIGHT + w] = abs(row.stray[2] - then[2]) / (worse * VERTICAL * expected)
            grown[UPRIGHT + w] = 1.0 + doubt_sq / (expected * expected)


@njit(cache=True)
def look_for_step(row: Receiver, t: float, ratio: F8, which: int) -> float:
    """The size of a step (0 horizontal, 1 vertical) of the last seconds that has not gone back, in limits of an epoch.

    One epoch over its limit is an outlier if the next one goes back, and evidence for as long as it does not.
    """
    low, high = (2, 3) if which == 1 else (0, 2)
    if math.isnan(row.fix[5] if which == 1 else row.fix[3]):
        return 0.0  # where no velocity is told, every manoeuvre is a step
    now, last = ratio[UPRIGHT if which == 1 else HORIZONTAL], (row.ring_count - 1) % RING
    if now >= 1.0 and row.ring_count > 0 and (row.step_t[which] == 0.0 or now > row.step_ratio[which]):
        row.step_t[which], row.step_ratio[which] = t, now
        for k in range(low, high):
            row.step_from[k], row.step_to[k] = row.ring[last, k], row.stray[k]
    if row.step_t[which] == 0.0:
        return 0.0
    along = whole = 0.0
    for k in range(low, high):
        step = row.step_to[k] - row.step_from[k]
        along += (row.stray[k] - row.step_from[k]) * step
        whole += step * step
    least_m = STEP_LEAST_M * (VERTICAL if which == 1 else 1.0)
    if along < STEP_PART * whole or whole < least_m * least_m:
        row.step_t[which] = 0.0
        return 0.0
    if t - row.step_t[which] > STEP_S:
        _take_out(row, which)
        return 0.0
    return float(row.step_ratio[which] / STEP_TIMES)


@njit(cache=True)
def _take_out(row: Receiver, which: int) -> None:
    """A step that stayed has been said: the path before it moves as well, so that no window keeps it for long."""
    for k in range(3):
        if (k == 2) != (which == 1):
            continue
        step = row.step_to[k] - row.step_from[k]
        for at in range(RING):
            if row.ring_t[at] < row.step_t[which]:
                row.ring[at, k] += step
        for at in range(FAR):
            if row.far_t[at] < row.step_t[which]:
                row.far[at, k] += step
    row.step_t[which] = 0.0


@njit(cache=True)
def _expected_m(row: Receiver, told: bool, window: int, span_s: float, dt: float) -> float:
    """Standard deviation of a window's stray before anything is learned, m."""
    if told:
        return float(BASE_M[window])
    # the velocity of the path is late by an epoch and its own memory
    late = (dt + WAY_S) * span_s
    return float(math.sqrt((WITHOUT_VELOCITY * BASE_M[window]) ** 2 + row.strain_sq * late * late))


@njit(cache=True)
def _follow(row: Receiver, k: int, gap: float, dt: float) -> float:
    """Let the velocity of the path follow the fixes on one axis; how much it changed as long as it does not jump."""
    # an epoch that jumps says nothing about the velocity, and a manoeuvre lasts longer than one epoch
    most = CLIP * _expected_m(row, False, 0, dt, dt)
    change = (1.0 - math.exp(-dt / WAY_S)) * min(max(gap, -most), most) / dt
    row.way[k] += change
    before, row.way_change[k] = row.way_change[k], change
    return float(min(abs(change), abs(before)))


@njit(cache=True)
def _before(ring_t: F8, count: int, t: float) -> int:
    """The newest entry of a ring that is not after t; -1 if the path is shorter."""
    size = ring_t.size
    for back in range(min(count, size)):
        at = (count - 1 - back) % size
        if ring_t[at] <= t:
            return int(at)
    return -1


@njit(cache=True)
def keep_path(row: Receiver, t: float) -> None:
    """Keep where the path is now, for the windows to come."""
    row.ring_count = _keep(row, row.ring_t, row.ring, row.ring_count, RING_STEP_S, t)
    row.far_count = _keep(row, row.far_t, row.far, row.far_count, FAR_STEP_S, t)


@njit(cache=True)
def _keep(row: Receiver, ring_t: F8, ring: F8, count: int, step_s: float, t: float) -> int:
    """Put it into one ring, over the last entry if that is too near to the one before; how many there are then."""
    size = ring_t.size
    last, before = (count - 1) % size, (count - 2) % size
    if count < 2 or ring_t[last] - ring_t[before] >= step_s:
        last = count % size
        count += 1
    ring_t[last] = t
    for k in range(3):
        ring[last, k] = row.stray[k]
    ring[last, 3] = row.doubt_sq
    return count
