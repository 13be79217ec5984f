"""What the GPS/IMU detector remembers of each vehicle: preallocated tables, one row per fleet slot.

About 3.9 kB per vehicle, reserved for the whole fleet and touched only where there are vehicles. The kernels work on
one vehicle's `Row`; the constants below name the columns. Times are event time in seconds, everything else is SI in
north-east-down and forward-right-down axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I8

F4 = NDArray[np.float32]

# IMU samples are summed into bins and held back until the filter's horizon reaches them, because a GPS fix stamped t
# was measured `gps_delay_s` earlier. 32 bins of at least 16 ms cover half a second, the longest delay allowed.
BIN_S = 0.02
BINS = 32

# status, whole numbers: PLACED, ANCHORED and LATCHED are flags, the runs count GPS epochs, IMU_VARIED counts samples,
# HELD has a bit per channel that is not fused while latched, ABOVE one per channel over its level, TRIED counts attempts
# at recovery
PHASE, BIN_COUNT, BIN_FIRST, PLACED, ANCHORED, SUSPECT_RUN, FREEZE_RUN, FREEZE_SEEN, IMU_VARIED = range(9)
LATCHED, HELD, TRIED, ABOVE = 9, 10, 11, 12
STATUS_COLUMNS = 13
EMPTY, LEVELLING, ALIGNING, TRACKING = range(4)

# imu: last sample (time, acceleration, rate); bin being filled (start, rate sums, acceleration sums); how long all six
# values have not changed; levelling sums (time, six means, two squares); variance of vibration, rotation since the last
# covariance step, specific force of the last bin
I_T, I_LAST, I_BIN_T, I_SUM, I_STUCK_S = 0, 1, 7, 8, 14
I_LEVEL_S, I_LEVEL, I_LEVEL_SQ, I_VIBRATION, I_TURNED, I_FORCE = 15, 16, 22, 24, 25, 28
IMU_COLUMNS = 31

# gps: last fix (time, position, velocity), geodetic anchor, time that the filter has reached, leaky sums of position
# against velocity and of velocity innovations, seconds of good data, of calm, of a self-consistent GPS, recent
# acceleration
G_T, G_POS, G_VEL, G_LAT, G_LON, G_HORIZON, G_AGAINST, G_DRIFT = 0, 1, 4, 7, 8, 9, 10, 13
G_GOOD_S, G_CALM_S, G_SELF_S, G_ACCEL = 16, 17, 18, 19
GPS_COLUMNS = 20

# align: sums of the yaw fit (count, IMU, GPS, products); the span in progress (time, position and velocity at its start,
# way and velocity change since by the IMU); from the span before (velocity change minus mean, GPS mean velocity), count
A_N, A_IMU, A_GPS, A_DOT, A_CROSS, A_IMU_SQ, A_GPS_SQ = 0, 1, 3, 5, 6, 7, 8
A_T, A_POS, A_VEL, A_WAY, A_CHANGE, A_REST, A_MEAN, A_SPANS = 9, 10, 12, 14, 16, 18, 20, 22
ALIGN_COLUMNS = 23

# Channels of evidence, in the order of the cause bits. The first five are scaled by what the vehicle has shown.
CHANNELS = ("position", "velocity", "vertical", "position_against_velocity", "drift", "freeze", "imu_stuck")
POSITION, VELOCITY, VERTICAL, AGAINST, DRIFT, FREEZE, STUCK = range(7)
SCALED = 5


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


class Tables(NamedTuple):
    """All vehicles; the first index is the slot. Also used for one vehicle's row, without that index."""

    status: I8
    nav: F8
    cov: F8
    acc: F8
    bin_t: F8
    bins: F4
    imu: F8
    gps: F8
    align: F8
    scale: F8


def new_tables(capacity: int) -> Tables:
    """Zeros, which is what an unknown vehicle looks like."""
    return Tables(
        status=np.zeros((capacity, STATUS_COLUMNS), np.int64),
        nav=np.zeros((capacity, 16)),
        cov=np.zeros((capacity, 16, 16)),
        acc=np.zeros((capacity, 17)),
        bin_t=np.zeros((capacity, BINS)),
        bins=np.zeros((capacity, BINS, 6), np.float32),
        imu=np.zeros((capacity, IMU_COLUMNS)),
        gps=np.zeros((capacity, GPS_COLUMNS)),
        align=np.zeros((capacity, ALIGN_COLUMNS)),
        scale=np.zeros((capacity, SCALED)),
    )
