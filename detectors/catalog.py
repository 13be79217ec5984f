"""Every detector, in the order in which the pipeline asks them, and what follows from their declarations.

Adding a detector to the project adds one line here. One of another package is found by its entry point in the group
`watchkeeper.detectors`, which names a class with a declaration; `discover` registers it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from importlib import import_module

import msgspec

from watchkeeper.config.guests import load_guests, section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.base import REGISTRY, register
from watchkeeper.detectors.clock import declaration as clock
from watchkeeper.detectors.coverage.declaration import KIND as WATCH_KIND
from watchkeeper.detectors.declaration import ENDINGS, AlarmKind, Ended, Gauge
from watchkeeper.detectors.incidents.declaration import GAUGES, KIND

__all__ = [
    "REGISTRY", "detector_kinds", "discover", "ended_as", "ended_words", "gauges", "kinds", "said", "say", "spoken",
    "threshold",
]  # fmt: skip

log = logging.getLogger(__name__)

GROUP = "watchkeeper.detectors"
# Kinds whose threshold raised: asked with every scrape, logged once.
_without_threshold: set[str] = set()
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
    """Every alarm kind by name; the last ones, `clock`, `watch` and `incident`, come from no single detector."""
    return {**detector_kinds(), clock.KIND.name: clock.KIND, WATCH_KIND.name: WATCH_KIND, KIND.name: KIND}


def gauges() -> dict[str, tuple[str, Gauge]]:
    """Every figure, `<detector>_<figure>` as the pipeline calls it: its metric's name, and what is declared of it."""
    declared = {name: detector.declaration.gauges for name, detector in REGISTRY.items()} | clock.GAUGES | GAUGES
    return {f"{name}_{gauge.name}": (gauge.metric_of(name), gauge) for name, own in declared.items() for gauge in own}


def threshold(kind: AlarmKind, config: Config) -> float:
    """The score that counts for a kind with these settings; NaN where its detector cannot tell."""
    try:
        return float(kind.threshold(section_of(config, "detectors", kind.name)))
    except Exception:
        if kind.name not in _without_threshold:
            _without_threshold.add(kind.name)
            log.exception("no threshold for alarms of the kind %s", kind.name)
        return math.nan


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
    """An alarm for a person: one sentence, and one more of how it ended when it did."""
    sentence = _sentence(event, [called.get(name, name) for name in event.subjects])
    return sentence if event.ended is None else f"{sentence} Ended: {ended_words(event.ended)}."


def ended_words(ended: str) -> str:
    """How an alarm ended, in words; the word itself if it is one of another version."""
    return next((words for word, words in ENDINGS.items() if word == ended), ended.replace("_", " "))


def _sentence(event: AlarmEvent, subjects: list[str]) -> str:
    kind = kinds().get(event.kind)
    if kind is not None:
        evidence = dict(event.evidence)
        if "diagnosis" in kind.facts.__struct_fields__:
            evidence["diagnosis"] = event.diagnosis
        try:
            said = kind.say(subjects, msgspec.convert(evidence, kind.facts))
            return f"{said} Nobody is judging this now: {why}." if (why := evidence.get("unwatched")) else said
        # an event of another version, or a sentence of another package that fails: the alarm goes out all the same
        except Exception:
            log.exception("no sentence for an alarm of the kind %s", event.kind)
    return f"{event.kind.replace('_', ' ').capitalize()} alarm about {' and '.join(subjects)}."
