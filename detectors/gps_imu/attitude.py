"""The attitude of a vehicle, tilt and yaw, from what its IMU and its GPS say about the same seconds.

The IMU, integrated by the gyros alone from some first attitude, gives one specific-force vector per second; the GPS
velocity minus gravity gives the same vectors in north, east and down. The rotation between the two sets (wahba.py) is
what the first attitude was wrong by. How well the yaw is known follows from how much horizontal acceleration there was.
Called by align.py for each fix until the vehicle is tracked.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.constants import BIAS_GAIN, FIT_MIN, FIT_NOISE, FIT_S, SPAN_S
from watchkeeper.detectors.gps_imu.state import Vehicle, Work
from watchkeeper.detectors.kernels.wahba import best_rotation
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def fit_attitude(row: Vehicle, work: Work, span: float) -> tuple[float, float]:
    """Take work.seen_imu and work.seen_gps into the fit and turn the attitude (and the sums) by the best rotation.

    Returns the standard deviation of the yaw and how much horizontal acceleration the GPS confirms of the IMU's.
    """
    imu, gps, rot = work.seen_imu, work.seen_gps, work.rot
    keep = math.exp(-span / FIT_S)
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
    _blame_gyros(row, work, span)
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
    """Turn each row of a matrix: m x rot transposed."""
    for i in range(3):
        x, y, z = m[i, 0], m[i, 1], m[i, 2]
        for j in range(3):
            m[i, j] = rot[j, 0] * x + rot[j, 1] * y + rot[j, 2] * z


@njit(cache=True)
def _turn_columns(m: F8, rot: F8) -> None:
    """Turn each column of a matrix: rot x m."""
    for j in range(3):
        x, y, z = m[0, j], m[1, j], m[2, j]
        for i in range(3):
            m[i, j] = rot[i, 0] * x + rot[i, 1] * y + rot[i, 2] * z


@njit(cache=True)
def gather(row: Vehicle, work: Work, dt: float) -> float:
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
        work.seen_gps[k] = (0.0 if math.isnan(gps) else gps) - (GRAVITY_MS2 * seconds if k == 2 else 0.0)
        work.seen_imu[k] = imu
        row.span_rest[k] = change[k] - imu_mean
        row.span_mean[k] = mean
        way[k] = change[k] = 0.0
    row.span_before_s = span
    row.span_s = 0.0
    row.spans += 1
    return span if usable else 0.0
