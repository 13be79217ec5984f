"""Samples that wait for their tick: whatever the order of arrival, a tick has them by vehicle and time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.detectors.engine.window import FEW, Block, Pending, samples_of
from watchkeeper.streams.messages import FIELDS, Kind

SLOTS = 4
# Halves, so that some times are equal and some end a tick; sometimes far apart.
TIMES = st.one_of(st.integers(0, 40), st.integers(0, 4 * FEW)).map(lambda halves: halves / 2.0)
ARRIVALS = st.lists(st.tuples(st.integers(0, SLOTS - 1), TIMES), min_size=1, max_size=60)


def block(slot: list[int], t: list[float], first: int) -> Block:
    """Samples that carry the number of their arrival."""
    n = len(t)
    data = np.tile(np.arange(first, first + n, dtype=float), (len(FIELDS[Kind.IMU]), 1))
    return Block(np.array(slot, np.int32), np.full(n, -1, np.int32), np.array(t), data)


@given(arrivals=ARRIVALS, cuts=st.lists(st.integers(0, 60), max_size=5), until=st.integers(0, 25))
def test_a_tick_has_its_samples_by_vehicle_and_time_and_the_first_of_two_at_one_time(
    arrivals: list[tuple[int, float]], cuts: list[int], until: int
) -> None:
    pending = Pending(Kind.IMU)
    edges = [0, *sorted(min(cut, len(arrivals)) for cut in cuts), len(arrivals)]
    for begin, end in pairwise(edges):
        part = arrivals[begin:end]
        pending.add(block([slot for slot, _ in part], [t for _, t in part], begin))
    found, dropped = {}, 0
    for last in (until, 4 * FEW):
        for tick, waiting in pending.cut(last, 1.0).items():
            assert tick not in found
            assert tick <= last
            drops: list[int] = []
            found[tick] = samples_of(Kind.IMU, waiting, SLOTS, drops.append)
            dropped += sum(drops)
    assert pending.n == 0
    expected: dict[int, dict[tuple[int, float], int]] = {}
    for number, (slot, t) in enumerate(arrivals):
        expected.setdefault(int(np.ceil(t)), {}).setdefault((slot, t), number)
    assert set(found) == set(expected)
    for tick, samples in found.items():
        told = [*zip(samples.slot.tolist(), samples.t.tolist(), samples.data[0].astype(int).tolist(), strict=True)]
        assert told == [(slot, t, number) for (slot, t), number in sorted(expected[tick].items())]
    assert dropped == len(arrivals) - sum(map(len, expected.values()))


@pytest.mark.parametrize("kind", [Kind.IMU, Kind.SIGNAL])
def test_only_of_signals_a_vehicle_has_several_at_one_time(kind: Kind) -> None:
    dropped: list[int] = []
    samples = samples_of(kind, block([1, 1, 0], [2.0, 2.0, 1.0], 0), SLOTS, dropped.append)
    assert len(samples) == (3 if kind is Kind.SIGNAL else 2)
    assert sum(dropped) == (0 if kind is Kind.SIGNAL else 1)


def test_a_vehicle_that_sends_backward_is_sorted_too_and_not_move_by_move() -> None:
    n = 2000
    times = [float(n - k) for k in range(n)]
    samples = samples_of(Kind.IMU, block([1] * n, times, 0), SLOTS, lambda _n: None)
    assert samples.t.tolist() == sorted(times)
    assert samples.data[0].tolist() == list(range(n - 1, -1, -1))
