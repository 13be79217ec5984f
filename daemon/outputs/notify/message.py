"""What a message to a person says: of one alarm, or of many in one summary.

    Warning: gps imu quad-3                                     severity, kind and subjects
    quad-3: GPS drifts away from the IMU at 0.8 m/s since …     the event's own sentence
    http://watch:9108/#alarm=5c3d…&t=1700000042.0               the alarm on the live page

A summary has one line for each alarm that changed, the worst first, as far as they fit; all are counted in its title.
Symptoms of an incident that it tells of have no line of their own and count with the incident.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.incidents.fold import counted, without_symptoms
from watchkeeper.detectors.sentence import said

# Sentences in a summary: more than fit on a phone's screen are read by nobody.
LINES = 8
# What Apprise calls them; services colour and sort by it.
TYPES = {"advisory": "info", "caution": "warning", "warning": "failure"}

Link = Callable[[AlarmEvent], str]


@dataclass(frozen=True, slots=True)
class Message:
    """Title and body as plain text, and Apprise's type."""

    title: str
    body: str
    type: str


def message(events: Iterable[AlarmEvent], link: Link, called: Mapping[str, str]) -> Message:
    """One message about all of these; `called` are better names for their subjects, such as callsigns."""
    latest = list({event.id: event for event in events}.values())
    return _single(latest[0], link, called) if len(latest) == 1 else _summary(latest, link)


def _single(event: AlarmEvent, link: Link, called: Mapping[str, str]) -> Message:
    names = ", ".join(called.get(name, name) for name in event.subjects)
    over = event.state == CLEARED
    title = f"{event.severity.capitalize()}{' is over' if over else ''}: {_words(event.kind)} {names}"
    return Message(
        _printable(title), _with_link(said(event), link(event)), "success" if over else TYPES[event.severity]
    )


def _summary(events: list[AlarmEvent], link: Link) -> Message:
    told, count = without_symptoms(events), counted(events)
    active = sorted((e for e in told if e.state != CLEARED), key=lambda e: (-SEVERITIES.index(e.severity), -e.t))
    over = sorted((e for e in told if e.state == CLEARED), key=lambda e: (-SEVERITIES.index(e.severity), -e.t))
    worst = (active or over)[0]
    counts = Counter(event.severity for event in active)
    parts = [f"{counts[name]} {name}" for name in reversed(SEVERITIES) if counts[name]]
    parts += [f"{len(over)} over"] if over else []
    shown, rest = (active + over)[:LINES], (active + over)[LINES:]
    lines = [f"- {said(event)}" for event in shown]
    if rest:
        kinds = Counter(_words(event.kind) for event in rest)
        lines.append(f"- and {len(rest)} more: {', '.join(f'{n} {kind}' for kind, n in kinds.most_common())}")
    kind = TYPES[worst.severity] if active else "success"
    return Message(f"{count}: {', '.join(parts)}", _with_link("\n".join(lines), link(worst)), kind)


def _with_link(text: str, link: str) -> str:
    return f"{text}\n{link}" if link else text


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _printable(title: str) -> str:
    """The names are the senders': no line breaks in a mail's subject."""
    return "".join(c if c.isprintable() else "?" for c in title)
