"""From a score to suspicion: when a verdict is latched, what is not fused meanwhile, when a vehicle is believed again.

After a few suspicious epochs in a row the verdict is latched: the GPS has to agree again, with a filter that still
knows where it is, or be self-consistent for `recover_s`, before the vehicle is believed.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.align import place, relevel
from watchkeeper.detectors.gps_imu.constants import (
    ACCEL_BIAS,
    CALM_PART,
    CALM_S,
    FROZEN_S,
    GATE,
    GYRO_REST,
    LATCH_RUN,
    LATCHED,
    MEAN_CLIP,
    MEAN_S,
    POSITION_PATIENCE,
    RETRY_S,
    RETURN_S,
    SURE_POSITION,
    SURE_VELOCITY,
    TILT_AGAIN,
    UNKNOWN,
    YAW_AGAIN,
)
from watchkeeper.detectors.gps_imu.displacement import (
    forget_displacement,
    forget_pull,
    has_returned,
    is_displaced,
    keep_displacement,
)
from watchkeeper.detectors.gps_imu.eskf import ACC, ATT, GYR, POS, VEL
from watchkeeper.detectors.gps_imu.scale import learn_from_mistake
from watchkeeper.detectors.gps_imu.state import (
    DRIFT,
    DRIFT_VERTICAL,
    FREEZE,
    JUMP,
    LIES,
    REPLAY,
    SCALED,
    STOOD_GPS,
    STOOD_IMU,
    STUCK,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def suspicion_level(row: Vehicle, par: Settings) -> float:
    """The score from which on an epoch is suspicious: higher before it is known what is usual for the vehicle."""
    return par.threshold if row.good_s >= par.warmup_s else UNKNOWN * par.threshold


@njit(cache=True)
def conclude(row: Vehicle, par: Settings, work: Work, sigma: F8, score: float, dt: float) -> float:
    """Keep count of suspicion, latch and release; returns the score to report (NaN while warming up)."""
    warm = row.good_s >= par.warmup_s
    suspicious = score >= suspicion_level(row, par)
    row.suspect_run = row.suspect_run + 1 if suspicious else 0
    # one epoch over the threshold is no attack that goes on
    part = 1.0 - math.exp(-dt / MEAN_S)
    row.mean_score += part * (min(score, MEAN_CLIP * par.threshold) - row.mean_score)
    if row.suspect_run >= LATCH_RUN and row.latched == 0:
        row.latched = 1
        row.latched_t = row.fix_t
        row.tried = row.blamed = row.stood = row.taken = row.replayed = 0
        row.calm_s = row.self_s = row.back_s = row.genuine_s = 0.0
    if row.latched == 1:
        row.stood |= STOOD_GPS if sigma[FREEZE] >= par.threshold else 0
        row.stood |= STOOD_IMU if sigma[STUCK] >= par.threshold else 0
        row.calm_s = row.calm_s + dt if row.mean_score < CALM_PART * par.threshold else 0.0
        consistent = work.against < par.threshold and sigma[FREEZE] < par.threshold and sigma[STUCK] < par.threshold
        row.self_s = row.self_s + dt if consistent else 0.0
        _follow_replay(row, par, work, sigma, dt)
        if sigma[STUCK] >= par.threshold:
            row.tried = 1  # the attitude is lost: no use in keeping it when the IMU comes back
        if has_returned(row, par, work, dt) or (row.genuine_s >= RETURN_S and row.self_s >= RETURN_S):
            _release(row, par, work)
        elif row.calm_s >= (par.recover_s if is_displaced(row, par, work) else CALM_S) and _sure(row):
            row.latched = 0
            if not keep_displacement(row, par, work) and row.lying != LIES:
                learn_from_mistake(row)
        elif row.self_s >= _patience(row, par, warm):
            if not keep_displacement(row, par, work) and row.stood == 0:
                row.taken = 1
            _believe_gps(row, par, work.fix)
    elif not suspicious:
        row.good_s += dt
        forget_pull(row, dt)
    _hold(row, par, sigma, work.ratio)
    if not warm:
        return _told_early(row, par, sigma)
    return max(score, LATCHED * par.threshold) if row.latched == 1 or row.away_t > 0.0 else score


@njit(cache=True)
def _follow_replay(row: Vehicle, par: Settings, work: Work, sigma: F8, dt: float) -> None:
    """A recording has ended when new fixes come, with a jump: a spoofer that goes on from there has none."""
    if sigma[REPLAY] >= par.threshold:
        row.replayed, row.genuine_s = 1, 0.0
    elif row.replayed == 1 and (row.genuine_s > 0.0 or work.ratio[JUMP] >= GATE):
        row.genuine_s += dt
    else:
        row.replayed = 0


@njit(cache=True)
def _told_early(row: Vehicle, par: Settings, sigma: F8) -> float:
    """What is said before the warm-up is over: that the GPS is frozen, which takes neither levels nor an attitude.

    A vehicle whose GPS is frozen from the start never shows good data: the time in motion under one and the same fix
    counts in its place. After that the channel goes on until the warm-up is over, or nobody would hear of the end.
    """
    frozen = row.stood & STOOD_GPS != 0 and row.frozen_s >= max(FROZEN_S, par.warmup_s - row.good_s)
    if frozen:
        row.told_early = 1
    if row.told_early == 0:
        return math.nan
    for c in range(sigma.size):
        if c != FREEZE:
            sigma[c] = 0.0  # nobody knows yet what is usual
    waits = row.latched == 1 and row.stood & STOOD_GPS != 0
    return float(max(sigma[FREEZE], LATCHED * par.threshold) if waits else sigma[FREEZE])


@njit(cache=True)
def _hold(row: Vehicle, par: Settings, sigma: F8, ratio: F8) -> None:
    """Channels that were suspect while latched are not fused until release or recovery."""
    if row.latched == 0:
        row.held = 0
        return
    for c in range(SCALED):
        if sigma[c] >= 0.8 * par.threshold:
            row.blamed |= 1 << c
    if row.tried == 0:
        for c in range(SCALED):
            if ratio[c] >= GATE:
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
    alone = row.held & (1 << VELOCITY | 1 << VERTICAL | 1 << DRIFT | 1 << DRIFT_VERTICAL) == 0
    return par.recover_s * (POSITION_PATIENCE if alone else 1.0)


@njit(cache=True)
def _release(row: Vehicle, par: Settings, work: Work) -> None:
    """The position is back where it was: go on from there."""
    _begin_again(row)
    place(row, work.fix, par)
    row.latched = row.blamed = row.suspect_run = 0
    forget_displacement(row)


@njit(cache=True)
def _begin_again(row: Vehicle) -> None:
    """What added up while the filter coasted says nothing about the GPS that is believed now."""
    row.self_s = row.calm_s = 0.0
    row.drift[:] = 0.0
    row.along[:] = 0.0
    row.mean_score = 0.0
    row.held = 0


@njit(cache=True)
def _believe_gps(row: Vehicle, par: Settings, fix: F8) -> None:
    """Take position and velocity from the GPS; when that was not enough before, find the attitude again as well."""
    cov = row.cov
    _begin_again(row)
    row.tried += 1
    if row.tried > 1:
        relevel(row)
        return
    place(row, fix, par)
    for k in range(3):
        cov[ATT + k, ATT + k] += (YAW_AGAIN if k == 2 else TILT_AGAIN) ** 2
        cov[GYR + k, GYR + k] += GYRO_REST**2
        cov[ACC + k, ACC + k] += ACCEL_BIAS**2
