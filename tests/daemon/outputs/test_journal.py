"""The journal on disk: nothing lost, nothing repeated, whatever moment the process dies."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S

from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, alarm_id, encode_event


def event(subject: str, state: str, t: float, *, t_onset: float = 0.0, kind: str = "silence") -> AlarmEvent:
    return AlarmEvent(
        id=alarm_id(kind, (subject,), t_onset), kind=kind, state=state, severity="caution", subjects=(subject,),
        t=t, t_onset=t_onset, t_raised=t_onset, t_cleared=t if state == CLEARED else None,
        score=2.0, threshold=1.0, evidence={"silence_s": t},
    )  # fmt: skip


def open_journal(path: Path, **options: object) -> Journal:
    return Journal(path, **{"fsync": False, **options})  # type: ignore[arg-type]


def test_a_line_is_exactly_the_published_bytes(tmp_path: Path) -> None:
    events = [event("a", RAISED, 1.0), event("a", CLEARED, 9.0)]
    open_journal(tmp_path, fsync=True).append(events)
    assert (tmp_path / "journal.jsonl").read_bytes() == b"".join(encode_event(e) + b"\n" for e in events)


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
    whole = b"".join(encode_event(e) + b"\n" for e in events)
    torn = whole[: min(cut, len(whole))]
    (path / "journal.jsonl").write_bytes(torn)

    journal = open_journal(path)
    survivors = events[: torn.count(b"\n")]
    assert journal.past.active == survivors
    assert journal.torn == (0 if torn.endswith(b"\n") or not torn else 1)

    more = event("more", RAISED, 99.0)
    journal.append([more])
    journal.close()
    assert open_journal(path).past.active == [*survivors, more]


def test_damaged_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    good = encode_event(event("a", RAISED, 1.0))
    (tmp_path / "journal.jsonl").write_bytes(b"\0\0\0\n" + good + b"\n" + b'{"id": 3}\n' + b"\xff\n")
    journal = open_journal(tmp_path)
    assert [e.subjects for e in journal.past.active] == [("a",)]
    assert journal.damaged == 3


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


def test_rotation_keeps_what_matters_and_the_disk_bounded(tmp_path: Path) -> None:
    limit = 20_000
    journal = open_journal(tmp_path, max_bytes=limit)
    journal.append([event("long", RAISED, 0.0)])
    unsent = journal.append([event("late", RAISED, 0.0), event("late", CLEARED, 1.0)])
    for i in range(1000):
        last = journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)])
        journal.confirm(min(last, unsent - 1))
    assert journal.rotations > 5
    total = sum(f.stat().st_size for f in tmp_path.glob("journal*.jsonl"))
    # nothing was confirmed, so every end is carried along; the file grows by doubling, not by rotation
    assert total < 4 * 1000 * 300
    journal.confirm(last)
    for i in range(1000):
        journal.confirm(journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)]))
    again = open_journal(tmp_path)
    assert again.past.active == [event("long", RAISED, 0.0)]
    assert again.past.unsent == []


def test_rotation_with_everything_confirmed_holds_the_limit(tmp_path: Path) -> None:
    limit = 20_000
    journal = open_journal(tmp_path, max_bytes=limit)
    journal.append([event("long", RAISED, 0.0)])
    for i in range(2000):
        journal.confirm(journal.append([event(str(i), RAISED, float(i)), event(str(i), CLEARED, i + 1.0)]))
    assert journal.rotations > 10
    assert sum(f.stat().st_size for f in tmp_path.glob("journal*.jsonl")) < 2 * limit + 2000
    assert open_journal(tmp_path).past.active == [event("long", RAISED, 0.0)]


def test_an_unconfirmed_end_survives_a_rotation_and_a_crash(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, max_bytes=1000)
    journal.append([event("a", RAISED, 0.0)])
    number = journal.append([event("a", CLEARED, 1.0)])
    journal.append([event("b", RAISED, 2.0)] * 4)
    journal.append([event("b", UPDATED, 3.0)])
    assert journal.rotations == 1
    assert [e for _, e in open_journal(tmp_path).past.unsent] == [event("a", CLEARED, 1.0)]
    journal.confirm(number + 5)
    assert open_journal(tmp_path).past.unsent == []


@pytest.mark.parametrize("step", ["link", "replace", "fsync"])
def test_a_crash_in_the_middle_of_a_rotation_loses_nothing(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path, max_bytes=500)
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
    assert [e for _, e in again.past.unsent] == [event("a", CLEARED, 1.0)]


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
    for i in range(3):
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
