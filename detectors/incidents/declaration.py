"""What incidents declare: one kind of alarm that no single detector gives evidence for, and their gauges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from watchkeeper.detectors.declaration import AlarmKind, Facts, Gauge, fact
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.words import WHEN, counted, listed

INCIDENT = "incident"


class IncidentFacts(Facts, frozen=True, kw_only=True):
    """The alarms with one cause."""

    alarms: Annotated[tuple[str, ...], fact("", "ids of the alarms that belong together")] = ()
    diagnosis: Annotated[
        dict[str, Any] | None, fact("", "the event's diagnosis: fault type, location, confidence, alternatives")
    ] = None


# Each type of fault as a person says it: of the device itself ("most likely spoofed"), and with the place behind it.
_FAULTS: dict[str, tuple[str, str]] = {
    "device_failure": ("failed", "a failure of"),
    "link_failure": ("cut off", "a failure of"),
    "misconfiguration": ("set up wrongly", "a wrong setting of"),
    "performance_degradation": ("slow or lossy", "delays or losses on"),
    "gps_spoofing": ("spoofed", "spoofing of"),
    "gps_jamming": ("jammed", "jamming of"),
    "imu_fault": ("a faulty IMU", "a fault of"),
}
# Below 1, what is as good as sure: no diagnosis is.
SURE = 0.995


def fault_words() -> dict[str, str]:
    """What each type of fault is called in front of its place."""
    return {name: of_place for name, (_, of_place) in _FAULTS.items()}


def place_words(location: str) -> str:
    """The place of a fault in a sentence.

    >>> place_words("quad-3/gps"), place_words("gw-1~quad-3"), place_words("gw-1")
    ('the GPS of quad-3', 'the link between gw-1 and quad-3', 'gw-1')
    """
    if "~" in location:
        return f"the link between {listed([place_words(end) for end in location.split('~')])}"
    device, _, sensor = location.partition("/")
    return f"the {sensor.upper()} of {device}" if sensor else device


def likely(confidence: float) -> str:
    """How probable in a sentence.

    >>> likely(0.934), likely(0.999)
    ('93 %', 'over 99 %')
    """
    return "over 99 %" if confidence >= SURE else f"{100.0 * confidence:.0f} %"


def cause_words(diagnosis: Mapping[str, Any], subject: str) -> str:
    """The most likely cause and how likely it is, for an alarm about this subject.

    >>> cause_words({"type": "gps_spoofing", "location": "quad-3/gps", "confidence": 0.93}, "quad-3")
    'spoofed (93 %)'
    >>> cause_words({"type": "link_failure", "location": "broker~gw-1", "confidence": 0.999}, "quad-3")
    'a failure of the link between broker and gw-1 (over 99 %)'
    """
    itself, of_place = _FAULTS.get(diagnosis["type"], (f"{diagnosis['type'].replace('_', ' ')}",) * 2)
    own = {subject, f"{subject}/gps", f"{subject}/imu"}
    words = itself if diagnosis["location"] in own else f"{of_place} {place_words(diagnosis['location'])}"
    return f"{words} ({likely(diagnosis['confidence'])})"


def _say(subjects: Sequence[str], facts: IncidentFacts) -> str:
    alarms = counted(len(facts.alarms), "alarm")
    if facts.diagnosis is None:
        together = " with one cause" if len(facts.alarms) > 1 else ""
        return f"{listed(subjects)}: {alarms}{together} {WHEN}; the cause is not known yet"
    return f"{listed(subjects)}: most likely {cause_words(facts.diagnosis, '')} {WHEN}; explains {alarms}"


def _was(subjects: Sequence[str], facts: IncidentFacts) -> str:
    """It has no worst moment to tell of: what counts is what it was."""
    alarms = counted(len(facts.alarms), "alarm")
    if facts.diagnosis is None:
        return f"{listed(subjects)}: {alarms}, the cause was not found"
    return f"{listed(subjects)}: most likely {cause_words(facts.diagnosis, '')}; explained {alarms}"


KIND = AlarmKind(
    name=INCIDENT,
    help="several alarms with one cause, and the diagnosis of that cause",
    facts=IncidentFacts,
    say=_say,
    was=_was,
)
# Figures of the incidents, and of the network that the configuration declares.
GAUGES: dict[str, tuple[Gauge, ...]] = {
    "incident": (
        Gauge(name="open", metric="incidents_open", help="Incidents that are open"),
        Gauge(name="alarms", help="Active alarms that are part of an incident"),
        Gauge(
            name="refused",
            metric="incidents_refused_total",
            help="Alarms that opened no incident because the table was full",
            counter=True,
        ),
        *(
            Gauge(
                name=fault_type,
                metric="incidents_diagnosed",
                help="Open incidents by their diagnosis",
                label=("type", fault_type),
            )
            for fault_type in FAULT_TYPES
        ),
    ),
    "topology": (
        Gauge(name="declared", help="Vehicles that the configuration calls by name"),
        Gauge(name="never_heard", help="Declared vehicles never heard since the start"),
        Gauge(name="elsewhere", help="Vehicles heard through another gateway than the declared one"),
        Gauge(name="undeclared", help="Vehicles heard that no declaration applies to; 0 without any declaration"),
    ),
}
