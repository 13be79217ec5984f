"""The fleet's time against this machine's: the only judge where there is one sender, or all have one wrong clock.

Live only, and only said: nothing that is detected depends on it. A stream whose time is a day or more away is one of a
simulator or a recording, which keeps its own time. The difference is that of the newest sample when it arrives, the
largest of each WINDOW_S, so that single delays do not count; two windows must agree before it is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client.core import Metric

from watchkeeper.daemon.families import gauge

WINDOW_S = 10.0
OWN_TIME_S = 86_400.0


class WallClock:
    """One comparison. `note` with each batch of samples; `health` says what is wrong."""

    def __init__(self) -> None:
        self.offset_s = math.nan
        self._before_s = math.nan
        self._largest_s = -math.inf
        self._began_s = -math.inf

    def note(self, newest_t: float, wall_t: float, now_s: float) -> None:
        """The newest sample's time, this machine's time, and a clock that only goes forward."""
        if now_s - self._began_s >= WINDOW_S:
            if math.isfinite(self._largest_s):
                self._before_s, self.offset_s = self.offset_s, self._largest_s
            self._began_s, self._largest_s = now_s, -math.inf
        self._largest_s = max(self._largest_s, newest_t - wall_t)

    def health(self, tolerance_s: float) -> list[str]:
        """How far the two are apart, when that is more than the tolerance; 0 tolerates everything."""
        both = (self.offset_s, self._before_s)
        if not tolerance_s or not all(tolerance_s < abs(offset_s) < OWN_TIME_S for offset_s in both):
            return []
        side = "ahead of" if self.offset_s > 0.0 else "behind"
        apart = f"{abs(self.offset_s):,.0f} s {side} this machine's clock"
        return [f"the samples' time is {apart}: one of the two is wrong, or they come late"]

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        help_text = "The fleet's time minus this machine's, when samples arrive; without meaning for simulators"
        yield gauge("wall_clock_offset_seconds", help_text, self.offset_s)
