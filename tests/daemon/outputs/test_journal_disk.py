"""The journal when its disk is full, read-only, replaced, away or silent: events are kept, said and written later."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from pathlib import Path

import pytest
from journal_lines import journal_lines
from made_events import event
from waiting import PATIENCE_S

from watchkeeper.daemon.outputs import journal_file, journal_sink
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_sink import JournalSink
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state", fsync=False, check=lambda: (tmp_path / "state").mkdir(exist_ok=True) or "")
    made.append([event("a", RAISED, 1.0), event("b", RAISED, 1.0)])
    made.append([event("b", CLEARED, 2.0)])
    return made


def on_disk(path: Path) -> list[AlarmEvent]:
    """The active alarms of a journal that is whole."""
    past = Journal(path, fsync=False).past
    assert past.notes == []
    return past.active


def test_a_file_that_vanishes_is_written_again_with_all_that_matters(journal: Journal, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "state")
    journal.append([event("c", RAISED, 3.0)])
    assert journal.tend() == []
    assert on_disk(tmp_path / "state") == [event("a", RAISED, 1.0), event("c", RAISED, 3.0)]
    # also the end that the broker has not confirmed
    assert encode_event(event("b", CLEARED, 2.0)) in journal_lines(journal.path)
    (tmp_path / "state" / "journal.sent").unlink()
    journal.tend()
    assert on_disk(tmp_path / "state")


def test_a_file_of_another_time_in_its_place_resurrects_nothing(journal: Journal, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    earlier = Journal(old, fsync=False)
    # b ended in our time, x is of a run of which we know nothing, and so is an older alarm about a
    stranger = event("a", RAISED, -9.0, t_onset=-9.0)
    earlier.append([event("b", RAISED, 1.0), event("x", RAISED, 0.0), stranger])
    earlier.close()
    shutil.rmtree(tmp_path / "state")
    old.rename(tmp_path / "state")
    ends = journal.tend()
    assert [(e.subjects, e.t_onset, e.state, e.ended) for e in ends] == [
        (("x",), 0.0, CLEARED, "not_resumed"),
        (("a",), -9.0, CLEARED, "not_resumed"),
        # the end of the older alarm removes what the broker keeps on this topic
        (("a",), 0.0, UPDATED, None),
    ]
    journal.append(ends)
    assert on_disk(tmp_path / "state") == [event("a", UPDATED, 1.0)]


def test_a_disk_that_turns_read_only_in_the_middle_of_a_line_is_no_end(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def half(handle: int, data: bytes) -> int:
        real_write(handle, bytes(data)[: len(data) // 2])
        read_only()
        return 0

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", half)
        disk.setattr(os, "ftruncate", read_only)
        disk.setattr(os, "pwrite", read_only)
        journal.append([event("c", RAISED, 3.0)])
        journal.append([event("a", CLEARED, 4.0), event("c", UPDATED, 5.0)])
        journal.confirm(journal.number)
        journal.tend()
        assert journal.troubles["not written"] == "Read-only file system"
        assert journal.missed == 2
    journal.tend()
    assert journal.troubles == {}
    assert on_disk(tmp_path / "state") == [event("c", UPDATED, 5.0)]


def test_what_waits_for_the_disk_is_bounded_and_keeps_the_latest_of_each_alarm(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("watchkeeper.daemon.outputs.journal.ENDED_MAX", 10)

    def full(_handle: int, _data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal_file, "write_all", full)
        for i in range(100):
            journal.append([event(f"v{i}", RAISED, float(i)), event(f"v{i}", CLEARED, i + 0.5)])
        journal.append([event("a", UPDATED, 200.0)])
    assert journal.missed <= 10 + 1
    journal.tend()
    assert on_disk(tmp_path / "state") == [event("a", UPDATED, 200.0)]


def test_a_start_without_the_disk_reconciles_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    before = Journal(path, fsync=False)
    before.append([event("old", RAISED, 1.0), event("done", RAISED, 1.0), event("done", CLEARED, 2.0)])
    before.close()
    path.rename(tmp_path / "away")
    problem = "the disk is away"
    journal = Journal(path, fsync=False, check=lambda: problem)
    assert journal.past.active == []
    journal.append([event("new", RAISED, 10.0)])
    assert journal.troubles == {"not written": "the disk is away"}
    assert not path.exists()
    (tmp_path / "away").rename(path)
    problem = ""
    ends = journal.tend()
    assert [(e.subjects, e.state) for e in ends] == [(("done",), CLEARED), (("old",), CLEARED)]
    journal.append(ends)
    assert journal.troubles == {}
    assert on_disk(path) == [event("new", RAISED, 10.0)]
    # numbers go on from where the earlier run was
    assert journal.number > 3


def test_a_sync_that_fails_has_everything_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, fsync=True)

    def broken(_handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fdatasync", broken)
        journal.append([event("a", RAISED, 1.0)])
        journal._file._syncer.submit(lambda: None).result(PATIENCE_S)
        assert journal.troubles == {"not on disk": "Input/output error"}
    inode = journal.path.stat().st_ino
    journal.tend()
    assert journal.troubles == {}
    assert journal.path.stat().st_ino != inode
    journal.close()
    assert on_disk(tmp_path) == [event("a", RAISED, 1.0)]


def test_a_file_that_the_disk_cannot_read_is_put_away(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    journal = Journal(tmp_path, fsync=False)
    journal.append([event("a", RAISED, 1.0)])
    assert journal.past.notes == ["not read: Is a directory"]
    assert journal.troubles == {}
    journal.close()
    assert on_disk(tmp_path) == [event("a", RAISED, 1.0)]
    assert (tmp_path / "journal.unreadable").is_dir()


def test_a_disk_that_does_not_answer_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = threading.Event(), threading.Event()
    real = journal_file.write_all

    def silent(handle: int, data: bytes) -> None:
        asked.set()
        assert answer.wait(PATIENCE_S)
        real(handle, data)

    async def main() -> None:
        sink = JournalSink(Journal(tmp_path, fsync=False))
        heard: list[tuple[AlarmEvent, int]] = []
        sink.hand_on = lambda recorded: heard.extend((e, number) for number, e, _ in recorded)
        running = asyncio.create_task(sink.run())
        await asyncio.sleep(0)
        monkeypatch.setattr(journal_sink, "PATIENCE_S", 0.01)
        monkeypatch.setattr(journal_file, "write_all", silent)
        events = [event("a", RAISED, 1.0), event("a", UPDATED, 2.0), event("b", RAISED, 3.0)]
        for one in events:
            sink.put(one)
            while len(heard) < events.index(one) + 1:
                await asyncio.sleep(0.001)
        assert heard == [(one, i) for i, one in enumerate(events, 1)]
        assert sink.health() == ["not written: the disk does not answer"]
        await sink.flush()
        answer.set()
        while sink.waiting:
            await asyncio.sleep(0.001)
        assert sink.health() == []
        assert len(heard) == 3
        running.cancel()
        sink.close()

    asyncio.run(main())
    assert on_disk(tmp_path) == [event("a", UPDATED, 2.0), event("b", RAISED, 3.0)]


def test_an_event_has_its_number_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    real = journal_file.write_all

    def slow(handle: int, data: bytes) -> None:
        assert answer.wait(PATIENCE_S)
        real(handle, data)

    async def main() -> None:
        journal = Journal(tmp_path, fsync=False)
        sink = JournalSink(journal)
        running = asyncio.create_task(sink.run())
        await asyncio.sleep(0)
        monkeypatch.setattr(journal_file, "write_all", slow)
        for number, name in enumerate("ab", 1):
            sink.put(event(name, RAISED, 1.0))
            # a snapshot that is taken now has the alarm and says so
            assert (journal.number, journal.tried) == (number, 0)
        sink.put(event("a", RAISED, 1.0))
        assert (journal.number, sink.repeats) == (2, 1)
        answer.set()
        while sink.waiting:
            await asyncio.sleep(0.001)
        assert journal.tried == 2
        running.cancel()
        sink.close()

    asyncio.run(main())
