"""Alarms: one stable id through a whole life (raised, updated …, cleared), severity, evidence.

Called by the pipeline with what the debouncer decided; returns the events to publish. The id derives from kind,
subjects and onset, so a restart or a second instance cannot raise the same alarm twice. The last event says how the
alarm ended, in one of the words of declaration.ENDINGS.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from watchkeeper.config.schema import Alarms
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


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of evidence about one subject, in words and plain numbers."""

    kind: str
    subjects: tuple[str, ...]
    t: float
    score: float
    threshold: float
    severity: str
    evidence: dict[str, Any]


class AlarmEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One step in an alarm's life, exactly as it is published."""

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
    return msgspec.structs.asdict(event)


def event_of(plain: dict[str, Any]) -> AlarmEvent:
    """The event of a snapshot. Raises msgspec.ValidationError."""
    return msgspec.convert(plain, AlarmEvent)


class AlarmBook:
    """The active alarms: decides which events are worth sending and keeps the last one of each."""

    def __init__(self, limits: Alarms) -> None:
        self._limits = limits
        self.active: dict[tuple[str, tuple[str, ...]], AlarmEvent] = {}
        self.refused = 0

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
        )
        return self._keep(event)

    def still(self, finding: Finding, *, news: bool = False) -> AlarmEvent | None:
        """Fresh evidence for an active alarm: an update when it is news, another severity, or time to repeat it."""
        last = self.active.get((finding.kind, finding.subjects))
        if last is None:
            return None
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
        return event

    def end(self, kind: str, subjects: tuple[str, ...], t: float, ended: Ended) -> AlarmEvent | None:
        """The end of an alarm for another reason than its evidence, of which the last stays."""
        last = self.active.get((kind, subjects))
        if last is None:
            return None
        finding = Finding(kind, subjects, t, last.score, last.threshold, last.severity, last.evidence)
        return self.cleared(finding, ended)

    def unwatched(self, kind: str, subjects: tuple[str, ...], t: float, why: str) -> AlarmEvent | None:
        """Nobody can judge this alarm for now: it stays, and says so. None when it has said so already."""
        last = self.active.get((kind, subjects))
        if last is None or last.evidence.get("unwatched") == why:
            return None
        evidence = {**last.evidence, "unwatched": why}
        finding = Finding(kind, subjects, t, last.score, last.threshold, last.severity, evidence)
        return self._keep(self._next(last, UPDATED, finding))

    def adopt(self, event: AlarmEvent) -> None:
        """An alarm that was active before a restart."""
        self.active[event.kind, event.subjects] = event

    def snapshot(self) -> dict[str, Any]:
        """The active alarms in the order of their keys here, and what found no room."""
        return {"active": [plain_event(event) for event in self.active.values()], "refused": self.refused}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        events = map(event_of, state["active"])
        self.active, self.refused = {(event.kind, event.subjects): event for event in events}, state["refused"]

    def attach(self, event: AlarmEvent, diagnosis: dict[str, Any] | None) -> AlarmEvent:
        """An active alarm's newest event with what is known about its cause; later events keep it."""
        return self._keep(msgspec.structs.replace(event, diagnosis=diagnosis))

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
        )

    def _keep(self, event: AlarmEvent) -> AlarmEvent:
        self.active[event.kind, event.subjects] = event
        return event
