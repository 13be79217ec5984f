"""An alarm event as one sentence for a person, and its evidence by how much it contributes. Made here and nowhere else.

    quad-3: GPS drifts away from the IMU at 0.8 m/s since 17:27:29Z; most likely spoofed (93 %).
    quad-3: GPS drifted away from the IMU, at worst at 1.1 m/s at 17:28:01Z; ended 17:28:40Z after 71 s: back to normal.

The kind's own part comes from its declaration (`say`, and `was` of an alarm that is over), with the figures of now, or
of the worst moment when it is over, or when `say` has nothing to say of now because nothing is wrong at this moment.
What all kinds have in common is put around it here: times, the diagnosis, the end.
The alarm book calls `spoken`, so that terminal, MQTT, journal, webhooks, page and files show the same words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.catalog import kind_of, kinds
from watchkeeper.detectors.declaration import ENDINGS, AlarmKind, Ended, Field, fields_of
from watchkeeper.detectors.incidents.declaration import INCIDENT, cause_words
from watchkeeper.detectors.words import WHEN, clock, listed, span

log = logging.getLogger(__name__)

NO_NAMES: Mapping[str, str] = {}
# Fields of evidence that are no measurement.
NOT_MEASURED = frozenset({"causes", "unwatched", "diagnosis"})
# The unit of evidence that says how far something is from normal: the farther, the more it contributes.
DISTANCE = "sigma"


def spoken(event: AlarmEvent, called: Mapping[str, str] = NO_NAMES) -> AlarmEvent:
    """The event with its sentence. `called` are better names for its subjects, such as callsigns."""
    return msgspec.structs.replace(event, say=say(event, called))


def ended_as(event: AlarmEvent, ended: Ended) -> AlarmEvent:
    """The end of an alarm that no pipeline follows any more, at the time of its last event."""
    return spoken(msgspec.structs.replace(event, state=CLEARED, t_cleared=event.t, ended=ended))


def said(event: AlarmEvent) -> str:
    """The event's own sentence; one of an earlier version has none, so it is made now."""
    return event.say or say(event)


def say(event: AlarmEvent, called: Mapping[str, str] = NO_NAMES) -> str:
    """One sentence: who, what, how much, since when, most likely why; or the worst, how it ended and after how long."""
    subjects = [_printable(called.get(name, name)) for name in event.subjects]
    over = event.ended is not None
    since = when = f"since {clock(event.t_onset, event.t)}"
    sentence = "" if over else _own(event, subjects, over=False).rstrip(".")
    past = not sentence
    if past:
        when = "" if event.worst is None else f"at {clock(event.worst.t, event.t)}"
        sentence = _own(event, subjects, over=True).rstrip(".")
    elif WHEN not in sentence:
        sentence += f" {WHEN}"
    parts = [" ".join(sentence.replace(WHEN, when).split()).replace(" ;", ";").replace(" ,", ",")]
    if event.diagnosis is not None and event.kind != INCIDENT:
        parts.append(f"most likely {cause_words(event.diagnosis, event.subjects[0])}")
    if past and not over:
        parts.append(f"over for the moment, alarm {since}")
    if over:
        lasted = span(max(0.0, event.t - event.t_onset))
        parts.append(f"ended {clock(event.t)} after {lasted}: {ended_words(event.ended or '')}")
    elif why := event.evidence.get("unwatched"):
        parts.append(f"not judged now: {why}")
    return "; ".join(parts) + "."


def ended_words(ended: str) -> str:
    """How an alarm ended, in words; the word itself if it is one of another version."""
    return next((words for word, words in ENDINGS.items() if word == ended), ended.replace("_", " "))


def telling(event: AlarmEvent) -> list[tuple[Field, float]]:
    """The numbers of an event's evidence that are known, the most responsible first, with unit and meaning.

    Distances from normal are in the order of their size, before everything else, which is in the order of the
    declaration. A field that the declaration does not know is left out.
    """
    kind = kinds().get(event.kind)
    fields = fields_of(kind.facts) if kind is not None else ()
    numbers = [
        (field, float(value))
        for field in fields
        if field.name not in NOT_MEASURED
        and isinstance(value := event.evidence.get(field.name), int | float)
        and not isinstance(value, bool)
    ]
    return sorted(numbers, key=lambda entry: -entry[1] if entry[0].unit == DISTANCE else float("inf"))


def _own(event: AlarmEvent, subjects: list[str], *, over: bool) -> str:
    """What the kind itself says, of now or of the worst moment; empty: at this moment nothing is wrong."""
    kind = kind_of(event.kind)
    if kind is not None:
        evidence = event.worst.evidence if over and event.worst is not None else event.evidence
        try:
            return (kind.was or kind.say if over else kind.say)(subjects, _facts(kind, evidence, event))
        # an event of another version, or a sentence of another package that fails: the alarm goes out all the same
        except Exception:
            log.exception("no sentence for an alarm of the kind %s", event.kind)
    return f"{listed(subjects)}: {event.kind.replace('_', ' ')} alarm"


def _facts(kind: AlarmKind, evidence: dict[str, Any], event: AlarmEvent) -> Any:
    if "diagnosis" in kind.facts.__struct_fields__:
        evidence = {**evidence, "diagnosis": event.diagnosis}
    return msgspec.convert(evidence, kind.facts)


def _printable(name: str) -> str:
    """A name without control characters, whatever a vehicle calls itself, and without the mark of the time."""
    if not name.isprintable():
        name = "".join(c if c.isprintable() else "?" for c in name)
    return name.replace(WHEN, "?")
