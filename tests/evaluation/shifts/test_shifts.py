"""Episodes with one agent shifted: known answers, DTW equal to that of `evaluate tracks`, pairing, bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import watchkeeper as wk
from watchkeeper.evaluation.paired.stats import compare_models_paired
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.tracks.distance import RADIUS_KM, dtw_km, hausdorff_km
from watchkeeper.streams.logs.source import LogError

STEPS = 12
# Metres of a degree along the equator, on the sphere of the distances.
DEGREE_M = math.radians(1.0) * RADIUS_KM * 1000.0


def episode(seed: object, *, lon: float = 0.2, tracks: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """A stands on the equator, B moves along it; or both as `tracks` says, [step, (lat, lon)]."""
    way = {"A": [(0.0, 0.0)] * STEPS, "B": [(0.0, lon + 0.01 * k) for k in range(STEPS)]} | (tracks or {})
    steps = len(next(iter(way.values())))
    return {
        "positions": [{agent: tuple(points[k]) for agent, points in way.items()} for k in range(steps)],
        "scenario_metadata": {"seed": seed, **meta},
    }


def moved(seed: object, size: float, *, kind: str = "position_lon", **more: Any) -> dict[str, Any]:
    return episode(seed, lon=0.2 + size, target_agent="B", shift_type=kind, shift_value=size, **more)


def test_a_hand_made_shift_has_the_known_answers() -> None:
    made = [one for seed in range(4) for one in (episode(seed), moved(seed, 0.1))]
    result = wk.evaluate.shifts(made, metrics=["min_separation_nm", "num_los_events"])
    separation, losses = result.effects
    assert (separation.target_agent, separation.shift_type, separation.shift_value) == ("B", "position_lon", 0.1)
    # B begins 0.1 degrees farther from A, which is where they are nearest
    assert separation.tested.mean_difference == pytest.approx(0.1 * DEGREE_M / 1852.0)
    assert (separation.unit, separation.worse, losses.verdict) == ("deg", False, "no difference")
    target = next(row for row in result.deviations if row.is_target)
    # tracks of the same pace on one line: the points overlap but for the first and the last 10
    assert target.start_m == pytest.approx(0.1 * DEGREE_M)
    assert target.hausdorff_m == pytest.approx(0.1 * DEGREE_M)
    assert (target.dtw_less_own_m, target.hausdorff_less_own_m) == pytest.approx((0.0, 0.0), abs=1e-6)
    other = next(row for row in result.deviations if not row.is_target)
    assert (other.agent, other.dtw_m, other.hausdorff_m, other.start_m) == ("A", 0.0, 0.0, 0.0)
    (tracks,) = result.tracks
    assert (tracks["episodes"], tracks["others_dtw_m"], tracks["farthest_other"]) == (4, 0.0, "")


def test_a_track_moved_sideways_has_its_offset_times_its_points() -> None:
    aside = {"B": [(0.02, 0.2 + 0.01 * k) for k in range(STEPS)]}
    shift = {"target_agent": "B", "shift_type": "position_lat", "shift_value": 0.02}
    # steps of half the offset: no alignment is shorter than point by point
    result = wk.evaluate.shifts([episode(1), episode(1, tracks=aside, **shift)])
    target = next(row for row in result.deviations if row.is_target)
    assert target.dtw_m == pytest.approx(STEPS * 0.02 * DEGREE_M)
    assert target.dtw_per_point_m == pytest.approx(0.02 * DEGREE_M)


@given(st.floats(-170.0, 170.0), st.floats(-80.0, 80.0), st.floats(0.0, 360.0))
@settings(max_examples=30, deadline=None)
def test_turned_back_a_straight_flight_on_another_heading_is_the_baseline(
    turn: float, lat: float, course: float
) -> None:
    shift = {"target_agent": "B", "shift_type": "heading", "shift_value": turn}
    made = [
        episode(1, tracks={"B": _great_circle(lat, 8.0, course)}),
        episode(1, tracks={"B": _great_circle(lat, 8.0, course + turn)}, **shift),
    ]
    target = next(row for row in wk.evaluate.shifts(made, metrics=["tp"]).deviations if row.is_target)
    assert target.dtw_less_own_m == pytest.approx(0.0, abs=0.01)
    assert target.start_m == 0.0


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_distances_are_those_of_evaluate_tracks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (
        np.cumsum(rng.normal(0.0, 0.05, (int(rng.integers(2, 30)), 2)), axis=0) + np.array((50.0, 8.0)) for _ in "ab"
    )
    shift = {"target_agent": "B", "shift_type": "speed", "shift_value": 5.0}
    pair = [episode(1, tracks={"A": p, "B": p}, **meta) for p, meta in ((first, {}), (second, shift))]
    for row in wk.evaluate.shifts(pair, metrics=["tp"]).deviations:
        assert row.dtw_m == pytest.approx(1000.0 * dtw_km(first, second), rel=1e-12)
        assert row.hausdorff_m == pytest.approx(1000.0 * hausdorff_km(first, second), rel=1e-12)
        assert row.dtw_per_point_m == pytest.approx(row.dtw_m / (0.5 * (len(first) + len(second))))


@pytest.mark.parametrize("kind", ["speed", "heading", "position_lon", "waypoint_lat", "aircraft_type"])
def test_a_shift_of_zero_gives_zero_differences(kind: str) -> None:
    made = [one for seed in range(5) for one in (episode(seed, lon=0.1 * seed), moved(seed, 0.0, kind=kind))]
    made = [one | {"positions": made[k - k % 2]["positions"]} for k, one in enumerate(made)]
    result = wk.evaluate.shifts(made)
    assert {effect.verdict for effect in result.effects} <= {"no difference", "not tested"}
    assert all(value == 0.0 for effect in result.effects for value in effect.differences.values())
    assert all((row.dtw_m, row.hausdorff_m, row.dtw_less_own_m, row.start_m) == (0.0,) * 4 for row in result.deviations)


def test_differences_are_tested_as_paired_models_are_and_corrected_over_all_of_them() -> None:
    rng = np.random.default_rng(2)
    shift = {"target_agent": "B", "shift_type": "speed"}
    made, before = [], []
    after: dict[float, list[float]] = {5.0: [], 20.0: []}
    for seed in range(12):
        lon = float(rng.uniform(0.1, 0.3))
        made.append(episode(seed, lon=lon))
        before.append(lon)
        for size, values in after.items():
            values.append(lon + size / 500.0 * float(rng.uniform(0.0, 1.0)))
            made.append(episode(seed, lon=values[-1], shift_value=size, **shift))
    result = wk.evaluate.shifts(made, metrics=["min_separation_nm"], seed=7)
    for effect, (size, values) in zip(result.effects, after.items(), strict=True):
        nm = DEGREE_M / 1852.0
        expected = compare_models_paired(np.array(values) * nm, np.array(before) * nm, "", "", "", seed=7)
        assert effect.shift_value == size
        assert effect.tested.p_value == pytest.approx(expected.p_value, rel=1e-6)
        assert (effect.tested.ci_low, effect.tested.ci_high) == pytest.approx((expected.ci_low, expected.ci_high))
        assert effect.tested.p_holm >= effect.tested.p_value
    assert max(effect.tested.p_holm / effect.tested.p_value for effect in result.effects) == pytest.approx(2.0)


def test_an_episode_goes_with_the_baseline_of_its_own_seed_scenario_and_model() -> None:
    made = [
        episode(1, lon=0.1, scenario="merge"),
        episode(1, lon=0.3, scenario="cross"),
        episode(2, lon=0.5, scenario="merge"),
        moved(1, 0.1, scenario="cross"),
        moved(2, 0.1, scenario="merge"),
        moved(3, 0.1, scenario="merge"),
    ]
    result = wk.evaluate.shifts(made, metrics=["min_separation_nm"])
    ((key, pairs),) = result.groups.items()
    assert key == ("B", "position_lon", 0.1)
    assert [(a.meta["scenario"], b.lon[0, 1]) for a, b in pairs] == [("cross", 0.3), ("merge", 0.5)]
    assert result.notes == ["<trajectory>: trajectory: no baseline with seed 3, left out"]


def test_the_names_of_the_documented_project_are_understood() -> None:
    base = episode("42", test_id="baseline_A1_seed42", target_agent="A", shift_type="speed", shift_value="0.0")
    result = wk.evaluate.shifts(
        [base, moved("42", 0.1, kind="position_lateral"), moved("42", 0.2, kind="position_closer")]
    )
    assert [(key.kind, key.size) for key in result.groups] == [("position_lat", 0.2), ("position_lon", 0.1)]
    words = episode("42", target_agent="B", shift_type="aircraft_type", shift_value="B747")
    assert list(wk.evaluate.shifts([base, words]).groups) == [("B", "aircraft_type", "B747")]


def test_episodes_that_begin_with_separation_lost_are_counted() -> None:
    result = wk.evaluate.shifts([one for seed in range(3) for one in (episode(seed), moved(seed, -0.19))])
    assert result.notes == ["B position_lon -0.19: 3 of 3 shifted episodes begin with separation lost"]


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"seed": ""}, "scenario_metadata: no seed"),
        ({"target_agent": ""}, r"scenario_metadata.target_agent: missing"),
        ({"shift_value": None}, r"scenario_metadata.shift_value: missing, expected a number"),
        ({"shift_value": [1]}, r"scenario_metadata.shift_value: is \[1\], expected a number"),
        ({"shift_value": "1e999"}, r"scenario_metadata.shift_value: is '1e999', expected a finite number"),
        ({"shift_value": "inf"}, r"scenario_metadata.shift_value: is 'inf', expected a finite number"),
    ],
)
def test_bad_metadata_is_named_with_file_and_key(meta: dict[str, Any], said: str, tmp_path: Path) -> None:
    one = moved(1, 0.1)
    one["scenario_metadata"] |= meta
    (tmp_path / "e.json").write_bytes(msgspec.json.encode([episode(1), one]))
    with pytest.raises(LogError, match=rf"e.json: e.json#1: {said}"):
        wk.evaluate.shifts(tmp_path / "e.json")


def test_what_cannot_be_paired_is_refused() -> None:
    with pytest.raises(LogError, match="a second baseline with seed 1"):
        wk.evaluate.shifts([episode(1), episode(1)])
    with pytest.raises(LogError, match=r"a second episode of B position_lon \+0.1 with seed 1"):
        wk.evaluate.shifts([episode(1), moved(1, 0.1), moved(1, 0.1)])
    with pytest.raises(EvaluationError, match="1 shifted, 1 baselines"):
        wk.evaluate.shifts([episode(1), moved(2, 0.1)])
    with pytest.raises(EvaluationError, match="metric 'f2_score': unknown"):
        wk.evaluate.shifts([episode(1), moved(1, 0.1)], metrics=["f2_score"])


def test_a_target_that_is_not_there_is_said() -> None:
    result = wk.evaluate.shifts([episode(1), episode(1, target_agent="C", shift_type="speed", shift_value=1)])
    assert result.notes == ["<trajectory>: trajectory: no agent 'C' in it and in its baseline"]


def test_frames_and_dictionary_hold_every_test_and_every_track() -> None:
    result = wk.evaluate.shifts([one for seed in range(3) for one in (episode(seed), moved(seed, 0.1))], metrics=["tp"])
    assert result.to_frame("polars")["shift_value"].to_list() == ["0.1"]
    tracks = result.to_frame("pandas", table="tracks")
    assert tracks["agent"].tolist() == ["A", "B"] * 3
    assert tracks["is_target"].tolist() == [False, True] * 3
    content = json.loads(msgspec.json.encode(result.to_dict()))
    assert content["episodes"] == {"pairs": 3, "baselines": 3}
    assert (len(content["effects"]), len(content["track_list"])) == (1, 6)
    with pytest.raises(ValueError, match="tests, tracks"):
        result.to_frame(table="rows")


def _great_circle(lat: float, lon: float, course: float) -> list[tuple[float, float]]:
    """Points 0.05 degrees of arc apart on the sphere."""
    a, b, c = map(math.radians, (lat, lon, course))
    up = np.array((math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)))
    north = np.array((-math.sin(a) * math.cos(b), -math.sin(a) * math.sin(b), math.cos(a)))
    ahead = math.cos(c) * north + math.sin(c) * np.array((-math.sin(b), math.cos(b), 0.0))
    arcs = np.radians(0.05 * np.arange(STEPS))
    points = np.cos(arcs)[:, None] * up + np.sin(arcs)[:, None] * ahead
    places = np.degrees(np.stack((np.arcsin(points[:, 2]), np.arctan2(points[:, 1], points[:, 0])), axis=1))
    places[0] = lat, lon
    return [tuple(point) for point in places.tolist()]
