"""Each of the 31 metrics against a value worked out by hand on a small episode, drawn beside it.

Everything happens along the equator, where a minute of arc is a nautical mile to within two parts in a thousand, and
no distance comes nearer to a limit than that. A step is 10 s and an aircraft at 360 kt flies one mile in it.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS

NM = 6371.0088 / 1.852 * math.radians(1.0 / 60.0)  # haversine length of a minute of arc, in NM
STEPS = 40


def along(x_nm: float, y_nm: float = 0.0) -> tuple[float, float]:
    return y_nm / 60.0, x_nm / 60.0


def meeting(
    *,
    gap: float = 40.0,
    aside: float = 0.0,
    steps: int = STEPS,
    actions: dict[int, dict[str, list[float]]] | None = None,
) -> dict[str, Any]:
    """A1 → · · · gap · · · ← A2 (`aside` to the north): 2 NM nearer at each step."""
    return {
        "positions": [{"A1": along(k), "A2": along(gap - k, aside)} for k in range(steps)],
        "actions": [(actions or {}).get(k, {"A1": [0.0, 0.0], "A2": [0.0, 0.0]}) for k in range(steps)],
        "timestamps": [10.0 * k for k in range(steps)],
        "agents": {
            "A1": {"headings": [90.0] * steps, "speeds": [360.0] * steps},
            "A2": {"headings": [270.0] * steps, "speeds": [360.0] * steps},
        },
    }


def compute(trajectory: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return HallucinationDetector(**settings).compute(trajectory)


DOCUMENTED = {
    "positions": [{"A1": (52.30, 4.70), "A2": (52.31, 4.95)}, {"A1": (52.30, 4.71), "A2": (52.31, 4.94)}],
    "actions": [{"A1": [3.5, 0.0], "A2": [0.0, 0.0]}, {"A1": [0.0, 0.0], "A2": [0.0, -5.0]}],
    "timestamps": [0.0, 10.0],
    "agents": {
        "A1": {"headings": [90.0, 90.0], "speeds": [250.0, 245.0]},
        "A2": {"headings": [270.0, 268.5], "speeds": [250.0, 245.0]},
    },
    "waypoints": {"A1": {"lat": 52.3, "lon": 4.8}, "A2": {"lat": 52.3, "lon": 4.6}},
    "waypoint_status": {"A1": {0: False, 1: True}, "A2": {0: False}},
    "scenario_metadata": {
        "test_id": "baseline_A1_seed42", "target_agent": "A1", "seed": 42, "num_agents": 2, "num_steps": 60,
    },
}  # fmt: skip


def test_all_31_names_are_there_on_the_documented_structure():
    result = compute(DOCUMENTED)
    assert len(METRICS) == len(set(METRICS)) == 31
    assert list(result) == [*METRICS, *BESIDE, "settings"]
    assert all(isinstance(result[name], (int, float)) for name in METRICS + BESIDE)
    assert result["settings"]["merge_overlapping"] is False
    assert result["settings"]["step_s"] == 10.0


# distance at step k is 40 - 2k up to step 20, then 2k - 40
# conflict: distance - 24 (two minutes) < 5, that is from step 6;         while they part: distance < 5, up to step 22
# commands: A1 is turned at 8 and 9      → two of three at 9 and 10 → one step longer at both ends: 8 9 10 11
#   step      0    3     6 7 8 9 . 11 12 13            18        22 23   26            39
#   conflict               ██████████████████████████████████████
#   truth          [=============================================== … )
#   alert                      ████████
#   window                 [=================)
# separation lost at 18 … 22
ANSWERED = meeting(actions={k: {"A1": [10.0, 0.0], "A2": [0.0, 0.0]} for k in (8, 9)})


def test_a_conflict_that_was_answered():
    r = HallucinationDetector().compute(ANSWERED, detail=True)
    assert [(w["start"], w["end"]) for w in r["windows"]["truth"]] == [(3, 26)]
    assert [(w["start"], w["end"]) for w in r["windows"]["alerts"]] == [(7, 13)]
    assert r["windows"]["truth"][0]["alert"] == 0
    assert r["windows"]["alerts"][0]["truth"] == 0
    assert r["windows"]["truth"][0]["iou"] == 6 / 23
    assert (r["tp"], r["fp"], r["fn"], r["tn"]) == (1, 0, 0, 40 - 17)
    assert (r["precision"], r["recall"], r["ghost_conflict"], r["missed_conflict"]) == (1.0, 1.0, 0.0, 0.0)
    assert r["f1_score"] == pytest.approx(1.0)
    assert r["min_separation_nm"] == pytest.approx(0.0, abs=1e-9)
    assert (r["num_los_events"], r["total_los_duration"], r["num_conflict_steps"]) == (1, 5, 17)
    assert r["alert_duty_cycle"] == 4 / 40
    assert r["total_alert_time_s"] == 40.0
    assert r["alerts_per_min"] == pytest.approx(40.0 / (390.0 / 60.0))
    assert r["alerts_per_min_from_steps"] == 4 * 6.0
    assert r["alert_onsets_per_min"] == pytest.approx(1 / 6.5)
    assert (r["avg_lead_time_s"], r["num_lead_times"]) == ((3 - 7) * 10.0, 1)
    assert r["flight_time_s"] == 390.0
    assert r["total_path_length_nm"] == pytest.approx(2 * 39 * NM)
    assert r["path_efficiency"] == pytest.approx(300.0 / 390.0)
    assert (r["num_interventions"], r["num_interventions_matched"], r["num_interventions_false"]) == (2, 2, 0)
    assert r["resolution_fail_rate"] == 0.0  # steps 26 … 31 are 12 to 22 NM apart
    assert r["los_failure_rate"] == 1.0
    # mean heading command 0 … 0 5 5 0 …: no reversal; variation 5 + 5 over 18 degrees and 39 changes
    assert r["oscillation_rate"] == pytest.approx(0.5 * (0.0 + (10.0 / (18.0 * 39)) / 2.0))
    assert r["steps"]["conflict"] == [6 <= k <= 22 for k in range(40)]
    assert r["steps"]["alert"] == [8 <= k <= 11 for k in range(40)]
    assert r["steps"]["deliberate"][8] == ["A1"]
    assert r["steps"]["los"] == [18 <= k <= 22 for k in range(40)]


def test_a_conflict_that_nobody_answered():
    r = compute(meeting())
    assert (r["tp"], r["fp"], r["fn"], r["tn"]) == (0, 0, 1, 23)
    assert (r["precision"], r["recall"], r["f1_score"], r["missed_conflict"]) == (0.0, 0.0, 0.0, 1.0)
    assert (r["avg_lead_time_s"], r["num_lead_times"]) == (0.0, 0)
    assert math.isnan(r["resolution_fail_rate"])
    assert math.isnan(r["los_failure_rate"])
    assert (r["alert_duty_cycle"], r["alerts_per_min"], r["total_alert_time_s"]) == (0.0, 0.0, 0.0)
    assert r["alert_onsets_per_min"] == 0.0
    assert (r["num_interventions"], r["oscillation_rate"]) == (0, 0.0)


def test_a_ghost_is_an_alert_about_a_threat_that_is_no_conflict():
    # A2 passes 5.5 NM aside: within the 6 NM of a threat, never within 5. Turned at 10, 11 → alert 10 … 13
    r = compute(meeting(aside=5.5, actions={k: {"A2": [0.0, -6.0]} for k in (10, 11)}))
    assert (r["tp"], r["fp"], r["fn"], r["tn"]) == (0, 1, 0, 36)
    assert r["ghost_conflict"] == 1 / 37
    assert (r["precision"], r["num_conflict_steps"], r["num_los_events"]) == (0.0, 0, 0)
    assert r["min_separation_nm"] == pytest.approx(5.5 * NM, abs=1e-6)
    assert r["min_CPA_nm"] == pytest.approx(5.5, rel=0.006)  # on the ellipsoid
    assert (r["num_interventions"], r["num_interventions_matched"], r["num_interventions_false"]) == (2, 0, 2)


def test_a_command_far_from_everybody_is_an_intervention_but_no_alert():
    # 8 NM aside is no threat; one command alone is no alert either, for it takes two of three
    for trajectory in (
        meeting(aside=8.0, actions={k: {"A1": [20.0, 0.0]} for k in (10, 11, 12)}),
        meeting(actions={10: {"A1": [20.0, 0.0]}}),
    ):
        r = compute(trajectory)
        assert r["fp"] + r["tp"] == 0
        assert r["num_interventions"] in (3, 1)
        assert r["num_interventions_matched"] == 0


@pytest.mark.parametrize(
    ("command", "counts"),
    [([3.0, 0.0], 1), ([-3.0, 0.0], 1), ([2.99, 0.0], 0), ([0.0, 5.0], 1), ([0.0, -5.0], 1), ([0.0, 4.99], 0)],
)
def test_commands_count_from_3_degrees_or_5_knots_on(command, counts):
    r = compute(meeting(actions={8: {"A1": command}, 9: {"A1": command}}))
    assert r["num_interventions"] == 2 * counts
    assert r["tp"] == counts


@pytest.mark.parametrize(
    ("turn", "navigation"),
    # A1 heads 90; its waypoint bears 45 (far north-east): turning left by 5 reduces the drift by 5
    [(-5.0, True), (5.0, False), (-95.0, False)],
)
def test_a_turn_towards_the_waypoint_is_navigation(turn, navigation):
    trajectory = meeting(actions={k: {"A1": [turn, 0.0]} for k in (8, 9)})
    trajectory["waypoints"] = {"A1": {"lat": 5.0, "lon": 8 / 60 + 5.0}}
    r = compute(trajectory)
    assert r["num_interventions"] == 2
    assert r["tp"] == (0 if navigation else 1)


def test_a_turn_that_reduces_drift_by_one_degree_or_less_is_not_navigation():
    # heading 90, waypoint at 92, turned by 3: 2 degrees off before, 1 degree past it after
    trajectory = meeting(actions={k: {"A1": [3.0, 0.0]} for k in (8, 9)})
    for off_deg, tp in ((1.9, 1), (2.1, 0)):
        far = 10.0
        trajectory["waypoints"] = {"A1": {"lat": -far * math.tan(math.radians(off_deg)), "lon": 8.5 / 60 + far}}
        assert compute(trajectory)["tp"] == tp


def test_lead_time_is_positive_when_the_alert_comes_first():
    # commands of the first two steps of a conflict: truth [3, 26), alert 6 … 9 and its window [5, 11)
    r = compute(meeting(actions={k: {"A1": [9.0, 0.0]} for k in (6, 7)}))
    assert r["avg_lead_time_s"] == (3 - 5) * 10.0
    # a pair 5.5 NM aside is a threat from step 7 on; A2 turns towards A1 at 16 and 17, and only then is it a conflict
    #   commands at 8, 9    alert 8 … 11, window [7, 13)       truth [13, 21): they touch and do not overlap
    #   commands at 11, 12  alert 11 … 14, window [10, 16)     3 of 11 steps in common
    for first, matched in ((8, 0), (11, 1)):
        trajectory = meeting(aside=5.5, actions={k: {"A1": [9.0, 0.0]} for k in (first, first + 1)})
        trajectory["agents"]["A2"]["headings"] = [270.0] * 16 + [250.0] * 2 + [270.0] * (STEPS - 18)
        r = HallucinationDetector().compute(trajectory, detail=True)
        assert r["steps"]["conflict"] == [k in (16, 17) for k in range(STEPS)]
        assert (r["tp"], r["fp"], r["fn"]) == (matched, 1 - matched, 1 - matched)
    assert r["windows"]["truth"] == [{"start": 13, "end": 21, "alert": 0, "iou": 3 / 11}]
    assert r["avg_lead_time_s"] == (13 - 10) * 10.0


def test_efficiency_with_waypoints_reached_and_not():
    # A1 flies 39 miles along the equator; its waypoint lies at mile 39.5: reached (within 1 NM).
    # A2 wants to mile 0 of the same line, but is at mile 1 in the end and 0.9 NM aside: not reached
    #   A1 →→→→→→→→→→→→→→ 39 ·W1        W2 (0 | -1)   ← 1 ←←←←← A2
    trajectory = meeting()
    trajectory["waypoints"] = {"A1": {"lat": 0.0, "lon": 39.5 / 60}, "A2": {"lat": -1 / 60, "lon": 0.0}}
    r = compute(trajectory)
    assert r["waypoint_reached_ratio"] == 0.5
    direct = 39.5 * NM, math.hypot(40.0, 1.0) * NM
    extra = max(0.0, 39 * NM - direct[0]), max(0.0, 39 * NM - direct[1])
    assert r["total_extra_path_nm"] == pytest.approx(sum(extra), abs=1e-6)
    assert r["avg_extra_path_nm"] == pytest.approx(sum(extra) / 2, abs=1e-6)
    ratios = [39 * NM / d - 1.0 for d in direct]
    assert r["avg_extra_path_ratio"] == pytest.approx(sum(ratios) / 2, abs=1e-6)


def test_a_detour_is_extra_path():
    # one agent:  (0|0) → (3|0) → (3|4), waypoint (3|4): flown 7, direct 5, extra 2, ratio 0.4; alone in the sky
    trajectory = {
        "positions": [{"A1": along(0, 0)}, {"A1": along(3, 0)}, {"A1": along(3, 4)}],
        "timestamps": [0.0, 400.0, 800.0],
        "waypoints": {"A1": {"lat": 4 / 60, "lon": 3 / 60}, "A9": {"lat": 0.0, "lon": 0.0}},
    }
    r = compute(trajectory)
    assert r["total_path_length_nm"] == pytest.approx(7 * NM, rel=1e-5)
    assert r["total_extra_path_nm"] == r["avg_extra_path_nm"] == pytest.approx(2 * NM, rel=1e-5)
    assert r["avg_extra_path_ratio"] == pytest.approx(0.4, rel=1e-4)
    assert (r["flight_time_s"], r["path_efficiency"], r["waypoint_reached_ratio"]) == (800.0, 300 / 800, 1.0)
    assert r["settings"]["step_s"] == 400.0


def test_short_flights_are_efficient():
    assert compute(meeting(steps=20))["path_efficiency"] == 1.0


def test_restless_commands_oscillate():
    # mean heading command 6 -6 6 6 1 -6, speed 0 10 0 0 0 0; their sizes 6 6 6 6 1 6
    # pairs of which both are 2 or more: 3, reversed in 2 of them
    turns, faster = [6.0, -6.0, 6.0, 6.0, 1.0, -6.0], [0.0, 10.0, 0.0, 0.0, 0.0, 0.0]
    trajectory = meeting(steps=6, actions={k: {"A1": [turns[k], faster[k]]} for k in range(6)})
    variation_h = (0 + 0 + 0 + 5 + 5) / (18.0 * 5)
    variation_v = (10 + 10) / (10.0 * 5)
    expected = 0.5 * (2 / 3 + (variation_h + variation_v) / 2.0)
    assert compute(trajectory)["oscillation_rate"] == pytest.approx(expected)


def test_two_agents_commands_are_averaged_and_a_step_without_any_is_zero():
    # means 4 (of 6 and 2), then nobody: 0, then -4
    trajectory = meeting(steps=3)
    trajectory["actions"] = [{"A1": [6.0, 0.0], "A2": [2.0, 0.0]}, {}, {"A2": [-4.0, 0.0]}]
    assert compute(trajectory)["oscillation_rate"] == pytest.approx(0.5 * (0.0 + (8.0 / (18.0 * 2)) / 2.0))


def test_sign_flips_are_of_signed_means_and_variation_is_of_sizes():
    # opposite commands cancel in the mean that has a sign, and not in the sizes: 9 0 9
    trajectory = meeting(steps=3)
    trajectory["actions"] = [{"A1": [9.0, 5.0], "A2": [-9.0, -5.0]}, {}, {"A1": [-9.0, 5.0], "A2": [9.0, -5.0]}]
    variation_h, variation_v = 18.0 / (18.0 * 2), 10.0 / (10.0 * 2)
    assert compute(trajectory)["oscillation_rate"] == pytest.approx(0.5 * (variation_h + variation_v) / 2.0)


@pytest.mark.parametrize(("command", "flips"), [(2.0, 1.0), (math.nextafter(2.0, 0.0), 0.0), (2.5, 1.0)])
@pytest.mark.parametrize("small_first", [True, False])
def test_a_command_of_exactly_the_dead_zone_has_a_direction(command, flips, small_first):
    # one pair of steps, reversed: with 9 and the command, in both orders
    turns = (command, -9.0) if small_first else (9.0, -command)
    trajectory = meeting(steps=2, actions={k: {"A1": [turn, 0.0]} for k, turn in enumerate(turns)})
    variation = (9.0 - command) / 18.0
    assert compute(trajectory)["oscillation_rate"] == pytest.approx(0.5 * (flips + variation / 2.0))


@pytest.mark.parametrize(("last", "share"), [(5.0, 1.0), (-5.0, 0.5), (1.0, 1.0)])
def test_reversals_are_counted_among_pairs_with_a_direction(last, share):
    # 5 -5 and a third: two of two pairs reversed, one of two, one of one
    turns = (5.0, -5.0, last)
    trajectory = meeting(steps=3, actions={k: {"A1": [turn, 0.0]} for k, turn in enumerate(turns)})
    variation = (5.0 - abs(last)) / (18.0 * 2)
    assert compute(trajectory)["oscillation_rate"] == pytest.approx(0.5 * (share + variation / 2.0))


@pytest.mark.parametrize(("step", "fails"), [(25, 0.0), (26, 1.0), (28, 1.0), (31, 1.0), (32, 0.0)])
def test_resolution_fails_when_separation_is_lost_within_a_minute_after_the_window(step, fails):
    # the window of ANSWERED is [3, 26), judged at 26 … 31. For one step a third aircraft is 3 NM beside A1, whose
    # window is one of its own; 26 and 31 are the first and the last step judged
    positions = [dict(places) for places in ANSWERED["positions"]]
    positions[step]["A3"] = along(step, 3.0)
    agents = {**ANSWERED["agents"], "A3": {"headings": [90.0], "speeds": [360.0]}}
    trajectory = {**ANSWERED, "positions": positions, "agents": agents}
    r = compute(trajectory)
    assert (r["tp"], r["fn"]) == (1, 1)
    assert r["resolution_fail_rate"] == fails
    # windows that overlap may be one: then [3, 26) ends with the other's, and nobody is near in the minute after that
    r = compute(trajectory, merge_overlapping=True)
    assert (r["tp"], r["fn"]) == (1, 0 if step < 29 else 1)
    assert r["resolution_fail_rate"] == (fails if step > 28 else 0.0)
    assert r["settings"]["merge_overlapping"] is True


def test_resolution_asks_for_more_than_the_minimum_and_a_loss_for_less():
    # the minimum is set to exactly the separation of one step: on it is not resolved, and not lost
    trajectory = meeting(aside=4.0, actions={k: {"A1": [10.0, 0.0]} for k in (8, 9)})
    steps = HallucinationDetector().compute(trajectory, detail=True)
    ((_, end),) = [(w["start"], w["end"]) for w in steps["windows"]["truth"]]
    trajectory["positions"] = [
        dict(places) if k != end + 5 else {"A1": along(k), "A2": along(k, 4.5)}
        for k, places in enumerate(trajectory["positions"])
    ]
    trajectory["agents"]["A2"]["headings"][end + 5] = 90.0
    on = HallucinationDetector().compute(trajectory, detail=True)["steps"]["separation_nm"][end + 5]
    for minimum, failed in ((on, 1.0), (math.nextafter(on, 0.0), 0.0)):
        r = HallucinationDetector(los_threshold_nm=minimum).compute(trajectory, detail=True)
        assert r["tp"] == 1
        assert r["windows"]["truth"][0]["end"] == end
        assert r["resolution_fail_rate"] == failed
        assert r["steps"]["los"][end + 5] is False
    assert HallucinationDetector(los_threshold_nm=math.nextafter(on, 9.0)).compute(trajectory, detail=True)["steps"][
        "los"
    ][end + 5]


@pytest.mark.parametrize(("near", "fails"), [(33, 0.0), (34, 1.0), (39, 1.0)])
def test_a_conflict_that_lasts_to_the_end_is_judged_on_the_last_minute(near, fails):
    # 20 NM apart and head-on at every step: a conflict from the first to the last. Separation is lost at step `near`
    # only; of 40 steps the last six are judged
    trajectory = meeting(actions={k: {"A1": [10.0, 0.0]} for k in (36, 37)})
    trajectory["positions"] = [{"A1": along(k), "A2": along(k + (20.0 if k != near else 3.0))} for k in range(STEPS)]
    r = HallucinationDetector().compute(trajectory, detail=True)
    assert [(w["start"], w["end"]) for w in r["windows"]["truth"]] == [(0, 40)]
    assert (r["tp"], r["resolution_fail_rate"], r["los_failure_rate"]) == (1, fails, 1.0)
    assert compute(trajectory, res_window_s=70.0)["resolution_fail_rate"] == 1.0
    # longer than the episode is all of it
    assert compute(trajectory, res_window_s=4000.0)["resolution_fail_rate"] == 1.0


@pytest.mark.parametrize(("steps", "fails"), [(26, 1.0), (27, 0.0)])
def test_one_step_after_the_window_is_enough_to_judge(steps, fails):
    # the window of ANSWERED is [3, 26). Of 27 steps the last one is judged, 12 NM apart; of 26 there is none after the
    # window, and the last six are, in which they are 2 NM apart and less
    cut = {name: ANSWERED[name][:steps] for name in ("positions", "actions", "timestamps")}
    cut["agents"] = {a: {n: v[:steps] for n, v in rows.items()} for a, rows in ANSWERED["agents"].items()}
    r = HallucinationDetector().compute(cut, detail=True)
    assert [(w["start"], w["end"]) for w in r["windows"]["truth"]] == [(3, 26)]
    assert (r["tp"], r["resolution_fail_rate"]) == (1, fails)


def test_nothing_matched_is_nan_and_a_conflict_without_end_fails():
    # they fly abreast 4 NM apart from step 0 on and for ever: one conflict to the end, judged on its last minute
    trajectory = {
        "positions": [{"A1": along(k), "A2": along(k, 4.0)} for k in range(20)],
        "actions": [{"A1": [5.0, 0.0]} if k in (3, 4, 5) else {} for k in range(20)],
        "agents": {a: {"headings": [90.0] * 20, "speeds": [360.0] * 20} for a in ("A1", "A2")},
    }
    r = compute(trajectory)
    assert (r["tp"], r["num_conflict_steps"], r["num_los_events"], r["total_los_duration"]) == (1, 20, 1, 20)
    assert (r["resolution_fail_rate"], r["los_failure_rate"]) == (1.0, 1.0)
    assert math.isnan(compute({**trajectory, "actions": []})["resolution_fail_rate"])


def test_resolution_fails_at_arrival():
    # they close in, conflict from step 6; A2 arrives at step 12 and takes part in no conflict any more, but it stays
    # there, 16 NM away from A1, which passes it at step 28: window of truth [3, 15), judged 15 … 20: least 28 - 20 = 8
    trajectory = meeting(actions={k: {"A1": [10.0, 0.0]} for k in (8, 9)})
    trajectory["positions"] = [{"A1": along(k), "A2": along(40.0 - min(k, 12))} for k in range(STEPS)]
    trajectory["waypoints"] = {"A2": {"lat": 0.0, "lon": 28 / 60}}
    trajectory["waypoint_status"] = {"A2": {0: False, 12: True}}
    r = HallucinationDetector().compute(trajectory, detail=True)
    assert r["steps"]["conflict"] == [6 <= k <= 11 for k in range(STEPS)]
    assert [(w["start"], w["end"]) for w in r["windows"]["truth"]] == [(3, 15)]
    assert (r["tp"], r["resolution_fail_rate"], r["los_failure_rate"]) == (1, 0.0, 0.0)
    # with two minutes the pass at step 28 falls into the time judged (steps 15 … 26: at 26 they are 2 NM apart)
    assert compute(trajectory, res_window_s=120.0)["resolution_fail_rate"] == 1.0
    # arrived agents are close all the same: separation is lost at 24 … 32
    assert (r["num_los_events"], r["total_los_duration"]) == (1, 9)
    assert r["waypoint_reached_ratio"] == 0.5


def test_who_has_arrived_stays_arrived():
    trajectory = meeting()
    trajectory["waypoint_status"] = {"A2": {0: False, 12: True, 13: False}}
    r = compute(trajectory)
    assert (r["num_conflict_steps"], r["waypoint_reached_ratio"]) == (6, 0.5)


def test_arrival_is_seen_by_distance_where_no_status_says_it():
    trajectory = meeting()
    trajectory["waypoints"] = {"A2": {"lat": 0.0, "lon": 28.5 / 60}}
    r = HallucinationDetector().compute(trajectory, detail=True)
    # within 1 NM of mile 28.5 at step 11 (mile 29), and it stays arrived
    assert r["steps"]["conflict"] == [6 <= k <= 10 for k in range(STEPS)]
    # at the end it is far away again, and the ratio asks for the end
    assert r["waypoint_reached_ratio"] == 0.0


@pytest.mark.parametrize("who", ["A1", "A2"])
def test_an_arrived_agent_is_in_no_conflict_but_threatens_and_may_alert(who):
    trajectory = meeting(actions={k: {who: [10.0, 0.0]} for k in (8, 9)})
    trajectory["waypoint_status"] = {"A2": {0: True}}
    r = compute(trajectory)
    assert (r["num_conflict_steps"], r["tp"], r["fp"], r["num_interventions"]) == (0, 0, 1, 2)
    assert math.isnan(r["min_CPA_nm"])  # of pairs that can be in conflict
    assert r["avg_alert_dcpa_nm"] < 0.05


@pytest.mark.parametrize(("apart_ft", "conflict"), [(900.0, True), (1000.0, False), (1100.0, False)])
def test_a_thousand_feet_are_enough(apart_ft, conflict):
    trajectory = meeting(actions={k: {"A1": [10.0, 0.0]} for k in (8, 9)})
    trajectory["agents"]["A1"]["altitudes"] = [35_000.0] * STEPS
    trajectory["agents"]["A2"]["altitudes"] = [35_000.0 + apart_ft] * STEPS
    r = compute(trajectory)
    assert r["num_conflict_steps"] == (17 if conflict else 0)
    assert (r["tp"], r["num_los_events"]) == ((1, 1) if conflict else (0, 0))
    assert r["min_separation_nm"] == pytest.approx(0.0, abs=1e-9)  # horizontal, whatever the level
    del trajectory["agents"]["A2"]["altitudes"]
    assert compute(trajectory)["num_conflict_steps"] == 17  # unknown: taken for level


def test_agents_that_appear_and_vanish():
    # A2 is there from step 10 to 15 only, 20 to 10 NM ahead of A1: in conflict all that time
    trajectory = meeting()
    trajectory["positions"] = [
        {"A1": along(k)} | ({"A2": along(40 - k)} if 10 <= k <= 15 else {}) for k in range(STEPS)
    ]
    trajectory["actions"] = [{} for _ in range(STEPS)]
    trajectory["agents"]["A2"] = {"headings": [270.0] * 6, "speeds": [360.0] * 6}  # of its own steps
    r = HallucinationDetector().compute(trajectory, detail=True)
    assert r["steps"]["conflict"] == [10 <= k <= 15 for k in range(STEPS)]
    assert r["steps"]["agents"] == [2 if 10 <= k <= 15 else 1 for k in range(STEPS)]
    assert (r["fn"], r["tn"]) == (1, 34)
    assert r["min_separation_nm"] == pytest.approx(10 * NM, rel=1e-6)
    assert r["total_path_length_nm"] == pytest.approx((39 + 5) * NM, rel=1e-6)
    assert r["steps"]["separation_nm"][0] is None
    # the same with one entry per step of the episode, null where it is away
    trajectory["agents"]["A2"]["headings"] = [270.0 if 10 <= k <= 15 else None for k in range(STEPS)]
    again = HallucinationDetector().compute(trajectory, detail=True)
    assert again["steps"] == r["steps"]


def test_headings_and_speeds_are_worked_out_where_they_are_missing():
    whole = compute(ANSWERED)
    r = compute({name: value for name, value in ANSWERED.items() if name != "agents"})
    assert r["settings"]["derived"] == ["headings", "speeds"]
    assert whole["settings"]["derived"] == []
    assert {n: r[n] for n in METRICS if n != "reward_total"} == pytest.approx(
        {n: whole[n] for n in METRICS if n != "reward_total"}, nan_ok=True
    )


def test_the_step_is_derived_from_timestamps_and_else_given():
    # the same episode twice as slow: margins of 30 s and 10 s are 2 (1.5, rounded up) and 1 (0.5, rounded up) steps,
    # 120 s are six steps of 2 NM: conflict from 40 - 2k - 12 < 5, that is step 12, on
    slow = {**ANSWERED, "timestamps": [20.0 * k for k in range(STEPS)]}
    slow["agents"] = {name: {**values, "speeds": [180.0] * STEPS} for name, values in ANSWERED["agents"].items()}
    r = HallucinationDetector().compute(slow, detail=True)
    assert r["settings"]["step_s"] == 20.0
    assert [(w["start"], w["end"]) for w in r["windows"]["truth"]] == [(10, 25)]
    without = {name: value for name, value in ANSWERED.items() if name != "timestamps"}
    given = compute(without, action_period_s=10.0)
    whole = compute(ANSWERED)
    assert {n: given[n] for n in METRICS} == pytest.approx({n: whole[n] for n in METRICS}, nan_ok=True)
    assert compute(without, action_period_s=5.0)["flight_time_s"] == 39 * 5.0
