"""What becomes of one arriving sample: each branch of `admit` at exactly its limit, on records made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from watchkeeper.detectors.engine.senders.line import (
    ACCEPT,
    DONE,
    LATE,
    NEARER,
    REFUSED,
    RESUME,
    REVIEW,
    STRAY,
    admit,
)  # fmt: skip
from watchkeeper.detectors.engine.senders.records import Arrived, Judged, Sender
from watchkeeper.detectors.kernels.records import blank

from sender_records import RULES, T, now

NOT_JUDGED = 9


class Fleet:
    """Three senders at time T, all proven, the first one heard last; ticks up to T - 2 are closed."""

    def __init__(self, **changed: Any) -> None:
        self.senders = blank(Sender, 3)
        for sender in self.senders:
            sender["n"], sender["interval_s"] = 20, 1.0
            sender["heard_t"] = sender["newest_t"] = sender["last_t"] = T
        fields = {"confirmed": True, "line": 1, "closed": T - 2, "reach_s": 4.0, "proven": 3, "every_s": 1.0}
        self.now = now(**{**fields, **changed})

    def admit(self, *samples: tuple[int, float], via: int = -1, start: int = 0) -> tuple[int, int]:
        """Samples as (number of the sender from 1, time); where it stopped, and why."""
        n = len(samples)
        self.codes, self.times = np.full(n, NOT_JUDGED, np.uint8), np.full(n, np.nan)
        self.codes[:] = ACCEPT
        arrived = Arrived(
            np.array([t for _, t in samples]), np.array([number - 1 for number, _ in samples], np.int32),
            np.full(n, via, np.int32),
        )  # fmt: skip
        return admit(arrived, start, self.senders, 3, self.now, RULES, Judged(self.codes, self.times))


def test_every_sample_of_a_batch_is_taken_from_the_start_on_at_its_own_time():
    fleet = Fleet()
    fleet.senders[1]["offset_s"] = 100.0
    assert fleet.admit((3, T), (1, T), (2, T + 100.25), (1, T + 0.25), start=1) == (4, DONE)
    assert np.isnan(fleet.times[0])
    assert fleet.times[1:].tolist() == [T, T + 0.25, T + 0.25]
    assert fleet.senders["n"].tolist() == [22, 21, 20]
    assert fleet.now["line"] == 1


@pytest.mark.parametrize(("ahead_s", "found"), [(4.0, (1, DONE)), (4.25, (0, STRAY))])
def test_a_sample_may_be_as_far_ahead_as_the_reach(ahead_s, found):
    fleet = Fleet()
    assert fleet.admit((2, T + ahead_s)) == found
    assert fleet.times.tolist() == [T + ahead_s]
    assert fleet.senders[1]["n"] == (21 if found == (1, DONE) else 20)


@pytest.mark.parametrize(
    ("changed", "last_t", "left"),
    # one that spoke alone goes on ahead of the fleet, one that is in doubt uses up its samples, another does neither
    [
        ({"solo": 2, "solo_t": T, "solo_last_t": T + 6.0}, T + 8.0, 3), ({"doubt": 2}, T + 8.0, 2),
        ({"solo": 3, "solo_t": T, "solo_last_t": T + 6.0, "doubt": 3}, T + 6.0, 3),
    ],
)  # fmt: skip
def test_a_stray_is_heard_if_its_sender_spoke_alone(changed, last_t, left):
    fleet = Fleet(**{"doubt": 3, "doubt_n": 3, "doubt_t": T + 90.0, **changed})
    assert fleet.admit((2, T + 8.0)) == (0, STRAY)
    assert fleet.now["solo_last_t"] == last_t
    assert fleet.now["doubt_n"] == left


@pytest.mark.parametrize(
    ("x", "changed", "found", "code"),
    [
        (T - 1.75, {}, (1, DONE), ACCEPT), (T - 2.0, {}, (1, DONE), LATE), (T - 5.0, {}, (1, DONE), LATE),
        (T - 5.25, {}, (0, STRAY), ACCEPT), (T - 5.0, {"confirmed": False}, (0, STRAY), ACCEPT),
        (T - 5.0, {"confirmed": False, "line": 2}, (1, DONE), LATE),
        (T - 5.25, {"confirmed": False, "line": 2}, (0, STRAY), ACCEPT),
    ],
)  # fmt: skip
def test_what_belongs_to_a_closed_tick_is_late_or_of_another_time(x, changed, found, code):
    fleet = Fleet(**changed)
    assert fleet.admit((2, x)) == found
    assert fleet.codes.tolist() == [code]
    assert fleet.senders[1]["refused_n"] == (code == LATE)
    # how far it was behind, which no later sample has to say again
    assert fleet.senders[1]["odd_s"] == (x - T if code == LATE else 0.0)


def test_how_late_a_sample_is_counts_from_the_newest_time_anyone_has_shown():
    fleet = Fleet(leader_t=T + 3.0)
    assert fleet.admit((2, T - 2.0), (1, T)) == (2, DONE)
    assert fleet.senders[1]["odd_s"] == -5.0
    assert fleet.senders[0]["n"] == 21


def test_late_samples_that_agree_say_that_a_clock_is_behind():
    fleet = Fleet()
    sender = fleet.senders[1]
    sender["agreed_n"], sender["agreed_s"], sender["agreed_t"] = 3, -3.0, T - 2.0
    assert fleet.admit((2, T - 3.0), (1, T)) == (1, REVIEW)
    assert sender["offset_s"] == -3.0
    assert fleet.codes[0] == LATE
    assert np.isnan(fleet.times[1])


@pytest.mark.parametrize(("strays", "after", "unsteady", "n"), [(0.5, 0.45, True, 20), (0.105, 0.0945, False, 0)])
def test_an_unsteady_sender_is_refused_until_it_has_been_on_the_line_for_a_while(strays, after, unsteady, n):
    fleet = Fleet()
    sender = fleet.senders[1]
    sender["unsteady"], sender["strays"] = True, strays
    assert fleet.admit((2, T), (1, T)) == (2, DONE)
    assert fleet.codes.tolist() == [REFUSED, ACCEPT]
    assert sender["strays"] == pytest.approx(after)
    assert (bool(sender["unsteady"]), int(sender["n"])) == (unsteady, n)


def test_the_share_of_strays_below_which_a_sender_is_trusted_is_not_trusted_itself():
    fleet = Fleet()
    sender = fleet.senders[1]
    sender["unsteady"], sender["strays"] = True, 0.1 / (1.0 - 0.1)
    fleet.admit((2, T))
    assert sender["strays"] == 0.1
    assert sender["unsteady"]


def test_two_that_are_behind_together_are_of_another_time():
    fleet = Fleet(confirmed=False, held=1, run_senders=1, run=3, run_t=T - 1.5)
    assert fleet.admit((2, T - 1.5)) == (0, STRAY)
    assert fleet.senders[1]["n"] == 20
    fleet.now["confirmed"] = True
    assert fleet.admit((2, T - 1.5)) != (0, STRAY)


@pytest.mark.parametrize(("resumed", "solo"), [(False, 2), (True, 1)])
def test_a_sample_that_was_decided_about_is_not_heard_twice(resumed, solo):
    fleet = Fleet(solo=1, solo_t=T, solo_last_t=T, resumed=resumed)
    fleet.admit((2, T))
    assert fleet.now["solo"] == solo
    assert not fleet.now["resumed"]


@pytest.mark.parametrize(
    ("line", "confirmed", "after"), [(0, False, False), (2, False, False), (1, False, True), (2, True, True)]
)
def test_time_is_confirmed_by_a_second_sender(line, confirmed, after):
    fleet = Fleet(line=line, confirmed=confirmed)
    fleet.admit((2, T))
    assert (bool(fleet.now["confirmed"]), int(fleet.now["line"])) == (after, 2)


@pytest.mark.parametrize(
    ("changed", "why"),
    # one is held of a run of two senders, 10 s ahead; the reach is 4 s
    [
        ({}, DONE), ({"run_senders": 1}, RESUME), ({"line_senders": 1}, RESUME), ({"line_senders": 1, "run": 5}, DONE),
        ({"confirmed": False, "line": 2}, RESUME), ({"confirmed": False}, DONE), ({"held_t": T + 4.0}, NEARER),
        ({"held_t": T + 4.25}, DONE), ({"reach_s": 0.25, "held_t": T + 0.5}, NEARER),
        ({"reach_s": 0.25, "held_t": T + 0.75}, DONE), ({"held": 0, "run_senders": 1}, DONE),
        ({"resumed": True, "run_senders": 1}, DONE), ({"resumed": True, "held_t": T}, DONE),
    ],
)  # fmt: skip
def test_a_sample_on_the_line_decides_about_those_that_are_held(changed, why):
    fleet = Fleet(**{"held": 1, "held_t": T + 10.0, "run": 4, "run_senders": 2, **changed})
    fleet.senders[1]["line_run"] = 5
    assert fleet.admit((2, T)) == ((1, DONE) if why == DONE else (0, why))
    # it is taken only when that is done
    assert fleet.senders[1]["n"] == (21 if why == DONE else 20)
    decides = fleet.now["held"] and not changed.get("resumed")
    first_time = decides and changed.get("run", 4) == 4
    assert fleet.now["line_senders"] == changed.get("line_senders", 0) + bool(first_time)
    assert fleet.senders[1]["line_run"] == (4 if first_time else 5)


@pytest.mark.parametrize(("row", "usual"), [(7, 7.0), (2, 4.995), (5, 5.0)])
def test_how_many_strays_in_a_row_are_usual_fades_with_each_sample_on_the_line(row, usual):
    fleet = Fleet(row=row, row_usual=5.0)
    fleet.admit((2, T))
    assert (int(fleet.now["row"]), float(fleet.now["row_usual"])) == (0, usual)


@pytest.mark.parametrize(("x", "compared"), [(T + 0.25, 1), (T, 0), (T - 0.25, 0)])
def test_only_what_is_newer_than_its_sender_has_shown_contradicts_another(x, compared):
    fleet = Fleet(leader=3, leader_voter=3, leader_t=T + 2.0)
    fleet.admit((2, x))
    assert fleet.now["compared"] == compared
    assert fleet.now["compared_s"] == (T + 2.0 - x if compared else 0.0)


@pytest.mark.parametrize(
    ("x", "n", "changed", "moved"),
    # the third sender has shown T + 2 alone; 8 samples prove a sender, this one among them
    [
        (T + 0.75, 8, {}, True), (T + 0.75, 7, {}, False), (T + 0.5, 0, {}, True), (T + 0.625, 0, {}, False),
        (T + 0.75, 0, {"active": 4, "proven": 2}, True), (T + 0.75, 0, {"active": 4, "proven": 3}, False),
        (T, 20, {}, False), (T - 0.25, 20, {"active": 2}, False), (T + 0.75, 20, {"leader_voter": 2}, False),
    ],
)  # fmt: skip
def test_two_move_the_time_and_one_that_is_not_proven_does_not_pull_it(x, n, changed, moved):
    fleet = Fleet(**{"leader": 3, "leader_voter": 3, "leader_t": T + 2.0, **changed})
    fleet.senders[1]["n"] = n
    assert fleet.admit((2, x)) == (1, DONE)
    assert fleet.now["t"] == (x if moved else T)


@pytest.mark.parametrize(
    ("votes", "via", "voter", "moved"),
    [(True, 4, -5, False), (True, 4, 2, True), (False, 4, 2, False), (True, -1, 2, False), (True, 0, -1, False)],
)
def test_vehicles_behind_a_gateway_show_a_time_together_where_gateways_vote(votes, via, voter, moved):
    fleet = Fleet(leader=3, leader_voter=voter, leader_t=T + 2.0, gateways_vote=votes)
    fleet.admit((2, T + 0.75), via=via)
    assert fleet.now["t"] == (T + 0.75 if moved else T)
    assert fleet.senders[1]["via"] == via + 1


@pytest.mark.parametrize(("off", "found"), [(1, (1, REVIEW)), (0, (2, DONE))])
def test_news_of_a_review_are_told_before_the_next_sample(off, found):
    fleet = Fleet(leader=3, leader_voter=3, leader_t=T + 2.0, off=off)
    assert fleet.admit((2, T + 1.0), (1, T + 1.0)) == found
    assert fleet.now["t"] == T + 1.0
    assert np.isnan(fleet.times[1]) == bool(off)


def test_one_that_turns_out_to_be_ahead_is_told_before_the_next_sample():
    fleet = Fleet(leader=3, leader_voter=3, leader_t=T + 3.0, compared=1, compared_voter=1, compared_s=3.0)
    fleet.senders[2]["ahead_n"], fleet.senders[2]["ahead_s"] = 1, 3.0
    assert fleet.admit((2, T + 0.25), (1, T + 0.25)) == (1, REVIEW)
    assert fleet.senders[2]["offset_s"] > 2.5
    assert np.isnan(fleet.times[1])
