"""What the GPS/IMU detector remembers of each vehicle: one record per fleet slot, in one preallocated table.

About 4 kB per vehicle, reserved for the whole fleet and touched only where there are vehicles. Zeros mean "unknown
vehicle". Times are event time in seconds, everything else is SI in north-east-down (nav) and forward-right-down (body)
axes. The kernels get one record at a time: to the compiler a pointer, to the reader named fields.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8

F4 = NDArray[np.float32]

# IMU samples are summed into bins and held back until the filter's horizon reaches them, because a GPS fix stamped t
# was measured `gps_delay_s` earlier. 32 bins of at least 16 ms cover half a second, the longest delay allowed.
BIN_S = 0.02
BINS = 32

EMPTY, LEVELLING, ALIGNING, TRACKING = range(4)

# Channels of evidence, in the order of the cause bits. The first six are scaled by what the vehicle has shown.
CHANNELS = ("position", "velocity", "vertical", "position_against_velocity", "drift", "noise", "freeze", "imu_stuck")
POSITION, VELOCITY, VERTICAL, AGAINST, DRIFT, NOISE, FREEZE, STUCK = range(8)
SCALED = 6

# Components of a fix: position and velocity.
MEASURED = 6

Vector = Annotated[F8, (3,)]


class Vehicle:
    """One record. The annotations are both the types for the checker and the layout of VEHICLE."""

    phase: int
    # the filter: attitude (body to nav), velocity, position, biases; covariance of their errors (see eskf.py)
    quat: Annotated[F8, (4,)]
    vel: Vector
    pos: Vector
    gyro_bias: Vector
    accel_bias: Vector
    cov: Annotated[F8, (16, 16)]
    horizon: float
    """Time that the filter has reached."""
    placed: int
    """1 once position and velocity were set from a fix."""
    # integrals since the last covariance step (rotation matrix, specific force, rotation), and since the last fix
    step_rot: Annotated[F8, (9,)]
    step_force: Vector
    step_turn: Vector
    step_s: float
    epoch_force: Vector
    epoch_s: float
    # IMU: last sample (specific force, rate), the bin being filled (rate, specific force), bins that wait
    imu_t: float
    imu_last: Annotated[F8, (6,)]
    bin_start: float
    bin_sum: Annotated[F8, (6,)]
    bin_first: int
    bin_count: int
    bin_t: Annotated[F8, (BINS,)]
    bins: Annotated[F4, (BINS, 6)]
    bin_force: Vector
    """Specific force of the last bin, for the vibration level."""
    vibration: float
    """Variance of specific force between neighbouring bins, (m/s2)^2."""
    stuck_s: float
    """How long all six values have not changed."""
    imu_varied: int
    """Samples that differed from the one before."""
    # levelling: time, sums of specific force and rate, sums of their squares
    level_s: float
    level_sum: Annotated[F8, (6,)]
    level_sq: Annotated[F8, (2,)]
    rested: int
    """Seconds at rest over which the gyros were calibrated."""
    # attitude fit: count, sums of products (GPS x IMU, IMU x IMU), GPS squares; the span in progress; the span before
    fit_n: float
    fit_cross: Annotated[F8, (3, 3)]
    fit_imu: Annotated[F8, (3, 3)]
    fit_gps_sq: float
    span_s: float
    span_pos: Vector
    span_vel: Vector
    span_way: Vector
    span_change: Vector
    span_rest: Vector
    span_mean: Vector
    span_before_s: float
    spans: int
    # GPS: last fix (position, velocity) and where it was on the globe
    fix_t: float
    fix: Annotated[F8, (6,)]
    anchored: int
    lat: float
    lon: float
    accel: float
    """Recent peak of acceleration, m/s2."""
    against: Vector
    """Leaky sum of position change minus integrated velocity, m."""
    drift: Vector
    """Leaky mean of velocity innovations, in sigmas."""
    noise: float
    """Leaky mean of the squared distances of position, velocity and vertical."""
    freeze_run: int
    freeze_seen: int
    # verdicts: usual distance per channel, which channels are over theirs, suspicious epochs in a row, latch
    usual: Annotated[F8, (SCALED,)]
    above: int
    suspect_run: int
    latched: int
    held: int
    """Channels that are not fused while latched, one bit each."""
    tried: int
    """Attempts at recovery since the latch."""
    good_s: float
    calm_s: float
    self_s: float


class Work:
    """Working space for one fix of one vehicle."""

    # pending measurements: how many, their covariance lines and gains, the correction so far
    count: int
    lines: Annotated[F8, (MEASURED, 16)]
    gains: Annotated[F8, (MEASURED,)]
    error: Annotated[F8, (16,)]
    noise: Annotated[F8, (16,)]
    force: Vector
    """Specific force integrated since the last fix."""
    # attitude fit: one pair of vectors, the eigenproblem, the rotation found
    seen_imu: Vector
    seen_gps: Vector
    square: Annotated[F8, (4, 4)]
    vectors: Annotated[F8, (4, 4)]
    quat: Annotated[F8, (4,)]
    rot: Annotated[F8, (3, 3)]
    # the fix and what it says
    fix: Annotated[F8, (6,)]
    residual: Annotated[F8, (6,)]
    variance: Annotated[F8, (6,)]
    distance: Annotated[F8, (SCALED,)]


class Settings(NamedTuple):
    """The configuration as the kernels take it; see config/detectors.py for units and reasons."""

    threshold: float
    gps_delay_s: float
    position_std_m: float
    velocity_std_mps: float
    timing_std_s: float
    gyro_noise: float
    accel_noise: float
    gyro_walk: float
    accel_walk: float
    warmup_s: float
    recover_s: float
    imu_gap_s: float
    enu: bool
    body_sign: float


def _layout(record: type) -> np.dtype[Any]:
    """The NumPy structure that a record class describes."""
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array, shape = get_args(hint)
            fields.append((name, np.float32 if array == F4 else np.float64, shape))
        else:
            fields.append((name, np.int64 if hint is int else np.float64, ()))
    return np.dtype(fields, align=True)


VEHICLE = _layout(Vehicle)
WORK = _layout(Work)
