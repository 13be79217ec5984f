"""Path lengths, arrivals and the parts of the reward, worked out by hand from the formulas of the document."""

from __future__ import annotations

import math
from typing import Any

import pytest

from second.edges import two_aircraft
from second.episodes import NM_PER_DEG
from second.metrics import metrics
from second.reward import reward_parts


def test_detour():
    # A1 flies 3 NM north, 4 NM east: 7 NM for 5. A2 stands 2 NM from its waypoint: 0 NM for 2. A3 has none.
    north, east = 3.0 / NM_PER_DEG, 4.0 / NM_PER_DEG
    still = {"headings": [0.0] * 3, "speeds": [0.0] * 3}
    trajectory = {
        "positions": [
            {"A1": [0.0, 0.0], "A2": [10.0, 0.0], "A3": [20.0, 0.0]},
            {"A1": [north, 0.0], "A2": [10.0, 0.0], "A3": [20.0, 0.0]},
            {"A1": [north, east], "A2": [10.0, 0.0], "A3": [20.0, 0.0]},
        ],
        "actions": [{}, {}, {}],
        "timestamps": [5.0, 305.0, 605.0],
        "agents": {"A1": still, "A2": still, "A3": still},
        "waypoints": {"A1": {"lat": north, "lon": east}, "A2": {"lat": 10.0 + 2.0 / NM_PER_DEG, "lon": 0.0}},
    }
    expected = {
        "total_path_length_nm": 7.0,
        "total_extra_path_nm": 2.0,
        "avg_extra_path_nm": 1.0,
        "avg_extra_path_ratio": ((7 / 5 - 1) + (0 / 2 - 1)) / 2,
        "waypoint_reached_ratio": 1 / 3,
        "flight_time_s": 600.0,
        "path_efficiency": 0.5,
    }
    assert {name: metrics(trajectory)[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    trajectory["waypoint_status"] = {"A2": {"0": False, "2": True}}
    assert metrics(trajectory)["waypoint_reached_ratio"] == pytest.approx(2 / 3)
    trajectory["csv_waypoint_completion"] = {"A3": 1}
    assert metrics(trajectory)["waypoint_reached_ratio"] == 1.0


def northward(lats_nm: list[float], headings_deg: list[float], waypoint_nm: float) -> dict[str, Any]:
    """One aircraft on a meridian."""
    return {
        "positions": [{"A1": [nm / NM_PER_DEG, 0.0]} for nm in lats_nm],
        "actions": [{"A1": [0.0, 0.0]} for _ in lats_nm],
        "timestamps": [10.0 * t for t in range(len(lats_nm))],
        "agents": {"A1": {"headings": headings_deg, "speeds": [250.0] * len(lats_nm)}},
        "waypoints": {"A1": {"lat": waypoint_nm / NM_PER_DEG, "lon": 0.0}},
    }


def test_one_mile_is_near_enough():
    assert metrics(northward([0.0, 1.0, 2.0], [0.0] * 3, waypoint_nm=2.99))["waypoint_reached_ratio"] == 1.0
    assert metrics(northward([0.0, 1.0, 2.0], [0.0] * 3, waypoint_nm=3.01))["waypoint_reached_ratio"] == 0.0


def test_an_aircraft_that_arrives():
    trajectory = northward([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], waypoint_nm=2.5)
    trajectory["actions"][1] = {"A1": [9.0, -5.0]}
    expected = {
        "progress": 2.0 * 1.852 * 0.04,
        "drift": 0.0,
        "violate_entry": 0.0,
        "violate_step": 0.0,
        "action": -0.01 * (9.0 / 18.0 + 5.0 / 10.0),
        "time": 3 * 10.0 * -0.0005,
        "reach": 10.0,
        "terminal": 0.0,
        "team_bound": 3 * 0.6 * 0.05,
    }
    assert reward_parts(trajectory) == pytest.approx(expected)
    assert metrics(trajectory)["reward_total"] == pytest.approx(10.0 + 0.14816 - 0.01 - 0.015)


def test_arrived_once_is_arrived():
    # 0.5 NM from it at the second step, 4.5 NM past it at the end: the bonus, and no penalty.
    parts = reward_parts(northward([0.0, 2.0, 7.0], [0.0, 0.0, 0.0], waypoint_nm=2.5))
    assert (parts["reach"], parts["terminal"]) == (10.0, 0.0)


def test_an_aircraft_that_turns_to_its_waypoint_and_does_not_arrive():
    # Off by 30, 12 and 10 degrees: 18 - 8 = 10 are paid, then 2 - 8 are none.
    parts = reward_parts(northward([0.0, 0.0, 0.0], [30.0, 12.0, 350.0], waypoint_nm=100.0))
    assert parts["drift"] == pytest.approx(0.01 * 10.0)
    assert parts["terminal"] == -10.0


def test_violations_are_paid_at_entry_and_by_depth():
    # 20, 4, 0.5, 20, 4 NM: two entries. Depth 0.2 at 4 NM; at 0.5 NM 0.9, times 1 + 1.5 * 0.5.
    trajectory = two_aircraft([20.0, 4.0, 0.5, 20.0, 4.0], [[0.0, 0.0]] * 5)
    parts = reward_parts(trajectory)
    assert parts["violate_entry"] == 2 * 2 * -25.0
    assert parts["violate_step"] == pytest.approx(2 * -(0.2 + 0.9 * 1.75 + 0.2))
    assert (parts["reach"], parts["terminal"]) == (0.0, 0.0)
    assert math.isnan(metrics(trajectory)["reward_total"])


def test_recorded_rewards_are_summed():
    trajectory = northward([0.0, 1.0], [0.0, 0.0], waypoint_nm=5.0)
    trajectory["rewards"] = [{"A1": 1.5}, {"A1": -0.25, "A2": 4.0}]
    assert metrics(trajectory)["reward_total"] == pytest.approx(5.25)
