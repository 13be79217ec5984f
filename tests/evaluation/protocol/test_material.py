"""Which flights are judged, and with whose thresholds: recordings of every kind, short ones, and files of splits."""

from __future__ import annotations

import io
import json
import os
import subprocess
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from autopilot_logs import WRITERS

from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.evaluation.attacks.catalogue import inject
from watchkeeper.evaluation.attacks.document import as_document, read_document
from watchkeeper.evaluation.attacks.flight import Flight, read_flights
from watchkeeper.evaluation.attacks.scene import FORCE, RATE, VELOCITY
from watchkeeper.evaluation.protocol.material import gather
from watchkeeper.evaluation.protocol.splits import Recipe, read_splits, simulated

from where import ROOT

SPLITS = {"train": ["quad-a.2026"], "val": ["quad-b.2026"], "test": ["wing-c.2026"]}


def protocol(*words: object) -> int:
    quick = ("--attacks", "gps_bias_100m,gps_freeze", "--repeats", 1, "--no-search", "--no-lasting", "--quiet")
    return watchkeeper(["evaluate", "protocol", *map(str, (*quick, *words))])


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    """Three that fly for as long as an attack needs, and a little more."""
    return [simulated(name, Recipe(seed, 115)) for name, seed in (("quad-a", 31), ("quad-b", 32), ("wing-c", 33))]


@pytest.fixture(scope="module")
def folder(flights: list[Flight], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording of each kind."""
    path = tmp_path_factory.mktemp("recordings")
    for flight, (ending, write) in zip(flights, WRITERS.items(), strict=True):
        write(path / f"{flight.id}.2026{ending}", flight)
    return path


@dataclass
class Judged:
    """What one run of the command wrote, and said."""

    files: Path
    result: dict[str, Any]
    said: str


def judge(files: Path, *words: object) -> Judged:
    said = io.StringIO()
    with redirect_stdout(said):
        assert protocol("--out", files, *words) == 0
    return Judged(files, json.loads((files / "results/metrics.json").read_text()), said.getvalue())


@pytest.fixture(scope="module")
def left_out_in_turn(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """The recordings, each judged with thresholds of the others."""
    return judge(tmp_path_factory.mktemp("in-turn"), "--flights", folder)


@pytest.fixture(scope="module")
def by_splits(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """One of the recordings, judged with thresholds of another."""
    splits = tmp_path_factory.mktemp("splits") / "mine.json"
    splits.write_text(json.dumps(SPLITS))
    return judge(tmp_path_factory.mktemp("by-splits"), "--flights", folder, "--splits", splits)


# -- kinds of recordings ---------------------------------------------------------------------------------------------


def test_recordings_of_autopilots_are_the_flights_that_were_flown(flights, folder):
    read = {flight.id: flight.from_zero() for flight in read_flights(folder)}
    assert set(read) == {"quad-a.2026", "quad-b.2026", "wing-c.2026"}
    for flown in flights:
        got, want = read[f"{flown.id}.2026"], flown.from_zero()
        assert got.airframe == want.airframe
        assert got.imu.t == pytest.approx(want.imu.t, abs=1e-5)
        assert got.gps.t == pytest.approx(want.gps.t, abs=1e-5)
        for fields in (FORCE, RATE):
            assert got.imu.data[fields] == pytest.approx(want.imu.data[fields], rel=1e-6, abs=1e-6)
        # MAVLink has centimetres per second and hundredths of a degree, and no vertical velocity
        assert got.gps.data[VELOCITY][:2] == pytest.approx(want.gps.data[VELOCITY][:2], abs=0.02)
        assert np.isfinite(got.gps.data[VELOCITY][2]).all() == (flown.id != "wing-c")


def test_recordings_of_autopilots_are_evaluated(left_out_in_turn):
    result = left_out_in_turn.result
    assert {f["flight"] for f in result["groups"]["mixed"]["flights"]} == {"quad-a.2026", "quad-b.2026", "wing-c.2026"}
    rows = {row["attack"]: row["event"]["alarm_recall"] for row in result["groups"]["mixed"]["attacks"]}
    assert rows["gps_bias_100m"] == 1.0


def test_real_px4_logs_are_read_and_too_short_ones_are_named(px4_logs, folder, tmp_path, caplog):
    for path in [*folder.iterdir(), px4_logs / "pyulog_sample_log_small.ulg"]:
        (tmp_path / path.name).symlink_to(path)
    out = tmp_path / "metrics.json"
    assert protocol("--flights", tmp_path, "--out", out) == 0
    (note,) = json.loads(out.read_text())["notes"]
    assert note.startswith("flight pyulog_sample_log_small is ")
    assert note in caplog.text


# -- flights that are too short --------------------------------------------------------------------------------------


@pytest.fixture
def with_a_short_one(folder, tmp_path) -> Path:
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    WRITERS[".tlog"](tmp_path / "quad-short.tlog", simulated("quad-short", Recipe(41, 60)))
    return tmp_path


def test_a_flight_that_is_too_short_is_left_out_and_named(with_a_short_one, tmp_path, caplog, capfd):
    out = tmp_path / "metrics.json"
    assert protocol("--flights", with_a_short_one, "--out", out) == 0
    result = json.loads(out.read_text())
    (note,) = result["notes"]
    assert note == "flight quad-short is 60 s long; an attack needs 95: left out"
    assert note in caplog.text
    assert note in capfd.readouterr().out
    assert "quad-short" not in {f["flight"] for f in result["groups"]["mixed"]["flights"]}


def test_one_flight_that_is_long_enough_is_too_few_and_the_others_are_named(with_a_short_one, capfd):
    for path in with_a_short_one.glob("quad-*.2026.*"):
        path.unlink()
    assert protocol("--flights", with_a_short_one) == 1
    said = capfd.readouterr().err
    assert "needs two flights, there is 1 (flight quad-short is 60 s long" in said


# -- who sets the threshold ------------------------------------------------------------------------------------------


def test_a_file_of_splits_says_which_recordings_set_the_threshold(by_splits):
    result = by_splits.result
    (judged,) = result["groups"]["mixed"]["flights"]
    assert (judged["flight"], judged["calibrated_on"]) == ("wing-c.2026", ["quad-b.2026"])
    assert result["settings"]["threshold_from"] == "clean validation flights alone"
    assert "Thresholds: clean validation flights alone" in by_splits.said


def test_leave_one_flight_out_says_which_flights_set_the_threshold(left_out_in_turn):
    result, said = left_out_in_turn.result, left_out_in_turn.said
    assert "left out in turn" in result["settings"]["threshold_from"]
    for judged in result["groups"]["mixed"]["flights"]:
        assert judged["flight"] not in judged["calibrated_on"]
        assert len(judged["calibrated_on"]) == 2
        assert ", ".join(judged["calibrated_on"]) in said


@pytest.mark.parametrize(
    ("splits", "problem"),
    [
        ({"train": ["quad-a.2026"], "val": ["quad-b.2026"], "test": ["nobody"]}, "not in {folder}: nobody"),
        ({"val": ["quad-b.2026"], "test": ["quad-b.2026"]}, "in 'validation' and in 'test'"),
        ({"train": ["quad-b.2026"], "test": ["quad-a.2026"]}, "no flight in the split 'validation'"),
    ],
)
def test_splits_that_cannot_be_used_are_refused(folder, tmp_path, capfd, splits, problem):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(splits))
    assert protocol("--flights", folder, "--splits", path) == 1
    assert problem.format(folder=folder) in capfd.readouterr().err


def test_simulated_flights_are_judged_with_validation_flights_alone():
    material = gather(None, None, [])
    of = read_splits().splits
    assert {fold.calibrate for fold in material.groups["mixed"]} == {tuple(of["validation"])}
    assert all(set(fold.calibrate) <= set(of["validation"]) for folds in material.groups.values() for fold in folds)
    assert not set(of["train"]) & set(material.flights)


def test_names_of_the_shipped_flights_in_the_form_of_the_document_are_flown(tmp_path, capfd):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps({"train": ["quad-t1"], "val": ["quad-v1"], "test": ["quad-e1"]}))
    assert set(gather(None, path, []).flights) == {"quad-v1", "quad-e1"}
    path.write_text(json.dumps({"train": ["quad-t1"], "val": ["quad-v1"], "test": ["mine"]}))
    assert protocol("--splits", path) == 1
    assert "no recipe for 'mine': give the recordings (--flights)" in capfd.readouterr().err


# -- what is left behind ---------------------------------------------------------------------------------------------


def test_the_paths_of_the_document_are_written_and_read_again(by_splits, folder, tmp_path, capfd):
    first, second = by_splits.files, tmp_path
    assert json.loads((first / "configs/splits.json").read_text()) == SPLITS
    attacks = json.loads((first / "attacks/catalog.json").read_text())
    assert attacks["gps_bias_100m"] == {
        "parameters": {"family": "gps_bias", "magnitude": 100.0, "unit": "m"},
        "injection_time": "random",
        "duration": 30.0,
        "seed": 1,
    }
    again = ("--splits", first / "configs/splits.json", "--catalog", first / "attacks/catalog.json")
    assert protocol("--flights", folder, *again, "--out", second) == 0
    results = [json.loads((path / "results/metrics.json").read_text()) for path in (first, second)]
    for result in results:
        del result["settings"]["flights"]  # names the file of splits
    assert results[0] == results[1]
    assert watchkeeper(["evaluate", "leakage", "--splits", str(first / "configs/splits.json")]) == 0


def test_flights_left_out_in_turn_have_no_splits_to_read_again(left_out_in_turn, folder, capfd):
    path = left_out_in_turn.files / "configs" / "splits.json"
    folds = json.loads(path.read_text())["folds"]
    assert [fold["test"] for fold in folds] == [["quad-a.2026"], ["quad-b.2026"], ["wing-c.2026"]]
    assert protocol("--flights", folder, "--splits", path) == 1
    assert "left out in turn" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"parameters": {"family": "gps_bais"}, "seed": 1}, "mine: no family 'gps_bais'; did you mean 'gps_bias'?"),
        ({"parameters": {"family": "gps_bias"}}, "missing required field `seed`"),
        ({"parameters": {"family": "gps_bias"}, "seed": 1, "injection_time": "fixed"}, "onset_s go together"),
        ({"parameters": {"family": "gps_bias"}, "seed": 1, "duration": -3}, "Expected `float` >= 1.0"),
    ],
)
def test_a_catalogue_that_cannot_be_used_is_refused(tmp_path, capfd, entry, problem):
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps({"mine": entry}))
    assert watchkeeper(["evaluate", "protocol", "--catalog", str(path)]) == 1
    said = capfd.readouterr().err
    assert "catalog.json: " in said
    assert problem in said


def test_an_attack_of_a_fixed_time_begins_then(flights, tmp_path):
    path = tmp_path / "catalog.json"
    parameters = {"family": "gps_bias", "magnitude": 20.0, "onset_s": 70.0}
    path.write_text(json.dumps({"mine": {"parameters": parameters, "injection_time": "fixed", "seed": 3}}))
    (attack,) = read_document(path)
    made = inject(attack, flights[0], repeat=2)
    assert (made.t_start, made.t_end) == (flights[0].start + 70.0, flights[0].start + 100.0)
    assert as_document([attack])["mine"]["injection_time"] == "fixed"


def test_the_script_of_the_document_is_make_reproduce():
    said = subprocess.run(
        [ROOT / "run_hybrid_eval.sh", "--repeats", "2"], env={**os.environ, "MAKEFLAGS": "-n"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "evaluate leakage\n" in said
    assert "evaluate protocol --out . --report results/report --repeats 2\n" in said
    assert "evaluate lasting --out results/lasting.json \n" in said


def test_biases_that_last_are_judged_on_the_flights_that_are_named():
    said = subprocess.run(
        ["make", "-n", "reproduce", "ARGS=--repeats 2 --flights some/logs --no-search"], cwd=ROOT,
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "--report results/report --repeats 2 --flights some/logs --no-search\n" in said
    assert "evaluate lasting --out results/lasting.json --flights some/logs\n" in said


# -- leaks -----------------------------------------------------------------------------------------------------------


def test_a_flight_under_two_names_ends_the_evaluation_before_it_begins(flights, folder, tmp_path, capfd):
    logs, out = tmp_path / "logs", tmp_path / "metrics.json"
    logs.mkdir()
    for path in folder.iterdir():
        (logs / path.name).symlink_to(path)
    WRITERS[".ulg"](logs / "quad-other-name.ulg", flights[0])
    assert protocol("--flights", logs, "--out", out) == 1
    said = capfd.readouterr().err
    assert "a leak would make every figure void" in said
    assert "'quad-a.2026' and 'quad-other-name'" in said
    assert not out.exists()


def test_what_the_leakage_check_found_is_in_the_result(left_out_in_turn):
    assert left_out_in_turn.result["settings"]["leakage"] == {"splits": 0, "code": 0}
