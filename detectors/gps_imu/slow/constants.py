"""The constants of the test for slow faults: each with its unit, what it is and where its value comes from.

"Chosen" means: set by judgement, for the reason given. "The flights" are the recordings of docs/detectors/gps_imu.md.
"""

from __future__ import annotations

import math

# What the next innovation is predicted from (whiten.py): position and velocity of an axis as they were one and two
# fixes ago, and their means over these memories, s. Chosen: white noise and an error that wanders for seconds, which is
# what the innovations of the flights consist of.
MEANS_S = (0.8, 4.0)
BOTH = 2
TERMS = (2 + len(MEANS_S)) * BOTH
# Before anything is learned: a position innovation is the one before it, which fades with this memory, s; a velocity
# innovation is this part of the one before, with that memory. Chosen: the median of the flights.
POSITION_S = 5.0
VELOCITY_PART, VELOCITY_S = 0.5, 1.0
# Variance of what is left of position and velocity then, and of the innovations, in the filter's own variances. Chosen:
# the same.
LEFT_FIRST = (0.02, 0.1)
INNOVATION_FIRST = 0.09
# That counts like so many fixes. Chosen: a few seconds, because 50 fixes tell eight coefficients well.
FIRST_FIXES = 40.0
# A part of each term's variance that is added to it: terms that go together must not be told apart. Chosen.
RIDGE = 1e-3
# Whitened innovations are cut here, in standard deviations, and count less for what is learned from LESS on. Chosen:
# one outlier is not slow.
CLIP = 4.0
LESS = 3.0
# The least variance of what is left. Rounding.
LEAST_LEFT = 1e-6

# Sums of whitened innovations (levels.py), over these memories, s. Chosen: a second shorter is what other channels see,
# one of 32 s is as long as a healthy filter takes to follow.
WINDOWS_S = (2.0, 4.0, 8.0, 16.0)
WINDOWS = len(WINDOWS_S)
# Horizontally a sum has two axes of position and velocity, vertically one.
HORIZONTAL, UPRIGHT = 0, 1
FREEDOM = (4, 2)
# Alarms that all of them together may raise per hour of one vehicle, each the same share; a sum is independent of
# itself once per memory.
BUDGET_PER_H = 0.1
LOG_CHANCE = tuple(math.log(BUDGET_PER_H / (2 * WINDOWS) * memory / 3600.0) for memory in WINDOWS_S)
# What is left of heavier tails, as a factor of the limit. Chosen so that the flights and 20 h of simulated ones stay
# below, and their copies with other sensors raise no more alarms than without this test.
TAIL = 1.7
# Mean squares of the sums before anything is learned, where 1 is white, horizontally and vertically, in straight flight
# and in a manoeuvre; and how many looks they count like. Chosen near the largest of the flights, which are between 0.5
# and 1.5 in straight flight, 2.5 in manoeuvres; vertically more, because a receiver finds its altitude and a filter the
# vertical bias for minutes.
FIRST_SQ = ((1.5, 2.5), (3.0, 3.0))
FIRST_LOOKS = (10.0, 4.0)
# A filter finds its biases and its heading in the first minutes, and its innovations show how. Limits are wider for so
# long, s: squared, by this factor more at the beginning. Chosen: on the flights and simulated ones alike, sums of the
# first two minutes come up to twice as far (squared) as those of the rest.
SETTLING_S = 100.0
SETTLING = 2.0
# Each longer memory has this times the mean square of the next shorter one. Chosen: whitened, they have the same.
GROWTH = 1.05
# The least mean square. Chosen: a receiver that is better than white will be white again.
LEAST_SQ = 0.5
# What the other regime shows counts like this part of as many looks, and at most so many. From this acceleration on it
# is a manoeuvre, m/s2, and stays one for so long, s: what it has made of the filter's tilt is seen after it. As of a
# receiver by itself (alone/constants.py), and a little longer.
OTHER_REGIME = 0.25
OTHER_REGIME_LOOKS = 20.0
MANOEUVRE_MS2 = 2.0
STRAIN_S = 10.0
# A sum is an independent look once in so many memories, for what is learned. Chosen: neighbours share most of it.
MEMORIES_PER_LOOK = 2.0
# Memory of what is learned, s; it is learned by blocks of this length, s, once the next one has ended without
# suspicion. Chosen: an attack that is found within 10 to 20 s has taught nothing.
MEMORY_S = 300.0
BLOCK_S = 10.0
# A look counts at most so many mean squares, a block raises one by at most this factor. Chosen.
MOST_SQ = 9.0
RISE = 1.5
# Part of the limit from which on a block is suspicious, and the part that it counts then if it is not over the limit.
# Chosen.
SUSPICIOUS = 0.7
RELUCTANT = 0.2
# A pause of so many intervals and so long, s, is a gap: what was before says nothing about what comes. Chosen.
GAP_TIMES = 2.5
GAP_S = 0.5
