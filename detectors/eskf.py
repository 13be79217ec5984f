"""Error-state Kalman filter of one vehicle: strapdown integration, covariance, one-component updates.

SI units, axes north-east-down (nav) and forward-right-down (body). Called by gps_imu_kernel.py, once per IMU bin
(strapdown) and once per GPS fix (everything else), on rows of the tables in gps_imu_state.py.

    nav[16]    0:4 quaternion body to nav, 4:7 velocity, 7:10 position, 10:13 gyro bias, 13:16 accelerometer bias
    cov[16,16] errors (truth minus estimate): 0:3 attitude, 3:6 velocity, 6:9 position, 9:12 gyro bias, 12:15
               accelerometer bias; row and column 15 are padding that lets the compiler use whole vector registers
    acc[17]    since the last covariance step: 0:9 integral of the rotation matrix, 9:12 of specific force, 12 time;
               since the last GPS fix: 13:16 integral of specific force, 16 time

The attitude error is a small rotation in nav axes. With that choice the transition over a whole GPS interval is known
from two integrals, so the covariance moves once per fix, not once per IMU sample:

    attitude +=  -A gyro_bias                       A = integral of the rotation matrix
    velocity +=  -[D x] attitude - A accel_bias     D = integral of specific force
    position +=  T velocity + half of the above T
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.streams.batch import F8

GRAVITY = 9.80665
ATT, VEL, POS, GYR, ACC = 0, 3, 6, 9, 12
STATES = 15


@njit(cache=True)
def strapdown(nav: F8, acc: F8, dt: float, turn: F8, push: F8) -> None:
    """Move the state over one bin: `turn` is the summed angular rate [rad], `push` the summed specific force [m/s]."""
    # a quarter of the turn, as the vector part of the quaternion of half the turn: no trigonometry for small angles
    hx = 0.25 * (turn[0] - nav[10] * dt)
    hy = 0.25 * (turn[1] - nav[11] * dt)
    hz = 0.25 * (turn[2] - nav[12] * dt)
    hw = 1.0 - 0.5 * (hx * hx + hy * hy + hz * hz)
    w, x, y, z = nav[0], nav[1], nav[2], nav[3]
    mw = w * hw - x * hx - y * hy - z * hz
    mx = w * hx + x * hw + y * hz - z * hy
    my = w * hy - x * hz + y * hw + z * hx
    mz = w * hz + x * hy - y * hx + z * hw
    # the attitude half-way through the bin turns its specific force into nav axes
    r00 = 1.0 - 2.0 * (my * my + mz * mz)
    r01 = 2.0 * (mx * my - mw * mz)
    r02 = 2.0 * (mx * mz + mw * my)
    r10 = 2.0 * (mx * my + mw * mz)
    r11 = 1.0 - 2.0 * (mx * mx + mz * mz)
    r12 = 2.0 * (my * mz - mw * mx)
    r20 = 2.0 * (mx * mz - mw * my)
    r21 = 2.0 * (my * mz + mw * mx)
    r22 = 1.0 - 2.0 * (mx * mx + my * my)
    fx = push[0] - nav[13] * dt
    fy = push[1] - nav[14] * dt
    fz = push[2] - nav[15] * dt
    dx = r00 * fx + r01 * fy + r02 * fz
    dy = r10 * fx + r11 * fy + r12 * fz
    dz = r20 * fx + r21 * fy + r22 * fz
    nav[7] += (nav[4] + 0.5 * dx) * dt
    nav[8] += (nav[5] + 0.5 * dy) * dt
    nav[9] += (nav[6] + 0.5 * (dz + GRAVITY * dt)) * dt
    nav[4] += dx
    nav[5] += dy
    nav[6] += dz + GRAVITY * dt
    w = mw * hw - mx * hx - my * hy - mz * hz
    x = mw * hx + mx * hw + my * hz - mz * hy
    y = mw * hy - mx * hz + my * hw + mz * hx
    z = mw * hz + mx * hy - my * hx + mz * hw
    scale = 1.5 - 0.5 * (w * w + x * x + y * y + z * z)
    nav[0], nav[1], nav[2], nav[3] = w * scale, x * scale, y * scale, z * scale
    acc[0] += r00 * dt
    acc[1] += r01 * dt
    acc[2] += r02 * dt
    acc[3] += r10 * dt
    acc[4] += r11 * dt
    acc[5] += r12 * dt
    acc[6] += r20 * dt
    acc[7] += r21 * dt
    acc[8] += r22 * dt
    acc[9] += dx
    acc[10] += dy
    acc[11] += dz
    acc[12] += dt
    acc[13] += dx
    acc[14] += dy
    acc[15] += dz
    acc[16] += dt


@njit(cache=True)
def spread(cov: F8, acc: F8, noise: F8) -> None:
    """Move the covariance over the accumulated interval and add the process noise (a variance per state)."""
    a0, a1, a2 = acc[0], acc[1], acc[2]
    a3, a4, a5 = acc[3], acc[4], acc[5]
    a6, a7, a8 = acc[6], acc[7], acc[8]
    dx, dy, dz, t = acc[9], acc[10], acc[11], acc[12]
    half, sixth = 0.5 * t, t / 6.0
    for j in range(16):
        g0, g1, g2 = cov[GYR, j], cov[GYR + 1, j], cov[GYR + 2, j]
        b0, b1, b2 = cov[ACC, j], cov[ACC + 1, j], cov[ACC + 2, j]
        w0 = -(a0 * g0 + a1 * g1 + a2 * g2)
        w1 = -(a3 * g0 + a4 * g1 + a5 * g2)
        w2 = -(a6 * g0 + a7 * g1 + a8 * g2)
        e0, e1, e2 = cov[ATT, j], cov[ATT + 1, j], cov[ATT + 2, j]
        u0 = dz * e1 - dy * e2 - (a0 * b0 + a1 * b1 + a2 * b2)
        u1 = dx * e2 - dz * e0 - (a3 * b0 + a4 * b1 + a5 * b2)
        u2 = dy * e0 - dx * e1 - (a6 * b0 + a7 * b1 + a8 * b2)
        # the attitude error that the gyro bias builds up acts for half the interval on velocity, a sixth on position
        s0 = dz * w1 - dy * w2
        s1 = dx * w2 - dz * w0
        s2 = dy * w0 - dx * w1
        cov[POS, j] += t * cov[VEL, j] + half * u0 + sixth * s0
        cov[POS + 1, j] += t * cov[VEL + 1, j] + half * u1 + sixth * s1
        cov[POS + 2, j] += t * cov[VEL + 2, j] + half * u2 + sixth * s2
        cov[VEL, j] += u0 + 0.5 * s0
        cov[VEL + 1, j] += u1 + 0.5 * s1
        cov[VEL + 2, j] += u2 + 0.5 * s2
        cov[ATT, j] = e0 + w0
        cov[ATT + 1, j] = e1 + w1
        cov[ATT + 2, j] = e2 + w2
    for i in range(16):
        g0, g1, g2 = cov[i, GYR], cov[i, GYR + 1], cov[i, GYR + 2]
        b0, b1, b2 = cov[i, ACC], cov[i, ACC + 1], cov[i, ACC + 2]
        w0 = -(a0 * g0 + a1 * g1 + a2 * g2)
        w1 = -(a3 * g0 + a4 * g1 + a5 * g2)
        w2 = -(a6 * g0 + a7 * g1 + a8 * g2)
        e0, e1, e2 = cov[i, ATT], cov[i, ATT + 1], cov[i, ATT + 2]
        u0 = dz * e1 - dy * e2 - (a0 * b0 + a1 * b1 + a2 * b2)
        u1 = dx * e2 - dz * e0 - (a3 * b0 + a4 * b1 + a5 * b2)
        u2 = dy * e0 - dx * e1 - (a6 * b0 + a7 * b1 + a8 * b2)
        s0 = dz * w1 - dy * w2
        s1 = dx * w2 - dz * w0
        s2 = dy * w0 - dx * w1
        cov[i, POS] += t * cov[i, VEL] + half * u0 + sixth * s0
        cov[i, POS + 1] += t * cov[i, VEL + 1] + half * u1 + sixth * s1
        cov[i, POS + 2] += t * cov[i, VEL + 2] + half * u2 + sixth * s2
        cov[i, VEL] += u0 + 0.5 * s0
        cov[i, VEL + 1] += u1 + 0.5 * s1
        cov[i, VEL + 2] += u2 + 0.5 * s2
        cov[i, ATT] = e0 + w0
        cov[i, ATT + 1] = e1 + w1
        cov[i, ATT + 2] = e2 + w2
    for k in range(STATES):
        cov[k, k] += noise[k]
    acc[:13] = 0.0


@njit(cache=True)
def observe(cov: F8, error: F8, row: F8, state: int, residual: float, variance: float) -> None:
    """Measure one error state. `error` gathers the correction, starting from zeros; `row` is working space."""
    gain = 1.0 / (cov[state, state] + variance)
    step = gain * (residual - error[state])
    for j in range(16):
        row[j] = cov[state, j]
    for i in range(16):
        error[i] += row[i] * step
        k = row[i] * gain
        for j in range(16):
            cov[i, j] -= k * row[j]


@njit(cache=True)
def correct(nav: F8, error: F8) -> None:
    """Take the gathered correction into the state."""
    hx, hy, hz = 0.5 * error[0], 0.5 * error[1], 0.5 * error[2]
    w, x, y, z = nav[0], nav[1], nav[2], nav[3]
    qw = w - hx * x - hy * y - hz * z
    qx = x + hx * w + hy * z - hz * y
    qy = y + hy * w + hz * x - hx * z
    qz = z + hz * w + hx * y - hy * x
    scale = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    nav[0], nav[1], nav[2], nav[3] = qw * scale, qx * scale, qy * scale, qz * scale
    for k in range(12):
        nav[4 + k] += error[VEL + k]


@njit(cache=True)
def level(nav: F8, fx: float, fy: float, fz: float) -> None:
    """Attitude from the mean specific force (which points up when at rest), with yaw zero."""
    roll = math.atan2(-fy, -fz)
    pitch = math.atan2(fx, math.sqrt(fy * fy + fz * fz))
    cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    nav[0], nav[1], nav[2], nav[3] = cr * cp, sr * cp, cr * sp, -sr * sp


@njit(cache=True)
def turn_about_down(nav: F8, yaw: float) -> None:
    """Turn the attitude by `yaw` [rad] about the vertical."""
    c, s = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    w, x, y, z = nav[0], nav[1], nav[2], nav[3]
    nav[0], nav[1], nav[2], nav[3] = c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w
