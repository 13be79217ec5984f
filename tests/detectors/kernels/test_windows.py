"""From flags to windows to matches, on paper; and the running tally equals one look at everything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.intent import tally as intent_tally
from watchkeeper.detectors.intent.tally import Tally
from watchkeeper.detectors.kernels.windows import (
    WindowRule,
    debounced,
    dilated,
    match_series,
    matched,
    overlap,
    rule_for,
    steps_of,
    windows,
)


def flags(drawn: str) -> np.ndarray:
    return np.array([mark == "#" for mark in drawn])


def drawn(flag: np.ndarray) -> str:
    return "".join("#" if on else "." for on in flag)


def test_debounce_looks_back():
    assert drawn(debounced(flags("#.#....##.#..#"), 2, 3)) == "..#.....###..."
    assert drawn(debounced(flags("#.#"), 1, 1)) == "#.#"
    assert drawn(debounced(flags(""), 2, 3)) == ""


def test_dilation_goes_both_ways_by_its_own_lengths():
    assert drawn(dilated(flags("...#...."), 1, 1)) == "..###..."
    assert drawn(dilated(flags("...#...."), 0, 2)) == "...###.."
    assert drawn(dilated(flags("...#...."), 2, 0)) == ".###...."
    assert drawn(dilated(flags("#......#"), 1, 1)) == "##....##"


def test_windows_are_half_open_and_clipped():
    assert windows(flags("..##...."), 0) == [(2, 4)]
    assert windows(flags("#......#"), 2) == [(0, 3), (5, 8)]
    assert windows(flags(".#....#."), 2) == [(0, 4), (4, 8)]  # they touch
    assert windows(flags("........"), 2) == []


def test_only_steps_in_a_row_are_one_window_unless_overlapping_ones_are_merged():
    assert windows(flags(".#...#.."), 2) == [(0, 4), (3, 8)]  # they share a step
    assert windows(flags(".#...#.."), 2, merge=True) == [(0, 8)]
    assert windows(flags(".#....#."), 2, merge=True) == [(0, 4), (4, 8)]  # they touch
    assert windows(flags(".#.#.#.."), 1) == [(0, 3), (2, 5), (4, 7)]
    assert windows(flags(".#.#.#.."), 1, merge=True) == [(0, 7)]


def test_iou_by_hand():
    assert overlap((0, 4), (2, 8)) == 2 / 8
    assert overlap((0, 4), (4, 8)) == 0.0
    assert overlap((2, 3), (0, 10)) == 1 / 10


def test_each_conflict_takes_the_best_alert_that_is_left():
    # 0        10        20
    # [=========)                  truth 0
    #         [=========)          truth 1
    #       [====)                 alert 0: iou 4/11 with truth 0, 3/12 with truth 1
    #  [======)                    alert 1: iou 7/10 with truth 0
    truth, alerts = [(0, 10), (8, 18)], [(6, 11), (1, 8)]
    assert matched(truth, alerts, 0.1) == [(0, 1), (1, 0)]
    assert matched(truth, alerts, 0.5) == [(0, 1)]
    # greedy: the first conflict takes the alert that the second would have needed more
    assert matched([(0, 10), (10, 12)], [(5, 12)], 0.1) == [(0, 0)]


def test_of_equally_good_alerts_the_first_wins():
    assert matched([(4, 8)], [(2, 6), (6, 10)], 0.1) == [(0, 0)]
    assert matched([(4, 8), (4, 8)], [(2, 6), (6, 10)], 0.1) == [(0, 0), (1, 1)]


def test_exactly_the_threshold_is_enough():
    assert matched([(0, 10)], [(9, 10)], 0.1) == [(0, 0)]
    assert matched([(0, 11)], [(10, 11)], 0.1) == []


@pytest.mark.parametrize(
    ("seconds", "step_s", "steps"), [(30, 10, 3), (10, 10, 1), (30, 20, 2), (10, 20, 1), (10, 30, 0)]
)
def test_margins_in_steps(seconds, step_s, steps):
    assert steps_of(seconds, step_s) == steps


SERIES = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80)
# mostly quiet, so that there is something between the windows
CALM = st.lists(st.sampled_from([(False, False)] * 8 + [(True, False), (False, True), (True, True)]), max_size=150)
RULES = st.builds(
    WindowRule,
    debounce_n=st.integers(1, 3),
    debounce_m=st.integers(3, 5),
    lag_pre=st.integers(0, 3),
    lag_post=st.integers(0, 3),
    truth_margin=st.integers(0, 5),
    alert_margin=st.integers(0, 3),
    iou=st.floats(0.01, 1.0),
    merge_overlapping=st.booleans(),
)


@settings(deadline=None)
@given(SERIES | CALM, RULES)
def test_matching_is_one_to_one_and_adds_up(steps, rule):
    both = np.array(steps, bool).reshape(-1, 2)
    m = match_series(both[:, 0], both[:, 1], rule)
    assert m.tp + m.fn == len(m.truth)
    assert m.tp + m.fp == len(m.alerts)
    assert len({g for g, _ in m.pairs}) == len({a for _, a in m.pairs}) == m.tp
    for g, a in m.pairs:
        assert overlap(m.truth[g], m.alerts[a]) >= rule.iou
    free = set(range(len(m.alerts))) - {a for _, a in m.pairs}
    for g in set(range(len(m.truth))) - {g for g, _ in m.pairs}:
        assert all(overlap(m.truth[g], m.alerts[a]) < rule.iou for a in free)
    for rows in (m.truth, m.alerts):
        assert all(0 <= start < end <= len(steps) for start, end in rows)
        # equal, where the margins of two reach both ends of the episode
        assert all(before <= after for before, after in pairwise(rows))
        assert all(before[1] <= after[0] for before, after in pairwise(rows)) or not rule.merge_overlapping


@settings(max_examples=200, deadline=None)
@given(CALM, RULES)
def test_the_tally_of_any_number_of_steps_is_one_look_at_all_of_them(steps, rule):
    tally = Tally(rule)
    for k, (conflict, acting) in enumerate(steps, 1):
        tally.add(conflict, acting)
        if k % 7 and k != len(steps):
            continue
        both = np.array(steps[:k], bool).reshape(-1, 2)
        m, c = match_series(both[:, 0], both[:, 1], rule), tally.counts()
        assert (c.steps, c.tp, c.fp, c.fn, c.tn) == (k, m.tp, m.fp, m.fn, m.quiet_steps)
        assert (c.alert_steps, c.lead_steps) == (int(m.alert.sum()), sum(m.leads))
    assert tally.forced == 0


def test_the_tally_forgets_what_is_settled(monkeypatch):
    tally = Tally(WindowRule())
    for _ in range(10_000):
        tally.pause(1)
    assert len(tally.snapshot()["open"]) <= tally.rule.before + tally.rule.after
    assert tally.counts().tn == 10_000
    monkeypatch.setattr(intent_tally, "OPEN_STEPS", 50)
    for _ in range(500):
        tally.add(conflict=True, acting=False)
    assert len(tally.snapshot()["open"]) <= 51
    assert tally.forced > 0


def test_a_long_pause_costs_as_little_as_a_short_one():
    tally = Tally(WindowRule())
    tally.add(conflict=True, acting=True)
    tally.pause(10**9)
    assert tally.counts().steps == 10**9 + 1
    assert tally.counts().tn == 10**9


def test_a_tally_survives_a_restart():
    rule = rule_for(10.0, n=2, m=3, lag_pre=1, lag_post=1, iou=0.1)
    steps = [(k % 40 in (10, 11, 12), k % 50 in (11, 12)) for k in range(200)]
    whole, first = Tally(rule), Tally(rule)
    for k, step in enumerate(steps):
        whole.add(*step)
        first.add(*step)
        if k == 93:
            again = Tally(rule)
            again.restore(first.snapshot())
            first = again
    assert first.figures(10.0) == whole.figures(10.0)
