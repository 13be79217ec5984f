"""What the test for slow faults remembers of a vehicle; zeros mean "unknown vehicle"."""

from __future__ import annotations

from typing import Annotated

from watchkeeper.detectors.gps_imu.slow.constants import BOTH, TERMS, WINDOWS
from watchkeeper.streams.batch import F8

# By [horizontal or vertical, in straight flight or in a manoeuvre, memory].
Table = Annotated[F8, (2, 2, WINDOWS)]
Gram = Annotated[F8, (2, TERMS, TERMS)]
Cross = Annotated[F8, (2, TERMS, BOTH)]
Power = Annotated[F8, (2, BOTH, BOTH)]


class Slow:
    """One record (detectors/kernels/records.py)."""

    fixes: int
    """Since the last gap."""
    interval: float
    """Leaky mean of the time between fixes, s; 0 before the first."""
    settled_s: float
    """Since the filter found its state; negative while it does so again after a fault."""
    strain: float
    """The largest acceleration of the last seconds, m/s2."""
    terms: Annotated[F8, (3, TERMS)]
    """What the next innovation of each axis is predicted from."""
    # products of terms, of terms and innovations, and of innovations: as learned, of the block that is filled, and of
    # the one that waits; by how many fixes each
    gram: Gram
    cross: Cross
    power: Power
    known: float
    block_gram: Gram
    block_cross: Cross
    block_power: Power
    block_fixes: float
    waiting_gram: Gram
    waiting_cross: Cross
    waiting_power: Power
    waiting_fixes: float
    # what follows from them
    coefficients: Cross
    left: Power
    """Covariance of what the prediction leaves."""
    sums: Annotated[F8, (3, BOTH, WINDOWS)]
    """Leaky means of whitened innovations."""
    # mean squares of the sums: as learned and for how long, the squared limit that follows; of the two blocks
    mean_sq: Table
    learned_s: Table
    limit_sq: Table
    block_sq: Table
    block_s: Table
    waiting_sq: Table
    waiting_s: Table
    block_all_s: float
    block_worst: float
    waiting_worst: float
