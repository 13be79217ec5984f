"""Limits by kind: what is a jump or a speed for a ship or a glider is none for an aircraft."""

from __future__ import annotations

import math

import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.messages import Kind

GLIDER, SHIP, AIRLINER = 9.0, 40.0, 3.0


def causes(category: float, moved_kt: float, told_kt: float) -> set[str]:
    """What is said of one that moves at one speed and reports another."""
    rows = Rows()
    for s in range(60):
        lat = 47.0 + moved_kt * s / 3600.0 / 60.0
        # it says what it is now and then
        more = {"category": category} if s % 6 == 0 else {}
        wobble = 0.1 * math.sin(s)
        rows.add(Kind.ADSB, "a", 1.7e9 + s, {"lat": lat, "lon": 8.0, "gs_kt": told_kt + wobble, "trk_deg": 0.0, **more})
    batch = rows.take()
    assert batch is not None
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=10)))
    events = pipeline.feed(batch) + pipeline.finish()
    return {cause for event in events if event.kind == "kinematics" for cause in event.evidence["causes"]}


@pytest.mark.parametrize(
    ("category", "moved_kt", "told_kt", "cause"),
    [
        (SHIP, 12.0, 12.0, ""), (SHIP, 100.0, 100.0, "too_fast"), (SHIP, 70.0, 12.0, "speed"),
        (GLIDER, 60.0, 60.0, ""), (GLIDER, 130.0, 60.0, "speed"), (GLIDER, 300.0, 300.0, "too_fast"),
        (AIRLINER, 450.0, 450.0, ""), (AIRLINER, 130.0, 60.0, ""),
    ],
)  # fmt: skip
def test_each_kind_has_limits_of_its_own(category: float, moved_kt: float, told_kt: float, cause: str) -> None:
    found = causes(category, moved_kt, told_kt)
    assert cause in found if cause else not found
