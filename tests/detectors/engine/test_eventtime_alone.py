"""Senders that go on alone at another time: how long, and how often, until they are believed. At the limits."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import ACCEPT, HeldSample
from watchkeeper.streams.messages import Drop, Kind

from sender_records import TIME, Run, T, together

# time jumps by these; back by less than 300 s may be what a link had kept back
AHEAD, BACK, FAR_BACK = 500.0, -200.0, -400.0


def alone(
    samples: int, by_s: float, step_s: float, time: Time = TIME, fleet: list[tuple[str, float]] | None = None
) -> Run:
    """Three senders once a second for 20 s; then only the last of them, at another time. Kept is what happens then."""
    run = Run(time)
    run.feed(*(fleet or together("abc", 20)))
    run.released.clear()
    run.feed(*(("c", T + by_s + step_s * k) for k in range(samples)))
    return run


@pytest.mark.parametrize(
    ("by_s", "step_s", "samples"),
    [
        # at its own pace for ten seconds; at another pace, thirty samples
        (AHEAD, 1.0, 11), (AHEAD, 2.5, 5), (AHEAD, 5.0, 30), (AHEAD, 0.25, 41),
        # back by minutes for a minute; by more, as long as ahead and as often as at another pace
        (BACK, 1.0, 61), (BACK, 5.0, 30), (FAR_BACK, 1.0, 30), (FAR_BACK, 0.25, 41),
    ],
)  # fmt: skip
def test_one_that_goes_on_alone_is_believed_after_so_many_samples(by_s, step_s, samples):
    before, after = alone(samples - 1, by_s, step_s), alone(samples, by_s, step_s)
    assert (len(before.clock.held), before.released, before.clock.t_max) == (samples - 1, [], T + 19.0)
    assert (len(after.released), after.clock.held, after.drops) == (samples, [], [])
    assert after.resets == (by_s < 0.0)
    assert after.clock.t_max == T + by_s + step_s * (samples - 1)


def test_it_takes_as_long_as_confirms_a_jump_where_that_is_more():
    slow = Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=20.0)
    assert alone(20, AHEAD, 1.0, slow).released == []
    assert len(alone(21, AHEAD, 1.0, slow).released) == 21
    assert alone(40, FAR_BACK, 0.5, slow).released == []
    assert len(alone(41, FAR_BACK, 0.5, slow).released) == 41


def test_where_reports_are_rare_it_takes_three_of_them():
    rare = [(name, T + 6.0 * k) for k in range(20) for name in "abc"]
    for samples, released in ((3, 0), (4, 0), (5, 5)):
        run = alone(samples, AHEAD, 6.0, fleet=rare)
        assert len(run.released) == released
    # and thirty for each second between them
    for samples, released in ((179, 0), (180, 180)):
        run = alone(samples, AHEAD, 20.0, fleet=rare)
        assert len(run.released) == released


def test_one_of_two_at_another_pace_needs_as_many_samples():
    for samples, released in ((29, 0), (30, 30)):
        assert len(alone(samples, AHEAD, 5.0, fleet=together("bc", 20)).released) == released


def test_two_of_four_that_go_on_together_are_believed_after_ten_seconds():
    for seconds, believed in ((10, False), (11, True)):
        run = Run()
        run.feed(*together("abcd", 20), *together("cd", seconds, T + AHEAD))
        assert bool(run.released) is believed


def test_a_sample_among_others_that_are_as_far_is_enough_for_most():
    # two of three go forward: at once; what the third had sent before is of the old time
    run = Run()
    run.feed(*together("abc", 20), ("a", T + AHEAD))
    assert run.released == []
    run.feed(("b", T + AHEAD + 1.0))
    assert run.released == [T + AHEAD, T + AHEAD + 1.0]
    run.feed(("c", T + 20.0))
    assert run.codes[-1] != ACCEPT


def test_when_most_have_jumped_what_another_held_elsewhere_is_given_up():
    run = Run()
    run.feed(*together("abc", 20), ("c", T + 900.0), ("a", T + AHEAD), ("b", T + AHEAD))
    assert (run.released, run.clock.held) == ([T + AHEAD] * 2, [])
    assert run.drops == [(Kind.GPS, Drop.TIME_JUMP)]


def test_gateways_whose_numbers_are_given_away_are_forgotten():
    run = Run()
    for k in range(3):
        for number, name in enumerate("abc"):
            run.clock.admit(
                np.array([T + k]), [name], np.zeros(1, np.int32), np.full(1, number, np.int32),
                lambda _, at, name=name: HeldSample(Kind.GPS, name, "", at, np.zeros(1)), lambda *_: None,
            )  # fmt: skip
    run.clock.forget_gateways(np.array([1, 7], np.int32))
    assert run.clock._table.senders["via"][:3].tolist() == [1, 0, 3]


def test_what_is_within_reach_once_time_has_gone_on_is_let_in_and_the_rest_given_up():
    # a sample 8 s ahead is held; the fleet gets near it in time
    run = Run()
    run.feed(*together("abc", 20), ("c", T + 27.0))
    assert len(run.clock.held) == 1
    run.feed(*((name, T + 20.0 + k) for k in range(9) for name in "ab"))
    assert run.clock.held == []
    assert len(run.released) + len(run.drops) == 1
