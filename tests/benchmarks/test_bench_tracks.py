"""`bench tracks` prints time, ratio and memory of each metric, and fails when a promise is broken."""

from __future__ import annotations

import json

import pytest

from watchkeeper.benchmarks import tracks
from watchkeeper.benchmarks.tracks import Row
from watchkeeper.daemon.cli import main

GOOD = Row("dtw", 2000, 30.0, 6000.0, 20_000, 2_000_000, 13.5, 13.5)


def test_a_small_run_measures_all_three_and_agrees_with_plain_python(tmp_path, capsys):
    out = tmp_path / "result.json"
    arguments = ["--points", "300", "--memory-points", "8000", "--rounds", "3", "--out", str(out)]
    assert main(["bench", "tracks", *arguments]) == 0, capsys.readouterr().out
    rows = {row["metric"]: row for row in json.loads(out.read_bytes())}
    assert list(rows) == ["hausdorff", "dtw", "edr"]
    for row in rows.values():
        assert row["ratio"] >= 20.0
        assert row["value"] == pytest.approx(row["plain_value"], rel=1e-9)
        # one row of 8,000 is 64 kB; all distances would be 512 MB
        assert 0 <= row["extra_bytes"] < 5_000_000
    assert "same figures" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"ours_ms": 301.0}, ["19.9 times as fast, 20 promised"]),
        ({"value": 13.6}, ["13.6 is not plain Python's 13.5"]),
        ({"extra_bytes": 32_000_001}, ["32,000,001 bytes are more than a hundredth of the matrix"]),
    ],
)
def test_each_promise_can_be_broken(change, words, monkeypatch, capsys):
    fields = {name: getattr(GOOD, name) for name in GOOD.__struct_fields__} | change
    assert Row(**fields).problems == words
    monkeypatch.setattr(tracks, "_measure", lambda *a: Row(**fields))
    assert main(["bench", "tracks"]) == int(bool(words))
    assert capsys.readouterr().out.count("MISS") == 3 * len(words)
