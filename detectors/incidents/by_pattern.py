"""A diagnosis from the pattern of a contradiction: what `gps_imu` finds likely by all that the vehicle has shown.

One vehicle's sensors contradict each other, and neither a link nor a whole vehicle is in question: then nobody else can
be asked, and the probabilities of the alarm itself are the diagnosis. They are calibrated (`watchkeeper evaluate
names`), so nothing is added to them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from watchkeeper.detectors.gps_imu.naming.pattern import NAMES
from watchkeeper.detectors.incidents.diagnoser import ALTERNATIVES, DIGITS, Diagnosis

# Fault type of each name, and the sensor that it is in; a clock is the whole vehicle's.
OF_NAME: dict[str, tuple[str, str]] = {
    "spoofing": ("gps_spoofing", "gps"),
    "jamming": ("gps_jamming", "gps"),
    "receiver_fault": ("device_failure", "gps"),
    "frozen_receiver": ("device_failure", "gps"),
    "clock": ("misconfiguration", ""),
    **dict.fromkeys(("imu_bias", "imu_scale", "imu_stuck", "imu_saturation"), ("imu_fault", "imu")),
}
# A fault type and a location.
Answer = tuple[str, str]
# How often fixes stop after a contradiction has begun. Chosen: a jammer that comes nearer ends in silence, the others
# have no reason to.
STOPS: dict[str, float] = {"jamming": 0.9}
STOPS_BY_CHANCE = 0.02
# A sensor is accused by a pattern that is its own with this probability. Chosen: below it, a look at the forces may say
# more (as UNSURE in incidents.py).
ACCUSED = 0.85


def likely(evidence: Mapping[str, Any]) -> dict[str, float]:
    """The probability of each name in an alarm's evidence; empty where it has none."""
    found = {name: evidence.get(f"{name}_p") for name in NAMES}
    return {} if None in found.values() else {name: float(p) for name, p in found.items() if p is not None}


def accused_by(evidence: Mapping[str, Any]) -> str:
    """The sensor that a contradiction is the fault of, `gps` or `imu`; empty: the pattern may be of either.

    >>> accused_by({f"{name}_p": 0.92 if name == "imu_bias" else 0.01 for name in NAMES})
    'imu'
    """
    p = likely(evidence)
    of_imu = sum(p[name] for name in p if OF_NAME[name][1] == "imu")
    return "" if not p or 1.0 - ACCUSED < of_imu < ACCUSED else "imu" if of_imu >= ACCUSED else "gps"


def by_pattern(vehicle: str, evidence: Mapping[str, Any], *, silent: bool = False) -> Diagnosis | None:
    """The diagnosis of a vehicle whose sensors contradict each other; None where the alarm has no pattern.

    `silent`: its fixes have stopped since.
    """
    p = likely(evidence)
    if not p:
        return None
    if silent:
        p = {name: share * STOPS.get(name, STOPS_BY_CHANCE) for name, share in p.items()}
        whole = sum(p.values())
        p = {name: share / whole for name, share in p.items()}
    total: dict[tuple[str, str], float] = {}
    for name, share in p.items():
        total[OF_NAME[name]] = total.get(OF_NAME[name], 0.0) + share
    ranked = sorted(total.items(), key=lambda entry: (-entry[1], entry[0]))
    answer, confidence = ranked[0]
    best = max((name for name in p if OF_NAME[name] == answer), key=lambda name: p[name])
    return Diagnosis(
        type=answer[0],
        location=_place(vehicle, answer[1]),
        confidence=round(confidence, DIGITS),
        evidence=[{"alarm": "gps_imu", "stream": vehicle}, {"pattern": best, "probability": f"{p[best]:.2f}"}],
        alternatives=[
            {"type": kind, "location": _place(vehicle, sensor), "confidence": round(share, DIGITS)}
            for (kind, sensor), share in ranked[1 : 1 + ALTERNATIVES]
        ],
    )


def outweighs(found: Answer, before: Answer, evidence: Mapping[str, Any], odds: float) -> bool:
    """Whether a pattern lets one answer (type, location) take the place of another that was found by other means.

    It does where it knows nothing of one of the two.

    >>> pattern = {f"{name}_p": {"spoofing": 0.4, "imu_bias": 0.5}.get(name, 0.01) for name in NAMES}
    >>> outweighs(("imu_fault", "v/imu"), ("gps_spoofing", "v/gps"), pattern, 4.0)
    False
    >>> outweighs(("performance_degradation", "v/gps"), ("gps_spoofing", "v/gps"), pattern, 4.0)
    True
    """
    p = likely(evidence)
    shares = []
    for kind, place in (found, before):
        sensor = place.rpartition("/")[2] if "/" in place else ""
        own = [p[name] for name in p if OF_NAME[name] == (kind, sensor)]
        if not own:
            return True
        shares.append(sum(own))
    return shares[0] >= odds * shares[1]


def _place(vehicle: str, sensor: str) -> str:
    return f"{vehicle}/{sensor}" if sensor else vehicle
