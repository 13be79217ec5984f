"""The constants of the `link` model: each with what it is and where its value comes from.

"Chosen" means: set by judgement, for the reason given if there is one; no measurement of it is on record. What an
operator may want to change is a setting instead (config/detectors/link.py).
"""

from __future__ import annotations

# What is counted (stats.py).

# Samples are counted in bins of about this long, whole ticks each. Chosen: shorter ticks would only make more of them.
BIN_S = 1.0
# Weight of the newest interval in the usual one. Chosen.
ALPHA = 0.05
# Intervals up to this many usual ones are on time. Chosen: a thinned stream keeps many such, a slowed one has none.
ON_TIME = 1.5
# Bins that say whether intervals are as short as usual. Chosen: the newest, or the time before would speak for the
# present.
RECENT_BINS = 4
# Without a sample for so many usual intervals a stream is silent, which is another detector's business. Chosen.
SILENT_INTERVALS = 8.0
# Slower streams cannot show whether some tenths of a second are missing from their time stamps. Chosen.
SEAM_HZ = 10.0

# What it means (detector.py, incidents/heard.py).

# With at least this share of intervals as short as usual, the others are holes: a loss, not a slower rate. Chosen.
HOLES = 0.3
# A reported latency holds for so many windows. Chosen.
LATENCY_WINDOWS = 3.0
