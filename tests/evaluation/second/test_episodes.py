"""The made episodes: plain JSON, the same for a seed, rich enough, and able to tell other definitions apart."""

from __future__ import annotations

import copy
import json
import math
from functools import cache
from typing import Any

import pytest

from second.compare import compare
from second.edges import edges
from second.episodes import episode
from second.metrics import metrics

SEEDS = range(60)
DOCUMENTED = [
    "tp",
    "fp",
    "fn",
    "tn",
    "precision",
    "recall",
    "f1_score",
    "ghost_conflict",
    "missed_conflict",
    "min_separation_nm",
    "num_los_events",
    "total_los_duration",
    "num_conflict_steps",
    "alert_duty_cycle",
    "alerts_per_min",
    "total_alert_time_s",
    "avg_lead_time_s",
    "flight_time_s",
    "total_path_length_nm",
    "path_efficiency",
    "waypoint_reached_ratio",
    "total_extra_path_nm",
    "avg_extra_path_nm",
    "avg_extra_path_ratio",
    "num_interventions",
    "num_interventions_matched",
    "num_interventions_false",
    "resolution_fail_rate",
    "los_failure_rate",
    "oscillation_rate",
    "reward_total",
]
FURTHER = [
    "num_lead_times",
    "alerts_per_min_from_steps",
    "alert_onsets_per_min",
    "tn_pct",
    "unwanted_interventions",
    "excess_alert_time_s",
    "avg_alert_dcpa_nm",
    "avg_alert_tcpa_s",
    "escape_improve_hits",
]


@cache
def judged(seed: int) -> dict[str, float]:
    return metrics(episode(seed))


def test_names():
    assert len(DOCUMENTED) == 31
    assert sorted(judged(0)) == sorted(DOCUMENTED + FURTHER)


@pytest.mark.parametrize("seed", range(10))
def test_an_episode_is_plain_json_and_repeats(seed: int):
    made = episode(seed)
    assert json.loads(json.dumps(made)) == made == episode(seed)
    assert len(made["positions"]) == len(made["actions"]) == made["scenario_metadata"]["num_steps"]
    assert not any(math.isnan(x) for step in made["positions"] for position in step.values() for x in position)


def test_everything_occurs():
    made = [episode(seed) for seed in SEEDS]
    assert {len(e["agents"]) for e in made} == set(range(2, 9))
    for key in ("timestamps", "rewards", "waypoint_status"):
        assert 0 < sum(key in e for e in made) < len(made), key
    assert 0 < sum(any("altitudes" in series for series in e["agents"].values()) for e in made) < len(made)
    assert any(not e["waypoints"] for e in made)
    assert any(0 < len(e["waypoints"]) < len(e["agents"]) for e in made)
    assert any(len(e["positions"][0]) < len(e["agents"]) for e in made)


@pytest.mark.parametrize("name", [n for n in DOCUMENTED + FURTHER if n != "path_efficiency"])
def test_every_metric_is_put_to_use(name: str):
    values = [judged(seed)[name] for seed in SEEDS if not math.isnan(judged(seed)[name])]
    assert len(set(values)) >= 3
    assert sum(value != 0.0 for value in values) >= 5


def test_rates_are_neither_all_good_nor_all_bad():
    for name in ("precision", "recall", "resolution_fail_rate", "los_failure_rate"):
        assert {0.0, 1.0} <= {judged(seed)[name] for seed in SEEDS}, name


@pytest.mark.parametrize("seed", range(15))
def test_what_must_hold(seed: int):
    found = judged(seed)
    assert found["num_interventions_matched"] + found["num_interventions_false"] == found["num_interventions"]
    assert found["num_lead_times"] == found["tp"]
    assert found["tn"] + found["num_conflict_steps"] <= len(episode(seed)["positions"])
    assert found["unwanted_interventions"] == found["fp"]
    assert not (found["num_los_events"] > 0 and found["min_separation_nm"] >= 5.0)


def mirrored(made: dict[str, Any]) -> dict[str, Any]:
    """East for west."""
    image = copy.deepcopy(made)
    image["positions"] = [{n: [lat, -lon] for n, (lat, lon) in step.items()} for step in made["positions"]]
    image["actions"] = [{n: [-turn, speed] for n, (turn, speed) in step.items()} for step in made["actions"]]
    for series in image["agents"].values():
        series["headings"] = [-heading for heading in series["headings"]]
    for waypoint in image["waypoints"].values():
        waypoint["lon"] = -waypoint["lon"]
    return image


def renamed(made: dict[str, Any]) -> dict[str, Any]:
    """The aircraft in the opposite order."""
    text = json.dumps(made)
    for index in range(1, 9):
        text = text.replace(f'"A{index}"', f'"B{9 - index}"')
    return json.loads(text)


def later(made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "timestamps": [t + 4096.0 for t in made["timestamps"]]} if "timestamps" in made else made


@pytest.mark.parametrize("change", [mirrored, renamed, later])
def test_what_does_not_matter(change):
    for seed in range(15):
        assert compare(judged(seed), metrics(change(episode(seed)))) == [], seed


OTHER_CHOICES: list[dict[str, Any]] = [
    {"horizon_s": 110.0},
    {"separation_nm": 4.5},
    {"los_threshold_nm": 4.5},
    {"vertical_ft": 900.0},
    {"heading_threshold_deg": 3.0001},
    {"speed_threshold_kt": 5.0001},
    {"navigation_deg": 4.0},
    {"threat_nm": 5.0},
    {"step_s": 11.0},
    {"debounce_n": 1},
    {"debounce_m": 4},
    {"lag_pre_steps": 0},
    {"lag_post_steps": 0},
    {"truth_pad_s": 20.0},
    {"alert_pad_s": 20.0},
    {"merge_overlapping": True},
    {"iou_threshold": 0.1001},
    {"res_window_s": 40.0},
    {"waypoint_nm": 0.8},
    {"dead_zone_deg": 2.0001},
    {"vertical_for": ()},
    {"vertical_for": ("conflict", "threat")},
    {"vertical_for": ("conflict", "los")},
    {"debounce_per_agent": True},
    {"los_duration": "span"},
    {"steps_of": math.floor},
    {"steps_of": math.ceil},
]


@pytest.mark.parametrize("choice", OTHER_CHOICES, ids=str)
def test_the_episodes_tell_another_definition_apart(choice: dict[str, Any]):
    by_hand = any(
        compare(metrics(e.trajectory, **e.settings), metrics(e.trajectory, **{**choice, **e.settings}))
        for e in edges().values()
    )
    assert by_hand or any(compare(judged(seed), metrics(episode(seed), **choice)) for seed in SEEDS)


@pytest.mark.parametrize("name", edges())
def test_edges_are_plain_json(name: str):
    trajectory = edges()[name].trajectory
    assert json.loads(json.dumps(trajectory)) == trajectory
