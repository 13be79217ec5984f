"""One GPS fix against the filter: innovations per channel, a verdict, and the update that the verdict allows.

Fixes come as local x/y/z or as latitude, longitude and altitude, with or without velocity; here they become
north-east-down metres. Geodetic fixes are added up step by step along the local north and east, which is what a
velocity in north and east integrates to, wherever the vehicle goes.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import GRAVITY, POS, VEL, correct, observe
from watchkeeper.detectors.gps_imu_align import loosen_yaw, place, seek_yaw
from watchkeeper.detectors.gps_imu_bins import consume, move_covariance
from watchkeeper.detectors.gps_imu_judge import conclude, count_freeze, learn, scale_channels
from watchkeeper.detectors.gps_imu_state import (
    AGAINST, ALIGNING, ANCHORED, BIN_COUNT, BIN_FIRST, DRIFT, FREEZE, G_ACCEL, G_AGAINST, G_DRIFT, G_HORIZON, G_LAT, G_LON,
    G_POS, G_T, G_VEL, HELD, LATCHED, PHASE, PLACED, POSITION, STUCK, VELOCITY, VERTICAL, Settings, Tables,
)  # fmt: skip
from watchkeeper.streams.batch import F8

WGS84_A, WGS84_E2 = 6_378_137.0, 6.694379990141e-3
# Columns of the GPS stream (messages.FIELDS), which the kernel reads by number.
X, LAT, LON, ALT, VX, FIX = 0, 3, 4, 5, 6, 9
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
# The first is held to this many times its 99 % level, so that one jump is not remembered for half a minute.
AGAINST_MAX = 4.0
# After a pause in the GPS this long there is no path to compare with; after the second one, position begins anew.
PAUSE_S, OUTAGE_S = 2.0, 10.0
# Innovations beyond this many sigmas count less in the update: an attack that grows is followed ever more slowly.
SOFT_SIGMA = 2.0


@njit(cache=True)
def take_gps(row: Tables, par: Settings, work: F8, t: float, data: F8, i: int, sigma: F8) -> float:
    """One fix; fills `sigma` per channel and returns the score, NaN where there is nothing to judge yet."""
    status, gps, acc = row.status, row.gps, row.acc
    horizon = t - par.gps_delay_s
    while status[BIN_COUNT] > 0 and row.bin_t[status[BIN_FIRST]] <= horizon:
        consume(row, par, work)
    fix = work[32:38]
    if status[PHASE] < ALIGNING or not _read_fix(row, par, data, i, fix):
        return math.nan
    dt = t - gps[G_T]
    if status[PLACED] == 0 or (dt > OUTAGE_S and status[LATCHED] == 0):
        place(row, fix, par)
        _remember(row, data, i, fix, t)
        return math.nan
    lag, span = horizon - gps[G_HORIZON], acc[16]
    if dt <= 0.0 or span <= 0.0 or lag > par.imu_gap_s:
        return math.nan  # the IMU has not yet told about this moment
    if acc[12] > 0.0:
        move_covariance(row, par, work)
    dvx, dvy = acc[13], acc[14]
    ax, ay, az = dvx / span, dvy / span, acc[15] / span + GRAVITY
    acc[13:17] = 0.0
    if status[PHASE] == ALIGNING:
        loosen_yaw(row, fix, dvx, dvy, span)
    gps[G_ACCEL] = max(math.sqrt(ax * ax + ay * ay + az * az), gps[G_ACCEL] * math.exp(-dt / SETTLE_S))

    nav = row.nav
    residual, variance, distance = work[38:44], work[44:50], work[50:55]
    for k in range(3):
        residual[k] = fix[k] - (nav[7 + k] + nav[4 + k] * lag)
    residual[3] = fix[3] - (nav[4] + ax * lag)
    residual[4] = fix[4] - (nav[5] + ay * lag)
    residual[5] = fix[5] - (nav[6] + az * lag)
    speed = math.sqrt(nav[4] * nav[4] + nav[5] * nav[5] + nav[6] * nav[6])
    _noise(par, speed, gps[G_ACCEL], variance)
    _distances(row, par, fix, dt, residual, variance, distance)
    changed = _changed(row, data, i, fix)
    moving = speed > 1.0 or gps[G_ACCEL] > 0.5
    count_freeze(row, changed, status[LATCHED] == 1)
    score = scale_channels(row, par, distance, sigma, changed, moving)
    if score < par.threshold and status[LATCHED] == 0:
        learn(row, distance, speed)
    _update(row, par, work, residual, variance, sigma)
    if status[PHASE] == ALIGNING and score < par.threshold:
        seek_yaw(row, fix, dvx, dvy, span, par)
    _remember(row, data, i, fix, t)
    return conclude(row, par, sigma, score, fix, dt)


@njit(cache=True)
def _read_fix(row: Tables, par: Settings, data: F8, i: int, fix: F8) -> bool:
    """The fix as north, east, down position and velocity, NaN where absent; False when there is no position."""
    if data[FIX, i] < 2.0:
        return False  # NaN, the usual "not told", passes
    if par.enu:
        fix[0], fix[1], fix[2] = data[X + 1, i], data[X, i], -data[X + 2, i]
        fix[3], fix[4], fix[5] = data[VX + 1, i], data[VX, i], -data[VX + 2, i]
    else:
        for k in range(3):
            fix[k], fix[3 + k] = data[X + k, i], data[VX + k, i]
    if math.isnan(fix[3] + fix[4]):
        fix[3] = fix[4] = math.nan
    if not math.isnan(fix[0] + fix[1]):
        return True
    lat, lon = data[LAT, i], data[LON, i]
    if math.isnan(lat + lon):
        return False
    fix[2] = -data[ALT, i]
    if row.status[ANCHORED] == 0:
        fix[0] = fix[1] = 0.0
        return True
    gps = row.gps
    mid = math.radians(0.5 * (lat + gps[G_LAT]))
    curve = 1.0 - WGS84_E2 * math.sin(mid) ** 2
    dlon = (lon - gps[G_LON] + 540.0) % 360.0 - 180.0
    fix[0] = gps[G_POS] + math.radians(lat - gps[G_LAT]) * WGS84_A * (1.0 - WGS84_E2) / (curve * math.sqrt(curve))
    fix[1] = gps[G_POS + 1] + math.radians(dlon) * WGS84_A * math.cos(mid) / math.sqrt(curve)
    return True


@njit(cache=True)
def _remember(row: Tables, data: F8, i: int, fix: F8, t: float) -> None:
    gps = row.gps
    gps[G_T] = t
    for k in range(3):
        gps[G_POS + k], gps[G_VEL + k] = fix[k], fix[3 + k]
    gps[G_LAT], gps[G_LON] = data[LAT, i], data[LON, i]
    row.status[ANCHORED] = 0 if math.isnan(gps[G_LAT] + gps[G_LON]) else 1


@njit(cache=True)
def _changed(row: Tables, data: F8, i: int, fix: F8) -> bool:
    """Whether anything in the fix differs from the one before (absent equals absent)."""
    gps = row.gps
    for k in range(3):
        a, b = fix[k], gps[G_POS + k]
        if a != b and not (math.isnan(a) and math.isnan(b)):
            return True
        a, b = fix[3 + k], gps[G_VEL + k]
        if a != b and not (math.isnan(a) and math.isnan(b)):
            return True
    return False


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
def _distances(row: Tables, par: Settings, fix: F8, dt: float, residual: F8, variance: F8, distance: F8) -> None:
    """Mahalanobis distances of the innovations, and of the leaky sums of position against velocity and of drift."""
    cov, gps = row.cov, row.gps
    with_velocity, with_down = not math.isnan(fix[3]), not math.isnan(fix[2])
    distance[:] = 0.0
    distance[POSITION] = _pair(cov, POS, POS + 1, residual[0], residual[1], variance[0], variance[1])
    if with_velocity:
        distance[VELOCITY] = _pair(cov, VEL, VEL + 1, residual[3], residual[4], variance[3], variance[4])
    if with_down:
        if math.isnan(fix[5]):
            distance[VERTICAL] = abs(residual[2]) / math.sqrt(cov[POS + 2, POS + 2] + variance[2])
        else:
            distance[VERTICAL] = _pair(cov, POS + 2, VEL + 2, residual[2], residual[5], variance[2], variance[5])
    keep = math.exp(-dt / AGAINST_S) if dt < PAUSE_S else 0.0
    total = 0.0
    most = AGAINST_MAX * row.scale[AGAINST]
    for k in range(3):
        gap = fix[k] - gps[G_POS + k] - 0.5 * dt * (fix[3 + k] + gps[G_VEL + k])
        std = math.sqrt(variance[k])
        total_gap = 0.0 if math.isnan(gap) or keep == 0.0 else keep * gps[G_AGAINST + k] + gap
        gps[G_AGAINST + k] = min(max(total_gap, -most * std), most * std)
        total += gps[G_AGAINST + k] ** 2 / variance[k]
    distance[AGAINST] = math.sqrt(total)
    # where there is no velocity, the position has to show the drift
    keep = math.exp(-dt / DRIFT_S)
    first, state = (3, VEL) if with_velocity else (0, POS)
    lasting = DRIFT_LATE * (LATE_VELOCITY * par.timing_std_s * gps[G_ACCEL]) ** 2
    total = 0.0
    for k in range(3):
        unit = residual[first + k] / math.sqrt(cov[state + k, state + k] + variance[first + k] + lasting)
        if math.isnan(unit):
            unit = 0.0
        gps[G_DRIFT + k] += (1.0 - keep) * (unit - gps[G_DRIFT + k])
        total += gps[G_DRIFT + k] ** 2
    distance[DRIFT] = math.sqrt(total * (1.0 + keep) / (1.0 - keep))


@njit(cache=True)
def _pair(cov: F8, m: int, n: int, x: float, y: float, var_x: float, var_y: float) -> float:
    """Mahalanobis distance of two innovations."""
    a, b, c = cov[m, m] + var_x, cov[m, n], cov[n, n] + var_y
    return math.sqrt(max(0.0, (c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b)))


@njit(cache=True)
def _update(row: Tables, par: Settings, work: F8, residual: F8, variance: F8, sigma: F8) -> None:
    """Fuse what is not suspect. A channel at the threshold is left out, one on the way there counts less."""
    cov, error, line = row.cov, work[0:16], work[16:32]
    error[:] = 0.0
    if sigma[FREEZE] >= par.threshold or sigma[STUCK] >= par.threshold:
        return
    held = row.status[HELD]
    against = sigma[AGAINST] >= par.threshold
    velocity_bad = sigma[VELOCITY] >= par.threshold or (held & (1 << VELOCITY | 1 << DRIFT)) != 0
    # Of a position and a velocity that contradict each other, the one that the IMU does not confirm is left out. A
    # velocity that is wrong and fits its position is a GPS (or an IMU) that is wrong altogether: coast.
    position_bad = against != velocity_bad
    for channel in range(3):
        if sigma[channel] >= par.threshold or held & (1 << channel) != 0:
            continue
        if velocity_bad if channel == VELOCITY else position_bad:
            continue
        weaker = max(1.0, (sigma[channel] / SOFT_SIGMA) ** 2)
        first = 3 if channel == VELOCITY else 0
        if channel == VERTICAL:
            if not math.isnan(residual[2]):
                observe(cov, error, line, POS + 2, residual[2], weaker * variance[2])
            if not math.isnan(residual[5]):
                observe(cov, error, line, VEL + 2, residual[5], weaker * variance[5])
        elif not math.isnan(residual[first]):
            state = VEL if channel == VELOCITY else POS
            observe(cov, error, line, state, residual[first], weaker * variance[first])
            observe(cov, error, line, state + 1, residual[first + 1], weaker * variance[first + 1])
    correct(row.nav, error)
