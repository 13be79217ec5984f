"""The journal at its limits: what it keeps, trims, counts and begins again, each at exactly the limit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest
from journal_lines import journal_lines
from made_events import event

from watchkeeper.daemon.outputs import journal as journal_module
from watchkeeper.daemon.outputs import journal_file
from watchkeeper.daemon.outputs.journal import RELIVED_S, Journal
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event


def open_journal(path: Path, **options: object) -> Journal:
    return Journal(path, **{"fsync": False, **options})  # type: ignore[arg-type]


def written(path: Path, *events: AlarmEvent) -> list[bytes]:
    """The lines of a journal that was given these events and closed."""
    journal = open_journal(path)
    journal.append(events)
    journal.close()
    return (path / "journal.jsonl").read_bytes().splitlines(keepends=True)


def ended(*names: str, t: float = 1.0) -> list[AlarmEvent]:
    return [event(name, CLEARED, t) for name in names]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


# -- after a restart ---------------------------------------------------------------------------------------------


def test_updates_that_are_lived_again_are_repeats_and_later_ones_are_not(tmp_path: Path) -> None:
    open_journal(tmp_path).append([event("a", RAISED, 1.0), event("a", UPDATED, 9.0)])
    journal = open_journal(tmp_path)
    assert not journal.is_repeat(event("a", UPDATED, 8.0))  # not before it resumes
    journal.resume(0.0)
    assert journal.is_repeat(event("a", UPDATED, 8.0))
    assert journal.is_repeat(event("a", UPDATED, 9.0))
    assert not journal.is_repeat(event("a", UPDATED, 9.5))
    assert not journal.is_repeat(msgspec.structs.replace(event("a", UPDATED, 9.0), score=3.0))
    assert not journal.is_repeat(event("a", CLEARED, 8.0))
    assert not journal.is_repeat(event("b", UPDATED, 8.0))


def test_without_a_snapshot_the_ends_of_the_last_minute_are_over(tmp_path: Path) -> None:
    assert RELIVED_S == 60.0
    events = [event("old", CLEARED, 40.0), event("new", CLEARED, 40.5), event("up", RAISED, 100.0)]
    open_journal(tmp_path).append(events)
    journal = open_journal(tmp_path)
    journal.resume(None)
    assert not journal.is_repeat(event("old", RAISED, 101.0))
    assert journal.is_repeat(event("new", RAISED, 101.0))
    assert journal.is_repeat(event("up", RAISED, 101.0))


def test_an_alarm_that_has_ended_may_be_raised_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append([event("a", RAISED, 1.0)])
    assert journal.is_repeat(event("a", RAISED, 2.0))
    journal.append([event("a", CLEARED, 3.0)])
    assert not journal.is_repeat(event("a", RAISED, 4.0))
    assert journal.active == {}


def test_numbers_that_were_given_once_are_not_given_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append([event("a", RAISED, 1.0), event("b", RAISED, 1.0)])
    journal.skip(1)
    assert (journal.number, journal.tried) == (2, 2)
    journal.skip(7)
    assert (journal.number, journal.tried) == (7, 7)
    assert journal.append([event("c", RAISED, 2.0)]) == 8
    journal.close()
    again = open_journal(tmp_path)
    assert (again.number, again.past.notes) == (8, [])


def test_alarms_that_only_the_snapshot_knows_are_written_and_active(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.adopt([])
    assert journal.number == 0
    journal.adopt([event("a", UPDATED, 1.0)])
    assert journal.past.active == [event("a", UPDATED, 1.0)]
    assert [e.subjects for e in journal.active.values()] == [("a",)]
    assert open_journal(tmp_path).past.active == [event("a", UPDATED, 1.0)]


# -- what is kept, and trimmed -------------------------------------------------------------------------------------


def test_a_new_file_has_the_ends_of_the_last_minute_and_none_before(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, max_bytes=1)
    journal.confirm(journal.append([event("old", CLEARED, 39.5), event("new", CLEARED, 40.0)]))
    journal.append([event("up", RAISED, 100.0)])
    assert journal.rotations == 1
    kept = [event("new", CLEARED, 40.0), event("up", RAISED, 100.0)]
    assert journal_lines(journal.path) == [encode_event(one) for one in kept]


def test_raises_and_ends_that_nobody_confirms_are_bounded_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "ENDED_MAX", 3)
    journal = open_journal(tmp_path)
    journal.append(ended("a", "b", "c"))
    assert list(journal._unsent) == [1, 2, 3]
    journal.append([event("u", UPDATED, 1.0), *ended("d")])
    assert list(journal._unsent) == [2, 3, 5]
    journal.confirm(3)
    assert list(journal._unsent) == [5]
    journal.confirm(1)
    assert journal._sent == 3


def test_what_the_disk_does_not_take_is_bounded_and_what_is_dropped_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "ENDED_MAX", 2)
    journal = open_journal(tmp_path)
    journal.append([event("up", RAISED, 0.0)])
    with monkeypatch.context() as disk:
        disk.setattr(journal_file, "write_all", full)
        journal.append(ended("a", "b", "c"))
        # two, and one for the alarm that is active
        assert (journal.missed, journal.replaced, journal.errors) == (3, 0, 1)
        journal.append([event("c", RAISED, 2.0, t_onset=2.0)])
        # one more is active
        assert (journal.missed, journal.replaced) == (4, 0)
        journal.append([event("c", UPDATED, 3.0, t_onset=2.0)])
        assert (journal.missed, journal.replaced) == (4, 1)
        journal.append(ended("d"))
        assert (journal.missed, journal.replaced, journal.written) == (4, 2, 1)
        assert journal.tried == journal.number == 7
    journal.tend()
    assert (journal.missed, journal.written, journal.troubles) == (0, 5, {})
    assert [e.subjects[0] for e in open_journal(tmp_path).past.ended] == ["b", "c", "d"]


def test_a_file_is_begun_again_when_it_has_max_bytes_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    size = sum(map(len, written(tmp_path / "one", event("a", RAISED, 1.0))))
    for limit, rotations in ((size, 1), (size + 1, 0)):
        path = tmp_path / str(limit)
        path.mkdir()
        journal = open_journal(path, max_bytes=limit)
        journal.append([event("a", RAISED, 1.0)])
        assert journal.size_bytes == size
        journal.append([event("b", RAISED, 1.0)])
        assert journal.rotations == rotations
        assert (path / "journal.1.jsonl").exists() == bool(rotations)
        # a new file may double before it is begun again
        assert journal._rotate_at == (max(limit, 2 * journal.size_bytes) if rotations else limit)


def test_a_file_that_cannot_be_begun_again_is_appended_to_and_tried_a_quarter_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path, max_bytes=400)
    journal.append([event("a", RAISED, 1.0), event("b", RAISED, 1.0)])
    size = journal.size_bytes
    assert size >= 400
    with monkeypatch.context() as disk:
        disk.setattr(journal_file, "replace_file", full)
        journal.append([event("c", RAISED, 1.0)])
    assert (journal.rotations, journal.missed, journal.troubles) == (0, 0, {})
    assert journal._rotate_at == size + 100
    journal.append([event("d", RAISED, 1.0)])
    assert journal.rotations == 1
    assert len(open_journal(tmp_path).past.active) == 4


def test_a_disk_that_was_away_and_comes_back_is_no_trouble_any_more(tmp_path: Path) -> None:
    problem = ""
    journal = open_journal(tmp_path, check=lambda: problem)
    journal.append([event("a", RAISED, 1.0)])
    problem = "the disk is away"
    assert journal.tend() == []
    assert journal.troubles == {"not written": "the disk is away"}
    journal.confirm(1)
    # nothing is noted on a disk that is away
    assert open_journal(tmp_path).past.unsent == [(1, event("a", RAISED, 1.0))]
    problem = ""
    assert journal.tend() == []
    assert journal.troubles == {}
    assert open_journal(tmp_path).past.unsent == []


def test_a_confirmation_that_the_disk_does_not_take_is_noted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path)
    journal.append(ended("a"))
    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        journal.confirm(1)
        assert journal.troubles == {"journal.sent not written": "No space left on device"}
        assert journal.errors == 1
    assert len(open_journal(tmp_path).past.unsent) == 1
    journal.tend()
    assert journal.troubles == {}
    assert open_journal(tmp_path).past.unsent == []


# -- the files ----------------------------------------------------------------------------------------------------


def test_what_is_set_aside_of_damaged_lines_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "DAMAGED_MAX_BYTES", 63)
    lines = written(tmp_path, *(event(name, RAISED, 1.0) for name in "abcde"))
    spoilt = b"#" * 20 + b"\n"
    # two lines of 21 bytes fit, a third does not
    (tmp_path / "journal.jsonl").write_bytes(b"".join([spoilt, spoilt, lines[2], spoilt, lines[4]]))
    open_journal(tmp_path).close()
    assert (tmp_path / "journal.damaged").read_bytes() == spoilt * 2
    assert (tmp_path / "journal.damaged").stat().st_mode & 0o777 == 0o600


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    written(tmp_path, event("a", RAISED, 1.0))
    (tmp_path / "journal.jsonl").chmod(0o644)
    journal = open_journal(tmp_path)
    assert journal.path.stat().st_mode & 0o777 == 0o600
    assert journal.size_bytes == journal.path.stat().st_size


def test_a_closed_journal_holds_no_files(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    journal = open_journal(tmp_path, fsync=True, max_bytes=600)
    for i in range(12):
        journal.confirm(journal.append([event("a", UPDATED, float(i))]))
        (tmp_path / "journal.sent").unlink()
        journal.tend()
    assert journal.rotations
    journal.close()
    assert not journal._file.is_open
    assert len(list(Path("/proc/self/fd").iterdir())) == before
