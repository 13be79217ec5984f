"""How many messages a person gets: some at once after a quiet time, then one each `pause_s`. Called by the sink.

A bucket that holds `burst` messages and is filled again by one each `pause_s`. Times are monotonic, in seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """What may be sent now, and how long to wait for the next one."""

    def __init__(self, burst: int, pause_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._pause_s = pause_s
        self._now = now
        self._left = float(burst)
        self._filled_s = now()

    @property
    def left(self) -> int:
        """Whole messages that may be sent now."""
        self._fill()
        # a pause that was slept to its end may be some nanoseconds short
        return int(self._left + 1e-6)

    @property
    def wait_s(self) -> float:
        """Until there is one; zero when there is."""
        return 0.0 if self.left else (1.0 - self._left) * self._pause_s

    def spend(self) -> None:
        """One was sent, even if there was none left: the last words of a daemon that stops."""
        self._fill()
        self._left = max(0.0, self._left - 1.0)

    def _fill(self) -> None:
        now_s = self._now()
        self._left = min(self._burst, self._left + (now_s - self._filled_s) / self._pause_s)
        self._filled_s = now_s
