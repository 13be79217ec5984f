"""Two configurations on one log: which alarms only one of them raises, and which come earlier or later.

Alarms of the two runs belong together when their pair is the same and their times overlap, each up to GRACE_S after it
was cleared; each is matched once, in order of time. Called by command.py with two evaluations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from watchkeeper.evaluation.alarms.verdicts import GRACE_S, Alarm, AlarmVerdict


class Difference(msgspec.Struct, frozen=True):
    """One alarm in both runs; None where a run does not have it. `earlier_s`: by how much the first run was earlier."""

    pair: tuple[str, str]
    one: AlarmVerdict | None
    other: AlarmVerdict | None

    @property
    def earlier_s(self) -> float | None:
        """How much earlier the first run raised it."""
        if self.one is None or self.other is None:
            return None
        return self.other.alarm.t_raised - self.one.alarm.t_raised


def differences(one: Sequence[AlarmVerdict], other: Sequence[AlarmVerdict]) -> list[Difference]:
    """All alarms of both runs, matched, in order of time."""
    rest = defaultdict(list)
    for v in other:
        rest[v.alarm.pair].append(v)
    found = []
    for v in one:
        match = next((w for w in rest[v.alarm.pair] if _overlap(v.alarm, w.alarm)), None)
        if match is not None:
            rest[v.alarm.pair].remove(match)
        found.append(Difference(v.alarm.pair, v, match))
    found += [Difference(pair, None, w) for pair, left in rest.items() for w in left]
    return sorted(found, key=lambda d: (min(v.alarm.t_raised for v in (d.one, d.other) if v is not None), d.pair))


def _overlap(a: Alarm, b: Alarm) -> bool:
    return a.t_raised <= _end(b) and b.t_raised <= _end(a)


def _end(alarm: Alarm) -> float:
    return math.inf if alarm.t_cleared is None else alarm.t_cleared + GRACE_S
