"""How a vehicle's filter begins: level from gravity, then find the yaw by matching IMU and GPS accelerations.

No magnetometer and no AHRS: yaw is unknown at first. The IMU's horizontal velocity changes, integrated with yaw set to
zero, are those of the GPS turned by one angle; a least-squares fit of that angle over the last half minute says how
well it is known. Until then all horizontal acceleration counts as uncertainty. Works in the air as well as on the
ground: a wrong first level adds a constant, which the fit leaves out and the filter removes.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import ACC, ATT, GRAVITY, GYR, POS, VEL, level, turn_about_down
from watchkeeper.detectors.gps_imu_state import ALIGNING, F4, LEVELLING, TRACKING, Settings, Vehicle
from watchkeeper.streams.batch import F8

# Mean of this much IMU gives the first level: long enough to average vibration, short enough for a gyro without bias.
LEVEL_S = 1.0
# "At rest" while levelling: above the noise of a parked MEMS IMU, below that of any hand that holds it.
REST_FORCE, REST_RATE = 0.5, 0.05
# First uncertainties, at rest and otherwise: tilt in rad (a hard turn hides up to a dozen degrees), gyro bias in rad/s
# (a cheap MEMS before calibration).
TILT_REST, TILT_MOVING = 0.03, 0.2
GYRO_REST, GYRO_MOVING = 0.005, 0.02
# Accelerometer bias in m/s2; before the yaw is known it cannot be told from tilt, so it gets little room.
ACCEL_BIAS, ACCEL_BIAS_LEVEL = 0.3, 0.1
# An unknown velocity, m/s: anything that flies.
ANY_SPEED = 20.0
# Velocity changes are compared over spans of this length: accelerations last longer than one GPS epoch, its noise not.
SPAN_S = 1.0
# For the same reason an acceleration in an unknown direction weighs this many times its square in one epoch.
LASTING = 2.0
# The fit forgets with this time constant, so that a gyro bias cannot smear it, and needs this many spans.
FIT_S, FIT_MIN = 30.0, 4.0
# It is accepted at this uncertainty (rad), if IMU and GPS also agree on how much acceleration there was.
YAW_STD, GAIN_MIN, GAIN_MAX = 0.15, 0.6, 1.5
# Least uncertainty that the filter starts with: the fit knows nothing of its own systematic errors.
YAW_STD_MIN = 0.1
# GPS velocity changes carry at least this variance, (m/s)^2, whatever a lucky fit says.
FIT_NOISE = 0.01


@njit(cache=True)
def restart(row: Vehicle, t: float) -> None:
    """Begin anew at time t, keeping what was learned about the vehicle."""
    row.bin_first = 0
    row.bin_count = 0
    row.bin_start = t
    row.bin_sum[:] = 0.0
    row.horizon = t
    relevel(row)


@njit(cache=True)
def relevel(row: Vehicle) -> None:
    """Give up the attitude, keep the IMU samples that wait."""
    row.phase = LEVELLING
    row.placed = 0
    _clear_level(row)


@njit(cache=True)
def _clear_level(row: Vehicle) -> None:
    row.level_s = 0.0
    row.level_sum[:] = 0.0
    row.level_sq[:] = 0.0


@njit(cache=True)
def add_to_level(row: Vehicle, dt: float, turn: F4, push: F4) -> None:
    """One bin of the levelling second; at its end the attitude is set. Repeated until the first GPS fix is in."""
    total, squares = row.level_sum, row.level_sq
    row.level_s += dt
    for k in range(3):
        total[k] += push[k]
        total[3 + k] += turn[k]
        squares[0] += push[k] * push[k] / dt
        squares[1] += turn[k] * turn[k] / dt
    s = row.level_s
    if s < LEVEL_S:
        return
    fx, fy, fz = total[0] / s, total[1] / s, total[2] / s
    wx, wy, wz = total[3] / s, total[4] / s, total[5] / s
    force_sq, rate_sq = fx * fx + fy * fy + fz * fz, wx * wx + wy * wy + wz * wz
    at_rest = (
        squares[0] / s - force_sq < REST_FORCE**2
        and squares[1] / s - rate_sq < REST_RATE**2
        and rate_sq < 4.0 * REST_RATE**2
        and abs(math.sqrt(force_sq) - GRAVITY) < REST_FORCE
    )
    level(row, fx, fy, fz)
    row.accel_bias[:] = 0.0
    row.gyro_bias[:] = 0.0
    if at_rest:
        row.gyro_bias[0], row.gyro_bias[1], row.gyro_bias[2] = wx, wy, wz
    cov = row.cov
    cov[:, :] = 0.0
    for k in range(2):
        cov[ATT + k, ATT + k] = TILT_REST**2 if at_rest else TILT_MOVING**2
    for k in range(3):
        cov[GYR + k, GYR + k] = GYRO_REST**2 if at_rest else GYRO_MOVING**2
        cov[ACC + k, ACC + k] = ACCEL_BIAS_LEVEL**2
    _clear_level(row)
    _clear_fit(row)
    row.phase = ALIGNING


@njit(cache=True)
def _clear_fit(row: Vehicle) -> None:
    row.fit_n = row.fit_dot = row.fit_cross = row.fit_imu_sq = row.fit_gps_sq = 0.0
    row.fit_imu[:] = 0.0
    row.fit_gps[:] = 0.0
    row.span_s = 0.0
    row.span_way[:] = 0.0
    row.span_change[:] = 0.0
    row.spans = 0


@njit(cache=True)
def place(row: Vehicle, fix: F8, par: Settings) -> None:
    """Set position and velocity from a fix (zero where it says nothing), uncorrelated with everything else."""
    cov = row.cov
    for k in range(3):
        with_position, with_velocity = not math.isnan(fix[k]), not math.isnan(fix[3 + k])
        row.pos[k] = fix[k] if with_position else 0.0
        row.vel[k] = fix[3 + k] if with_velocity else 0.0
        cov[VEL + k, :] = 0.0
        cov[:, VEL + k] = 0.0
        cov[POS + k, :] = 0.0
        cov[:, POS + k] = 0.0
        cov[VEL + k, VEL + k] = (2.0 * par.velocity_std_mps) ** 2 if with_velocity else ANY_SPEED**2
        cov[POS + k, POS + k] = (2.0 * par.position_std_m) ** 2
    row.step_rot[:] = 0.0
    row.step_force[:] = 0.0
    row.step_turn[:] = 0.0
    row.epoch_force[:] = 0.0
    row.step_s = row.epoch_s = 0.0
    row.placed = 1


@njit(cache=True)
def loosen_yaw(row: Vehicle, fix: F8, dvx: float, dvy: float, dt: float) -> None:
    """While the yaw is unknown: all horizontal velocity change is uncertainty, and the yaw stays untouched."""
    cov = row.cov
    unknown = dvx * dvx + dvy * dvy
    dgx, dgy = fix[3] - row.fix[3], fix[4] - row.fix[4]
    if not math.isnan(dgx + dgy):
        # a level that has already given way to an acceleration hides it from the IMU
        unknown += dgx * dgx + dgy * dgy
    for k in range(2):
        cov[VEL + k, VEL + k] += LASTING * unknown
        cov[POS + k, POS + k] += 0.25 * LASTING * unknown * dt * dt
    cov[2, :] = 0.0
    cov[:, 2] = 0.0


@njit(cache=True)
def seek_yaw(row: Vehicle, fix: F8, dvx: float, dvy: float, dt: float, par: Settings) -> None:
    """Add one GPS epoch to the yaw fit; on success turn the attitude and start tracking."""
    imu_x, imu_y, gps_x, gps_y, span = _span(row, fix, dvx, dvy, dt)
    if span == 0.0:
        return
    yaw, std, gain = fit_yaw(row, imu_x, imu_y, gps_x, gps_y, math.exp(-span / FIT_S))
    if std > YAW_STD or gain < GAIN_MIN or gain > GAIN_MAX:
        return
    turn_about_down(row, yaw)
    cov = row.cov
    tilt = 0.5 * (cov[0, 0] + cov[1, 1])
    for k in range(3):
        cov[ATT + k, :] = 0.0
        cov[:, ATT + k] = 0.0
        cov[ACC + k, ACC + k] += ACCEL_BIAS**2
    cov[0, 0] = cov[1, 1] = tilt + TILT_REST**2
    cov[2, 2] = max(std, YAW_STD_MIN) ** 2
    if not math.isnan(fix[3]):
        place(row, fix, par)
    row.phase = TRACKING


@njit(cache=True)
def fit_yaw(row: Vehicle, ix: float, iy: float, gx: float, gy: float, keep: float) -> tuple[float, float, float]:
    """The angle that turns the IMU's velocity changes onto the GPS's, its standard deviation, and their size ratio."""
    row.fit_n = n = row.fit_n * keep + 1.0
    imu, gps = row.fit_imu, row.fit_gps
    imu[0] = imu[0] * keep + ix
    imu[1] = imu[1] * keep + iy
    gps[0] = gps[0] * keep + gx
    gps[1] = gps[1] * keep + gy
    row.fit_dot = row.fit_dot * keep + ix * gx + iy * gy
    row.fit_cross = row.fit_cross * keep + ix * gy - iy * gx
    row.fit_imu_sq = row.fit_imu_sq * keep + ix * ix + iy * iy
    row.fit_gps_sq = row.fit_gps_sq * keep + gx * gx + gy * gy
    # without their means: a tilt error adds the same to every IMU change
    dot = row.fit_dot - (imu[0] * gps[0] + imu[1] * gps[1]) / n
    cross = row.fit_cross - (imu[0] * gps[1] - imu[1] * gps[0]) / n
    imu_sq = row.fit_imu_sq - (imu[0] * imu[0] + imu[1] * imu[1]) / n
    gps_sq = row.fit_gps_sq - (gps[0] * gps[0] + gps[1] * gps[1]) / n
    if n < FIT_MIN or imu_sq <= 0.0:
        return 0.0, math.inf, 0.0
    fitted = dot * dot + cross * cross
    left = max(0.0, gps_sq - fitted / imu_sq) / (2.0 * n - 3.0)
    return math.atan2(cross, dot), math.sqrt((left + FIT_NOISE) / imu_sq), math.sqrt(fitted) / imu_sq


@njit(cache=True)
def _span(row: Vehicle, fix: F8, dvx: float, dvy: float, dt: float) -> tuple[float, float, float, float, float]:
    """Velocity changes of IMU and GPS over a span, and its length (0: not over yet).

    Without GPS velocity they are changes of the mean velocity from the span before to this one.
    """
    start_pos, start_vel, way, change = row.span_pos, row.span_vel, row.span_way, row.span_change
    if row.span_s == 0.0:
        for k in range(2):
            start_pos[k], start_vel[k] = row.fix[k], row.fix[3 + k]
    way[0] += (change[0] + 0.5 * dvx) * dt
    way[1] += (change[1] + 0.5 * dvy) * dt
    change[0] += dvx
    change[1] += dvy
    row.span_s += dt
    span = row.span_s
    if span < SPAN_S:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    imu_x, imu_y = change[0], change[1]
    gps_x, gps_y = fix[3] - start_vel[0], fix[4] - start_vel[1]
    mean_x, mean_y = way[0] / span, way[1] / span
    gps_mean_x, gps_mean_y = (fix[0] - start_pos[0]) / span, (fix[1] - start_pos[1]) / span
    usable = True
    if math.isnan(gps_x + gps_y):
        usable = row.spans > 0
        imu_x, imu_y = row.span_rest[0] + mean_x, row.span_rest[1] + mean_y
        gps_x, gps_y = gps_mean_x - row.span_mean[0], gps_mean_y - row.span_mean[1]
    row.span_rest[0], row.span_rest[1] = change[0] - mean_x, change[1] - mean_y
    row.span_mean[0], row.span_mean[1] = gps_mean_x, gps_mean_y
    row.spans += 1
    row.span_s = 0.0
    way[:] = 0.0
    change[:] = 0.0
    return imu_x, imu_y, gps_x, gps_y, span if usable else 0.0
