"""The path of a receiver's fixes against its own velocity: what the position moved by that the velocity does not show.

A step shows in the shortest window, a drift in the longest. Where the receiver tells no velocity, that of its own path
takes its place: a jump shows then, a drift does not.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.constants import (
    ACCEL_MAX,
    ACCEL_MS2,
    ACCEL_S,
    BASE_M,
    CLIP,
    GAP_MS2,
    GAP_S,
    GAP_TIMES,
    HORIZONTAL,
    PAUSE_S,
    RING,
    RING_STEP_S,
    STRAIN_S,
    UPRIGHT,
    VERTICAL,
    WAY_S,
    WINDOWS_S,
    WITHOUT_VELOCITY,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def begin_path(row: Receiver) -> None:
    """Nothing before this fix says anything about the next."""
    row.ring_count = 0
    for k in range(3):
        row.way[k] = row.stray[k] = row.way_change[k] = 0.0


@njit(cache=True)
def look_at_path(row: Receiver, work: Work, dt: float, worse: float, found: F8) -> None:
    """Fill `found` with the size of each window's stray over what is expected; `worse` is the receiver's own factor."""
    for c in range(UPRIGHT + 1 + len(WINDOWS_S)):
        found[c] = 0.0
    if dt > PAUSE_S:
        begin_path(row)
        return
    fix, known = work.fix, row.ring_count > 0
    across, upright = not math.isnan(fix[3] + row.fix[3]), not math.isnan(fix[5] + row.fix[5])
    accel_sq = 0.0
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
        row.stray[k] += gap
    at = (row.ring_count - 1) % RING
    for w in range(1 + len(WINDOWS_S)):
        span_s = dt if w == 0 else WINDOWS_S[w - 1]
        if w > 0:
            at = _before(row, work.t - span_s)
        if not known or at < 0:
            break
        # without a velocity a manoeuvre adds up to as much as an attack
        if across or w <= 2:
            off = math.hypot(row.stray[0] - row.ring[at, 0], row.stray[1] - row.ring[at, 1])
            found[HORIZONTAL + w] = off / (worse * _expected_m(row, across, w, span_s, dt))
        if upright or w <= 2:
            off = abs(row.stray[2] - row.ring[at, 2])
            found[UPRIGHT + w] = off / (worse * VERTICAL * _expected_m(row, upright, w, span_s, dt))
    # this epoch's acceleration counts from the next on
    row.accel_sq += (1.0 - math.exp(-dt / ACCEL_S)) * (min(accel_sq, ACCEL_MAX**2) - row.accel_sq)
    row.strain_sq = max(row.accel_sq, row.strain_sq * math.exp(-dt / STRAIN_S))


@njit(cache=True)
def _expected_m(row: Receiver, told: bool, window: int, span_s: float, dt: float) -> float:
    """Standard deviation of a window's stray before anything is learned, m."""
    if told:
        return float(BASE_M[window] * math.sqrt(1.0 + row.strain_sq / ACCEL_MS2**2))
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
def _before(row: Receiver, t: float) -> int:
    """The newest entry of the ring that is not after t; -1 if the path is shorter."""
    for back in range(min(row.ring_count, RING)):
        at = (row.ring_count - 1 - back) % RING
        if row.ring_t[at] <= t:
            return int(at)
    return -1


@njit(cache=True)
def keep_path(row: Receiver, t: float) -> None:
    """Keep where the path is now, for the windows to come."""
    last = (row.ring_count - 1) % RING
    before = (row.ring_count - 2) % RING
    if row.ring_count < 2 or row.ring_t[last] - row.ring_t[before] >= RING_STEP_S:
        last = row.ring_count % RING
        row.ring_count += 1
    row.ring_t[last] = t
    for k in range(3):
        row.ring[last, k] = row.stray[k]
