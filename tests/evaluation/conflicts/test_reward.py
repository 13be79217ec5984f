"""The reward of an episode, recorded or recomputed, part by part against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.episode import from_trajectory
from watchkeeper.evaluation.conflicts.reward import reward_parts

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
    source = r["settings"]["reward_source"]
    assert source.startswith("recomputed, except: act_cost")
    assert "before clipping" in source
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
    # within the minimum the team's potential is 0, and stays 0
    assert compute(trajectory)["reward_total"] == pytest.approx(entry + inside + terminal + time)
    # the document's potential: 2 x 2.5 NM, its change 0.99 - 1 of that, smoothed by 0.05, twice
    change = -0.01 * 5.0 * NM
    first = 0.05 * change
    team = 2 * 0.6 * (first + 0.95 * first + 0.05 * change)
    documented = HallucinationDetector(team_potential="sum").compute(trajectory)["reward_total"]
    assert documented == pytest.approx(entry + inside + terminal + time + team)
    # nearer than a mile the penalty is steeper: depth 0.9, boost 1 + 1.5 x 0.5
    trajectory["positions"] = [{"A1": along(0), "A2": along(0.5 / NM)}] * 2
    steep = 4 * -(4.5 / 5.0) * (1.0 + 1.5 * 0.5)
    assert compute(trajectory)["reward_total"] == pytest.approx(entry + steep + terminal + time)


def parts(trajectory: dict[str, Any]) -> dict[str, Any]:
    """Each part of the reward, [step, agent]."""
    found = HallucinationDetector().examine(from_trajectory(trajectory, 10.0))
    return reward_parts(found.episode, found.series, 5.0, "least")


def still(*places_nm: dict[str, float], way_nm: float = 600.0) -> dict[str, Any]:
    """Agents that are at these miles of the equator at each step."""
    names = list(places_nm[0])
    return {
        "positions": [{name: along(x / NM) for name, x in step.items()} for step in places_nm],
        "actions": [{name: [0.0, 0.0] for name in step} for step in places_nm],
        "agents": {a: {"headings": [90.0] * len(places_nm), "speeds": [0.0] * len(places_nm)} for a in names},
        "waypoints": {a: {"lat": 0.0, "lon": way_nm / 60} for a in names},
    }


@pytest.mark.parametrize(
    ("before_nm", "after_nm", "before", "after"),
    # 0 up to the minimum of 5 NM, 1 from twice that on, straight between them
    [(7.5, 10.0, 0.5, 1.0), (7.5, 30.0, 0.5, 1.0), (4.9, 7.5, 0.0, 0.5), (0.1, 4.9, 0.0, 0.0), (10.0, 9.0, 1.0, 0.8)],
)
def test_the_teams_potential_bends_at_the_minimum_and_is_flat_from_twice_that(before_nm, after_nm, before, after):
    team = parts(still({"A1": 0.0, "A2": before_nm}, {"A1": 0.0, "A2": after_nm}))["team"]
    first = 0.05 * (0.99 * before - before)
    second = min(0.95 * first + 0.05 * (0.99 * after - before), 0.05)
    assert team[:, 0].tolist() == team[:, 1].tolist() == pytest.approx([0.6 * first, 0.6 * second], abs=1e-9)


def test_the_least_separation_of_all_pairs_counts_and_the_pairs_in_violation_answer_for_it():
    # A1 and A2 in violation with A3, A4 far away: 2 pairs, shares of 1 : 1 : 2 : 0, which average 1
    team = parts(
        still(*[{"A1": 0.0, "A2": 8.0, "A3": 4.0, "A4": 40.0}] * 2, {"A1": 0.0, "A2": 8.0, "A3": 14.0, "A4": 40.0})
    )
    second = 0.6 * 0.05 * (0.99 * 0.2)  # potential 0, 0, then 6 NM apart: 0.2
    assert team["team"][:2].tolist() == [[0.0] * 4] * 2
    assert team["team"][2].tolist() == pytest.approx([second] * 4)  # nobody in violation any more
    again = parts(still({"A1": 0.0, "A2": 8.0, "A3": 14.0, "A4": 40.0}, {"A1": 0.0, "A2": 8.0, "A3": 4.0, "A4": 40.0}))
    entering = 0.6 * (0.95 * 0.05 * -0.01 * 0.2 + 0.05 * -0.2)
    assert again["team"][1].tolist() == pytest.approx([entering * share for share in (1.0, 1.0, 2.0, 0.0)])


def test_a_lone_agent_has_no_team():
    assert not parts(still({"A1": 0.0}, {"A1": 0.0}))["team"].any()


def test_within_a_mile_once_is_arrived_for_bonus_and_penalty():
    # A1 flies past its waypoint at mile 3 and on; at the end it is 4 NM away, and no penalty is due
    def way(*miles: float, **more: Any) -> dict[str, Any]:
        return {**still(*({"A1": x} for x in miles), way_nm=3.0), **more}

    past = parts(way(0.0, 2.5, 5.0, 7.0))
    assert past["reach"][:, 0].tolist() == [0.0, 10.0, 0.0, 0.0]
    assert not past["terminal"].any()
    # a status that never says so does not take the arrival back
    never = parts(way(0.0, 2.5, 5.0, 7.0, waypoint_status={"A1": {0: False, 3: False}}))
    assert never["reach"].sum() == 10.0
    assert not never["terminal"].any()
    # farther than a mile at every step: the penalty, unless the status says that it has arrived
    assert parts(way(0.0, 1.9, 4.1, 7.0))["terminal"][:, 0].tolist() == [0.0, 0.0, 0.0, -10.0]
    told = parts(way(0.0, 1.9, 4.1, 7.0, waypoint_status={"A1": {0: False, 2: True}}))
    assert told["reach"][:, 0].tolist() == [0.0, 0.0, 10.0, 0.0]
    assert not told["terminal"].any()
