"""Speed control: lets recorded samples out when their time has come, at 1x, 50x or as fast as they are taken.

Time is the log's own (see chunks.timed): one wild timestamp holds nothing up. The clock is an argument, so tests
step it. Batches are pulled by their consumer, so a slow consumer slows the source and nothing piles up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import cut, timed

# Samples leave in groups that are this long by the clock: finer than anybody sees, coarse enough to be cheap.
GROUP_S = 0.05


class Clock(Protocol):
    """Where the pace is taken from."""

    def now(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so long."""
        ...


class SystemClock:
    """The real one."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)


def parse_speed(word: str) -> float:
    """`1`, `50`, `0.5x` or `max` (infinity). Raises ValueError.

    >>> parse_speed("50"), parse_speed("max")
    (50.0, inf)
    """
    if word == "max":
        return math.inf
    try:
        speed = float(word.removesuffix("x"))
    except ValueError:
        speed = math.nan
    if not 0.0 < speed < math.inf:
        raise ValueError(f"speed {word!r}: expected a positive number (1 is real time) or max")
    return speed


class Pacer:
    """Tells how long to wait before a moment of the log is due.

    A gap of more than `max_gap_s` seconds of the log's time, forward or back, is not waited for: the pace starts
    afresh behind it. A consumer that was too slow is not hurried afterwards beyond the pace itself: what is overdue
    leaves at once until the log has caught up with the clock.
    """

    def __init__(self, speed: float, clock: Clock, *, max_gap_s: float) -> None:
        self.speed = speed
        self.clock = clock
        self._max_gap_s = max_gap_s
        self._last_t: float | None = None
        self._start_t = 0.0
        self._start_s = 0.0

    def delay_s(self, t: float) -> float:
        """Seconds until log time t is due; 0 when it is due now."""
        if math.isinf(self.speed):
            return 0.0
        if self._last_t is None or abs(t - self._last_t) > self._max_gap_s:
            self._start_t, self._start_s = t, self.clock.now()
        self._last_t = t
        return max(0.0, self._start_s + (t - self._start_t) / self.speed - self.clock.now())


def groups(batches: Iterable[Batch], speed: float) -> Iterator[tuple[float, Batch]]:
    """The same samples in the same order, cut into groups that leave together: (log time when due, samples)."""
    if math.isinf(speed):
        for batch in batches:
            yield batch.t_max, batch
        return
    for batch, t in timed(batches):
        borders = np.flatnonzero(np.diff(np.floor(t / (GROUP_S * speed)))) + 1
        edges = [0, *borders.tolist(), len(t)]
        for piece, stop in zip(cut(batch, edges), edges[1:], strict=True):
            yield float(t[stop - 1]), piece


def paced(batches: Iterable[Batch], pacer: Pacer) -> Iterator[Batch]:
    """The samples, each group no sooner than it is due."""
    for due_t, group in groups(batches, pacer.speed):
        delay_s = pacer.delay_s(due_t)
        if delay_s > 0.0:
            pacer.clock.sleep(delay_s)
        yield group
