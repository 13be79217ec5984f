"""Parts of the conflict metrics by hand: who counts in a pair, hours and ways, the reward, and what is read."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from watchkeeper.detectors.kernels.windows import WindowRule, match_series
from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.distances import Apart, Minima, separations
from watchkeeper.evaluation.conflicts.episode import EpisodeError, from_trajectory
from watchkeeper.evaluation.conflicts.metrics import resolution, safety
from watchkeeper.evaluation.conflicts.reward import DOCUMENTED, Coefficients, reward_parts
from watchkeeper.evaluation.conflicts.series import Series, series_of
from watchkeeper.evaluation.conflicts.team import Shaping, team_part

NM = 6371.0088 / 1.852 * math.radians(1.0 / 60.0)  # haversine length of a minute of arc, in NM


def along(x_nm: float, y_nm: float = 0.0) -> tuple[float, float]:
    return y_nm / 60.0, x_nm / 60.0


def compute(trajectory: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return HallucinationDetector(**settings).compute(trajectory)


def seen(trajectory: dict[str, Any], **more: float) -> Series:
    limits = {"horizon_s": 120.0, "separation_nm": 5.0, "vertical_ft": 1000.0, "action_thresh": (3.0, 5.0)}
    return series_of(from_trajectory(trajectory, 10.0), **limits, **more)


def parts_of(trajectory: dict[str, Any], c: Coefficients = DOCUMENTED) -> dict[str, np.ndarray]:
    return reward_parts(from_trajectory(trajectory, 10.0), seen(trajectory), 5.0, "least", c)


# -- pairs ---------------------------------------------------------------------------------------------------------


def apart(x_nm: list[float], controlled: list[bool], minimum_nm: float = 5.0) -> Apart:
    """One step of agents along the equator; NaN: not there."""
    n = len(x_nm)
    lon = np.array([x_nm]) / 60.0
    found = Apart(np.full(1, np.inf), np.full(1, np.inf), np.full((1, n), np.inf), np.zeros((1, n), np.int64))
    separations(
        np.where(np.isnan(lon), np.nan, 0.0),
        lon,
        np.zeros((1, n)),
        np.array([controlled]),
        Minima(minimum_nm, 1000.0),
        found,
    )
    return found


def test_a_pair_counts_if_one_of_the_two_is_controlled():
    assert apart([0.0, 3.0], [True, False]).nearest_nm[0].tolist() == pytest.approx([3.0 * NM] * 2)
    assert apart([0.0, 3.0], [False, True]).violations[0].tolist() == [1, 1]
    assert apart([0.0, 3.0], [False, False]).any_nm[0] == np.inf


def test_an_agent_that_is_not_there_hides_none_behind_it():
    found = apart([0.0, math.nan, 4.0, 7.0], [True] * 4)
    assert found.violations[0].tolist() == [1, 0, 2, 1]
    assert found.nearest_nm[0, [0, 2, 3]].tolist() == pytest.approx([4.0 * NM, 3.0 * NM, 3.0 * NM])


def test_agents_on_opposite_sides_of_the_earth_are_half_its_circumference_apart():
    assert apart([0.0, 180.0 * 60.0], [True, True]).any_nm[0] == pytest.approx(180.0 * 60.0 * NM)


def test_the_pair_that_comes_nearest_and_the_first_that_acts_are_named():
    # A2 and A3 meet head on, 3 NM aside; A1 is far away. A2 and A3 both turn away, A2 is the first of them
    steps = 4
    trajectory = {
        "positions": [{"A1": along(0, 100), "A2": along(k), "A3": along(20 - k, 3)} for k in range(steps)],
        "agents": {
            name: {"headings": [heading] * steps, "speeds": [360.0] * steps}
            for name, heading in (("A1", 0.0), ("A2", 90.0), ("A3", 270.0))
        },
        "actions": [{"A2": [10.0, 0.0], "A3": [10.0, 0.0]}] * steps,
    }
    s = seen(trajectory)
    assert s.pair.tolist() == [[1, 2]] * steps
    assert s.cause.tolist() == [[1, 2]] * steps
    assert s.dcpa_nm == pytest.approx([3.0 * NM] * steps, abs=0.03)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_escape_is_seen_one_step_later_up_to_the_last_step(at):
    # head on; at one step A1 acts, and from the next on it flies north
    steps = 4
    north = [90.0 if k <= at else 0.0 for k in range(steps)]
    trajectory = {
        # A1 is there at the first step, and again only then
        "positions": [{**({"A1": along(k)} if k == 0 or k >= at else {}), "A2": along(20 - k)} for k in range(steps)],
        "agents": {
            "A1": {"headings": north, "speeds": [360.0] * steps},
            "A2": {"headings": [270.0] * steps, "speeds": [360.0] * steps},
        },
        "actions": [{"A1": [10.0, 0.0]} if k == at else {} for k in range(steps)],
    }
    assert seen(trajectory).escaped.tolist() == [k == at for k in range(steps)]


def test_where_nobody_meets_there_is_no_pair_and_no_cause():
    s = seen({"positions": [{"A1": along(k)} for k in range(2)], "actions": [{"A1": [9.0, 0.0]}] * 2})
    assert s.pair.tolist() == s.cause.tolist() == [[-1, -1]] * 2


def test_pairs_are_looked_at_from_the_middle_between_the_two_unless_said_otherwise():
    trajectory = {
        "positions": [{"A1": (50.0, 8.0), "A2": (50.3, 8.4)}],
        "agents": {"A1": {"headings": [90.0], "speeds": [450.0]}, "A2": {"headings": [180.0], "speeds": [450.0]}},
    }
    assert seen(trajectory).dcpa_nm == seen(trajectory, share_b=1.0).dcpa_nm
    assert seen(trajectory).dcpa_nm != seen(trajectory, share_b=0.0).dcpa_nm


def test_exactly_the_minimum_is_separated():
    found = apart([0.0, 3.0], [True, True])
    assert apart([0.0, 3.0], [True, True], float(found.any_nm[0])).violations.tolist() == [[0, 0]]
    trajectory = {
        "positions": [{"A1": along(0), "A2": along(3)}],
        "actions": [{"A1": [9.0, 0.0]}],
        "waypoints": {"A1": {"lat": 0.0, "lon": 2.0}},
    }
    e, s = from_trajectory(trajectory, 10.0), seen(trajectory)
    for minimum_nm, penalty in ((float(s.nearest_nm[0, 0]), 0.0), (5.0, -25.0)):
        assert reward_parts(e, s, minimum_nm, "least")["violate_entry"].tolist() == [[penalty] * 2]


def test_a_conflict_to_the_end_of_a_short_episode_is_judged_on_all_of_it():
    trajectory = {"positions": [{"A1": along(0), "A2": along(9)}] * 4}
    s = replace(seen(trajectory), level_nm=np.array([3.0, 9.0, 9.0, 9.0]))
    on = np.ones(4, bool)
    m = match_series(on, on, WindowRule())
    assert m.truth == [(0, 4)]
    found = resolution(from_trajectory(trajectory, 10.0), s, m, 5.0, 100.0)
    assert found["resolution_fail_rate"] == 1.0
    # the last two steps alone were separated
    assert resolution(from_trajectory(trajectory, 10.0), s, m, 5.0, 20.0)["resolution_fail_rate"] == 0.0


def test_a_collision_is_nearer_than_its_limit():
    s = seen({"positions": [{"A1": along(0), "A2": along(1)}]})
    exactly = float(s.level_nm[0])
    assert safety(s, exactly, span=False)["num_collision_events"] == 0
    assert safety(s, exactly + 1e-9, span=False)["num_collision_events"] == 1


# -- hours and ways ------------------------------------------------------------------------------------------------


def test_flight_hours_are_those_of_agents_that_are_there():
    positions = [{"A1": along(k), "A2": along(9, k)} if k < 3 else {"A1": along(k)} for k in range(9)]
    r = compute({"positions": positions, "timestamps": [20.0 * k for k in range(9)]})
    assert r["flight_hours"] == pytest.approx(12 * 20.0 / 3600.0)


@pytest.mark.parametrize(("seconds", "efficiency"), [(0.5, 1.0), (600.0, 0.5)])
def test_onsets_are_counted_by_the_minutes_of_the_flight_however_short(seconds, efficiency):
    positions = [{"A1": along(0), "A2": along(3)}] * 3
    r = compute({"positions": positions, "timestamps": [0.0, seconds / 2.0, seconds]})
    assert r["alert_onsets_per_min"] == 0.0
    assert r["path_efficiency"] == efficiency


def test_one_step_is_quiet_or_not_and_a_way_from_the_waypoint_itself_is_all_extra():
    assert compute({"positions": [{}]})["tn_pct"] == 1.0
    r = compute({"positions": [{"A1": along(k)} for k in range(3)], "waypoints": {"A1": {"lat": 0.0, "lon": 0.0}}})
    assert r["avg_extra_path_nm"] == pytest.approx(2 * NM)
    assert r["avg_extra_path_ratio"] == pytest.approx(2 * NM / 1e-6, rel=1e-5)


# -- the reward ----------------------------------------------------------------------------------------------------


def lone(positions: list[tuple[float, float] | None], way: tuple[float, float] = (0.0, 2.0)) -> dict[str, Any]:
    return {
        "positions": [{} if place is None else {"A1": place} for place in positions],
        "actions": [{"A1": [9.0, 0.0]}] * len(positions),
        "waypoints": {"A1": {"lat": way[0], "lon": way[1]}},
    }


@pytest.mark.parametrize(
    ("there", "last"), [((1, 1, 1, 1), 3), ((1, 1, 1, 0), 2), ((0, 1, 0, 0), 1), ((1, 0, 1, 0), 2)]
)
def test_one_that_never_arrives_pays_at_its_last_step(there, last):
    found = parts_of(lone([along(k) if there[k] else None for k in range(4)]))["terminal"][:, 0]
    assert found.tolist() == [-10.0 if k == last else 0.0 for k in range(4)]


def test_one_that_passes_its_waypoint_at_the_first_step_has_arrived_for_good():
    parts = parts_of(lone([along(0), along(3), along(6)], way=along(0.5)))
    assert parts["reach"][:, 0].tolist() == [10.0, 0.0, 0.0]
    assert parts["time"][:, 0].tolist() == pytest.approx([-0.005, 0.0, 0.0])
    assert not parts["terminal"].any()


@pytest.mark.parametrize("moved", ["way_lat", "way_lon"])
@pytest.mark.parametrize("at", [1, 2])
def test_near_one_waypoint_is_not_near_the_next(moved, at):
    # near its waypoint at the first step; from `at` on there is another one far away, in one coordinate only
    e = from_trajectory(lone([along(0), along(3), along(6), along(9)], way=along(0.5)), 10.0)
    way = getattr(e, moved).copy()
    way[at:] += 5.0
    e = replace(e, arrived=np.zeros_like(e.arrived), **{moved: way})
    s = seen(lone([along(0)] * 4))
    # nothing is collected from the arrival until the step after the change
    collected = reward_parts(e, s, 5.0, "least")["time"][:, 0] < 0.0
    assert collected.tolist() == [k == 0 or k > at for k in range(4)]


def test_a_deep_breach_counts_by_its_share_of_the_depth():
    trajectory = {
        "positions": [{"A1": along(0), "A2": along(1)}],
        "actions": [{"A1": [9.0, 0.0]}],
        "waypoints": {"A1": {"lat": 0.0, "lon": 2.0}},
    }
    found = parts_of(trajectory, Coefficients(deep_breach_nm=4.0))["violate_step"][0].tolist()
    expected = -(5.0 - NM) / 5.0 * (1.0 + 1.5 * (4.0 - NM) / 4.0)
    assert found == pytest.approx([expected] * 2)


SHAPING = Shaping(weight=1.0, gamma=1.0, ema=1.0, cap=100.0)


def team(nearest_nm: list[list[float]], violations: list[list[int]], collects: list[list[int]]) -> list[list[float]]:
    """The part of the team with the documented formula: the change of the summed separations."""
    s = seen({"positions": [{"A1": along(0), "A2": along(3), "A3": along(9)}] * len(nearest_nm)})
    made = replace(s, nearest_nm=np.array(nearest_nm), violations=np.array(violations))
    return team_part(made, np.array(collects, bool), 5.0, "sum", SHAPING).tolist()


def test_the_team_shares_a_change_by_violations_or_equally():
    inf = math.inf
    # the sum goes from 12 to 18; then to 24, with three violations of the first and one of the second; then to 30
    nearest_nm = [[6, 6, inf], [9, 9, inf], [12, 12, inf], [15, 15, inf]]
    found = team(nearest_nm, [[0] * 3, [0] * 3, [3, 1, 0], [1, 0, 0]], [[1] * 3] * 4)
    assert found == [[0.0] * 3, [6.0] * 3, pytest.approx([13.5, 4.5, 0.0]), pytest.approx([18.0, 0.0, 0.0])]


def test_only_those_that_collect_are_of_the_team():
    # the third has arrived: neither its separation nor its violations count
    found = team([[6, 6, 50], [9, 9, 99]], [[0] * 3, [0, 0, 4]], [[1, 1, 0]] * 2)
    assert found == [[0.0] * 3, pytest.approx([6.0, 6.0, 0.0])]
    # one alone has the whole change; nobody at all has none
    assert team([[6, 6, 50], [9, 9, 99]], [[0] * 3] * 2, [[1, 0, 0]] * 2)[1] == pytest.approx([3.0, 0.0, 0.0])
    assert team([[6, 6, 50], [9, 9, 99]], [[0] * 3] * 2, [[0] * 3] * 2) == [[0.0] * 3] * 2


def test_one_without_anybody_near_adds_nothing_to_the_potential():
    s = seen({"positions": [{"A1": along(0), "A2": along(3), "A3": along(9)}]})
    made = replace(s, nearest_nm=np.array([[6.0, 6.0, math.inf]]), violations=np.zeros((1, 3), np.int64))
    # half of the potential is left of it after a step
    found = team_part(made, np.ones((1, 3), bool), 5.0, "sum", SHAPING._replace(gamma=0.5))
    assert found.tolist() == [[-6.0] * 3]


def test_the_documented_shaping():
    assert DOCUMENTED.team == (0.6, 0.99, 0.05, 0.05)


# -- what is read --------------------------------------------------------------------------------------------------


def test_a_trajectory_without_positions_says_so():
    with pytest.raises(EpisodeError) as refused:
        from_trajectory({"actions": []}, 10.0)
    assert "positions" in str(refused.value)
    assert "missing" in str(refused.value)


def test_the_status_of_an_agent_that_never_flew_hides_no_other():
    trajectory = {
        "positions": [{"A1": along(k)} for k in range(3)],
        "waypoint_status": {"ghost": {"0": True}, "A1": {"1": True}},
    }
    assert from_trajectory(trajectory, 10.0).arrived[:, 0].tolist() == [False, True, True]


def test_the_speed_of_a_first_position_is_that_of_the_way_to_the_second_which_may_be_the_last():
    e = from_trajectory({"positions": [{"A1": along(0)}, {"A1": along(1)}], "timestamps": [0.0, 10.0]}, 10.0)
    assert e.speed_kt[:, 0].tolist() == pytest.approx([360.0 * NM] * 2)
    assert e.heading_deg[:, 0].tolist() == pytest.approx([90.0] * 2)
