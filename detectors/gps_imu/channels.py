"""What one fix, and the last seconds of fixes, say against the filter: one distance per scaled channel.

Distances are in model sigmas: the size of errors that a good receiver and a good IMU have. What this vehicle really
shows is learned on top (scale.py), so the constants only need the right shape: what grows with what.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.constants import (
    AGAINST_MAX,
    AGAINST_S,
    COURSE_PART,
    COURSE_SPEED,
    COURSE_STD,
    DRIFT_LATE,
    DRIFT_S,
    FINE_STD,
    FORCE_PART,
    FORCE_STD,
    JUMP_S,
    LATE_VELOCITY,
    LONG_S,
    MANOEUVRE_S,
    NOISE_CLIP,
    PAUSE_S,
    SHORT_S,
    VERTICAL_POSITION,
    VERTICAL_VELOCITY,
)
from watchkeeper.detectors.gps_imu.eskf import POS, VEL
from watchkeeper.detectors.gps_imu.state import (
    AGAINST,
    AGAINST_VERTICAL,
    DELAY,
    DRIFT,
    DRIFT_VERTICAL,
    FORCE,
    HEADING,
    JUMP,
    JUMP_VELOCITY,
    NOISE,
    NOISE_VELOCITY,
    POSITION,
    STEP,
    STEP_VELOCITY,
    TRACKING,
    TURN,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def strain(accel: float) -> float:
    """Acceleration as a receiver feels it: at several g it loses satellites and its tracking loops lag."""
    return accel * (1.0 + min(1.0, accel / GRAVITY_MS2))


@njit(cache=True)
def expected_noise(par: Settings, speed: float, accel: float, work: Work) -> None:
    """Measurement variances: the receiver's own noise, and its timing error times what changes meanwhile."""
    late = (LATE_VELOCITY * par.timing_std_s * strain(accel)) ** 2
    # an error in velocity that lasts for about a second is one in position
    late_position = (par.timing_std_s * speed) ** 2 + late
    for k in range(3):
        position = par.position_std_m * (VERTICAL_POSITION if k == 2 else 1.0)
        velocity = par.velocity_std_mps * (VERTICAL_VELOCITY if k == 2 else 1.0)
        work.variance[k] = position * position + late_position
        work.variance[3 + k] = velocity * velocity + late + (work.loose_mps**2 if k < 2 else 0.0)


@njit(cache=True)
def innovations(row: Vehicle, work: Work) -> None:
    """Mahalanobis distances of the innovations; zero where the fix says nothing."""
    cov, residual, variance, distance = row.cov, work.residual, work.variance, work.distance
    distance[POSITION] = _pair(cov, POS, POS + 1, residual[0], residual[1], variance[0], variance[1])
    distance[VELOCITY] = 0.0
    if not math.isnan(residual[3]):
        distance[VELOCITY] = _pair(cov, VEL, VEL + 1, residual[3], residual[4], variance[3], variance[4])
    distance[VERTICAL] = 0.0
    if not math.isnan(residual[2]):
        if math.isnan(residual[5]):
            distance[VERTICAL] = abs(residual[2]) / math.sqrt(cov[POS + 2, POS + 2] + variance[2])
        else:
            distance[VERTICAL] = _pair(cov, POS + 2, VEL + 2, residual[2], residual[5], variance[2], variance[5])


@njit(cache=True)
def _pair(cov: F8, m: int, n: int, x: float, y: float, var_x: float, var_y: float) -> float:
    """Mahalanobis distance of two innovations."""
    a, b, c = cov[m, m] + var_x, cov[m, n], cov[n, n] + var_y
    # rounding must not make a covariance look impossible
    determinant = max(a * c - b * b, 1e-9 * a * c)
    return math.sqrt(max(0.0, (c * x * x - 2.0 * b * x * y + a * y * y) / determinant))


@njit(cache=True)
def path_against_velocity(row: Vehicle, par: Settings, work: Work, dt: float) -> None:
    """GPS position against GPS velocity: over this epoch, over the last seconds, and how noisy from fix to fix."""
    fix, variance, distance = work.fix, work.variance, work.distance
    keep = math.exp(-dt / AGAINST_S) if dt < PAUSE_S else 0.0
    fine = FINE_STD**2 + (par.velocity_std_mps * dt) ** 2 + (par.timing_std_s * strain(row.accel) * dt) ** 2
    loose_m = 0.5 * dt * (work.loose_mps + row.loose_mps)
    row.slack = keep * row.slack + loose_m / math.sqrt(variance[0])
    jump = noise = across = upright = 0.0
    for k in range(3):
        gap = fix[k] - row.fix[k] - 0.5 * dt * (fix[3 + k] + row.fix[3 + k])
        change = fix[3 + k] - row.fix[3 + k]
        if math.isnan(gap) or keep == 0.0:
            gap = change = row.gap[k] = row.against[k] = row.strayed[k] = row.swung[k] = 0.0
        row.strayed[k] = keep * row.strayed[k] + gap
        row.swung[k] = keep * row.swung[k] + change
        gap -= row.lead_s * change
        # twice the error vertically, where there is always a direction
        square = 4.0 * fine if k == 2 else fine + loose_m * loose_m
        if k < 2:
            jump += gap * gap / square
        else:
            upright = gap * gap / square
        noise += (gap - row.gap[k]) ** 2 / (2.0 * square)
        row.gap[k] = gap
        most = AGAINST_MAX * row.usual[AGAINST_VERTICAL if k == 2 else AGAINST]
        std = math.sqrt(variance[k])
        units = min(max(keep * row.against[k] + gap / std, -most), most)
        row.against[k] = units
        if k < 2:
            across += units * units
        else:
            distance[AGAINST_VERTICAL] = abs(units)
    distance[JUMP] = math.sqrt(jump + upright)
    # which of the two jumped, because the other is no step
    work.jumped[0], work.jumped[1] = math.sqrt(jump), math.sqrt(upright)
    distance[AGAINST] = max(0.0, math.sqrt(across) - row.slack)
    distance[NOISE] = _mean_square(row, 0, noise / 2.25, NOISE, dt)


@njit(cache=True)
def _mean_square(row: Vehicle, which: int, square: float, channel: int, dt: float) -> float:
    """Root of the leaky mean of a squared error, which one outlier cannot lift."""
    most = NOISE_CLIP * row.usual[channel] ** 2
    row.noise[which] += (1.0 - math.exp(-dt / SHORT_S)) * (min(square, most) - row.noise[which])
    return math.sqrt(row.noise[which])


@njit(cache=True)
def lasting_innovations(row: Vehicle, par: Settings, work: Work, dt: float) -> None:
    """Velocity innovations that stay on one side, and velocity noise from fix to fix."""
    cov, residual, variance, distance = row.cov, work.residual, work.variance, work.distance
    # where there is no velocity, the position has to show the drift
    with_velocity = not math.isnan(residual[3])
    first, state = (3, VEL) if with_velocity else (0, POS)
    keep = math.exp(-dt / DRIFT_S)
    late = (LATE_VELOCITY * par.timing_std_s * strain(row.accel)) ** 2
    across = noise = back = 0.0
    for k in range(3):
        units = residual[first + k] / math.sqrt(cov[state + k, state + k] + variance[first + k] + DRIFT_LATE * late)
        row.drift[k] += (1.0 - keep) * ((0.0 if math.isnan(units) else units) - row.drift[k])
        if k < 2:
            across += row.drift[k] ** 2
        change = work.fix[3 + k] - row.fix[3 + k] - work.moved[k]
        if math.isnan(change):
            row.jolt[k] = 0.0
            continue
        loose = row.loose_mps if k < 2 else 0.0
        square = 2.0 * variance[3 + k] + loose * loose
        noise += change * change / square
        # a noisy fix is two changes, there and back: how far the second is off from where the first began
        back += (change + row.jolt[k]) ** 2 / square
        row.jolt[k] = change
    gain = (1.0 + keep) / (1.0 - keep)
    distance[DRIFT] = math.sqrt(across * gain)
    distance[DRIFT_VERTICAL] = abs(row.drift[2]) * math.sqrt(gain)
    distance[JUMP_VELOCITY] = math.sqrt(noise)
    work.there_and_back = math.sqrt(back / noise) if back < noise else 1.0
    distance[NOISE_VELOCITY] = _mean_square(row, 1, noise / 3.0, NOISE_VELOCITY, dt)


@njit(cache=True)
def steps(row: Vehicle, work: Work, dt: float) -> None:
    """Jumps that stay: what jumped a moment ago and is still off. An outlier jumps back, a slow error never jumped."""
    keep, distance = math.exp(-dt / JUMP_S), work.distance
    row.jumped[0] = max(work.jumped[0], keep * row.jumped[0])
    row.jumped[1] = max(distance[JUMP_VELOCITY], keep * row.jumped[1])
    row.jumped[2] = max(work.jumped[1], keep * row.jumped[2])
    distance[STEP] = math.sqrt(max(row.jumped[0] * distance[POSITION], row.jumped[2] * distance[VERTICAL]))
    distance[STEP_VELOCITY] = math.sqrt(row.jumped[1] * distance[VELOCITY])


@njit(cache=True)
def along_acceleration(row: Vehicle, par: Settings, work: Work, dt: float) -> None:
    """Velocity innovations along the acceleration are a wrong delay, across it a wrong heading."""
    residual, along, distance = work.residual, row.along, work.distance
    # says nothing while the heading is unknown
    keep = math.exp(-dt / MANOEUVRE_S) if row.phase == TRACKING else 0.0
    ax, ay = work.moved[0] / dt, work.moved[1] / dt
    ex, ey = residual[3], residual[4]
    if math.isnan(ex) or work.loose_mps > 0.0:
        ex = ey = 0.0
    along[0] = keep * along[0] + ex * ax + ey * ay
    along[1] = keep * along[1] + ax * ey - ay * ex
    along[2] = keep * along[2] + ax * ax + ay * ay
    # noise, at least 1 m/s2 of acceleration, and what a small error in time makes of acceleration
    std = math.sqrt((along[2] + 1.0) * par.velocity_std_mps**2 + (LATE_VELOCITY * par.timing_std_s * along[2]) ** 2)
    known = 1.0 if row.phase == TRACKING else 0.0
    distance[DELAY] = known * abs(along[0]) / std
    distance[HEADING] = known * abs(along[1]) / std


@njit(cache=True)
def force_and_turn(row: Vehicle, work: Work, span: float, dt: float, healthy: bool) -> None:
    """What needs no attitude: how much specific force, and for vehicles that bank how much turn, both sensors tell."""
    fix, force, distance = work.fix, row.force, work.distance
    keep, slow = math.exp(-dt / SHORT_S), math.exp(-dt / LONG_S)
    gx, gy, gz = (fix[3] - row.fix[3]) / dt, (fix[4] - row.fix[4]) / dt, (fix[5] - row.fix[5]) / dt
    distance[FORCE] = distance[TURN] = 0.0
    if math.isnan(gx + gy + gz):
        return
    f = work.force
    felt = math.sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2]) / span
    told = math.sqrt(gx * gx + gy * gy + (gz - GRAVITY_MS2) ** 2)
    force[0] += (1.0 - keep) * (felt - told - force[0])
    if healthy:
        force[1] += (1.0 - slow) * (force[0] - force[1])
    distance[FORCE] = abs(force[0] - force[1]) / math.sqrt(FORCE_STD**2 + (FORCE_PART * strain(row.accel)) ** 2)
    speed = math.sqrt(fix[3] ** 2 + fix[4] ** 2)
    if speed < COURSE_SPEED:
        row.turn[0] *= keep
        return
    course, gyro = (fix[3] * gy - fix[4] * gx) / speed, speed * work.turned / span
    turn = row.turn
    turn[0] += (1.0 - keep) * (course - gyro - turn[0])
    if healthy:
        turn[1] = slow * turn[1] + (course - gyro) ** 2
        turn[2] = slow * turn[2] + course * course + gyro * gyro
    # only a vehicle whose course has followed its gyros can contradict them
    if turn[1] < COURSE_PART * turn[2]:
        distance[TURN] = abs(turn[0]) / math.sqrt(COURSE_STD**2 + (FORCE_PART * strain(row.accel)) ** 2)
