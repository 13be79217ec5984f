"""The journal on disk: nothing lost, nothing repeated, whatever moment the process dies."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_lines import journal_lines
from made_events import event
from waiting import PATIENCE_S

from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event


def open_journal(path: Path, **options: object) -> Journal:
    return Journal(path, **{"fsync": False, **options})  # type: ignore[arg-type]


def write(path: Path, events: list[AlarmEvent]) -> bytes:
    """What a journal with these events is on disk."""
    journal = open_journal(path)
    journal.append(events)
    journal.close()
    return journal.path.read_bytes()


def test_a_line_is_the_published_object_with_its_number_and_checksum(tmp_path: Path) -> None:
    events = [event("a", RAISED, 1.0), event("a", CLEARED, 9.0)]
    write(tmp_path, events)
    assert journal_lines(tmp_path / "journal.jsonl") == [encode_event(e) for e in events]
    objects = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [(o["subjects"], o["seq"], len(o["crc"])) for o in objects] == [(["a"], 1, 8), (["a"], 2, 8)]
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}


def test_the_last_event_of_each_alarm_that_is_not_cleared_is_active(tmp_path: Path) -> None:
    open_journal(tmp_path).append(
        [event("a", RAISED, 1.0), event("b", RAISED, 2.0), event("b", UPDATED, 12.0), event("a", CLEARED, 13.0)]
    )
    assert open_journal(tmp_path).past.active == [event("b", UPDATED, 12.0)]


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=10_000), data=st.data())
def test_a_journal_cut_anywhere_gives_every_whole_line_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut")
    events = [event(str(i), RAISED, float(i)) for i in range(data.draw(st.integers(0, 6)))]
    whole = write(path, events)
    torn = whole[: min(cut, len(whole))]
    (path / "journal.jsonl").write_bytes(torn)

    journal = open_journal(path)
    # a line may lack its newline only
    survivors = events[: (torn + b"\n").count(b'"}\n')]
    assert journal.past.active == survivors
    # the record of the last number tells what the rest of the file does not
    assert bool(journal.past.notes) == (len(torn) < len(whole))

    more = event("more", RAISED, 99.0)
    journal.append([more])
    journal.close()
    assert open_journal(path).past.active == [*survivors, more]


def test_damaged_lines_are_set_aside_counted_and_named_once(tmp_path: Path) -> None:
    lines = write(tmp_path, [event("a", RAISED, 1.0), event("b", RAISED, 1.0), event("a", CLEARED, 2.0)]).splitlines()
    spoilt = lines[2].replace(b"cleared", b"cleareD")
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join([lines[0], b"\xff\xfe", lines[1], spoilt]) + b"\n")
    journal = open_journal(tmp_path)
    assert [e.subjects for e in journal.past.active] == [("a",), ("b",)]
    a = event("a", RAISED, 1.0)
    assert journal.past.notes == [
        "line 2 is damaged", f"line 4 is damaged: alarm {a.id} may have ended there"
    ]  # fmt: skip
    # only its own alarm is in doubt
    assert [bool(journal.past.doubts(e)) for e in journal.past.active] == [True, False]
    assert (tmp_path / "journal.damaged").read_bytes() == b"\xff\xfe\n" + spoilt + b"\n"
    journal.close()
    again = open_journal(tmp_path)
    assert (again.past.notes, again.past.active) == ([], journal.past.active)


def test_a_journal_of_an_earlier_version_is_read_and_written_again(tmp_path: Path) -> None:
    events = [event("a", RAISED, 1.0), event("b", RAISED, 1.0), event("a", CLEARED, 2.0), event("b", CLEARED, 3.0)]
    lines = [encode_event(e) + b"\n" for e in events]
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(lines) + b"\xff\n" + lines[0][:-1])
    sent = len(b"".join(lines[:3]))
    (tmp_path / "journal.sent").write_text(f"{path.stat().st_ino:020d} {sent:020d}\n" * 2)
    journal = open_journal(tmp_path)
    assert [e for _, e in journal.past.unsent] == [event("b", CLEARED, 3.0)]
    assert journal.past.active == []
    assert (journal.past.torn, journal.past.notes) == (1, ["line 5 is damaged"])
    journal.append([event("c", RAISED, 9.0)])
    journal.close()
    assert all(b',"crc":"' in line for line in path.read_bytes().splitlines())
    again = open_journal(tmp_path)
    assert (again.past.active, again.past.notes) == ([event("c", RAISED, 9.0)], [])


@pytest.mark.parametrize("lost", ["journal.jsonl", "journal.sent"])
def test_a_file_that_is_gone_is_noticed(tmp_path: Path, lost: str) -> None:
    write(tmp_path, [event("a", RAISED, 1.0), event("a", CLEARED, 2.0)])
    (tmp_path / lost).unlink()
    journal = open_journal(tmp_path)
    assert journal.past.notes
    # an end that may not be confirmed is sent again
    assert len(journal.past.unsent) == (lost == "journal.sent")
    assert journal.number == 2


def test_an_end_that_the_broker_never_confirmed_is_sent_again_and_a_confirmed_one_is_not(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append([event("a", RAISED, 1.0), event("b", RAISED, 1.0)])
    confirmed = journal.append([event("a", CLEARED, 5.0)])
    last = journal.append([event("b", CLEARED, 6.0)])
    journal.confirm(confirmed)

    again = open_journal(tmp_path)
    assert [e for _, e in again.past.unsent] == [event("b", CLEARED, 6.0)]
    again.confirm(again.past.unsent[-1][0])
    assert open_journal(tmp_path).past.unsent == []
    assert last == confirmed + 1


def test_a_raise_that_the_broker_never_confirmed_is_sent_again_as_a_raise(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    confirmed = journal.append([event("a", RAISED, 1.0)])
    journal.append(
        [event("b", RAISED, 1.0), event("a", UPDATED, 2.0), event("b", UPDATED, 2.0), event("c", RAISED, 3.0)]
    )
    journal.append([event("c", CLEARED, 4.0)])
    journal.confirm(confirmed)
    unsent = [event("b", RAISED, 1.0), event("c", RAISED, 3.0), event("c", CLEARED, 4.0)]
    assert [e for _, e in open_journal(tmp_path).past.unsent] == unsent
    # without a record of what was confirmed, nobody is called to an old alarm
    (tmp_path / "journal.sent").unlink()
    assert [e for _, e in open_journal(tmp_path).past.unsent] == unsent[2:]


def test_a_rotation_keeps_a_raise_that_is_not_confirmed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, fsync=False, max_bytes=2000)
    journal.append([event("a", RAISED, 1.0)])
    for t in range(2, 30):
        journal.append([event("a", UPDATED, float(t))])
    assert journal.rotations
    assert [e for _, e in open_journal(tmp_path).past.unsent] == [event("a", RAISED, 1.0)]


def test_an_event_goes_to_the_file_that_is_there_now_not_to_one_that_was_replaced(tmp_path: Path) -> None:
    for name in ("other", "place"):
        (tmp_path / name).mkdir()
    other = open_journal(tmp_path / "other")
    other.append([event("old", RAISED, 1.0)])
    other.close()
    journal = open_journal(tmp_path / "place")
    journal.append([event("a", RAISED, 1.0)])
    # as when a disk is mounted over the directory
    (tmp_path / "place").rename(tmp_path / "hidden")
    (tmp_path / "other").rename(tmp_path / "place")
    # a confirmation meanwhile is not noted next to a journal that it is not about
    journal.confirm(1)
    assert open_journal(tmp_path / "place").past.notes == []
    ends = journal.put(journal.take([event("b", RAISED, 2.0)]))
    assert [(e.subjects, e.ended) for e in ends] == [(("old",), "not_resumed")]
    past = open_journal(tmp_path / "place").past
    assert past.notes == []
    assert {e.subjects for e in past.active} >= {("a",), ("b",)}


def test_rotation_keeps_what_matters_and_the_disk_bounded(tmp_path: Path) -> None:
    limit = 20_000
    journal = open_journal(tmp_path, max_bytes=limit)
    journal.append([event("long", RAISED, 0.0)])
    unsent = journal.append([event("late", RAISED, 0.0), event("late", CLEARED, 1.0)])
    for i in range(2000):
        last = journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)])
        journal.confirm(min(last, unsent - 1))
    assert journal.rotations > 5
    total = sum(f.stat().st_size for f in tmp_path.glob("journal*.jsonl"))
    # nothing was confirmed, so every raise and end is carried along; the file grows by doubling, not by rotation
    assert total < 4 * 2000 * 300
    journal.confirm(last)
    for i in range(1000):
        journal.confirm(journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)]))
    again = open_journal(tmp_path)
    assert again.past.active == [event("long", RAISED, 0.0)]
    assert again.past.unsent == []


def test_rotation_with_everything_confirmed_holds_the_limit(tmp_path: Path) -> None:
    limit = 100_000
    journal = open_journal(tmp_path, max_bytes=limit)
    journal.append([event("long", RAISED, 0.0)])
    for i in range(2000):
        journal.confirm(journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)]))
    assert journal.rotations > 10
    assert sum(f.stat().st_size for f in tmp_path.glob("journal*.jsonl")) < 2 * limit + 2000
    # ends of the last minute go along, so that after a crash nothing is raised again
    assert len(open_journal(tmp_path).past.ended) >= 60
    assert open_journal(tmp_path).past.active == [event("long", RAISED, 0.0)]


def test_an_unconfirmed_end_survives_a_rotation_and_a_crash(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, max_bytes=1000)
    journal.append([event("a", RAISED, 0.0)])
    number = journal.append([event("a", CLEARED, 1.0)])
    journal.append([event("b", RAISED, 2.0)] * 4)
    journal.append([event("b", UPDATED, 3.0)])
    assert journal.rotations == 1
    unsent = [event("a", RAISED, 0.0), event("a", CLEARED, 1.0), *[event("b", RAISED, 2.0)] * 4]
    assert [e for _, e in open_journal(tmp_path).past.unsent] == unsent
    journal.confirm(number + 5)
    assert open_journal(tmp_path).past.unsent == []


@pytest.mark.parametrize("step", ["link", "replace", "fsync"])
def test_a_crash_in_the_middle_of_a_rotation_loses_nothing(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path, max_bytes=650)
    journal.append([event("a", RAISED, 0.0), event("b", RAISED, 0.0)])
    journal.append([event("a", CLEARED, 1.0)])

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    if step == "replace":
        monkeypatch.setattr(Path, "replace", crash)
    else:
        monkeypatch.setattr(os, step, crash)
    with pytest.raises(Crash):
        journal.append([event("c", RAISED, 2.0)])
    monkeypatch.undo()
    again = open_journal(tmp_path)
    assert again.past.active == [event("b", RAISED, 0.0)]
    unsent = [event("a", RAISED, 0.0), event("b", RAISED, 0.0), event("a", CLEARED, 1.0)]
    assert [e for _, e in again.past.unsent] == unsent


def test_a_full_disk_is_counted_and_what_it_did_not_take_is_written_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path)
    journal.append([event("a", RAISED, 0.0)])
    real_write = os.write

    def half_a_write(handle: int, data: bytes) -> int:
        real_write(handle, bytes(data)[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half_a_write)
    journal.append([event("b", RAISED, 1.0), event("b", UPDATED, 1.5)])
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 1
    assert journal.troubles == {"not written": "No space left on device"}
    monkeypatch.undo()
    journal.append([event("c", RAISED, 2.0)])
    assert journal.errors == 1
    assert (journal.troubles, journal.missed) == ({}, 0)
    assert (journal.written, journal.replaced) == (3, 1)
    assert open_journal(tmp_path).past.active == [
        event("a", RAISED, 0.0), event("b", UPDATED, 1.5), event("c", RAISED, 2.0)
    ]  # fmt: skip


def test_after_a_restart_what_is_lived_again_is_a_repeat_and_what_is_new_is_not(tmp_path: Path) -> None:
    first = open_journal(tmp_path)
    first.append([event("up", RAISED, 100.0), event("over", RAISED, 100.0), event("over", CLEARED, 120.0)])
    first.append([event("old", RAISED, 10.0), event("old", CLEARED, 20.0)])
    journal = open_journal(tmp_path)
    journal.resume(110.0)
    assert journal.is_repeat(event("up", RAISED, 100.0))
    assert not journal.is_repeat(event("up", CLEARED, 130.0))
    assert journal.is_repeat(event("over", RAISED, 100.0))
    assert journal.is_repeat(event("over", CLEARED, 121.0))
    # a simulation that is started again raises its old alarms again: those ended before the snapshot
    assert not journal.is_repeat(event("old", RAISED, 10.0))
    assert not journal.is_repeat(event("over", RAISED, 500.0, t_onset=500.0))


def test_an_end_told_right_after_the_snapshot_is_a_repeat_until_the_alarm_is_raised_again(tmp_path: Path) -> None:
    open_journal(tmp_path).append([event("a", RAISED, 100.0), event("a", CLEARED, 110.0)])
    journal = open_journal(tmp_path)
    journal.resume(110.0)
    assert journal.is_repeat(event("a", CLEARED, 110.0))
    assert not journal.is_repeat(event("a", CLEARED, 111.0))
    assert not journal.is_repeat(event("a", RAISED, 100.0))
    journal.append([event("a", RAISED, 100.0)])
    assert not journal.is_repeat(event("a", CLEARED, 110.0))


class SlowDisk:
    """Stands in for os.fdatasync: each sync waits for `go`, and notes what the file held when it began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.busy = threading.Event()
        self.kept: list[bytes] = []
        monkeypatch.setattr(os, "fdatasync", self.sync)

    def sync(self, handle: int) -> None:
        self.kept.append(os.pread(handle, 1 << 20, 0))
        self.busy.set()
        assert self.go.wait(PATIENCE_S)


def test_an_append_does_not_wait_for_the_disk_and_the_disk_gets_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    journal = open_journal(tmp_path, fsync=True)
    events = [event(str(i), RAISED, float(i)) for i in range(50)]
    journal.append(events[:1])
    assert disk.busy.wait(PATIENCE_S)
    for one in events[1:]:
        journal.append([one])  # would hang here if it waited
    assert journal.path.read_bytes().count(b"\n") == len(events)
    disk.go.set()
    journal.close()
    assert disk.kept[-1] == journal.path.read_bytes()
    assert len(disk.kept) == 2  # one for the first, one for all that came while it was busy


def test_a_sync_that_outlasts_a_rotation_is_followed_by_one_of_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    journal = open_journal(tmp_path, fsync=True, max_bytes=400)
    for i in range(4):
        journal.append([event(str(i), RAISED, float(i))])
    assert journal.rotations == 1
    disk.go.set()
    journal.close()
    assert disk.kept[-1] == journal.path.read_bytes()


def test_a_disk_that_fails_to_sync_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", broken)
    journal = open_journal(tmp_path, fsync=True)
    journal.append([event("a", RAISED, 0.0)])
    journal.close()
    assert journal.errors == 1
