"""How a vehicle's filter begins: roughly level, placed at the first fix, and loose until its attitude is known.

No magnetometer and no AHRS, so the yaw is unknown at first, and a start in the air may mean a steady turn in which
gravity seems to be where it is not. attitude.py finds both from the seconds that follow. Until then all
acceleration counts as uncertainty.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.attitude import fit_attitude, gather
from watchkeeper.detectors.gps_imu.constants import (
    ACCEL_BIAS,
    ANY_SPEED,
    FIT_MIN,
    GAIN_MAX,
    GAIN_MIN,
    GYRO_MOVING,
    GYRO_REST,
    LASTING,
    LEVEL_S,
    REST_AVERAGE,
    REST_FORCE,
    REST_RATE,
    REST_SPEED,
    REST_SPREAD,
    TILT_FOUND,
    VERTICAL_FIRST,
    VERTICAL_UNKNOWN,
    YAW_STD,
    YAW_STD_MIN,
)
from watchkeeper.detectors.gps_imu.eskf import ACC, ATT, GYR, POS, STATES, VEL, level
from watchkeeper.detectors.gps_imu.state import ALIGNING, F4, LEVELLING, TRACKING, Settings, Vehicle, Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def restart(row: Vehicle, t: float) -> None:
    """Begin again at time t, keeping what was learned about the vehicle."""
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
        and not row.told[0] ** 2 + row.told[1] ** 2 > REST_SPEED**2
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
    row.step_s = row.epoch_s = row.epoch_turn = 0.0
    row.left[:] = 0.0
    row.taught[:] = 0.0
    row.placed = 1


@njit(cache=True)
def loosen(row: Vehicle, fix: F8, dvx: float, dvy: float, dt: float) -> None:
    """While the attitude is unknown, all velocity change is uncertainty; only velocity and position are filtered."""
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
    span = gather(row, work, dt)
    if span == 0.0:
        return
    std, gain = fit_attitude(row, work, span)
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
