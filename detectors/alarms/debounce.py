"""Debounce: from scores to "raise" and "clear", counted per measurement epoch.

A cell is one subject of one alarm kind: a vehicle, a pair or a place (subjects.py says which). For each row of
evidence with an epoch newer than the last one counted:
- not active: raise when at least n of the last m epochs were at or over the threshold (n = m: n in a row);
- active: clear when clear_n epochs in a row were under clear_ratio * threshold and the alarm is min_on_s old.
A gap of more than bridge_s between epochs starts both counts again; a shorter one is bridged. An active cell
without any epoch for lost_s is cleared as lost.

Times are event time in seconds. The pipeline owns one Debouncer per alarm kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.streams.batch import F8, I4, I8, U1
from watchkeeper.streams.kernels import njit

NOTHING, RAISE, STILL, CLEAR = 0, 1, 2, 3
NO_CELLS: I4 = np.empty(0, np.int32)


class Debouncer:
    """State of all cells, as arrays."""

    def __init__(self, rule: Debounce, cells: int) -> None:
        self.rule = rule
        self.active: U1 = np.zeros(cells, np.uint8)
        self.t_onset: F8 = np.full(cells, np.nan)
        self.t_raised: F8 = np.full(cells, np.nan)
        self.last_epoch: F8 = np.full(cells, -np.inf)
        self._count: I8 = np.zeros(cells, np.int64)
        self._off_run: I4 = np.zeros(cells, np.int32)
        # of the last m epochs: when they were, and whether they were over the threshold; a ring by count % m
        self._t: F8 = np.zeros((cells, rule.m))
        self._on: U1 = np.zeros((cells, rule.m), np.uint8)

    def retune(self, rule: Debounce) -> None:
        """Take a new rule; active alarms stay active, counts in progress survive unless m changes."""
        if rule.m != self.rule.m:
            cells = len(self.active)
            self._count[:] = 0
            self._t, self._on = np.zeros((cells, rule.m)), np.zeros((cells, rule.m), np.uint8)
        self.rule = rule

    def update(self, cell: I4, t: F8, epoch: F8, score: F8, threshold: F8) -> U1:
        """Count the evidence in row order; for each row NOTHING, RAISE, STILL (active and new) or CLEAR."""
        rule = self.rule
        action = np.zeros(len(cell), np.uint8)
        _update(
            cell, t, epoch, score, threshold,
            rule.n, rule.m, rule.clear_n, rule.clear_ratio, rule.min_on_s, rule.bridge_s,
            self.active, self.t_onset, self.t_raised, self.last_epoch,
            self._count, self._off_run, self._t, self._on, action,
        )  # fmt: skip
        return action

    def lost(self, t: float, cells: int) -> I4:
        """Active cells below `cells` that had no evidence for lost_s; they are cleared."""
        (active,) = self.active[:cells].nonzero()
        if not len(active):
            return NO_CELLS
        gone = active[t - self.last_epoch[active] > self.rule.lost_s].astype(np.int32)
        if len(gone):
            self.reset(gone)
        return gone

    def quiet(self, t: float, cells: I4) -> I4:
        """Those of these cells that hold nothing worth keeping: not active, no recent epoch over the threshold."""
        fresh = (t - self.last_epoch[cells] <= self.rule.bridge_s) & self._on[cells].any(axis=1)
        idle: I4 = cells[(self.active[cells] == 0) & ~fresh]
        return idle

    def adopt(self, cell: int, t_onset: float, t_raised: float, t_last: float) -> None:
        """Make a cell active as it was before a restart."""
        self.active[cell] = 1
        self.t_onset[cell], self.t_raised[cell], self.last_epoch[cell] = t_onset, t_raised, t_last
        self._off_run[cell] = 0

    def reset(self, cells: I4) -> None:
        """Forget these cells."""
        self.active[cells] = 0
        self.t_onset[cells] = self.t_raised[cells] = np.nan
        self.last_epoch[cells] = -np.inf
        self._count[cells] = self._off_run[cells] = 0
        self._on[cells] = 0

    _ARRAYS = ("active", "t_onset", "t_raised", "last_epoch", "_count", "_off_run", "_t", "_on")

    def snapshot(self, cells: int) -> dict[str, Any]:
        """State of the cells below `cells`."""
        return {"m": self.rule.m, **{name.strip("_"): getattr(self, name)[:cells] for name in self._ARRAYS}}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot; counts in progress only if the rule still has the same m."""
        cells = min(len(state["active"]), len(self.active))
        same = state["m"] == self.rule.m
        for name in self._ARRAYS:
            if same or name not in {"_t", "_on", "_count"}:
                getattr(self, name)[:cells] = state[name.strip("_")][:cells]


@njit(cache=True)
def _update(
    cell: I4, t: F8, epoch: F8, score: F8, threshold: F8,
    n: int, m: int, clear_n: int, clear_ratio: float, min_on_s: float, bridge_s: float,
    active: U1, t_onset: F8, t_raised: F8, last_epoch: F8,
    count: I8, off_run: I4, ring_t: F8, ring_on: U1, action: U1,
) -> None:  # fmt: skip
    for i in range(cell.size):
        c = cell[i]
        if c < 0 or epoch[i] <= last_epoch[c]:
            continue
        if epoch[i] - last_epoch[c] > bridge_s:
            count[c] = 0
            off_run[c] = 0
            ring_on[c, :] = 0
        last_epoch[c] = epoch[i]
        at = count[c] % m
        count[c] += 1
        ring_t[c, at] = t[i]
        ring_on[c, at] = 1 if score[i] >= threshold[i] else 0
        if active[c] == 0:
            over = 0
            first = t[i]
            for k in range(m):
                if ring_on[c, k]:
                    over += 1
                    first = min(first, ring_t[c, k])
            if over >= n:
                active[c] = 1
                t_onset[c] = first
                t_raised[c] = t[i]
                off_run[c] = 0
                action[i] = RAISE
        else:
            off_run[c] = off_run[c] + 1 if score[i] < clear_ratio * threshold[i] else 0
            if off_run[c] >= clear_n and t[i] - t_raised[c] >= min_on_s:
                active[c] = 0
                off_run[c] = 0
                ring_on[c, :] = 0
                action[i] = CLEAR
            else:
                action[i] = STILL
