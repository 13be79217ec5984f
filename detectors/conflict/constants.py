"""The constants of the conflict models: each with what it is and where its value comes from.

Units are in the names. What an operator may want to change is a setting instead (config/detectors/conflict.py). Limits
of arithmetic and of memory (rounding, cells of the grid) stay with the code whose shape they belong to.

"Fitted" means: fitted to how far real aircraft were from such predictions, on the recording `quickstart` (three hours
around Paris) and on no other; see docs/detectors/conflict.md. "Chosen" means: set by judgement, for the reason given if
there is one; no measurement of it is on record.
"""

from __future__ import annotations

# Tracks: what is believed of an aircraft's reports (tracks.py).

# After a longer break the track starts again. Chosen.
BREAK_S = 60.0
# How long a long track that jumped is not believed in its new place, unless it is back about where the old track led.
# Chosen: a spoofer's places agree with each other, so agreement alone is not enough.
SUSPECT_S = 1800.0
# How far off its old course such a track may return. Chosen.
RETURN_DEG = 20.0
# What a position may be off by noise and time-stamp error: at once, and per second since the last one. Chosen.
PLACE_M = 400.0
PLACE_MS = 80.0
# Without a reported speed nothing is known but that no aircraft flies faster than this. Chosen.
FASTEST_MS = 770.0
# What an altitude may be off by steps and noise: at once, and per second beyond the reported climb. Chosen.
LEVEL_FT = 400.0
LEVEL_FTS = 50.0
# Reports in a row that agree before a new altitude is believed. Chosen so that spikes of one or two leave no trace.
ALT_REACQUIRE = 3
# Velocity and climb are derived when none was reported for this long. Chosen.
DERIVE_S = 5.0
# The displacement that they are derived from is at least, and at most, this old. Chosen.
BASE_S = 5.0
BASE_MAX_S = 15.0
# A turn is averaged over about this long. Chosen.
TURN_S = 4.0
# The climb that a level-off is measured against is averaged over about this long. Chosen.
CLIMB_S = 10.0
# Reports further apart say nothing about a turn. Chosen.
TURN_GAP_S = 15.0
# A slower turn is straight flight, because track angles are quantised and noisy. Chosen.
STRAIGHT_DPS = 0.3
# The altitude of level flight is averaged over about this long, as long as reports are within so much of it: a single
# report says one step more or less. Both chosen.
LEVEL_S = 15.0
LEVEL_NEAR_FT = 75.0
# No aircraft turns faster. Chosen.
TIGHTEST_DPS = 6.0
# Below this speed a repeated position is a measurement (the aircraft hovers), above it a held value. Chosen.
HOVER_MS = 3.0

# Who takes part, and where a climb ends (detector.py).

# Reports that agree before an aircraft takes part. Chosen: one may be a ghost (a wrong address, a decoding error).
MIN_REPORTS = 2
# A slower ship is moored or at anchor: half a knot, what it swings and its receiver wanders. Chosen.
MOORED_MS = 0.25
# A drone that is faster is a large one among airliners, and has the minima of aircraft: 87 kt is the limit of small
# ones in the United States (14 CFR 107.51), and military ones that send ADS-B fly 120 kt and more. Chosen between.
SMALL_DRONE_MS = 51.4
# An aircraft levels off at a multiple of this. Chosen: the whole thousands, as docs/detectors/conflict.md says.
LEVELS_FT = 1000.0
# It captures a level when its climb has fallen to this share of its slow mean, this close to the level. Both chosen.
CAPTURE_SHARE = 0.7
CAPTURE_NEAR_FT = 200.0
# Slower climbs are noise. Chosen.
STEADY_FPM = 200.0

# The search (detector.py, grid.py).

# Pairs that a straight line keeps apart by up to this much more than the minima are judged as well. Chosen: 1 NM and
# 200 ft.
MARGIN_M = 1852.0
MARGIN_FT = 200.0
# Faster aircraft are sorted into coarser cells. 700 kt, chosen: an airliner in the strongest jet stream is slower. It
# decides how fast the search is, not what it finds.
FAST_MS = 360.0

# Probability of a loss of separation (probability.py).

# Interval at which the predicted paths are compared. Chosen.
STEP_S = 4.0
# Standard deviation of a predicted position: at once, times the seconds squared (so m/s2) below HIGH_FT and from there
# on, and per deg/s of turn and second of it after the first TURN_FROM_S. These and the next were chosen by how far
# aircraft were from straight lines on the time-shifted first halves of Monterey, Paris and Switzerland: half of those
# in straight flight were within 95 to 222 m per axis after 40 s at low levels, within 53 m above Switzerland, and one
# in ten was six to ten times as far off. TURN_M is fitted.
PLACE_STD_M = 60.0
DRIFT_LOW_M = 0.10
DRIFT_HIGH_M = 0.015
TURN_M = 30.0
TURN_FROM_S = 10.0
# Standard deviation of a predicted altitude: at once, per second below HIGH_FT and from there on, and as a share of the
# predicted climb. Above Switzerland nine in ten aircraft in level flight were within one step of 25 ft after 90 s.
LEVEL_STD_FT = 15.0
LEVEL_DRIFT_LOW_FTS = 1.2
LEVEL_DRIFT_HIGH_FTS = 0.03
CLIMB_SHARE = 0.15
# Level flight from HIGH_FT on, this near a whole thousand (chosen), comes back to it: of the feet that it is off a
# share exp(-t / SETTLE_S) is left after t seconds. Its standard deviation is SETTLED_STD_FT on its level, and in
# addition SETTLE_SHARE times the feet that it has come back: those that read a whole thousand all the time keep it, and
# nobody knows how far those will swing that do not. The three and PLAN_S were fitted together (least log loss of the
# probability) on the time-shifted first half above Switzerland.
SETTLE_NEAR_FT = 150.0
SETTLE_S = 177.0
SETTLE_SHARE = 9.2
SETTLED_STD_FT = 6.5
# Mean time until a flight does something that nothing in its motion tells: turns at a waypoint, gets another level.
PLAN_S = 2700.0
# How many times a pair may lose separation, independently: at the worst moment, and a third of another one, as aircraft
# manoeuvre. Below HIGH_FT: above it paths are straight, and the worst moment is all there is; and for aircraft, because
# nobody has measured ships, drones and gliders. Chosen on the first halves of Monterey and Paris: what was said at the
# worst moment, between 0.1 and 0.95, came true as often as 1 - (1 - p) ** k says with k from 1.24 to 1.42.
EVER = 1.33
# With this probability the error of a pair is of another kind, and so many times as large. Chosen on the same halves.
TAIL = 0.28
TAIL_WIDER = 4.5
# An aircraft in a turn goes on with it, rather than flying straight from now on, with this probability. Chosen.
TURNS_ON = 0.7
# So many ways an aircraft may go at most, and so many ends of its climb: the next three levels, or beyond. Chosen.
WAYS = 2
ENDS = 4
# Probability that a climb or descent ends at a whole thousand that it comes to, below HIGH_FT and from there on.
# Counted on the first halves of the flights of four recordings: 0.09 and 0.23 (light aircraft at Monterey and
# Watsonville), 0.04 (Paris), 0.45 (above Switzerland, all from 24,500 ft on).
LEVEL_LOW = 0.1
LEVEL_HIGH = 0.4
HIGH_FT = 24_500.0
# A level-off takes this many seconds at the present rate, and this many feet: with less room it is the less probable.
# Chosen.
CAPTURE_S = 5.0
CAPTURE_FT = 200.0
# How much of the step of altitude counts that is taken off the vertical minima. Below a half, so that two aircraft that
# read the minimum and one step less in turn are no conflict; more than 0, because those that keep reading a step less
# will do so then: above Switzerland 0.90 of them did 20 to 40 s later, and 0.16 of those that read the minimum. Chosen.
STEP_SHARE = 0.45
# Beyond the minimum plus this many standard deviations the probability counts as 0. Chosen: 2.6 % of the errors at most
# lie further off on one side.
FAR_STD = 6.0

# How close aircraft came (hindsight.py, followed.py).

# How far back their reports are looked through. Chosen: three reports of a feed that sends every 10 s, and as long as
# a pair is followed.
LOOK_BACK_S = 60.0
# Between reports further apart nothing is known. The same as in `evaluate alarms`.
GAP_S = 30.0
# How long a pair is followed after its last conflict: until its alarm has ended. Chosen.
FOLLOW_S = 60.0

# One aircraft under two addresses (ghosts.py).

# How far apart, horizontally and vertically, an aircraft and its second address may seem. 0.35 NM and 500 ft, chosen:
# at Monterey the furthest of 27 such pairs was 0.31 NM off, 5 s of flight and the error of a radar. Two aircraft with
# addresses of their own met there at 0.06 NM, so distance alone is not enough.
ONE_M = 650.0
ONE_FT = 500.0
# Predicted places up to so many times as far apart are looked at more closely. Chosen: 15 s of a turn.
AROUND = 4.0
# With altitudes that disagree they must have been this close for this long. Chosen.
ONE_NEAR_M = 300.0
ONE_LONG_S = 40.0

# Ways out of a conflict (ways.py).

# Candidates are the multiples of these. Chosen: coarser than those of DAIDALUS, because they go into every event of a
# conflict, and a person flies no finer ones.
TRACK_STEP_DEG = 5.0
SPEED_STEP_KT = 5.0
LEVEL_STEP_FT = 500.0
CLIMB_STEP_FPM = 500.0
# How far from the present ones they go: a share of the speed, and feet. Chosen.
SPEED_SHARE = 0.25
LEVEL_REACH_FT = 3000.0
CLIMB_MOST_FPM = 3000.0
# Another level is flown to at this rate, or at the present one if that is larger and leads there. Chosen: what a
# controller expects of an airliner at least.
LEVEL_FPM = 1000.0

# Evidence (detector.py).

# Pairs with a lower probability are not named: the lowest threshold `probability` that the configuration allows.
WORTH = 0.05
# The score of `los`, minimum over distance, is at most this: two aircraft at one place have no finite one. Chosen.
SCORE_MAX = 1000.0
