"""`evaluate paired`: how records of two models are paired, the documented folders, and errors that name the field."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.paired.files import Record, pair

METRICS = ("hausdorff_km", "hausdorff_norm", "dtw_km", "dtw_norm", "edr")


def record(number: int, value: float | None, **other) -> dict:
    return {
        "od_pair": [number % 7, number % 3], "real_traj_idx": number, "gen_traj_idx": number,
        **dict.fromkeys(METRICS, value), "len_real": 10, "len_gen": 12, **other,
    }  # fmt: skip


def write(folder: Path, records: list[dict], **metadata) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    head = {
        "generated_file": "gen.csv", "real_data_file": "real.csv", "od_source": "test",
        "evaluation_timestamp": "2025-01-01T00:00:00+00:00", "num_trajectory_comparisons": len(records),
        "grid_size": 0.001, "edr_eps": 100.0, **metadata,
    }  # fmt: skip
    (folder / "trajectory_metrics.json").write_text(json.dumps({"metadata": head, "trajectory_metrics": records}))
    return folder


def values(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    b = rng.gamma(2.0, 1.0, n)
    return b + rng.normal(0.5, 0.5, n), b


@pytest.fixture
def models(tmp_path) -> list[str]:
    """Two models; the second one's records are in another order."""
    a, b = values()
    first = write(tmp_path / "vanilla", [record(k, v) for k, v in enumerate(a.tolist())])
    second = write(tmp_path / "distilled", [record(k, v) for k, v in reversed(list(enumerate(b.tolist())))])
    return [str(first), str(second)]


def of(od: tuple[int, int], index: int | None) -> Record:
    return Record(od, index, {})


def test_records_are_paired_by_real_trajectory_whatever_their_order():
    first = [of((1, 2), 0), of((1, 2), 1), of((3, 4), 2)]
    second = [of((3, 4), 2), of((1, 2), 1), of((1, 2), 0)]
    found = pair(first, second)
    assert found.numbers == [(0, 2), (1, 1), (2, 0)]
    assert (found.by_index, found.by_order) == (3, 0)


def test_where_the_index_is_missing_they_are_paired_in_order_within_an_origin_and_destination():
    first = [of((1, 2), None), of((1, 2), None), of((3, 4), None)]
    second = [of((3, 4), None), of((1, 2), None), of((1, 2), None), of((1, 2), None)]
    found = pair(first, second)
    assert found.numbers == [(0, 1), (1, 2), (2, 0)]
    assert (found.by_index, found.by_order) == (0, 3)


def test_two_different_real_trajectories_are_never_paired():
    assert pair([of((1, 2), 0)], [of((1, 2), 1)]).numbers == []
    assert pair([of((1, 2), 0)], [of((1, 3), 0)]).numbers == [], "nor the same one with another destination"


def test_an_index_on_one_side_only_is_paired_in_order_after_those_that_agree():
    first, second = [of((1, 2), 5), of((1, 2), 6)], [of((1, 2), None), of((1, 2), 5)]
    found = pair(first, second)
    assert found.numbers == [(0, 1), (1, 0)]
    assert (found.by_index, found.by_order) == (1, 1)


def test_in_order_means_the_first_that_is_left_over_named_or_not():
    first = [of((1, 2), None), of((1, 2), None)]
    assert pair(first, [of((1, 2), 7), of((1, 2), None), of((1, 2), 8)]).numbers == [(0, 0), (1, 1)]
    assert pair(first, [of((1, 2), None), of((1, 2), 7)]).numbers == [(0, 0), (1, 1)]


some = st.lists(
    st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.none() | st.integers(0, 4)).map(lambda r: of(*r)),
    max_size=14,
)


@given(some, some)
def test_pairing_is_one_to_one_agrees_on_the_place_and_leaves_nothing_that_fits(first, second):
    found = pair(first, second).numbers
    assert len({i for i, _ in found}) == len({k for _, k in found}) == len(found)
    for i, k in found:
        a, b = first[i], second[k]
        assert a.od_pair == b.od_pair
        assert a.real_traj_idx == b.real_traj_idx or None in (a.real_traj_idx, b.real_traj_idx)
    rest = [r for i, r in enumerate(first) if i not in {i for i, _ in found}]
    others = [r for k, r in enumerate(second) if k not in {k for _, k in found}]
    for a in rest:
        for b in others:
            named = None not in (a.real_traj_idx, b.real_traj_idx)
            assert a.od_pair != b.od_pair or (named and a.real_traj_idx != b.real_traj_idx)


def test_the_results_are_scipys_on_the_paired_values(tmp_path, models, capsys):
    out = tmp_path / "paired_results.json"
    assert main(["evaluate", "paired", *models, "--out", str(out)]) == 0
    results = json.loads(out.read_bytes())
    assert results["matching"] == {
        "pairs": 40, "by_real_traj_idx": 40, "by_order": 0, "unmatched_model1": 0, "unmatched_model2": 0,
    }  # fmt: skip
    a, b = values()
    for result in results["results"]:
        assert (result["model1_name"], result["model2_name"]) == ("vanilla", "distilled")
        assert result["paired_t"]["p_value"] == stats.ttest_rel(a, b).pvalue
        assert result["wilcoxon"]["p_value"] == stats.wilcoxon(a, b).pvalue
    assert [r["metric_name"] for r in results["results"]] == ["hausdorff_norm", "dtw_norm", "edr"]
    text = capsys.readouterr().out
    assert "40 pairs, 40 by real trajectory" in text
    assert "dtw_norm: distilled is nearer (significant after Holm's correction)" in text


def test_a_folder_gets_the_documented_path_for_every_two_models(tmp_path, models):
    third = write(tmp_path / "third", [record(k, 1.0) for k in range(40)])
    out = tmp_path / "paired_analysis"
    assert main(["evaluate", "paired", *models, str(third), "--out", str(out)]) == 0
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*.json")) == [
        "test/distilled_vs_third/paired_results.json",
        "test/vanilla_vs_distilled/paired_results.json",
        "test/vanilla_vs_third/paired_results.json",
    ]


def test_result_folders_by_time_the_newest_counts_and_the_model_gives_the_name(tmp_path, capsys):
    for model, shift in (("a", 1.0), ("b", 0.0)):
        write(tmp_path / model / "eval" / "2025-01-01_12-00-00", [record(k, 99.0) for k in range(5)])
        newest = [record(k, shift + k * k) for k in range(5)]
        write(tmp_path / model / "eval" / "2025-01-02_12-00-00", newest)
    assert main(["evaluate", "paired", str(tmp_path / "a"), str(tmp_path / "b"), "--out", "-"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [model["name"] for model in results["metadata"]["models"]] == ["a", "b"]
    assert results["results"][0]["mean_difference"] == 1.0


def test_a_model_without_metrics_is_left_out_if_two_remain(tmp_path, models, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["evaluate", "paired", *models, str(tmp_path / "empty")]) == 0
    assert "empty: no trajectory_metrics.json in this folder, left out" in capsys.readouterr().err
    assert main(["evaluate", "paired", models[0], str(tmp_path / "empty")]) == 1
    assert "fewer than two models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([record(0, 1.0), record(1, 1.0)], "only 2 pairs: a test needs at least 3"),
        ([record(k, None) for k in range(5)], "no pair with two finite values"),
        ([record(k, math.nan) for k in range(5)], "5 pairs with a value that is not finite left out"),
        ([record(k, values()[0][k]) for k in range(20)], "the values are the same in every pair"),
    ],
)
def test_degenerate_results_get_a_clear_answer(tmp_path, models, capsys, records, words):
    other = write(tmp_path / "other", records)
    assert main(["evaluate", "paired", models[0], str(other), "--out", str(tmp_path / "r.json")]) == 0
    assert words in capsys.readouterr().out
    json.loads((tmp_path / "r.json").read_bytes(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([record(0, 1.0), record(1, "far")], 'record 1: hausdorff_norm is "far": expected a number'),
        ([record(0, 1.0, dtw_norm=True)], "record 0: dtw_norm is true: expected a number"),
        ([{k: v for k, v in record(0, 1.0).items() if k != "edr"}], "record 0: edr is missing"),
        ([record(0, 1.0, od_pair=None)], "record 0: od_pair is missing: expected two whole numbers"),
        ([record(0, 1.0, od_pair=[1, 2.5])], "record 0: od_pair is [1, 2.5]: expected two whole numbers"),
        ([record(0, 1.0, od_pair=[1])], "record 0: od_pair is [1]"),
        ([record(0, 1.0, real_traj_idx="x")], 'record 0: real_traj_idx is "x": expected a whole number'),
        ([3], "record 0 is 3: expected an object"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(tmp_path, models, capsys, records, words):
    bad = write(tmp_path / "bad", records)
    assert main(["evaluate", "paired", models[0], str(bad)]) == 1
    assert capsys.readouterr().err.startswith(f"watchkeeper: {bad / 'trajectory_metrics.json'}: {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a JSON document"),
        ("[]", "not an object with metadata and trajectory_metrics"),
        ('{"trajectory_metrics": []}', "metadata is missing: expected an object"),
        ('{"metadata": {"od_source": "test"}}', "metadata: grid_size is missing"),
        ('{"metadata": {"od_source": "test", "grid_size": 1, "edr_eps": "x"}}', 'metadata: edr_eps is "x"'),
        ('{"metadata": {"od_source": "test", "grid_size": 1, "edr_eps": 1}}', "trajectory_metrics is missing"),
    ],
)
def test_a_wrong_document_is_named(tmp_path, models, capsys, text, words):
    (bad := tmp_path / "bad.json").write_text(text)
    assert main(["evaluate", "paired", models[0], str(bad)]) == 1
    assert capsys.readouterr().err.startswith(f"watchkeeper: {bad}: {words}")


@pytest.mark.parametrize(("name", "value"), [("grid_size", 0.01), ("od_source", "train"), ("edr_eps", 50.0)])
def test_models_evaluated_differently_are_not_compared(tmp_path, models, capsys, name, value):
    other = write(tmp_path / "other", [record(k, 1.0) for k in range(40)], **{name: value})
    assert main(["evaluate", "paired", models[0], str(other)]) == 1
    assert f"metadata: {name} is {value}" in capsys.readouterr().err
    without_edr = main(["evaluate", "paired", models[0], str(other), "--metrics", "dtw_norm"])
    assert without_edr == (0 if name == "edr_eps" else 1), "eps is about EDR only"


BOUNDS = {"south": 48.0, "west": 2.0, "north": 49.0, "east": 3.0}


@pytest.mark.parametrize("side", list(BOUNDS))
def test_models_on_different_grids_are_refused_with_words(tmp_path, capsys, side):
    first = write(tmp_path / "first", [record(k, 1.0) for k in range(40)], grid_bounds=BOUNDS)
    second = write(tmp_path / "second", [record(k, 2.0) for k in range(40)], grid_bounds=BOUNDS | {side: 50.5})
    assert main(["evaluate", "paired", str(first), str(second)]) == 1
    error = capsys.readouterr().err
    assert f"{side} 50.5" in error
    assert "cannot be compared; run `evaluate tracks` for both with the same --bounds" in error


def test_the_same_grid_written_with_fewer_digits_is_the_same(tmp_path, capsys):
    first = write(tmp_path / "first", [record(k, 1.0 + k) for k in range(40)], grid_bounds=BOUNDS)
    moved = {side: value + 4e-10 for side, value in BOUNDS.items()}
    second = write(tmp_path / "second", [record(k, 2.0 * k) for k in range(40)], grid_bounds=moved)
    assert main(["evaluate", "paired", str(first), str(second)]) == 0
    assert "bounds" not in capsys.readouterr().out


def test_a_file_that_does_not_say_its_grid_is_remarked_upon(tmp_path, models, capsys):
    other = write(tmp_path / "other", [record(k, 1.0 + k) for k in range(40)], grid_bounds=BOUNDS)
    assert main(["evaluate", "paired", models[0], str(other)]) == 0
    assert f"{models[0]}/trajectory_metrics.json does not say its grid's bounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([1, 2, 3, 4], "grid_bounds is [1, 2, 3, 4]: expected an object with south, west, north, east"),
        (BOUNDS | {"north": "far"}, 'grid_bounds.north is "far": expected a number'),
        ({"south": 1.0}, "grid_bounds.west is missing: expected a number"),
    ],
)
def test_wrong_bounds_are_named(tmp_path, models, capsys, bounds, words):
    other = write(tmp_path / "other", [record(k, 1.0) for k in range(40)], grid_bounds=bounds)
    assert main(["evaluate", "paired", models[0], str(other)]) == 1
    assert words in capsys.readouterr().err


def test_other_real_data_is_remarked_upon(tmp_path, models, capsys):
    other = write(tmp_path / "other", [record(k, 1.0 + k) for k in range(40)], real_data_file="elsewhere.csv")
    assert main(["evaluate", "paired", models[0], str(other)]) == 0
    assert "different files: real.csv and elsewhere.csv" in capsys.readouterr().out


def test_nothing_in_common_fails(tmp_path, models, capsys):
    other = write(tmp_path / "other", [record(k + 1000, 1.0) for k in range(5)])
    assert main(["evaluate", "paired", models[0], str(other)]) == 1
    assert "no record in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--names", "a"), "expected 2 different names"),
        (("--names", "a", "a"), "expected 2 different names"),
        (("--names", "a", "../b"), "no / in it"),
    ],
)
def test_names_must_fit(models, capsys, arguments, words):
    assert main(["evaluate", "paired", *models, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_model_is_not_compared_with_itself_nor_three_in_one_file(tmp_path, models, capsys):
    assert main(["evaluate", "paired", models[0], models[0]]) == 2
    assert "cannot be compared with itself" in capsys.readouterr().err
    third = write(tmp_path / "third", [record(k, 1.0) for k in range(40)])
    assert main(["evaluate", "paired", *models, str(third), "--out", str(tmp_path / "all.json")]) == 2
    assert "--out takes a folder" in capsys.readouterr().err


def test_without_statsmodels_it_says_what_to_install(models, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["evaluate", "paired", *models]) == 1
    assert 'pip install "watchkeeper[stats]"' in capsys.readouterr().err


def test_the_picture_counts_who_is_nearer(tmp_path, models):
    a, b = values()
    plot = tmp_path / "differences.svg"
    assert main(["evaluate", "paired", *models, "--plot", str(plot)]) == 0
    drawn = plot.read_text()
    assert f"<!-- vanilla nearer: {(a < b).sum()} -->" in drawn
    assert f"<!-- distilled nearer: {(a > b).sum()} -->" in drawn


def test_the_report_is_one_page_that_loads_nothing(tmp_path, models):
    report = tmp_path / "report.html"
    assert main(["evaluate", "paired", *models, "--report", str(report)]) == 0
    page = report.read_text()
    for word in (
        "vanilla (1) and distilled (2)",
        "40 pairs",
        "dtw_norm: distilled is nearer",
        "data:image/svg+xml;base64,",
    ):
        assert word in page
    assert not re.search(r"(src|href)=.?(http|/)|<script|<link|@import|url\(", page)
