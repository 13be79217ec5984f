"""IMU samples into bins, bins into the filter: everything that happens at IMU rate.

A sample costs a few additions; the strapdown runs once per 20 ms bin and the covariance a few times a second. Bins
wait until the filter's horizon (a GPS fix's own time minus its delay) reaches them, so a late fix meets the state of
the moment at which it was measured.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import ACC, ATT, GRAVITY, GYR, POS, VEL, spread, strapdown
from watchkeeper.detectors.gps_imu_align import add_to_level, restart
from watchkeeper.detectors.gps_imu_state import (
    BIN_COUNT, BIN_FIRST, BIN_S, BINS, EMPTY, G_HORIZON, I_BIN_T, I_FORCE, I_LAST, I_STUCK_S, I_SUM, I_T, I_TURNED,
    I_VIBRATION, IMU_VARIED, PHASE, PLACED, Settings, Tables,
)  # fmt: skip
from watchkeeper.streams.batch import F8

# A pause in the IMU longer than this cannot be bridged: attitude and velocity begin anew.
RESTART_S = 2.0
# Samples that jitter early must not stretch a bin to twice its length.
BIN_FULL_S = 0.8 * BIN_S
# Longest interval that one covariance step may cover: its closed form neglects what rotates within.
STEP_S = 0.24
# What may have happened unseen in an IMU gap, as an average over it: m/s2 and rad/s.
GAP_ACCEL, GAP_RATE = 2.0, 0.3
# Scale-factor and misalignment errors of a MEMS IMU, as a part of the rotation and of the acceleration beyond 1 g.
TURN_ERROR, FORCE_ERROR = 0.01, 0.08
# Vibration beyond this variance, (m/s2)^2, is a broken sensor; it must not make the filter believe anything.
VIBRATION_MAX = 400.0
VIBRATION_S = 1.0


@njit(cache=True)
def take_imu(row: Tables, par: Settings, work: F8, t: float, data: F8, i: int) -> None:
    """One IMU sample: data[0:3, i] is specific force, data[3:6, i] angular rate, in the configured body axes."""
    imu, status = row.imu, row.status
    sign = par.body_sign
    fx, fy, fz = data[0, i], sign * data[1, i], sign * data[2, i]
    wx, wy, wz = data[3, i], sign * data[4, i], sign * data[5, i]
    dt = t - imu[I_T]
    if math.isnan(fx + fy + fz + wx + wy + wz) or dt == 0.0:
        return
    if status[PHASE] == EMPTY or dt > RESTART_S or dt < 0.0:
        restart(row, t)
        imu[I_T] = t
        _remember(imu, fx, fy, fz, wx, wy, wz)
        return
    lfx, lfy, lfz = imu[I_LAST], imu[I_LAST + 1], imu[I_LAST + 2]
    lwx, lwy, lwz = imu[I_LAST + 3], imu[I_LAST + 4], imu[I_LAST + 5]
    if fx == lfx and fy == lfy and fz == lfz and wx == lwx and wy == lwy and wz == lwz:
        imu[I_STUCK_S] += dt
    else:
        imu[I_STUCK_S] = 0.0
        status[IMU_VARIED] += 1
        _remember(imu, fx, fy, fz, wx, wy, wz)
    half = 0.5 * dt
    imu[I_SUM] += half * (wx + lwx)
    imu[I_SUM + 1] += half * (wy + lwy)
    imu[I_SUM + 2] += half * (wz + lwz)
    imu[I_SUM + 3] += half * (fx + lfx)
    imu[I_SUM + 4] += half * (fy + lfy)
    imu[I_SUM + 5] += half * (fz + lfz)
    imu[I_T] = t
    if t - imu[I_BIN_T] >= BIN_FULL_S:
        if status[BIN_COUNT] == BINS:
            consume(row, par, work)
        at = (status[BIN_FIRST] + status[BIN_COUNT]) % BINS
        status[BIN_COUNT] += 1
        row.bin_t[at] = t
        for k in range(6):
            row.bins[at, k] = imu[I_SUM + k]
            imu[I_SUM + k] = 0.0
        imu[I_BIN_T] = t


@njit(cache=True)
def _remember(imu: F8, fx: float, fy: float, fz: float, wx: float, wy: float, wz: float) -> None:
    imu[I_LAST], imu[I_LAST + 1], imu[I_LAST + 2] = fx, fy, fz
    imu[I_LAST + 3], imu[I_LAST + 4], imu[I_LAST + 5] = wx, wy, wz


@njit(cache=True)
def consume(row: Tables, par: Settings, work: F8) -> None:
    """Take the oldest bin into the filter and move its horizon there."""
    status, imu, cov = row.status, row.imu, row.cov
    at = status[BIN_FIRST]
    status[BIN_FIRST] = (at + 1) % BINS
    status[BIN_COUNT] -= 1
    dt = row.bin_t[at] - row.gps[G_HORIZON]
    if dt <= 0.0:
        return
    row.gps[G_HORIZON] = row.bin_t[at]
    turn, push = row.bins[at, 0:3], row.bins[at, 3:6]
    change = 0.0
    for k in range(3):
        force = push[k] / dt
        change += (force - imu[I_FORCE + k]) ** 2
        imu[I_FORCE + k] = force
        imu[I_TURNED + k] += turn[k]
    # half the mean squared difference of neighbours is the variance of white noise, whatever slow motion is beneath
    imu[I_VIBRATION] += min(1.0, dt / VIBRATION_S) * (min(change / 6.0, VIBRATION_MAX) - imu[I_VIBRATION])
    if status[PLACED] == 0:
        add_to_level(row, dt, turn, push)
    else:
        strapdown(row.nav, row.acc, dt, turn, push)
        if dt > par.imu_gap_s:
            for k in range(3):
                cov[ATT + k, ATT + k] += (GAP_RATE * dt) ** 2
                cov[VEL + k, VEL + k] += (GAP_ACCEL * dt) ** 2
        if row.acc[12] >= STEP_S:
            move_covariance(row, par, work)


@njit(cache=True)
def move_covariance(row: Tables, par: Settings, work: F8) -> None:
    """Bring the covariance up to the horizon; the process noise follows vibration, acceleration and rotation."""
    acc, imu = row.acc, row.imu
    t = acc[12]
    force = math.sqrt(acc[9] * acc[9] + acc[10] * acc[10] + acc[11] * acc[11]) - GRAVITY * t
    turned_sq = imu[I_TURNED] ** 2 + imu[I_TURNED + 1] ** 2 + imu[I_TURNED + 2] ** 2
    attitude = par.gyro_noise**2 * t + TURN_ERROR**2 * turned_sq
    velocity = (par.accel_noise**2 + imu[I_VIBRATION] * BIN_S) * t + (FORCE_ERROR * force) ** 2
    imu[I_TURNED : I_TURNED + 3] = 0.0
    for k in range(3):
        work[ATT + k] = attitude
        work[VEL + k] = velocity
        work[POS + k] = velocity * t * t / 3.0
        work[GYR + k] = par.gyro_walk**2 * t
        work[ACC + k] = par.accel_walk**2 * t
    spread(row.cov, acc, work)
