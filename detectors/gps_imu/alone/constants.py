"""The constants of what one stream shows by itself: each with its unit, what it is and where its value comes from.

"Chosen" means: set by judgement, for the reason given. "The flights" are the recordings of docs/detectors/gps_imu.md.
"""

from __future__ import annotations

import math

# The path of the fixes against their velocity (path.py).

# Path minus integrated velocity is looked at over windows of these lengths, s. Chosen: a step fills the shortest, a
# drift of 0.2 m/s on a receiver that strays by 0.04 m/s the longest.
WINDOWS_S = (1.0, 2.0, 4.0, 8.0)
# Standard deviations of it before anything is learned, m: of one epoch, then of each window. Chosen near the largest of
# the flights; vertically so many times as much, and so many times as much where the velocity is that of the path.
BASE_M = (0.3, 0.5, 0.7, 1.0, 1.5)
VERTICAL = 1.5
WITHOUT_VELOCITY = 3.0
# It grows with acceleration: by the root of one plus the square of acceleration over this, m/s2. Chosen so that the
# largest windows of the flights' manoeuvres are as far out as those of their straight parts. The acceleration is a mean
# over so many seconds, of which one epoch counts at most so much, m/s2; it is remembered for as long as the longest
# window.
ACCEL_MS2 = 3.0
ACCEL_S = 2.0
ACCEL_MAX = 20.0
STRAIN_S = 8.0
# From this acceleration on it is a manoeuvre, m/s2, and what is learned of straight flight does not hold. Chosen.
MANOEUVRE_MS2 = 2.0
# A gap of so many intervals, and so long, s, adds to it like so much acceleration for each second, m/s2. Chosen.
GAP_TIMES = 2.5
GAP_S = 0.5
GAP_MS2 = 3.0
# Memory of the velocity of a path whose receiver tells none, s. Chosen: a manoeuvre is followed, noise is not.
WAY_S = 0.25
# After a pause this long there is no path to compare with, s. Chosen.
PAUSE_S = 2.5
# The cumulated path is kept at least this far apart, s; RING of them cover the longest window.
RING_STEP_S = 0.2
RING = 48

# What a statistic may be, in its own learned standard deviations (levels.py). The budget is alarms per hour of one
# vehicle, the same share for every statistic. A Gaussian statistic is independent of itself about once per window,
# which gives the probability for each look; real tails are heavier, by a factor that was chosen so that the largest
# values of the flights and of simulated ones stay below.
BUDGET_PER_H = 0.1
TAIL = 1.25
EPOCH_S = 0.2
TIMING_S = 20.0
STATISTICS = 2 * (1 + len(WINDOWS_S)) + 1
HORIZONTAL, UPRIGHT, TIMING = 0, 1 + len(WINDOWS_S), 2 * (1 + len(WINDOWS_S))


def _limit(seconds: float, axes: int) -> float:
    """Root mean squares that a Gaussian error of one or two axes exceeds as often as its share of the budget allows."""
    chance = BUDGET_PER_H / STATISTICS * seconds / 3600.0
    if axes == 2:
        return TAIL * math.sqrt(-math.log(chance))
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2.0)) > chance else (low, middle)
    return TAIL * low


_SPANS_S = (EPOCH_S, *WINDOWS_S)
LIMITS = (*(_limit(s, 2) for s in _SPANS_S), *(_limit(s, 1) for s in _SPANS_S), _limit(TIMING_S, 1))

# How they are learned (levels.py).

# Mean squares are taken over blocks of this length, s, and a block counts once the next one has ended without
# suspicion. Chosen: an attack that is found within 10 to 20 s has taught nothing.
BLOCK_S = 10.0
# Memory, s; what was expected before counts like so many seconds. Chosen.
MEMORY_S = 180.0
PRIOR_S = 30.0
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
