"""The second implementation on episodes whose every value is worked out by hand from the formulas of the document."""

from __future__ import annotations

import math
from typing import Any

import pytest

from second.edges import edges, pictured
from second.metrics import metrics as metrics_of
from second.settings import Settings


def metrics(trajectory: dict[str, Any], **settings: Any) -> dict[str, float]:
    """All of them on a sphere, where the miles of the pictures are miles."""
    return metrics_of(trajectory, plane_radius_km=Settings().earth_radius_km, **settings)


def only(found: dict[str, float], expected: dict[str, float]) -> dict[str, float]:
    return {name: found[name] for name in expected}


def edge(name: str) -> dict[str, float]:
    made = edges()[name]
    return metrics(made.trajectory, **made.settings)


#   step       0         1
#              012345678901
#   distance   ..tt####tt..    20, 5.5, 3, 5.5, 20 NM
#   command    ..RRR.......
#   g              ####        3 < 5
#   counted      ###           5.5 <= 6
#   debounced     ###          two of the last three
#   a            #####         one step to each side
#   G           [1,      11)   three steps to each side
#   A           [1,   8)       one step to each side; IoU 7 / 10
def worked() -> dict[str, Any]:
    return pictured("..tt####tt..", "..RRR.......")


def test_every_value_of_one_episode():
    expected = {
        "tp": 1,
        "fp": 0,
        "fn": 0,
        "tn": 6,  # 0, 1, 8, 9, 10, 11
        "tn_pct": 0.5,
        "precision": 1.0,
        "recall": 1.0,
        "f1_score": 1.0,
        "ghost_conflict": 0.0,
        "missed_conflict": 0.0,
        "min_separation_nm": 3.0,
        "num_los_events": 1,
        "total_los_duration": 4,
        "num_conflict_steps": 4,
        "alert_duty_cycle": 5 / 12,
        "alerts_per_min": 50.0 / (110.0 / 60.0),
        "alerts_per_min_from_steps": 30.0,
        "alert_onsets_per_min": 1 / (110.0 / 60.0),
        "total_alert_time_s": 50.0,
        "avg_lead_time_s": 0.0,  # both windows start at 1
        "num_lead_times": 1,
        "flight_time_s": 110.0,
        "total_path_length_nm": 14.5 + 2.5 + 2.5 + 14.5,  # the eastern one jumps
        "path_efficiency": 1.0,  # 300 / 110, at most 1
        "waypoint_reached_ratio": 0.0,
        "total_extra_path_nm": 0.0,
        "avg_extra_path_nm": math.nan,
        "avg_extra_path_ratio": math.nan,
        "num_interventions": 3,
        "num_interventions_matched": 1,  # step 4
        "num_interventions_false": 2,
        "unwanted_interventions": 0,
        "excess_alert_time_s": 0.0,
        "resolution_fail_rate": 0.0,  # step 11 only: 20 NM
        "los_failure_rate": 1.0,  # 3 NM in [1, 11)
        "oscillation_rate": 0.5 * (0.0 + (20.0 / (18.0 * 11)) / 2.0),
        "avg_alert_dcpa_nm": (5.5 + 5.5 + 3.0) / 3.0,
        "avg_alert_tcpa_s": 0.0,
        "escape_improve_hits": 0,  # from 5.5 to 5.5 and to 3, then from 3 to 3
        "reward_total": math.nan,
    }
    assert metrics(worked()) == pytest.approx(expected, nan_ok=True, rel=1e-9)


def test_an_alert_nobody_needed_and_a_conflict_nobody_answered():
    #   0         1         2
    #   0123456789012345678901234
    #   .................#...ttt.    G [14, 21)
    #   .....................RRR.    counted 21-23, debounced 22-24, a 21-24, A [20, 25): IoU 1 / 11 < 0.1
    found = metrics(pictured(".................#...ttt.", ".....................RRR."))
    expected = {"tp": 0, "fp": 1, "fn": 1, "tn": 20, "precision": 0.0, "recall": 0.0, "f1_score": 0.0}
    assert only(found, expected) == expected
    assert found["ghost_conflict"] == pytest.approx(1 / 21)
    assert found["missed_conflict"] == 1.0
    assert found["avg_lead_time_s"] == 0.0
    assert found["num_lead_times"] == 0
    assert math.isnan(found["resolution_fail_rate"])
    assert math.isnan(found["los_failure_rate"])


def test_lead_time_is_positive_for_an_early_alert():
    #   0         1
    #   012345678901234567
    #   tttttttttttttt###t    G [11, 18)
    #   .......RRR........    a [7, 12), A [6, 13): IoU 2 / 12; 50 s early
    found = metrics(pictured("tttttttttttttt###t", ".......RRR........"))
    assert found["tp"] == 1
    assert found["avg_lead_time_s"] == 50.0


def test_overlapping_expansions_stay_apart_or_are_merged():
    #   0         1
    #   01234567890123456
    #   ....###...###....    G [1, 10) and [7, 16); commands in the same steps: A [3, 10) and [9, 16)
    apart = edge("expansions overlap")
    # Starts 1 and 3, 7 and 9. After 10: steps 10-15 have 3 NM; after 16: step 16 has 20 NM.
    expected = {
        "tp": 2,
        "fn": 0,
        "fp": 0,
        "avg_lead_time_s": -20.0,
        "resolution_fail_rate": 0.5,
        "los_failure_rate": 1.0,
    }
    assert only(apart, expected) == expected
    merged = edge("expansions overlap and are merged")
    expected = {
        "tp": 1,
        "fn": 0,
        "fp": 0,
        "avg_lead_time_s": -20.0,
        "resolution_fail_rate": 0.0,
        "los_failure_rate": 1.0,
    }
    assert only(merged, expected) == expected


def test_step_of_half_a_minute():
    #   0123456789
    #   ..###.....    g 2-4; 30 s are one step: G [1, 6)
    #   ..RRR.....    a 2-6; 10 s are no step: A [2, 7). Resolution looks at 6 and 7.
    expected = {
        "tp": 1,
        "avg_lead_time_s": -30.0,
        "resolution_fail_rate": 0.0,
        "total_alert_time_s": 150.0,
        "alerts_per_min": 150.0 / 4.5,
        "alerts_per_min_from_steps": 5 * 2.0,
        "alert_onsets_per_min": 1 / 4.5,
        "excess_alert_time_s": 0.0,
    }
    assert only(edge("step of 30 s"), expected) == pytest.approx(expected)


def test_first_of_two_equal_alerts_is_taken():
    # G [2, 28); A [5, 11) and [15, 21), each with IoU 6 / 26
    assert edge("two alerts, the same IoU")["avg_lead_time_s"] == -30.0
    assert edge("two alerts, the same IoU")["fp"] == 1


def test_iou_at_the_threshold_is_enough():
    # An alert window of 6 steps in a conflict window of 60, and of 61
    assert edge("IoU exactly the threshold")["tp"] == 1
    assert edge("IoU just below the threshold")["tp"] == 0


def test_conflict_to_the_end_is_judged_on_the_last_minute():
    # Facing at 12 NM, 16.7 NM closer after 120 s: a conflict, and no loss.
    found = edge("conflict predicted to the end, no loss")
    assert only(found, {"num_conflict_steps": 8, "resolution_fail_rate": 0.0, "los_failure_rate": 0.0}) == {
        "num_conflict_steps": 8,
        "resolution_fail_rate": 0.0,
        "los_failure_rate": 0.0,
    }
    # 3 NM in the steps 0 and 1, judged are 4-9.
    found = edge("conflict to the end, the loss before the last minute")
    assert (found["resolution_fail_rate"], found["los_failure_rate"]) == (0.0, 1.0)
    # 3 NM in the steps 8-11, judged are 6-11.
    assert edge("conflict to the end")["resolution_fail_rate"] == 1.0


def test_separation_minimum_is_strict():
    assert edge("closest approach just inside")["num_conflict_steps"] == 8
    assert edge("closest approach just outside")["num_conflict_steps"] == 0
    trajectory = pictured("t")
    distance_nm = metrics(trajectory)["min_separation_nm"]
    # Both measures of 5.5 NM agree to the last bits only; so the minimum is a little more and a little less.
    assert metrics(trajectory, separation_nm=distance_nm * (1 + 1e-6))["num_conflict_steps"] == 1
    assert metrics(trajectory, separation_nm=distance_nm * (1 - 1e-6))["num_conflict_steps"] == 0
    assert metrics(trajectory, los_threshold_nm=distance_nm)["num_los_events"] == 0
    assert metrics(trajectory, los_threshold_nm=math.nextafter(distance_nm, 6.0))["num_los_events"] == 1


def test_vertical_minimum():
    assert edge("vertical minimum exactly")["num_conflict_steps"] == 0
    assert edge("vertical minimum exactly")["num_los_events"] == 0
    assert edge("vertical minimum exactly")["min_separation_nm"] == pytest.approx(3.0)
    assert edge("just below the vertical minimum")["num_conflict_steps"] == 4


def test_command_of_exactly_the_dead_zone_counts():
    # +2 -2 +2 -2 +2 -2 +2 0 0 0: six reversals in six transitions; the absolute command changes once, by 2.
    assert edge("dead zone exactly")["oscillation_rate"] == pytest.approx(0.5 * (1.0 + 2.0 / (18.0 * 9) / 2.0))


def test_opposite_commands_cancel_in_the_sign_only():
    trajectory = pictured("....")
    trajectory["actions"] = [{"A1": [9.0, 4.0], "A2": [-9.0, 0.0]}, {"A1": [-18.0, 0.0], "A2": [18.0, 0.0]}, {}, {}]
    # Signed means 0. Absolute means: 9, 18, 0, 0 deg and 2, 0, 0, 0 kt.
    jitter = (27.0 / (18.0 * 3) + 2.0 / (10.0 * 3)) / 2.0
    assert metrics(trajectory)["oscillation_rate"] == pytest.approx(0.5 * jitter)


def test_commands_of_exactly_the_thresholds_count():
    found = edge("thresholds exactly")
    assert found["num_interventions"] == 6
    assert found["alert_duty_cycle"] == 1.0


def test_arrived_aircraft_is_in_no_conflict_but_is_a_threat():
    found = edge("arrived from the start")
    expected = {"num_conflict_steps": 0, "num_los_events": 1, "fp": 1, "waypoint_reached_ratio": 0.5}
    assert only(found, expected) == expected


def test_arrived_aircraft_stays_arrived():
    trajectory = pictured("######")
    trajectory["waypoint_status"] = {"A1": {"0": False, "2": True}}
    assert metrics(trajectory)["num_conflict_steps"] == 2


def test_navigation_is_no_alert():
    # Ten degrees to the right, and the waypoint is on the right.
    expected = {"alert_duty_cycle": 0.0, "num_interventions": 8, "fn": 1}
    assert only(edge("navigation is no alert"), expected) == expected


def test_a_command_after_which_the_closest_approach_is_wider_was_an_escape():
    # 3 NM, then 5.5 and 20: the commands of the steps 1 and 2 are followed by a wider one, that of step 0 is not.
    found = metrics(pictured("##t.", "RRR."))
    assert found["escape_improve_hits"] == 2
    # wider by 2.5 NM at first, then by 14.5
    assert metrics(pictured("##t.", "RRR."), escape_nm=2.6)["escape_improve_hits"] == 1
    # facing, 12 NM at 500 kt: they meet after 86.4 s
    found = metrics(pictured("cccc", "LL..", facing=True))
    assert found["avg_alert_tcpa_s"] == pytest.approx(86.4)
    assert found["avg_alert_dcpa_nm"] == pytest.approx(0.0, abs=1e-9)


def test_alerts_that_match_no_conflict_are_unwanted():
    #   ....ttt......    no conflict; a [4, 9), A [3, 10): seven steps
    found = metrics(pictured("....ttt......", "....RRR......"))
    assert (found["unwanted_interventions"], found["excess_alert_time_s"]) == (1, 70.0)


def test_loss_duration_by_definition_and_by_formula():
    trajectory = pictured("##..#.")
    assert metrics(trajectory)["num_los_events"] == 2
    assert metrics(trajectory)["total_los_duration"] == 3
    assert metrics(trajectory, los_duration="span")["total_los_duration"] == 1
