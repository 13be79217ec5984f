"""From distances to sigmas, from sigmas to suspicion: what the detector believes about one vehicle's GPS and IMU.

Each channel's distance is divided by the 99 % level that this vehicle has shown while healthy, so one threshold fits
a quiet survey drone and a plane in a 4 g turn. Learning stops while anything is suspicious. After a few suspicious
epochs in a row the verdict is latched: the GPS has to agree again, with a filter that still knows where it is, or be
self-consistent for `recover_s`, before the vehicle is believed.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import ACC, ATT, GYR, POS, VEL
from watchkeeper.detectors.gps_imu_align import ACCEL_BIAS, GYRO_REST, place, relevel
from watchkeeper.detectors.gps_imu_state import (
    ABOVE, AGAINST, DRIFT, FREEZE, FREEZE_RUN, FREEZE_SEEN, G_ACCEL, G_CALM_S, G_DRIFT, G_GOOD_S, G_SELF_S, HELD, I_STUCK_S,
    IMU_VARIED, LATCHED, PHASE, SCALED, STUCK, SUSPECT_RUN, TRACKING, TRIED, VELOCITY,
    VERTICAL, Settings, Tables,
)  # fmt: skip
from watchkeeper.streams.batch import F8, I8

# A distance at the 99 % level counts as this many sigmas: the 99 % point of one normal variable.
SIGMA_99 = 2.576
# 99 % level of each scaled channel before anything is learned, and the limits of learning, both from chi statistics
# with room for correlated errors: position, velocity, vertical, position against velocity, drift.
LEVEL_FIRST = (2.2, 2.2, 2.4, 3.5, 4.5)
LEVEL_MIN = (1.25, 1.25, 1.25, 2.0, 2.5)
LEVEL_MAX = (4.4, 4.4, 4.8, 7.0, 10.0)
# Each time a distance rises over its level, the level grows by this; otherwise it falls slowly: in balance it is
# crossed about once in 150 epochs. An excursion counts once however long it lasts, or an attack would teach itself in.
LEVEL_UP, LEVEL_DOWN = 1.08, 0.9995
# A vehicle at rest shows less than it will in flight, so it teaches nothing: m/s2 and m/s.
ACTIVE_ACCEL, ACTIVE_SPEED = 0.5, 1.0
# This many suspicious epochs in a row latch the verdict.
LATCH_RUN = 5
# To be believed again: all channels under this part of the threshold for this long, and the filter this sure (m/s, m).
CALM_PART, CALM_S = 0.6, 2.0
SURE_VELOCITY, SURE_POSITION = 0.6, 15.0
# While the position alone is wrong, recovery waits this many times longer; after a failed recovery this many seconds.
POSITION_PATIENCE, RETRY_S = 3.0, 5.0
# Tilt and yaw uncertainty (rad) after the position was given up and taken from the GPS again.
TILT_AGAIN, YAW_AGAIN = 0.05, 0.2
# Unchanging GPS fixes that a healthy receiver never shows in motion, and the longest run that may be learned.
FREEZE_EPOCHS, FREEZE_SEEN_MAX = 2.0, 4
# An IMU that repeats itself in all six axes for this long is stuck, if it has ever shown noise (samples).
STUCK_S, STUCK_NOISY = 0.3, 50


@njit(cache=True)
def scale_channels(row: Tables, par: Settings, distance: F8, sigma: F8, changed: bool, moving: bool) -> float:
    """Fill `sigma` for all channels and return the fused score."""
    status, scale = row.status, row.scale
    if scale[0] == 0.0:
        for c in range(SCALED):
            scale[c] = LEVEL_FIRST[c]
    for c in range(SCALED):
        sigma[c] = SIGMA_99 * distance[c] / scale[c]
    seen = 1.0 + status[FREEZE_SEEN]
    sigma[FREEZE] = par.threshold * status[FREEZE_RUN] / (FREEZE_EPOCHS * seen) if moving else 0.0
    # a simulator without noise repeats both sensors at rest: only an IMU that stands still under a moving GPS is stuck
    stuck = changed and status[IMU_VARIED] > STUCK_NOISY
    sigma[STUCK] = par.threshold * row.imu[I_STUCK_S] / STUCK_S if stuck else 0.0
    # hardly more than the largest, because the channels share their errors: two at 0.92 of the threshold reach it
    total = 0.0
    for c in range(STUCK + 1):
        total += sigma[c] ** 8
    return math.sqrt(math.sqrt(math.sqrt(total)))


@njit(cache=True)
def learn(row: Tables, distance: F8, speed: float) -> None:
    """Move the 99 % levels towards what this epoch showed."""
    if row.status[PHASE] != TRACKING or (row.gps[G_ACCEL] < ACTIVE_ACCEL and speed < ACTIVE_SPEED):
        return
    for c in range(SCALED):
        above = distance[c] > row.scale[c]
        step = LEVEL_UP if above and row.status[ABOVE] & (1 << c) == 0 else LEVEL_DOWN
        row.scale[c] = min(max(row.scale[c] * step, LEVEL_MIN[c]), LEVEL_MAX[c])
        row.status[ABOVE] = row.status[ABOVE] | 1 << c if above else row.status[ABOVE] & ~(1 << c)


@njit(cache=True)
def count_freeze(row: Tables, changed: bool, suspicious: bool) -> None:
    """Length of the present run of identical fixes, and the longest harmless one."""
    status = row.status
    if not changed:
        status[FREEZE_RUN] += 1
        return
    if not suspicious and status[FREEZE_RUN] > status[FREEZE_SEEN]:
        status[FREEZE_SEEN] = min(status[FREEZE_RUN], FREEZE_SEEN_MAX)
    status[FREEZE_RUN] = 0


@njit(cache=True)
def conclude(row: Tables, par: Settings, sigma: F8, score: float, fix: F8, dt: float) -> float:
    """Keep count of suspicion, latch and release; returns the score to report (NaN while warming up)."""
    status, gps = row.status, row.gps
    suspicious = score >= par.threshold
    warm = gps[G_GOOD_S] >= par.warmup_s
    status[SUSPECT_RUN] = status[SUSPECT_RUN] + 1 if suspicious else 0
    if status[SUSPECT_RUN] >= LATCH_RUN and status[LATCHED] == 0:
        status[LATCHED] = 1
        status[TRIED] = 0
        gps[G_CALM_S] = gps[G_SELF_S] = 0.0
    if status[LATCHED] == 1:
        gps[G_CALM_S] = gps[G_CALM_S] + dt if score < CALM_PART * par.threshold else 0.0
        consistent = sigma[AGAINST] < par.threshold and sigma[FREEZE] < par.threshold and sigma[STUCK] < par.threshold
        gps[G_SELF_S] = gps[G_SELF_S] + dt if consistent else 0.0
        if gps[G_CALM_S] >= CALM_S and _sure(row):
            status[LATCHED] = 0
        elif gps[G_SELF_S] >= _patience(row, par, warm):
            _believe_gps(row, par, fix)
    elif not suspicious:
        gps[G_GOOD_S] += dt
    _hold(status, par, sigma)
    if not warm:
        return math.nan
    return max(score, par.threshold) if status[LATCHED] == 1 else score


@njit(cache=True)
def _hold(status: I8, par: Settings, sigma: F8) -> None:
    """Channels that were suspect while latched are not fused until release or recovery."""
    if status[LATCHED] == 0:
        status[HELD] = 0
    elif status[TRIED] == 0:
        for c in range(SCALED):
            if sigma[c] >= par.threshold:
                status[HELD] |= 1 << c


@njit(cache=True)
def _sure(row: Tables) -> bool:
    """Whether the filter still knows enough for agreement to mean something."""
    cov = row.cov
    velocity = max(cov[VEL, VEL], cov[VEL + 1, VEL + 1])
    position = max(cov[POS, POS], cov[POS + 1, POS + 1])
    return velocity < SURE_VELOCITY**2 and position < SURE_POSITION**2


@njit(cache=True)
def _patience(row: Tables, par: Settings, warm: bool) -> float:
    """How long the GPS must have been at one with itself before it is taken as true."""
    status = row.status
    if not warm or status[TRIED] == 1:
        return RETRY_S
    # a position that is wrong alone can be watched for long, because a good velocity carries the filter's own
    alone = status[HELD] & (1 << VELOCITY | 1 << VERTICAL | 1 << DRIFT) == 0
    return par.recover_s * (POSITION_PATIENCE if alone else 1.0)


@njit(cache=True)
def _believe_gps(row: Tables, par: Settings, fix: F8) -> None:
    """Take position and velocity from the GPS; when that was not enough before, find the attitude anew as well."""
    status, cov = row.status, row.cov
    row.gps[G_SELF_S] = row.gps[G_CALM_S] = 0.0
    row.gps[G_DRIFT : G_DRIFT + 3] = 0.0
    status[HELD] = 0
    status[TRIED] += 1
    if status[TRIED] > 1:
        relevel(row)
        return
    place(row, fix, par)
    for k in range(3):
        cov[ATT + k, ATT + k] += (YAW_AGAIN if k == 2 else TILT_AGAIN) ** 2
        cov[GYR + k, GYR + k] += GYRO_REST**2
        cov[ACC + k, ACC + k] += ACCEL_BIAS**2
