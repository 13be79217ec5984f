"""Samples that are held: when they are let in or given up, on both sides of the present, at the limits."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine import eventtime
from watchkeeper.detectors.engine.eventtime import ACCEPT, HELD, EventClock, HeldSample
from watchkeeper.streams.messages import Drop, Kind

from sender_records import TIME, Run, T, together


@pytest.mark.parametrize(
    ("behind_s", "why"),
    [
        (0.0, Drop.TIME_JUMP), (0.25, Drop.LATE), (31.0, Drop.LATE), (31.25, Drop.TIME_JUMP), (-9.0, Drop.TIME_JUMP),
    ],
)  # fmt: skip
def test_what_is_given_up_is_late_up_to_the_largest_jump_and_the_lateness(behind_s, why):
    run = Run()
    run.clock.reach(T)
    run.clock.held = [HeldSample(Kind.IMU, "a", "", T - behind_s, np.zeros(1))]
    run.clock.give_up(lambda kind, reason: run.drops.append((kind, reason)))
    assert run.drops == [(Kind.IMU, why)]
    assert run.clock.held == []


@pytest.mark.parametrize(("last_s", "jumped"), [(3.0, True), (2.75, False)])
@pytest.mark.parametrize("to_t", [T + 500.0, T - 500.0])
def test_one_alone_has_jumped_once_it_goes_on_for_as_long_as_confirms_it(last_s, jumped, to_t):
    run = Run()
    run.feed(("a", T), ("a", to_t), ("a", to_t + 1.0), ("a", to_t + last_s))
    assert run.codes == [ACCEPT, HELD, HELD, HELD]
    assert run.released == ([to_t, to_t + 1.0, to_t + last_s] if jumped else [])
    assert len(run.clock.held) == (0 if jumped else 3)
    assert run.resets == (jumped and to_t < T)
    assert run.clock.t_max == (to_t + last_s if jumped else T)


def test_two_of_two_go_forward_at_once_and_back_only_if_they_go_on():
    run = Run()
    run.feed(*together("ab", 20), ("a", T + 500.0))
    assert len(run.clock.held) == 1
    run.feed(("b", T + 500.0))
    assert (run.released, run.clock.held) == ([T + 500.0] * 2, [])
    back = Run()
    back.feed(*together("ab", 20), *together("ab", 3, T - 500.0))
    assert (back.resets, len(back.clock.held)) == (0, 6)
    back.feed(("a", T - 497.0))
    assert (back.resets, len(back.released), back.drops) == (1, 7, [])


def test_a_sample_on_the_line_ends_what_one_other_held_on_either_side():
    for far_s in (500.0, -500.0):
        run = Run()
        run.feed(*together("abc", 20), ("c", T + far_s))
        assert (run.codes[-1], len(run.clock.held)) == (HELD, 1)
        run.feed(("a", T + 20.0))
        assert (run.codes[-1], run.clock.held, run.drops) == (ACCEPT, [], [(Kind.GPS, Drop.TIME_JUMP)])


def test_the_oldest_is_dropped_where_too_many_are_held(monkeypatch):
    monkeypatch.setattr(eventtime, "HELD_MAX", 3)
    run = Run(Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=600.0))
    run.feed(("a", T), *(("a", T + 500.0 + k) for k in range(3)))
    assert ([held.t - T for held in run.clock.held], run.drops) == ([500.0, 501.0, 502.0], [])
    run.feed(("a", T + 503.0))
    assert [held.t - T for held in run.clock.held] == [501.0, 502.0, 503.0]
    assert run.drops == [(Kind.GPS, Drop.TIME_JUMP)]


def test_new_limits_hold_from_the_next_sample_on():
    run = Run()
    run.feed(("a", T), ("a", T + 30.0))
    run.feed(("a", T + 60.25))
    assert run.codes == [ACCEPT, ACCEPT, HELD]
    wider = Run()
    wider.feed(("a", T), ("a", T + 30.0))
    wider.clock.retune(Time(tick_s=1.0, lateness_s=2.0, max_jump_s=40.0, jump_confirm_s=5.0))
    wider.feed(("a", T + 60.25))
    assert wider.codes == [ACCEPT] * 3
    assert (wider.clock.lateness_s, wider.clock.max_jump_s, wider.clock.jump_confirm_s) == (2.0, 40.0, 5.0)


def test_a_known_offset_is_taken_off_and_that_is_said():
    run = Run()
    assert not run.feed(*together("abc", 20)).shifted
    assert run.clock.noted_t == np.inf
    for k in range(20, 40):
        run.feed(*((name, T + k) for name in "abc"))
        verdict = run.feed(("d", T + k + 100.0))
    assert (verdict.shifted, verdict.codes.tolist()) == (True, [ACCEPT])
    assert not run.feed(("a", T + 40.0)).shifted
    own_t = run.clock.own_t(np.array([T, T]), ["a", "d"], np.array([1, 0], np.int32))
    assert own_t.tolist() == pytest.approx([T - 100.0, T], abs=0.5)
    first = run.clock.noted_t
    assert [note.name for note in run.clock.take_notes(0, first)] == ["d"]
    assert run.clock.noted_t > first
    assert run.clock.gauges()["off"] == 1.0


@pytest.mark.parametrize(("t", "is_open"), [(T - 1.5, False), (T - 1.25, True), (T, True)])
def test_a_tick_is_open_until_time_is_past_its_end_and_the_lateness(t, is_open):
    # ticks of half a second
    run = Run(Time(tick_s=0.5, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=3.0))
    run.feed(("a", T))
    assert run.clock._is_open(t) is is_open


def test_time_is_at_least_what_is_reached():
    clock = EventClock(TIME, 16)
    assert clock.t_max == -np.inf
    for t, expected in ((T, T), (T - 5.0, T), (T + 5.0, T + 5.0)):
        clock.reach(t)
        assert clock.t_max == expected


def test_what_is_held_is_part_of_a_snapshot():
    run, other = Run(), Run()
    run.feed(("a", T), ("a", T + 500.0), ("a", T + 501.0))
    other.clock.restore(run.clock.snapshot())
    assert [(held.kind, held.name, held.t) for held in other.clock.held] == [
        (Kind.GPS, "a", T + 500.0), (Kind.GPS, "a", T + 501.0),
    ]  # fmt: skip
    other.feed(("a", T + 503.0))
    assert (other.released, other.clock.held) == ([T + 500.0, T + 501.0, T + 503.0], [])
