"""Every detector, in the order in which the pipeline asks them, and what follows from their declarations.

Adding a detector to the project adds one line here. One of another package is found by its entry point in the group
`watchkeeper.detectors`, which names a class with a declaration; `discover` registers it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module

import msgspec

from watchkeeper.config.guests import load_guests
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import REGISTRY, register
from watchkeeper.detectors.declaration import AlarmKind, Gauge
from watchkeeper.detectors.incidents.declaration import GAUGES, KIND

__all__ = ["REGISTRY", "detector_kinds", "discover", "gauges", "kinds", "say"]

log = logging.getLogger(__name__)

GROUP = "watchkeeper.detectors"
NO_NAMES: Mapping[str, str] = {}

DETECTORS = (
    "kinematics.detector:Kinematics",
    "conflict.detector:Conflict",
    "gnss_interference.detector:GnssInterference",
    "gps_imu.detector:GpsImu",
    "intent.detector:Intent",
    "link.detector:LinkDetector",
    "silence.detector:Silence",
)
for _where in DETECTORS:
    _module, _, _name = _where.partition(":")
    register(getattr(import_module(f"watchkeeper.detectors.{_module}"), _name))


def discover() -> None:
    """Register the detectors of other packages. Raises GuestError when one cannot be used."""
    load_guests(GROUP, register)


def detector_kinds() -> dict[str, AlarmKind]:
    """The alarm kinds that detectors give evidence for, by name."""
    return {kind.name: kind for detector in REGISTRY.values() for kind in detector.declaration.kinds}


def kinds() -> dict[str, AlarmKind]:
    """Every alarm kind by name; the last is `incident`."""
    return {**detector_kinds(), KIND.name: KIND}


def gauges() -> dict[str, tuple[str, Gauge]]:
    """Every figure, `<detector>_<figure>` as the pipeline calls it: its metric's name, and what is declared of it."""
    declared = {name: detector.declaration.gauges for name, detector in REGISTRY.items()} | GAUGES
    return {f"{name}_{gauge.name}": (gauge.metric_of(name), gauge) for name, own in declared.items() for gauge in own}


def say(event: AlarmEvent, called: Mapping[str, str] = NO_NAMES) -> str:
    """An alarm as one sentence for a person; `called` are better names for its subjects, such as callsigns."""
    subjects = [called.get(name, name) for name in event.subjects]
    kind = kinds().get(event.kind)
    if kind is not None:
        evidence = dict(event.evidence)
        if "diagnosis" in kind.facts.__struct_fields__:
            evidence["diagnosis"] = event.diagnosis
        try:
            return kind.say(subjects, msgspec.convert(evidence, kind.facts))
        # an event of another version, or a sentence of another package that fails: the alarm goes out all the same
        except Exception:
            log.exception("no sentence for an alarm of the kind %s", event.kind)
    return f"{event.kind.replace('_', ' ').capitalize()} alarm about {' and '.join(subjects)}."
