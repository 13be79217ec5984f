"""The constants of the `gnss_interference` model: each with what it is and where its value comes from.

"Chosen" means: set by judgement, for the reason given if there is one; no measurement of it is on record. What an
operator may want to change is a setting instead (config/detectors/gnss_interference.py). Limits of the grid and of its
caches stay with the code (cells.py).
"""

from __future__ import annotations

# The level of an aircraft (quality.py).

# A level follows a better report, and a young one any report, with this time constant. Chosen: one good report among
# poor ones is no good past.
RISE_S = 30.0
# Less than this from a report, in categories, the level is there. Chosen: most aircraft say the same all day, and an
# exponential is slow.
CLOSE = 0.01
# Slower than this without an on-ground flag counts as parked. Chosen.
PARKED_KT = 30.0

# Areas (areas.py, detector.py).

# Growth and shrinkage are reported over this long. Chosen.
TREND_S = 60.0
# An extent that differs from the one last reported by more than this share of it is news. Chosen.
NEWS_SHARE = 0.2
# Areas are looked at this often, in event time, however short the ticks are. Chosen.
EVERY_S = 1.0
# With more collapsed aircraft than this they are looked at less often, in proportion. Chosen: a look costs some 10 ms
# per thousand of them.
EVERY_AIRCRAFT = 1000
# Longest time between two looks. Chosen.
EVERY_MAX_S = 10.0
# Cells that an alarm lists; the area may have more. Chosen.
EXTENT_MAX = 500
