"""What the journal says in the log, once each; and a start that finds everything in order says and changes nothing."""

from __future__ import annotations

import errno
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from made_events import event

from watchkeeper.daemon.outputs import journal as journal_module
from watchkeeper.daemon.outputs import journal_file, journal_past
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_file import JournalFile
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED


def open_journal(path: Path, **options: object) -> Journal:
    return Journal(path, **{"fsync": False, **options})  # type: ignore[arg-type]


def failing(number: int, words: str) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, words)

    return fail


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The lines since the last look: their words and fields."""
    found = [(record.getMessage(), record.fields) for record in caplog.records]
    caplog.clear()
    return found


@pytest.fixture(autouse=True)
def _all_of_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "watchkeeper.daemon.outputs")


def test_a_start_says_nothing_where_all_is_in_order_and_goes_on_with_the_files(tmp_path, caplog):
    open_journal(tmp_path).append([event("a", RAISED, 1.0)])
    files = {name: (tmp_path / name).stat().st_ino for name in ("journal.jsonl", "journal.sent")}
    journal = open_journal(tmp_path)
    journal.confirm(journal.append([event("a", UPDATED, 2.0)]))
    assert said(caplog) == []
    assert journal.errors == 0
    assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == files


def test_an_empty_file_is_gone_on_with(tmp_path):
    (tmp_path / "journal.jsonl").touch()
    inode = (tmp_path / "journal.jsonl").stat().st_ino
    journal = open_journal(tmp_path)
    journal.append([event("a", RAISED, 1.0)])
    assert journal.path.stat().st_ino == inode
    assert not (tmp_path / "journal.1.jsonl").exists()


def test_a_disk_that_stays_full_is_one_line_and_so_is_its_end(tmp_path, caplog, monkeypatch):
    journal = open_journal(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(journal_file, "write_all", failing(errno.ENOSPC, "No space left on device"))
        journal.append([event("a", RAISED, 1.0)])
        journal.append([event("b", RAISED, 1.0)])
        full = {"what": "not written", "error": "No space left on device"}
        assert said(caplog) == [("journal not written", full)]
        disk.setattr(journal_file, "write_all", failing(errno.EIO, "Input/output error"))
        journal.append([event("c", RAISED, 1.0)])
        assert said(caplog) == [("journal not written", {**full, "error": "Input/output error"})]
    journal.append([event("d", RAISED, 1.0)])
    assert said(caplog) == [("journal written again", {"what": "not written"})]
    journal.append([event("e", RAISED, 1.0)])
    assert said(caplog) == []
    assert journal.errors == 3


def test_a_file_that_cannot_be_begun_again_and_one_that_is_gone_are_said(tmp_path, caplog, monkeypatch):
    journal = open_journal(tmp_path, max_bytes=100)
    journal.append([event("a", RAISED, 1.0)])
    with monkeypatch.context() as disk:
        disk.setattr(JournalFile, "write_again", failing(errno.EROFS, "Read-only file system"))
        journal.append([event("b", RAISED, 1.0)])
    assert said(caplog) == [("journal not rotated", {"problem": "Read-only file system"})]
    journal.path.unlink()
    journal.tend()
    words = "journal was deleted, replaced or away; written again"
    assert said(caplog)[-1] == (words, {"active": 2})


def test_damage_is_said_line_by_line_and_set_aside_once(tmp_path, caplog):
    open_journal(tmp_path).append([event(name, RAISED, 1.0) for name in "abc"])
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"#\n" + lines[1] + lines[2] + b'{"id":')
    files = len(list(Path("/proc/self/fd").iterdir()))
    journal = open_journal(tmp_path, max_bytes=500)
    assert said(caplog) == [
        ("journal ended in a torn line, cut off", {"bytes": 6}),
        ("journal damaged", {"problem": "line 2 is damaged"}),
    ]
    # a line too many: nothing is missing, and no alarm is in doubt
    assert [journal.past.doubts(found) for found in journal.past.active] == [[], [], []]
    for t in range(2, 30):
        journal.confirm(journal.append([event("a", UPDATED, float(t))]))
    assert journal.rotations > 1
    assert (tmp_path / "journal.damaged").read_bytes() == b'#\n{"id":\n'
    journal.close()
    # files of tests before may be closed meanwhile
    assert len(list(Path("/proc/self/fd").iterdir())) <= files


def test_a_damaged_record_of_what_is_confirmed_is_replaced_and_leaves_no_handle_behind(tmp_path):
    open_journal(tmp_path).append([event("a", CLEARED, 1.0)])
    (tmp_path / "journal.sent").write_bytes(b"?" * 100)
    files = len(list(Path("/proc/self/fd").iterdir()))
    journal = open_journal(tmp_path)
    # the only end goes out again, though it is the first event
    assert [number for number, _ in journal.past.unsent] == [1]
    journal.confirm(1)
    journal.close()
    # files of tests before may be closed meanwhile
    assert len(list(Path("/proc/self/fd").iterdir())) <= files
    assert open_journal(tmp_path).past.unsent == []


def test_the_only_alarm_of_a_file_may_be_the_one_in_doubt(tmp_path):
    open_journal(tmp_path).append([event("a", RAISED, 1.0), event("a", UPDATED, 2.0)])
    path = tmp_path / "journal.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"score":2', b'"score":3'))
    (hole,) = open_journal(tmp_path).past.holes
    assert hole.ids == {event("a", RAISED, 1.0).id}


# -- files that cannot be read or opened --------------------------------------------------------------------------


def test_what_the_disk_cannot_read_is_put_away_and_said(tmp_path, caplog):
    (tmp_path / "journal.jsonl").mkdir()
    journal = open_journal(tmp_path)
    words, fields = said(caplog)[0]
    assert words == "journal cannot be read, renamed to journal.unreadable"
    assert fields == {"problem": "Is a directory"}
    assert journal.errors == 0


def test_what_we_may_not_read_stays_where_it_is(tmp_path, caplog, monkeypatch):
    open_journal(tmp_path).append([event("a", RAISED, 1.0)])
    whole = (tmp_path / "journal.jsonl").read_bytes()
    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", failing(errno.EACCES, "Permission denied"))
        journal = open_journal(tmp_path)
        assert journal.troubles == {"not written": "Permission denied"}
        assert (journal.errors, journal.size_bytes) == (1, 0)
    assert said(caplog) == [("journal not written", {"what": "not written", "error": "Permission denied"})]
    assert (tmp_path / "journal.jsonl").read_bytes() == whole
    # once we may, it is read: an alarm in it that is not ours has ended
    (end,) = journal.tend()
    assert (end.state, end.ended) == (CLEARED, "not_resumed")
    assert journal.troubles == {}


def test_what_can_be_neither_read_nor_renamed_is_trouble(tmp_path, caplog, monkeypatch):
    (tmp_path / "journal.jsonl").mkdir()
    monkeypatch.setattr(Path, "rename", failing(errno.EROFS, "Read-only file system"))
    journal = open_journal(tmp_path)
    assert journal.troubles == {"not written": "Is a directory"}
    assert (journal.errors, journal.size_bytes) == (1, 0)
    assert said(caplog) == [("journal not written", {"what": "not written", "error": "Is a directory"})]


def test_a_file_that_cannot_be_opened_for_writing_is_trouble(tmp_path, monkeypatch):
    open_journal(tmp_path).append([event("a", RAISED, 1.0)])
    monkeypatch.setattr(JournalFile, "go_on", failing(errno.EROFS, "Read-only file system"))
    journal = open_journal(tmp_path)
    assert journal.troubles == {"not written": "Read-only file system"}
    assert journal.errors == 1


def test_a_start_on_a_full_disk_notes_no_event_that_was_never_written(tmp_path, monkeypatch):
    with monkeypatch.context() as disk:
        disk.setattr(JournalFile, "write_again", failing(errno.ENOSPC, "No space left on device"))
        journal = open_journal(tmp_path)
        journal.confirm(0)
    assert (tmp_path / "journal.sent").exists()
    assert open_journal(tmp_path).past.notes == []


# -- the disk's own time ------------------------------------------------------------------------------------------


def test_what_is_appended_after_a_restart_is_synced_and_confirmations_never_are(tmp_path, monkeypatch):
    open_journal(tmp_path).append([event("a", RAISED, 1.0)])
    synced: list[int] = []

    def slow(handle: int) -> None:
        time.sleep(0.05)  # a disk takes its time, and closing waits for it
        synced.append(handle)

    journal = open_journal(tmp_path, fsync=True)
    monkeypatch.setattr(os, "fdatasync", slow)
    monkeypatch.setattr(os, "fsync", slow)
    (tmp_path / "journal.sent").unlink()
    journal.confirm(1)
    assert (tmp_path / "journal.sent").exists()
    assert synced == []
    journal.append([event("a", UPDATED, 2.0)])
    journal.close()
    assert len(synced) == 1


def test_the_limits_are_those_that_operators_are_told():
    assert journal_module.MAX_BYTES == 64 * 2**20
    assert journal_file.DAMAGED_MAX_BYTES == 2**20
    assert (journal_past.ENDED_MAX, journal_past.UNSURE_ENDS) == (10_000, 100)
