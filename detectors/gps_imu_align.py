"""How a vehicle's filter begins: roughly level, then its attitude from what IMU and GPS say about the same seconds.

No magnetometer and no AHRS, so the yaw is unknown at first, and a start in the air may mean a steady turn in which
gravity seems to be where it is not. The IMU, integrated by the gyros alone from some first attitude, gives one
specific-force vector per second; the GPS velocity minus gravity gives the same vectors in north, east and down. The
rotation between the two sets (wahba.py) is what the first attitude was wrong by, tilt and yaw alike. It is taken when
there has been enough horizontal acceleration to know the yaw. Until then all acceleration counts as uncertainty.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import ACC, ATT, GRAVITY, GYR, POS, STATES, VEL, level
from watchkeeper.detectors.gps_imu_state import ALIGNING, F4, LEVELLING, TRACKING, Settings, Vehicle, Work
from watchkeeper.detectors.wahba import best_rotation
from watchkeeper.streams.batch import F8

# Mean of this much IMU gives the first level: long enough to average vibration, short enough for a gyro without bias.
LEVEL_S = 1.0
# "At rest": above the noise of a parked MEMS IMU, below that of a hand that holds it, or of most hovering multirotors.
# Spread of specific force in m/s2, spread and mean of rate in rad/s, GPS speed in m/s. Up to so many seconds of rest
# are averaged, so that what did hover does no harm.
REST_FORCE, REST_SPREAD, REST_RATE, REST_SPEED, REST_AVERAGE = 0.2, 0.02, 0.1, 0.5, 10
# Gyro bias uncertainty after a rest, and without one (a cheap MEMS before calibration), in rad/s; accelerometer bias
# uncertainty in m/s2; tilt uncertainty once the attitude is found, in rad.
GYRO_REST, GYRO_MOVING, ACCEL_BIAS, TILT_FOUND = 0.005, 0.02, 0.3, 0.05
# An unknown velocity, m/s: anything that flies.
ANY_SPEED = 20.0
# IMU and GPS are compared over spans of this length: accelerations last longer than one GPS epoch, its noise not.
SPAN_S = 1.0
# For the same reason an acceleration in an unknown direction weighs this many times its square in one epoch; vertically
# so many m/s2 are unknown before the first span has told the tilt, and after.
LASTING, VERTICAL_FIRST, VERTICAL_UNKNOWN = 2.0, 3.0, 0.7
# The fit forgets with this time constant, so that a gyro bias cannot smear it, and needs this many spans.
FIT_S, FIT_MIN = 15.0, 4.0
# A tilt that needs correction again and again is gyro bias: this part of the correction goes there.
BIAS_GAIN = 0.04
# It is accepted at this yaw uncertainty (rad), if IMU and GPS also agree on how much horizontal acceleration there was.
YAW_STD, GAIN_MIN, GAIN_MAX = 0.2, 0.6, 1.5
# Least yaw uncertainty that the filter starts with: the fit knows nothing of its own systematic errors.
YAW_STD_MIN = 0.1
# Velocity changes carry at least this variance, (m/s)^2, whatever a lucky fit says.
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
    row.rested = 0
    row.gyro_bias[:] = 0.0
    _clear_level(row)


@njit(cache=True)
def _clear_level(row: Vehicle) -> None:
    row.level_s = 0.0
    row.level_sum[:] = 0.0
    row.level_sq[:] = 0.0


@njit(cache=True)
def add_to_level(row: Vehicle, dt: float, turn: F4, push: F4) -> None:
    """One bin of a levelling second; at its end the gyros are calibrated if it was one of rest.

    The attitude is levelled as well until the first GPS fix is in.
    """
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
    if (
        squares[0] / s - force_sq < REST_FORCE**2
        and squares[1] / s - rate_sq < REST_SPREAD**2
        and rate_sq < REST_RATE**2
        and not row.fix[3] ** 2 + row.fix[4] ** 2 > REST_SPEED**2
    ):
        row.rested = min(row.rested + 1, REST_AVERAGE)
        row.gyro_bias[0] += (wx - row.gyro_bias[0]) / row.rested
        row.gyro_bias[1] += (wy - row.gyro_bias[1]) / row.rested
        row.gyro_bias[2] += (wz - row.gyro_bias[2]) / row.rested
    if row.placed == 0:
        level(row, fx, fy, fz)
        row.accel_bias[:] = 0.0
        row.fit_n = row.fit_gps_sq = row.span_s = 0.0
        row.fit_cross[:, :] = 0.0
        row.fit_imu[:, :] = 0.0
        row.span_way[:] = 0.0
        row.span_change[:] = 0.0
        row.spans = 0
        row.phase = ALIGNING
    _clear_level(row)


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
def loosen(row: Vehicle, fix: F8, dvx: float, dvy: float, dt: float) -> None:
    """While the attitude is unknown: all velocity change is uncertainty, and only velocity and position are filtered."""
    cov = row.cov
    unknown = dvx * dvx + dvy * dvy
    dgx, dgy = fix[3] - row.fix[3], fix[4] - row.fix[4]
    if not math.isnan(dgx + dgy):
        # in a steady turn that was taken for level the IMU sees no horizontal acceleration at all
        unknown += dgx * dgx + dgy * dgy
    vertical = VERTICAL_UNKNOWN if row.fit_n > 0.0 else VERTICAL_FIRST
    for k in range(3):
        change = (vertical * dt) ** 2 if k == 2 else LASTING * unknown
        cov[VEL + k, VEL + k] += change
        cov[POS + k, POS + k] += 0.25 * change * dt * dt
    for k in range(STATES):
        if k < VEL or k >= GYR:
            cov[k, :] = 0.0
            cov[:, k] = 0.0


@njit(cache=True)
def seek_attitude(row: Vehicle, work: Work, par: Settings, dt: float) -> None:
    """Add one GPS epoch to the fit; when the yaw is known, correct the attitude and start tracking."""
    span = _span(row, work, dt)
    if span == 0.0:
        return
    std, gain = fit_attitude(row, work, math.exp(-span / FIT_S))
    _blame_gyros(row, work, span)
    if row.fit_n < FIT_MIN or std > YAW_STD or gain < GAIN_MIN or gain > GAIN_MAX:
        return
    cov = row.cov
    for k in range(3):
        cov[ATT + k, ATT + k] = TILT_FOUND**2
        cov[GYR + k, GYR + k] = GYRO_REST**2 if row.rested > 0 else GYRO_MOVING**2
        cov[ACC + k, ACC + k] = ACCEL_BIAS**2
    cov[2, 2] = max(std, YAW_STD_MIN) ** 2
    if not math.isnan(work.fix[3]):
        place(row, work.fix, par)
    row.phase = TRACKING


@njit(cache=True)
def fit_attitude(row: Vehicle, work: Work, keep: float) -> tuple[float, float]:
    """Take work.seen_imu and work.seen_gps into the fit and turn the attitude (and the sums) by the best rotation.

    Returns the standard deviation of the yaw and how much horizontal acceleration the GPS confirms of the IMU's.
    """
    imu, gps, rot = work.seen_imu, work.seen_gps, work.rot
    row.fit_n = row.fit_n * keep + 1.0
    row.fit_gps_sq = row.fit_gps_sq * keep + gps[0] ** 2 + gps[1] ** 2 + gps[2] ** 2
    for i in range(3):
        for j in range(3):
            row.fit_cross[i, j] = row.fit_cross[i, j] * keep + gps[i] * imu[j]
            row.fit_imu[i, j] = row.fit_imu[i, j] * keep + imu[i] * imu[j]
    q, a = work.quat, row.quat
    best_rotation(row.fit_cross, work.square, work.vectors, q)
    w, x, y, z = a[0], a[1], a[2], a[3]
    a[0] = q[0] * w - q[1] * x - q[2] * y - q[3] * z
    a[1] = q[0] * x + q[1] * w + q[2] * z - q[3] * y
    a[2] = q[0] * y - q[1] * z + q[2] * w + q[3] * x
    a[3] = q[0] * z + q[1] * y - q[2] * x + q[3] * w
    rot[0, 0], rot[1, 1] = 1.0 - 2.0 * (q[2] ** 2 + q[3] ** 2), 1.0 - 2.0 * (q[1] ** 2 + q[3] ** 2)
    rot[2, 2] = 1.0 - 2.0 * (q[1] ** 2 + q[2] ** 2)
    rot[0, 1], rot[1, 0] = 2.0 * (q[1] * q[2] - q[0] * q[3]), 2.0 * (q[1] * q[2] + q[0] * q[3])
    rot[0, 2], rot[2, 0] = 2.0 * (q[1] * q[3] + q[0] * q[2]), 2.0 * (q[1] * q[3] - q[0] * q[2])
    rot[1, 2], rot[2, 1] = 2.0 * (q[2] * q[3] - q[0] * q[1]), 2.0 * (q[2] * q[3] + q[0] * q[1])
    _turn_rows(row.fit_cross, rot)
    _turn_rows(row.fit_imu, rot)
    _turn_columns(row.fit_imu, rot)
    rest = row.span_rest
    x, y, z = rest[0], rest[1], rest[2]
    for i in range(3):
        rest[i] = rot[i, 0] * x + rot[i, 1] * y + rot[i, 2] * z
    cross, total = row.fit_cross, row.fit_imu
    horizontal = total[0, 0] + total[1, 1]
    if horizontal <= 0.0:
        return math.inf, 0.0
    left = row.fit_gps_sq + horizontal + total[2, 2] - 2.0 * (cross[0, 0] + cross[1, 1] + cross[2, 2])
    left = max(0.0, left) / max(1.0, 3.0 * row.fit_n - 3.0)
    return math.sqrt((left + FIT_NOISE) / horizontal), (cross[0, 0] + cross[1, 1]) / horizontal


@njit(cache=True)
def _blame_gyros(row: Vehicle, work: Work, span: float) -> None:
    """Put a part of the tilt that was just corrected (work.quat) down to gyro bias."""
    if row.fit_n < FIT_MIN:
        return
    north, east = 2.0 * work.quat[1], 2.0 * work.quat[2]
    w, x, y, z = row.quat[0], row.quat[1], row.quat[2], row.quat[3]
    part = BIAS_GAIN / span
    row.gyro_bias[0] -= part * ((1.0 - 2.0 * (y * y + z * z)) * north + 2.0 * (x * y + w * z) * east)
    row.gyro_bias[1] -= part * (2.0 * (x * y - w * z) * north + (1.0 - 2.0 * (x * x + z * z)) * east)
    row.gyro_bias[2] -= part * (2.0 * (x * z + w * y) * north + 2.0 * (y * z - w * x) * east)


@njit(cache=True)
def _turn_rows(m: F8, rot: F8) -> None:
    """m becomes m x rot transposed: each of its rows is turned."""
    for i in range(3):
        x, y, z = m[i, 0], m[i, 1], m[i, 2]
        for j in range(3):
            m[i, j] = rot[j, 0] * x + rot[j, 1] * y + rot[j, 2] * z


@njit(cache=True)
def _turn_columns(m: F8, rot: F8) -> None:
    """m becomes rot x m: each of its columns is turned."""
    for j in range(3):
        x, y, z = m[0, j], m[1, j], m[2, j]
        for i in range(3):
            m[i, j] = rot[i, 0] * x + rot[i, 1] * y + rot[i, 2] * z


@njit(cache=True)
def _span(row: Vehicle, work: Work, dt: float) -> float:
    """Gather this epoch; at the end of a span fill work.seen_imu and work.seen_gps and return its length, else 0.

    Both are specific force times time: for the GPS, velocity change minus gravity. Without GPS velocity it is the
    change of mean velocity from the span before to this one, which weighs gravity by the mean of the two.
    """
    fix, change, way = work.fix, row.span_change, row.span_way
    if row.span_s == 0.0:
        for k in range(3):
            row.span_pos[k], row.span_vel[k] = row.fix[k], row.fix[3 + k]
    for k in range(3):
        way[k] += (change[k] + 0.5 * work.force[k]) * dt
        change[k] += work.force[k]
    row.span_s += dt
    span = row.span_s
    if span < SPAN_S:
        return 0.0
    by_velocity = not math.isnan(fix[3] + row.span_vel[0])
    usable = by_velocity or row.spans > 0
    for k in range(3):
        mean = (fix[k] - row.span_pos[k]) / span
        imu_mean = way[k] / span
        if by_velocity:
            imu, gps, seconds = change[k], fix[3 + k] - row.span_vel[k], span
        else:
            imu, gps, seconds = row.span_rest[k] + imu_mean, mean - row.span_mean[k], 0.5 * (span + row.span_before_s)
        # a receiver that tells nothing about the vertical is taken to stay level
        work.seen_gps[k] = (0.0 if math.isnan(gps) else gps) - (GRAVITY * seconds if k == 2 else 0.0)
        work.seen_imu[k] = imu
        row.span_rest[k] = change[k] - imu_mean
        row.span_mean[k] = mean
        way[k] = change[k] = 0.0
    row.span_before_s = span
    row.span_s = 0.0
    row.spans += 1
    return span if usable else 0.0
