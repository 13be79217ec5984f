"""Event time in tests: records made by hand, and a clock that is fed one sample at a time.

The records are of a fleet of three at time T, with one report every three seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import EventClock, HeldSample, Verdict
from watchkeeper.detectors.engine.senders.records import Now, Rules
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.messages import Kind

RULES = Rules(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, tolerance_s=0.5)
T = 1000.0
TIME = Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=3.0)


def made(record: type, **fields: Any) -> Any:
    """A record with these values."""
    row = blank(record, 1)[0]
    for name, value in fields.items():
        row[name] = value
    return row


def now(**fields: Any) -> Any:
    """The fleet's time, with these values in place of the usual ones."""
    return made(Now, **{"t": T, "active": 3, "every_s": 3.0, "usual_s": 2.0, "wait_s": 1.0, **fields})


class Run:
    """Feeds (name, time) one by one to a clock and keeps what happened."""

    def __init__(self, time: Time = TIME) -> None:
        self.clock = EventClock(time, 16)
        self.drops: list[tuple[Kind, str]] = []
        self.released: list[float] = []
        self.codes: list[int] = []
        self.resets = 0

    def feed(self, *samples: tuple[str, float]) -> Verdict:
        for name, t in samples:
            verdict = self.clock.admit(
                np.array([t]), [name], np.zeros(1, np.int32), np.full(1, -1, np.int32),
                lambda _, at, name=name: HeldSample(Kind.GPS, name, "", at, np.zeros(1)),
                lambda kind, why: self.drops.append((kind, why)),
            )  # fmt: skip
            self.codes += verdict.codes.tolist()
            self.released += [held.t for _, held in verdict.released]
            self.resets += len(verdict.resets)
        return verdict


def together(names: str, seconds: int, start_t: float = T) -> list[tuple[str, float]]:
    """Samples of these senders once a second."""
    return [(name, start_t + k) for k in range(seconds) for name in names]
