"""Pacing: samples leave when they are due by the clock, never sooner, in the same order at any speed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.logs.pacing import GROUP_S, Pacer, paced, parse_speed
from watchkeeper.streams.messages import Kind


class SteppedClock:
    """A clock that moves only when somebody sleeps (or a test pushes it)."""

    def __init__(self) -> None:
        self.t = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.t

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.t += seconds


def batch_at(times: list[float]) -> Batch:
    return Batch(["a"], {Kind.GPS: columns_of(Kind.GPS, np.zeros(len(times), np.int32), np.array(times), {})})


def run(batches: list[Batch], speed: float, clock: SteppedClock, max_gap_s: float = 600.0) -> list[tuple[float, float]]:
    """(clock, sample time) of every sample as it leaves."""
    left = []
    for group in paced(batches, Pacer(speed, clock, max_gap_s=max_gap_s)):
        left += [(clock.t, t) for t in group.kinds[Kind.GPS].t.tolist()]
    return left


@given(
    steps=st.lists(st.floats(0, 20), min_size=1, max_size=50),
    speed=st.sampled_from([0.5, 1.0, 50.0]),
    frame=st.integers(1, 20),
)
def test_no_sample_leaves_before_it_is_due_nor_much_later(steps: list[float], speed: float, frame: int) -> None:
    times = np.cumsum(steps).tolist()
    clock = SteppedClock()
    left = run([batch_at(times[i : i + frame]) for i in range(0, len(times), frame)], speed, clock)
    assert [t for _, t in left] == times
    start = left[0][0] - (left[0][1] - times[0]) / speed
    for at, t in left:
        due = start + (t - times[0]) / speed
        assert due - GROUP_S - 1e-6 <= at <= due + GROUP_S + 1e-6


def test_one_frame_of_a_minute_takes_a_minute_at_real_time_and_a_second_at_sixty() -> None:
    for speed, expected in ((1.0, 60.0), (60.0, 1.0)):
        clock = SteppedClock()
        run([batch_at(np.arange(0, 60.001, 0.01).tolist())], speed, clock)
        assert clock.t - 1000.0 == pytest.approx(expected, abs=2 * GROUP_S)


def test_at_full_speed_nobody_sleeps_and_batches_pass_untouched() -> None:
    clock = SteppedClock()
    batch = batch_at([0.0, 3600.0])
    assert list(paced([batch], Pacer(math.inf, clock, max_gap_s=1.0))) == [batch]
    assert clock.slept == []


def test_a_slow_consumer_is_not_slept_on_top_of() -> None:
    clock = SteppedClock()
    for group in paced([batch_at([float(t) for t in range(10)])], Pacer(1.0, clock, max_gap_s=600.0)):
        clock.t += 5.0 * len(group)
    assert clock.slept == []


def test_nothing_is_pulled_before_it_is_asked_for() -> None:
    pulled = []

    def source() -> object:
        for k in range(10):
            pulled.append(k)
            yield batch_at([float(k)])

    flow = paced(source(), Pacer(1.0, SteppedClock(), max_gap_s=600.0))  # type: ignore[arg-type]
    next(flow)
    # the log's own time looks one batch ahead
    assert pulled == [0, 1]


def test_long_gaps_and_wild_timestamps_are_not_waited_for() -> None:
    clock = SteppedClock()
    times = [0.0, 1.0, 2.0, 4e9, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10_000.0, 10_001.0, 10_002.0, 10_003.0, 10_004.0]
    left = run([batch_at(times)], 1.0, clock, max_gap_s=600.0)
    assert [t for _, t in left] == times
    assert clock.t - 1000.0 == pytest.approx(8.0 + 4.0, abs=0.5)


@pytest.mark.parametrize("word", ["0", "-1", "fast", "nan", "inf", "", "1e400"])
def test_speeds_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="expected a positive number"):
        parse_speed(word)
    assert parse_speed("0.5x") == 0.5
