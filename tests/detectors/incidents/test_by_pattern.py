"""The diagnosis by the pattern of a contradiction is the alarm's own probabilities, put together by fault type."""

from __future__ import annotations

import pytest

from watchkeeper.detectors.gps_imu.naming.pattern import NAMES
from watchkeeper.detectors.incidents.by_pattern import OF_NAME, accused_by, by_pattern
from watchkeeper.detectors.incidents.faults import FAULT_TYPES


def evidence(**p: float) -> dict[str, float]:
    return {f"{name}_p": p.get(name, 0.0) for name in NAMES}


def test_every_name_has_a_fault_type():
    assert set(OF_NAME) == set(NAMES)
    assert {fault_type for fault_type, _ in OF_NAME.values()} <= set(FAULT_TYPES)


def test_names_of_one_type_and_place_are_one_answer():
    found = by_pattern("v", evidence(imu_bias=0.35, imu_scale=0.25, spoofing=0.4))
    assert found is not None
    assert (found.type, found.location, found.confidence) == ("imu_fault", "v/imu", pytest.approx(0.6))
    assert found.alternatives[0] == {"type": "gps_spoofing", "location": "v/gps", "confidence": 0.4}
    # the finer name is the most likely one of that answer
    assert {"pattern": "imu_bias", "probability": "0.35"} in found.evidence


def test_fixes_that_scatter_and_then_stop_were_jammed():
    p = evidence(receiver_fault=0.7, jamming=0.2, spoofing=0.1)
    loud, silent = by_pattern("v", p), by_pattern("v", p, silent=True)
    assert loud is not None
    assert silent is not None
    assert loud.type == "device_failure"
    assert silent.type == "gps_jamming"
    assert silent.confidence + sum(float(a["confidence"]) for a in silent.alternatives) == pytest.approx(1.0, abs=1e-3)


def test_a_clock_is_the_vehicles():
    found = by_pattern("v", evidence(clock=0.9, spoofing=0.1))
    assert found is not None
    assert (found.type, found.location) == ("misconfiguration", "v")


def test_an_alarm_without_a_pattern_has_no_diagnosis_and_accuses_nobody():
    assert by_pattern("v", {"causes": ["freeze"]}) is None
    assert by_pattern("v", {f"{name}_p": None for name in NAMES}) is None
    assert accused_by({}) == ""
    assert accused_by(evidence(imu_stuck=0.5, imu_bias=0.4, spoofing=0.1)) == "imu"
    assert accused_by(evidence(imu_stuck=0.1, spoofing=0.5, jamming=0.4)) == "gps"
    assert accused_by(evidence(imu_stuck=0.6, spoofing=0.4)) == ""
