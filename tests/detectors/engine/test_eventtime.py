"""Event time: on time, late, jumped. Every decision is the same for any chunking."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import ACCEPT, HELD, LATE, EventClock, HeldSample, closed_tick, tick_of
from watchkeeper.streams.messages import Drop, Kind

TIME = Time(tick_s=1.0, lateness_s=1.0, max_jump_s=30.0, jump_confirm_s=3.0)


class Run:
    """Feeds times to a clock and keeps what happened, numbered over the whole input."""

    def __init__(self, time: Time = TIME) -> None:
        self.clock = EventClock(time)
        self.codes: list[int] = []
        self.resets: list[int] = []
        self.released: list[tuple[int, float]] = []
        self.drops: list[str] = []

    def feed(self, times: list[float]) -> "Run":
        t = np.array(times, float)
        base = len(self.codes)
        verdict = self.clock.admit(
            t, lambda i: HeldSample(Kind.GPS, "x", float(t[i]), np.zeros(1)), lambda _, why: self.drops.append(why)
        )
        self.codes += verdict.codes.tolist()
        self.resets += [base + i for i in verdict.resets]
        self.released += [(base + i, held.t) for i, held in verdict.released]
        return self


@pytest.mark.parametrize(
    ("t_max", "tick"), [(10.0, 8), (10.000001, 9), (10.5, 9), (11.0, 9), (11.1, 10), (-np.inf, -(2**62))]
)
def test_a_tick_closes_once_time_is_past_its_end_plus_lateness(t_max, tick):
    assert closed_tick(t_max, 1.0, 1.0) == tick


def test_a_sample_at_the_very_end_of_a_tick_belongs_to_it():
    assert tick_of(np.array([0.0, 0.5, 1.0, 1.0000001]), 1.0).tolist() == [0, 1, 1, 2]


def test_a_sample_of_a_closed_tick_is_late_and_of_an_open_one_is_not():
    run = Run().feed([10.0, 8.5, 12.5, 11.0, 11.5])
    # 12.5 closes tick 11 (ends at 11 < 11.5), so 11.0 is late and 11.5 is not
    assert run.codes == [ACCEPT, ACCEPT, ACCEPT, LATE, ACCEPT]


def test_one_wrong_clock_among_good_ones_is_dropped_and_time_does_not_move():
    run = Run().feed([100.0, 5000.0, 100.2, 5000.3, 100.4])
    assert run.codes == [ACCEPT, HELD, ACCEPT, HELD, ACCEPT]
    assert run.drops == [Drop.TIME_JUMP] * 2
    assert run.clock.t_max == 100.4


def test_a_gap_in_the_input_is_confirmed_and_nothing_is_lost():
    run = Run().feed([100.0, 5000.0, 5001.0, 5002.0, 5003.5, 5004.0])
    assert [t for _, t in run.released] == [5000.0, 5001.0, 5002.0, 5003.5]
    assert run.codes[-1] == ACCEPT
    assert run.drops == []


def test_a_lone_vehicle_that_reports_once_a_minute_loses_nothing():
    run = Run().feed([60.0 * i for i in range(10)])
    let_in = run.codes.count(ACCEPT) + len(run.released)
    assert let_in + len(run.clock.held) == 10
    assert len(run.clock.held) <= 1
    assert run.drops == []


def test_a_restarted_simulation_begins_a_new_era():
    run = Run().feed([1000.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    assert run.resets == [4]
    assert [t for _, t in run.released] == [0.0, 1.0, 2.0, 3.0]
    assert run.clock.t_max == 4.0


def test_random_times_of_an_attacker_never_move_time():
    rng = np.random.default_rng(1)
    times = [1e9]
    for i in range(2000):
        times += [float(rng.uniform(0, 4e9))] * int(rng.integers(0, 4)) + [1e9 + i * 0.01]
    run = Run().feed(times)
    assert run.clock.t_max == pytest.approx(1e9 + 19.99)
    assert run.resets == []
    assert run.codes.count(ACCEPT) == 2001


@given(
    st.lists(
        st.one_of(st.floats(0.0, 40.0), st.floats(90.0, 110.0), st.floats(0.0, 5000.0)).map(lambda x: round(x, 2)),
        max_size=80,
    ),
    st.lists(st.integers(1, 7), min_size=1, max_size=10),
)
@settings(max_examples=300, deadline=None)
def test_decisions_do_not_depend_on_chunking(times, sizes):
    whole = Run().feed(times)
    parts = Run()
    at = 0
    while at < len(times):
        size = sizes[at % len(sizes)]
        parts.feed(times[at : at + size])
        at += size
    assert (parts.codes, parts.resets, parts.released, parts.drops) == (
        whole.codes, whole.resets, whole.released, whole.drops,
    )  # fmt: skip
    # and every sample is accounted for exactly once
    let_in = whole.codes.count(ACCEPT) + len(whole.released)
    assert let_in + whole.codes.count(LATE) + len(whole.drops) + len(whole.clock.held) == len(times)
