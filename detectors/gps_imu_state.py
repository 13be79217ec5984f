"""What the GPS/IMU detector remembers of each vehicle: preallocated tables, one row per fleet slot.

About 3.7 kB per vehicle, reserved for the whole fleet and touched where there are vehicles. The kernels take rows of
these tables; the constants below name their columns. Times are event time in seconds, everything else is SI in
north-east-down and forward-right-down axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I8

F4 = NDArray[np.float32]

# Bins hold IMU samples back until the GPS fix of the same moment is in; 32 bins of 20 ms cover half a second.
BIN_S = 0.02
BINS = 32

# status: whole numbers
PHASE, BIN_COUNT, BIN_FIRST, PLACED, SUSPECT_RUN, LATCHED, LEARNED, FREEZE_RUN, FREEZE_SEEN, IMU_VARIED = range(10)
EMPTY, LEVELLING, ALIGNING, TRACKING = range(4)

# imu: the last sample, the bin being filled, levelling sums, vibration
I_T, I_LAST, I_BIN_T, I_SUM, I_STUCK_S, I_STUCK_SEEN_S = 0, 1, 7, 8, 14, 15
I_LEVEL_S, I_LEVEL, I_LEVEL_SQ = 16, 17, 23
I_VIB, I_BIN_LAST = 25, 27
IMU_COLUMNS = 33

# gps: the last fix (position, velocity), geodetic anchor, leaky sums
G_T, G_POS, G_VEL, G_LAT, G_LON, G_HORIZON, G_CONSIST, G_DRIFT = 0, 1, 4, 7, 8, 9, 10, 13
G_GOOD_S, G_LATCH_T, G_CALM_S, G_SELF_S, G_ACCEL = 16, 17, 18, 19, 20
GPS_COLUMNS = 22

# align: sums of the yaw fit, then the anchor of the position-only variant
A_N, A_W, A_G, A_DOT, A_CROSS, A_WW, A_GG, A_T, A_POS, A_WPOS, A_WVEL, A_GBAR, A_WBAR = (
    0, 1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18,
)  # fmt: skip
ALIGN_COLUMNS = 20

CHANNELS = ("position", "velocity", "vertical", "consistency", "drift", "freeze", "imu_stuck")
POSITION, VELOCITY, VERTICAL, CONSISTENCY, DRIFT, FREEZE, STUCK = range(7)
LEARNING = 5  # the first five are scaled by what the vehicle has shown


class Tables(NamedTuple):
    """One row per slot each; see the constants above and eskf.py for the columns."""

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
    """Zeros, which is what an unknown vehicle looks like; pages are touched on first use."""
    return Tables(
        status=np.zeros((capacity, 10), np.int64),
        nav=np.zeros((capacity, 16)),
        cov=np.zeros((capacity, 16, 16)),
        acc=np.zeros((capacity, 17)),
        bin_t=np.zeros((capacity, BINS)),
        bins=np.zeros((capacity, BINS, 6), np.float32),
        imu=np.zeros((capacity, IMU_COLUMNS)),
        gps=np.zeros((capacity, GPS_COLUMNS)),
        align=np.zeros((capacity, ALIGN_COLUMNS)),
        scale=np.zeros((capacity, LEARNING)),
    )
