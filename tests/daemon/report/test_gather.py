"""What a report gathers while a log is replayed: against the log itself, and without a trace in the alarms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import watchkeeper as wk
from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.report.gather.rows import Rows
from watchkeeper.daemon.report.gather.streams import Streams
from watchkeeper.daemon.report.make import Recorder
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.sections.ways import ways_out
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.logs.source import open_log, read_logs
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

CONFIG = load(None, env={}, overrides={"fleet": {"max_vehicles": 100}})


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "demo.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("demo", seconds=70, seed=1).batches():
            writer.write(batch)
    return path


def gathered(path: Path, chunk: int | None = None) -> tuple[Result, bytes]:
    lines: list[bytes] = []
    replay = Replay(CONFIG, lambda event: lines.append(encode_event(event)))
    recorder = Recorder(replay)
    source = open_log(path)
    replay.run(read_logs([source], chunk=chunk))
    return recorder.result([source], ["watchkeeper"]), b"\n".join(lines)


def test_looking_on_changes_no_byte_of_the_alarms(demo: Path) -> None:
    lines: list[bytes] = []
    Replay(CONFIG, lambda event: lines.append(encode_event(event))).run(read_logs([open_log(demo)]))
    assert gathered(demo)[1] == b"\n".join(lines)


def test_the_same_is_gathered_however_the_log_is_cut(demo: Path) -> None:
    (one, _), (other, _) = gathered(demo), gathered(demo, chunk=777)
    assert one.collector.rows.names == other.collector.rows.names
    for kind, envelope in one.collector.scores.items():
        np.testing.assert_array_equal(envelope.hi, other.collector.scores[kind].hi)
    for kind, readings in one.collector.readings.items():
        np.testing.assert_array_equal(readings.lo, other.collector.readings[kind].lo)


def test_every_peak_of_every_score_is_there(demo: Path) -> None:
    result, _ = gathered(demo)
    scores = wk.scores(str(demo), config=CONFIG, backend="pandas")
    for kind, envelope in result.collector.scores.items():
        for row, name in enumerate(result.collector.rows.names[: envelope.rows]):
            own = scores[(scores["kind"] == kind) & (scores["subject"] == name)]
            if len(own):
                expected = (own["score"] / own["threshold"]).max()
                assert np.nanmax(envelope.hi[0, row]) == pytest.approx(expected, rel=1e-6), (kind, name)


def test_who_was_judged_is_what_the_python_face_says(demo: Path) -> None:
    result, _ = gathered(demo)
    frame = wk.watch(str(demo), config=CONFIG).coverage
    rows = frame.to_dict("records") if hasattr(frame, "to_dict") else frame.to_pylist()
    expected = {(row["id"], row["detector"]): (bool(row["watched"]), row["reason"]) for row in rows}
    found = {
        (name, verdict.detector): (verdict.state != "not", verdict.reason)
        for row, name in enumerate(result.collector.rows.names)
        for verdict in result.collector.judged.of(row)
    }
    assert found == expected


def test_samples_of_all_streams_are_counted(demo: Path) -> None:
    result, _ = gathered(demo)
    samples = result.replay.pipeline.samples
    for kind, streams in result.collector.streams.items():
        assert streams.samples.sum() == samples[kind.word]
    imu = result.collector.streams[Kind.IMU].of(result.collector.rows.get("quad-1"))
    assert imu is not None
    assert imu.rate_hz == pytest.approx(50.0, rel=0.06)


def test_rate_and_longest_hole_survive_any_cut() -> None:
    t = np.concatenate((np.arange(0.0, 10.0, 0.2), np.arange(17.0, 30.0, 0.2)))
    for cut in (1, 30, 50, 51, 70):
        streams = Streams()
        for part in np.split(t, [cut]):
            streams.add(np.zeros(len(part), np.int64), part)
        found = streams.of(0)
        assert found is not None
        assert (found.samples, found.t_first, found.t_last) == (len(t), 0.0, t[-1])
        assert found.rate_hz == pytest.approx(5.0, rel=0.06)
        assert (found.gap_s, found.gap_t) == (pytest.approx(7.2), pytest.approx(9.8))


@pytest.mark.parametrize("names", [("a", "b"), ("quadcopter-01", "quadcopter-02")])
def test_a_slot_that_is_given_to_another_vehicle_is_another_row(names: tuple[str, str]) -> None:
    fleet, rows = Fleet(DEFAULT.fleet), Rows(most=2)
    slot = np.array([fleet.slot_for(names[0])], np.int32)
    assert rows.of(fleet, slot).tolist() == [0]
    fleet.forget(slot, 1.0)
    assert fleet.slot_for(names[1]) == slot[0]
    assert rows.of(fleet, slot).tolist() == [1]
    assert rows.names == list(names)
    third = np.array([fleet.slot_for("third")], np.int32)
    assert rows.of(fleet, third).tolist() == [-1]
    assert rows.without == 1


def test_ways_out_of_a_conflict_are_on_its_card(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "head-on.wklog") as writer:
        for batch in simulate("head-on", seconds=60, seed=1, vehicles=2).batches():
            writer.write(batch)
    result, _ = gathered(tmp_path / "head-on.wklog")
    (life,) = [life for life in result.lives if life.first.kind == "conflict"]
    page = str(ways_out(result, life))
    for way in life.first.evidence["ways"]:
        for low, high in way["trk_deg"]["free"]:
            assert f"clear {low:03.0f}° to {high:03.0f}°" in page
        assert f"now {way['gs_kt']['now']:.0f} kt" in page
    assert "No instruction" in page
    assert all(ways_out(result, life) is None for life in result.lives if life.first.kind == "los")


def test_the_least_separation_of_a_conflict_is_told(demo: Path) -> None:
    result, _ = gathered(demo)
    pairs = [life for life in result.lives if life.first.kind in ("conflict", "los")]
    assert pairs
    for life in pairs:
        assert life.worst.evidence["sep_nm"] <= life.first.evidence["sep_nm"]
        assert not math.isnan(life.worst.t)
