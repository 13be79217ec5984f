"""How a vehicle's filter begins: level from gravity, then find the yaw by matching IMU and GPS accelerations.

No magnetometer and no AHRS: yaw is unknown at first. The IMU's horizontal velocity changes, integrated with yaw set to
zero, are those of the GPS turned by one angle; a least-squares fit of that angle over the last half minute says how
well it is known. Until then the horizontal channels carry the whole IMU acceleration as uncertainty. Works in the
air as well as on the ground: a wrong first level is a constant in the fit, and the filter removes it.
"""

from __future__ import annotations

import math

from numba import njit

from watchkeeper.detectors.eskf import ACC, ATT, GRAVITY, GYR, POS, VEL, level, turn_about_down
from watchkeeper.detectors.gps_imu_state import (
    A_CHANGE, A_CROSS, A_DOT, A_GPS, A_GPS_SQ, A_IMU, A_IMU_SQ, A_MEAN, A_N, A_POS, A_REST, A_SPANS, A_T, A_VEL, A_WAY,
    ALIGNING, BIN_COUNT, BIN_FIRST, G_HORIZON, G_POS, G_VEL, I_BIN_T, I_LEVEL, I_LEVEL_S, I_LEVEL_SQ, I_SUM,
    I_VIBRATION, LEVELLING, PHASE, PLACED, TRACKING, Settings, Tables,
)  # fmt: skip
from watchkeeper.streams.batch import F8

# Mean of this much IMU gives the first level: long enough to average vibration, short enough for a gyro without bias.
LEVEL_S = 1.0
# "At rest" while levelling: above the noise of a parked MEMS IMU, below that of any hand that holds it.
REST_FORCE, REST_RATE = 0.5, 0.05
# First uncertainties, at rest and otherwise: tilt in rad (a hard turn hides up to a dozen degrees), gyro bias in rad/s
# (a cheap MEMS before calibration), accelerometer bias in m/s2.
TILT_REST, TILT_MOVING = 0.03, 0.2
GYRO_REST, GYRO_MOVING = 0.005, 0.02
ACCEL_BIAS = 0.3
# Before the yaw is known an accelerometer bias cannot be told from tilt, so it gets little room.
ACCEL_BIAS_LEVEL = 0.1
# The yaw fit forgets with this time constant, so that a gyro bias cannot smear it.
FIT_S = 30.0
# It is accepted at this uncertainty (rad), if IMU and GPS also agree on how much acceleration there was.
YAW_STD, GAIN_MIN, GAIN_MAX = 0.15, 0.6, 1.5
# Least yaw uncertainty that the filter starts with: the fit knows nothing of its own systematic errors.
YAW_STD_MIN = 0.1
# GPS velocity changes carry at least this variance (m/s)^2, whatever a lucky fit says.
FIT_NOISE = 0.01
# Velocity changes are compared over spans of this length: accelerations last longer than one GPS epoch, its noise not.
SPAN_S = 1.0
# For the same reason an acceleration in an unknown direction weighs this many times its square in one epoch.
LASTING = 2.0


@njit(cache=True)
def restart(row: Tables, t: float) -> None:
    """Begin anew at time t, keeping what was learned about the vehicle."""
    row.status[PHASE] = LEVELLING
    row.status[BIN_COUNT] = 0
    row.status[BIN_FIRST] = 0
    row.imu[I_BIN_T] = t
    row.imu[I_SUM : I_SUM + 6] = 0.0
    row.gps[G_HORIZON] = t
    relevel(row)


@njit(cache=True)
def relevel(row: Tables) -> None:
    """Give up the attitude, keep the IMU samples that wait."""
    row.status[PHASE] = LEVELLING
    row.status[PLACED] = 0
    row.imu[I_LEVEL_S:I_VIBRATION] = 0.0


@njit(cache=True)
def add_to_level(row: Tables, dt: float, turn: F8, push: F8) -> None:
    """One bin of the levelling second; at its end the attitude is set. Repeated until the first GPS fix is in."""
    imu, nav, cov = row.imu, row.nav, row.cov
    imu[I_LEVEL_S] += dt
    for k in range(3):
        imu[I_LEVEL + k] += push[k]
        imu[I_LEVEL + 3 + k] += turn[k]
        imu[I_LEVEL_SQ] += push[k] * push[k] / dt
        imu[I_LEVEL_SQ + 1] += turn[k] * turn[k] / dt
    s = imu[I_LEVEL_S]
    if s < LEVEL_S:
        return
    fx, fy, fz = imu[I_LEVEL] / s, imu[I_LEVEL + 1] / s, imu[I_LEVEL + 2] / s
    wx, wy, wz = imu[I_LEVEL + 3] / s, imu[I_LEVEL + 4] / s, imu[I_LEVEL + 5] / s
    force_sq, rate_sq = fx * fx + fy * fy + fz * fz, wx * wx + wy * wy + wz * wz
    at_rest = (
        imu[I_LEVEL_SQ] / s - force_sq < REST_FORCE**2
        and imu[I_LEVEL_SQ + 1] / s - rate_sq < REST_RATE**2
        and rate_sq < 4.0 * REST_RATE**2
        and abs(math.sqrt(force_sq) - GRAVITY) < REST_FORCE
    )
    level(nav, fx, fy, fz)
    nav[10:16] = 0.0
    if at_rest:
        nav[10], nav[11], nav[12] = wx, wy, wz
    cov[:, :] = 0.0
    for k in range(2):
        cov[ATT + k, ATT + k] = TILT_REST**2 if at_rest else TILT_MOVING**2
    for k in range(3):
        cov[GYR + k, GYR + k] = GYRO_REST**2 if at_rest else GYRO_MOVING**2
        cov[ACC + k, ACC + k] = ACCEL_BIAS_LEVEL**2
    imu[I_LEVEL_S:I_VIBRATION] = 0.0
    row.align[:] = 0.0
    row.status[PHASE] = ALIGNING


@njit(cache=True)
def place(row: Tables, fix: F8, par: Settings) -> None:
    """Set position and velocity from a fix (absent parts stay or become zero), uncorrelated with everything else."""
    nav, cov = row.nav, row.cov
    for k in range(3):
        with_velocity, with_position = not math.isnan(fix[3 + k]), not math.isnan(fix[k])
        nav[4 + k] = fix[3 + k] if with_velocity else 0.0
        nav[7 + k] = fix[k] if with_position else 0.0
        cov[VEL + k, :] = 0.0
        cov[:, VEL + k] = 0.0
        cov[POS + k, :] = 0.0
        cov[:, POS + k] = 0.0
        # an unknown velocity can be anything that flies
        cov[VEL + k, VEL + k] = (2.0 * par.velocity_std_mps) ** 2 if with_velocity else 20.0**2
        cov[POS + k, POS + k] = (2.0 * par.position_std_m) ** 2
    row.acc[:] = 0.0
    row.status[PLACED] = 1


@njit(cache=True)
def loosen_yaw(row: Tables, fix: F8, dvx: float, dvy: float, dt: float) -> None:
    """While the yaw is unknown: all horizontal velocity change is uncertainty, and the yaw stays untouched."""
    cov, gps = row.cov, row.gps
    unknown = dvx * dvx + dvy * dvy
    dgx, dgy = fix[3] - gps[G_VEL], fix[4] - gps[G_VEL + 1]
    if not math.isnan(dgx + dgy):
        # a level that has already given way to an acceleration hides it from the IMU
        unknown += dgx * dgx + dgy * dgy
    for k in range(2):
        cov[VEL + k, VEL + k] += LASTING * unknown
        cov[POS + k, POS + k] += 0.25 * LASTING * unknown * dt * dt
    cov[2, :] = 0.0
    cov[:, 2] = 0.0


@njit(cache=True)
def seek_yaw(row: Tables, fix: F8, dvx: float, dvy: float, dt: float, par: Settings) -> None:
    """Add one GPS epoch to the yaw fit; on success turn the attitude and start tracking."""
    align, cov = row.align, row.cov
    imu_x, imu_y, gps_x, gps_y, span = _span(align, row.gps, fix, dvx, dvy, dt)
    if span == 0.0:
        return
    yaw, std, gain = fit_yaw(align, imu_x, imu_y, gps_x, gps_y, math.exp(-span / FIT_S))
    if std > YAW_STD or gain < GAIN_MIN or gain > GAIN_MAX:
        return
    turn_about_down(row.nav, yaw)
    tilt = 0.5 * (cov[0, 0] + cov[1, 1])
    cov[ATT : ATT + 3, :] = 0.0
    cov[:, ATT : ATT + 3] = 0.0
    cov[0, 0] = cov[1, 1] = tilt + TILT_REST**2
    cov[2, 2] = max(std, YAW_STD_MIN) ** 2
    for k in range(3):
        cov[ACC + k, ACC + k] += ACCEL_BIAS**2
    if not math.isnan(fix[3]):
        place(row, fix, par)
    row.status[PHASE] = TRACKING


@njit(cache=True)
def fit_yaw(align: F8, ix: float, iy: float, gx: float, gy: float, keep: float) -> tuple[float, float, float]:
    """The angle that turns the IMU's velocity changes onto the GPS's, its standard deviation, and their size ratio."""
    for k in range(9):
        align[k] *= keep
    align[A_N] += 1.0
    align[A_IMU] += ix
    align[A_IMU + 1] += iy
    align[A_GPS] += gx
    align[A_GPS + 1] += gy
    align[A_DOT] += ix * gx + iy * gy
    align[A_CROSS] += ix * gy - iy * gx
    align[A_IMU_SQ] += ix * ix + iy * iy
    align[A_GPS_SQ] += gx * gx + gy * gy
    n = align[A_N]
    sx, sy, tx, ty = align[A_IMU], align[A_IMU + 1], align[A_GPS], align[A_GPS + 1]
    # without their means: a tilt error adds the same to every IMU change
    dot = align[A_DOT] - (sx * tx + sy * ty) / n
    cross = align[A_CROSS] - (sx * ty - sy * tx) / n
    imu_sq = align[A_IMU_SQ] - (sx * sx + sy * sy) / n
    gps_sq = align[A_GPS_SQ] - (tx * tx + ty * ty) / n
    if n < 4.0 or imu_sq <= 0.0:
        return 0.0, math.inf, 0.0
    fitted = dot * dot + cross * cross
    left = max(0.0, gps_sq - fitted / imu_sq) / (2.0 * n - 3.0)
    return math.atan2(cross, dot), math.sqrt((left + FIT_NOISE) / imu_sq), math.sqrt(fitted) / imu_sq


@njit(cache=True)
def _span(
    align: F8, gps: F8, fix: F8, dvx: float, dvy: float, dt: float
) -> tuple[float, float, float, float, float]:
    """Velocity changes of IMU and GPS over a span, and its length (0: not over yet).

    Without GPS velocity they are changes of the mean velocity from the span before to this one.
    """
    if align[A_T] == 0.0:
        align[A_POS], align[A_POS + 1] = gps[G_POS], gps[G_POS + 1]
        align[A_VEL], align[A_VEL + 1] = gps[G_VEL], gps[G_VEL + 1]
    align[A_WAY] += (align[A_CHANGE] + 0.5 * dvx) * dt
    align[A_WAY + 1] += (align[A_CHANGE + 1] + 0.5 * dvy) * dt
    align[A_CHANGE] += dvx
    align[A_CHANGE + 1] += dvy
    align[A_T] += dt
    span = align[A_T]
    if span < SPAN_S:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    imu_x, imu_y = align[A_CHANGE], align[A_CHANGE + 1]
    gps_x, gps_y = fix[3] - align[A_VEL], fix[4] - align[A_VEL + 1]
    mean_x, mean_y = align[A_WAY] / span, align[A_WAY + 1] / span
    gps_mean_x, gps_mean_y = (fix[0] - align[A_POS]) / span, (fix[1] - align[A_POS + 1]) / span
    first = align[A_SPANS] == 0.0
    if math.isnan(gps_x + gps_y):
        imu_x, imu_y = align[A_REST] + mean_x, align[A_REST + 1] + mean_y
        gps_x, gps_y = gps_mean_x - align[A_MEAN], gps_mean_y - align[A_MEAN + 1]
    else:
        first = False
    align[A_REST], align[A_REST + 1] = align[A_CHANGE] - mean_x, align[A_CHANGE + 1] - mean_y
    align[A_MEAN], align[A_MEAN + 1] = gps_mean_x, gps_mean_y
    align[A_WAY] = align[A_WAY + 1] = align[A_CHANGE] = align[A_CHANGE + 1] = align[A_T] = 0.0
    align[A_SPANS] += 1.0
    return imu_x, imu_y, gps_x, gps_y, 0.0 if first else span
