"""From distances to sigmas, from sigmas to suspicion: what the detector believes about one vehicle's GPS and IMU.

Each channel's distance is divided by the level that this vehicle usually reaches while healthy, so one threshold fits a
quiet survey drone and a plane in a 4 g turn. Learning stops while anything is suspicious. After a few suspicious
epochs in a row the verdict is latched: the GPS has to agree again, with a filter that still knows where it is, or be
self-consistent for `recover_s`, before the vehicle is believed.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.eskf import ACC, ATT, GYR, POS, VEL
from watchkeeper.detectors.gps_imu_align import ACCEL_BIAS, GYRO_REST, place, relevel
from watchkeeper.detectors.gps_imu_state import (
    AGAINST,
    DRIFT,
    FREEZE,
    SCALED,
    STUCK,
    TRACKING,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# A distance at its usual level counts as this many sigmas: the two-sided 99 % point of a normal variable.
SIGMA_USUAL = 2.576
# Usual level of each scaled channel before anything is learned, and the limits of learning: the 99 % points of chi
# statistics, with room for correlated errors. Position, velocity, vertical, position against velocity, drift, noise.
USUAL_FIRST = (2.2, 2.2, 2.4, 3.5, 4.5, 2.4)
USUAL_MIN = (1.25, 1.25, 1.25, 2.0, 2.5, 1.7)
USUAL_MAX = (4.4, 4.4, 4.8, 7.0, 10.0, 5.0)
# Each time a distance rises over its level, the level grows by this; otherwise it falls slowly: in balance it is
# crossed about once in 150 epochs. An excursion counts once however long it lasts, or an attack would teach itself in.
USUAL_UP, USUAL_DOWN = 1.08, 0.9995
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
def is_moving(row: Vehicle, speed: float) -> bool:
    """Whether the vehicle is doing anything that the sensors should show."""
    return row.accel > ACTIVE_ACCEL or speed > ACTIVE_SPEED


@njit(cache=True)
def expect(row: Vehicle) -> None:
    """Set the usual distances of a vehicle of which nothing is known."""
    if row.usual[0] == 0.0:
        for c in range(SCALED):
            row.usual[c] = USUAL_FIRST[c]


@njit(cache=True)
def scale_channels(row: Vehicle, par: Settings, distance: F8, sigma: F8, changed: bool, moving: bool) -> float:
    """Fill `sigma` for all channels and return the fused score."""
    for c in range(SCALED):
        sigma[c] = SIGMA_USUAL * distance[c] / row.usual[c]
    seen = 1.0 + row.freeze_seen
    sigma[FREEZE] = par.threshold * row.freeze_run / (FREEZE_EPOCHS * seen) if moving else 0.0
    # a simulator without noise repeats both sensors at rest: only an IMU that stands still under a moving GPS is stuck
    stuck = changed and row.imu_varied > STUCK_NOISY
    sigma[STUCK] = par.threshold * row.stuck_s / STUCK_S if stuck else 0.0
    # hardly more than the largest, because the channels share their errors: two at 0.92 of the threshold reach it
    total = 0.0
    for c in range(STUCK + 1):
        total += sigma[c] ** 8
    return math.sqrt(math.sqrt(math.sqrt(total)))


@njit(cache=True)
def learn(row: Vehicle, distance: F8) -> None:
    """Move the usual distances towards what this epoch of a healthy, moving vehicle showed."""
    if row.phase != TRACKING:
        return
    for c in range(SCALED):
        above = distance[c] > row.usual[c]
        step = USUAL_UP if above and row.above & (1 << c) == 0 else USUAL_DOWN
        row.usual[c] = min(max(row.usual[c] * step, USUAL_MIN[c]), USUAL_MAX[c])
        row.above = row.above | 1 << c if above else row.above & ~(1 << c)


@njit(cache=True)
def count_freeze(row: Vehicle, changed: bool) -> None:
    """Length of the present run of identical fixes, and the longest harmless one."""
    if not changed:
        row.freeze_run += 1
        return
    if row.latched == 0 and row.freeze_run > row.freeze_seen:
        row.freeze_seen = min(row.freeze_run, FREEZE_SEEN_MAX)
    row.freeze_run = 0


@njit(cache=True)
def conclude(row: Vehicle, par: Settings, sigma: F8, score: float, fix: F8, dt: float) -> float:
    """Keep count of suspicion, latch and release; returns the score to report (NaN while warming up)."""
    suspicious = score >= par.threshold
    warm = row.good_s >= par.warmup_s
    row.suspect_run = row.suspect_run + 1 if suspicious else 0
    if row.suspect_run >= LATCH_RUN and row.latched == 0:
        row.latched = 1
        row.tried = 0
        row.calm_s = row.self_s = 0.0
    if row.latched == 1:
        row.calm_s = row.calm_s + dt if score < CALM_PART * par.threshold else 0.0
        consistent = sigma[AGAINST] < par.threshold and sigma[FREEZE] < par.threshold and sigma[STUCK] < par.threshold
        row.self_s = row.self_s + dt if consistent else 0.0
        if sigma[STUCK] >= par.threshold:
            row.tried = 1  # the attitude is lost: no use in keeping it when the IMU comes back
        if row.calm_s >= CALM_S and _sure(row):
            row.latched = 0
        elif row.self_s >= _patience(row, par, warm):
            _believe_gps(row, par, fix)
    elif not suspicious:
        row.good_s += dt
    _hold(row, par, sigma)
    if not warm:
        return math.nan
    return max(score, par.threshold) if row.latched == 1 else score


@njit(cache=True)
def _hold(row: Vehicle, par: Settings, sigma: F8) -> None:
    """Channels that were suspect while latched are not fused until release or recovery."""
    if row.latched == 0:
        row.held = 0
    elif row.tried == 0:
        for c in range(SCALED):
            if sigma[c] >= par.threshold:
                row.held |= 1 << c


@njit(cache=True)
def _sure(row: Vehicle) -> bool:
    """Whether the filter still knows enough for agreement to mean something."""
    cov = row.cov
    velocity: float = max(cov[VEL, VEL], cov[VEL + 1, VEL + 1])
    position: float = max(cov[POS, POS], cov[POS + 1, POS + 1])
    return velocity < SURE_VELOCITY**2 and position < SURE_POSITION**2


@njit(cache=True)
def _patience(row: Vehicle, par: Settings, warm: bool) -> float:
    """How long the GPS must have been at one with itself before it is taken as true."""
    if not warm or row.tried == 1:
        return RETRY_S
    # a position that is wrong alone can be watched for long, because a good velocity carries the filter's own
    alone = row.held & (1 << VELOCITY | 1 << VERTICAL | 1 << DRIFT) == 0
    return par.recover_s * (POSITION_PATIENCE if alone else 1.0)


@njit(cache=True)
def _believe_gps(row: Vehicle, par: Settings, fix: F8) -> None:
    """Take position and velocity from the GPS; when that was not enough before, find the attitude anew as well."""
    cov = row.cov
    row.self_s = row.calm_s = 0.0
    row.drift[:] = 0.0
    row.held = 0
    row.tried += 1
    if row.tried > 1:
        relevel(row)
        return
    place(row, fix, par)
    for k in range(3):
        cov[ATT + k, ATT + k] += (YAW_AGAIN if k == 2 else TILT_AGAIN) ** 2
        cov[GYR + k, GYR + k] += GYRO_REST**2
        cov[ACC + k, ACC + k] += ACCEL_BIAS**2
