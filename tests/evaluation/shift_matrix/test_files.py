"""The shift matrix from frames, tables and results of `evaluate conflicts`, and what is said of bad ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import watchkeeper as wk
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.shift_matrix import simulated
from watchkeeper.streams.frames.cells import FrameError

ROWS = [
    {"trained_on": trained, "judged_on": judged, "seed": seed, "f1_score": 1.0 - 0.3 * (trained != judged) - seed / 50}
    for trained in ("a", "b")
    for judged in ("a", "b")
    for seed in range(4)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def table(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def result_file(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    keys = ("trained_on", "judged_on", "seed")
    episodes = [
        {"meta": {key: row[key] for key in keys if key in row}, "metrics": {"f1_score": row["f1_score"]}}
        for row in rows
    ]
    path.write_bytes(msgspec.json.encode({"episodes": episodes}))
    return path


def plain(result: Any) -> str:
    return msgspec.json.encode(result.to_dict()).decode()


def test_every_way_in_gives_the_same_matrix(tmp_path: Path) -> None:
    expected = plain(wk.evaluate.shift_matrix(COLUMNS))
    frames = (pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pl.DataFrame(COLUMNS).lazy(), pa.table(COLUMNS))
    files = (table(tmp_path / "e.csv"), result_file(tmp_path / "e.json"))
    for data in (*frames, *files, [pl.DataFrame(COLUMNS)[:5], pd.DataFrame(COLUMNS)[5:]]):
        assert plain(wk.evaluate.shift_matrix(data)) == expected


def test_cells_may_be_named_from_outside(tmp_path: Path) -> None:
    whole = pl.DataFrame(COLUMNS)
    cells = {
        (trained, judged): whole.filter(trained_on=trained, judged_on=judged).select("seed", "f1_score")
        for trained in "ab"
        for judged in "ab"
    }
    assert plain(wk.evaluate.shift_matrix(cells)) == plain(wk.evaluate.shift_matrix(COLUMNS))
    words, out = [], tmp_path / "out.json"
    for (trained, judged), frame in cells.items():
        frame.write_csv(tmp_path / f"{trained}{judged}.csv")
        words += ["--cell", trained, judged, str(tmp_path / f"{trained}{judged}.csv")]
    assert main(["evaluate", "shift_matrix", *words, "--out", str(out)]) == 0
    assert json.loads(out.read_text()) == json.loads(plain(wk.evaluate.shift_matrix(COLUMNS)))


def test_the_column_names_of_other_tools_and_ones_own_are_understood() -> None:
    theirs = {
        "baseline_scenario": "trained_on",
        "test_scenario": "judged_on",
        "model_alias": "model",
        "episode_id": "seed",
    }
    data = {name: COLUMNS.get(ours, ["m"] * len(ROWS)) for name, ours in theirs.items()} | {
        "f1_score": COLUMNS["f1_score"]
    }
    result = wk.evaluate.shift_matrix(data, seed_key="episode_id")
    assert [m.metric for m in result.matrices] == ["f1_score"]
    assert plain(result) == plain(wk.evaluate.shift_matrix(COLUMNS))


def test_a_result_of_evaluate_conflicts_goes_in_as_it_is(tmp_path: Path) -> None:
    made = [one for one in simulated.episodes(3) if one["scenario_metadata"]["trained_on"] != "crossing"]
    result = wk.evaluate.conflicts(made)
    expected = plain(wk.evaluate.shift_matrix(result, resamples=200))
    (tmp_path / "m.json").write_bytes(msgspec.json.encode(result.to_dict()))
    assert plain(wk.evaluate.shift_matrix(tmp_path / "m.json", resamples=200)) == expected
    matrix = wk.evaluate.shift_matrix(result, metrics=["reward_total"], resamples=200)["reward_total"]
    own = [e["metrics"]["reward_total"] for e in result.episodes if e["meta"]["judged_on"] == "crossing"][:3]
    assert matrix.grid("mean")[0, matrix.judged_on.index("crossing")] == pytest.approx(sum(own) / 3)


def test_frames_out_have_a_row_per_cell_and_per_gap() -> None:
    result = wk.evaluate.shift_matrix(COLUMNS)
    cells, gaps = result.to_frame("polars"), result.to_frame("pandas", table="gaps")
    assert cells.height == 4
    assert cells.filter(trained_on="a", judged_on="b")["difference"].to_list() == pytest.approx([-0.3])
    assert gaps["trained_on"].tolist() == ["a", "b", ""]
    assert gaps["gap"].tolist() == pytest.approx([-0.3] * 3)
    with pytest.raises(ValueError, match="cells, gaps"):
        result.to_frame(table="rows")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "episodes: missing, expected what"),
        ('{"episodes": [{"meta": {}}]}', r"episodes\[0\].metrics: missing"),
        ('{"episodes": [{"meta": {"trained_on": "a"}, "metrics": {}}]}', r"episodes\[0\].meta.judged_on: missing"),
        (
            '{"episodes": [{"meta": {"trained_on": "a", "judged_on": "a"}, "metrics": {"tp": "x"}}]}',
            r"episodes\[0\].metrics.tp: is 'x', expected a finite number or null",
        ),
        (
            '{"episodes": [{"meta": {"trained_on": "a", "judged_on": "a"}, "metrics": {"tp": 1' + "0" * 400 + "}}]}",
            r"episodes\[0\].metrics.tp: is 10000",
        ),
        ("[1, 2", "JSON"),
        ("trained_on,f1_score\na,1\n", "no column judged_on or test_scenario or scenario"),
        ("trained_on,judged_on,f1_score\na,,1\n", "row 0: judged_on: missing, expected the name of a scenario"),
        ("trained_on,judged_on,f1_score\na,a,1\na,a,good\n", "row 1: f1_score: 'good' is not a number"),
        ("trained_on,judged_on,f1_score\na,a\n", "line 2: 2 values, the header has 3"),
        ("trained_on,judged_on,f1_score\n", "no rows"),
        ("trained_on,judged_on,remark\na,a,good\n", "no column of numbers"),
        ("trained_on,judged_on,f1_score\na,b,1\n", "judged on what it was trained on"),
    ],
)  # fmt: skip
def test_bad_files_are_named_with_place_key_and_range(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("bad.csv" if content.startswith("trained") else "bad.json")
    path.write_text(content)
    assert main(["evaluate", "shift_matrix", str(path)]) == 1
    error = capsys.readouterr().err
    assert re.search(said, error), error


def test_bad_frames_and_metrics_are_named() -> None:
    with pytest.raises(FrameError, match="no column trained_on or baseline_scenario"):
        wk.evaluate.shift_matrix({"judged_on": ["a"], "f1_score": [1.0]})
    with pytest.raises(ValueError, match="metric 'f2': in no episode; there are: f1_score"):
        wk.evaluate.shift_matrix(COLUMNS, metrics=["f2"])
    with pytest.raises(ValueError, match="alpha 2: expected a number between 0 and 1"):
        wk.evaluate.shift_matrix(COLUMNS, alpha=2)


def test_the_command_writes_table_json_heat_map_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {name: tmp_path / name for name in ("m.json", "m.png", "m.html")}
    words = ["--out", str(paths["m.json"]), "--plot", str(paths["m.png"]), "--report", str(paths["m.html"])]
    assert main(["evaluate", "shift_matrix", str(table(tmp_path / "e.csv")), *words]) == 0
    printed = capsys.readouterr().out
    assert "[0.97 ± 0.026 (4)]" in printed
    assert "-0.3 (-0.3 to -0.3) × 0.69" in printed
    assert "worse elsewhere" in printed
    assert json.loads(paths["m.json"].read_text())["matrices"][0]["trained_on"] == ["a", "b"]
    assert paths["m.png"].read_bytes().startswith(b"\x89PNG")
    page = paths["m.html"].read_text()
    assert "ratio to the diagonal" in page
    assert "data:image/svg+xml" in page


def test_without_input_it_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "shift_matrix"]) == 2
    assert main(["evaluate", "shift_matrix", "e.csv", "--keep", str(tmp_path)]) == 2
    assert "--keep is about simulated episodes" in capsys.readouterr().err


def test_simulated_models_are_the_same_each_time_and_can_be_kept(tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("a.json", "b.json")]
    how = ["--metrics", "f1_score", "--resamples", "100", "--quiet"]
    assert (
        main(["evaluate", "shift_matrix", "--simulate", "3", *how, "--keep", str(tmp_path / "e"), "--out", str(out[0])])
        == 0
    )
    files = sorted(map(str, (tmp_path / "e").glob("*.json")))
    assert len(files) == 27
    assert main(["evaluate", "conflicts", *files, "--quiet", "--out", str(tmp_path / "c.json")]) == 0
    assert main(["evaluate", "shift_matrix", str(tmp_path / "c.json"), *how, "--out", str(out[1])]) == 0
    cells = [{str(c) for c in json.loads(path.read_text())["matrices"][0]["cells"]} for path in out]
    assert cells[0] == cells[1]
