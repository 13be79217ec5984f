"""Debounce: from scores to "raise" and "clear", counted per measurement epoch.

A cell is one subject of one alarm kind: a vehicle, a pair or a place (subjects.py says which). For each row of
evidence with an epoch newer than the last one counted:
- not active: raise when at least n of the last m epochs were at or over the threshold (n = m: n in a row). An epoch
  counts as 1 at the threshold and, where the rule has a `strong` ratio, as up to n: the sum over the epochs is compared
  with n, a sequential test that strong evidence ends early. With a `most_s`, two epochs or more that have lasted so
  long are enough, if as many of them as n of m were over. Nothing is raised within `least_s` of the first that counts;
- active: clear when clear_n epochs in a row were under clear_ratio * threshold and the alarm is min_on_s old.
An active alarm's severity rises when the evidence has been more severe for rise_s. After a minute in which no evidence
was as severe it falls to the most severe of that minute, unless it has changed MOST_CHANGES times already: an attack
and what follows it are one alarm, and a rise is always told.
A gap of more than bridge_s between epochs starts both counts again; a shorter one is bridged. An active cell
without any epoch for lost_s is cleared: it is out of sight.

Times are event time in seconds. The pipeline owns one Debouncer per alarm kind.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.kernels import njit

NOTHING, RAISE, STILL, CLEAR = 0, 1, 2, 3
NO_CELLS: I4 = np.empty(0, np.int32)
NOTHING_ACTIVE: I8 = np.empty(0, np.int64)
# How long the evidence must have been less severe than the alarm before the alarm is shown as what it was then: an
# alarm that falls and rises with its evidence is read as several, one that falls step by step as still changing.
SETTLED_S = 60.0
# An alarm does not fall any more after so many changes of its severity: down and up again, or up in two steps.
MOST_CHANGES = 2


class Cell:
    """One subject of one alarm kind (detectors/kernels/records.py)."""

    active: bool = False
    t_onset: float = math.nan
    t_raised: float = math.nan
    last_epoch: float = -math.inf
    count: int = 0
    """Epochs so far; the last m are in the ring, by count % m."""
    since_t: float = math.inf
    """When the first of the epochs was that count for raising, also those that have left the ring."""
    off_run: int = 0
    """Epochs in a row that were under the clearing threshold."""
    severity: int = 0
    """How severe the alarm is shown."""
    below_t: float = math.nan
    """Since when the evidence has been less severe; NaN when it is not."""
    below: int = 0
    """The most severe of it since then."""
    above_t: float = math.nan
    """Since when all evidence has been more severe; NaN when it is not."""
    above: int = 0
    """How severe the newest of it is."""
    changes: int = 0
    """How often the severity of the alarm has changed."""


class Epoch:
    """One of the last m epochs of a cell: when, whether over the threshold, and for how many it counts."""

    t: float
    weight: float
    over: bool


class Rule(NamedTuple):
    """The rule as the kernel takes it; see config/detectors/debounce.py."""

    n: int
    m: int
    least_s: float
    most_s: float
    strong: float
    clear_n: int
    clear_ratio: float
    min_on_s: float
    bridge_s: float
    rise_s: float


class Debouncer:
    """State of all cells, one record each."""

    def __init__(self, rule: Debounce, cells: int | Growing) -> None:
        self._growing = Growing.whole(cells)
        self.cells: NDArray[Any] = self._growing.rows(blank(Cell, 1))
        self._ring: NDArray[Any] = blank(Epoch, (len(self.cells), rule.m))
        # no cell is active: known after somebody has looked, until one is raised
        self._none_active = False
        self._set(rule)

    def _set(self, rule: Debounce) -> None:
        self.rule = rule
        self._rule = Rule(
            rule.n, rule.m, rule.least_s, rule.most_s, rule.strong,
            rule.clear_n, rule.clear_ratio, rule.min_on_s, rule.bridge_s, rule.rise_s,
        )  # fmt: skip

    def retune(self, rule: Debounce) -> None:
        """Take a new rule; active alarms stay active, counts in progress survive unless m changes."""
        if rule.m != self.rule.m:
            self.cells["count"][: self._growing.ready] = 0
            self._ring = blank(Epoch, (len(self.cells), rule.m))
        self._set(rule)

    def update(self, cell: I4, t: F8, epoch: F8, score: F8, threshold: F8) -> U1:
        """Count the evidence in row order; for each row NOTHING, RAISE, STILL (active and new) or CLEAR."""
        action = np.zeros(len(cell), np.uint8)
        if len(cell):
            _update(Rows(cell, t, epoch, score, threshold), self._rule, self.cells, self._ring, action)
            self._none_active = self._none_active and not action.any()
        return action

    def shown(self, cell: I4, t: F8, action: U1, severity: U1) -> U1:
        """How severe the alarm of each row is to be shown, after `update` gave these actions."""
        shown = severity.copy()
        _show(cell, t, action, self._rule, self.cells, shown)
        return shown

    def lost(self, t: float, cells: int) -> I4:
        """Active cells below `cells` that had no evidence for lost_s; they are cleared."""
        active = self.active(cells)
        if not len(active):
            return NO_CELLS
        gone = active[t - self.cells["last_epoch"][active] > self.rule.lost_s].astype(np.int32)
        if len(gone):
            self.reset(gone)
        return gone

    def active(self, cells: int) -> I8:
        """The active cells below `cells`, which are all that were ever used."""
        if self._none_active:
            return NOTHING_ACTIVE
        (active,) = self.cells["active"][:cells].nonzero()
        self._none_active = not len(active)
        return active

    @property
    def may_be_active(self) -> bool:
        """False when it is known, without another look, that no cell is active."""
        return not self._none_active

    def quiet(self, t: float, cells: I4) -> I4:
        """Those of these cells that hold nothing worth keeping: not active, no recent epoch over the threshold."""
        recent = t - self.cells["last_epoch"][cells] <= self.rule.bridge_s
        fresh = recent & self._ring["over"][cells].any(axis=1)
        idle: I4 = cells[~self.cells["active"][cells] & ~fresh]
        return idle

    def counting(self, cells: int) -> bool:
        """Whether a cell below `cells` has an epoch over the threshold."""
        return bool(self._ring["over"][:cells].any())

    def counts(self, active: Bool) -> bool:
        """Whether a cell that is not active, of those below `len(active)`, has an epoch over the threshold to count."""
        return bool(self._ring["over"][: len(active)][~active].any())

    def adopt(self, cell: int, t_onset: float, t_raised: float, t_last: float, severity: int) -> None:
        """Make a cell active as it was before a restart."""
        row = self.cells[cell]
        self._none_active = False
        row["severity"], row["below_t"], row["above_t"], row["changes"] = severity, math.nan, math.nan, 0
        row["active"], row["t_onset"], row["t_raised"], row["last_epoch"] = True, t_onset, t_raised, t_last
        row["off_run"] = 0

    def reset(self, cells: I4) -> None:
        """Forget these cells."""
        self.cells[cells] = blank(Cell, 1)
        self._ring["over"][cells] = False

    def snapshot(self, cells: int) -> dict[str, Any]:
        """State of the cells below `cells`."""
        return {"cells": self.cells[:cells], "ring": self._ring[:cells]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot; counts in progress only if the rule still has the same m."""
        n = len(self.cells)
        take_over(self.cells, state["cells"][:n])
        self._none_active = False
        if state["ring"].shape[1] == self.rule.m:
            take_over(self._ring, state["ring"][:n])
        else:
            self.cells["count"][: self._growing.ready] = 0


class Rows(NamedTuple):
    """Evidence by row: which cell, when, and how far from the threshold."""

    cell: I4
    t: F8
    epoch: F8
    score: F8
    threshold: F8


@njit(cache=True, inline="always")
def _weight(score: float, threshold: float, rule: Rule) -> float:
    """For how many epochs a score counts: 0 under the threshold, 1 at it, n at `strong` times it and beyond."""
    if not score >= threshold:
        return 0.0
    if rule.strong <= 1.0:
        return 1.0
    above = (score - threshold) / (threshold * (rule.strong - 1.0)) if threshold > 0.0 else 0.0
    return 1.0 + (rule.n - 1.0) * min(above, 1.0)


@njit(cache=True)
def _enough(cell: Cell, epochs: NDArray[Any], t: float, rule: Rule) -> bool:
    """Whether the epochs up to the newest, at t, raise an alarm; `since_t` is when the first that counts was.

    They count back to where more of them were under the threshold than the rule forgives.
    """
    first, weight, over, under, among = math.inf, 0.0, 0, 0, 0
    for k in range(min(cell.count, rule.m)):
        epoch = epochs[(cell.count - 1 - k) % rule.m]
        if epoch.over:
            over += 1
            weight += epoch.weight
            first = min(first, epoch.t)
            among = over + under
        else:
            under += 1
            if under > rule.m - rule.n:
                break
    unbroken = cell.count > rule.m and under <= rule.m - rule.n
    cell.since_t = min(cell.since_t, first) if unbroken else first
    lasted_s = t - cell.since_t
    if not epochs[(cell.count - 1) % rule.m].over or lasted_s < rule.least_s:
        return False
    long = rule.most_s > 0.0 and lasted_s >= rule.most_s and over >= 2
    return weight >= rule.n or (long and over * rule.m >= rule.n * among)


@njit(cache=True)
def _update(rows: Rows, rule: Rule, cells: NDArray[Any], ring: NDArray[Any], action: U1) -> None:
    for i in range(rows.cell.size):
        c, t, epoch, score, threshold = rows.cell[i], rows.t[i], rows.epoch[i], rows.score[i], rows.threshold[i]
        if c < 0 or epoch <= cells[c].last_epoch:
            continue
        cell, epochs = cells[c], ring[c]
        if epoch - cell.last_epoch > rule.bridge_s:
            cell.count = 0
            cell.off_run = 0
            for k in range(rule.m):
                epochs[k].over = False
        cell.last_epoch = epoch
        newest = epochs[cell.count % rule.m]
        cell.count += 1
        newest.t = t
        newest.over = score >= threshold
        newest.weight = _weight(score, threshold, rule)
        if not cell.active:
            if _enough(cell, epochs, t, rule):
                cell.active = True
                cell.t_onset = cell.since_t
                cell.t_raised = t
                cell.off_run = 0
                action[i] = RAISE
        else:
            cell.off_run = cell.off_run + 1 if score < rule.clear_ratio * threshold else 0
            if cell.off_run >= rule.clear_n and t - cell.t_raised >= rule.min_on_s:
                cell.active = False
                cell.off_run = 0
                cell.count = 0
                for k in range(rule.m):
                    epochs[k].over = False
                action[i] = CLEAR
            else:
                action[i] = STILL


@njit(cache=True)
def _show(cell: I4, t: F8, action: U1, rule: Rule, cells: NDArray[Any], severity: U1) -> None:
    for i in range(cell.size):
        if action[i] != RAISE and action[i] != STILL:
            continue
        alarm, now = cells[cell[i]], severity[i]
        if action[i] == RAISE:
            alarm.severity, alarm.changes = now, 0
        if now <= alarm.severity:
            alarm.above_t = math.nan
        elif _rises(alarm, t[i], now, rule):
            alarm.changes += 1
        if now >= alarm.severity or alarm.changes >= MOST_CHANGES:
            alarm.below_t = math.nan
        elif _falls(alarm, t[i], now):
            alarm.changes += 1
        severity[i] = alarm.severity


@njit(cache=True)
def _rises(alarm: Cell, t: float, now: int, rule: Rule) -> bool:
    """Whether evidence more severe than the alarm has lasted: then the alarm is as severe as its last two epochs."""
    before = now
    if not math.isnan(alarm.above_t):
        before = min(now, alarm.above)
    else:
        alarm.above_t = t
    alarm.above = now
    if t - alarm.above_t < rule.rise_s:
        return False
    alarm.severity, alarm.above_t = before, math.nan
    return True


@njit(cache=True)
def _falls(alarm: Cell, t: float, now: int) -> bool:
    """Whether a minute had no evidence as severe as the alarm: then the alarm is as severe as the worst of that."""
    if math.isnan(alarm.below_t):
        alarm.below_t, alarm.below = t, now
    alarm.below = max(alarm.below, now)
    if t - alarm.below_t < SETTLED_S:
        return False
    alarm.severity = alarm.below
    alarm.below_t, alarm.below = t, now
    return True
