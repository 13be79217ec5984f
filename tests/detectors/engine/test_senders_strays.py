"""What one sample off the line says of its sender's clock: each rule at exactly its limit, on records made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.detectors.engine.senders.records import Sender
from watchkeeper.detectors.engine.senders.strays import (
    blame,
    join_run,
    leaps,
    new_run,
    recently_odd,
    shift,
    stale_s,
    stray,
    untaken,
)

from sender_records import RULES, T, made, now


@pytest.mark.parametrize(("n", "sent_t", "is_so"), [(1, 3.5, False), (1, 3.75, True), (0, 9.0, False), (2, 9.0, True)])
def test_untaken_is_longer_than_three_and_a_half_seconds(n, sent_t, is_so):
    assert untaken(made(Sender, refused_n=n, refused_t=T, sent_t=T + sent_t)) is is_so


@pytest.mark.parametrize(
    ("every_s", "active", "expected_s"),
    [(2.0, 4, 2.0), (0.5, 4, 0.5), (0.0, 4, 5.0), (3.0, 0, 12.0), (3.0, 1, 12.0), (3.0, 2, 6.0)],
)
def test_a_fleets_time_may_be_behind_by_four_of_its_reports(every_s, active, expected_s):
    assert stale_s(now(every_s=every_s, active=active)) == expected_s


@pytest.mark.parametrize(
    ("odd", "apart_s", "interval_s", "is_so"),
    [
        (True, 0.0, 0.0, False), (True, 0.1, 0.0, True), (True, 10.0, 0.0, True), (True, 10.5, 0.0, False),
        (True, 20.0, 5.0, True), (True, 20.5, 5.0, False), (False, 5.0, 0.0, False), (True, -1.0, 0.0, False),
    ],
)  # fmt: skip
def test_lately_is_ten_seconds_or_four_reports(odd, apart_s, interval_s, is_so):
    sender = made(Sender, odd=odd, odd_t=T - apart_s, interval_s=interval_s)
    assert recently_odd(sender, now()) is is_so


# one that was odd 4 s ago, and by how much its lead differs now; the fleet may be behind by 4 s, samples late by 1 s
@pytest.mark.parametrize(
    ("lead", "changed", "leapt"),
    [
        (5.0, {}, False), (5.25, {}, True), (-5.0, {}, False), (-5.25, {}, True),
        # the fleet went on by as much as the sender fell behind: it may be catching up
        (-5.25, {"odd_t": T - 5.25}, True), (-5.25, {"odd_t": T - 5.5}, False), (5.25, {"odd_t": T - 5.5}, True),
        # ahead now, or then; also as sent, before the known offset was taken off
        (-9.0, {"odd_ahead": False}, False), (9.0, {"odd_ahead": False}, True),
        (9.0, {"odd_ahead": False, "offset_s": -9.0}, False), (9.0, {"odd_ahead": False, "offset_s": -8.5}, True),
        (9.0, {"odd_ahead": False, "offset_s": 8.5}, True), (0.0, {"odd_ahead": False, "odd_s": 20.0}, False),
        # too long ago, or never
        (9.0, {"odd_t": T - 10.5}, False), (9.0, {"odd": False}, False), (9.0, {"odd_t": T}, False),
    ],
)  # fmt: skip
def test_two_samples_far_apart_of_which_one_was_ahead_are_a_leap(lead, changed, leapt):
    sender = made(Sender, **{"odd": True, "odd_ahead": True, "odd_s": 0.0, "odd_t": T - 4.0, **changed})
    fleet = now()
    assert leaps(sender, lead, fleet, RULES) is leapt
    assert (bool(sender["unsteady"]), bool(sender["named"]), float(sender["strays"])) == (leapt, leapt, float(leapt))
    assert fleet["off"] == leapt


@pytest.mark.parametrize(
    ("fleet", "sender"), [({"active": 2}, {}), ({"doubt": 1}, {}), ({}, {"unsteady": True}), ({"active": 1}, {})]
)
def test_nobody_leaps_where_nobody_can_be_outvoted_or_while_there_is_doubt(fleet, sender):
    record = made(Sender, odd=True, odd_ahead=True, odd_t=T - 4.0, **sender)
    assert not leaps(record, 50.0, now(**fleet), RULES)
    assert not record["odd"]


def test_the_first_odd_sample_of_a_moment_is_kept_and_a_later_one_takes_its_place():
    sender, fleet = made(Sender), now()
    assert not leaps(sender, 7.0, fleet, RULES)
    assert (bool(sender["odd"]), bool(sender["odd_ahead"]), float(sender["odd_s"]), float(sender["odd_t"])) == (
        True, True, 7.0, T,
    )  # fmt: skip
    leaps(sender, 3.0, fleet, RULES)
    assert sender["odd_s"] == 7.0
    fleet["t"] = T + 1.0
    leaps(sender, 6.0, fleet, RULES)
    assert (float(sender["odd_s"]), float(sender["odd_t"])) == (6.0, T + 1.0)
    calm = made(Sender, odd=True, odd_s=1.0, odd_t=T - 1.0)
    leaps(calm, 0.0, fleet, RULES)
    assert (bool(calm["odd_ahead"]), float(calm["odd_s"]), float(calm["odd_t"])) == (False, 0.0, T + 1.0)


def test_a_stray_that_is_a_leap_is_news_and_nothing_more_is_learned_of_it():
    sender = made(Sender, odd=True, odd_ahead=True, odd_t=T - 4.0, last_t=T - 1.0)
    assert stray(sender, 9.0, now(), RULES)
    assert (bool(sender["unsteady"]), float(sender["strays"]), float(sender["last_t"])) == (True, 1.0, T - 1.0)


def test_samples_that_are_not_taken_are_counted_from_the_first():
    sender, fleet = made(Sender), now(active=2)
    for k in range(3):
        fleet["t"] = T + k
        stray(sender, -3.0, fleet, RULES)
    assert (int(sender["refused_n"]), float(sender["refused_t"]), float(sender["sent_t"])) == (3, T, T + 2.0)
    assert sender["last_t"] == T + 2.0 - 3.0


@pytest.mark.parametrize(
    ("lead", "sender", "counts"),
    [
        (0.25, {}, True), (0.0, {}, False), (-30.0, {}, False), (-30.5, {}, True), (-2.0, {}, False),
        # it has gone back by more than five seconds
        (-2.0, {"last_t": T + 3.0}, False), (-2.0, {"last_t": T + 3.25}, True),
        # only one for each moment of the fleet
        (9.0, {"stray_t": T}, False), (9.0, {"stray_t": T - 0.5}, True),
    ],
)  # fmt: skip
def test_strays_count_that_no_delay_explains(lead, sender, counts):
    record = made(Sender, strays=0.2, **sender)
    stray(record, lead, now(active=2), RULES)
    assert record["strays"] == pytest.approx(0.2 + 0.1 * 0.8 if counts else 0.2)
    assert record["stray_t"] == (T if counts else sender.get("stray_t", 0.0))


@pytest.mark.parametrize(
    ("lead", "changed", "shifted_s"),
    # three that agree on -8, since two seconds; usual_s is 2: one second apart still agrees
    [
        (-8.0, {}, -8.0), (-9.0, {}, -8.25), (-7.0, {}, -7.75), (-9.25, {}, None), (-6.75, {}, None),
        (-8.0, {"agreed_n": 2}, None), (-8.0, {"agreed_t": T - 1.75}, None), (-8.0, {"agreed_n": 0}, None),
        (-0.5, {"agreed_s": -0.5}, None), (-0.75, {"agreed_s": -0.75}, -0.75),
    ],
)  # fmt: skip
def test_four_strays_that_agree_for_two_seconds_are_an_offset(lead, changed, shifted_s):
    sender = made(Sender, **{"agreed_s": -8.0, "agreed_n": 3, "agreed_t": T - 2.0, "last_t": T - 8.0, **changed})
    n = int(sender["agreed_n"])
    agrees = n > 0 and abs(lead - float(sender["agreed_s"])) <= 1.0
    assert stray(sender, lead, now(active=2), RULES) is (shifted_s is not None)
    assert sender["offset_s"] == (shifted_s or 0.0)
    if shifted_s is None:
        assert (int(sender["agreed_n"]), float(sender["agreed_t"])) == (
            (n + 1, sender["agreed_t"]) if agrees else (1, T)
        )
        assert agrees or sender["agreed_s"] == lead


@pytest.mark.parametrize(("lead_s", "offset_s"), [(0.0, 8.0), (0.5, 7.75), (-0.5, 8.0)])
def test_half_of_the_fleets_own_lead_is_no_part_of_an_offset(lead_s, offset_s):
    sender = made(Sender, agreed_s=8.0, agreed_n=3, agreed_t=T - 2.0)
    assert stray(sender, 8.0, now(active=1, lead_s=lead_s), RULES)
    assert sender["offset_s"] == offset_s
    nobody = made(Sender, agreed_s=8.0, agreed_n=3, agreed_t=T - 2.0)
    assert not stray(nobody, 8.0, now(active=0), RULES)


@pytest.mark.parametrize(("share", "unsteady"), [(0.32, False), (1.0 / 3.0, True), (0.34, True)])
def test_a_share_of_two_fifths_is_unsteady(share, unsteady):
    # one more far stray adds a tenth of what is left: from a third to two fifths
    sender, fleet = made(Sender, strays=share + 1e-12), now(active=2)
    assert stray(sender, 9.0, fleet, RULES) is unsteady
    assert (bool(sender["unsteady"]), int(fleet["off"])) == (unsteady, unsteady)
    # not for one that a delay explains, and only once
    assert not stray(made(Sender, strays=0.9), -3.0, now(active=2), RULES)
    assert not stray(made(Sender, strays=0.9, unsteady=True), 9.0, now(active=2), RULES)


@pytest.mark.parametrize(
    ("sender", "fleet", "said"),
    [({}, {}, True), ({"named": True}, {}, False), ({}, {"doubt": 2}, False), ({"refused_t": T - 3.5}, {}, False)],
)
def test_one_of_which_nothing_is_taken_is_named_once(sender, fleet, said):
    record = made(Sender, **{"refused_n": 2, "refused_t": T - 4.0, **sender})
    assert stray(record, -3.0, now(active=2, **fleet), RULES) is said
    assert bool(record["named"]) is (said or "named" in sender)


def test_a_shift_starts_the_sender_anew():
    sender = made(
        Sender, offset_s=3.0, n=20, agreed_n=4, ahead_s=2.0, ahead_n=3, odd=True, strays=0.3, lag_s=4.0, changes=1,
        changed_t=T - 60.0, lead_s=9.0,
    )  # fmt: skip
    fleet = now(lead_s=0.25)
    shift(sender, 2.0, fleet)
    assert sender["offset_s"] == 5.0
    for name in ("n", "agreed_n", "ahead_s", "ahead_n", "odd", "strays", "lag_s"):
        assert not sender[name], name
    assert (sender["newest_t"], sender["last_t"], sender["lead_s"], sender["changed_t"]) == (T, T, 0.25, T)
    assert (int(sender["changes"]), bool(sender["named"]), int(fleet["off"])) == (2, True, 1)
    assert not sender["unsteady"]


@pytest.mark.parametrize(("changes", "ago_s", "unsteady"), [(2, 9.0, False), (3, 60.0, True), (3, 60.5, False)])
def test_the_fourth_change_within_a_minute_is_unsteady(changes, ago_s, unsteady):
    sender = made(Sender, changes=changes, changed_t=T - ago_s)
    shift(sender, 2.0, now())
    assert (bool(sender["unsteady"]), float(sender["strays"])) == (unsteady, float(unsteady))
    assert sender["changes"] == (1 if ago_s > 60.0 else changes + 1)


def test_who_is_named_already_is_not_counted_again():
    sender, fleet = made(Sender), now(off=4)
    blame(sender, fleet)
    fleet["t"] = T + 5.0
    blame(sender, fleet)
    assert (int(fleet["off"]), float(sender["named_t"])) == (5, T + 5.0)


def test_a_new_run_has_nobody():
    fleet = now(run=3, run_senders=2, line_senders=1, run_smooth=False, run_ordered=False, run_t=T)
    new_run(fleet)
    assert [fleet[name] for name in ("run", "run_senders", "line_senders", "run_t")] == [4, 0, 0, -np.inf]
    assert fleet["run_smooth"]
    assert fleet["run_ordered"]


@pytest.mark.parametrize(
    ("x", "sender", "ordered", "smooth"),
    # its last stray was 6 s ago and its interval is 2 s: three intervals are still its pace
    [
        (T, {}, True, True), (T + 0.25, {}, True, False), (T, {"n": 8}, True, False), (T - 7.0, {}, False, True),
        (T - 6.0, {}, True, True),
    ],
)  # fmt: skip
def test_a_run_is_in_order_and_smooth_until_a_sample_is_not(x, sender, ordered, smooth):
    fleet = now(run=5, run_senders=1, run_t=T - 5.0, row=7)
    record = made(Sender, **{"run": 5, "run_n": 3, "held_t": T - 6.0, "interval_s": 2.0, "n": 9, **sender})
    join_run(record, x, fleet)
    assert (bool(fleet["run_ordered"]), bool(fleet["run_smooth"])) == (ordered, smooth)
    assert (int(record["run_n"]), float(record["held_t"])) == (4, x)
    assert (float(fleet["run_t"]), int(fleet["row"]), int(fleet["run_senders"])) == (x, 8, 1)


def test_one_that_is_new_to_a_run_is_counted():
    fleet, record = now(run=5, run_senders=1), made(Sender, run=4, run_n=3, held_t=T - 60.0)
    join_run(record, T, fleet)
    assert (int(fleet["run_senders"]), int(record["run"]), int(record["run_n"])) == (2, 5, 1)
    assert fleet["run_smooth"]
