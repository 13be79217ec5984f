"""`replay --workers N`: the same alarms and coverage from several processes, and what cannot be had with them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


def test_workers_write_the_same_alarms_and_the_same_coverage(tmp_path: Path) -> None:
    log = tmp_path / "fleet.wklog"
    with LogWriter(log) as writer:
        for batch in simulate("demo", seed=4, seconds=60).batches():
            writer.write(batch)
    found = []
    for more in ([], ["--workers", "2"]):
        alarms, summary = tmp_path / f"{len(more)}.jsonl", tmp_path / f"{len(more)}.json"
        assert main(["replay", str(log), "--alarms", str(alarms), "--summary", str(summary), *more]) == 0
        said = msgspec.json.decode(summary.read_bytes())
        used = said.pop("workers", {})
        for tally in said["coverage"].values():
            # a few names as examples: which of many is not said
            tally.pop("examples")
        found.append((alarms.read_bytes(), {key: value for key, value in said.items() if key != "ticks"}))
    assert found[0] == found[1]
    assert found[0][0]
    assert sorted(used) == ["fleet", "vehicles 1 of 2", "vehicles 2 of 2"]


@pytest.mark.parametrize("more", [["--http", "0"], ["--trace", "-"], ["--report", "x.html"]])
def test_what_looks_into_one_pipeline_is_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "any.wklog", "--workers", "2", *more]) == 2
    assert f"{more[0]} looks into one pipeline" in capsys.readouterr().err
