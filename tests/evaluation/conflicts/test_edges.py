"""Conflict metrics where there is little to measure: gaps, one agent, one step, nothing; on the limit; bad settings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS

NM = 6371.0088 / 1.852 * math.radians(1.0 / 60.0)  # haversine length of a minute of arc, in NM


def along(x_nm: float, y_nm: float = 0.0) -> tuple[float, float]:
    return y_nm / 60.0, x_nm / 60.0


def compute(trajectory: dict[str, Any]) -> dict[str, Any]:
    return HallucinationDetector().compute(trajectory)


def test_a_gap_in_a_track_is_bridged_by_its_length():
    trajectory = {"positions": [{"A1": along(0)}, {}, {"A1": along(4)}], "timestamps": [0.0, 10.0, 20.0]}
    assert compute(trajectory)["total_path_length_nm"] == pytest.approx(4 * NM)


def test_a_single_agent_has_nobody_to_meet():
    r = compute({"positions": [{"A1": along(k)} for k in range(5)], "actions": [{"A1": [9.0, 0.0]}] * 5})
    assert (r["tp"], r["fp"], r["fn"], r["tn"], r["num_los_events"], r["num_interventions"]) == (0, 0, 0, 5, 0, 5)
    assert math.isnan(r["min_separation_nm"])
    assert math.isnan(r["min_CPA_nm"])


def test_an_empty_episode_and_one_of_one_step():
    r = compute({"positions": []})
    nan = {
        "min_separation_nm", "resolution_fail_rate", "los_failure_rate", "reward_total",
        "alert_onsets_per_min", "min_CPA_nm", "avg_extra_path_nm", "avg_extra_path_ratio",
    }  # fmt: skip
    assert {name for name in METRICS + BESIDE if math.isnan(r[name])} == nan
    assert {name: r[name] for name in METRICS + BESIDE if name not in nan and r[name]} == {"path_efficiency": 1.0}
    r = compute({"positions": [{}]})
    assert (r["tn"], r["flight_time_s"], r["waypoint_reached_ratio"]) == (1, 0.0, 0.0)
    r = compute({"positions": [{"A1": along(0), "A2": along(2)}]})
    assert (r["fn"], r["num_los_events"], r["total_los_duration"]) == (1, 1, 1)


def test_a_pair_that_parts_within_the_minimum_is_still_a_conflict():
    # back to back, 2 NM apart, parting at 2 NM a step: 2, 4, 6 …: TCPA is now, DCPA the distance now
    trajectory = {
        "positions": [{"A1": along(-1 - k), "A2": along(1 + k)} for k in range(6)],
        "agents": {
            "A1": {"headings": [270.0] * 6, "speeds": [360.0] * 6},
            "A2": {"headings": [90.0] * 6, "speeds": [360.0] * 6},
        },
    }
    assert compute(trajectory)["num_conflict_steps"] == 2


def test_exactly_the_minimum_is_separated():
    # two aircraft at rest, 5 NM apart on the ellipsoid along the equator, to a tenth of a millimetre and to a metre
    minute_nm = 6378137.0 * math.radians(1 / 60) / 1852.0
    for nm, conflict in ((5.0, 0), (4.999, 1)):
        still = {"A1": along(0), "A2": along(nm / minute_nm)}
        assert compute({"positions": [still] * 3})["num_conflict_steps"] == 3 * conflict


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"horizon_s": 0.0}, "horizon_s"),
        ({"iou_threshold": 1.5}, "iou_threshold"),
        ({"action_thresh": (3.0,)}, "action_thresh"),
        ({"debounce_n": 4}, "debounce"),
        ({"lag_pre_steps": -1}, "lag"),
        ({"los_threshold_nm": math.nan}, "los_threshold_nm"),
        ({"vertical_ft": 0.0}, "vertical_ft"),
        ({"team_potential": "most"}, "team_potential is 'most', expected least or sum"),
        ({"tangent_plane": "second"}, "tangent_plane"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(setting, word):
    with pytest.raises(ValueError, match=word):
        HallucinationDetector(**setting)


def test_those_who_come_after_one_that_is_away_are_looked_at_all_the_same():
    # A1 has the first column and is there in the first step only; A2 and A3 meet, 2 NM apart, and A3 is commanded
    positions = [{"A1": along(300), "A2": along(0), "A3": along(2)}, *[{"A2": along(0), "A3": along(2)}] * 3]
    found = HallucinationDetector().compute({"positions": positions, "actions": [{"A3": [9.0, 0.0]}] * 4}, detail=True)
    assert found["steps"]["conflict"] == found["steps"]["los"] == [True] * 4
    assert found["steps"]["deliberate"] == [["A3"]] * 4
    assert (found["num_interventions"], found["num_los_events"], found["tp"]) == (4, 1, 1)
    assert found["min_CPA_nm"] == pytest.approx(2.0, rel=0.006)  # on the ellipsoid


def test_a_waypoint_of_one_step_is_a_way_not_flown():
    r = compute({"positions": [{"A1": along(0)}], "waypoints": {"A1": {"lat": 0.0, "lon": 1.0}}})
    assert (r["avg_extra_path_ratio"], r["avg_extra_path_nm"]) == (-1.0, 0.0)
