"""GPS against IMU the plain way: a Kalman filter of position and velocity in NumPy, one sample at a time.

The state is what a textbook has: three positions, three velocities and three biases of the accelerometer, driven by the
acceleration in the local frame (attitude from the sample itself), corrected by each GPS fix. Its figure is the
normalised innovation squared of the fix.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.messages import COLUMN, Kind

GRAVITY = np.array([0.0, 0.0, 9.80665])
ACCEL_NOISE, BIAS_NOISE, GPS_NOISE_M = 0.5, 0.01, 2.0


class Filter:
    """One vehicle."""

    def __init__(self) -> None:
        self._x = np.zeros(9)
        self._p = np.eye(9) * 100.0
        self._t = np.nan
        self._h = np.eye(3, 9)
        self._r = np.eye(3) * GPS_NOISE_M**2

    def predict(self, t: float, force: F8, angles: F8) -> None:
        """An IMU sample."""
        dt = t - self._t
        self._t = t
        if not 0.0 < dt < 1.0:
            return
        turn = _rotation(*angles)
        acceleration = turn @ (force - self._x[6:]) + GRAVITY
        f = np.eye(9)
        f[:3, 3:6] = np.eye(3) * dt
        f[3:6, 6:] = -turn * dt
        g = np.zeros((9, 3))
        g[:3], g[3:6] = np.eye(3) * 0.5 * dt * dt, turn * dt
        self._x[:3] += self._x[3:6] * dt + 0.5 * acceleration * dt * dt
        self._x[3:6] += acceleration * dt
        self._p = f @ self._p @ f.T + g @ g.T * ACCEL_NOISE**2
        self._p[6:, 6:] += np.eye(3) * (BIAS_NOISE * dt) ** 2

    def correct(self, position: F8) -> float:
        """A GPS fix; its normalised innovation squared."""
        innovation = position - self._h @ self._x
        s = self._h @ self._p @ self._h.T + self._r
        inverse = np.linalg.inv(s)
        gain = self._p @ self._h.T @ inverse
        self._x += gain @ innovation
        self._p = (np.eye(9) - gain @ self._h) @ self._p
        return float(innovation @ inverse @ innovation)


def _rotation(roll: float, pitch: float, yaw: float) -> F8:
    cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (np.cos, np.sin))
    return np.array(
        [
            [cp * cy, sr * sp * cy - cr * sy, cr * sp * cy + sr * sy],
            [cp * sy, sr * sp * sy + cr * cy, cr * sp * sy - sr * cy],
            [-sp, sr * cp, cr * cp],
        ]
    )


def judge(batch: Batch) -> float:
    """All samples in the order of arrival; the largest figure."""
    filters = [Filter() for _ in batch.ids]
    imu, gps = batch.kinds[Kind.IMU], batch.kinds[Kind.GPS]
    force = imu.data[[COLUMN[Kind.IMU][name] for name in ("imu_ax", "imu_ay", "imu_az")]].T
    angles = np.nan_to_num(imu.data[[COLUMN[Kind.IMU][name] for name in ("roll", "pitch", "yaw")]].T)
    place = gps.data[[COLUMN[Kind.GPS][name] for name in ("gps_x", "gps_y", "gps_z")]].T
    order = np.argsort(np.concatenate([imu.seq, gps.seq]))
    largest = 0.0
    for i in order.tolist():
        if i < len(imu):
            filters[imu.vid[i]].predict(float(imu.t[i]), force[i], angles[i])
        else:
            k = i - len(imu)
            largest = max(largest, filters[gps.vid[k]].correct(place[k]))
    return largest
