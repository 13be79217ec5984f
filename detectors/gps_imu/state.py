"""What the GPS/IMU detector remembers of each vehicle: one record per fleet slot, in one preallocated table.

About 4 kB per vehicle, reserved for the whole fleet and touched only where there are vehicles. Zeros mean "unknown
vehicle". Times are event time in seconds, everything else is SI in north-east-down (nav) and forward-right-down (body)
axes. The kernels get one record at a time: to the compiler a pointer, to the reader named fields.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.constants import BINS
from watchkeeper.detectors.gps_imu.slow.constants import BOTH, TERMS, WINDOWS
from watchkeeper.streams.batch import F8

F4 = NDArray[np.float32]

EMPTY, LEVELLING, ALIGNING, TRACKING = range(4)

# Channels of evidence, in the order of the cause bits. The first SCALED are in units of what the vehicle has shown, and
# of these the first INSTANT say something about this fix alone, the others about the last seconds. The rest are direct;
# those after STUCK come from one stream by itself (alone/).
CHANNELS = (
    "jump", "velocity_jump",
    "position", "velocity", "vertical", "step", "velocity_step",
    "position_against_velocity", "altitude_against_velocity", "drift", "vertical_drift", "noise", "velocity_noise",
    "heading", "delay", "timing", "turn", "force", "accuracy",
    "freeze", "imu_stuck",
    "replay", "interference", "axis_stuck", "imu_saturated", "vibration",
)  # fmt: skip
(
    JUMP, JUMP_VELOCITY,
    POSITION, VELOCITY, VERTICAL, STEP, STEP_VELOCITY,
    AGAINST, AGAINST_VERTICAL, DRIFT, DRIFT_VERTICAL, NOISE, NOISE_VELOCITY,
    HEADING, DELAY, TIMING, TURN, FORCE, ACCURACY,
    FREEZE, STUCK,
    REPLAY, INTERFERENCE, AXIS_STUCK, SATURATED, VIBRATION,
) = range(26)  # fmt: skip
INSTANT, SCALED = 2, 18
STOOD_GPS, STOOD_IMU = 1, 2
# What is thought of the velocity where position and velocity of the GPS contradict each other.
MAY_LIE, LIES = 1, 2
# What a vehicle is doing; each has its own calibration, because a vehicle at rest shows less than it will in flight.
REST, MOVING = 0, 1

# Components of a fix: position and velocity.
MEASURED = 6

Vector = Annotated[F8, (3,)]


class Vehicle:
    """One record (detectors/kernels/records.py)."""

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
    epoch_turn: float
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
    bin_ahrs: Annotated[F4, (BINS, 3)]
    ahrs: Vector
    """Roll, pitch and yaw that an AHRS told for the horizon; looked at only where the configuration says so."""
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
    told: Annotated[F8, (2,)]
    """Horizontal velocity as the receiver told it; `fix` has zeros where its direction is not known."""
    loose_mps: float
    """Speed of unknown direction."""
    anchored: int
    lat: float
    lon: float
    accel: float
    """Recent peak of acceleration, m/s2."""
    leaning: Vector
    """Leaky mean of the specific force in the filter's axes, m/s2."""
    unpushed_s: float
    """How long the specific force has stayed near that mean: no motion, whatever the attitude is wrong by."""
    # what the last seconds add up to: see channels.py
    against: Vector
    """Leaky sum of position change minus the path that the velocity tells, in sigmas."""
    drift: Vector
    """Leaky mean of velocity innovations, in sigmas."""
    noise: Annotated[F8, (2,)]
    """Leaky mean squares of the fix-to-fix errors of position and velocity, in sigmas."""
    gap: Vector
    """The last epoch's position change minus its velocity times its length, m."""
    slack: float
    """How far the path may stray because the direction of the velocity was not known, in the units of `against`."""
    strayed: Vector
    """Leaky sum of position change minus the path that the velocity tells, m."""
    swung: Vector
    """Leaky sum of velocity change, m/s: `strayed` follows it where the velocity is older than the position."""
    taught: Annotated[F8, (16,)]
    """Leaky sum of what fixes have corrected, as an error state that moves on with the filter: how far it is from one
    that has listened to the IMU alone for some seconds."""
    wander: float
    """Leaky mean square of the horizontal velocity in `taught` of a healthy vehicle, (m/s)^2."""
    leant: Annotated[F8, (2,)]
    """Leaky mean of the horizontal velocity innovations, m/s."""
    lying: int
    """Whether the velocity is what is wrong of a GPS that contradicts itself: 0, MAY_LIE or LIES."""
    turned: float
    """How far the filter has been turned against the way that the position strays, before a verdict, m/s."""
    parting: Annotated[F8, (2,)]
    """Leaky mean of what the position leaves the velocity by per second, m/s."""
    parts: int
    """1 while that is what it has been since the latch."""
    lead_s: float
    """How much older."""
    lead_weight: float
    jolt: Vector
    """What the velocity changed by at the last fix and the IMU did not feel, m/s."""
    jumped: Vector
    """Largest recent jump of position, velocity and height, in sigmas, forgotten within seconds."""
    along: Annotated[F8, (3,)]
    """Leaky sums: velocity innovation along and across the acceleration, acceleration squared."""
    force: Annotated[F8, (2,)]
    """Leaky means of the IMU's specific force minus the GPS's, m/s2: over seconds, over a minute."""
    turn: Annotated[F8, (3,)]
    """Cross-track acceleration that course and gyros disagree about, m/s2: leaky mean, and leaky sums of its square and
    of what they tell each."""
    # the time of fixes: interval, how far the present one is off the beat, how late the receiver is
    interval: float
    beat_s: float
    beats: int
    delay_s: float
    delay_weight: float
    accuracy: Annotated[F8, (4,)]
    """Usual error estimate and inverse number of satellites of this receiver, as logarithms; whether each is known."""
    freeze_run: int
    freeze_seen: int
    # verdicts: usual distance per channel, which channels are over theirs, calibration per regime, suspicion, latch
    usual: Annotated[F8, (SCALED,)]
    above: int
    lessons: int
    """Epochs that were learned."""
    lesson_s: float
    """Time learned since an excursion that goes on has counted again."""
    usual_score: Annotated[F8, (2,)]
    """Level of the largest channel that is reached in the nominal share of epochs, at rest and moving."""
    credit: float
    """Epochs over the nominal level that may still be learned."""
    unsure: int
    """Epochs over the nominal level that wait for what follows before they are learned."""
    suspect_run: int
    latched: int
    held: int
    """Channels that are not fused while latched, one bit each."""
    blamed: int
    """Channels that were over the threshold since the latch, one bit each."""
    tried: int
    """Attempts at recovery since the latch."""
    latched_t: float
    """When the present verdict was latched, or the last one."""
    replayed: int
    """1 while fixes of the past come again, or since they ended with a jump."""
    genuine_s: float
    """For how long new fixes have come after that."""
    stood: int
    """Which sensors stood still since the latch: STOOD_GPS, STOOD_IMU."""
    taken: int
    """1 if the last verdict ended because the GPS was taken as true, without being explained."""
    frozen_s: float
    """Time in motion under a fix that repeats itself, while the verdict is latched."""
    still_s: float
    """Time that the vehicle has been at rest under it."""
    told_early: int
    """1 once a freeze was told before the warm-up was over."""
    # how far the position is displaced: see displacement.py
    shift: Vector
    """Leaky sum of what the position has moved by, from fix to fix, without a reason that the filter knows, m."""
    left: Vector
    """How far the last fix was from the filter after its update, m."""
    away: Vector
    """Where the believed position is, seen from the one that was established; zero when it is established."""
    away_t: float
    """Since when; 0 when it is established."""
    pulled: Vector
    """What the position was pulled by, unless the IMU was wrong: never said, but a return from it is known as one."""
    pulled_s: float
    """For how long that has been so."""
    pulling_s: float
    """How long it had taken: a pull that is taken as true may go on."""
    jumped_away: int
    """1 if the GPS's position contradicted its own velocity since the latch."""
    farthest: float
    """Largest displacement since the latch, or since the position was last established, m."""
    back_s: float
    """How long the position has been back."""
    mean_score: float
    """Leaky mean of the score."""
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
    t: float
    fix: Annotated[F8, (6,)]
    residual: Annotated[F8, (6,)]
    variance: Annotated[F8, (6,)]
    told: Annotated[F8, (2,)]
    loose_mps: float
    """Horizontal velocity as told, and how much of it has no direction."""
    distance: Annotated[F8, (SCALED,)]
    ratio: Annotated[F8, (SCALED,)]
    """Distance over its usual level."""
    moved: Vector
    """Velocity change since the last fix according to the IMU."""
    turned: float
    """Rotation about the vertical since the last fix according to the gyros, rad."""
    before: Vector
    """The filter's position before the fix was fused."""
    total: Vector
    """Where the fix is, seen from the last position that was established, m."""
    there_and_back: float
    """Part of this epoch's velocity jump that is left when it is measured from before the last one, at most 1."""
    jumped: Annotated[F8, (2,)]
    """By how much the path of this fix left its velocity, horizontally and vertically, in sigmas."""
    against: float
    """Position against velocity as the filter has it, which forgets sooner than what the receiver shows by itself."""
    then: Annotated[F8, (4,)]
    """Where the path of the fixes was before (alone/path.py)."""
    # slow faults (slow/): innovations by axis, in standard deviations, and what is new in them
    innovation: Annotated[F8, (3, BOTH)]
    white: Annotated[F8, (3, BOTH)]
    matrix: Annotated[F8, (TERMS, TERMS)]
    wanted: Annotated[F8, (TERMS, BOTH)]
    first: Annotated[F8, (TERMS, BOTH)]
    """Coefficients before anything is learned."""
    seen_sq: Annotated[F8, (2, WINDOWS)]
    """The sums' squares over their number, horizontally and vertically."""
    slow: Annotated[F8, (2,)]
    """The largest of them as a part of its limit."""


class Settings(NamedTuple):
    """The configuration as the kernels take it; see config/detectors/gps_imu.py for units and reasons."""

    threshold: float
    nominal_rate: float
    nominal_sigma: float
    weight: tuple[float, ...]
    """What each channel counts in the score; 0 for those that are switched off."""
    learn_delay: bool
    learn_scale: bool
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
    lasting_m: float
    imu_gap_s: float
    ahrs: bool
    enu: bool
    body_sign: float
