"""Whose clock? Turns a sender's own seconds, counted from its start, into Unix time by when its messages arrive."""

from __future__ import annotations

from math import isnan, nan

# A clock that is off by more than this has been started again, or does not count in seconds.
STRAY_S = 1.0


class SenderClock:
    """The earliest arrival seen says when the sender's clock began: a network only ever makes messages later."""

    def __init__(self) -> None:
        self._began = nan
        self._last_s = nan

    def time(self, seconds: float, now: float) -> float:
        """When a message was made; `now` is when it arrived, NaN in a recording, whose time then begins at 0."""
        if isnan(now):
            if isnan(self._began):
                self._began = -seconds
            elif seconds < self._last_s - STRAY_S:  # it was started again: time goes on
                self._began += self._last_s - seconds
            self._last_s = seconds
            return seconds + self._began
        late_s = now - seconds - self._began
        if isnan(late_s) or late_s < 0.0 or late_s > STRAY_S:
            self._began = now - seconds
        return seconds + self._began
