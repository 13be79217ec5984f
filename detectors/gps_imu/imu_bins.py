"""IMU samples into bins, bins into the filter: everything that happens at IMU rate.

A sample costs a few additions; the strapdown runs once per 20 ms bin and the covariance a few times a second. Bins
wait until the filter's horizon (a GPS fix's own time minus its delay) reaches them, so a late fix meets the state of
the moment at which it was measured.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.align import add_to_level, restart
from watchkeeper.detectors.gps_imu.constants import (
    BIN_FULL_S,
    BIN_S,
    BINS,
    FORCE_ERROR,
    GAP_ACCEL,
    GAP_RATE,
    RESTART_S,
    STEP_S,
    TURN_ERROR,
    VIBRATION_MAX,
    VIBRATION_S,
)
from watchkeeper.detectors.gps_imu.eskf import ACC, ATT, GYR, POS, VEL, spread, strapdown
from watchkeeper.detectors.gps_imu.state import EMPTY, TRACKING, Settings, Vehicle, Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import IMU


@njit(cache=True)
def take_imu(row: Vehicle, par: Settings, work: Work, t: float, data: F8, i: int) -> None:
    """One IMU sample, row i: specific force and rate in the configured body axes, perhaps an AHRS's attitude."""
    sign = par.body_sign
    fx, fy, fz = data[i, IMU.imu_ax], sign * data[i, IMU.imu_ay], sign * data[i, IMU.imu_az]
    wx, wy, wz = data[i, IMU.imu_wx], sign * data[i, IMU.imu_wy], sign * data[i, IMU.imu_wz]
    dt = t - row.imu_t
    if math.isnan(fx + fy + fz + wx + wy + wz) or dt == 0.0:
        return
    last, total = row.imu_last, row.bin_sum
    row.imu_t = t
    if row.phase == EMPTY or dt > RESTART_S or dt < 0.0:
        restart(row, t)
    else:
        half = 0.5 * dt
        total[0] += half * (wx + last[3])
        total[1] += half * (wy + last[4])
        total[2] += half * (wz + last[5])
        total[3] += half * (fx + last[0])
        total[4] += half * (fy + last[1])
        total[5] += half * (fz + last[2])
        if (
            fx == last[0] and fy == last[1] and fz == last[2] and wx == last[3] and wy == last[4] and wz == last[5]
        ):  # fmt: skip
            row.stuck_s += dt
        else:
            row.stuck_s = 0.0
            row.imu_varied += 1
    last[0], last[1], last[2], last[3], last[4], last[5] = fx, fy, fz, wx, wy, wz
    if t - row.bin_start >= BIN_FULL_S:
        if row.bin_count == BINS:
            consume(row, par, work)
        at = (row.bin_first + row.bin_count) % BINS
        row.bin_count += 1
        row.bin_t[at] = t
        for k in range(6):
            row.bins[at, k] = total[k]
            total[k] = 0.0
        if par.ahrs:
            told = row.bin_ahrs[at]
            told[0], told[1], told[2] = data[i, IMU.roll], data[i, IMU.pitch], data[i, IMU.yaw]
        row.bin_start = t


@njit(cache=True)
def consume(row: Vehicle, par: Settings, work: Work) -> None:
    """Take the oldest bin into the filter and move its horizon there."""
    at = row.bin_first
    row.bin_first = (at + 1) % BINS
    row.bin_count -= 1
    dt = row.bin_t[at] - row.horizon
    if dt <= 0.0:
        return
    row.horizon = row.bin_t[at]
    turn, push = row.bins[at, 0:3], row.bins[at, 3:6]
    if par.ahrs:
        for k in range(3):
            row.ahrs[k] = row.bin_ahrs[at, k]
    change = 0.0
    for k in range(3):
        force = push[k] / dt
        change += (force - row.bin_force[k]) ** 2
        row.bin_force[k] = force
        row.step_turn[k] += turn[k]
    # half the mean squared difference of neighbours is the variance of white noise, whatever slow motion is beneath
    row.vibration += min(1.0, dt / VIBRATION_S) * (min(change / 6.0, VIBRATION_MAX) - row.vibration)
    if row.phase < TRACKING:
        add_to_level(row, dt, turn, push)
    if row.placed == 0:
        return
    strapdown(row, dt, turn, push)
    if dt > par.imu_gap_s:
        for k in range(3):
            row.cov[ATT + k, ATT + k] += (GAP_RATE * dt) ** 2
            row.cov[VEL + k, VEL + k] += (GAP_ACCEL * dt) ** 2
    if row.step_s >= STEP_S:
        move_covariance(row, par, work)


@njit(cache=True)
def move_covariance(row: Vehicle, par: Settings, work: Work) -> None:
    """Bring the covariance up to the horizon; the process noise follows vibration, acceleration and rotation."""
    t, noise = row.step_s, work.noise
    force = math.sqrt(row.step_force[0] ** 2 + row.step_force[1] ** 2 + row.step_force[2] ** 2) - GRAVITY_MS2 * t
    turn_sq = row.step_turn[0] ** 2 + row.step_turn[1] ** 2 + row.step_turn[2] ** 2
    attitude = par.gyro_noise**2 * t + TURN_ERROR**2 * turn_sq
    velocity = (par.accel_noise**2 + row.vibration * BIN_S) * t + (FORCE_ERROR * force) ** 2
    for k in range(3):
        noise[ATT + k] = attitude
        noise[VEL + k] = velocity
        noise[POS + k] = velocity * t * t / 3.0
        noise[GYR + k] = par.gyro_walk**2 * t
        noise[ACC + k] = par.accel_walk**2 * t
    row.step_turn[:] = 0.0
    spread(row, noise)
