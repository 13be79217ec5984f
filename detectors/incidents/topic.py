"""Where on a broker an alarm or an incident is published."""

from __future__ import annotations

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.streams.messages import subject_topic


def alarm_topic(output: str, event: AlarmEvent) -> str:
    """The topic below this prefix; incidents have no subject of their own and go by their id."""
    if event.kind == INCIDENT:
        return f"{output}/{INCIDENT}/{event.id}"
    return f"{output}/alarm/{event.kind}/{subject_topic(event.subjects)}"
