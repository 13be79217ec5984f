"""What becomes of held samples when one on the line arrives, and of a sender that is known to be unsteady: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import ACCEPT, HELD, REFUSED, HeldSample, Verdict
from watchkeeper.streams.messages import Drop, Kind

from sender_records import Run, T, together


class Held(Run):
    """Three senders up to T; some samples are held, of the run number 4, and the reach is 4 s."""

    def __init__(self, *held: tuple[str, float], **changed: float) -> None:
        super().__init__()
        self.feed(*together("abc", 20, T - 19.0))
        self.clock.held = [HeldSample(Kind.GPS, name, "", t, np.zeros(1)) for name, t in held]
        table = self.clock._table
        names = {name for name, _ in held}
        fields = {"reach_s": 4.0, "run": 4, "run_senders": len(names), "resumed": False, **changed}
        for name, value in fields.items():
            table.now[name] = value
        for name in names:
            table.senders["run"][table.number(name)] = 4

    def resume(self, t: float, name: str, *, decided: bool) -> None:
        """A sample on the line has arrived."""
        verdict = Verdict(np.zeros(1, np.uint8), np.zeros(1))
        self.clock._resume(0, t, name, verdict, lambda kind, why: self.drops.append((kind, why)), decided=decided)
        self.released = [held.t for _, held in verdict.released]

    def now(self, name: str) -> float:
        return float(self.clock._table.now[name])

    @property
    def kept(self) -> list[tuple[str, float]]:
        return [(held.name, held.t) for held in self.clock.held]


@pytest.mark.parametrize(
    ("held_t", "let_in"),
    # the fleet's time is T, the sample that arrives is at T + 1
    [(T, False), (T + 0.25, True), (T + 5.0, True), (T + 5.25, False), (T - 9.0, False)],
)
@pytest.mark.parametrize("decided", [True, False])
def test_what_is_within_reach_of_the_sample_is_let_in(held_t, let_in, decided):
    run = Held(("c", held_t))
    run.resume(T + 1.0, "a", decided=decided)
    assert run.released == ([held_t] if let_in else [])
    assert run.kept == ([] if let_in or decided else [("c", held_t)])
    assert len(run.drops) == (decided and not let_in)
    assert run.clock.t_max == T  # nothing moves the time but samples on the line


def test_the_tolerance_is_within_reach_where_that_is_more():
    tolerance_s = Held().clock._rules.tolerance_s
    run = Held(("c", T + 1.0 + tolerance_s), reach_s=0.1)
    run.resume(T + 1.0, "a", decided=False)
    assert run.released == [T + 1.0 + tolerance_s]


def test_a_decision_of_a_confirmed_time_gives_up_the_rest_and_begins_a_new_run():
    run = Held(("b", T + 3.0), ("c", T + 50.0), ("c", T - 50.0))
    run.resume(T + 1.0, "a", decided=True)
    assert (run.released, run.kept) == ([T + 3.0], [])
    assert run.drops == [(Kind.GPS, Drop.TIME_JUMP), (Kind.GPS, Drop.TIME_JUMP)]
    assert (run.now("run"), run.now("run_senders"), run.now("held_t"), run.now("resumed")) == (5, 0, np.inf, True)


def test_while_one_is_against_one_nothing_of_the_other_is_given_up():
    run = Held(("b", T + 50.0), ("a", T + 60.0), confirmed=False)
    run.resume(T + 1.0, "a", decided=True)
    assert run.kept == [("b", T + 50.0)]
    assert len(run.drops) == 1
    assert (run.now("run"), run.now("held_t")) == (4, T + 50.0)


def test_where_nothing_is_decided_only_those_let_in_leave_the_run():
    run = Held(("b", T + 3.0), ("c", T + 4.0), ("c", T + 50.0), ("a", T - 50.0), ("a", T + 40.0))
    run.resume(T + 1.0, "a", decided=False)
    assert (run.released, run.drops) == ([T + 3.0, T + 4.0], [])
    assert run.kept == [("c", T + 50.0), ("a", T - 50.0), ("a", T + 40.0)]
    # the oldest of those ahead; of b nothing is held any more
    assert (run.now("run"), run.now("run_senders"), run.now("held_t"), run.now("resumed")) == (4, 2, T + 40.0, True)


@pytest.mark.parametrize(("lone_s", "kept"), [(5.0, True), (5.25, False), (-5.0, True)])
def test_the_one_that_was_heard_alone_is_not_given_up_nor_those_who_agree_with_it(lone_s, kept):
    run = Held(("b", T + 50.0), ("c", T + 50.0 + lone_s), doubt=2.0)
    run.resume(T + 1.0, "a", decided=True)
    assert run.kept == [("b", T + 50.0), ("c", T + 50.0 + lone_s)][: 1 + kept]


# -- one that was heard alone --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "name", "doubted"),
    # c was heard alone for six seconds, as long as two reports of three seconds
    [
        ({}, "a", True), ({}, "c", False), ({"doubt": 1}, "a", False), ({"row": 6}, "a", False),
        ({"run_smooth": False}, "a", False), ({"active": 2}, "a", False), ({"every_s": 3.25}, "a", False),
        ({"t": T + 100.0}, "a", False),
    ],
)  # fmt: skip
def test_one_that_was_heard_alone_before_another_came_back_may_be_right(changed, name, doubted):
    fields = {"row": 7, "run_smooth": True, "active": 3, "every_s": 3.0, "doubt": 0, **changed}
    run = Held(*(("c", T + 50.0 + k) for k in range(7)), **fields)
    run.clock._doubt_lone(name)
    before = changed.get("doubt", 0)
    found = run.now("doubt"), run.now("doubt_n"), run.now("doubt_t")
    assert found == ((3, 3, T + 56.0) if doubted else (before, 0, 0.0))


@pytest.mark.parametrize(
    ("fields", "doubted"),
    [({"n": 9}, True), ({"n": 8}, False), ({"named": True}, False), ({"unsteady": True}, False)],
)
def test_only_one_that_is_trusted_may_be_right(fields, doubted):
    run = Held(*(("c", T + 50.0 + k) for k in range(7)), row=7, every_s=3.0)
    for name, value in fields.items():
        run.clock._table.senders[2][name] = value
    run.clock._doubt_lone("a")
    assert bool(run.now("doubt")) is doubted


@pytest.mark.parametrize(("other_t", "doubted"), [(T + 50.0, True), (T + 49.75, False), (T + 60.0, False)])
def test_others_that_were_heard_meanwhile_must_agree(other_t, doubted):
    run = Held(*(("c", T + 50.0 + k) for k in range(7)), ("b", other_t), row=8, every_s=3.0)
    run.clock._doubt_lone("a")
    assert bool(run.now("doubt")) is doubted


# -- a sample that is too far --------------------------------------------------------------------------------------


def test_what_an_unsteady_sender_sends_far_off_is_refused_and_noted():
    run = Held()
    record = run.clock._table.senders[2]
    record["unsteady"] = True
    run.feed(("c", T + 100.0))
    assert (run.codes[-1], run.kept) == (REFUSED, [])
    assert (record["refused_n"], record["agreed_s"], bool(record["named"])) == (1, 100.0, True)


def test_a_second_gap_of_a_lone_vehicle_is_believed_at_once_if_it_is_longer_than_ten_jumps():
    slow = Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=600.0)
    for far_s, released in ((700.0, []), (700.25, [T + 400.0, T + 700.25])):
        run = Run(slow)
        run.feed(("a", T), ("a", T + 400.0), ("a", T + far_s))
        assert (run.codes, run.released) == ([ACCEPT, HELD, HELD], released)


@pytest.mark.parametrize(("via", "votes", "voter"), [(0, 1, 2), (3, 1, -3), (3, 0, 2)])
def test_a_sample_that_is_let_in_may_show_the_newest_time(via, votes, voter):
    run = Held(("b", T + 3.0), leader=1.0, leader_voter=1.0, leader_t=T + 2.0, compared=1.0, gateways_vote=votes)
    run.clock._table.senders[1]["via"] = via
    run.resume(T + 1.0, "a", decided=False)
    names = ("leader", "leader_voter", "leader_t", "compared")
    assert [run.now(name) for name in names] == [2, voter, T + 3.0, 0]
    # not if another has shown a newer one, nor where nobody has shown any
    for leader_t in (T + 3.0, -np.inf):
        run = Held(("b", T + 3.0), leader=1.0, leader_voter=1.0, leader_t=leader_t, compared=1.0)
        run.resume(T + 1.0, "a", decided=False)
        assert [run.now(name) for name in names] == [1, 1, leader_t, 1]
