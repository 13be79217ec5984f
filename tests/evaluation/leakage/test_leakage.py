"""Every leakage check can fail: a leak of each sort is planted and must be caught, and what is clean must pass."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.leakage.api import OWN_CODE
from watchkeeper.evaluation.leakage.code.check import code_leaks
from watchkeeper.evaluation.leakage.features import correlations
from watchkeeper.evaluation.leakage.flights import split_leaks
from watchkeeper.evaluation.protocol.splits import Recipe, Splits, read_splits, simulated
from watchkeeper.evaluation.shared.features import banned

from where import CUTS, ROOT


def leakage(*words: object) -> int:
    return watchkeeper(["evaluate", "leakage", *map(str, words)])


# -- splits ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return [simulated(name, Recipe(seed, 100)) for name, seed in (("quad-a", 1), ("quad-b", 2), ("wing-c", 3))]


SPLITS = Splits(1, {"train": ["quad-a"], "validation": ["quad-b"], "test": ["wing-c"]})


def test_clean_splits_pass(flights):
    assert split_leaks(SPLITS, flights) == []


@pytest.mark.parametrize(
    ("splits", "problem"),
    [
        ({"train": ["a"], "test": ["b", "a"]}, "flight 'a' is in 'train' and in 'test'"),
        ({"train": ["a"], "validation": ["a"]}, "flight 'a' is in 'train' and in 'validation'"),
        ({"train": ["a", "a"], "test": ["b"]}, "flight 'a' is in 'train' twice"),
        ({"train": ["a"], "tset": ["b"]}, "unknown split 'tset'"),
    ],
)
def test_a_flight_in_two_splits_is_caught(splits, problem, tmp_path, capfd):
    assert any(problem in leak for leak in split_leaks(Splits(1, splits)))
    path = tmp_path / "splits.json"
    path.write_text(json.dumps({"version": 1, "splits": splits}))
    assert leakage("--splits", path) == 1
    assert problem in capfd.readouterr().out


def test_the_form_of_the_document_is_read_like_ours(tmp_path, capfd):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps({"train": ["a"], "val": ["b"], "test": ["c"]}))
    assert read_splits(path).splits == {"train": ["a"], "validation": ["b"], "test": ["c"]}
    assert leakage("--splits", path) == 0
    path.write_text(json.dumps({"train": ["a"], "val": ["b", "c"], "test": ["c"]}))
    assert leakage("--splits", path) == 1
    assert "flight 'c' is in 'validation' and in 'test'" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"version": 1}, 'expected either "splits", or "train", "val" and "test"'),
        ({"splits": {}, "train": ["a"]}, 'expected either "splits", or "train", "val" and "test"'),
        ({"val": ["a"], "validation": ["b"], "test": ["c"]}, "'validation' is there twice"),
        ({"train": "a", "test": ["b"]}, "Expected `array | null`, got `str` - at `$.train`"),
    ],
)
def test_a_splits_file_of_neither_form_is_an_error_that_says_what_was_expected(tmp_path, capfd, content, problem):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(content))
    assert leakage("--splits", path) == 1
    said = capfd.readouterr().err
    assert "splits.json: " in said
    assert problem in said


def test_one_simulated_mission_in_two_splits_is_caught():
    recipes = {"quad-a": Recipe(5), "quad-b": Recipe(5, imu_hz=100.0), "wing-c": Recipe(5)}
    (leak,) = Splits(1, {"train": ["quad-a", "wing-c"], "test": ["quad-b"]}, recipes).overlaps()
    assert "quad-a, quad-b fly the same mission" in leak


def copied(flight: Flight, how: str) -> Flight:
    rng = np.random.default_rng(1)
    t, data = flight.imu.t, flight.imu.data
    if how == "shifted clock":
        t = t + 1234.5
    if how == "cut":
        t, data = t[1000:3500], data[:, 1000:3500]
    if how == "noisy":
        data = data + rng.normal(0.0, 0.02, data.shape)
    return replace(flight, id="wing-c", imu=Stream(t, data))


@pytest.mark.parametrize("how", ["renamed", "shifted clock", "cut", "noisy"])
def test_a_flight_under_another_name_is_caught(flights, how):
    (leak,) = split_leaks(SPLITS, [*flights[:2], copied(flights[0], how)])
    assert "one flight under two names" in leak
    assert "'quad-a' (train) and 'wing-c' (test)" in leak


def test_the_same_flight_twice_in_one_split_is_no_leak(flights):
    splits = Splits(1, {"train": ["quad-a", "wing-c"], "test": ["quad-b"]})
    assert split_leaks(splits, [*flights[:2], copied(flights[0], "renamed")]) == []


def test_a_flight_that_no_split_names_is_caught(flights):
    assert split_leaks(SPLITS, [*flights, replace(flights[0], id="quad-z")]) == ["flight 'quad-z' is in no split"]


def test_real_flights_are_told_apart(tmp_path):
    flights = CUTS / "flights"
    names = [path.name.removesuffix(".csv.gz") for path in sorted(flights.glob("*.csv.gz"))]
    path = tmp_path / "splits.json"
    path.write_text(
        json.dumps({"version": 1, "splits": {"train": names[:-2], "validation": names[-2:-1], "test": names[-1:]}})
    )
    assert leakage("--splits", path, "--flights", flights) == 0


def test_a_recipe_that_the_simulator_does_not_know_is_told(tmp_path, capfd):
    path = tmp_path / "splits.json"
    flights = {"quad-a": {"seed": 1, "errors": {"wobble": 3.0}}}
    path.write_text(json.dumps({"version": 1, "flights": flights, "splits": {"train": ["quad-a"]}}))
    assert leakage("--splits", path) == 1
    assert "no error 'wobble'" in capfd.readouterr().out


def test_a_broken_splits_file_is_an_error_that_names_it(tmp_path, capfd):
    path = tmp_path / "splits.json"
    path.write_text('{"version": 1, "spilts": {}}')
    assert leakage("--splits", path) == 1
    assert "splits.json" in capfd.readouterr().err


# -- features --------------------------------------------------------------------------------------------------------


def table(path: Path, **columns: np.ndarray) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def clean_columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    label = (np.arange(600) % 3 == 0).astype(float)
    return {
        "flight": np.array(["quad-a"] * 600),
        "t": np.arange(600.0),
        "gps_x": rng.normal(size=600),
        "velocity_sigma": rng.normal(size=600) + label,
        "label": label,
    }


def test_honest_features_pass(clean_columns, tmp_path):
    path = table(tmp_path / "features.csv", **clean_columns)
    assert leakage("--data", path, "--correlation-threshold", 0.9) == 0
    _, features = correlations(path, None)
    # a shift of one sigma with a third positives: r = sqrt(pq) / sqrt(1 + pq)
    assert features[0].name == "velocity_sigma"
    assert features[0].correlation == pytest.approx(np.sqrt(2 / 9) / np.sqrt(1 + 2 / 9), abs=0.08)


@pytest.mark.parametrize(
    "leak",
    [
        lambda label: label * 3.0 + 1.0,
        lambda label: -label + np.random.default_rng(1).normal(0.0, 0.1, len(label)),
        # a label behind a curve: one enormous value hides it from Pearson, not from the ranks
        lambda label: np.where(np.arange(len(label)) == 0, 1e12, label),
    ],
)
def test_a_feature_that_is_the_label_in_disguise_is_caught(clean_columns, tmp_path, capfd, leak):
    path = table(tmp_path / "features.csv", **clean_columns, innocent=leak(clean_columns["label"]))
    assert leakage("--data", path, "--correlation-threshold", 0.9) == 1
    assert "'innocent' goes with 'label'" in capfd.readouterr().out


@pytest.mark.parametrize(
    "name", ["baro_alt", "fused_alt", "EKF_vel_n", "truth_x", "filtered_ax", "derived_speed", "roll"]
)
def test_a_banned_name_is_caught(clean_columns, tmp_path, capfd, name):
    path = table(tmp_path / "features.csv", **clean_columns, **{name: clean_columns["gps_x"]})
    assert leakage("--data", path) == 1
    assert f"'{name}' is banned" in capfd.readouterr().out


def test_an_ahrs_may_be_allowed_and_an_ekf_never():
    raw = ["gps_x", "gps_vx", "imu_ax", "imu_wz", "hdop"]
    assert banned(raw) == []
    assert banned([*raw, "roll", "yaw"], "ahrs") == []
    assert banned(["ekf_roll", "mag_heading", "x_ground_truth_y"], "ahrs") == [
        "ekf_roll",
        "mag_heading",
        "x_ground_truth_y",
    ]


def test_a_table_that_cannot_be_judged_is_an_error(clean_columns, tmp_path, capfd):
    del clean_columns["label"]
    path = table(tmp_path / "features.csv", **clean_columns)
    assert leakage("--data", path) == 1
    assert "no column 'label' or 'is_attack' or 'attacked'" in capfd.readouterr().err
    path = table(tmp_path / "features.csv", **clean_columns, label=np.zeros(600))
    assert leakage("--data", path) == 1
    assert "one value only" in capfd.readouterr().err


# -- code ------------------------------------------------------------------------------------------------------------

PLANTED = {
    "fit-on-test": [
        "scaler.fit(test_scores)",
        "scaler.fit(np.concatenate((train_scores, test_scores)))",
        "limit = np.quantile(test_scores, 0.99)",
        "limit = threshold(clean[f] for f in split.test)",
        "model.learn_one(x_test[0])",
        "def f(split):\n    mine = split.test\n    all = [read(x) for x in mine]\n    return np.percentile(all, 99)",
        "def f(testFlights):\n    for flight in testFlights:\n        model.learn(flight)",
        "calibrate(scores=attacked_scores)",
        "limit = scores_test.quantile()",
    ],
    "fit-transform": [
        "z = scaler.fit_transform(everything)",
        "z = scaler.fit_transform(np.vstack((x_train, x_other)))",
    ],
    "sample-split": [
        "a, b = train_test_split(rows)",
        "rng.shuffle(rows)",
        "for a, b in KFold(5).split(rows): pass",
    ],
    "attack-in-training": [
        "inject(attack, train_flight)",
        "def f(flights_train):\n    return [inject(attack, flight) for flight in flights_train]",
    ],
    "banned-feature": ["roll = data[COLUMN[Kind.IMU]['roll']]", "x = samples.col('yaw')", "h = row.get('ekf_vel_n')"],
}


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, source) for rule, sources in PLANTED.items() for source in sources]
)
def test_a_planted_line_is_caught(rule, source, tmp_path, capfd):
    path = tmp_path / "detectors" / "planted.py"
    path.parent.mkdir()
    path.write_text(source + "\n")
    assert [leak.rule for leak in code_leaks([path])] == [rule]
    assert leakage("--check-code", path.parent) == 1
    assert f"planted.py:{source.count(chr(10)) + 1}: {rule}" in capfd.readouterr().out


@pytest.mark.parametrize(
    "source",
    [
        "scaler.fit(train_scores)",
        "z = scaler.transform(test_scores)",
        "z = scaler.fit_transform(x_train)",
        "limit = np.quantile(validation_scores, 0.99)",
        "inject(attack, test_flight)",
        "force = data[COLUMN[Kind.IMU]['imu_ax']]",
        "roll, pitch, yaw = attitude(imu)",
        "def f(test):\n    return len(test)\ndef g(x):\n    return np.quantile(x, 0.5)",
    ],
)
def test_an_honest_line_passes(source, tmp_path):
    path = tmp_path / "detectors" / "honest.py"
    path.parent.mkdir()
    path.write_text(source + "\n")
    assert code_leaks([path]) == []


def test_our_own_code_and_splits_are_clean():
    assert code_leaks(ROOT / folder for folder in OWN_CODE) == []
    assert split_leaks(read_splits()) == []
