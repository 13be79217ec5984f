"""The table of senders: who agrees, who votes, who is noted and for how long, and who is forgotten for want of room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from watchkeeper.detectors.engine.senders.records import Rules
from watchkeeper.detectors.engine.senders.table import NOTES_MAX, SenderTable
from watchkeeper.detectors.fleet.clocks import ClockNote

RULES = Rules(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, tolerance_s=0.5)
T = 1000.0


def table(*senders: dict[str, Any], capacity: int = 8, **now: Any) -> SenderTable:
    """A table with these senders, called a, b, c …"""
    made = SenderTable(capacity, 1.0)
    names = [chr(ord("a") + k) for k in range(len(senders))]
    made.numbers(names, np.arange(len(names), dtype=np.int32))
    for k, fields in enumerate(senders):
        for name, value in {"n": 20, "heard_t": T, "interval_s": 1.0, **fields}.items():
            made.senders[k][name] = value
    for name, value in {"t": T, **now}.items():
        made.now[name] = value
    return made


def test_senders_of_a_run_agree_that_are_near_and_on_one_side_of_the_present():
    held = (T + 20.0, T + 21.0, T + 21.5, T + 15.0, T + 14.5, T - 1.0)
    found = table(*({"run": 3, "held_t": t} for t in held), {"run": 2, "held_t": T + 20.0}, run=3, run_senders=6)
    assert found.agree(T + 20.0, 1.0, 5.0, 0).tolist() == [True, True, False, True, False, False, False]
    # itself always, and nobody on the other side, however near
    assert found.agree(T + 20.0, 1.0, 99.0, 6).tolist() == [True, True, False, True, True, False, True]
    assert found.agree(T - 1.0, 99.0, 5.0, 5).tolist() == [False] * 5 + [True, False]
    assert found.names_of(found.agree(T + 20.0, 1.0, 5.0, 0)) == {"a", "b", "d"}
    found.now["run_senders"] = 1
    assert found.agree(T + 20.0, 1.0, 5.0, 1).tolist() == [False, True] + [False] * 5


def test_the_present_itself_is_on_the_side_of_the_past():
    found = table({"run": 3, "held_t": T}, {"run": 3, "held_t": T - 1.0}, run=3, run_senders=2)
    assert found.agree(T, 9.0, 9.0, 0).tolist() == [True, True]
    assert found.agree(T + 1.0, 9.0, 9.0, 0).tolist() == [True, False]


def test_who_leaves_a_run_is_no_part_of_it():
    found = table({"run": 3}, {"run": 3}, {"run": 2}, run=3, run_senders=2)
    found.leave_run({"a", "c", "nobody"})
    assert [int(found.senders[k]["run"]) for k in range(3)] == [0, 3, 2]
    assert found.now["run_senders"] == 1


@pytest.mark.parametrize(
    ("sender", "on"),
    [
        ({"heard_t": T - 10.0}, 1), ({"heard_t": T - 10.5}, 0), ({"heard_t": T - 15.0, "interval_s": 5.0}, 1),
        ({"heard_t": T - 15.5, "interval_s": 5.0}, 0), ({"n": 0}, 0), ({"n": 1}, 1),
    ],
)  # fmt: skip
def test_votes_are_counted_with_those_on_the_line_lately(sender, on):
    found = table(sender, {}, {}, {})
    assert found.votes(np.array([True, False, False, False])) == (1, on)
    assert found.votes(np.array([True, True, False, True])) == (3, 2 + on)


def noted(*senders: dict[str, Any], **now: Any) -> list[ClockNote]:
    made = table(*({"named": True, "named_t": T - 5.0, **fields} for fields in senders), off=len(senders), **now)
    made.note(RULES)
    return made.notes


@pytest.mark.parametrize(
    ("sender", "offset_s", "unsteady", "late"),
    [
        ({"offset_s": 2.0}, 2.0, False, False),
        ({"offset_s": -2.0}, -2.0, False, False),
        ({"offset_s": 0.5}, 0.0, False, False),
        ({"offset_s": 2.0, "unsteady": True, "agreed_s": 7.0}, 7.0, True, False),
        # refused for four seconds: for its delays, for times that agree, and for times that do not
        ({"refused_n": 3, "refused_t": T - 4.0, "sent_t": T, "agreed_s": -3.0}, -3.0, False, True),
        ({"refused_n": 3, "refused_t": T - 4.0, "sent_t": T, "agreed_s": -3.0, "strays": 0.0999}, -3.0, False, True),
        ({"refused_n": 3, "refused_t": T - 4.0, "sent_t": T, "agreed_s": 9.0, "agreed_n": 2, "strays": 0.1}, 9.0, False,
         False),
        ({"refused_n": 3, "refused_t": T - 4.0, "sent_t": T, "agreed_s": 9.0, "agreed_n": 1, "strays": 0.1}, 9.0, True,
         False),
    ],
)  # fmt: skip
def test_what_is_said_of_one_sender(sender, offset_s, unsteady, late):
    assert noted(sender) == [ClockNote(0, T, "a", -1, offset_s, unsteady, late, 0, 0.5)]


@pytest.mark.parametrize(
    ("sender", "named_t", "followed"),
    [
        # off and heard, or at least sending: named now
        ({"offset_s": 2.0}, T, True), ({"offset_s": 2.0, "heard_t": T - 11.0, "sent_t": T - 10.0}, T, True),
        # back in step, or gone: followed for half a minute
        ({"offset_s": 2.0, "heard_t": T - 11.0, "sent_t": T - 10.5}, T - 5.0, True),
        ({"named_t": T - 30.0}, T - 30.0, True), ({"named_t": T - 30.5}, T - 30.5, False),
        ({"offset_s": 2.0, "named_t": T - 99.0}, T, True),
    ],
)  # fmt: skip
def test_a_sender_that_is_back_is_followed_for_half_a_minute(sender, named_t, followed):
    made = table({"named": True, "named_t": T - 5.0, **sender}, {"offset_s": 9.0}, off=1)
    made.note(RULES)
    assert [note.name for note in made.notes] == ["a"] * followed
    assert (float(made.senders[0]["named_t"]), bool(made.senders[0]["named"])) == (named_t, followed)
    assert made.now["off"] == int(followed)
    assert made.gauges()["off"] == float(followed)


def test_one_that_is_followed_no_more_does_not_hide_the_next():
    assert [note.name for note in noted({"named_t": T - 99.0}, {"offset_s": 2.0})] == ["b"]


@pytest.mark.parametrize(
    ("offsets", "others", "vehicles"),
    # behind one gateway; a second apart is still as much; four of five are enough
    [
        ((4.0, 4.0, 5.0, 3.0), 0, [4]), ((4.0, 4.0, 4.0, 4.0), 1, [4]), ((4.0, 4.0, 4.0), 1, [0, 0, 0]),
        ((4.0, 4.0, 4.0, 4.0, 5.5), 0, [4, 0]), ((4.0,), 0, [0]), ((4.0, 4.0), 0, [2]), ((4.0, 9.0), 0, [0, 0]),
    ],
)  # fmt: skip
def test_vehicles_that_agree_behind_a_gateway_are_one_note(offsets, others, vehicles):
    senders = [{"named": True, "offset_s": offset_s, "via": 3} for offset_s in offsets]
    made = table(*senders, *[{"via": 3}] * others, {"via": 3, "heard_t": T - 30.0}, {"via": 2}, capacity=16)
    made.note(RULES)
    assert [note.vehicles for note in made.notes] == vehicles
    assert {note.via for note in made.notes} == {2}
    assert made.notes[0].offset_s == sorted(offsets)[len(offsets) // 2] or vehicles[0] == 0


def test_unsteady_and_late_ones_are_no_part_of_a_gateways_note():
    late = {"via": 1, "refused_n": 3, "refused_t": T - 4.0, "sent_t": T}
    found = noted({"via": 1, "offset_s": 2.0}, {"via": 1, "unsteady": True}, late, {"via": 1, "offset_s": 2.0})
    assert [(note.name, note.via, note.vehicles) for note in found] == [
        ("b", 0, 0), ("c", 0, 0), ("a", 0, 0), ("d", 0, 0),
    ]  # fmt: skip


def test_so_many_notes_and_no_more():
    made = SenderTable(NOTES_MAX + 5, 1.0)
    names = [f"v{k}" for k in range(NOTES_MAX + 5)]
    made.numbers(names, np.arange(len(names), dtype=np.int32))
    made.senders["named"], made.now["t"] = True, T
    made.senders["named_t"] = T
    made.note(RULES)
    assert len(made.notes) == NOTES_MAX == 200


def test_notes_are_taken_once_by_era_and_time():
    made = table()
    assert made.take_notes(0, T) == []
    notes = {(era, t): ClockNote(era, t, "a", -1, 2.0, False, False, 0, 0.5) for era in (0, 1, 2) for t in (T, T + 1.0)}
    made.notes = list(notes.values())
    assert made.take_notes(1, T) == [notes[1, T]]
    # those of an era that is over are gone
    assert made.notes == [notes[1, T + 1.0], notes[2, T], notes[2, T + 1.0]]
    assert made.take_notes(1, T) == []


def test_numbers_are_given_in_order_of_arrival_and_a_name_has_one():
    made = SenderTable(8, 1.0)
    assert made.numbers(["p", "q", "r", "p"], np.array([2, 0, 2, 3], np.int32)).tolist() == [1, -1, 0, 1]
    assert made.numbers(["q", "p"], np.array([0, 1], np.int32)).tolist() == [2, 1]
    assert (made.high, made.number("r"), made.number("z"), made.name_of(2)) == (3, 0, -1, "q")


def test_a_full_table_forgets_who_was_heard_least_and_longest_ago():
    senders = [{"heard_t": T + k} for k in range(32)]
    # known well, known a little, and known to be off: these go last, first, and last of all
    senders[0] |= {"named": True}
    senders[9] |= {"n": 7}
    senders[5] |= {"n": 8}
    made = table(*senders, capacity=32, off=1)
    before = [made.name_of(k) for k in range(32)]
    assert made.numbers(["new"], np.zeros(1, np.int32)).tolist() == [1]
    assert [name for name in before if made.number(name) < 0] == [before[1], before[9]]
    assert (made.high, int(made.senders[9]["n"]), int(made.now["off"])) == (32, 0, 1)
    assert made.numbers(["newer"], np.zeros(1, np.int32)).tolist() == [9]
    assert made.number("new") == 1
    # a small table makes room for one, and counts one less that is off if it must go
    small = table({"named": True}, {"named": True, "heard_t": T - 1.0}, capacity=2, off=2)
    small.numbers(["new"], np.zeros(1, np.int32))
    assert (small.number("a"), small.number("b"), small.number("new"), int(small.now["off"])) == (0, -1, 1, 1)


def test_gateways_are_forgotten_by_number():
    made = table({"via": 1}, {"via": 3}, {"via": 0}, {"via": 4})
    made.forget_gateways(np.array([2, 3], np.int32))
    assert [int(made.senders[k]["via"]) for k in range(4)] == [1, 0, 0, 0]


def test_a_new_era_keeps_only_how_many_strays_are_usual():
    made = table({}, {}, row_usual=7.0, active=2)
    made.begin(2.5)
    assert (made.era, made.high, float(made.now["row_usual"]), float(made.now["wait_s"])) == (1, 0, 7.0, 2.5)
    assert made.now["t"] == -np.inf
    assert made.gauges() == {"senders": 0.0, "off": 0.0, "wait_s": 2.5}


def test_a_snapshot_is_taken_over_whole():
    made = table({"offset_s": 2.0, "named": True}, {}, capacity=2, off=1)
    made.numbers(["new"], np.zeros(1, np.int32))
    made.note(RULES)
    other = SenderTable(2, 1.0)
    other.restore(made.snapshot())
    assert other.notes == made.notes != []
    assert (other.era, other.high, other.number("a"), other.number("new"), other.number("b")) == (0, 2, 0, 1, -1)
    np.testing.assert_equal(other.senders["offset_s"], made.senders["offset_s"])
    assert other.now["off"] == 1
