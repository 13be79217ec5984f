"""When an ADS-B report that contradicts its track is believed again. Shared by `kinematics` and `conflict`."""

from __future__ import annotations

# Reports in a row that agree with each other before a new place is believed: more than any debounce needs to alarm.
REACQUIRE = 20
