"""What an undisturbed run says: the same messages through the same edge and Pipeline, without a daemon around them.

The messages that a broker lost are left out, because no daemon can have them. Of some nobody can say whether they
count: those that the broker lost after it had delivered them, and those that the daemon acknowledged while it said
that it could not keep them, and died. Where there are such, a second run has exactly the messages that the daemon has
judged (census.py), and an alarm is `certain` when both raise it and `possible` when one does.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cache

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.edge import Edge

from chaos import scenes
from chaos.broker import Message

LATENCY_S = 0.011
# Messages this close together are one batch.
GATHER_S = 0.02
# Samples as old as this at the end have been judged; younger ones may wait for others.
WAITS_S = 4.0


@dataclass(frozen=True, slots=True)
class Life:
    """One alarm: from its onset to its end (None: it is active at the end of the input)."""

    id: str
    kind: str
    subjects: tuple[str, ...]
    t_onset: float
    t_cleared: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """Alarms by id."""

    certain: dict[str, Life]
    possible: dict[str, Life]


def lives(messages: Iterable[Message]) -> dict[str, Life]:
    """The alarms of these messages, each sent at its own time."""
    config = scenes.config()
    pipeline = Pipeline(config)
    edge = Edge(config.topics, config.limits, lambda _topic, _reason, _payload: None)
    events: list[AlarmEvent] = []
    group: list[tuple[str, bytes, float]] = []
    for message in sorted(messages, key=lambda m: m.t):
        if group and message.t - group[0][2] > GATHER_S:
            edge.add(group)
            events += [event for batch in edge.take() for event in pipeline.feed(batch)]
            group = []
        group.append((message.topic, message.payload, message.t + LATENCY_S))
    if group:
        edge.add(group)
    events += [event for batch in edge.take() for event in pipeline.feed(batch)]
    events += pipeline.finish()
    return {event.id: _life(event) for event in events}


def _life(event: AlarmEvent) -> Life:
    ended = event.t if event.state == CLEARED else None
    return Life(event.id, event.kind, event.subjects, event.t_onset, ended)


@cache
def of_scene(number: int) -> dict[str, Life]:
    """The alarms of a whole scene."""
    return lives(message for due in scenes.scene(number).messages().values() for _, message in due)


def expected(number: int, messages: list[Message], judged: Container[tuple[str, float]]) -> Expected:
    """The alarms that must and those that may be heard when these messages were sent, and these samples judged."""
    if not any(message.lost or message.doubtful for message in messages):
        alarms = of_scene(number)
        return Expected(alarms, alarms)
    sure = lives(message for message in messages if not message.lost)
    if not any(message.doubtful or (message.lost and message.delivered) for message in messages):
        return Expected(sure, sure)
    last_t = max(message.t for message in messages) - WAITS_S
    used = lives(m for m in messages if (m.sender, m.t) in judged or (m.t > last_t and not m.lost))
    return Expected({i: life for i, life in sure.items() if i in used}, {**used, **sure})
