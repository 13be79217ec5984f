"""Whether the probabilities are right: of all that were said to be 0.7, seven in ten should come true.

A statement is one row of evidence about a pair that has not lost separation: the probability, and whether a loss of
this pair began within the horizon. Statements whose pair was not seen for that long are left out, unless the loss came.
Statements about one pair are not independent, so the intervals draw whole pairs with replacement. A bin is calibrated
when its mean probability lies within the interval of its share. Called by api.py with the evidence of one run.
"""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np

from watchkeeper.evaluation.alarms.flights import MAX_GAP_S
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog
from watchkeeper.evaluation.alarms.verdicts import Truth
from watchkeeper.evaluation.shared.bootstrap import interval, ratio, weights
from watchkeeper.streams.batch import F8, I8, Bool

BINS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# With fewer pairs in a bin an interval says nothing.
MIN_PAIRS = 5


class Bin(msgspec.Struct, frozen=True):
    """Statements of about one probability: how many, about how many pairs, their mean, and the share that came true."""

    low: float
    high: float
    statements: int
    pairs: int
    said: float
    came_true: float
    came_true_95: tuple[float, float] | None

    @property
    def right(self) -> bool | None:
        """Whether the mean lies within the interval; None if there are too few pairs to tell."""
        if self.pairs < MIN_PAIRS or self.came_true_95 is None:
            return None
        return self.came_true_95[0] <= self.said <= self.came_true_95[1]


class Calibration(msgspec.Struct, frozen=True):
    """The reliability of all statements, and their Brier score: the mean squared error of the probability."""

    bins: list[Bin]
    statements: int
    brier: float | None
    base_rate: float | None
    """The share of all statements that came true: who always says this has the Brier score base * (1 - base)."""


def calibration(log: EvidenceLog, truth: Truth) -> Calibration:
    """The calibration of the evidence."""
    pair, said, came_true = statements(log, truth)
    found = []
    for low, high in pairwise(BINS):
        rows = np.flatnonzero((said >= low) & ((said < high) | (high == 1.0)))
        if len(rows):
            found.append(_bin(low, high, pair[rows], said[rows], came_true[rows]))
    some = len(said) > 0
    return Calibration(
        bins=found,
        statements=len(said),
        brier=float(np.mean((said - came_true) ** 2)) if some else None,
        base_rate=float(came_true.mean()) if some else None,
    )


def _bin(low: float, high: float, pair: I8, said: F8, came_true: Bool) -> Bin:
    _, number = np.unique(pair, return_inverse=True)
    n = int(number.max()) + 1
    whole: F8 = np.bincount(number, minlength=n).astype(np.float64)
    part: F8 = np.bincount(number[came_true], minlength=n).astype(np.float64)
    share = ratio(weights(n), part, whole)
    return Bin(low, high, len(said), n, float(said.mean()), float(came_true.mean()), interval(share))


def statements(log: EvidenceLog, truth: Truth) -> tuple[I8, F8, Bool]:
    """Of every statement the pair, the probability and whether it came true."""
    rows = log.rows()
    names = list(log.number)
    a, b, t, score = rows[0].astype(np.int64), rows[1].astype(np.int64), rows[2], rows[4]
    pair = a * len(names) + b
    worth = (score >= BINS[0]) & (score <= 1.0)
    begins: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for loss in truth.losses:
        begins.setdefault(loss.pair, []).append((loss.t_start, loss.t_end))
    seen = [_seen(truth, name) for name in names]
    came_true, decided = np.zeros(len(t), bool), np.zeros(len(t), bool)
    starts = np.flatnonzero(np.append(True, np.diff(pair) != 0)[: len(pair)])
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(pair)], strict=True):
        one, other = names[a[start]], names[b[start]]
        at = t[start:stop]
        lost, soon = np.zeros(len(at), bool), np.zeros(len(at), bool)
        for t_start, t_end in begins.get((min(one, other), max(one, other)), ()):
            lost |= (at >= t_start) & (at <= t_end)
            soon |= (at < t_start) & (t_start <= at + truth.horizon_s)
        until = at + truth.horizon_s
        known = _all_along(seen[a[start]], at, until) & _all_along(seen[b[start]], at, until)
        came_true[start:stop] = soon
        decided[start:stop] = ~lost & (soon | known)
    kept = worth & decided
    return pair[kept], score[kept], came_true[kept]


def _seen(truth: Truth, name: str) -> tuple[F8, F8]:
    """From when to when an aircraft was in view without a long gap, as two columns."""
    who = truth.tracks.number.get(name)
    t = truth.sky.flights[who].pos_t if who is not None else np.empty(0)
    if not len(t):
        return np.empty(0), np.empty(0)
    breaks = np.flatnonzero(np.diff(t) > MAX_GAP_S)
    return t[np.append(0, breaks + 1)], t[np.append(breaks, len(t) - 1)]


def _all_along(seen: tuple[F8, F8], since: F8, until: F8) -> Bool:
    """Whether the aircraft was in view from each time to the other."""
    begin, end = seen
    if not len(begin):
        return np.zeros(len(since), bool)
    at = np.searchsorted(begin, since, side="right") - 1
    inside: Bool = (at >= 0) & (until <= np.where(at >= 0, end[np.maximum(at, 0)], -math.inf))
    return inside
