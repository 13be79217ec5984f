"""What is read of an earlier run's journal: damage by line, alarms in doubt, and what is sent again."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_events import event

from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_past import Hole, Past, read_past
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event


def written(path: Path, *events: AlarmEvent) -> list[bytes]:
    """The lines of a journal that was given these events and closed."""
    journal = Journal(path, fsync=False)
    journal.append(events)
    journal.close()
    return (path / "journal.jsonl").read_bytes().splitlines(keepends=True)


def past_of(path: Path, *lines: bytes) -> Past:
    """What is read when the journal has these lines; without any, as it is."""
    if lines:
        (path / "journal.jsonl").write_bytes(b"".join(lines))
    return read_past(path / "journal.jsonl", path / "journal.sent")


SPOILT = b"#" * 20 + b"\n"


def test_nothing_is_read_where_there_is_no_journal(tmp_path: Path) -> None:
    assert past_of(tmp_path) == Past()


def test_five_damaged_lines_are_named_and_the_others_counted(tmp_path: Path) -> None:
    lines = written(tmp_path, *(event(str(i), RAISED, 1.0) for i in range(9)))
    for damaged, last in ((5, "line 5 is damaged"), (7, "2 more lines are damaged or missing")):
        past = past_of(tmp_path, SPOILT * damaged, *lines[damaged:])
        assert past.damaged == damaged
        assert past.notes[:5] == [f"line {n} is damaged" for n in range(1, 6)]
        assert (past.notes[-1], len(past.notes)) == (last, 5 + (damaged > 5))
        assert past.renew
        assert past.spoilt == [SPOILT] * damaged


def test_lines_that_are_missing_at_the_end_are_known_by_the_record(tmp_path: Path) -> None:
    lines = written(tmp_path, *(event(name, RAISED, 1.0) for name in "abcd"))
    past = past_of(tmp_path, *lines[:2])
    assert past.notes == ["event 2 is the last of 4 that were written: the rest is lost"]
    assert (past.last, past.damaged, past.events) == (4, 1, 2)
    assert past.holes == [Hole(3, 2, 4, None)]
    # any of them may have ended there
    assert [past.doubts(e) for e in past.active] == [past.holes] * 2


def test_a_missing_line_in_the_middle_puts_the_alarms_before_it_in_doubt(tmp_path: Path) -> None:
    lines = written(tmp_path, *(event(name, RAISED, 1.0) for name in "abcd"))
    past = past_of(tmp_path, lines[0], lines[3])
    assert past.notes == ["line 2 is missing"]
    assert past.holes == [Hole(2, 1, 3, None)]
    assert [bool(past.doubts(e)) for e in past.active] == [True, False]
    assert past.spoilt == []


def test_only_an_alarm_that_another_line_names_is_known_to_be_the_one_in_doubt(tmp_path: Path) -> None:
    lines = written(tmp_path, event("a", RAISED, 1.0), event("b", RAISED, 1.0), event("a", CLEARED, 2.0))
    bad = [line.replace(b"caution", b"cautioN") for line in lines]
    a, b = event("a", RAISED, 1.0), event("b", RAISED, 1.0)
    past = past_of(tmp_path, lines[0], lines[1], bad[2])
    assert past.holes == [Hole(3, 2, 3, frozenset({a.id}))]
    assert (past.doubts(a), past.doubts(b)) == (past.holes, [])
    # no other line has the id of b: it may be damaged, too
    past = past_of(tmp_path, lines[0], bad[1], lines[2])
    assert (past.holes, past.notes) == ([Hole(2, 1, 2, None)], ["line 2 is damaged"])
    # two lines are damaged: the ids are those of either
    past = past_of(tmp_path, lines[0], bad[1], bad[2])
    assert [hole.ids for hole in past.holes] == [None, None]


def test_an_alarm_with_a_line_after_the_hole_is_not_in_doubt() -> None:
    a = event("a", RAISED, 1.0)
    for number, doubted in ((4, True), (5, False)):
        past = Past(active=[a], numbers={a.id: number}, holes=[Hole(1, 2, 5, None)])
        assert bool(past.doubts(a)) == doubted
    assert Past(holes=[Hole(1, 0, 1, None)]).doubts(a)


def test_a_sealed_line_that_is_no_event_is_damage(tmp_path: Path) -> None:
    written(tmp_path, event("a", RAISED, 1.0), event("b", "paused", 1.0), event("c", RAISED, 3.0))
    past = past_of(tmp_path)
    assert past.holes == [Hole(2, 1, 2, None)]
    assert (past.events, past.damaged, past.last, past.t_last) == (2, 1, 3, 3.0)
    assert past.spoilt[0].endswith(b"\n")


def test_a_torn_line_is_cut_off_and_not_damage(tmp_path: Path) -> None:
    lines = written(tmp_path, event("a", RAISED, 1.0))
    past = past_of(tmp_path, *lines, b'{"id":"')
    assert (past.torn, past.damaged, past.notes, past.holes, past.renew) == (1, 0, [], [], True)
    assert past.spoilt == [b'{"id":"']
    assert not past_of(tmp_path, *lines).renew


@pytest.mark.parametrize("ends", [99, 100, 101, 150])
def test_without_a_record_the_last_hundred_ends_go_out_again(tmp_path: Path, ends: int) -> None:
    written(tmp_path, event("up", RAISED, 1.0), *(event(str(i), CLEARED, 1.0) for i in range(ends)))
    (tmp_path / "journal.sent").unlink()
    past = past_of(tmp_path)
    assert [seq for seq, _ in past.unsent] == list(range(2, ends + 2))[-100:]
    assert past.notes == ["journal.sent is damaged or missing: ends of alarms may be published a second time"]
    assert list(past.changes) == list(range(1, ends + 2))
    assert next(iter(past.changes.values())) == (event("up", RAISED, 1.0).id, RAISED)


def test_an_alarm_that_ended_has_no_number_and_its_end_has_one(tmp_path: Path) -> None:
    events = [event("a", RAISED, 5.0), event("b", RAISED, 1.0), event("a", CLEARED, 2.0), event("b", UPDATED, 3.0)]
    written(tmp_path, *events)
    past = past_of(tmp_path)
    assert past.numbers == {events[1].id: 4}
    assert (list(past.ended), list(past.ended_numbers)) == ([events[2]], [3])
    assert (past.events, past.last, past.t_last, past.active) == (4, 4, 5.0, [events[3]])
    assert [seq for seq, _ in past.unsent] == [1, 2, 3]


@pytest.mark.parametrize("confirmed", [0, 1, 2, 3])
def test_an_earlier_version_noted_what_was_confirmed_as_an_offset(tmp_path: Path, confirmed: int) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [encode_event(event(name, CLEARED, 1.0)) + b"\n" for name in "abc"]
    path.write_bytes(b"".join(lines))
    offset = sum(map(len, lines[:confirmed]))
    for more in (0, 1 if confirmed < 3 else 1000):
        # pairs of file and offset, the last one cut short; a pair that is not of numbers counts for nothing
        sent = f"1 5\n{path.stat().st_ino} {offset + more}\n7 x\ny 8\n9"
        (tmp_path / "journal.sent").write_text(sent)
        past = past_of(tmp_path)
        assert past.sent == confirmed
        assert [seq for seq, _ in past.unsent] == list(range(confirmed + 1, 4))
        assert (past.renew, past.notes, past.last) == (True, [], 3)
    # about another file: all are confirmed
    (tmp_path / "journal.sent").write_text("1 5\n")
    assert past_of(tmp_path).sent == 3


def test_damaged_lines_of_an_earlier_version_keep_their_numbers(tmp_path: Path) -> None:
    lines = [encode_event(event(name, RAISED, 1.0)) + b"\n" for name in "abc"]
    past = past_of(tmp_path, lines[0], SPOILT, lines[2], lines[1][:-1])
    assert past.holes == [Hole(2, 1, 2, None)]
    assert (past.torn, past.numbers) == (1, {event("a", RAISED, 1.0).id: 1, event("c", RAISED, 1.0).id: 3})
