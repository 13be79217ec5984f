"""`evaluate shifts --simulate`: baselines and shifted episodes of the same seeds differ by the shift alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import watchkeeper as wk
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.shifts import make
from watchkeeper.streams.simulate import SHIFT_KINDS, Shift, simulate
from watchkeeper.streams.simulate.controlled import Controller

TARGET = "answered-2"


def without_metadata(trajectory: dict[str, Any]) -> bytes:
    return msgspec.json.encode({name: part for name, part in trajectory.items() if name != "scenario_metadata"})


@pytest.mark.parametrize("kind", SHIFT_KINDS)
def test_a_shift_of_zero_is_the_baseline_to_the_last_bit(kind: str) -> None:
    assert without_metadata(make.trajectory(3, Shift(TARGET, kind, 0.0))) == without_metadata(make.trajectory(3))


@pytest.mark.parametrize("kind", SHIFT_KINDS)
def test_only_the_shifted_aircraft_begins_otherwise_and_by_as_much_as_asked_for(kind: str) -> None:
    size = {"kt": 20.0, "deg": 0.1}[SHIFT_KINDS[kind].unit] * (100.0 if kind == "heading" else 1.0)
    base, shifted = make.trajectory(5), make.trajectory(5, Shift(TARGET, kind, size))
    for one in (base, shifted):
        own = one["agents"].pop(TARGET)
        one["first"] = {
            "speed": own["speeds"][0],
            "heading": own["headings"][0],
            "position_lat": one["positions"][0][TARGET][0],
            "position_lon": one["positions"][0][TARGET][1],
            **{f"waypoint_{side}": one["waypoints"][TARGET][side] for side in ("lat", "lon")},
        }
        one["others"] = [
            {agent: place for agent, place in step.items() if agent != TARGET} for step in one["positions"]
        ]
    for name, value in base["first"].items():
        expected = value + size if name == kind else value
        assert shifted["first"][name] == pytest.approx(expected % 360.0 if name == "heading" else expected, abs=1e-9)
    assert (shifted["others"], shifted["agents"], shifted["actions"]) == (
        base["others"],
        base["agents"],
        base["actions"],
    )


def test_the_metrics_of_a_written_episode_are_those_of_the_simulation() -> None:
    (log,) = wk.evaluate.conflicts(simulate("controlled", seed=2, vehicles=make.AIRCRAFT)).episodes
    (made,) = wk.evaluate.conflicts(make.trajectory(2)).episodes
    assert made["metrics"] == pytest.approx(log["metrics"], nan_ok=True)


@pytest.mark.parametrize(
    ("scenario", "shift", "said"),
    [
        ("controlled", Shift("A1", "speed", 5.0), "no aircraft 'A1'; there are: answered-1, answered-2"),
        ("controlled", Shift(TARGET, "colour", 5.0), "unknown kind 'colour'; there are: speed, heading"),
        ("controlled", Shift(TARGET, "speed", 201.0), "speed is 201, expected -200 to 200 kt"),
        ("controlled", Shift(TARGET, "speed", float("nan")), "speed is nan, expected -200 to 200 kt"),
        ("head-on", Shift(TARGET, "speed", 5.0), "a shift is one of scenario 'controlled'"),
    ],
)
def test_a_shift_that_cannot_be_is_refused(scenario: str, shift: Shift, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        simulate(scenario, shift=shift)


def test_the_truth_tells_of_the_shift_and_names_lead_to_ids() -> None:
    sim = simulate("controlled", seed=1, seconds=20, shift=Shift(TARGET, "speed", 5.0))
    assert sim.truth()["shift"] == {"aircraft": TARGET, "kind": "speed", "size": 5.0}
    assert "shift" not in simulate("controlled", seed=1, seconds=20).truth()
    assert tuple(sim.commanded) == Controller.NAMES
    roles = {name: sim.truth()["vehicles"][own]["role"] for name, own in sim.commanded.items()}
    assert all(name.startswith(role) for name, role in roles.items())


def test_the_command_simulates_keeps_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, folder = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "episodes"
    how = ["--metrics", "f1_score", "min_separation_nm", "--resamples", "100"]
    shift = ["--shift", "missed-1", "position_lon", "0.1"]
    plots = [
        "--plot",
        str(tmp_path / "e.png"),
        "--plot-tracks",
        str(tmp_path / "t.svg"),
        "--report",
        str(tmp_path / "s.html"),
    ]
    words = ["--simulate", "4", *shift, "--keep", str(folder), "--out", str(first), *plots, *how]
    assert main(["evaluate", "shifts", *words]) == 0
    printed = capsys.readouterr().out
    assert "4 shifted episodes compared with 4 baselines of the same seeds" in printed
    assert "no difference: f1_score" in printed
    assert "missed-1 position_lon +0.1 deg" in printed
    files = sorted(map(str, folder.iterdir()))
    assert len(files) == 8
    assert main(["evaluate", "shifts", *files, "--out", str(second), *how]) == 0
    assert json.loads(first.read_text()) == json.loads(second.read_text())
    target, other = (
        next(r for r in json.loads(first.read_text())["track_list"] if r["is_target"] is own) for own in (True, False)
    )
    assert target["dtw_m"] > 1000.0 > 1e-3 > target["dtw_less_own_m"]
    assert other["dtw_m"] == 0.0
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "t.svg").read_bytes()
    page = (tmp_path / "s.html").read_text()
    assert "Less own" in page
    assert page.count("data:image/svg+xml") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected episodes, or --simulate N"),
        (["e.json", "--simulate", "2"], "expected episodes, or --simulate N"),
        (["e.json", "--keep", "x"], "--shift and --keep are about simulated episodes"),
        (["--simulate", "2", "--shift", TARGET, "speed", "fast"], "--shift: size 'fast' is not a number"),
        (["--simulate", "2", "--shift", TARGET, "speed", "900"], "--shift: speed is 900, expected -200 to 200 kt"),
        (["--simulate", "2", *["--shift", TARGET, "speed", "9"] * 2], "--shift: the same shift twice"),
    ],
)
def test_wrong_arguments_are_a_usage_error(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "shifts", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_and_one_without_pairs_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "shifts", str(tmp_path / "none.json")]) == 1
    (tmp_path / "one.json").write_bytes(msgspec.json.encode(make.trajectory(1)))
    assert main(["evaluate", "shifts", str(tmp_path / "one.json")]) == 1
    error = capsys.readouterr().err
    assert "none.json" in error
    assert "no shifted episode has a baseline of the same seed: 0 shifted, 1 baselines" in error
