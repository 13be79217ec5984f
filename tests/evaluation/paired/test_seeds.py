"""Models over their seeds: SciPy's Welch test on the runs' figures, and words where there are too few runs to say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.paired.files import Model, Record
from watchkeeper.evaluation.paired.seeds import compare_seeds, merged

FIRST, SECOND = (0.30, 0.33, 0.31), (0.42, 0.40, 0.45, 0.41)


def run(values: dict[int, float], *, index: bool = True) -> Model:
    records = [Record((k % 3, 0), k if index else None, {"edr": value}) for k, value in values.items()]
    return Model(Path("nowhere/trajectory_metrics.json"), {}, records)


def model(*means: float) -> Model:
    """A model with a run for each of these means."""
    runs = [(str(seed), run({k: mean + (k - 4.5) / 100.0 for k in range(10)})) for seed, mean in enumerate(means, 1)]
    return merged(Path("m"), runs, ["edr"])


def test_mean_spread_and_welchs_test_are_scipys():
    (found,) = compare_seeds(model(*FIRST), model(*SECOND), ("a", "b"), 0.05)
    expected = stats.ttest_ind(FIRST, SECOND, equal_var=False)
    assert (found.test_statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert (found.figure, found.beyond_seeds, found.test_name) == ("edr", True, "Welch's t-test")
    for spread, values in ((found.first, FIRST), (found.second, SECOND)):
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (spread.mean, spread.std) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
        assert (spread.ci_low, spread.ci_high) == pytest.approx((low, high))
        assert list(spread.by_seed.values()) == pytest.approx(values)
    pooled = math.sqrt((np.var(FIRST, ddof=1) + np.var(SECOND, ddof=1)) / 2.0)
    assert found.in_stds == pytest.approx((np.mean(SECOND) - np.mean(FIRST)) / pooled)


def test_seeds_that_spread_as_far_as_the_models_differ_say_so():
    (found,) = compare_seeds(model(0.3, 0.5, 0.4), model(0.35, 0.55, 0.45), ("a", "b"), 0.05)
    assert found.beyond_seeds is False
    assert found.words == "seeds alone may explain the difference"


def test_one_run_has_no_spread_and_no_test():
    (found,) = compare_seeds(model(*FIRST), model(0.4), ("a", "b"), 0.05)
    assert found.beyond_seeds is None
    assert found.words.startswith("b has one run")
    assert math.isnan(found.second.std)
    assert found.in_stds == pytest.approx((0.4 - np.mean(FIRST)) / np.std(FIRST, ddof=1))
    assert compare_seeds(model(0.3), model(0.4), ("a", "b"), 0.05) == []


@pytest.mark.parametrize(("other", "beyond"), [(0.3, False), (0.4, True)])
def test_runs_that_are_all_the_same(other, beyond):
    (found,) = compare_seeds(model(0.3, 0.3), model(other, other), ("a", "b"), 0.05)
    assert (found.beyond_seeds, found.test_name, math.isnan(found.p_value)) == (beyond, "none", True)
    assert "no spread" in found.words


def test_the_runs_of_a_model_become_one_by_real_trajectory():
    both = merged(Path("m"), [("1", run({0: 1.0, 1: 2.0})), ("2", run({1: 4.0, 5: 9.0}))], ["edr"])
    assert {record.real_traj_idx: record.values["edr"] for record in both.records} == {0: 1.0, 1: 3.0, 5: 9.0}
    unnamed = [("1", run({0: 1.0, 3: 2.0}, index=False)), ("2", run({0: 3.0, 3: 6.0, 6: 7.0}, index=False))]
    assert [r.values["edr"] for r in merged(Path("m"), unnamed, ["edr"]).records] == [2.0, 4.0, 7.0], "in order"


def write(folder: Path, values: np.ndarray, jsd: float, **metadata) -> None:
    folder.mkdir(parents=True)
    records = [{"od_pair": [k, 0], "real_traj_idx": k, "edr": value} for k, value in enumerate(values.tolist())]
    head = {"od_source": "test", "grid_size": 0.001, "edr_eps": 100.0, **metadata}
    (folder / "trajectory_metrics.json").write_text(json.dumps({"metadata": head, "trajectory_metrics": records}))
    results = {"divergences": {"distance_km": {"jsd": jsd}, "step_min": None}, "match_rates": {"pair": {"rate": 0.5}}}
    (folder / "results.json").write_text(json.dumps(results))


def test_seed_folders_go_through_the_command(tmp_path, capsys):
    rng = np.random.default_rng(3)
    base = rng.random(40)
    for name, shift in (("near", 0.0), ("far", 0.4)):
        for seed in (1, 2, 3):
            write(tmp_path / "eval" / name / f"seed{seed}", base + shift + 0.01 * rng.random(40), 0.1 * seed + shift)
    words = ["--metrics", "edr", "--out", str(tmp_path / "o.json"), "--report", str(tmp_path / "r.html")]
    assert main(["evaluate", "paired", str(tmp_path / "eval"), *words]) == 0
    document = json.loads((tmp_path / "o.json").read_bytes())
    assert [run["seed"] for run in document["metadata"]["models"][0]["runs"]] == ["1", "2", "3"]
    across = {k["figure"]: k for k in document["across_seeds"]}
    assert list(across) == ["edr", "rate pair", "jsd distance_km"]
    assert across["edr"]["beyond_seeds"] is True
    assert across["jsd distance_km"]["first"]["by_seed"] == pytest.approx({"1": 0.5, "2": 0.6, "3": 0.7})
    assert across["rate pair"]["beyond_seeds"] is False
    text = capsys.readouterr().out
    assert "far: values are means over its 3 runs (seeds 1, 2, 3)" in text
    assert "edr: they differ by more than their seeds do (difference 0.4" in text
    assert "across seeds" in (tmp_path / "r.html").read_text()


def test_seeds_on_different_grids_are_refused(tmp_path, capsys):
    for name in ("a", "b"):
        for seed in (1, 2):
            size = 0.5 if (name, seed) == ("b", 2) else 0.001
            write(tmp_path / name / f"seed{seed}", np.arange(9.0) * seed, 0.1, grid_size=size)
    assert main(["evaluate", "paired", str(tmp_path / "a"), str(tmp_path / "b"), "--metrics", "edr"]) == 1
    assert "grid_size is 0.5, but 0.001 in" in capsys.readouterr().err
