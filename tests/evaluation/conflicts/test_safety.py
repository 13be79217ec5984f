"""Risk per flight hour, survival of the least separation and places of mistakes, against SciPy and by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ecdf, poisson

import watchkeeper as wk
from watchkeeper.benchmarks.conflict_metrics import random_trajectory
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.conflicts.safety.hotspots import hot_spots
from watchkeeper.evaluation.conflicts.safety.plots import hot_spots_figure, survival_figure
from watchkeeper.evaluation.conflicts.safety.risk import poisson_95, risk, survival
from watchkeeper.evaluation.shared.html import svg_of

EPISODES = [random_trajectory(seed, 60, 8) for seed in range(12)]


def episode(hours: float = 1.0, los: int = 0, collisions: int = 0, least_nm: float = math.nan) -> dict[str, float]:
    return {
        "flight_hours": hours,
        "num_los_events": los,
        "num_collision_events": collisions,
        "min_separation_nm": least_nm,
    }


@given(st.integers(0, 500))
def test_the_interval_is_exact_for_a_poisson_count(count):
    low, high = poisson_95(count)
    assert poisson.cdf(count, high) == pytest.approx(0.025)
    assert low == 0.0 if count == 0 else poisson.sf(count - 1, low) == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("collisions", "hours", "verdict"),
    # target 0.01 per hour; of none the upper limit is 3.689, of ten the lower is 4.795
    [
        (0, 369.0, "met"),
        (0, 368.0, "not shown"),
        (10, 479.0, "missed"),
        (10, 480.0, "not shown"),
        (0, 0.0, "not shown"),
    ],
)
def test_the_target_is_met_or_missed_by_the_whole_interval(collisions, hours, verdict):
    rows = risk([episode(hours / 2, collisions=collisions), episode(hours / 2, los=3)], target_per_hour=0.01)
    loss, collision = rows
    assert collision["verdict"] == verdict
    assert (loss["events"], collision["events"]) == (3, collisions)
    assert (loss["verdict"], math.isnan(loss["target_per_hour"])) == ("", True)
    if hours:
        assert collision["per_hour"] == pytest.approx(collisions / hours)
    else:
        assert math.isnan(collision["per_hour"])


def test_a_target_is_above_zero():
    with pytest.raises(ValueError, match="target_per_hour"):
        risk([episode()], target_per_hour=0.0)
    with pytest.raises(ValueError, match="cell_nm"):
        hot_spots([], cell_nm=-1.0)


def test_flight_hours_are_those_of_all_aircraft_and_collisions_are_runs():
    # 40 steps of 10 s, two aircraft, of which one is away for 10 steps; head-on, they pass at step 20
    positions: list[dict[str, Any]] = [{"A1": (0.0, k / 60), "A2": (0.0, (40 - k) / 60)} for k in range(40)]
    for k in range(30, 40):
        del positions[k]["A2"]
    (row,) = wk.evaluate.conflicts({"positions": positions}).episodes
    assert row["metrics"]["flight_hours"] == pytest.approx((40 + 30) * 10 / 3600)
    assert (row["metrics"]["num_los_events"], row["metrics"]["num_collision_events"]) == (1, 1)
    (row,) = wk.evaluate.conflicts({"positions": positions[:19]}, collision_nm=3.0).episodes  # 4 NM apart at the end
    assert (row["metrics"]["num_los_events"], row["metrics"]["num_collision_events"]) == (1, 0)


def test_the_survival_curve_is_scipys_and_its_band_is_that_of_a_share():
    least = np.random.default_rng(1).uniform(0.0, 30.0, 60)
    rows = survival([episode(least_nm=float(x)) for x in least] + [episode()], 30.0)
    at = np.array([row["separation_nm"] for row in rows])
    assert (at[0], at[-1]) == (0.0, 30.0)
    found = np.array([row["survival"] for row in rows])
    assert found == pytest.approx(ecdf(least).sf.evaluate(at))
    # a bootstrap of a share is binomial
    for row, share in zip(rows, found.tolist(), strict=True):
        low, high = binom.ppf((0.025, 0.975), 60, share) / 60
        assert row["low_95"] == pytest.approx(low, abs=2 / 60 + 1e-9)
        assert row["high_95"] == pytest.approx(high, abs=2 / 60 + 1e-9)
    assert survival([episode()], 30.0) == []


def test_exactly_that_far_apart_is_not_farther():
    (_, middle, _) = [row for row in survival([episode(least_nm=5.0)], 10.0) if abs(row["separation_nm"] - 5) < 0.1]
    assert (middle["separation_nm"], middle["survival"]) == (5.0, 0.0)


def meeting(lon: float, command: dict[str, list[float]], aside_nm: float = 0.0) -> dict[str, Any]:
    """Head-on along the equator around a longitude; commands at steps 10 and 11."""
    return {
        "positions": [
            {"A1": (0.0, lon + (k - 20) / 60), "A2": (aside_nm / 60, lon + (20 - k) / 60)} for k in range(40)
        ],
        "actions": [command if k in (10, 11) else {} for k in range(40)],
        "agents": {a: {"headings": [h] * 40, "speeds": [360.0] * 40} for a, h in (("A1", 90.0), ("A2", 270.0))},
    }


@pytest.mark.parametrize("lon", [8.0, 180.0])
def test_a_missed_conflict_is_midway_between_the_pair(lon):
    (row,) = wk.evaluate.conflicts(meeting(lon, {})).episodes
    (place,) = row["mistakes"]
    assert place["kind"] == "missed"
    assert (place["lat"], abs(place["lon"])) == pytest.approx((0.0, lon))


def test_a_false_alert_is_where_the_aircraft_was_commanded():
    # 5.5 NM aside is a threat and no conflict; A2 is commanded at steps 10 and 11
    (row,) = wk.evaluate.conflicts(meeting(8.0, {"A2": [10.0, 0.0]}, aside_nm=5.5)).episodes
    assert row["metrics"]["fp"] == 1
    assert row["mistakes"] == [
        {"kind": "false", "t": 100.0, "lat": pytest.approx(5.5 / 60), "lon": pytest.approx(8 + 10 / 60)}
    ]


def test_every_window_without_a_partner_has_a_place_and_every_place_a_cell():
    result = wk.evaluate.conflicts(EPISODES)
    places = [place for row in result.episodes for place in row["mistakes"]]
    wrong = {"false": "fp", "missed": "fn"}
    for kind, metric in wrong.items():
        count = sum(row["metrics"][metric] for row in result.episodes)
        assert count == sum(place["kind"] == kind for place in places) > 0
        assert count == sum(cell[kind] for cell in result.safety(cell_nm=25.0)["hot_spots"])
    cells = result.safety(cell_nm=25.0)["hot_spots"]
    totals = [cell["false"] + cell["missed"] for cell in cells]
    assert totals == sorted(totals, reverse=True)
    assert len(cells) < len(places)


@given(st.floats(-90.0, 90.0), st.floats(-180.0, 180.0), st.floats(1.0, 600.0))
def test_a_place_is_in_its_cell(lat, lon, cell_nm):
    (cell,) = hot_spots([{"kind": "missed", "lat": lat, "lon": lon}], cell_nm)
    assert abs(cell["lat"] - lat) <= cell_nm / 120 + 1e-3
    assert -180.0 <= cell["lon"] <= 180.0


@pytest.mark.parametrize("backend", ["polars", "pandas"])
def test_frames_hold_the_rows_and_can_be_drawn(backend):
    result = wk.evaluate.conflicts(EPISODES)
    rows = result.safety(1e-7, 20.0)
    frames = {
        "risk": result.risk_frame(1e-7, backend),
        "survival": result.survival_frame(backend),
        "hot_spots": result.hot_spots_frame(20.0, backend),
    }
    for name, frame in frames.items():
        assert list(frame.columns) == list(rows[name][0])
        assert len(frame) == len(rows[name])
    curve, spots = survival_figure(frames["survival"], 5.0), hot_spots_figure(frames["hot_spots"])
    assert svg_of(curve, "s") == svg_of(survival_figure(rows["survival"], 5.0), "s")
    assert svg_of(spots, "h") == svg_of(hot_spots_figure(rows["hot_spots"]), "h")


def test_the_command_says_it_and_draws_it(tmp_path, capsys):
    path, out, report = tmp_path / "e.json", tmp_path / "m.json", tmp_path / "r.html"
    path.write_bytes(msgspec.json.encode(EPISODES))
    options = ["--risk", "--target-per-hour", "1e-7", "--cell-nm", "20", "--out", str(out), "--report", str(report)]
    assert main(["evaluate", "conflicts", str(path), *options]) == 0
    assert "per flight hour" in capsys.readouterr().out
    written = json.loads(out.read_text())
    assert [row["event"] for row in written["risk"]] == ["loss of separation", "collision"]
    assert written["risk"][1]["target_per_hour"] == 1e-7
    assert written["hot_spots"]
    assert written["survival"][0]["separation_nm"] == 0.0
    page = report.read_text()
    assert "farther apart than a distance" in page
    assert "alerts were false and conflicts missed" in page
    # without the option nothing of it, and a lone aircraft has no picture
    assert main(["evaluate", "conflicts", str(path), "--out", str(out)]) == 0
    assert "risk" not in json.loads(out.read_text())
    path.write_bytes(msgspec.json.encode({"positions": [{"A1": (0.0, 0.0)}]}))
    assert main(["evaluate", "conflicts", str(path), "--risk", "--report", str(report)]) == 0
    assert "farther apart than a distance" not in report.read_text()
