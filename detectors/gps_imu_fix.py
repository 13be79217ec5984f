"""One GPS fix against the filter: innovations per channel, a verdict, and the update that the verdict allows.

Fixes come as local x/y/z or as latitude, longitude and altitude, with or without velocity; here they become
north-east-down metres. Geodetic fixes are added up step by step along the local north and east, which is what a
velocity in north and east integrates to, wherever the vehicle goes.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.eskf import GRAVITY, POS, VEL, observe, settle
from watchkeeper.detectors.gps_imu_align import loosen, place, relevel, seek_attitude
from watchkeeper.detectors.gps_imu_bins import consume, move_covariance
from watchkeeper.detectors.gps_imu_judge import conclude, count_freeze, expect, is_moving, learn, scale_channels
from watchkeeper.detectors.gps_imu_state import (
    AGAINST,
    ALIGNING,
    DRIFT,
    FREEZE,
    MEASURED,
    NOISE,
    POSITION,
    STUCK,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

WGS84_A, WGS84_E2 = 6_378_137.0, 6.694379990141e-3
# Columns of the GPS stream (messages.FIELDS), which the kernel reads by number.
X, LAT, LON, ALT, VX, FIX = 0, 3, 4, 5, 6, 9
# Fix types below this are no position.
FIX_MIN = 2.0
# GPS is worse vertically: about twice in position, half as much again in velocity.
VERTICAL_POSITION, VERTICAL_VELOCITY = 2.0, 1.5
# A receiver needs this long to settle after hard acceleration, and filters its velocity more than its position: the
# velocity may be late by this many times the timing error.
SETTLE_S, LATE_VELOCITY = 2.0, 2.0
# Memory of the two leaky sums: position against velocity sees drifts of half a metre per second in it, the velocity
# innovations an IMU bias before the filter has absorbed it.
AGAINST_S, DRIFT_S = 5.0, 2.0
# What a receiver gets wrong under acceleration lasts for about a second, so it does not average out in the second sum.
DRIFT_LATE = 6.0
# One outlier is not noise: squared distances beyond this count as this.
NOISE_MAX = 50.0
# The first is held to this many times its usual distance, so that one jump is not remembered for half a minute.
AGAINST_MAX = 4.0
# After a pause in the GPS this long there is no path to compare with; after the second one, position begins anew.
PAUSE_S, OUTAGE_S = 2.0, 10.0
# Innovations beyond this many sigmas count less in the update: an attack that grows is followed ever more slowly.
SOFT_SIGMA = 2.0


@njit(cache=True)
def take_gps(row: Vehicle, par: Settings, work: Work, t: float, data: F8, i: int, sigma: F8) -> float:
    """One fix; fills `sigma` per channel and returns the score, NaN where there is nothing to judge yet."""
    horizon = t - par.gps_delay_s
    while row.bin_count > 0 and row.bin_t[row.bin_first] <= horizon:
        consume(row, par, work)
    fix = work.fix
    if row.phase < ALIGNING or not _read_fix(row, par, data, i, fix):
        return math.nan
    dt = t - row.fix_t
    expect(row)
    if row.placed == 0 or (dt > OUTAGE_S and row.latched == 0):
        place(row, fix, par)
        _remember(row, data, i, fix, t)
        return math.nan
    lag, span = horizon - row.horizon, row.epoch_s
    if dt <= 0.0 or span <= 0.0 or lag > par.imu_gap_s:
        return math.nan  # the IMU has not yet told about this moment
    if row.step_s > 0.0:
        move_covariance(row, par, work)
    for k in range(3):
        work.force[k] = row.epoch_force[k]
        row.epoch_force[k] = 0.0
    dvx, dvy, dvz = work.force[0], work.force[1], work.force[2] + GRAVITY * span
    row.epoch_s = 0.0
    if row.phase == ALIGNING:
        loosen(row, fix, dvx, dvy, span)
    accel = math.sqrt(dvx * dvx + dvy * dvy + dvz * dvz) / span
    row.accel = max(accel, row.accel * math.exp(-dt / SETTLE_S))

    ahead = lag / span
    residual, distance = work.residual, work.distance
    for k in range(3):
        residual[k] = fix[k] - (row.pos[k] + row.vel[k] * lag)
    residual[3] = fix[3] - (row.vel[0] + dvx * ahead)
    residual[4] = fix[4] - (row.vel[1] + dvy * ahead)
    residual[5] = fix[5] - (row.vel[2] + dvz * ahead)
    speed = math.sqrt(row.vel[0] ** 2 + row.vel[1] ** 2 + row.vel[2] ** 2)
    _noise(par, speed, row.accel, work.variance)
    _distances(row, work)
    changed, moving = _changed(row, fix), is_moving(row, speed)
    count_freeze(row, changed)
    _sums(row, par, work, dt)
    score = scale_channels(row, par, distance, sigma, changed, moving)
    if not math.isfinite(score):
        relevel(row)  # an IMU at the end of its range can drive the filter out of its own
        return math.nan
    if score < par.threshold and row.latched == 0 and moving:
        learn(row, distance)
    _update(row, par, work, sigma)
    if row.phase == ALIGNING and score < par.threshold:
        seek_attitude(row, work, par, span)
    _remember(row, data, i, fix, t)
    return conclude(row, par, sigma, score, fix, dt)


@njit(cache=True)
def _read_fix(row: Vehicle, par: Settings, data: F8, i: int, fix: F8) -> bool:
    """The fix as north, east, down position and velocity, NaN where absent; False when there is no position."""
    if data[i, FIX] < FIX_MIN:
        return False  # NaN, the usual "not told", passes
    if par.enu:
        fix[0], fix[1], fix[2] = data[i, X + 1], data[i, X], -data[i, X + 2]
        fix[3], fix[4], fix[5] = data[i, VX + 1], data[i, VX], -data[i, VX + 2]
    else:
        for k in range(3):
            fix[k], fix[3 + k] = data[i, X + k], data[i, VX + k]
    if math.isnan(fix[3] + fix[4]):
        fix[3] = fix[4] = math.nan
    if not math.isnan(fix[0] + fix[1]):
        return True
    lat, lon = data[i, LAT], data[i, LON]
    if math.isnan(lat + lon):
        return False
    fix[2] = -data[i, ALT]
    if row.anchored == 0:
        fix[0] = fix[1] = 0.0
        return True
    mid = math.radians(0.5 * (lat + row.lat))
    curve = 1.0 - WGS84_E2 * math.sin(mid) ** 2
    east = math.radians((lon - row.lon + 540.0) % 360.0 - 180.0)
    fix[0] = row.fix[0] + math.radians(lat - row.lat) * WGS84_A * (1.0 - WGS84_E2) / (curve * math.sqrt(curve))
    fix[1] = row.fix[1] + east * WGS84_A * math.cos(mid) / math.sqrt(curve)
    return True


@njit(cache=True)
def _remember(row: Vehicle, data: F8, i: int, fix: F8, t: float) -> None:
    row.fix_t = t
    for k in range(6):
        row.fix[k] = fix[k]
    row.lat, row.lon = data[i, LAT], data[i, LON]
    row.anchored = 0 if math.isnan(row.lat + row.lon) else 1


@njit(cache=True)
def _changed(row: Vehicle, fix: F8) -> bool:
    """Whether anything in the fix differs from the one before (absent equals absent)."""
    same = 0
    for k in range(MEASURED):
        same += fix[k] == row.fix[k] or (math.isnan(fix[k]) and math.isnan(row.fix[k]))
    return same < MEASURED


@njit(cache=True)
def _noise(par: Settings, speed: float, accel: float, variance: F8) -> None:
    """Measurement variances: the receiver's own noise, and its timing error times what changes meanwhile."""
    late = (LATE_VELOCITY * par.timing_std_s * accel) ** 2
    # an error in velocity that lasts for about a second is one in position
    late_position = (par.timing_std_s * speed) ** 2 + late
    for k in range(3):
        position = par.position_std_m * (VERTICAL_POSITION if k == 2 else 1.0)
        velocity = par.velocity_std_mps * (VERTICAL_VELOCITY if k == 2 else 1.0)
        variance[k] = position * position + late_position
        variance[3 + k] = velocity * velocity + late


@njit(cache=True)
def _distances(row: Vehicle, work: Work) -> None:
    """Mahalanobis distances of the innovations; zero where the fix says nothing."""
    cov, residual, variance, distance = row.cov, work.residual, work.variance, work.distance
    distance[POSITION] = _pair(cov, POS, POS + 1, residual[0], residual[1], variance[0], variance[1])
    distance[VELOCITY] = 0.0
    if not math.isnan(residual[3]):
        distance[VELOCITY] = _pair(cov, VEL, VEL + 1, residual[3], residual[4], variance[3], variance[4])
    distance[VERTICAL] = 0.0
    if not math.isnan(residual[2]):
        if math.isnan(residual[5]):
            distance[VERTICAL] = abs(residual[2]) / math.sqrt(cov[POS + 2, POS + 2] + variance[2])
        else:
            distance[VERTICAL] = _pair(cov, POS + 2, VEL + 2, residual[2], residual[5], variance[2], variance[5])


@njit(cache=True)
def _pair(cov: F8, m: int, n: int, x: float, y: float, var_x: float, var_y: float) -> float:
    """Mahalanobis distance of two innovations."""
    a, b, c = cov[m, m] + var_x, cov[m, n], cov[n, n] + var_y
    # rounding must not make a covariance look impossible
    determinant = max(a * c - b * b, 1e-9 * a * c)
    return math.sqrt(max(0.0, (c * x * x - 2.0 * b * x * y + a * y * y) / determinant))


@njit(cache=True)
def _sums(row: Vehicle, par: Settings, work: Work, dt: float) -> None:
    """What only shows over time: GPS position against GPS velocity, lasting velocity innovations, and their size."""
    cov, fix, residual, variance, distance = row.cov, work.fix, work.residual, work.variance, work.distance
    keep = math.exp(-dt / AGAINST_S) if dt < PAUSE_S else 0.0
    most = AGAINST_MAX * row.usual[AGAINST]
    total = 0.0
    for k in range(3):
        gap = fix[k] - row.fix[k] - 0.5 * dt * (fix[3 + k] + row.fix[3 + k])
        # in units of this epoch's noise, and forgotten when there is nothing to compare
        std = math.sqrt(variance[k])
        units = 0.0 if math.isnan(gap) or keep == 0.0 else (keep * row.against[k] + gap) / std
        units = min(max(units, -most), most)
        row.against[k] = units * std
        total += units * units
    distance[AGAINST] = math.sqrt(total)
    # where there is no velocity, the position has to show the drift
    first, state = (0, POS) if math.isnan(residual[3]) else (3, VEL)
    keep = math.exp(-dt / DRIFT_S)
    lasting = DRIFT_LATE * (LATE_VELOCITY * par.timing_std_s * row.accel) ** 2
    total = 0.0
    for k in range(3):
        units = residual[first + k] / math.sqrt(cov[state + k, state + k] + variance[first + k] + lasting)
        row.drift[k] += (1.0 - keep) * ((0.0 if math.isnan(units) else units) - row.drift[k])
        total += row.drift[k] ** 2
    distance[DRIFT] = math.sqrt(total * (1.0 + keep) / (1.0 - keep))
    size = distance[POSITION] ** 2 + distance[VELOCITY] ** 2 + distance[VERTICAL] ** 2
    row.noise += (1.0 - keep) * (min(size, NOISE_MAX) - row.noise)
    distance[NOISE] = math.sqrt(row.noise)


@njit(cache=True)
def _update(row: Vehicle, par: Settings, work: Work, sigma: F8) -> None:
    """Fuse what is not suspect. A channel at the threshold is left out, one on the way there counts less."""
    if sigma[FREEZE] >= par.threshold or sigma[STUCK] >= par.threshold:
        return
    residual, variance = work.residual, work.variance
    against = sigma[AGAINST] >= par.threshold
    velocity_bad = sigma[VELOCITY] >= par.threshold or row.held & (1 << VELOCITY | 1 << DRIFT) != 0
    # Of a position and a velocity that contradict each other, the one that the IMU does not confirm is left out. A
    # velocity that is wrong and fits its position is a GPS (or an IMU) that is wrong altogether: coast.
    position_bad = against != velocity_bad
    for channel in range(3):
        if sigma[channel] >= par.threshold or row.held & (1 << channel) != 0:
            continue
        if velocity_bad if channel == VELOCITY else position_bad:
            continue
        weaker = max(1.0, (sigma[channel] / SOFT_SIGMA) ** 2)
        if channel == VERTICAL:
            if not math.isnan(residual[2]):
                observe(row, work, POS + 2, residual[2], weaker * variance[2])
            if not math.isnan(residual[5]):
                observe(row, work, VEL + 2, residual[5], weaker * variance[5])
            continue
        first, state = (3, VEL) if channel == VELOCITY else (0, POS)
        if not math.isnan(residual[first]):
            observe(row, work, state, residual[first], weaker * variance[first])
            observe(row, work, state + 1, residual[first + 1], weaker * variance[first + 1])
    settle(row, work)
