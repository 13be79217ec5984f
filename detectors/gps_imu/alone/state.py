"""What is remembered of one stream by itself: a record for a vehicle's receiver, one for its IMU.

Times are event time in seconds, everything else is SI in north-east-down axes. Zeros mean "unknown vehicle". Fields
that the filter's record has too (state.py of the parent) have the same names, so that both are read by one code.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.alone.constants import FAR, KEPT, RING, STATISTICS
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
    lead_s: float
    """How much older the velocity is than the position."""
    lead_sum: float
    lead_weight: float
    doubt_sq: float
    """Variance that the time between fixes has added to it, m2."""
    ring_t: Annotated[F8, (RING,)]
    ring: Annotated[F8, (RING, 4)]
    """Earlier values of both, for the short windows."""
    ring_count: int
    far_t: Annotated[F8, (FAR,)]
    far: Annotated[F8, (FAR, 4)]
    """The same for the long ones."""
    far_count: int
    step_t: Annotated[F8, (2,)]
    """When the last step was, horizontally and vertically; 0: none that counts."""
    step_from: Vector
    """The path before it, m."""
    step_to: Vector
    step_ratio: Annotated[F8, (2,)]
    """Its size, in limits of one epoch."""
    # what its statistics are like, by [in straight flight or in a manoeuvre]: mean squares of what was learned, for how
    # long, the squared limit that follows; then of the block that is filled, and of the one that waits
    mean_sq: Annotated[F8, (2, STATISTICS)]
    learned_s: Annotated[F8, (2, STATISTICS)]
    usual_sq: Annotated[F8, (2, STATISTICS)]
    limit_sq: Annotated[F8, (2, STATISTICS)]
    """0 until it was first worked out."""
    block_sq: Annotated[F8, (2, STATISTICS)]
    block_s: Annotated[F8, (2, STATISTICS)]
    block_all_s: float
    block_worst: float
    waiting_sq: Annotated[F8, (2, STATISTICS)]
    waiting_s: Annotated[F8, (2, STATISTICS)]
    waiting_worst: float
    good_s: float
    """Time without suspicion."""
    # the beat of its fixes, as in the filter's record
    interval: float
    beat_s: float
    beats: int
    # equality with earlier fixes
    kept: Annotated[I8, (2, KEPT)]
    """Digests: of position and velocity, and of the velocity alone."""
    kept_count: Annotated[I8, (2,)]
    replay_at: Annotated[I8, (2,)]
    """Which of the fixes that are kept the last one equalled; -1 none."""
    replay_run: Annotated[I8, (2,)]
    asked: float
    met: float
    """Velocities that were looked for among those kept, and that were there by chance."""
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
    tied: float
    """How much the axis that was most at one value was so in the last second, in thresholds."""
    said: Annotated[F8, (4,)]
    """Of the last block, in thresholds: all axes stuck, one of them, one saturated, vibration."""
