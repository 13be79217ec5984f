"""What is wrong with one live source, in words for /readyz: it delivers nothing, or most of what it sends is refused.

A source has no topic, so nobody else counts its input. Told by LiveSource; windows and shares are those of topics
(refusals.py). The log says it when it begins and when it ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from watchkeeper.config.masking import masked
from watchkeeper.daemon.intake.refusals import LEAST, SHARE, SHOWN_BYTES, WINDOW_S
from watchkeeper.daemon.logs import kv

log = logging.getLogger(__name__)


class SourceHealth:
    """One source. `now` is any clock that only goes on."""

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        self._url = masked(url)
        self._now = now
        self.problem = ""
        self._lost_s: float | None = now()
        self._ends_s = now() + WINDOW_S
        self._samples = self._refused = 0
        self._reason, self._example = "", b""
        self._bad = ""

    def connected(self) -> None:
        """It delivers."""
        self._lost_s = None

    def lost(self, problem: str) -> None:
        """It does not, and why."""
        self.problem = problem
        if self._lost_s is None:
            self._lost_s = self._now()

    def took(self, samples: int) -> None:
        """So many samples were made of what it sent."""
        self._samples += samples
        self._look()

    def refused(self, count: int, reason: str, data: bytes) -> None:
        """So many messages among these bytes were refused."""
        if not self._refused:
            self._reason, self._example = reason, data[:SHOWN_BYTES]
        self._refused += count
        self._look()

    def health(self) -> list[str]:
        """What is wrong now. A source that was lost a moment ago is not: most come back."""
        self._look()
        if self._lost_s is not None:
            lost = self._now() - self._lost_s >= WINDOW_S
            return [f"source {self._url} delivers nothing: {self.problem or 'no answer yet'}"] if lost else []
        return [f"source {self._url}: {self._bad}"] if self._bad else []

    def _look(self) -> None:
        if self._now() < self._ends_s:
            return
        every = self._refused + self._samples
        bad = ""
        if self._refused >= LEAST and self._refused > SHARE * every:
            example = self._example.decode("utf-8", "backslashreplace")
            share = self._refused / every
            bad = f"{share:.0%} of its messages are refused ({self._reason}), such as in {example!r}"
        if bad and not self._bad:
            log.warning("most input of a source is refused", extra=kv(url=self._url, detail=bad))
        elif self._bad and not bad:
            log.info("input of a source is taken again", extra=kv(url=self._url))
        self._bad = bad
        self._samples = self._refused = 0
        self._ends_s = self._now() + WINDOW_S
