"""Alarms: one stable id through a whole life (raised, updated …, cleared), severity, evidence.

Called by the pipeline with what the debouncer decided; returns the events to publish. The id derives from kind,
subjects and onset, so a restart or a second instance cannot raise the same alarm twice.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

RAISED, UPDATED, CLEARED = "raised", "updated", "cleared"


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


def alarm_id(kind: str, subjects: tuple[str, ...], t_onset: float) -> str:
    """Sixteen hex digits from what makes the alarm this alarm."""
    key = msgspec.json.encode([kind, subjects, round(t_onset, 3)])
    return blake2b(key, digest_size=8).hexdigest()


_encoder = msgspec.json.Encoder()


def encode_event(event: AlarmEvent) -> bytes:
    """The event as one line of JSON without the newline: the bytes that replay, journal and MQTT share."""
    return _encoder.encode(event)
