"""What incidents declare: one kind of alarm that no single detector gives evidence for, and their gauges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from watchkeeper.detectors.declaration import AlarmKind, Facts, Gauge, fact, listed
from watchkeeper.detectors.incidents.faults import FAULT_TYPES

INCIDENT = "incident"


class IncidentFacts(Facts, frozen=True, kw_only=True):
    """The alarms with one cause."""

    alarms: Annotated[tuple[str, ...], fact("", "ids of the alarms that belong together")] = ()
    diagnosis: Annotated[
        dict[str, Any] | None, fact("", "the event's diagnosis: fault type, location, confidence, alternatives")
    ] = None


def _say(subjects: Sequence[str], facts: IncidentFacts) -> str:
    count = f"{len(facts.alarms)} alarm{'s' * (len(facts.alarms) != 1)}"
    if facts.diagnosis is None:
        return f"{count} around {listed(subjects)} have one cause that is not known yet."
    found = facts.diagnosis
    sure = f"{100.0 * found['confidence']:.0f} % sure"
    return f"{found['type'].replace('_', ' ').capitalize()} at {found['location']} explains {count} ({sure})."


KIND = AlarmKind(
    name=INCIDENT,
    help="several alarms with one cause, and the diagnosis of that cause",
    facts=IncidentFacts,
    say=_say,
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
