"""The history through its life: eras, retention, a full disk, a damaged file, kill -9, and what the journal knows."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from waiting import wait_for

from watchkeeper.config.history import History as Settings
from watchkeeper.config.schema import DEFAULT, FleetLimits
from watchkeeper.daemon.history import alarms, keeping, past, writing
from watchkeeper.daemon.history.blocks import BUCKET_S, Rows
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.history.layers import ratios
from watchkeeper.daemon.history.reader import era_of, eras, series
from watchkeeper.daemon.history.tables import VERSION, open_for_reading, open_for_writing
from watchkeeper.daemon.history.writer import Writer, size_bytes
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.simulate import simulate

CONFIG = msgspec.structs.replace(DEFAULT, fleet=FleetLimits(max_vehicles=100))
LAYER = ratios("scores", ["kinematics"])


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    writers: list[Writer] = []

    def make(**settings: float) -> Writer:
        writer = Writer(tmp_path / "history.sqlite", Settings(**settings), patient=True)
        writers.append(writer)
        writer.start()
        return writer

    yield make
    for writer in writers:
        writer.close()


def frames(writer: Writer, first_t: float, last_t: float, vehicles: int = 20, era: int = 1) -> None:
    """A sample of everybody every five seconds, of numbers that do not pack well."""
    rng = np.random.default_rng(1)
    codes = np.arange(vehicles, dtype=np.int64)
    for t in np.arange(first_t, last_t, 5.0):
        t_ms = np.full(vehicles, round(t % BUCKET_S * 1000.0), np.int32)
        data = rng.integers(-(2**30), 2**30, (1, vehicles)).astype(np.int32)
        writer.era, writer.t = era, float(t)
        writer.put(writing.frame(era, float(t), LAYER, Rows(codes, t_ms, data)))


def run(history: History, replay: Replay, batches: list[Batch]) -> None:
    replay.watchers.append(history.recorder.take)
    replay.listeners.append(history.put)
    replay.run(batches)
    assert history.writer.flush(20.0)


def test_samples_are_the_same_before_and_after_they_are_packed(opened: Callable[..., Writer]) -> None:
    writer = opened()
    frames(writer, 900.0, 1000.0)
    assert writer.flush(10.0)
    db = open_for_reading(writer.path)
    before = db.execute("SELECT count(*) FROM frames").fetchone()[0]
    assert before == 20
    one = _samples(db, 7)
    frames(writer, 1000.0, 1400.0)
    assert writer.flush(10.0)
    wait_for(lambda: db.execute("SELECT count(*) FROM frames WHERE bucket = 5").fetchone()[0] == 0)
    again = _samples(db, 7)
    assert again[: len(one)] == one
    assert len(again) == 100


def _samples(db: sqlite3.Connection, code: int) -> list[tuple[float, int]]:
    from watchkeeper.daemon.history.reader import _samples as read  # noqa: PLC0415

    times, data = read(db, 1, 1, 1, code, 0.0, 1e6)
    return list(zip(times.tolist(), data[0].tolist(), strict=True))


def test_what_is_older_than_the_hours_goes(opened: Callable[..., Writer]) -> None:
    writer = opened(hours=0.5)
    frames(writer, 0.0, 2 * 3600.0)
    assert writer.flush(20.0)
    db = open_for_reading(writer.path)
    oldest_t = 7200 - writer.settings.hours * 3600.0 - 2 * BUCKET_S

    def first_bucket() -> int:
        return int(db.execute("SELECT min(bucket) FROM blocks").fetchone()[0] or 0)

    wait_for(lambda: first_bucket() * BUCKET_S >= oldest_t)
    wait_for(lambda: db.execute("SELECT max(bucket) FROM blocks").fetchone()[0] * BUCKET_S > 6600)
    (era,) = eras(db)
    assert era.t_first >= oldest_t


def test_the_file_does_not_grow_beyond_its_limit(opened: Callable[..., Writer]) -> None:
    writer = opened(max_mb=16)
    highest = 0
    for hour in range(12):
        frames(writer, 3600.0 * hour, 3600.0 * (hour + 1), vehicles=600)
        assert writer.flush(60.0)
        highest = max(highest, size_bytes(writer.path))
    assert writer.removed_buckets > 0
    assert highest <= (16 << 20) + (9 << 20), highest
    assert not writer.health()
    newest = open_for_reading(writer.path).execute("SELECT max(bucket) FROM frames").fetchone()[0]
    assert newest * BUCKET_S > 12 * 3600 - 2 * BUCKET_S


def test_a_clock_that_went_back_begins_an_era_and_mixes_nothing(tmp_path: Path) -> None:
    replay = Replay(CONFIG)
    history = History(tmp_path / "history.sqlite", Settings(), replay.pipeline, patient=True)
    history.start()
    first = list(simulate("head-on", seconds=600.0).batches())
    run(history, replay, [*first, *simulate("head-on", seconds=600.0).batches()])
    found = history.reader.use(eras)
    assert len(found) == 2
    rows = history.reader.use(lambda db: alarms.listed(db, alarms.Wanted(limit=1000)))
    by_era = {era.era: {row.id for row in rows if row.era == era.era} for era in found}
    # the same simulation twice: the same alarms twice, one set in each era
    assert by_era[found[0].era] == by_era[found[1].era] != set()
    reset = {row.id for row in rows if row.era == found[1].era and row.state != "cleared"}
    assert not reset
    history.close()


def test_after_a_restart_the_era_goes_on_unless_time_went_back(tmp_path: Path) -> None:
    batches = list(simulate("head-on", seconds=600.0).batches())
    half = len(batches) // 2
    for part in (batches[:half], batches[half:], batches[:half]):
        replay = Replay(CONFIG)
        history = History(tmp_path / "history.sqlite", Settings(), replay.pipeline, patient=True)
        history.start()
        run(history, replay, part)
        found = history.reader.use(eras)
        history.close()
    assert len(found) == 2
    assert found[1].t_last - found[1].t_first > 500.0
    assert found[0].t_last < found[1].t_last - 200.0


def test_a_damaged_file_is_set_aside_and_the_journal_fills_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.write_bytes(b"this is no database at all" * 1000)
    replay = Replay(CONFIG)
    history = History(path, Settings(), replay.pipeline, patient=True)
    event = AlarmEvent(
        id="00000000000000aa", kind="conflict", state="cleared", severity="caution", subjects=("a", "b"), t=5.0,
        t_onset=1.0, t_raised=2.0, t_cleared=5.0, score=1.0, threshold=1.0, evidence={}, ended="cause_gone",
    )  # fmt: skip
    history.start([event])
    wait_for(lambda: history.writer.opened and not history.waiting)
    assert "set aside as history.sqlite.damaged" in history.health()[0]
    assert (tmp_path / "history.sqlite.damaged").exists()
    (row,) = history.reader.use(lambda db: alarms.listed(db, alarms.Wanted()))
    assert row.id == event.id
    history.close()


# By version: what makes a file of that version of one of the next.
UNDONE = {
    2: "DROP INDEX alarms_by_end; DROP INDEX subjects_by_alarm; CREATE TABLE shelves (shelf TEXT);",
    1: "ALTER TABLE alarms DROP COLUMN incident;",
}


def shape(db: sqlite3.Connection) -> dict[str, set[str]]:
    """Columns by table and by index."""
    names = db.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: {str(row[1 if kind == "table" else 2]) for row in db.execute(f"PRAGMA {kind}_info({name})")}
            for kind, name in names}  # fmt: skip


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_file_of_an_earlier_version_is_brought_to_this_one(tmp_path: Path, version: int) -> None:
    path = tmp_path / "history.sqlite"
    event = AlarmEvent(
        id="00000000000000aa", kind="silence", state="raised", severity="caution", subjects=("a",), t=2.0,
        t_onset=1.0, t_raised=2.0, t_cleared=None, score=1.0, threshold=1.0, evidence={},
    )  # fmt: skip
    db = open_for_writing(path, 1 << 24)
    fresh = shape(db)
    writing.event(1, event, "said", "words")(db)
    for number in range(VERSION - 1, version - 1, -1):
        db.executescript(UNDONE[number])
    db.executescript(f"PRAGMA user_version = {version};")
    assert shape(db) != fresh
    db.close()
    db = open_for_writing(path, 1 << 24)
    assert shape(db) == fresh
    writing.event(1, msgspec.structs.replace(event, id="00000000000000bb", kind="incident"), "said", "words")(db)
    joined = msgspec.structs.replace(event, state="updated", t=3.0, incident="00000000000000bb")
    assert [alarms.count(db, alarms.Wanted(symptoms=some)) for some in (None, False, True)] == [2, 2, 0]
    writing.event(1, joined, "said", "words")(db)
    assert [alarms.count(db, alarms.Wanted(symptoms=some)) for some in (None, False, True)] == [2, 1, 1]
    assert alarms.active_subjects(db, 1, 4.0) == {"a": 1}
    db.close()


def test_alarms_of_a_moment_are_found_without_walking_through_those_of_the_day(tmp_path: Path) -> None:
    """Steps of SQLite's machine, which are no times: the subjects of all alarms were read for those of one moment."""
    db = open_for_writing(tmp_path / "history.sqlite", 1 << 26)
    made = AlarmEvent(
        id="", kind="los", state="cleared", severity="caution", subjects=("a", "b"), t=0.0, t_onset=0.0, t_raised=0.0,
        t_cleared=0.0, score=1.0, threshold=1.0, evidence={}, ended="cause_gone",
    )  # fmt: skip
    db.execute("BEGIN")
    for n in range(2000):
        t = 10.0 * n
        event = msgspec.structs.replace(made, id=f"{n:016x}", t=t + 15, t_onset=t, t_raised=t, t_cleared=t + 15)
        writing.event(1, event, "", "")(db)
    db.execute("COMMIT")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    db.set_progress_handler(count, 100)
    assert alarms.active_subjects(db, 1, 19_011.0) == {"a": 2, "b": 2}
    assert 0 < steps < 5000
    db.close()


def test_a_disk_that_is_full_is_said_and_what_waited_is_written_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
    try:
        writer = Writer(disk / "history.sqlite", Settings(), patient=False)
        writer.start()
        frames(writer, 0.0, 300.0, vehicles=10)
        assert writer.flush(10.0)
        filler = disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        frames(writer, 300.0, 2000.0, vehicles=200)
        wait_for(lambda: writer.trouble)
        assert "not written: database or disk is full" in writer.health()[0] or "disk I/O" in writer.health()[0]
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        assert writer.flush(20.0)
        assert not writer.trouble
        db = open_for_reading(writer.path)
        assert db.execute("SELECT count(*) FROM frames").fetchone()[0] > 0
        db.close()
        writer.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


STORY = """
import sys, time
from pathlib import Path
from watchkeeper.config.schema import DEFAULT
from watchkeeper.config.history import History as Settings
from watchkeeper.daemon.history.history import History
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.simulate import simulate
replay = Replay(DEFAULT)
history = History(Path(sys.argv[1]), Settings(), replay.pipeline, patient=True)
history.start()
replay.watchers.append(history.recorder.take)
replay.listeners.append(history.put)
for batch in simulate("head-on", seconds=100_000.0).batches():
    replay.feed(batch)
    history.writer.nudge()
    print(batch.kinds and replay.pipeline.watermark, flush=True)
"""


def _reached(path: Path) -> float:
    """The seconds of all eras together."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        found = sum(era.t_last - era.t_first for era in eras(db))
        db.close()
    except sqlite3.Error:
        return 0.0
    return found


def test_kill_9_loses_the_last_moments_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    for _ in range(3):
        words = [sys.executable, "-c", STORY, str(path)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=dict(os.environ))
        before = _reached(path)
        wait_for(lambda before=before: _reached(path) > before + 300.0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        era = era_of(db, None)
        assert era is not None
        assert era.t_last > era.t_first
        name = db.execute("SELECT name FROM vehicles").fetchone()[0]
        assert series(db, era.era, "track", name, era.t_first, era.t_last) is not None
        assert len(past.moment(db, era.era, era.t_last, 900.0)) > 0
        assert keeping.due(db, era.era + 1, 0.0)
        db.close()


@pytest.mark.parametrize("east_deg", [0.0, -125.0, 160.0])
def test_what_is_put_is_what_is_got_to_half_a_quantum(tmp_path: Path, east_deg: float) -> None:
    """Every position report that was sampled is found again, at its own time, in Europe, America and the Pacific."""
    replay = Replay(CONFIG)
    history = History(tmp_path / "history.sqlite", Settings(period_s=1.0), replay.pipeline, patient=True)
    history.start()
    batches = list(simulate("head-on", seconds=700.0).batches())
    for batch in batches:
        for cols in batch.kinds.values():
            cols.data[1] += east_deg
    run(history, replay, batches)
    sent: dict[str, dict[float, tuple[float, float]]] = {}
    for batch in batches:
        for cols in batch.kinds.values():
            for vid, t, lat, lon in zip(cols.vid.tolist(), cols.t.tolist(), cols.data[0], cols.data[1], strict=True):
                sent.setdefault(batch.ids[vid], {})[round(t, 3)] = (float(lat), float(lon))

    def ask(db: sqlite3.Connection) -> None:
        era = era_of(db, None)
        assert era is not None
        for name, reports in sent.items():
            found = series(db, era.era, "track", name, era.t_first - 10, era.t_last + 10)
            assert found is not None
            assert len(found.t) > 600
            for t, y, x in zip(np.round(found.t, 3).tolist(), found.columns["y"], found.columns["x"], strict=True):
                lat, lon = reports[t]
                assert abs(lat * 1e7 - y) <= 0.51
                assert abs(lon * 1e7 - x) <= 0.51

    history.reader.use(ask)
    history.close()
