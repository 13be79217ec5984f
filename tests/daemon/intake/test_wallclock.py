"""The fleet's time against this machine's."""

import math

import pytest

from watchkeeper.daemon.intake.wallclock import WallClock


def heard(offset_s: float, *, seconds: int = 40, delays: tuple[float, ...] = (0.0,)) -> WallClock:
    clock = WallClock()
    for i in range(seconds):
        clock.note(1.7e9 + i + offset_s - delays[i % len(delays)], 1.7e9 + i, float(i))
    return clock


@pytest.mark.parametrize(("offset_s", "said"), [(20.0, "20 s ahead of"), (-3600.0, "3,600 s behind")])
def test_a_fleet_with_one_wrong_clock_is_noticed(offset_s, said):
    (sentence,) = heard(offset_s).health(10.0)
    assert said in sentence


@pytest.mark.parametrize("offset_s", [0.0, 5.0, -5.0, -1.7e9, -90_000.0])
def test_small_differences_and_a_simulators_own_time_are_not(offset_s):
    assert heard(offset_s).health(10.0) == []


def test_single_delays_and_a_short_past_do_not_count():
    assert heard(0.0, delays=(30.0, 30.0, 0.0)).health(10.0) == []
    assert heard(3600.0, seconds=15).health(10.0) == []
    assert WallClock().health(10.0) == []
    assert math.isnan(WallClock().offset_s)


def test_zero_turns_it_off():
    assert heard(3600.0).health(0.0) == []
