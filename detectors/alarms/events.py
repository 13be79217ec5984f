"""Alarms: one stable id through a whole life (raised, updated …, cleared), severity, evidence.

Called by the pipeline with what the debouncer decided; returns the events to publish. The id derives from kind,
subjects and onset, so a restart or a second instance cannot raise the same alarm twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from watchkeeper.config.schema import Alarms
from watchkeeper.detectors.base import SEVERITIES

RAISED, UPDATED, CLEARED = "raised", "updated", "cleared"
# Times are published to the millisecond.
TIME_DIGITS = 3


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

    @classmethod
    def of(cls, line: bytes) -> AlarmEvent:
        """The event of one line of JSON. Raises msgspec.DecodeError."""
        return _decoder.decode(line)


def alarm_id(kind: str, subjects: tuple[str, ...], t_onset: float) -> str:
    """Sixteen hex digits from what makes the alarm this alarm."""
    key = msgspec.json.encode([kind, subjects, round(t_onset, TIME_DIGITS)])
    return blake2b(key, digest_size=8).hexdigest()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AlarmEvent)


def encode_event(event: AlarmEvent) -> bytes:
    """The event as one line of JSON without the newline: the bytes that replay, journal and MQTT share."""
    return _encoder.encode(event)


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
        """Fresh evidence for an active alarm: an update when it is news, got worse, or it is time to repeat it."""
        last = self.active.get((finding.kind, finding.subjects))
        if last is None:
            return None
        worse = SEVERITIES.index(finding.severity) > SEVERITIES.index(last.severity)
        if not (news or worse) and finding.t - last.t < self.update_s:
            return None
        return self._keep(self._next(last, UPDATED, finding))

    def cleared(self, finding: Finding) -> AlarmEvent | None:
        """The end of an alarm; None when there is none, so that it can only end once."""
        last = self.active.get((finding.kind, finding.subjects))
        if last is None:
            return None
        event = self._next(last, CLEARED, finding)
        del self.active[finding.kind, finding.subjects]
        return event

    def ended(self, kind: str, subjects: tuple[str, ...], t: float, why: str) -> AlarmEvent | None:
        """The end of an alarm whose subject is gone: its last evidence stays, with the reason."""
        last = self.active.get((kind, subjects))
        if last is None:
            return None
        evidence = {**last.evidence, "cleared_by": why}
        return self.cleared(Finding(kind, subjects, t, last.score, last.threshold, last.severity, evidence))

    def adopt(self, event: AlarmEvent) -> None:
        """An alarm that was active before a restart."""
        self.active[event.kind, event.subjects] = event

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
