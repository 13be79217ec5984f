"""What `signal` remembers of each named number and of each vehicle, what it finds, and the constants of its model.

Times are event time in seconds, values in the sender's own unit. A signal has a row of the table for as long as its
vehicle is known; the rows of a vehicle are a ring (`after`), so that values which come in the same order every time
are found at once.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from watchkeeper.detectors.kernels.records import Int4
from watchkeeper.streams.batch import F8
from watchkeeper.streams.messages import NAME_COLUMNS

# Bits of a finding: which cause (declaration.CAUSES, in this order).
RANGE, JUMP, STUCK, DRIFT, NOISIER, RHYTHM, DISAGREES = 1, 2, 4, 8, 16, 32, 64
# The statistics that have a running quantile of their own, by place.
Q_JUMP, Q_DRIFT, Q_NOISE, Q_AGREE, QUANTILES = 0, 1, 2, 3, 4

# The share of the values of a healthy signal that the running quantile leaves above it.
TAIL = 0.01
# Steps of the quantile's logarithm a second: by so much up while a value is above it, by TAIL of it down while not;
# more while the signal is new. Chosen: a drift that takes ten seconds raises its own quantile by a fifth.
QUANTILE_STEP, QUANTILE_NEW = 0.02, 0.1
# Where the quantiles begin, in units of the signal's own error, and what they never fall below: those of a Gaussian.
Q_FIRST = (4.0, 4.0, 1.6, 3.0)
Q_LEAST = (2.6, 3.0, 1.3, 2.6)
# Of `margin` each statistic needs this share: noise and agreement are means over `fast_s`, whose tails are lighter than
# those of single values. Chosen on the development part (evaluation/signals/parts.py): as many false alarms as with 1.
MARGINS = (1.0, 1.0, 0.7, 0.75)
# A residual counts for at most so many usual ones when the usual one is learned, and when noise is measured.
# Two steps of a single wild value, up and down, must not count as noise for as long as an alarm takes.
CLIP, NOISE_CLIP = 5.0, 4.0
# The newest errors are all to one side, a jump and no noise, if their mean is more than this share of their size.
ONE_SIDE = 0.6
# A slow mean is one after so much of its memory; before that a drift cannot be told from it.
SLOW = 0.75
# Values that must have been heard before anything but limits is judged.
VALUES_MIN = 20
# While a statistic is beyond its quantile, though not yet anomalous, what it is held against learns so much slower.
DOUBT = 0.1
# A trend is followed for at most so many level times beyond the last value that was believed.
AHEAD = 1.0
# A number changes if it is not the same to the bit; one that changed in fewer than so many of its values, or fewer
# times, is a state and not a measurement, and cannot be stuck.
CHANGES_SHARE, CHANGES_MIN = 0.2, 20
# One that changed fewer times than this has no size that a change could be held against.
CHANGES_FEW = 5
# Levels and errors of less than this share of the signal's own size are rounding.
ROUNDING = 1e-9
# Correlation from which two signals are held to agree, and by how much a new partner must be better.
AGREE_R2, BETTER_R2 = 0.8, 0.02
# Two signals must have agreed for so many learning times before it means anything that they no longer do.
AGREED = 2.0
# A partner that explains less than this after this share of its trial is not tried any longer.
HOPELESS, HOPELESS_R2 = 0.3, 0.5
# Values of the partner older than this many of its intervals say nothing.
PARTNER_AGE = 3.0
# For so long after its lead is well again a finding still names it, in seconds.
NAMED_S = 30.0
# Known limits: score of a value beyond its limit, and more for one farther away, by its distance over the limit.
BEYOND = 10.0
# If so many of a vehicle's signals, and this share of them, are odd at once, the vehicle does something new: that is no
# sensor's fault. All of them are then taken as normal, but for known limits.
TOGETHER, TOGETHER_SHARE = 4, 0.25
# Gaps between values that are learned at most, over the usual gap.
GAP_CLIP = 4.0


# What a signal says about its vehicle, besides its value.
ARMED, MODE = 1, 2


class Settings(NamedTuple):
    """The configuration as the kernel takes it; see config/detectors/signal.py for reasons."""

    level_s: float
    fast_s: float
    memory_s: float
    learn_s: float
    settle_s: float
    relearn_s: float
    margin: float
    stuck_s: float
    gap_s: float
    per_vehicle: int
    patience: int


class Signal:
    """One named number of one vehicle (detectors/kernels/records.py)."""

    name: Annotated[F8, (NAME_COLUMNS,)]
    slot: Int4 = -1
    after: Int4 = -1
    """The next signal of the same vehicle."""
    # known limits, whether they count while armed only, and whether the value has been inside since then
    low: float = -math.inf
    high: float = math.inf
    grade: Int4 = 1
    group: Int4 = -1
    """The table of limits, if they count only while another signal of the same table is inside; else -1."""
    armed_only: bool = False
    inside: bool = False
    role: Int4 = 0
    judged: bool = True
    """Whether more than the limits is judged."""
    t: float = math.nan
    x: float = math.nan
    n: int = 0
    # the newest value, before it is judged: partners of one time are compared with each other
    now_t: float = math.nan
    now: float = math.nan
    learned_s: float = 0.0
    interval_s: float = math.nan
    gap_s: float = 0.0
    """The longest usual interval; it fades."""
    # Holt's level and trend, and the usual size of what they miss
    level: float = math.nan
    level_t: float = math.nan
    trend: float = 0.0
    error: float = 0.0
    roam: float = 0.0
    """The usual size of the trend: by so much a second the forecast is worth less."""
    # the usual size of a step from value to value; the newest steps' mean square over it; the newest errors' mean
    step: float = 0.0
    quantum: float = math.inf
    """The smallest step so far: what it counts in."""
    noise: float = 1.0
    bias: float = 0.0
    wild: float = 0.0
    """The newest distances from the quick mean, whatever their size."""
    # a slow mean, a quicker one, and how far apart they usually are
    slow: float = math.nan
    quick: float = math.nan
    apart: float = 0.0
    quantile: Annotated[F8, (QUANTILES,)]
    # since when the value is the same, the longest usual time of that, how many values were different
    same_t: float = math.nan
    same_s: float = 0.0
    changes: int = 0
    # the partner: its row, and moments of both; and another one that is being tried
    partner: Int4 = -1
    tried: Int4 = -1
    tried_t: float = math.nan
    pair: Annotated[F8, (6,)]
    trial: Annotated[F8, (6,)]
    off: float = 0.0
    """The mean of what the partner does not explain, over the usual size of it."""
    odd_t: float = math.nan
    """Since when its values have not been believed."""
    crept: bool = False
    """Whether that began without a jump."""
    run: int = 0
    """Values in a row over the threshold."""
    score: float = 0.0
    bits: int = 0
    expected: float = math.nan
    fresh: bool = False
    taken: bool = False
    """Whether the newest value is believed only because it has lasted."""


class Vehicle:
    """What one vehicle's signals have in common."""

    first: Int4 = -1
    """One of its rows; -1: none."""
    at: Int4 = -1
    """The row that the last value belonged to."""
    signals: Int4 = 0
    lead: Int4 = -1
    """The row that the vehicle's score is about; -1: none is over the threshold."""
    # the last lead, and when it was one: an alarm that ends still says what it was about
    last: Int4 = -1
    last_t: float = -math.inf
    armed: float = math.nan
    mode: float = math.nan
    since_t: float = -math.inf
    """When it was last armed, disarmed, or changed its mode."""
    t: float = -math.inf
    taken: bool = False
    """Whether all is well only because what its last lead did has lasted."""


class Counts:
    """What was left out so far."""

    duplicates: int
    refused: int


class Finding:
    """The state of one vehicle at one time."""

    slot: Int4
    row: Int4
    severity: Int4
    news: bool
    taken: bool
    t: float
    score: float
    bits: int
    value: float
    expected: float
    usual: float
    off: float
    mode: float
    armed: float
