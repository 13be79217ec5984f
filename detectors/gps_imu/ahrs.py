"""The attitude of an AHRS, for vehicles whose AHRS runs on the IMU alone: it spares the filter the search for its own.

Only with `attitude = "ahrs"`. Where the AHRS is an autopilot's, it has believed the GPS already, and part of a lie is
in its answer: the default does not look at it. Roll, pitch and yaw are aerospace angles in the configured frames; here
they become a quaternion from body (forward-right-down) to nav (north-east-down), compared with the filter's at one
moment.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.constants import ACCEL_BIAS, AHRS_TILT_STD, AHRS_YAW_STD, GYRO_MOVING, LASTING_EPOCHS
from watchkeeper.detectors.gps_imu.eskf import ACC, ATT, GYR, observe, settle
from watchkeeper.detectors.gps_imu.state import TRACKING, Settings, Vehicle, Work
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def take_attitude(row: Vehicle, par: Settings, work: Work) -> None:
    """Hold the filter's attitude against the AHRS's at the horizon; start tracking from it if that has not begun."""
    roll, pitch, yaw = row.ahrs[0], row.ahrs[1], row.ahrs[2]
    if math.isnan(roll + pitch + yaw):
        return
    if par.enu:
        yaw = 0.5 * math.pi - yaw
    pitch *= par.body_sign
    cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    cy, sy = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    w, x = cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy
    y, z = cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy
    q, cov = row.quat, row.cov
    if row.phase != TRACKING:
        q[0], q[1], q[2], q[3] = w, x, y, z
        cov[: ATT + 3, :] = 0.0
        cov[:, : ATT + 3] = 0.0
        for k in range(3):
            cov[ATT + k, ATT + k] = (AHRS_YAW_STD if k == 2 else AHRS_TILT_STD) ** 2
            cov[GYR + k, GYR + k] = GYRO_MOVING**2
            cov[ACC + k, ACC + k] = ACCEL_BIAS**2
        row.phase = TRACKING
        return
    # the rotation from the filter's attitude to the AHRS's, in nav axes
    side = 2.0 if w * q[0] + x * q[1] + y * q[2] + z * q[3] >= 0.0 else -2.0
    tilt, turn = LASTING_EPOCHS * AHRS_TILT_STD**2, LASTING_EPOCHS * AHRS_YAW_STD**2
    observe(row, work, ATT, side * (x * q[0] - w * q[1] - y * q[3] + z * q[2]), tilt)
    observe(row, work, ATT + 1, side * (y * q[0] - w * q[2] - z * q[1] + x * q[3]), tilt)
    observe(row, work, ATT + 2, side * (z * q[0] - w * q[3] - x * q[2] + y * q[1]), turn)
    settle(row, work)
