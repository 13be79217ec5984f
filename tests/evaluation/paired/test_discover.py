"""`evaluate paired DIR`: models and seeds found by the names of folders, and a note for what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.paired.discover import models_below, runs_of

METRICS = ("hausdorff_norm", "dtw_norm", "edr")


def write(folder: Path, shift: float = 0.0, count: int = 30, **metadata) -> Path:
    """A result whose values are `shift` above those of another with the same records."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        {"od_pair": [k, k], "real_traj_idx": k} | dict.fromkeys(METRICS, shift + (k * 7 % 11) / 10.0 * (1.0 + shift))
        for k in range(count)
    ]
    head = {"od_source": "test", "grid_size": 0.001, "edr_eps": 100.0, "real_data_file": "real.csv", **metadata}
    (folder / "trajectory_metrics.json").write_text(json.dumps({"metadata": head, "trajectory_metrics": records}))
    return folder


def found(folder: Path) -> dict[str, dict[str, str]]:
    models, _ = models_below(folder)
    return {m.name: {seed: str(file.parent.relative_to(folder)) for seed, file in m.files.items()} for m in models}


def test_models_by_folder_by_time_and_by_seed(tmp_path):
    for place in (
        "vanilla", "distilled/2025-01-01_12-00-00", "distilled/2025-01-02_12-00-00", "old/eval/2025-01-01_12-00-00",
        "big/seed2", "big/seed10/eval/2025-01-01_12-00-00", "small_seed1", "small_seed2", "deep/er",
    ):  # fmt: skip
        write(tmp_path / place)
    assert list(found(tmp_path)["big"]) == ["2", "10"]
    assert found(tmp_path) == {
        "vanilla": {"": "vanilla"},
        "distilled": {"": "distilled/2025-01-02_12-00-00"},
        "old": {"": "old/eval/2025-01-01_12-00-00"},
        "big": {"2": "big/seed2", "10": "big/seed10/eval/2025-01-01_12-00-00"},
        "small": {"1": "small_seed1", "2": "small_seed2"},
        "deep_er": {"": "deep/er"},
    }


def test_results_by_time_alone_are_a_model_each(tmp_path):
    for time in ("2025-01-01_12-00-00", "2025-01-02_12-00-00"):
        write(tmp_path / time)
    assert list(found(tmp_path)) == ["2025-01-01_12-00-00", "2025-01-02_12-00-00"]


def test_the_runs_of_one_folder(tmp_path):
    write(tmp_path / "a" / "seed10")
    write(tmp_path / "a" / "seed9" / "2025-01-01_12-00-00")
    assert list(runs_of(tmp_path / "a")) == ["9", "10"]
    assert list(runs_of(write(tmp_path / "b"))) == [""]
    (tmp_path / "none").mkdir()
    assert runs_of(tmp_path / "none") == {}


def test_a_folder_of_models_is_enough_and_those_without_metrics_are_noted(tmp_path, capsys):
    write(tmp_path / "a")
    write(tmp_path / "b", 1.0)
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "results.json").write_text("{}")
    assert main(["evaluate", "paired", str(tmp_path), "--out", "-"]) == 0
    told = capsys.readouterr()
    assert told.err == f"watchkeeper: {tmp_path / 'older'}: no trajectory_metrics.json in this folder, left out\n"
    results = json.loads(told.out)
    assert [(m["name"], m["folder"]) for m in results["metadata"]["models"]] == [
        ("a", str(tmp_path / "a")), ("b", str(tmp_path / "b")),
    ]  # fmt: skip
    for result in results["results"]:
        assert (result["model1_name"], result["model2_name"]) == ("a", "b")
        assert (result["model1_folder"], result["model2_folder"]) == (str(tmp_path / "a"), str(tmp_path / "b"))
        assert (result["n_pairs"], result["test_name"]) == (30, "Paired t-test")
        assert result["test_statistic"] == result["paired_t"]["statistic"] < 0.0


def test_its_own_output_is_no_model(tmp_path, capsys):
    write(tmp_path / "a")
    write(tmp_path / "b", 1.0)
    for _ in range(2):
        assert main(["evaluate", "paired", str(tmp_path), "--out", str(tmp_path / "paired_analysis")]) == 0
        assert capsys.readouterr().err == ""
    assert (tmp_path / "paired_analysis" / "test" / "a_vs_b" / "paired_results.json").exists()


@pytest.mark.parametrize("models", [[], ["a"]])
def test_it_fails_when_fewer_than_two_are_left_and_only_then(tmp_path, capsys, models):
    (tmp_path / "empty").mkdir()
    for name in models:
        write(tmp_path / name)
    assert main(["evaluate", "paired", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert f"{tmp_path / 'empty'}: no trajectory_metrics.json" in error
    assert "fewer than two models to compare" in error


def test_one_file_is_one_model(tmp_path, capsys):
    assert main(["evaluate", "paired", str(write(tmp_path) / "trajectory_metrics.json")]) == 1
    assert "fewer than two models" in capsys.readouterr().err


def test_models_that_do_not_compare_are_noted_as_long_as_two_do(tmp_path, capsys):
    write(tmp_path / "a")
    write(tmp_path / "b", 1.0)
    write(tmp_path / "t", 2.0, od_source="train")
    assert main(["evaluate", "paired", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.err.count("are not compared") == 2
    assert "a and t are not compared" in told.err
    assert "od_source is train, but test in" in told.err
    write(tmp_path / "b", 1.0, grid_size=0.5)
    assert main(["evaluate", "paired", str(tmp_path)]) == 1
    assert "no two of these models can be compared" in capsys.readouterr().err


def test_names_are_for_models_given_one_by_one(tmp_path, capsys):
    assert main(["evaluate", "paired", str(tmp_path), "--names", "a"]) == 2
    assert "given one by one" in capsys.readouterr().err


def test_a_broken_file_is_named(tmp_path, capsys):
    write(tmp_path / "a")
    (write(tmp_path / "b") / "trajectory_metrics.json").write_text("{")
    assert main(["evaluate", "paired", str(tmp_path)]) == 1
    assert f"{tmp_path / 'b' / 'trajectory_metrics.json'}: not a JSON document" in capsys.readouterr().err
