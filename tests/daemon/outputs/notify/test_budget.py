"""However alarms come, a person gets no more than the burst and one message each pause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.daemon.outputs.notify.budget import Budget


@given(st.integers(1, 20), st.floats(0.1, 1000), st.lists(st.floats(0, 3000), max_size=200))
def test_in_no_stretch_of_time_more_than_burst_and_one_each_pause(
    burst: int, pause_s: float, gaps_s: list[float]
) -> None:
    now_s = 1000.0
    budget = Budget(burst, pause_s, lambda: now_s)
    sent_s: list[float] = []
    for gap_s in gaps_s:
        now_s += gap_s
        if budget.left:
            budget.spend()
            sent_s.append(now_s)
    for i, first_s in enumerate(sent_s):
        for count, last_s in enumerate(sent_s[i:], 1):
            assert count <= burst + (last_s - first_s) / pause_s + 1e-3


@given(st.integers(1, 20), st.floats(0.1, 1000))
def test_the_wait_is_exactly_as_long_as_it_says(burst: int, pause_s: float) -> None:
    now_s = 0.0
    budget = Budget(burst, pause_s, lambda: now_s)
    for _ in range(burst):
        assert budget.wait_s == 0.0
        budget.spend()
    assert budget.wait_s == pytest.approx(pause_s)
    now_s += 0.5 * pause_s
    assert not budget.left
    now_s += budget.wait_s
    assert budget.left == 1
