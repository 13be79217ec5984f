"""One GPS fix against the filter: distances per channel, a verdict, and the update that the verdict allows."""

from __future__ import annotations

import math
from typing import NamedTuple

from watchkeeper.detectors.gps_imu.ahrs import take_attitude
from watchkeeper.detectors.gps_imu.align import loosen, place, relevel, seek_attitude
from watchkeeper.detectors.gps_imu.channels import (
    along_acceleration,
    expected_noise,
    force_and_turn,
    innovations,
    lasting_innovations,
    path_against_velocity,
    steps,
)
from watchkeeper.detectors.gps_imu.constants import DELAY_PRIOR, GAP_S, GAP_TIMES, GATE, OUTAGE_S, SETTLE_S, SOFT
from watchkeeper.detectors.gps_imu.contradiction import forget_taught, weigh
from watchkeeper.detectors.gps_imu.displacement import add_shift, look_after_outage, note_left
from watchkeeper.detectors.gps_imu.eskf import POS, VEL, observe, settle
from watchkeeper.detectors.gps_imu.imu_bins import consume, move_covariance
from watchkeeper.detectors.gps_imu.read import has_changed, hold_course, read_fix, remember
from watchkeeper.detectors.gps_imu.receiver import fix_timing, learn_delay, learn_lead, lost_accuracy
from watchkeeper.detectors.gps_imu.scale import (
    calibrate,
    count_freeze,
    expect,
    feel_push,
    is_moving,
    learn,
    scale_channels,
    widen,
    without_return,
)
from watchkeeper.detectors.gps_imu.slow.kernel import begin_slow, look_for_slow, settle_again
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.state import (
    ACCURACY,
    AGAINST,
    AGAINST_VERTICAL,
    ALIGNING,
    DRIFT,
    FREEZE,
    JUMP,
    JUMP_VELOCITY,
    LIES,
    POSITION,
    STUCK,
    TRACKING,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.detectors.gps_imu.verdict import conclude, suspicion_level
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit


class Heard(NamedTuple):
    """A fix as it came."""

    t: float
    data: F8
    """By [row, field]."""
    i: int
    """Its row."""
    path: F8
    """What its receiver shows by itself (kernel.PATH)."""


@njit(cache=True)
def take_gps(row: Vehicle, slow: Slow, par: Settings, work: Work, heard: Heard, sigma: F8) -> float:
    """One fix. Fills `sigma` per channel and returns the score, NaN where there is nothing to judge yet."""
    t, data, i = heard.t, heard.data, heard.i
    if row.delay_weight == 0.0:
        row.delay_s, row.delay_weight = par.gps_delay_s, DELAY_PRIOR
    horizon = t - row.delay_s
    while row.bin_count > 0 and row.bin_t[row.bin_first] <= horizon:
        consume(row, par, work)
    fix = work.fix
    if row.phase < ALIGNING or not read_fix(row, par, data, i, fix):
        return math.nan
    hold_course(row, work)
    dt = t - row.fix_t
    expect(row)
    if row.placed == 0 or (dt > OUTAGE_S and row.latched == 0):
        if row.placed == 1:
            look_after_outage(row, fix)
        place(row, fix, par)
        row.shift[:] = 0.0
        remember(row, work, data, i, t)
        return math.nan
    lag, span = horizon - row.horizon, row.epoch_s
    if dt <= 0.0 or span <= 0.0 or lag > par.imu_gap_s:
        return math.nan  # the IMU has not yet told about this moment
    if row.step_s > 0.0:
        move_covariance(row, par, work)
    if dt > max(GAP_S, GAP_TIMES * row.interval):
        widen(row, dt)
    if par.ahrs:
        take_attitude(row, par, work)
    moved = work.moved
    for k in range(3):
        work.force[k] = row.epoch_force[k]
        moved[k] = row.epoch_force[k] + (GRAVITY_MS2 * span if k == 2 else 0.0)
        row.epoch_force[k] = 0.0
    work.turned = row.epoch_turn
    row.epoch_s = row.epoch_turn = 0.0
    if row.phase == ALIGNING:
        loosen(row, fix, moved[0], moved[1], span)
    accel = math.sqrt(moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2]) / span
    row.accel = max(accel, row.accel * math.exp(-dt / SETTLE_S))
    feel_push(row, work, span)

    ahead = lag / span
    residual, distance = work.residual, work.distance
    for k in range(3):
        residual[k] = fix[k] - (row.pos[k] + row.vel[k] * (lag + row.lead_s))
        residual[3 + k] = fix[3 + k] - (row.vel[k] + moved[k] * ahead)
    speed = math.sqrt(row.vel[0] ** 2 + row.vel[1] ** 2 + row.vel[2] ** 2)
    healthy = row.latched == 0 and row.suspect_run == 0 and row.phase == TRACKING
    expected_noise(par, speed, row.accel, work)
    innovations(row, work)
    changed, moving = has_changed(row, work), is_moving(row, speed)
    count_freeze(row, changed)
    path_against_velocity(row, par, work, dt)
    lasting_innovations(row, par, work, dt)
    steps(row, work, dt)
    along_acceleration(row, par, work, dt)
    force_and_turn(row, work, span, dt, healthy)
    fix_timing(row, par, work, dt)
    look_for_slow(slow, row, work, dt)
    sigma[ACCURACY] = par.weight[ACCURACY] * par.threshold * lost_accuracy(row, data, i, dt, healthy)
    score = scale_channels(row, par, work, heard.path, sigma, changed, moving, dt)
    if not math.isfinite(score):
        relevel(row)  # an IMU at the end of its range can drive the filter out of its own
        return math.nan
    if score < suspicion_level(row, par) and row.latched == 0 and moving:
        learn(row, par, distance, dt)
        if row.phase == TRACKING and par.learn_delay and work.loose_mps + row.loose_mps == 0.0:
            learn_delay(row, par, work, span)
            learn_lead(row, span)
    calibrate(row, par, score, max(sigma[JUMP], sigma[JUMP_VELOCITY]), moving)
    score = without_return(row, work, sigma, score)
    weigh(row, par, work, dt, healthy)
    add_shift(row, par, work, sigma, dt)
    for k in range(3):
        work.before[k] = row.pos[k]
    forget_taught(row, dt)
    _update(row, par, work, sigma)
    note_left(row, work, work.before)
    if row.phase == ALIGNING and score < suspicion_level(row, par):
        seek_attitude(row, work, par, span)
    remember(row, work, data, i, t)
    latched, tried = row.latched, row.tried
    score = conclude(row, par, work, sigma, score, dt)
    if row.tried > tried:
        settle_again(slow, par)
    elif row.latched < latched:
        begin_slow(slow)  # what lasted until now has been said
    return score


@njit(cache=True)
def _update(row: Vehicle, par: Settings, work: Work, sigma: F8) -> None:
    """Fuse what is not suspect. A channel at the threshold is left out, one on the way there counts less."""
    if sigma[FREEZE] >= par.threshold or sigma[STUCK] >= par.threshold:
        return
    residual, variance, ratio = work.residual, work.variance, work.ratio
    lies = row.lying == LIES
    against = ratio[AGAINST] >= GATE or lies
    velocity_bad = ratio[VELOCITY] >= GATE or row.held & (1 << VELOCITY | 1 << DRIFT) != 0 or lies
    # Of a position and a velocity that contradict each other, the one that the IMU does not confirm is left out. A
    # velocity that is wrong and fits its position is a GPS (or an IMU) that is wrong altogether: coast.
    position_bad = against != velocity_bad
    for channel in (POSITION, VELOCITY):
        if ratio[channel] >= GATE or row.held & (1 << channel) != 0:
            continue
        if velocity_bad if channel == VELOCITY else position_bad:
            continue
        weaker = max(1.0, (ratio[channel] / SOFT) ** 2)
        first, state = (3, VEL) if channel == VELOCITY else (0, POS)
        if not math.isnan(residual[first]):
            observe(row, work, state, residual[first], weaker * variance[first])
            observe(row, work, state + 1, residual[first + 1], weaker * variance[first + 1])
    if not position_bad:
        _observe_vertical(row, work)
    settle(row, work)


@njit(cache=True)
def _observe_vertical(row: Vehicle, work: Work) -> None:
    """Height and climb, or the climb alone where the height contradicts it and the IMU does not."""
    residual, variance, ratio = work.residual, work.variance, work.ratio
    off, far = ratio[VERTICAL], ratio[VERTICAL] >= GATE or row.held & (1 << VERTICAL) != 0
    if ratio[AGAINST_VERTICAL] >= GATE or row.held & (1 << AGAINST_VERTICAL) != 0:
        off = abs(residual[5]) / math.sqrt(row.cov[VEL + 2, VEL + 2] + variance[5]) / row.usual[VERTICAL]
        far = not off < GATE
    elif not far and not math.isnan(residual[2]):
        observe(row, work, POS + 2, residual[2], max(1.0, (off / SOFT) ** 2) * variance[2])
    if not far and not math.isnan(residual[5]):
        observe(row, work, VEL + 2, residual[5], max(1.0, (off / SOFT) ** 2) * variance[5])
