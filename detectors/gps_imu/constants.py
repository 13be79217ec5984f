"""The constants of the GPS/IMU model: each with its unit, what it is and where its value comes from.

Where a name has no unit the comment has it; ratios and counts have none. What an operator may want to change is a
setting instead (config/detectors/gps_imu.py). Indices and the layout of records stay with the code (state.py, eskf.py).

"Chosen" means: set by judgement, for the reason given if there is one; no measurement of it is on record. The five
flights of docs/detectors/gps_imu.md ("the flights" below) were looked at meanwhile, so figures on them are no proof
of it. What else is known about a value is said with it.
"""

from __future__ import annotations

# IMU samples into bins, bins into the filter (imu_bins.py).

# Samples are summed into bins of this length: the strapdown runs once per bin. Chosen.
BIN_S = 0.02
# Bins that wait until the filter's horizon reaches them, because a GPS fix stamped t was measured `gps_delay_s`
# earlier. From BIN_FULL_S: 32 bins of at least 16 ms cover half a second, more than the longest delay allowed
# (DELAY_MAX).
BINS = 32
# A bin is full from this length on. Chosen: samples that jitter early must not stretch a bin to twice its length.
BIN_FULL_S = 0.8 * BIN_S
# A pause in the IMU longer than this cannot be bridged: attitude and velocity begin again. Chosen.
RESTART_S = 2.0
# Longest interval of one covariance step. Chosen: its closed form neglects what rotates within.
STEP_S = 0.24
# What may have happened unseen in an IMU gap, as an average over it: m/s2 and rad/s. Chosen.
GAP_ACCEL = 2.0
GAP_RATE = 0.3
# Scale-factor, misalignment and timing errors of a MEMS IMU, as a part of the rotation. Chosen.
TURN_ERROR = 0.01
# The same as a part of the force beyond 1 g. Chosen.
FORCE_ERROR = 0.08
# Vibration is averaged over this long. Chosen.
VIBRATION_S = 1.0
# Vibration beyond this variance, (m/s2)^2, is a broken sensor that must not make the filter believe anything. Chosen.
VIBRATION_MAX = 400.0

# How a filter begins (align.py).

# Mean of this much IMU gives the first level. Chosen: long enough to average vibration, short enough for a gyro whose
# bias is not yet known.
LEVEL_S = 1.0
# "At rest": spread of specific force (m/s2), spread and mean of angular rate (rad/s), GPS speed (m/s). Chosen: above
# the noise of a parked MEMS IMU, below that of a hand that holds it, or of most hovering multirotors.
REST_FORCE = 0.2
REST_SPREAD = 0.02
REST_RATE = 0.1
REST_SPEED = 0.5
# Seconds of rest that are averaged at most. Chosen so that a hover taken for rest does no harm.
REST_AVERAGE = 10
# Gyro bias uncertainty after a rest, rad/s. Chosen.
GYRO_REST = 0.005
# The same without a rest. Chosen: a cheap MEMS gyro before calibration.
GYRO_MOVING = 0.02
# Accelerometer bias uncertainty, m/s2. Chosen.
ACCEL_BIAS = 0.3
# Tilt uncertainty once the attitude is found, rad. Chosen.
TILT_FOUND = 0.05
# Uncertainty of an unknown velocity, m/s. Chosen: anything that flies.
ANY_SPEED = 20.0
# An acceleration in an unknown direction weighs so many times its square. Chosen: it lasts longer than a GPS epoch.
LASTING = 2.0
# Unknown vertical acceleration before the first span has shown the tilt, and after, m/s2. Chosen.
VERTICAL_FIRST = 3.0
VERTICAL_UNKNOWN = 0.7
# An attitude is accepted at this yaw uncertainty, rad. Chosen.
YAW_STD = 0.2
# It is accepted if the GPS confirms from this to that part of the IMU's horizontal acceleration. Chosen.
GAIN_MIN = 0.6
GAIN_MAX = 1.5
# Least yaw uncertainty that the filter starts with, rad. Chosen: the fit knows nothing of its systematic errors.
YAW_STD_MIN = 0.1

# The fit of the attitude (attitude.py).

# IMU and GPS are compared over spans of this length. Chosen: accelerations last longer than one GPS epoch, its noise
# not.
SPAN_S = 1.0
# The fit forgets with this time constant. Chosen so that a gyro bias cannot smear it.
FIT_S = 15.0
# Spans that the fit needs, counted with their weights. Chosen.
FIT_MIN = 4.0
# Part of a tilt correction that goes to the gyro bias. Chosen: a tilt that needs correction again and again is bias.
BIAS_GAIN = 0.04
# Least variance of velocity changes, whatever a lucky fit says, (m/s)^2. Chosen.
FIT_NOISE = 0.01

# The attitude of an AHRS (ahrs.py).

# Standard deviations of a good AHRS without GPS, rad: tilt, and yaw (magnetometer). Chosen.
AHRS_TILT_STD = 0.03
AHRS_YAW_STD = 0.1
# The variance of one epoch counts so many times. Chosen: the error of an AHRS is no white noise but stays for seconds.
LASTING_EPOCHS = 25.0

# Reading a fix (read.py).

# Below this speed an unchanged course counts as held, m/s. Chosen above the 0.7 m/s or so below which many receivers
# hold it; four of the five flights do, see docs/detectors/gps_imu.md.
HELD_SPEED = 1.0
# How exactly receivers state their velocity. Chosen.
ROUNDING_MPS = 0.0015

# One fix against the filter (fix.py).

# A receiver needs this long to settle after hard acceleration. Chosen.
SETTLE_S = 2.0
# Fixes that come so many intervals, and so many seconds, after the one before have a gap between them. Chosen: one fix
# that is lost at 5 Hz is none.
GAP_TIMES = 1.5
GAP_S = 0.5
# What the strapdown of a healthy filter is wrong by meanwhile, m/s2, beyond what the levels know of the usual interval.
# Chosen: the uncertainty of an accelerometer's bias (ACCEL_BIAS), which is a tilt of 1.8 degrees as well.
GAP_DRIFT = 0.3
# After a pause in the GPS this long position begins again. Chosen.
OUTAGE_S = 10.0
# Innovations beyond this part of their learned level count less. Chosen: an attack that grows is followed ever more
# slowly.
SOFT = 0.8

# Distances per channel (channels.py). In model sigmas; the vehicle's own level is learned on top, so these only need
# the right shape: what grows with what.

# GPS is worse vertically: times the position noise, times the velocity noise. Chosen; the settings' help says the same.
VERTICAL_POSITION = 2.0
VERTICAL_VELOCITY = 1.5
# A velocity may be late by this many times the timing error. Chosen: a receiver filters it more than its position.
LATE_VELOCITY = 2.0
# Noise of a position change from fix to fix, m. Chosen: it is smooth, whatever the slow error.
FINE_STD = 0.1
# Memory of position against velocity. Chosen so that drifts of half a metre per second are seen in it.
AGAINST_S = 10.0
# Memory of velocity innovations. Chosen so that an IMU bias is seen before the filter has absorbed it.
DRIFT_S = 2.0
# Memory of noise, force and turn. Chosen so that what outlasts a gust is seen.
SHORT_S = 2.0
# Memory of velocity errors along and across the acceleration. Chosen: a manoeuvre.
MANOEUVRE_S = 5.0
# Memory of what force and turn of a healthy vehicle are like. Chosen.
LONG_S = 60.0
# How long a jump is remembered while it is seen whether it stays. Chosen: longer than a verdict takes (LATCH_RUN).
JUMP_S = 2.0
# Weight of late velocities in the drift's variance. Chosen: what a receiver gets wrong under acceleration lasts for
# about a second, so it does not average out.
DRIFT_LATE = 6.0
# A squared fix-to-fix error counts at most this many times the usual mean square. Chosen: one outlier is not noise.
NOISE_CLIP = 6.0
# A leaky sum is held to this many times its learned level. Chosen so that one jump is not remembered for half a minute.
AGAINST_MAX = 4.0
# After a pause in the GPS this long there is no path to compare with. Chosen.
PAUSE_S = 2.0
# Error of specific force from GPS velocities over SHORT_S, m/s2, and the part of the acceleration that adds to it.
# Chosen.
FORCE_STD = 0.1
FORCE_PART = 0.05
# Course means something from this speed on, m/s. Chosen.
COURSE_SPEED = 4.0
# Error of cross-track acceleration, m/s2. Chosen.
COURSE_STD = 0.3
# Course and gyros are compared where they disagree about less than this part of (squared) cross-track acceleration.
# Chosen: gyros follow the course on vehicles that turn by banking.
COURSE_PART = 0.15

# Which of position and velocity lies (contradiction.py).

# Memory of what fixes have taught the filter. Chosen: twice as long as it takes a velocity that lies to turn the filter
# and the position to be seen astray; over 10 s the IMU of quad106 wanders by 1 m/s by itself, over 5 s by half of it.
TAUGHT_S = 5.0
# A velocity lies if the filter has been turned against the way that the position strays by so many times what it
# wanders by, or if it is off by so many times its noise and the position is not. It may lie from the second number on.
# Chosen: on the flights 1 % of clean moments have 1.5 times.
LIE_LEVELS = 2.0
LIE_MAYBE = 0.5
# For so long a velocity must have lied to be found so: what strayed less has another reason. Chosen.
LIE_S = 1.0
# They part as long as the position strays by this part of what it has strayed per second since the latch, and do so no
# more below that part. Chosen: two thirds and a third; the noise of fixes must not look like an end.
PARTING = 0.67
PARTED = 0.33
# A velocity comes back if the filter is turned by at least this part of it. Chosen.
BACK_PART = 0.5

# What a receiver shows about itself (receiver.py).

# Gain of the interval between fixes. Chosen.
BEAT_GAIN = 0.002
# Fixes until the beat is known. Chosen.
BEATS = 50
# Memory of what is off the beat. Chosen.
BEAT_S = 20.0
# Part of an interval from which on an offset is a slip. Chosen.
BEAT_SLIP = 0.25
# Where fixes come this far apart, s, a slip counts at most so many times what the path shows. Chosen: a link that
# passes on every fifth fix shifts the beat when one is lost, and nothing else.
BEAT_SLOW_S = 0.4
BEAT_AND_PATH = 1.5
# Fixes that a slip may last before it is another beat. Chosen.
BEATS_OFF = 150
# Least gain of the interval while the beat is being found. Chosen.
FIND_GAIN = 0.05
# Memory of the receiver's delay. Chosen.
DELAY_S = 120.0
# The configured delay counts like so much squared acceleration, (m/s2)^2. Chosen: velocity errors of 0.3 m/s that
# last a second, against delays that differ by 0.05 s.
DELAY_PRIOR = 200.0
# Longest delay that is learned, s. The upper limit of the setting `gps_delay_s`.
DELAY_MAX = 0.45
# Memory of the velocity's age against the position. Chosen.
LEAD_S = 200.0
# Until it is known the age counts as none like so much squared velocity change, (m/s)^2. Chosen.
LEAD_PRIOR = 100.0
# Largest age, of either sign, s. Chosen; on the flights it is 0.02 to 0.19 s, see docs/detectors/gps_imu.md.
LEAD_MAX = 0.4
# Memory of the usual accuracy. Chosen.
ACCURACY_S = 60.0

# From distances to a calibrated score (scale.py).

# Level of each scaled channel before anything is learned, in the order of CHANNELS. Chosen.
USUAL_FIRST = (8.0, 2.7, 1.6, 2.7, 2.7, 3.2, 2.4, 2.6, 2.2, 3.5, 4.0, 3.0, 1.8, 4.0, 4.0, 2.5, 7.0, 5.0)
# Learning may go this many times lower and higher. Chosen.
USUAL_RANGE = 10.0
# A level grows by the factor when a distance rises over it, otherwise it falls with the time constant, s. Chosen so
# that in balance it is crossed about once in half a minute, at any rate of fixes.
USUAL_UP = 1.08
USUAL_FALL_S = 400.0
# An excursion that goes on counts once in so many seconds. Chosen.
USUAL_AGAIN_S = 5.0
# An excursion is over under this part of the level. Chosen: without such a rule a slow drift raised its own threshold.
USUAL_OVER = 0.7
# What a level grows by when the channel took part in a verdict that was taken back. Chosen.
USUAL_MISTAKE = 1.25
# Steps of a level per epoch while the vehicle warms up. Chosen.
EARLY = 4
# Weight of each channel, in the order of CHANNELS; those from `accuracy` on are not scaled. Channels that remember
# seconds stay over the level for seconds, so a rule of several epochs in a row does not filter them: they count less,
# so that the nominal share is that of the instant ones. Chosen on the flights; those of `heading` and `delay` on
# simulated flights too.
WEIGHT = (
    1.0, 1.0,
    0.58, 0.62, 0.6, 0.72, 0.77, 0.56, 0.5, 0.44, 0.46, 0.62, 0.62,
    0.57, 0.57, 0.65, 0.55, 0.65, 1.0,
    1.0, 1.0,
    1.0, 1.0, 1.0, 1.0, 1.0,
)  # fmt: skip
# The calibrated level: where it starts, and its range. Chosen.
LEVEL_FIRST = 1.2
LEVEL_MIN = 0.3
LEVEL_MAX = 3.0
# Its step, of the logarithm. Chosen; before the last changes, a change of it by half was seen to bring false alarms
# back on the flights, see docs/detectors/gps_imu.md.
LEVEL_STEP = 0.1
# It may learn so many times the nominal share, at most so many epochs at once. Chosen as what a healthy vehicle could
# show.
CREDIT_SHARE = 4.0
CREDIT_MAX = 8.0
# Beyond this acceleration (m/s2) or speed (m/s) a vehicle moves; at rest it teaches nothing about flight. Chosen.
ACTIVE_ACCEL = 0.5
ACTIVE_SPEED = 1.0
# Vibration of running motors, (m/s2)^2. Chosen.
ACTIVE_VIBRATION = 0.02
# Memory of the mean specific force that a push is told by. Chosen: an attitude that turns by 0.02 rad/s (GYRO_MOVING)
# moves gravity by 0.2 m/s2 in it, less than half of ACTIVE_ACCEL.
LEANING_S = 1.0
# A push is so many standard deviations of the vibration in an epoch's mean. Chosen: four, and twice that because
# neighbouring bins of a slow IMU share samples, so that the vibration is up to twice what it seems.
PUSH_SIGMA = 8.0
# A push counts as motion for this long. Chosen: as long as a receiver needs to settle after one (SETTLE_S).
PUSHED_S = 2.0
# Unchanging fixes in a row that reach the threshold, of a receiver that has never repeated one. Chosen: a healthy
# receiver never shows them in motion.
FREEZE_EPOCHS = 2.0
# The longest run of them that may be learned. Chosen.
FREEZE_SEEN_MAX = 4
# An IMU that repeats itself in all six axes for this long is stuck. Chosen.
STUCK_S = 0.3
# Samples that must have differed before: an IMU that never showed noise cannot be called stuck. Chosen.
STUCK_NOISY = 50

# From a score to a verdict (verdict.py).

# A channel this many times over its learned level is not fused. Chosen; before the last changes, a gate a third as
# wide was seen to bring false alarms back on the flights, see docs/detectors/gps_imu.md.
GATE = 2.0
# Before the levels are learned, a score this many times over the threshold is suspicious. Chosen.
UNKNOWN = 2.0
# Suspicious epochs in a row that latch the verdict. Chosen.
LATCH_RUN = 5
# Least score of a latched verdict, in thresholds. Chosen: several epochs in a row say more than one.
LATCHED = 1.25
# To be believed again: mean score under this part of the threshold, for this long. Chosen.
CALM_PART = 0.7
CALM_S = 2.0
# Memory of the mean score. Chosen.
MEAN_S = 1.0
# The most that one epoch counts in it, in thresholds. Chosen.
MEAN_CLIP = 4.0
# To be believed again the filter must be this sure of velocity (m/s) and position (m). Chosen.
SURE_VELOCITY = 0.6
SURE_POSITION = 15.0
# While the position alone is wrong, recovery waits this many times longer. Chosen.
POSITION_PATIENCE = 3.0
# After a failed recovery the GPS must agree with itself for this long. Chosen.
RETRY_S = 5.0

# Displacement of the position (displacement.py).

# Memory of what the position has moved by without a reason, while nothing is suspicious. Chosen: as long as a drift of
# 1 m/s takes to be found on the planes of the flights, and no longer, because a healthy receiver strays too.
SHIFT_S = 15.0
# A displacement counts if it is so many times what this receiver's position and velocity part by once in half a minute,
# or, after a freeze, so many standard deviations of the filter's own position. Chosen.
AWAY_LEVELS = 3.0
AWAY_SIGMA = 3.0
# A position that left its own velocity by this much, m, and has not come back keeps a verdict for `recover_s`. Chosen:
# vertical metres count half, and 2 m of altitude must count.
DISPLACED_M = 0.7
# A displacement counts from so many times `warmup_s` of good data on. Chosen: one of the flights finds its altitude in
# the first half minute, by 100 m.
KNOWN = 2.0
# A position is back when it is within this part of the displacement of where it was, or this near, m, and position and
# velocity have agreed for so long. Chosen: less than half way; the 2 to 4 m by which the flights' displacements are
# measured wrong; and longer than a spoofer that comes and goes is away (evaluation/attacks/gps.py: 3 s).
RETURN_PART = 0.4
RETURN_M = 5.0
RETURN_S = 5.0
# How long a displacement is remembered that may have been the IMU's error. Chosen: the length of a spoofing that a
# flight sees the end of.
PULL_S = 600.0
# Time in motion under a repeated fix after which only a fix that differs ends the verdict. Chosen: longer than a
# parked vehicle shakes when somebody touches it.
FROZEN_S = 5.0
# Rest under a repeated fix that ends a verdict otherwise. Chosen: longer than a pause between two movements; a parked
# vehicle's fix may repeat for ever.
STILL_S = 60.0
# Tilt and yaw uncertainty after the position was given up and taken from the GPS again, rad. Chosen.
TILT_AGAIN = 0.05
YAW_AGAIN = 0.2

# The model of the fleet (model/).

# Residuals enter as a part of this many sigmas: the trees divide [0, 1]. Chosen: beyond it a channel alarms by itself.
FULL_SIGMA = 4.0
# Number of trees. Within river's advice of 10 to 50.
TREES = 15
# Height of the trees. Chosen: they separate up to 64 regions.
HEIGHT = 6
# Epochs in a window of the trees. Chosen.
WINDOW = 500
# Any number: it only makes the same epochs give the same scores.
SEED = 20
# Epochs before the trees score: they do so against the window before the present one, so two must be full.
TREES_READY = 2 * WINDOW
# Epochs before the quantiles mean something: one window of scores more.
READY = 3 * WINDOW
# Score quantile of healthy epochs that anchors the scale, the median being 0 sigma; and the sigma that it stands for,
# the 99 % point of the normal distribution. The quantile is chosen, the sigma follows.
HIGH_QUANTILE = 0.99
HIGH_SIGMA = 2.326
# Least distance of the two quantiles. Chosen so that a fleet without variety does not make a sigma out of rounding.
SPREAD_MIN = 1e-3

# A vehicle without a score, or a stream without a sample, for so long is not judged (coverage.py). Chosen: as long as
# an alarm bridges a gap in its evidence.
FRESH_S = 15.0

# What cannot be as configured (doubts.py).

# The mean size of the specific force on anything that is not in free fall or in a centrifuge lies between these, m/s2.
# Chosen: accelerations in g are at 1, in ft/s2 at 32, without gravity below 3; a brisk flight had 20 for 20 s.
FORCE_LOW = 5.0
FORCE_HIGH = 25.0
# The mean is taken over this long, and must be out of range for this long. Chosen: longer than a parabola or a pull-up.
FORCE_MEAN_S = 5.0
FORCE_RUN_S = 15.0
# Memory of the comparison of GPS and IMU, and the spans (with their weights) that it needs. Chosen: a gyro bias of
# 0.02 rad/s turns the frame by a quarter of a radian in it.
DOUBT_S = 12.0
DOUBT_SPANS = 6.0
# A pause in either stream beyond this starts the comparison again. Chosen.
DOUBT_PAUSE_S = 3.0
# A misfit below this is one of noise; from here on it is none. Chosen, see docs/coverage.md for what flights show.
DOUBT_FIT = 0.05
# One hypothesis is better than another when its misfit is less than this part of the other's, or when the difference is
# more than this part of what it can be. Chosen.
DOUBT_CLEAR = 0.4
# Horizontal velocity changes that axes can be judged by, as a leaky sum of squares, (m/s)^2. Chosen.
DOUBT_MOTION = 6.0
# Spans in a row that must say the same. Chosen.
DOUBT_RUN = 5
