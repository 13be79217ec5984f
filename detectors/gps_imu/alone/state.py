"""What is remembered of one stream by itself: a record for a vehicle's receiver, one for its IMU.

Times are event time in seconds, everything else is SI in north-east-down axes. Zeros mean "unknown vehicle". Fields
that the filter's record has too (state.py of the parent) have the same names, so that both are read by one code.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.alone.constants import KEPT, RING, STATISTICS
from watchkeeper.streams.batch import F8, I8

Vector = Annotated[F8, (3,)]
F4 = NDArray[np.float32]


class Receiver:
    """One record (detectors/kernels/records.py)."""

    heard_t: float
    """Time of the last sample, with a position or without."""
    # the last fix
    fix_t: float
    fix: Annotated[F8, (6,)]
    told: Annotated[F8, (2,)]
    loose_mps: float
    anchored: int
    lat: float
    lon: float
    # the path
    way: Vector
    """Velocity of the path, for receivers that tell none."""
    way_change: Vector
    """Its last change, m/s."""
    accel_sq: float
    """Leaky mean square of the acceleration, (m/s2)^2."""
    strain_sq: float
    """The largest of it in the last seconds."""
    stray: Vector
    """Path minus integrated velocity since the path began, m."""
    ring_t: Annotated[F8, (RING,)]
    ring: Annotated[F8, (RING, 3)]
    """Earlier values of it."""
    ring_count: int
    # what its statistics are like: mean squares, of the block that is filled, of the one that waits
    # by [in straight flight or in a manoeuvre]
    mean_sq: Annotated[F8, (2, STATISTICS)]
    learned_s: Annotated[F8, (2,)]
    block_sq: Annotated[F8, (2, STATISTICS)]
    block_s: Annotated[F8, (2,)]
    block_worst: float
    waiting_sq: Annotated[F8, (2, STATISTICS)]
    waiting_s: Annotated[F8, (2,)]
    waiting_worst: float
    good_s: float
    """Time without suspicion."""
    # the beat of its fixes, as in the filter's record
    interval: float
    beat_s: float
    beats: int
    # equality with earlier fixes
    kept: Annotated[I8, (KEPT,)]
    kept_count: int
    replay_at: int
    """Which of the fixes that are kept the last one equalled; -1 none."""
    replay_run: int
    frozen_since_t: float
    frozen_mps: float
    """Speed of the path when the fix began to repeat itself."""
    frozen_seen_s: float
    # what it says of itself
    accuracy: Annotated[F8, (4,)]
    poor_s: float
    usual_word: Annotated[F8, (4,)]
    """Usual indicator of jamming, jamming state, noise (log2), gain (log2)."""
    known_word: Annotated[F8, (4,)]
    """For how long each was heard, s."""
    warned_s: float


class Axes:
    """One record of an IMU: the block that is filled, what is usual, and the last judgement."""

    imu_t: float
    begin_t: float
    """Since when samples have come without a pause."""
    start_t: float
    last: Annotated[F8, (6,)]
    n: int
    changes: Annotated[I8, (6,)]
    top: Annotated[F8, (6,)]
    bottom: Annotated[F8, (6,)]
    least: Annotated[F8, (6,)]
    """Smallest change from sample to sample."""
    at_top: Annotated[I8, (6,)]
    at_bottom: Annotated[I8, (6,)]
    shake: float
    blocks: int
    usual_change: Annotated[F8, (6,)]
    usual_tie: Annotated[F8, (6,)]
    usual_shake: float
    said: Annotated[F8, (4,)]
    """Of the last block, in thresholds: all axes stuck, one of them, one saturated, vibration."""
