"""The fleet's time and who shows it, one sample at a time: each rule at exactly its limit, on records made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from watchkeeper.detectors.engine.senders.line import contradicts, heard, move, on_line, outvotes, reach_s, shown
from watchkeeper.detectors.engine.senders.majority import review
from watchkeeper.detectors.engine.senders.records import Sender
from watchkeeper.detectors.kernels.records import blank

from sender_records import RULES, T, made, now


def values(row: Any, *names: str) -> list[float]:
    return [float(row[name]) for name in names]


@pytest.mark.parametrize(
    ("x", "changed", "two_to_one"),
    # sender 1 is alone on the line, one of another is held at T - 20
    [
        (T - 20.0, {}, True), (T - 21.0, {}, True), (T - 21.25, {}, False), (T - 15.0, {}, True),
        (T - 14.75, {}, False), (T - 1.0, {"run_t": T - 1.0}, True), (T - 0.5, {"run_t": T - 1.0}, False),
        (T - 1.0, {"run_t": T - 0.5}, False), (T - 20.0, {"confirmed": True}, False), (T - 20.0, {"line": 0}, False),
        (T - 20.0, {"line": 2}, False), (T - 20.0, {"held": 0}, False), (T - 20.0, {"run_senders": 0}, False),
        (T - 20.0, {"run": 0}, False),
    ],
)  # fmt: skip
def test_two_behind_together_outvote_one(x, changed, two_to_one):
    fleet = now(**{"line": 1, "held": 1, "run_senders": 1, "run": 3, "run_t": T - 20.0, **changed})
    assert outvotes(2, x, made(Sender), fleet, RULES) is two_to_one


@pytest.mark.parametrize(
    ("x", "interval_s", "goes_on"), [(T, 2.0, True), (T + 6.0, 2.0, True), (T + 6.5, 2.0, False), (T - 0.5, 2.0, False)]
)
def test_one_speaks_alone_while_it_goes_on_at_its_pace(x, interval_s, goes_on):
    fleet = now(solo=2, solo_t=T - 3.0, solo_last_t=T)
    heard(2, x, made(Sender, interval_s=interval_s), fleet, RULES)
    assert values(fleet, "solo", "solo_t", "solo_last_t") == [2, T - 3.0 if goes_on else x, x]
    assert fleet["doubt"] == 0


@pytest.mark.parametrize(
    ("alone_s", "changed", "doubted"),
    # reports every 3 s: two of them and a second of lateness
    [
        (7.0, {}, True), (6.75, {}, False), (7.0, {"active": 2}, False), (3.0, {"every_s": 0.5}, True),
        (2.75, {"every_s": 0.5}, False), (9.0, {"solo": 3}, False),
    ],
)  # fmt: skip
def test_who_spoke_alone_for_two_reports_may_be_right(alone_s, changed, doubted):
    fleet = now(**{"solo": 2, "solo_t": T + 1.0, "solo_last_t": T + 1.0 + alone_s, **changed})
    heard(3, T, made(Sender, interval_s=0.1), fleet, RULES)
    expected = [2, 3, T + 1.0 + alone_s] if doubted else [0, 0, 0.0]
    assert values(fleet, "doubt", "doubt_n", "doubt_t") == expected
    assert values(fleet, "solo", "solo_t", "solo_last_t") == [3, T, T]


@pytest.mark.parametrize(
    ("number", "n", "doubt_t", "left"),
    [(2, 3, T + 9.0, 2), (2, 1, T + 9.0, 0), (3, 1, T + 9.0, 1), (3, 3, T + 0.5, 0), (3, 3, T + 0.75, 3)],
)
def test_doubt_ends_after_three_samples_or_once_time_has_got_there(number, n, doubt_t, left):
    fleet = now(doubt=2, doubt_n=n, doubt_t=doubt_t, solo=5, solo_t=T - 20.0, solo_last_t=T - 20.0)
    heard(number, T, made(Sender), fleet, RULES)
    assert values(fleet, "doubt", "doubt_n") == [2 if left else 0, left]


def test_a_doubt_is_not_put_in_the_place_of_another():
    fleet = now(doubt=2, doubt_n=3, doubt_t=T + 90.0, solo=5, solo_t=T, solo_last_t=T + 20.0)
    heard(3, T, made(Sender), fleet, RULES)
    assert values(fleet, "doubt", "doubt_n", "doubt_t") == [2, 3, T + 90.0]


@pytest.mark.parametrize(
    ("x", "voter", "active", "time", "leader"),
    # number 2 (its voter 2) has shown T + 2
    [
        (T + 3.0, 4, 3, T + 2.0, [4, 4, T + 3.0, 0]), (T + 1.0, 4, 3, T + 1.0, [2, 2, T + 2.0, 1]),
        (T + 3.0, 2, 3, T, [4, 2, T + 3.0, 0]), (T + 1.0, 2, 3, T, [2, 2, T + 2.0, 1]),
        (T + 2.0, 4, 3, T + 2.0, [2, 2, T + 2.0, 1]), (T + 1.0, 2, 2, T + 1.0, [4, 2, T + 1.0, 0]),
        (T + 3.0, 4, 2, T + 3.0, [4, 4, T + 3.0, 0]),
    ],
)  # fmt: skip
def test_time_is_the_newest_that_two_have_shown(x, voter, active, time, leader):
    fleet = now(active=active, leader=2, leader_voter=2, leader_t=T + 2.0, compared=1)
    assert shown(x, 4, voter, fleet) == time
    assert values(fleet, "leader", "leader_voter", "leader_t", "compared") == leader


def compared(lead_s: float = 6.0, **changed: Any) -> tuple[Any, Any]:
    """Three senders of which the first has shown T + lead_s, and was compared with the second, at T."""
    senders = blank(Sender, 3)
    senders[0]["n"] = 20
    fields = {"leader": 1, "leader_voter": 1, "leader_t": T + lead_s, "compared": 1, "compared_voter": 2,
              "compared_s": lead_s, "every_s": 1.5}  # fmt: skip
    return senders, now(**{**fields, **changed})


@pytest.mark.parametrize(
    ("voter", "changed"),
    [(3, {"active": 2}), (3, {"leader": 0}), (1, {}), (3, {"compared": 2}), (3, {"doubt": 2})],
)
def test_nothing_is_compared_without_three_or_a_leader_or_twice(voter, changed):
    senders, fleet = compared(**changed)
    assert not contradicts(T, voter, senders, fleet, RULES)
    assert values(fleet, "compared_voter", "compared_s") == [2, 6.0]
    assert senders[0]["ahead_n"] == 0


@pytest.mark.parametrize(("voter", "count"), [(2, 1), (3, 0)])
def test_the_first_comparison_is_noted_and_one_with_the_same_voter_takes_its_place(voter, count):
    senders, fleet = compared(compared=count)
    assert not contradicts(T + 1.0, voter, senders, fleet, RULES)
    assert values(fleet, "compared", "compared_voter", "compared_s") == [1, voter, 5.0]
    assert senders[0]["ahead_n"] == 0


@pytest.mark.parametrize(
    ("lead_s", "ahead_n", "ahead_s", "news", "clearly"),
    # clearly ahead is more than a second and half of the two by which the fleet may be behind
    [
        (6.0, 0, 0.0, False, True), (6.0, 1, 6.0, True, True), (2.0, 0, 0.0, False, False), (2.25, 0, 0.0, False, True),
        (1.0, 1, 1.0, False, False), (1.25, 1, 1.25, True, False), (6.0, 3, 2.0, True, True),
    ],
)  # fmt: skip
def test_one_that_two_others_contradict_twice_is_ahead(lead_s, ahead_n, ahead_s, news, clearly):
    senders, fleet = compared(lead_s)
    senders[0]["ahead_n"], senders[0]["ahead_s"] = ahead_n, ahead_s
    assert bool(contradicts(T, 3, senders, fleet, RULES)) is news
    weight = max(0.3, 1.0 / (ahead_n + 1))
    mean_s = ahead_s + weight * (lead_s - ahead_s)
    if news:
        assert senders[0]["offset_s"] == pytest.approx(mean_s)
    else:
        assert values(senders[0], "ahead_n", "ahead_s", "offset_s") == pytest.approx([ahead_n + 1, mean_s, 0.0])
    gone = [0, 0, -math.inf]
    assert values(fleet, "leader", "leader_voter", "leader_t") == (gone if news or clearly else [1, 1, T + lead_s])
    assert fleet["compared"] == 2


@pytest.mark.parametrize(
    ("behind_s", "changed", "odd"),
    # the least of both comparisons and of the fleet's time counts; odd is what was clearly ahead
    [
        (6.0, {}, 6.0), (3.0, {}, 3.0), (6.0, {"compared_s": 4.0}, 4.0), (8.0, {"compared_s": 8.0}, 6.0),
        (1.0, {}, None), (6.0, {"wait_s": 6.0}, None), (6.0, {"wait_s": 5.75}, 6.0), (6.0, {"every_s": 7.5}, None),
        (6.0, {"every_s": 7.25}, 6.0),
    ],
)  # fmt: skip
def test_what_is_clearly_ahead_is_odd(behind_s, changed, odd):
    senders, fleet = compared(**changed)
    assert not contradicts(T + 6.0 - behind_s, 3, senders, fleet, RULES)
    assert (float(senders[0]["odd_s"]) if senders[0]["odd"] else None) == odd


def test_one_that_was_ahead_by_as_much_lately_needs_no_second_time():
    senders, fleet = compared()
    senders[0]["odd"], senders[0]["odd_ahead"], senders[0]["odd_s"], senders[0]["odd_t"] = True, True, 6.0, T - 4.0
    assert contradicts(T + 1.0, 3, senders, fleet, RULES)
    assert senders[0]["offset_s"] == 5.0
    # one without a sample on the line since its offset changed is left alone
    for n in (0, 1):
        senders, fleet = compared()
        senders[0]["n"], senders[0]["ahead_n"], senders[0]["ahead_s"] = n, 1, 6.0
        assert bool(contradicts(T, 3, senders, fleet, RULES)) == bool(n)


@pytest.mark.parametrize(
    ("fleet", "n", "expected_s"),
    [({"t": -np.inf}, 5, np.inf), ({"active": 1}, 1, 30.0), ({"active": 1}, 0, 4.0), ({"active": 2}, 5, 4.0)],
)
def test_a_sample_may_be_far_ahead_if_its_sender_is_the_fleet(fleet, n, expected_s):
    assert reach_s(made(Sender, n=n), now(reach_s=4.0, **fleet), RULES) == expected_s


def test_time_goes_on_and_closes_ticks_and_is_reviewed_at_each():
    senders = blank(Sender, 1)
    fleet = now(t=T + 0.25, active=7, off=1, closed=5)
    assert not move(T + 0.75, senders, 1, fleet, RULES)
    assert values(fleet, "t", "active", "closed") == [T + 0.75, 7, T - 1.0]
    assert move(T + 1.0, senders, 1, fleet, RULES)
    assert values(fleet, "t", "active", "closed") == [T + 1.0, 0, T - 1.0]
    first = now(t=-np.inf, active=7, closed=2000)
    assert not move(T, senders, 1, first, RULES)
    assert values(first, "active", "closed") == [0, 2000]


def test_the_first_sample_on_the_line_and_the_next():
    sender, fleet = made(Sender, strays=0.5, agreed_n=2, refused_n=3), now(heard_n=6, active=2)
    on_line(sender, T + 0.5, 0.5, 4, fleet)
    assert values(fleet, "active", "heard_n") == [3, 7]
    names = ("n", "lead_s", "last_lead_s", "lag_s", "newest_t", "last_t", "heard_t", "via", "since_n", "interval_s")
    assert values(sender, *names) == [1, 0.5, 0.5, 0.0, T + 0.5, T + 0.5, T + 0.5, 5, 7, 0.0]
    assert values(sender, "strays", "agreed_n", "refused_n") == pytest.approx([0.45, 0, 0])
    # the second gives the interval, later ones a tenth of their share; a sample that is behind leaves its lag
    on_line(sender, T + 2.5, 0.0, -1, fleet)
    assert values(sender, "interval_s", "lead_s", "via", "heard_t") == [2.0, 0.25, 0, T]
    fleet["t"] = T + 6.0
    on_line(sender, T + 5.5, -0.5, -1, fleet)
    assert values(sender, "interval_s", "lead_s", "lag_s", "heard_t") == pytest.approx([2.1, 0.0, 0.5, T + 6.0])
    on_line(sender, T + 5.0, 0.0, -1, fleet)
    assert values(sender, "interval_s", "newest_t", "last_t") == pytest.approx([2.1, T + 5.5, T + 5.0])
    # a lag fades within half a minute
    fleet["t"] = T + 12.0
    on_line(sender, T + 12.0, 0.0, -1, fleet)
    assert sender["lag_s"] == pytest.approx(0.5 * math.exp(-6.0 / 30.0))
    assert values(fleet, "active", "heard_n") == [3, 7]


def test_one_that_begins_again_has_no_lag_from_before():
    sender = made(Sender, lag_s=5.0, heard_t=T)
    on_line(sender, T, -0.25, -1, now())
    assert sender["lag_s"] == 0.25


def test_before_any_time_there_is_no_lead():
    sender = made(Sender, since_n=4)
    on_line(sender, T, 99.0, -1, now(t=-np.inf))
    assert values(sender, "lead_s", "last_lead_s", "heard_t", "since_n") == [0.0, 0.0, T, 4]


@pytest.mark.parametrize(("n", "interval_s"), [(1, 4.0), (2, 2.2), (20, 2.2)])
def test_the_second_sample_gives_the_interval_and_later_ones_a_tenth_of_it(n, interval_s):
    sender = made(Sender, n=n, interval_s=2.0, newest_t=T - 4.0, heard_t=T - 4.0)
    on_line(sender, T, 0.0, -1, now())
    assert sender["interval_s"] == pytest.approx(interval_s)


# -- the majority --------------------------------------------------------------------------------------------------


def fleet_of(*leads: float, **each: Any) -> Any:
    senders = blank(Sender, len(leads))
    for k, lead in enumerate(leads):
        fields = {"n": 20, "heard_t": T, "lead_s": lead, "last_lead_s": lead, "interval_s": 1.0, "since_n": k + 1,
                  "lag_s": max(0.0, -lead)}  # fmt: skip
        for name, value in {**fields, **each}.items():
            senders[k][name] = value
    return senders


@pytest.mark.parametrize(
    ("leads", "middle"),
    [((0.1, 0.2, 0.4), 0.2), ((0.4, 0.1, 0.2), 0.2), ((0.1, 0.2, 0.3, 0.4), 0.3), ((0.3,), 0.3), ((0.4, 0.1), 0.4)],
)
def test_the_fleets_lead_is_the_median_and_of_two_that_of_the_older(leads, middle):
    senders, fleet = fleet_of(*leads), now()
    review(senders, len(leads), fleet, RULES)
    assert fleet["lead_s"] == middle
    assert values(fleet, "active", "proven", "confirmed") == [len(leads), len(leads), len(leads) > 1]
    if len(leads) == 2:
        senders[0]["since_n"], senders[1]["since_n"] = 2, 1
        review(senders, 2, fleet, RULES)
        assert fleet["lead_s"] == leads[1]


@pytest.mark.parametrize(
    ("vias", "middle", "vote"),
    # five, of which three may be behind one gateway; three voters are needed for gateways to vote
    [
        ((1, 1, 1, 0, 0), 0.4, True),
        ((1, 1, 1, 1, 0), 0.3, False),
        ((1, 1, 1, 2, 2), 0.3, False),
        ((1, 1, 1, 2, 3), 0.4, True),
        ((0,) * 5, 0.3, True),
    ],
)
def test_vehicles_behind_one_gateway_have_one_vote(vias, middle, vote):
    senders, fleet = fleet_of(0.1, 0.2, 0.3, 0.4, 0.45), now()
    for k, via in enumerate(vias):
        senders[k]["via"] = via
    review(senders, 5, fleet, RULES)
    assert (float(fleet["lead_s"]), bool(fleet["gateways_vote"])) == (middle, vote)


@pytest.mark.parametrize(
    ("every_s", "n", "lead_s", "usual_s", "reach"),
    # tolerance, an interval and twice the lead; at least three tolerances; no more than max_jump_s or two intervals
    [
        (3.0, 2, 0.0, 3.5, 3.5), (3.0, 2, 0.25, 4.0, 4.0), (3.0, 2, -0.25, 3.5, 3.5), (0.25, 2, 0.0, 1.5, 1.5),
        (0.0, 2, 0.0, 1.5, 1.5), (29.75, 2, 0.0, 30.25, 30.25), (14.0, 2, 9.0, 30.0, 30.0), (3.0, 3, 0.0, 3.5, 7.5),
    ],
)  # fmt: skip
def test_how_far_ahead_a_sample_may_be(every_s, n, lead_s, usual_s, reach):
    senders, fleet = fleet_of(*[lead_s] * n, interval_s=every_s), now()
    review(senders, n, fleet, RULES)
    assert values(fleet, "usual_s", "reach_s", "every_s") == [usual_s, reach, every_s]


def test_the_fleets_interval_is_the_median_in_whatever_order_senders_came():
    senders, fleet = fleet_of(0.0, 0.0, 0.0), now()
    senders["interval_s"] = [3.0, 1.0, 2.0]
    review(senders, 3, fleet, RULES)
    assert fleet["every_s"] == 2.0


def test_where_no_interval_is_known_the_next_report_may_be_a_second_away():
    senders, fleet = fleet_of(0.0, 0.0, interval_s=0.0), now()
    review(senders, 2, fleet, RULES._replace(tolerance_s=0.25))
    assert fleet["reach_s"] == 1.25


@pytest.mark.parametrize(
    ("lags", "wait_s"),
    # the largest does not count, nor the largest tenth; from half of the lateness on ticks wait half a second longer
    [
        ((0.0, 9.0), 1.0), ((0.5, 9.0), 1.0), ((0.75, 9.0), 1.25), ((0.5625, 9.0), 1.0625), ((0.0, 4.0, 9.0), 4.5),
        ((40.0, 40.0), 30.0), ((0.0,) * 18 + (6.0, 9.0), 6.5), ((0.0,) * 19 + (9.0,), 1.0), ((9.0,), 1.0),
    ],
)  # fmt: skip
def test_ticks_wait_for_many_that_lag_and_not_for_one(lags, wait_s):
    senders, fleet = fleet_of(*[0.0] * len(lags)), now(wait_s=7.0)
    for k, lag in enumerate(lags):
        senders[k]["lag_s"] = lag
    review(senders, len(lags), fleet, RULES)
    assert fleet["wait_s"] == wait_s


@pytest.mark.parametrize(
    ("leads", "changed", "back_s"),
    [
        ((-4.0, -4.0, -4.0, 0.0), {}, 4.0), ((-4.0, -4.0, 0.0), {}, 4.0), ((-0.5, -0.5, -0.5, 0.25), {}, 0.0),
        ((-4.0,) * 6 + (0.0, 0.0), {}, 4.0), ((-4.0,) * 5 + (0.0,) * 2, {}, 0.0),
        ((-4.0, -4.0, -4.0, 0.0), {"last_lead_s": 0.0}, 0.0), ((-4.0, -4.0, -4.0, 0.0), {"last_lead_s": -0.5}, 0.0),
        ((-4.0, -4.0, -4.0, 0.0), {"n": 8}, 0.0), ((-4.0, -4.0, -4.0, 0.0), {"n": 9}, 4.0),
    ],
)  # fmt: skip
def test_time_goes_back_to_the_majority_if_only_a_few_are_ahead(leads, changed, back_s):
    senders = fleet_of(*leads, **changed)
    fleet = now(leader=1, leader_voter=1, leader_t=T + 9.0)
    review(senders, len(leads), fleet, RULES)
    assert fleet["t"] == T - back_s
    few = [k for k, lead in enumerate(leads) if lead > -4.0]
    assert [float(senders[k]["offset_s"]) for k in few] == [back_s] * len(few)
    if back_s:
        assert values(fleet, "leader", "leader_voter", "leader_t", "lead_s") == [0, 0, -math.inf, 0.0]
        assert values(senders[0], "lead_s", "lag_s", "heard_t") == [0.0, 0.0, T - 4.0]
        assert fleet["off"] == len(few)


@pytest.mark.parametrize(
    ("leads", "last", "back"),
    # behind as a habit and lately; or lately only; or only half of them lately
    [((-4.0, -4.0, -4.0, 0.0), (-4.0, -4.0, -4.0, 0.0), True), ((0.0,) * 4, (-4.0, -4.0, -4.0, 0.0), False),
     ((-4.0, -4.0, -4.0, 0.0), (-4.0, -4.0, 0.0, 0.0), False)],
)  # fmt: skip
def test_the_majority_must_be_behind_as_a_habit_and_lately(leads, last, back):
    senders = fleet_of(*leads, odd=True)
    senders["last_lead_s"] = last
    fleet = now(leader=1, leader_voter=1, leader_t=T + 9.0)
    review(senders, 4, fleet, RULES)
    assert (fleet["leader"] == 0) == back
    # what was odd by the time that is taken back is odd no more
    assert senders["odd"].tolist() == [not back] * 4


def test_who_is_silent_or_unsteady_has_no_vote():
    senders, fleet = fleet_of(0.1, 0.1, 0.4, 0.4, 0.4), now()
    senders[2]["unsteady"] = True
    senders[3]["heard_t"] = T - 10.5
    senders[4]["n"] = 0
    review(senders, 5, fleet, RULES)
    assert values(fleet, "active", "lead_s") == [2, 0.1]
    nobody = now(wait_s=7.0)
    review(senders, 0, nobody, RULES)
    assert values(nobody, "active", "confirmed", "lead_s", "every_s", "wait_s", "reach_s") == [0, 0, 0, 0, 1.0, 1.5]
