"""`bench peers`: the table, its history and its comparison with an earlier result; and that the plain filter is one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from watchkeeper.benchmarks import peers
from watchkeeper.benchmarks.peers import Line, Result
from watchkeeper.benchmarks.plain import ekf
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate


def saved(path: Path, times: float) -> Path:
    lines = [Line("tracks", "plain Python", "ms", 1.0, times), Line("mqtt", "paho", "us", 1.0, 3.0)]
    path.write_bytes(msgspec.json.encode(Result("abc", "2026-01-01", lines)))
    return path


def test_a_run_is_printed_kept_drawn_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "TRACK_POINTS", 60)
    history, plot = tmp_path / "results" / "history.jsonl", tmp_path / "plot.png"
    words = ["--rounds", "1", "--only", "tracks", "reading", "--history", str(history), "--plot", str(plot)]
    assert peers.main([*words, "--check", str(saved(tmp_path / "slow.json", 0.001))]) == 0
    said = capsys.readouterr().out
    assert "left out: no --ulog" in said
    assert "mcap" in said
    assert "ok      tracks: plain Python" in said
    assert "mqtt: paho: not measured now" in said
    assert peers.main([*words, "--check", str(saved(tmp_path / "fast.json", 1e9))]) == 1
    assert "SLOWER  tracks: plain Python" in capsys.readouterr().out
    assert len(history.read_bytes().splitlines()) == 2
    assert plot.read_bytes().startswith(b"\x89PNG")


def shifted(batch: Batch, metres: float) -> Batch:
    """The last fix elsewhere."""
    gps = batch.kinds[Kind.GPS]
    data = gps.data.copy()
    data[COLUMN[Kind.GPS]["gps_x"], -1] += metres
    return batch.having({**batch.kinds, Kind.GPS: type(gps)(gps.seq, gps.vid, gps.via, gps.t, data)})


def test_the_plain_filter_follows_a_flight_and_sees_a_jump() -> None:
    flight = join(list(simulate("drones", vehicles=1, seconds=20.0).batches()))
    calm = ekf.judge(flight)
    assert np.isfinite(calm)
    assert ekf.judge(shifted(flight, 500.0)) > 10 * calm
