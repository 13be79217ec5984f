"""The constants of what one stream shows by itself: each with its unit, what it is and where its value comes from.

"Chosen" means: set by judgement, for the reason given. "The flights" are the recordings of docs/detectors/gps_imu.md.
"""

from __future__ import annotations

import math
from statistics import NormalDist

# The path of the fixes against their velocity (path.py).

# Path minus integrated velocity is looked at over windows of these lengths, s. Chosen: a step fills the shortest, a
# drift of 0.2 m/s on a receiver that strays by 0.04 m/s the longest.
WINDOWS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# Standard deviations of it before anything is learned, m: of one epoch, then of each window. Chosen near the largest of
# the flights; vertically so many times as much, and so many times as much where the velocity is that of the path.
BASE_M = (0.3, 0.5, 0.7, 1.0, 1.5, 2.3, 3.5)
VERTICAL = 1.5
# A window takes part next to a filter if it is so many epochs long. Chosen: one epoch is a jump, which the filter sees.
EPOCHS_MIN = 1.5
# One epoch is looked at by itself only if it is shorter than this, s: else the shortest window is it. Chosen.
EPOCH_MAX_S = 0.6
WITHOUT_VELOCITY = 3.0
# Windows that a receiver without a velocity is judged by. Chosen: in longer ones a manoeuvre is as large as an attack.
SHORT = 2
# Acceleration adds to its variance, for each second so many m2 per (m/s2)^2. Chosen so that the largest windows of the
# flights' manoeuvres are as far out as those of their straight parts. The acceleration is a mean over so many seconds,
# of which one epoch counts at most so much, m/s2; it is remembered for so long, s.
STRAIN_SQ = 0.045
ACCEL_S = 2.0
ACCEL_MAX = 20.0
STRAIN_S = 8.0
# Beyond this, m/s2, it is no manoeuvre, and no good data: the velocity is noise. Chosen above the flights' 12 m/s2.
GOOD_MS2 = 15.0
# From this acceleration on it is a manoeuvre, m/s2, and what is learned of straight flight does not hold. Chosen.
MANOEUVRE_MS2 = 2.0
# A velocity may be older than its position (as in the filter, LEAD_S and LEAD_MAX); until it is known by how much, it
# counts as not at all like so much squared velocity change, (m/s)^2. Chosen: half a minute of a quadrotor.
LEAD_PRIOR_SQ = 10.0
# A gap of so many intervals, and so long, s, adds to it like so much acceleration for each second, m/s2. Chosen.
GAP_TIMES = 2.5
GAP_S = 0.5
GAP_MS2 = 3.0
# Memory of the velocity of a path whose receiver tells none, s. Chosen: a manoeuvre is followed, noise is not.
WAY_S = 0.25
# After a pause this long there is no path to compare with, s. Chosen.
PAUSE_S = 2.5
# A step counts for so long while at least this part of it has not gone back, s. Chosen: as in the filter (JUMP_S), and
# more than what an outlier that is smoothed leaves behind.
STEP_S = 2.0
STEP_PART = 0.5
# It must be so many limits of one epoch. Chosen: it is one look that counts for seconds, and time stamps that jitter
# have heavier tails than the time between them shows.
STEP_TIMES = 1.25
# The least step that counts, m; vertically VERTICAL times as much. Chosen: receivers shift by as much when satellites
# come and go.
STEP_LEAST_M = 1.0
# The cumulated path is kept at least this far apart, s, for the windows up to NEAR_S, and for the longer ones; so many
# entries cover the longest of each.
RING_STEP_S = 0.2
RING = 48
NEAR_S = 8.0
FAR_STEP_S = 1.0
FAR = 36

# What a statistic may be, in its own standard deviations (levels.py). The budget is alarms per hour of one vehicle, the
# same share for every statistic. A Gaussian statistic is independent of itself about once per window, which gives the
# probability for each look. What is left of heavier tails, once the few samples and the manoeuvres are allowed for, is
# a factor that was chosen so that the flights, copies of them and 10 h of simulated receivers stay below.
BUDGET_PER_H = 0.1
TAIL = 1.35
EPOCH_S = 0.2
TIMING_S = 20.0
SPANS_S = (EPOCH_S, *WINDOWS_S)
STATISTICS = 2 * len(SPANS_S) + 1
HORIZONTAL, UPRIGHT, TIMING = 0, len(SPANS_S), 2 * len(SPANS_S)


def _surprise(seconds: float, axes: int) -> float:
    """Half the square (of one axis), or minus the logarithm (of two), that goes with a statistic's share."""
    chance = BUDGET_PER_H / STATISTICS * seconds / 3600.0
    return -math.log(chance) if axes == 2 else 0.5 * NormalDist().inv_cdf(1.0 - 0.5 * chance) ** 2


# By statistic: how long a look is independent, how many axes it has, and how rare it may be.
LOOK_S = (*SPANS_S, *SPANS_S, TIMING_S)
AXES = (*(2 for _ in SPANS_S), *(1 for _ in SPANS_S), 1)
SURPRISE = tuple(_surprise(*look) for look in zip(LOOK_S, AXES, strict=True))

# How they are learned (levels.py).

# Mean squares are taken over blocks of this length, s, and a block counts once the next one has ended without
# suspicion. Chosen: an attack that is found within 10 to 20 s has taught nothing.
BLOCK_S = 10.0
# Memory, s. Chosen: ten looks of the longest window.
MEMORY_S = 300.0
# What was expected before counts like so many independent looks: for one epoch, the shortest window and the beat what
# any receiver shows; for each longer window what the next shorter one was found to be, in units of BASE_M, times a
# growth of mean squares. Chosen: a receiver whose errors last has this from 1 s to 8 s (the car of the flights).
PRIOR_LOOKS = 5.0
FROM_SHORTER_LOOKS = 4.0
GROWTH = 1.4
# What the other regime shows counts like this part of as many looks, and at most so many. Chosen.
OTHER_REGIME = 0.25
OTHER_REGIME_LOOKS = 20.0
# Degrees of freedom of a look. Chosen: those of two axes; neighbouring windows overlap, which gives one axis as many.
FREEDOM = 2.0
# A look counts at most this many times the standard deviation, a block raises a mean square by at most this factor, and
# a mean square is at least this. Chosen; the last is a seventh of the standard deviation expected.
CLIP = 3.0
RISE = 1.5
LEAST = 0.02
# Part of the limit from which on a block is suspicious, and the part that it counts then if it is not over the limit.
# Chosen.
SUSPICIOUS = 0.7
RELUCTANT = 0.2
# Least deviation of the beat of fixes, s. Chosen: time stamps of milliseconds, and jitter of a link.
TIMING_STD_S = 0.02
# A beat that shifts counts up to so many times what the path shows. Chosen.
BEAT_AND_PATH = 2.0

# Equality with earlier fixes (repeats.py).

# Fixes that are remembered: 100 s at 5 Hz.
KEPT = 512
# Fixes in a row that must equal earlier ones, in order. Chosen: two equal fixes are chance where values are rounded.
REPLAYED = 4
# Velocities may come again by chance: a run of them counts from where its probability, for one of all that are kept in
# an hour at 5 Hz, is 1 in 100,000; minus its logarithm.
SURPRISE_OF_CHANCE = math.log(KEPT * 18_000 * 100_000.0)
# A fix that repeats the one before is frozen after so long, s, and so many times the longest harmless run: with a
# velocity of at least this, m/s, or none told and a path that moved by at least so much; else, with none told, after
# the second time. Chosen: a receiver that holds its position tells a velocity of zero, or none.
FROZEN_MPS = 0.02
FROZEN_WAY_MPS = 1.0
FROZEN_S = 0.8
FROZEN_SLOW_S = 5.0
FROZEN_TIMES = 3.0

# What the receiver says of itself (words.py).

# How long it must have said so, s. Chosen: the plane of the flights loses all satellites for 2 s in a turn.
SAID_S = 2.0
# Satellites may fall to this part without a word about accuracy: so many octaves count for nothing. Chosen: in turns
# the plane of the flights loses half of them.
SATS_FREE = 0.5
# States of jamming and spoofing: from here on the receiver warns, from here on it is sure. As in PX4 and MAVLink.
WARNS, SURE = 2.0, 3.0
# Rise of the jamming indicator over its usual value (0 to 255) that counts like a warning. Chosen.
INDICATOR = 60.0
# Memory of what is usual, s. Chosen.
USUAL_S = 120.0

# A receiver that is blind (blind.py).

# A horizontal error beyond this is no position, m, and so is a dilution of precision. Chosen: as much as a map of
# streets can use, and what receivers send for "unknown".
BLIND_EPH_M = 100.0
BLIND_HDOP = 50.0

# Axes of the IMU (axes.py).

# Samples are looked at in blocks of this length, s, that have so many samples. Chosen.
AXES_S = 1.0
AXES_N = 8
# An axis is stuck if no sample differs where so many of them usually do, and saturated if this part of them is at the
# largest or smallest value and so many times more than usual. Chosen; on the flights at most 3 % of a second are.
VARIES = 0.5
TIED = 0.35
TIED_TIMES = 4.0
# Its range must be so many of its smallest changes. Chosen: of a signal of a few steps of rounding the largest value
# comes often.
STEPS = 40.0
# A wide range of the IMU's six axes must vary meanwhile: so many.
OTHERS = 3
# Vibration: root mean square of the change of force between samples, m/s2, and how many times the usual. Chosen: the
# flights reach 3.8 m/s2.
SHAKEN_MS2 = 10.0
SHAKEN_TIMES = 3.0
# Blocks that count for what is usual, at least and at most.
AXES_KNOWN = 5
AXES_MEMORY = 60.0
