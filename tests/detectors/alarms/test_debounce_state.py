"""What a debouncer keeps: over a new rule, a restart, a cell given to another subject, and a table that grows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.detectors.alarms.debounce import CLEAR, NOTHING, RAISE, STILL, Debouncer
from watchkeeper.detectors.fleet.growing import CHUNK, Growing

RULE = Debounce(n=3, m=3, clear_n=2, clear_ratio=0.8, min_on_s=0.0, bridge_s=10.0, lost_s=30.0)


def feed(d: Debouncer, cell: int, rows: list[tuple[float, float]]) -> list[int]:
    """Actions for (t, score) rows of one cell at threshold 1."""
    t, n = np.array([row[0] for row in rows]), len(rows)
    return d.update(np.full(n, cell, np.int32), t, t, np.array([row[1] for row in rows]), np.ones(n)).tolist()


def cells(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def restored(d: Debouncer, rule: Debounce, size: int) -> Debouncer:
    """Another debouncer of this size that starts with the state of the first."""
    state = {name: table.copy() for name, table in d.snapshot(len(d.cells)).items()}
    fresh = Debouncer(rule, size)
    fresh.restore(state)
    return fresh


def test_a_snapshot_has_the_cells_below_its_limit_only():
    d = Debouncer(RULE, 5)
    assert {name: table.shape for name, table in d.snapshot(2).items()} == {"cells": (2,), "ring": (2, 3)}


def test_after_a_restart_counts_and_alarms_go_on_where_they_were():
    d = Debouncer(RULE, 2)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0)])
    feed(d, 1, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (4.0, 0.0)])
    again = restored(d, RULE, 4)
    assert feed(again, 0, [(3.0, 2.0)]) == [RAISE]
    assert again.cells["t_onset"][0] == 1.0
    assert feed(again, 1, [(5.0, 0.0)]) == [CLEAR]
    # cells that the snapshot did not have are blank
    assert feed(again, 2, [(5.0, 2.0), (6.0, 2.0), (7.0, 2.0)]) == [NOTHING, NOTHING, RAISE]


def test_a_smaller_table_takes_the_cells_for_which_it_has_room():
    d = Debouncer(RULE, 3)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0)])
    again = restored(d, RULE, 1)
    assert feed(again, 0, [(3.0, 2.0)]) == [RAISE]


@pytest.mark.parametrize("m", [2, 4])
def test_a_restart_with_another_window_keeps_alarms_and_counts_from_the_start(m):
    d = Debouncer(RULE, 2)
    feed(d, 0, [(1.0, 2.0)])
    feed(d, 1, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    again = restored(d, Debounce(n=2, m=m, clear_n=1, min_on_s=0.0), 2)
    assert feed(again, 0, [(2.0, 2.0), (3.0, 2.0)]) == [NOTHING, RAISE]
    assert feed(again, 1, [(4.0, 2.0), (5.0, 0.0)]) == [STILL, CLEAR]


def test_a_new_rule_with_the_same_window_goes_on_counting():
    d = Debouncer(RULE, 1)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0)])
    d.retune(Debounce(n=3, m=3, clear_n=1, min_on_s=0.0, lost_s=5.0))
    assert feed(d, 0, [(3.0, 2.0), (4.0, 0.0)]) == [RAISE, CLEAR]
    assert d.rule.lost_s == 5.0


@pytest.mark.parametrize("m", [2, 4])
def test_a_new_window_keeps_the_alarms_and_counts_from_the_start(m):
    d = Debouncer(RULE, 2)
    feed(d, 0, [(1.0, 2.0)])
    feed(d, 1, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    d.retune(Debounce(n=2, m=m, clear_n=1, min_on_s=0.0))
    assert feed(d, 0, [(2.0, 2.0), (3.0, 2.0)]) == [NOTHING, RAISE]
    assert feed(d, 1, [(4.0, 2.0), (5.0, 0.0)]) == [STILL, CLEAR]


def test_an_alarm_from_before_a_restart_is_active_with_its_times_and_severity():
    d = Debouncer(Debounce(n=3, m=3, clear_n=2, min_on_s=10.0, bridge_s=10.0, lost_s=30.0), 2)
    feed(d, 1, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (4.0, 0.0)])
    d.cells["below_t"][1] = 1.0
    d.adopt(1, t_onset=90.0, t_raised=95.0, t_last=100.0, severity=2)
    row = d.cells[1]
    assert (row["t_onset"], row["t_raised"], row["last_epoch"], row["severity"]) == (90.0, 95.0, 100.0, 2)
    assert math.isnan(row["below_t"])
    assert d.lost(130.0, 2).tolist() == []
    # an epoch from before it is old; of those after it two must be below, and the alarm 10 s old
    assert feed(d, 1, [(100.0, 0.0), (104.0, 0.0), (105.0, 0.0)]) == [NOTHING, STILL, CLEAR]


def test_an_adopted_alarm_needs_as_many_epochs_to_clear_as_a_new_one():
    d = Debouncer(RULE, 1)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (4.0, 0.0)])
    d.adopt(0, t_onset=1.0, t_raised=3.0, t_last=4.0, severity=1)
    assert feed(d, 0, [(5.0, 0.0), (6.0, 0.0)]) == [STILL, CLEAR]


def test_a_cell_that_is_given_to_another_subject_is_as_new():
    d = Debouncer(RULE, 4)
    for cell in range(4):
        feed(d, cell, [(1.0, 2.0), (2.0, 2.0)])
    feed(d, 1, [(3.0, 2.0)])
    d.reset(cells(0, 1, 3))
    assert not d.cells["active"].any()
    # the new subject's first epoch may be older than the last one's
    assert feed(d, 0, [(0.5, 2.0), (1.5, 2.0), (2.5, 2.0)]) == [NOTHING, NOTHING, RAISE]
    assert feed(d, 2, [(3.0, 2.0)]) == [RAISE]
    d.reset(cells(0, 2))
    assert not d.counts(np.zeros(4, np.bool_))


def test_only_a_cell_that_is_not_active_and_has_an_epoch_over_the_threshold_counts():
    d = Debouncer(RULE, 3)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    feed(d, 1, [(1.0, 0.5)])
    assert not d.counts(d.cells["active"])
    feed(d, 2, [(1.0, 1.0)])
    assert d.counts(d.cells["active"])
    assert not d.counts(d.cells["active"][:2])


def test_a_cell_is_quiet_when_it_is_not_active_and_its_evidence_is_older_than_a_gap():
    d = Debouncer(RULE, 4)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    feed(d, 1, [(3.0, 2.0)])
    feed(d, 2, [(3.0, 0.5)])
    assert d.quiet(13.0, cells(0, 1, 2, 3)).tolist() == [2, 3]
    assert d.quiet(13.5, cells(3, 1, 0)).tolist() == [3, 1]


def test_an_alarm_is_lost_only_after_lost_s_and_only_below_the_limit():
    d = Debouncer(RULE, 3)
    for cell in (0, 2):
        feed(d, cell, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
    assert d.lost(33.0, 3).tolist() == []
    assert d.lost(33.5, 2).tolist() == [0]
    assert d.cells["active"].tolist() == [False, False, True]
    assert d.lost(33.5, 1).tolist() == []


def test_a_table_that_grows_has_blank_cells_and_keeps_the_old_ones():
    growing = Growing(3 * CHUNK)
    growing.reach(1)
    d = Debouncer(RULE, growing)
    feed(d, 0, [(1.0, 2.0), (2.0, 2.0)])
    growing.reach(CHUNK + 1)
    assert feed(d, CHUNK, [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]) == [NOTHING, NOTHING, RAISE]
    assert feed(d, 0, [(3.0, 2.0)]) == [RAISE]


def test_a_row_without_a_cell_or_with_an_old_epoch_does_not_stop_the_rows_after_it():
    d = Debouncer(Debounce(n=1, m=1, clear_n=1), 2)
    d.update(cells(0), np.array([5.0]), np.array([5.0]), np.array([0.0]), np.ones(1))
    t = np.array([6.0, 4.0, 6.0])
    assert d.update(cells(-1, 0, 1), t, t, np.full(3, 2.0), np.ones(3)).tolist() == [NOTHING, NOTHING, RAISE]
    assert not d.cells["active"][0]
    action = np.array([NOTHING, NOTHING, RAISE], np.uint8)
    assert d.shown(cells(-1, 0, 1), t, action, np.array([1, 1, 2], np.uint8)).tolist() == [1, 1, 2]
    assert d.cells["severity"].tolist() == [0, 2]


def test_levels_are_shares_of_the_threshold_of_the_row():
    d, threshold = Debouncer(Debounce(n=1, m=1, clear_n=1, clear_ratio=0.5, min_on_s=0.0), 1), np.full(4, 4.0)
    t = np.arange(4.0)
    score = np.array([3.9, 4.0, 2.0, 1.9])
    assert d.update(np.zeros(4, np.int32), t, t, score, threshold).tolist() == [NOTHING, RAISE, STILL, CLEAR]


def test_a_gap_of_exactly_bridge_s_is_bridged_for_raising_and_for_clearing():
    d = Debouncer(RULE, 2)
    assert feed(d, 0, [(0.0, 2.0), (10.0, 2.0), (20.0, 2.0)])[-1] == RAISE
    assert feed(d, 0, [(21.0, 0.0), (31.0, 0.0)]) == [STILL, CLEAR]
    feed(d, 1, [(0.0, 2.0), (1.0, 2.0), (2.0, 2.0), (3.0, 0.0)])
    # one epoch below, then a longer gap: two more are needed
    assert feed(d, 1, [(13.5, 0.0), (14.0, 0.0)]) == [STILL, CLEAR]


def shown(told: list[tuple[float, int]], actions: list[int]) -> list[int]:
    """The severities shown of one cell, for (t, severity) of the evidence."""
    t, severity = np.array([one[0] for one in told]), np.array([one[1] for one in told], np.uint8)
    d = Debouncer(RULE, 1)
    return d.shown(np.zeros(len(told), np.int32), t, np.array(actions, np.uint8), severity).tolist()


def test_evidence_as_severe_as_the_alarm_starts_the_minute_again():
    told = [(0.0, 2), (1.0, 1), (60.0, 1), (61.5, 2), (62.0, 1), (121.0, 1), (122.0, 1), (122.5, 0), (181.0, 0)]
    assert shown(told, [RAISE] + [STILL] * 8) == [2, 2, 2, 2, 2, 2, 1, 1, 1]
    # the minute of the next step begins with the first evidence below this one
    told = [(0.0, 2), (1.0, 1), (61.0, 1), (62.0, 1), (130.0, 0), (189.0, 0), (190.0, 0)]
    assert shown(told, [RAISE] + [STILL] * 6) == [2, 2, 1, 1, 1, 1, 0]


def test_an_alarm_that_is_raised_again_has_the_severity_of_its_own_evidence():
    assert shown([(0.0, 2), (5.0, 2), (6.0, 0), (7.0, 1)], [RAISE, CLEAR, RAISE, STILL]) == [2, 2, 0, 1]


def test_epochs_from_before_a_clear_do_not_count_for_the_next_alarm():
    d = Debouncer(Debounce(n=2, m=4, clear_n=1, min_on_s=0.0), 1)
    rows = [(1.0, 2.0), (2.0, 2.0), (3.0, 0.0), (4.0, 2.0), (5.0, 2.0)]
    assert feed(d, 0, rows) == [NOTHING, RAISE, CLEAR, NOTHING, RAISE]
