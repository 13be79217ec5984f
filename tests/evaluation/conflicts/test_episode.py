"""A trajectory as columns, value by value: what is derived, who has arrived, what is refused, at the very limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from watchkeeper.evaluation.conflicts.episode import Episode, EpisodeError, from_trajectory, last_of, step_length

NM = 6371.0088 / 1.852 * math.radians(1.0 / 60.0)  # haversine length of a minute of arc, in NM
NAN = math.nan


def along(*miles: float | None) -> dict[str, Any]:
    """One agent on the equator at these minutes of longitude; None: it is away."""
    return {"positions": [{} if x is None else {"A1": (0.0, x / 60.0)} for x in miles]}


def read(trajectory: dict[str, Any]) -> Episode:
    return from_trajectory(trajectory, 10.0)


def test_motion_is_that_from_the_position_before_and_of_the_first_to_the_next():
    # 1 mile in 10 s, then 3 back in 20 s, then 2 on in 10 s
    e = read({**along(0.0, 1.0, -2.0, 0.0), "timestamps": [0.0, 10.0, 30.0, 40.0]})
    assert e.heading_deg[:, 0].tolist() == pytest.approx([90.0, 90.0, 270.0, 90.0])
    assert e.speed_kt[:, 0].tolist() == pytest.approx([360.0 * NM, 360.0 * NM, 540.0 * NM, 720.0 * NM])
    assert e.derived == ("headings", "speeds")


def test_motion_over_steps_without_a_position_is_that_over_the_whole_gap():
    # away at first, then at mile 0, away for two steps, at mile 6 after 30 s, away to the end
    e = read({**along(None, 0.0, None, None, 6.0, None), "timestamps": [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]})
    speed_kt = 6.0 * NM / 30.0 * 3600.0
    assert e.speed_kt[:, 0].tolist() == pytest.approx([NAN, speed_kt, NAN, NAN, speed_kt, NAN], nan_ok=True)
    assert e.heading_deg[:, 0].tolist() == pytest.approx([NAN, 90.0, NAN, NAN, 90.0, NAN], nan_ok=True)


@pytest.mark.parametrize("miles", [(3.0,), (None, 3.0), (3.0, None), (None, 3.0, None, None)])
def test_a_single_position_stands_still_and_heads_north(miles):
    e = read(along(*miles))
    k = miles.index(3.0)
    assert (e.speed_kt[k, 0], e.heading_deg[k, 0]) == (0.0, 0.0)
    assert np.isnan(np.delete(e.speed_kt[:, 0], k)).all()


def test_what_is_recorded_is_kept_and_only_gaps_are_filled():
    given = {"A1": {"headings": [10.0, None, 30.0], "speeds": [100.0, 200.0, 300.0]}}
    e = read({**along(0.0, 1.0, 2.0), "agents": given})
    assert e.heading_deg[:, 0].tolist() == pytest.approx([10.0, 90.0, 30.0])
    assert e.speed_kt[:, 0].tolist() == [100.0, 200.0, 300.0]
    assert e.derived == ("timestamps", "headings")
    # where an agent is away nothing is missing
    away = {"A1": {"headings": [10.0, None, 30.0], "speeds": [100.0, None, 300.0]}}
    assert read({**along(0.0, None, 2.0), "agents": away}).derived == ("timestamps",)
    other = {"A1": {"headings": [10.0, 20.0, 30.0], "speeds": [100.0, None, 300.0]}}
    e = read({**along(0.0, 1.0, 2.0), "agents": other})
    assert e.speed_kt[:, 0].tolist() == pytest.approx([100.0, 360.0 * NM, 300.0])
    assert (e.heading_deg[:, 0].tolist(), e.derived) == ([10.0, 20.0, 30.0], ("timestamps", "speeds"))


def test_times_are_those_given_or_a_period_apart():
    assert read(along(0.0, 1.0, 2.0)).t.tolist() == [0.0, 10.0, 20.0]
    e = read({**along(0.0, 1.0, 2.0, 3.0), "timestamps": [5.0, 7.0, 9.0, 20.0]})
    assert (e.t.tolist(), e.step_s) == ([5.0, 7.0, 9.0, 20.0], 2.0)
    assert read({**along(0.0), "timestamps": [5.0]}).step_s == 10.0
    assert step_length(np.array([5.0, 7.0]), 10.0) == 2.0


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ((90.0, 0.0), ""), ((-90.0, 0.0), ""), ((0.0, 360.0), ""), ((0.0, -180.0), ""),
        ((math.nextafter(90.0, 99.0), 0.0), "latitude"), ((math.nextafter(-90.0, -99.0), 0.0), "latitude"),
        ((0.0, math.nextafter(360.0, 999.0)), "longitude"), ((0.0, math.nextafter(-180.0, -999.0)), "longitude"),
    ],
)  # fmt: skip
def test_places_up_to_the_limits_are_taken(place, wrong):
    trajectory = {"positions": [{"A1": (0.0, 0.0), "A2": (1.0, 1.0)}, {"A1": (0.0, 0.0), "A2": place}]}
    if not wrong:
        e = read(trajectory)
        assert (e.lat[1, 1], e.lon[1, 1]) == place
        return
    with pytest.raises(EpisodeError, match=wrong) as error:
        read(trajectory)
    assert error.value.field == "positions[1].A2"


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [
        ("lat", 90.0, True), ("lat", -90.0, True), ("lon", 360.0, True), ("lon", -360.0, True),
        ("lat", 90.1, False), ("lat", -90.1, False), ("lon", 360.1, False), ("lon", -360.1, False),
        ("lat", NAN, False), ("lon", True, False),
    ],
)  # fmt: skip
def test_waypoints_up_to_the_limits_are_taken(key, value, good):
    trajectory = {
        **along(0.0, 1.0),
        "waypoints": {"A1": {"lat": 1.0, "lon": 2.0, key: value}, "A9": {"lat": 3, "lon": 4}},
    }
    if good:
        e = read(trajectory)
        assert (e.way_lat if key == "lat" else e.way_lon).tolist() == [[value], [value]]
        return
    with pytest.raises(EpisodeError) as error:
        read(trajectory)
    assert error.value.field == f"waypoints.A1.{key}"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"positions": None}, "positions"),
        ({"agents": {"A9": {}}}, "agents.A9"),
        ({"agents": {"A1": [1.0]}}, "agents.A1"),
        ({"agents": {"A1": {"heading": [1.0, 2.0]}}}, "agents.A1.heading"),
        ({"waypoints": {"A1": 7}}, "waypoints.A1.lat"),
        ({"waypoint_status": {"A1": True}}, "waypoint_status.A1"),
        ({"waypoint_status": {"A1": {"-1": True}}}, "waypoint_status.A1.-1"),
        ({"waypoint_status": {"A1": {"1": "yes"}}}, "waypoint_status.A1.1"),
        ({"rewards": [{"A1": 1.0}, 7]}, "rewards[1]"),
        ({"rewards": [{"A9": 1.0}]}, "rewards[0].A9"),
        ({"rewards": [{"A1": NAN}]}, "rewards[0].A1"),
        ({"position": []}, "position"),
    ],
)
def test_what_cannot_be_used_is_named(given, field):
    base = along(0.0, 1.0) if "position" not in given else {}
    with pytest.raises(EpisodeError) as error:
        read({**base, **given})
    assert error.value.field == field


def test_a_trajectory_is_an_object():
    with pytest.raises(EpisodeError, match="expected an object, got list"):
        from_trajectory([], 10.0)  # type: ignore[arg-type]


def test_arrival_is_by_status_where_there_is_one_and_else_by_distance_for_ever():
    # the waypoint is at mile 1; all three pass it at the second step
    positions = [dict.fromkeys(("A1", "A2", "A3"), (0.0, x / 60.0)) for x in (-3.0, 1.0, 4.0)]
    way = {name: {"lat": 0.0, "lon": 1.0 / 60.0} for name in ("A1", "A2", "A3")}
    status = {"A2": {"0": False, "2": True}, "A3": {}, "A9": {"0": True}}
    e = read({"positions": positions, "waypoints": way, "waypoint_status": status})
    assert e.arrived.T.tolist() == [[False, True, True], [False, False, True], [False, True, True]]
    # at the end: far away again, but for what the status says
    assert e.completed.tolist() == [False, True, False]
    assert not read({"positions": positions}).arrived.any()


@pytest.mark.parametrize(("apart_nm", "at_it"), [(0.999999, True), (1.000001, False)])
def test_within_a_mile_is_at_the_waypoint(apart_nm, at_it):
    way = {"A1": {"lat": 0.0, "lon": 0.0}}
    e = read({**along(apart_nm / NM, None), "waypoints": way})
    assert e.arrived[:, 0].tolist() == [at_it, at_it]
    assert e.completed.tolist() == [at_it]  # at its own last step
    assert not read({**along(None, 0.0), "waypoints": way}).arrived[0, 0]


def test_the_flag_at_the_last_step_of_each():
    present = np.array([[True, True, False, True], [True, False, False, True], [False, False, False, True]])
    flag = np.array([[False, True, True, True], [True, False, True, True], [False, False, True, False]])
    assert last_of(flag, present).tolist() == [True, True, False, False]
    assert last_of(flag[:0], present[:0]).tolist() == [False] * 4


def test_commands_rewards_and_what_else_is_known_go_to_their_step_and_agent():
    positions = [{"A1": (0.0, 0.0), "A2": (1.0, 1.0)}] * 3
    e = read({
        "positions": positions, "actions": [{}, {"A2": [4.0, -5.0]}], "rewards": [{"A2": 1.5}, {}, {"A1": -2}],
        "agents": {"A2": {"altitudes": [100.0, 200.0, 300.0]}}, "scenario_metadata": {"seed": 7},
    })  # fmt: skip
    nan = [NAN] * 3
    np.testing.assert_equal(e.turn_deg.T, [nan, [NAN, 4.0, NAN]])
    np.testing.assert_equal(e.faster_kt.T, [nan, [NAN, -5.0, NAN]])
    np.testing.assert_equal(e.reward.T, [[NAN, NAN, -2.0], [1.5, NAN, NAN]])
    np.testing.assert_equal(e.alt_ft.T, [nan, [100.0, 200.0, 300.0]])
    assert (e.meta, e.ids, e.problems) == ({"seed": 7}, ("A1", "A2"), ())
    assert e.controlled.all()
    assert e.present.all()
