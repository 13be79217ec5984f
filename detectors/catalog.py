"""Every detector, in the order in which the pipeline asks them, and what follows from their declarations.

Adding a detector to the project adds one line here. One of another package is found by its entry point in the group
`watchkeeper.detectors`, which names a class with a declaration; `discover` registers it.
"""

from __future__ import annotations

import logging
import math
from importlib import import_module

from watchkeeper.config.guests import load_guests, section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import REGISTRY, register
from watchkeeper.detectors.clock import declaration as clock
from watchkeeper.detectors.coverage.declaration import KIND as WATCH_KIND
from watchkeeper.detectors.declaration import AlarmKind, Gauge
from watchkeeper.detectors.incidents.declaration import GAUGES, KIND

__all__ = ["REGISTRY", "detector_kinds", "discover", "gauges", "kinds", "threshold"]

log = logging.getLogger(__name__)

GROUP = "watchkeeper.detectors"
# Kinds whose threshold raised: asked with every scrape, logged once.
_without_threshold: set[str] = set()

DETECTORS = (
    "kinematics.detector:Kinematics",
    "conflict.detector:Conflict",
    "gnss_interference.detector:GnssInterference",
    "gps_imu.detector:GpsImu",
    "intent.detector:Intent",
    "link.detector:LinkDetector",
    "silence.detector:Silence",
    "emergency.detector:Emergency",
    "signal.detector:SignalDetector",
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


def kind_of(name: str) -> AlarmKind | None:
    """One alarm kind, without a look at all of them: each event asks."""
    for detector in REGISTRY.values():
        for kind in detector.declaration.kinds:
            if kind.name == name:
                return kind
    return kinds().get(name)


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
