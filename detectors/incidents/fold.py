"""Alarms with one cause count as one: how many alarms there are, for every output that says a number to a person.

An alarm is a symptom where its newest event names an incident and that incident is in the same set. It is counted and
listed with the incident, which is as severe as the worst of them. An alarm whose incident is not in the set stands for
itself, so that nothing disappears from a count. The live page (fold.js) and the history (alarms.py) have the same rule
in their own languages; tests/daemon/test_same_count.py compares all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watchkeeper.detectors.alarms.events import RAISED, AlarmEvent


@dataclass(frozen=True, slots=True)
class Count:
    """`alarms` without those that are symptoms of one of them, which are `symptoms`."""

    alarms: int
    symptoms: int

    def __str__(self) -> str:
        """In words.

        >>> print(Count(1, 0), Count(1_200, 1), sep="; ")
        1 alarm; 1,200 alarms with 1 symptom
        """
        alarms = f"{self.alarms:,} alarm{'s' * (self.alarms != 1)}"
        return alarms + (f" with {self.symptoms:,} symptom{'s' * (self.symptoms != 1)}" if self.symptoms else "")


def symptoms(events: Iterable[AlarmEvent]) -> set[str]:
    """The ids of those that are symptoms of another one of these alarms, each by its newest event."""
    newest = {event.id: event.incident for event in events}
    return {name for name, incident in newest.items() if incident in newest}


def without_symptoms(events: Iterable[AlarmEvent]) -> list[AlarmEvent]:
    """Those that stand for themselves, in the same order."""
    events = list(events)
    inside = symptoms(events)
    return [event for event in events if event.id not in inside]


def counted(events: Iterable[AlarmEvent]) -> Count:
    """How many alarms these are, each by its newest event."""
    events = list(events)
    inside = symptoms(events)
    return Count(len({event.id for event in events}) - len(inside), len(inside))


class Tally:
    """The same for all alarms that were raised in a run, event by event, without keeping the alarms."""

    def __init__(self) -> None:
        self._raised = 0
        self._heads: dict[str, str] = {}

    def take(self, event: AlarmEvent) -> None:
        """The next event."""
        self._raised += event.state == RAISED
        if event.incident is not None:
            # the incident was raised before its alarms are told of it
            self._heads[event.id] = event.incident

    @property
    def count(self) -> Count:
        """What was raised."""
        return Count(self._raised - len(self._heads), len(self._heads))
