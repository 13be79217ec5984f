"""Alarm events for tests of what carries and keeps them."""

from __future__ import annotations

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, alarm_id


def event(subject: str, state: str, t: float, *, t_onset: float = 0.0, kind: str = "silence") -> AlarmEvent:
    return AlarmEvent(
        id=alarm_id(kind, (subject,), t_onset), kind=kind, state=state, severity="caution", subjects=(subject,),
        t=t, t_onset=t_onset, t_raised=t_onset, t_cleared=t if state == CLEARED else None,
        score=2.0, threshold=1.0, evidence={"silence_s": t}, ended="cause_gone" if state == CLEARED else None,
    )  # fmt: skip
