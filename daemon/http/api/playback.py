"""A place in a recorded past that moves on by itself: `t` as of now, at a speed, paused or not.

It never goes beyond what has been read of the log, and never before its beginning. The clock is an argument.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from watchkeeper.daemon.http.api.shapes import ReplayState

Extent = Callable[[], tuple[float, float]]


class Playback:
    """One playback. `extent` says how far the history reaches now (-inf: nothing yet), `read` that this is all."""

    def __init__(self, extent: Extent, speed: float, now: Callable[[], float] = time.monotonic) -> None:
        self._extent, self._now = extent, now
        self._speed = speed if math.isfinite(speed) else 1.0
        self._paused = False
        # at this moment of the clock it was there; nowhere before there is anything
        self._at_s, self._t = now(), -math.inf
        self._to_the_end = not math.isfinite(speed)
        self.read = False

    @property
    def t(self) -> float:
        """Where it is; -inf before the log begins."""
        first_t, last_t = self._extent()
        if not math.isfinite(last_t):
            return -math.inf
        if self._to_the_end:
            return last_t
        now_s = self._now()
        if not math.isfinite(self._t):
            self._t, self._at_s = first_t, now_s
        going = 0.0 if self._paused else (now_s - self._at_s) * self._speed
        here = min(max(self._t + going, first_t), last_t)
        # at the end of what has been read it waits for more, and does not make up for it later
        self._t, self._at_s = here, now_s
        return here

    @property
    def at_end(self) -> bool:
        """Whether it is at the end of the log."""
        return self.read and self.t >= self._extent()[1]

    def seek(self, t: float) -> ReplayState:
        """Jump."""
        self._to_the_end = False
        self._t, self._at_s = t, self._now()
        return self.state()

    def play_at(self, speed: float) -> ReplayState:
        """From here on at this speed."""
        here = self.t
        self._speed = speed
        return self.seek(here)

    def pause(self, *, on: bool) -> ReplayState:
        """Stand still here, or go on from here."""
        here = self.t
        self._paused = on
        return self.seek(here)

    def step(self, seconds: float) -> ReplayState:
        """Some seconds from here, and stand still."""
        here = self.t
        self._paused = True
        return self.seek(here + seconds if math.isfinite(here) else here)

    def state(self) -> ReplayState:
        """For the API."""
        first_t, last_t = self._extent()
        known = math.isfinite(last_t)
        here = self.t
        return ReplayState(
            t=round(here, 3) if math.isfinite(here) else None, speed=self._speed, paused=self._paused,
            t_first=first_t if known else None, t_last=last_t if known else None, read=self.read,
        )  # fmt: skip
