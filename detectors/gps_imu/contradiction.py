"""Of a GPS position and a GPS velocity that contradict each other: which of the two the IMU confirms.

The filter follows a velocity within a second or two, so when the two have parted far enough to be seen, it agrees with
the velocity, whichever of them lies. What it has been taught in these seconds, against the IMU, tells them apart: a
velocity that lies has turned the filter, and the position strays the other way; a position that is pulled away has not.
Then the velocity is held, the filter goes back to what the IMU alone would have given, and the position is no
displacement.

Where the IMU is too rough to tell, the end may: a velocity that changes by as much as the position has strayed per
second, so that the two agree again, has been the liar. Called by fix.py for each fix; SI units, north-east-down.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.align import place
from watchkeeper.detectors.gps_imu.constants import (
    AGAINST_S,
    BACK_PART,
    DRIFT_S,
    GATE,
    LIE_LEVELS,
    LIE_MAYBE,
    LIE_S,
    LONG_S,
    PARTED,
    PARTING,
    TAUGHT_S,
)
from watchkeeper.detectors.gps_imu.eskf import POS, STATES, VEL, correct
from watchkeeper.detectors.gps_imu.state import (
    AGAINST,
    DRIFT,
    JUMP,
    LIES,
    MAY_LIE,
    POSITION,
    TRACKING,
    VELOCITY,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def forget_taught(row: Vehicle, dt: float) -> None:
    """What was taught long ago is known by now."""
    for k in range(STATES):
        row.taught[k] *= math.exp(-dt / TAUGHT_S)


@njit(cache=True)
def weigh(row: Vehicle, par: Settings, work: Work, dt: float, healthy: bool) -> None:
    """Before the update: whether the velocity lies. Decided when the two part, and once more when they agree again."""
    ratio, taught = work.ratio, row.taught
    if math.isnan(work.residual[3]) or row.phase != TRACKING:
        return
    recent = 1.0 - math.exp(-dt / DRIFT_S)
    for k in range(2):
        row.leant[k] += recent * (work.residual[3 + k] - row.leant[k])
        row.parting[k] += recent * (row.gap[k] / dt - row.parting[k])
    if healthy:
        square = taught[VEL] ** 2 + taught[VEL + 1] ** 2
        row.wander += (1.0 - math.exp(-dt / LONG_S)) * (square - row.wander)
    # an IMU that is wrong has both of them off, and they agree with each other
    parted = ratio[AGAINST] >= (1.0 if ratio[POSITION] >= GATE else GATE)
    if row.lying == LIES:
        _loosen(row, dt / TAUGHT_S)
    if row.latched == 1:
        _look_again(row, par, work)
    elif not parted:
        row.lying = LIES if row.lying == LIES and row.suspect_run > 0 else 0
        row.turned = 0.0
    elif row.lying != LIES and row.jumped[0] < GATE * row.usual[JUMP]:
        row.turned = max(row.turned, -_turned_along(row, row.strayed[0], row.strayed[1]))
        far = math.sqrt(row.strayed[0] ** 2 + row.strayed[1] ** 2)
        if max(LIE_LEVELS * _usual(row, par), far / AGAINST_S) <= row.turned <= far / LIE_S:
            _blame_velocity(row)
            _take_back(row, work)
        else:
            row.lying = MAY_LIE if row.turned >= LIE_MAYBE * _usual(row, par) else 0


@njit(cache=True)
def _turned_along(row: Vehicle, north: float, east: float) -> float:
    """How far the GPS's velocity has left the IMU lately in a direction, m/s: what was taught, and what was not."""
    length = math.sqrt(north * north + east * east)
    if length == 0.0:
        return 0.0
    along = (row.taught[VEL] + row.leant[0]) * north + (row.taught[VEL + 1] + row.leant[1]) * east
    return float(along / length)


@njit(cache=True)
def _usual(row: Vehicle, par: Settings) -> float:
    """How far a healthy vehicle's filter leaves its IMU in the same time, m/s."""
    return math.sqrt(max(row.wander, par.velocity_std_mps**2))


@njit(cache=True)
def _look_again(row: Vehicle, par: Settings, work: Work) -> None:
    """While latched: a velocity that is off and whose position is not lies, and so does one that comes back."""
    velocity_held = row.held & (1 << VELOCITY | 1 << DRIFT) != 0
    position_held = row.held & (1 << POSITION) != 0
    if row.lying == LIES:
        if position_held:
            row.lying = 0  # the IMU confirms neither
    elif velocity_held and not position_held and _alone(row, par):
        _blame_velocity(row)
    elif row.lying == MAY_LIE and _comes_back(row, par):
        _blame_velocity(row)
        place(row, work.fix, par)
        row.held = 0
        work.residual[:] = 0.0
        work.ratio[:] = 0.0


@njit(cache=True)
def _alone(row: Vehicle, par: Settings) -> bool:
    """Whether the position does not follow a velocity that the IMU denies: it parts from it by as much per second."""
    leant, parting = row.leant, row.parting
    off = math.sqrt(leant[0] ** 2 + leant[1] ** 2)
    left = math.sqrt((leant[0] + parting[0]) ** 2 + (leant[1] + parting[1]) ** 2)
    return off >= LIE_LEVELS * par.velocity_std_mps and left < BACK_PART * off


@njit(cache=True)
def _comes_back(row: Vehicle, par: Settings) -> bool:
    """Whether the two have just ceased to part because the velocity changed by that rate, without the IMU."""
    lasted = max(row.fix_t - row.latched_t, 1.0)
    north, east = row.shift[0] / lasted, row.shift[1] / lasted
    rate = math.sqrt(north * north + east * east)
    if rate == 0.0:
        return False
    part = (row.parting[0] * north + row.parting[1] * east) / (rate * rate)
    if part >= PARTING:
        row.parts = 1
    if part >= PARTED or row.parts == 0:
        return False
    row.parts = 0
    back = _turned_along(row, north, east)
    return back >= BACK_PART * rate and back + row.turned >= LIE_LEVELS * _usual(row, par)


@njit(cache=True)
def _blame_velocity(row: Vehicle) -> None:
    """The velocity lies: what the position has strayed from it is no displacement."""
    row.lying = LIES
    row.shift[0] = row.shift[1] = 0.0
    _loosen(row, 1.0)


@njit(cache=True)
def _loosen(row: Vehicle, part: float) -> None:
    """The filter has only the position to correct what the IMU wanders by: it must not be surer than that."""
    for k in range(2):
        row.cov[VEL + k, VEL + k] += 0.5 * part * row.wander


@njit(cache=True)
def _take_back(row: Vehicle, work: Work) -> None:
    """Undo what the last seconds have taught, and take the position from the fix."""
    cov, taught, error = row.cov, row.taught, work.error
    for k in range(STATES):
        error[k] = -taught[k]
        cov[k, k] += taught[k] ** 2
    error[VEL + 2] = error[POS + 2] = 0.0
    for k in range(2):
        error[POS + k] = work.residual[k]
        cov[POS + k, :] = 0.0
        cov[:, POS + k] = 0.0
        cov[POS + k, POS + k] = work.variance[k]
        work.residual[k] = row.left[k] = 0.0
    correct(row, error)
    error[:] = 0.0
    taught[:] = 0.0
    work.ratio[POSITION] = 0.0
