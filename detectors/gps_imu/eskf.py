"""Error-state Kalman filter of one vehicle: strapdown integration, covariance, one-component updates.

SI units, axes north-east-down (nav) and forward-right-down (body). The state lives in a Vehicle record: quaternion
body to nav, velocity, position, gyro bias, accelerometer bias. `cov[16, 16]` belongs to their errors (truth minus
estimate): 0:3 attitude, 3:6 velocity, 6:9 position, 9:12 gyro bias, 12:15 accelerometer bias; row and column 15 are
padding that lets the compiler use whole vector registers.

The attitude error is a small rotation in nav axes. With that choice the transition over a whole GPS interval is known
from two integrals, so the covariance moves once per fix, not once per IMU sample:

    attitude +=  -A gyro_bias                       A = integral of the rotation matrix
    velocity +=  -[D x] attitude - A accel_bias     D = integral of specific force
    position +=  T velocity + half of the above T
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.state import F4, MEASURED, Vehicle, Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit

ATT, VEL, POS, GYR, ACC = 0, 3, 6, 9, 12
STATES = 15


@njit(cache=True)
def strapdown(row: Vehicle, dt: float, turn: F4, push: F4) -> None:
    """Move the state over one bin: `turn` is the summed angular rate [rad], `push` the summed specific force [m/s]."""
    q, vel, pos, gb, ab = row.quat, row.vel, row.pos, row.gyro_bias, row.accel_bias
    # the quaternion of half the turn, without trigonometry because it is small
    hx = 0.25 * (turn[0] - gb[0] * dt)
    hy = 0.25 * (turn[1] - gb[1] * dt)
    hz = 0.25 * (turn[2] - gb[2] * dt)
    hw = 1.0 - 0.5 * (hx * hx + hy * hy + hz * hz)
    w, x, y, z = q[0], q[1], q[2], q[3]
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
    fx, fy, fz = push[0] - ab[0] * dt, push[1] - ab[1] * dt, push[2] - ab[2] * dt
    dx = r00 * fx + r01 * fy + r02 * fz
    dy = r10 * fx + r11 * fy + r12 * fz
    dz = r20 * fx + r21 * fy + r22 * fz
    fall = dz + GRAVITY_MS2 * dt
    pos[0] += (vel[0] + 0.5 * dx) * dt
    pos[1] += (vel[1] + 0.5 * dy) * dt
    pos[2] += (vel[2] + 0.5 * fall) * dt
    vel[0] += dx
    vel[1] += dy
    vel[2] += fall
    w = mw * hw - mx * hx - my * hy - mz * hz
    x = mw * hx + mx * hw + my * hz - mz * hy
    y = mw * hy - mx * hz + my * hw + mz * hx
    z = mw * hz + mx * hy - my * hx + mz * hw
    scale = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    q[0], q[1], q[2], q[3] = w * scale, x * scale, y * scale, z * scale
    rot, force, epoch = row.step_rot, row.step_force, row.epoch_force
    rot[0] += r00 * dt
    rot[1] += r01 * dt
    rot[2] += r02 * dt
    rot[3] += r10 * dt
    rot[4] += r11 * dt
    rot[5] += r12 * dt
    rot[6] += r20 * dt
    rot[7] += r21 * dt
    rot[8] += r22 * dt
    force[0] += dx
    force[1] += dy
    force[2] += dz
    epoch[0] += dx
    epoch[1] += dy
    epoch[2] += dz
    # the vertical part of the rotation, for the course
    row.epoch_turn += 4.0 * (r20 * hx + r21 * hy + r22 * hz)
    row.step_s += dt
    row.epoch_s += dt


@njit(cache=True)
def spread(row: Vehicle, noise: F8) -> None:
    """Move the covariance over the interval since the last step and add process noise (a variance per state)."""
    cov, rot, force = row.cov, row.step_rot, row.step_force
    a0, a1, a2, a3, a4, a5, a6, a7, a8 = rot[0], rot[1], rot[2], rot[3], rot[4], rot[5], rot[6], rot[7], rot[8]
    dx, dy, dz, t = force[0], force[1], force[2], row.step_s
    half, sixth = 0.5 * t, t / 6.0
    # Transition x covariance x transition transposed: the same arithmetic on columns, then on the rows that it changed.
    # The attitude error that a gyro bias builds up acts for half the interval on velocity, for a sixth on position.
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
    for i in range(GYR):
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
    for i in range(GYR, STATES):
        for j in range(GYR):
            cov[i, j] = cov[j, i]
    for k in range(STATES):
        cov[k, k] += noise[k]
    _carry(row)
    row.step_rot[:] = 0.0
    row.step_force[:] = 0.0
    row.step_s = 0.0


@njit(cache=True)
def _carry(row: Vehicle) -> None:
    """Move what fixes have taught over the same interval, as the error state that it is (see `spread`)."""
    e, rot, force, t = row.taught, row.step_rot, row.step_force, row.step_s
    g0, g1, g2 = e[GYR], e[GYR + 1], e[GYR + 2]
    b0, b1, b2 = e[ACC], e[ACC + 1], e[ACC + 2]
    w0 = -(rot[0] * g0 + rot[1] * g1 + rot[2] * g2)
    w1 = -(rot[3] * g0 + rot[4] * g1 + rot[5] * g2)
    w2 = -(rot[6] * g0 + rot[7] * g1 + rot[8] * g2)
    # the attitude error in the middle of the interval
    a0, a1, a2 = e[ATT] + 0.5 * w0, e[ATT + 1] + 0.5 * w1, e[ATT + 2] + 0.5 * w2
    u0 = force[2] * a1 - force[1] * a2 - (rot[0] * b0 + rot[1] * b1 + rot[2] * b2)
    u1 = force[0] * a2 - force[2] * a0 - (rot[3] * b0 + rot[4] * b1 + rot[5] * b2)
    u2 = force[1] * a0 - force[0] * a1 - (rot[6] * b0 + rot[7] * b1 + rot[8] * b2)
    e[POS] += t * (e[VEL] + 0.5 * u0)
    e[POS + 1] += t * (e[VEL + 1] + 0.5 * u1)
    e[POS + 2] += t * (e[VEL + 2] + 0.5 * u2)
    e[VEL] += u0
    e[VEL + 1] += u1
    e[VEL + 2] += u2
    e[ATT] += w0
    e[ATT + 1] += w1
    e[ATT + 2] += w2


@njit(cache=True)
def observe(row: Vehicle, work: Work, state: int, residual: float, variance: float) -> None:
    """Measure one error state: adds to the pending correction `work.error`; `settle` brings it in."""
    cov, lines, gains, error = row.cov, work.lines, work.gains, work.error
    n = work.count
    line = lines[n]
    for j in range(16):
        line[j] = cov[state, j]
    # what the measurements before this one have already taken from the covariance
    for m in range(n):
        before = lines[m]
        taken = gains[m] * before[state]
        for j in range(16):
            line[j] -= taken * before[j]
    gains[n] = 1.0 / (line[state] + variance)
    step = gains[n] * (residual - error[state])
    for j in range(16):
        error[j] += step * line[j]
    work.count = n + 1


@njit(cache=True)
def settle(row: Vehicle, work: Work) -> None:
    """Take the pending measurements into covariance and state, in one pass, and begin again."""
    cov, lines, gains = row.cov, work.lines, work.gains
    # unused lines are zero, so that the compiler can unroll over all six
    for m in range(work.count, MEASURED):
        gains[m] = 0.0
        lines[m, :] = 0.0
    for i in range(16):
        k0, k1, k2 = gains[0] * lines[0, i], gains[1] * lines[1, i], gains[2] * lines[2, i]
        k3, k4, k5 = gains[3] * lines[3, i], gains[4] * lines[4, i], gains[5] * lines[5, i]
        for j in range(16):
            cov[i, j] -= (
                k0 * lines[0, j] + k1 * lines[1, j] + k2 * lines[2, j]
                + k3 * lines[3, j] + k4 * lines[4, j] + k5 * lines[5, j]
            )  # fmt: skip
    # rounding makes the halves differ, and prediction would let the difference grow
    for i in range(1, STATES):
        for j in range(i):
            cov[i, j] = cov[j, i]
    correct(row, work.error)
    for k in range(STATES):
        row.taught[k] += work.error[k]
    work.error[:] = 0.0
    work.count = 0


@njit(cache=True)
def correct(row: Vehicle, error: F8) -> None:
    """Take a correction into the state."""
    q = row.quat
    hx, hy, hz = 0.5 * error[0], 0.5 * error[1], 0.5 * error[2]
    w, x, y, z = q[0], q[1], q[2], q[3]
    qw = w - hx * x - hy * y - hz * z
    qx = x + hx * w + hy * z - hz * y
    qy = y + hy * w + hz * x - hx * z
    qz = z + hz * w + hx * y - hy * x
    scale = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    q[0], q[1], q[2], q[3] = qw * scale, qx * scale, qy * scale, qz * scale
    for k in range(3):
        row.vel[k] += error[VEL + k]
        row.pos[k] += error[POS + k]
        row.gyro_bias[k] += error[GYR + k]
        row.accel_bias[k] += error[ACC + k]


@njit(cache=True)
def level(row: Vehicle, fx: float, fy: float, fz: float) -> None:
    """Attitude from the mean specific force (which points up when at rest), with yaw zero."""
    roll = math.atan2(-fy, -fz)
    pitch = math.atan2(fx, math.sqrt(fy * fy + fz * fz))
    cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
    cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    q = row.quat
    q[0], q[1], q[2], q[3] = cr * cp, sr * cp, cr * sp, -sr * sp
