"""The batched loop over the fixes of all vehicles, each receiver by itself: with or without an IMU next to it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.alone.constants import (
    BEAT_AND_PATH,
    EPOCHS_MIN,
    GOOD_MS2,
    HORIZONTAL,
    PAUSE_S,
    STATISTICS,
    TIMING_STD_S,
    UPRIGHT,
    WINDOWS_S,
)
from watchkeeper.detectors.gps_imu.alone.constants import TIMING as BEAT
from watchkeeper.detectors.gps_imu.alone.levels import expect_levels, learn_levels, over_limit
from watchkeeper.detectors.gps_imu.alone.path import begin_path, keep_path, look_at_path, look_for_step
from watchkeeper.detectors.gps_imu.alone.repeats import look_for_freeze, look_for_replay
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.alone.words import interference, is_blind, lasting_loss, octaves_lost
from watchkeeper.detectors.gps_imu.kernel import Rows
from watchkeeper.detectors.gps_imu.read import has_changed, hold_course, read_fix, remember
from watchkeeper.detectors.gps_imu.receiver import fix_timing
from watchkeeper.detectors.gps_imu.state import (
    ACCURACY,
    AGAINST,
    AGAINST_VERTICAL,
    CHANNELS,
    FREEZE,
    INTERFERENCE,
    JUMP,
    REPLAY,
    STEP,
    TIMING,
    Settings,
    Work,
)
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.kernels import njit


class Seen(NamedTuple):
    """Of each fix the sigma by [fix, channel], and whether enough is known of the receiver for it to be judged.

    `found`, `grown` and `ratio` are working space: statistics, what a manoeuvre adds, and each as a part of its limit.
    """

    sigma: F8
    known: Bool
    found: F8
    grown: F8
    ratio: F8


def blank_seen(fixes: int) -> Seen:
    """Room for so many fixes."""
    return Seen(
        np.zeros((fixes, len(CHANNELS))), np.zeros(fixes, bool), np.zeros(STATISTICS), np.ones(STATISTICS),
        np.zeros(STATISTICS),
    )  # fmt: skip


@njit(cache=True)
def watch_receivers(
    table: NDArray[Any], work: NDArray[Any], par: Settings, gps: Rows, seen: Seen
) -> None:  # fmt: skip
    """Judge every fix by what its receiver has shown; rows are sorted by vehicle and time."""
    slot, t = gps.slot, gps.t
    for i in range(t.size):
        row = table[slot[i]]
        if row.heard_t > 0.0 and t[i] <= row.heard_t:
            continue
        row.heard_t = t[i]
        seen.known[i] = _take(row, work[0], par, t[i], gps.data, i, seen)


@njit(cache=True)
def _take(row: Receiver, work: Work, par: Settings, t: float, data: F8, i: int, seen: Seen) -> bool:
    """One fix; fills its sigmas and says whether the receiver is known well enough."""
    sigma, found, grown, ratio = seen.sigma[i], seen.found, seen.grown, seen.ratio
    work.t = t
    dt = t - row.fix_t
    known = row.good_s >= par.warmup_s
    sigma[INTERFERENCE] = par.weight[INTERFERENCE] * par.threshold * interference(row, data, i, min(dt, PAUSE_S))
    if is_blind(data, i) or not read_fix(row, par, data, i, work.fix):
        begin_path(row)
        row.poor_s = 0.0
        return False
    hold_course(row, work)
    expect_levels(row)
    if row.fix_t == 0.0:
        remember(row, work, data, i, t)
        keep_path(row, t)
        return False
    healthy = row.poor_s == 0.0 and row.warned_s == 0.0
    octaves = octaves_lost(row, data, i, min(dt, PAUSE_S), healthy)
    sigma[ACCURACY] = par.threshold * lasting_loss(row, octaves, dt)
    changed = has_changed(row, work)
    sigma[REPLAY] = par.threshold * look_for_replay(row, work, data, i, changed)
    # a fix that has stood still for seconds says nothing about the path since
    thawed = changed and row.frozen_since_t < row.fix_t and t - row.frozen_since_t > PAUSE_S
    sigma[FREEZE] = par.threshold * look_for_freeze(row, work, changed, known)
    look_at_path(row, work, math.inf if thawed else dt, 2.0 ** max(octaves, 0.0), found, grown)
    fix_timing(row, par, work, dt)
    # `distance` is in half deviations of the configured jitter
    found[BEAT] = 0.5 * par.timing_std_s * work.distance[TIMING] / TIMING_STD_S
    lasting = over_limit(row, found, grown, ratio)
    short = 0.0
    for w in range(len(WINDOWS_S)):
        across, upright = ratio[HORIZONTAL + 1 + w], ratio[UPRIGHT + 1 + w]
        if WINDOWS_S[w] < EPOCHS_MIN * dt:
            short = max(short, across, upright)
            continue
        sigma[AGAINST] = max(sigma[AGAINST], par.threshold * across)
        sigma[AGAINST_VERTICAL] = max(sigma[AGAINST_VERTICAL], par.threshold * upright)
    sigma[JUMP] = par.threshold * max(ratio[HORIZONTAL], ratio[UPRIGHT], short)
    sigma[STEP] = par.threshold * max(look_for_step(row, t, ratio, 0), look_for_step(row, t, ratio, 1))
    # a beat that shifts alone may be fixes that were lost on the way: a clock that steps moves the path as well
    path = max(sigma[JUMP] * (short > 0.0), sigma[AGAINST], sigma[AGAINST_VERTICAL])
    sigma[TIMING] = min(par.threshold * ratio[BEAT], BEAT_AND_PATH * path)
    most = 0.0
    for c in range(len(CHANNELS)):
        if c != INTERFERENCE:
            sigma[c] *= 1.0 if par.weight[c] > 0.0 else 0.0
        most = max(most, sigma[c])
        if c in (ACCURACY, REPLAY, FREEZE, INTERFERENCE):
            lasting = max(lasting, sigma[c] / par.threshold)
    # one epoch by itself says nothing about what is usual: what does not last is an outlier
    learn_levels(row, found, grown, lasting, min(dt, PAUSE_S))
    if most < par.threshold and row.strain_sq < GOOD_MS2**2:
        row.good_s += min(dt, PAUSE_S)
    remember(row, work, data, i, t)
    keep_path(row, t)
    return known
