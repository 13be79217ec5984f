"""Whose clock? Turns a sender's own seconds, counted from its start, into Unix time by when its messages arrive."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# A clock that is off by more than this has been started again, or does not count in seconds.
STRAY_S = 1.0


class SenderClock:
    """The earliest arrival seen says when the sender's clock began: a network only ever makes messages later."""

    def __init__(self) -> None:
        self._state = (nan, nan)

    def time(self, seconds: float, now: float) -> float:
        """When a message was made; `now` is when it arrived, NaN in a recording, whose time then begins at 0."""
        t, *state = _step(*self._state, seconds, now)
        self._state = (state[0], state[1])
        return t

    def times(self, seconds: F8, now: float) -> F8:
        """The same of many that arrived together, in order."""
        t = np.empty(len(seconds))
        self._state = _steps(self._state, seconds, now, t)
        return t


def _step(began: float, last_s: float, seconds: float, now: float) -> tuple[float, float, float]:
    """The time of a message, when the sender's clock began, and what it said last."""
    if isnan(now):
        if isnan(began):
            began = -seconds
        elif seconds < last_s - STRAY_S:  # it was started again: time goes on
            began += last_s - seconds
        return seconds + began, began, seconds
    late_s = now - seconds - began
    if isnan(late_s) or late_s < 0.0 or late_s > STRAY_S:
        began = now - seconds
    return seconds + began, began, last_s


_compiled_step = njit(_step)


@njit(cache=True)
def _steps(state: tuple[float, float], seconds: F8, now: float, t: F8) -> tuple[float, float]:
    began, last_s = state
    for i in range(len(seconds)):
        t[i], began, last_s = _compiled_step(began, last_s, seconds[i], now)
    return began, last_s
