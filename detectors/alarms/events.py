"""Alarms: one stable id through a whole life (raised, updated …, cleared), severity, evidence, worst moment, sentence.

Called by the pipeline with what the debouncer decided; returns the events to publish. The id derives from kind,
subjects and onset, so a restart or a second instance cannot raise the same alarm twice. The last event says how the
alarm ended, in one of the words of declaration.ENDINGS. Severity rises with the findings and falls, to the most severe
of them, after a settled minute, unless it has changed MOST_CHANGES times already: the debouncer sees to that where it
counts epochs, the book for everything else. The sentence is made here and nowhere later, by the function that the book
is given (catalog.spoken), so that every output shows the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec

from watchkeeper.config.schema import Alarms
from watchkeeper.detectors.alarms.debounce import MOST_CHANGES, SETTLED_S
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.declaration import Ended
from watchkeeper.streams.foreign.decode import json_decoder

RAISED, UPDATED, CLEARED = "raised", "updated", "cleared"
# Times are published to the millisecond.
TIME_DIGITS = 3
# Journals from before there was `ended` have `cleared_by` in the evidence instead, with these words for ours.
EARLIER_WORDS = {
    "evidence": "cause_gone",
    "lost": "out_of_sight",
    "alarms cleared": "alarms_cleared",
    "resolution": "replaced",
    "restart": "not_resumed",
}


class Moment(msgspec.Struct, frozen=True):
    """An alarm at one moment of its life: when, the score, and the evidence of then."""

    t: float
    score: float
    evidence: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of evidence about one subject, in words and plain numbers.

    `worst` is the worst moment so far where its maker keeps one; else the book compares scores.
    """

    kind: str
    subjects: tuple[str, ...]
    t: float
    score: float
    threshold: float
    severity: str
    evidence: dict[str, Any]
    worst: Moment | None = None

    @property
    def moment(self) -> Moment:
        """The finding as a moment of its alarm."""
        return Moment(round(self.t, TIME_DIGITS), self.score, self.evidence)


class AlarmEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One step in an alarm's life, exactly as it is published.

    `say` is the event as one sentence for a person. `worst` is the moment of the highest score, or of the least
    separation where the kind declares so, from raised to cleared. `incident` is the id of the incident that it is a
    symptom of, once that is known. Journals of earlier versions have neither.
    """

    id: str
    kind: str
    state: str
    severity: str
    subjects: tuple[str, ...]
    t: float
    t_onset: float
    t_raised: float
    t_cleared: float | None
    score: float
    threshold: float
    evidence: dict[str, Any]
    diagnosis: dict[str, Any] | None = None
    ended: str | None = None
    say: str = ""
    worst: Moment | None = None
    incident: str | None = None

    @classmethod
    def of(cls, line: bytes) -> AlarmEvent:
        """The event of one line of JSON, of this version or an earlier one. Raises ForeignError."""
        event = _decode(line)
        return event if event.state != CLEARED or event.ended is not None else _with_ending(event)


def alarm_id(kind: str, subjects: tuple[str, ...], t_onset: float) -> str:
    """Sixteen hex digits from what makes the alarm this alarm."""
    key = msgspec.json.encode([kind, subjects, round(t_onset, TIME_DIGITS)])
    return blake2b(key, digest_size=8).hexdigest()


def _with_ending(event: AlarmEvent) -> AlarmEvent:
    """An ended alarm of an earlier version, as this one writes it."""
    evidence = dict(event.evidence)
    word = evidence.pop("cleared_by", "evidence")
    return msgspec.structs.replace(event, evidence=evidence, ended=EARLIER_WORDS.get(word, word))


_encoder = msgspec.json.Encoder()
_decode = json_decoder(AlarmEvent)


def encode_event(event: AlarmEvent) -> bytes:
    """The event as one line of JSON without the newline: the bytes that replay, journal and MQTT share."""
    return _encoder.encode(event)


def plain_event(event: AlarmEvent) -> dict[str, Any]:
    """The event as plain values, for a snapshot; `event_of` is the inverse."""
    plain = msgspec.structs.asdict(event)
    plain["worst"] = None if event.worst is None else msgspec.structs.asdict(event.worst)
    return plain


def event_of(plain: dict[str, Any]) -> AlarmEvent:
    """The event of a snapshot. Raises msgspec.ValidationError."""
    return msgspec.convert(plain, AlarmEvent)


class AlarmBook:
    """The active alarms: decides which events are worth sending and keeps the last one of each.

    `voice` gives each event its sentence; `called` are better names for subjects, such as callsigns.
    """

    def __init__(self, limits: Alarms, voice: Callable[[AlarmEvent, Mapping[str, str]], AlarmEvent]) -> None:
        self._limits = limits
        self._voice = voice
        self.called: Mapping[str, str] = {}
        self.active: dict[tuple[str, tuple[str, ...]], AlarmEvent] = {}
        self.refused = 0
        # since when the findings of an alarm have been less severe than it is shown, and the most severe of them
        self._below: dict[tuple[str, tuple[str, ...]], tuple[float, int]] = {}
        # how often the severity of an alarm has changed
        self._changes: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def retune(self, limits: Alarms) -> None:
        """Take new limits."""
        self._limits = limits

    @property
    def update_s(self) -> float:
        """How often an active alarm repeats itself."""
        return self._limits.update_s

    def raised(self, finding: Finding, t_onset: float) -> AlarmEvent | None:
        """A new alarm; None when it is active already (restored after a restart) or the table is full."""
        key = (finding.kind, finding.subjects)
        if key in self.active:
            return None
        if len(self.active) >= self._limits.max_active:
            self.refused += 1
            return None
        event = AlarmEvent(
            id=alarm_id(finding.kind, finding.subjects, t_onset),
            kind=finding.kind,
            state=RAISED,
            severity=finding.severity,
            subjects=finding.subjects,
            t=round(finding.t, TIME_DIGITS),
            t_onset=round(t_onset, TIME_DIGITS),
            t_raised=round(finding.t, TIME_DIGITS),
            t_cleared=None,
            score=finding.score,
            threshold=finding.threshold,
            evidence=finding.evidence,
            worst=finding.worst or finding.moment,
        )
        return self._keep(event)

    def still(self, finding: Finding, *, news: bool = False, settled: bool = False) -> AlarmEvent | None:
        """Fresh evidence for an active alarm: an update when it is news, another severity, or time to repeat it.

        `settled`: its maker lets the severity fall only after a settled minute itself, and knows when to repeat it.
        """
        last = self.active.get((finding.kind, finding.subjects))
        if last is None:
            return None
        if not settled:
            finding = replace(finding, severity=self._shown(last, finding))
            if not (news or finding.severity != last.severity) and finding.t - last.t < self.update_s:
                return None
        return self._keep(self._next(last, UPDATED, finding))

    def cleared(self, finding: Finding, ended: Ended = "cause_gone") -> AlarmEvent | None:
        """The end of an alarm; None when there is none, so that it can only end once."""
        last = self.active.get((finding.kind, finding.subjects))
        if last is None:
            return None
        event = msgspec.structs.replace(self._next(last, CLEARED, finding), ended=ended)
        del self.active[finding.kind, finding.subjects]
        self._below.pop((finding.kind, finding.subjects), None)
        self._changes.pop((finding.kind, finding.subjects), None)
        return self._voice(event, self.called)

    def end(
        self, kind: str, subjects: tuple[str, ...], t: float, ended: Ended, worst: Moment | None = None
    ) -> AlarmEvent | None:
        """The end of an alarm for another reason than its evidence, of which the last stays."""
        last = self.active.get((kind, subjects))
        if last is None:
            return None
        return self.cleared(_again(last, t, last.evidence, worst), ended)

    def unwatched(self, kind: str, subjects: tuple[str, ...], t: float, why: str) -> AlarmEvent | None:
        """Nobody can judge this alarm for now: it stays, and says so. None when it has said so already."""
        last = self.active.get((kind, subjects))
        if last is None or last.evidence.get("unwatched") == why:
            return None
        finding = _again(last, t, {**last.evidence, "unwatched": why}, None)
        return self._keep(self._next(last, UPDATED, finding))

    def adopt(self, event: AlarmEvent) -> None:
        """An alarm that was active before a restart."""
        self.active[event.kind, event.subjects] = event

    def snapshot(self) -> dict[str, Any]:
        """The active alarms in the order of their keys here, and what found no room."""
        below = [[kind, list(subjects), t, most] for (kind, subjects), (t, most) in self._below.items()]
        return {
            "active": [plain_event(event) for event in self.active.values()],
            "refused": self.refused,
            "below": below,
            "changes": [[kind, list(subjects), n] for (kind, subjects), n in self._changes.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        events = map(event_of, state["active"])
        self.active, self.refused = {(event.kind, event.subjects): event for event in events}, state["refused"]
        self._below = {(kind, tuple(subjects)): (t, most) for kind, subjects, t, most in state["below"]}
        self._changes = Counter({(kind, tuple(subjects)): n for kind, subjects, n in state["changes"]})

    def attach(self, event: AlarmEvent, diagnosis: dict[str, Any] | None, incident: str | None = None) -> AlarmEvent:
        """An active alarm's newest event with its cause and the incident that it belongs to; later events keep both."""
        return self._keep(msgspec.structs.replace(event, diagnosis=diagnosis, incident=incident))

    def _shown(self, last: AlarmEvent, finding: Finding) -> str:
        """How severe an alarm is to be shown with this finding."""
        key, now, before = (last.kind, last.subjects), *map(SEVERITIES.index, (finding.severity, last.severity))
        if now >= before or self._changes[key] >= MOST_CHANGES:
            self._below.pop(key, None)
            if now > before:
                self._changes[key] += 1
            return SEVERITIES[max(now, before)]
        since, most = self._below.get(key, (finding.t, now))
        most = max(most, now)
        if finding.t - since < SETTLED_S:
            self._below[key] = since, most
            return last.severity
        self._below[key] = finding.t, now
        self._changes[key] += 1
        return SEVERITIES[most]

    @staticmethod
    def _next(last: AlarmEvent, state: str, finding: Finding) -> AlarmEvent:
        t = round(max(finding.t, last.t), TIME_DIGITS)
        return msgspec.structs.replace(
            last,
            state=state,
            # the end of an alarm tells how bad it was, not how harmless it is now
            severity=last.severity if state == CLEARED else finding.severity,
            t=t,
            t_cleared=t if state == CLEARED else None,
            score=finding.score,
            threshold=finding.threshold,
            evidence=finding.evidence,
            worst=finding.worst or _worse(last.worst, finding),
        )

    def _keep(self, event: AlarmEvent) -> AlarmEvent:
        event = self._voice(event, self.called)
        self.active[event.kind, event.subjects] = event
        return event


def _again(last: AlarmEvent, t: float, evidence: dict[str, Any], worst: Moment | None) -> Finding:
    """What was last found of an alarm, at a later time."""
    return Finding(
        last.kind, last.subjects, t, last.score, last.threshold, last.severity, evidence, worst or last.worst
    )


def _worse(worst: Moment | None, finding: Finding) -> Moment:
    """The worse of two moments, the earlier one where they are equal."""
    return finding.moment if worst is None or finding.score > worst.score else worst
