"""The alarms of a log as a report keeps them: of each its first and last event, its worst moment, how severe it became.

`Lives.hear` is a listener of a replay. Of more alarms than LIVES_MAX only the numbers are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, Moment
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.incidents.fold import symptoms
from watchkeeper.detectors.sentence import said

LIVES_MAX = 5000


@dataclass(slots=True)
class Life:
    """One alarm from its first event to its last."""

    first: AlarmEvent
    last: AlarmEvent
    severity: str
    events: int = 1

    @property
    def active(self) -> bool:
        """Whether it was still active when the log ended."""
        return self.last.state != CLEARED

    @property
    def rank(self) -> int:
        """How severe it became: 0 is an advisory."""
        return SEVERITIES.index(self.severity)

    def until_t(self, end_t: float) -> float:
        """When it ended; the end of the log if it did not."""
        return end_t if self.last.t_cleared is None else self.last.t_cleared

    @property
    def worst(self) -> Moment:
        """Its worst moment, with the figures of then."""
        return self.last.worst or Moment(self.last.t, self.last.score, self.last.evidence)

    @property
    def say(self) -> str:
        """The alarm in one sentence, the same as in every other output."""
        return said(self.last)

    def take(self, event: AlarmEvent) -> None:
        """The next event."""
        self.last = event
        self.events += 1
        if SEVERITIES.index(event.severity) > self.rank:
            self.severity = event.severity


class Lives:
    """All alarms, in the order in which they were raised."""

    def __init__(self) -> None:
        self.all: dict[str, Life] = {}

    def hear(self, event: AlarmEvent) -> None:
        """One event."""
        life = self.all.get(event.id)
        if life is not None:
            life.take(event)
        elif len(self.all) < LIVES_MAX:
            self.all[event.id] = Life(event, event, event.severity)


@dataclass(frozen=True, slots=True)
class Group:
    """An incident with its alarms, or an alarm by itself (`head` alone)."""

    head: Life
    alarms: tuple[Life, ...] = ()

    @property
    def rank(self) -> int:
        """The severity of its worst part."""
        return max(life.rank for life in (self.head, *self.alarms))


def grouped(lives: Sequence[Life]) -> list[Group]:
    """Alarms below the incident that they are symptoms of; by severity, then by how bad they became."""
    inside = symptoms(life.last for life in lives)
    below: dict[str | None, list[Life]] = {}
    for life in lives:
        if life.first.id in inside:
            below.setdefault(life.last.incident, []).append(life)
    groups = [
        Group(life, tuple(sorted(below.get(life.first.id, ()), key=lambda m: (m.first.t_onset, m.first.id))))
        for life in lives
        if life.first.id not in inside
    ]
    return sorted(groups, key=lambda g: (-g.rank, -_ratio(g.head), g.head.first.t_onset, g.head.first.id))


def _ratio(life: Life) -> float:
    # an incident has no score: its alarms do
    return life.worst.score / life.last.threshold if life.last.threshold > 0.0 else float("inf")
