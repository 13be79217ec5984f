"""The reward of an episode, recorded or recomputed, part by part against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from watchkeeper.evaluation.conflicts.command import HallucinationDetector

NM = 6371.0088 / 1.852 * math.radians(1.0 / 60.0)  # haversine length of a minute of arc, in NM


def along(x_nm: float, y_nm: float = 0.0) -> tuple[float, float]:
    return y_nm / 60.0, x_nm / 60.0


def compute(trajectory: dict[str, Any]) -> dict[str, Any]:
    return HallucinationDetector().compute(trajectory)


def test_a_recorded_reward_is_summed():
    positions = [{"A1": along(0), "A2": along(9)}] * 2
    r = compute({"positions": positions, "rewards": [{"A1": -1.5, "A2": 0.25}, {"A1": 2.0}]})
    assert r["reward_total"] == 0.75
    assert r["settings"]["reward_source"] == "recorded"


def test_without_commands_or_waypoints_there_is_no_reward():
    flight = {"positions": [{"A1": along(k)} for k in range(3)]}
    for given in ({"actions": [{"A1": [9.0, 0.0]}] * 3}, {"waypoints": {"A1": {"lat": 0.0, "lon": 1.0}}}):
        r = compute(flight | given)
        assert math.isnan(r["reward_total"])
        assert r["settings"]["reward_source"] == "none"


def test_the_reward_of_a_lone_flight():
    # heading east, one mile per step for three steps, waypoint ten miles ahead: not reached
    trajectory = {
        "positions": [{"A1": along(k)} for k in range(3)],
        "actions": [{"A1": [9.0, -5.0]}] * 3,
        "timestamps": [0.0, 10.0, 20.0],
        "agents": {"A1": {"headings": [90.0] * 3, "speeds": [360.0] * 3}},
        "waypoints": {"A1": {"lat": 0.0, "lon": 10 / 60}},
    }
    progress, time, commands = 2 * NM * 1.852 * 0.04, -0.0005 * 10.0 * 3, -0.01 * (0.5 + 0.5) * 3
    r = compute(trajectory)
    assert r["settings"]["reward_source"] == "recomputed"
    assert r["reward_total"] == pytest.approx(progress + time + commands - 10.0)


def test_the_reward_of_arriving_and_turning_towards_the_waypoint():
    # heading 120, then 100, then 90 towards a waypoint due east: drift 30, 10, 0. Improvements 20 and 10, less 8 each
    # within a mile of it at the third step; the fourth step is after the arrival and brings nothing
    trajectory = {
        "positions": [{"A1": along(x)} for x in (0.0, 1.0, 2.0, 3.0)],
        "actions": [{"A1": [0.0, 0.0]}] * 4,
        "agents": {"A1": {"headings": [120.0, 100.0, 90.0, 90.0], "speeds": [360.0] * 4}},
        "waypoints": {"A1": {"lat": 0.0, "lon": 2.9 / 60}},
    }
    expected = 2 * NM * 1.852 * 0.04 + 0.01 * (12.0 + 2.0) - 0.005 * 3 + 10.0
    assert compute(trajectory)["reward_total"] == pytest.approx(expected)


def test_the_reward_of_a_violation():
    # two at rest, 2.5 NM apart for two steps, waypoints far away, no commands of any size
    trajectory = {
        "positions": [{"A1": along(0), "A2": along(2.5)}] * 2,
        "actions": [{"A1": [0.0, 0.0], "A2": [0.0, 0.0]}] * 2,
        "agents": {a: {"headings": [90.0] * 2, "speeds": [0.0] * 2} for a in ("A1", "A2")},
        "waypoints": {a: {"lat": 0.0, "lon": 5.0} for a in ("A1", "A2")},
    }
    depth = (5.0 - 2.5 * NM) / 5.0
    entry, inside, terminal, time = 2 * -25.0, 4 * -depth, 2 * -10.0, 4 * -0.005
    # potential 2 x 2.5 NM, its change 0.99 - 1 of that, smoothed by 0.05, twice
    change = -0.01 * 5.0 * NM
    first = 0.05 * change
    team = 2 * 0.6 * (first + 0.95 * first + 0.05 * change)
    assert compute(trajectory)["reward_total"] == pytest.approx(entry + inside + terminal + time + team)
    # nearer than a mile the penalty is steeper: depth 0.9, boost 1 + 1.5 x 0.5
    trajectory["positions"] = [{"A1": along(0), "A2": along(0.5 / NM)}] * 2
    steep = 4 * -(4.5 / 5.0) * (1.0 + 1.5 * 0.5)
    change = -0.01 * 1.0
    team = 2 * 0.6 * (0.05 * change * 1.95 + 0.05 * change)
    assert compute(trajectory)["reward_total"] == pytest.approx(entry + steep + terminal + time + team)
