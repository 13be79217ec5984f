"""Sentences that a person can take at their word: sizes that are those of the cause, no time that means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.sentence import say

SPOOFED = {"type": "gps_spoofing", "location": "quad-1/gps", "confidence": 0.91, "alternatives": []}


def event(kind: str, evidence: dict[str, Any], *, over: bool = False, diagnosis: Any = None) -> AlarmEvent:
    return AlarmEvent(
        id="0123456789abcdef", kind=kind, state=CLEARED if over else RAISED, severity="warning", subjects=("quad-1",),
        t=90.0, t_onset=10.0, t_raised=12.0, t_cleared=90.0 if over else None, score=9.0, threshold=1.0,
        evidence=evidence, diagnosis=diagnosis, ended="alarms_cleared" if over else None,
    )  # fmt: skip


def test_an_incident_says_what_it_was_without_a_moment_that_means_nothing() -> None:
    told = {"alarms": ["a"]}
    assert say(event("incident", told, diagnosis=SPOOFED)) == (
        "quad-1: most likely spoofing of the GPS of quad-1 (91 %) since t=10.0 s; explains 1 alarm."
    )
    over = say(event("incident", told, over=True, diagnosis=SPOOFED))
    assert over.startswith(
        "quad-1: most likely spoofing of the GPS of quad-1 (91 %); explained 1 alarm; ended t=90.0 s after 80 s: "
    )


@pytest.mark.parametrize(
    ("alarms", "words"), [(["a"], "1 alarm since t=10.0 s"), (["a", "b"], "2 alarms with one cause since t=10.0 s")]
)
def test_an_incident_whose_cause_is_not_known_says_so_in_a_sentence(alarms: list[str], words: str) -> None:
    assert say(event("incident", {"alarms": alarms})) == f"quad-1: {words}; the cause is not known yet."
    assert "the cause was not found; ended" in say(event("incident", {"alarms": alarms}, over=True))


@pytest.mark.parametrize(
    ("position_sigma", "size"),
    [
        # a step of the position is as large as the position is off ...
        (100.0, "GPS position stepped 57 m from where the IMU puts it"),
        # ... unless it led back to where the vehicle is
        (3.6, "GPS position stepped 161 sigma from where the IMU puts it"),
    ],
)
def test_a_step_back_is_not_as_small_as_where_it_ended(position_sigma: float, size: str) -> None:
    told = {"causes": ["step"], "step_sigma": 161.0, "position_sigma": position_sigma, "position_off_m": 57.0}
    assert size in say(event("gps_imu", told))
