"""The protocol's figures for one group of flights and its folds, by attack and over all: epochs and events apart.

Epoch level: every GPS epoch inside an attack is a positive, every epoch of the clean flights a negative. An epoch is
called anomalous when its score is over the threshold, which is a quantile of the clean epochs of the calibrating
flights. Event level: an attack is caught when N epochs in a row are anomalous (N fixed by the profile), and for the
pipeline's own alarms when one was raised while it lasted. Negatives of the event level are the clean flights cut into
windows as long as an attack; the score of a window is the highest level that N epochs in a row reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from watchkeeper.evaluation.protocol.cases import Case, Clean, Judged
from watchkeeper.evaluation.protocol.run import ProtocolError
from watchkeeper.evaluation.protocol.splits import Fold
from watchkeeper.evaluation.shared import bootstrap
from watchkeeper.streams.batch import F8

NOMINAL = (0.01, 0.05)
FAILED_BELOW = 0.5
WINDOW_S = 30.0


def threshold(clean: Iterable[Clean], rate: float) -> float:
    """The level that this part of the clean epochs is over."""
    flights = list(clean)
    pooled = np.concatenate([c.score for c in flights])
    if not len(pooled):
        raise ProtocolError(
            f"nothing was said about the flights that calibrate: {', '.join(c.flight_id for c in flights)}"
        )
    return float(np.quantile(pooled, 1.0 - rate, method="higher"))


def sustained(score: F8, n: int) -> float:
    """The highest level that n epochs in a row reached."""
    if len(score) < n:
        return -np.inf
    return float(sliding_window_view(score, n).min(axis=1).max())


def caught_at(score: F8, level: float, n: int) -> int | None:
    """The epoch (0, 1, …) at which n in a row were over the level for the first time."""
    if len(score) < n:
        return None
    runs = (sliding_window_view(score, n) > level).all(axis=1)
    return int(np.argmax(runs)) + n - 1 if runs.any() else None


def wins(positive: F8, negative_sorted: F8) -> float:
    """Pairs in which the positive scores higher than the negative; ties are half a pair."""
    below = np.searchsorted(negative_sorted, positive, side="left")
    ties = np.searchsorted(negative_sorted, positive, side="right") - below
    return float(below.sum() + 0.5 * ties.sum())


@dataclass(slots=True)
class Counts:
    """What is counted of one attack, by flight; everything reported is a ratio of these."""

    positives: F8
    caught_1: F8
    caught_5: F8
    events: F8
    events_1: F8
    events_5: F8
    alarms: F8
    wins: F8
    event_wins: F8
    """`wins` of epochs and of events by [flight of the positive, flight of the negative]."""
    latency_s: list[float] = field(default_factory=list)
    latency_epochs: list[int] = field(default_factory=list)
    alarm_s: list[float] = field(default_factory=list)
    alarm_epochs: list[int] = field(default_factory=list)

    @classmethod
    def none(cls, flights: int) -> Counts:
        """Nothing counted yet."""
        a, b, c, d, e, f, g = np.zeros((7, flights))
        return cls(a, b, c, d, e, f, g, np.zeros((flights, flights)), np.zeros((flights, flights)))


class Group:
    """A set of flights with the folds that judge them, ready to count attacks."""

    def __init__(self, name: str, found: Judged, folds: Sequence[Fold], n: int) -> None:
        self.name, self.n = name, n
        self.flights = [flight for fold in folds for flight in fold.test]
        self.folds = folds
        self.thresholds: dict[str, tuple[float, float]] = {}
        for fold in folds:
            levels = tuple(threshold((found.clean[f] for f in fold.calibrate), rate) for rate in NOMINAL)
            for flight in fold.test:
                self.thresholds[flight] = (levels[0], levels[1])
        self.clean = [found.clean[flight] for flight in self.flights]
        self._index = {flight: i for i, flight in enumerate(self.flights)}
        self._negatives = [np.sort(c.score) for c in self.clean]
        windows = [_windows(c, n) for c in self.clean]
        self._window_scores = [np.sort(w) for w in windows]
        self.negatives = np.array([len(c.score) for c in self.clean], float)
        self.false_1, self.false_5 = (
            np.array([float((c.score > self.thresholds[c.flight_id][k]).sum()) for c in self.clean]) for k in (0, 1)
        )
        self.windows = np.array([len(w) for w in windows], float)
        levels_1 = [self.thresholds[flight][0] for flight in self.flights]
        self.windows_1 = np.array([float((w > x).sum()) for w, x in zip(windows, levels_1, strict=True)])
        self.drawn = bootstrap.weights(len(self.flights))

    def count(self, cases: Iterable[Case]) -> Counts:
        """Count the cases of one attack in this group's flights."""
        size = len(self.flights)
        counts = Counts.none(size)
        for case in cases:
            if case.flight_id not in self._index:
                continue
            i = self._index[case.flight_id]
            level_1, level_5 = self.thresholds[case.flight_id]
            counts.positives[i] += len(case.score)
            counts.caught_1[i] += (case.score > level_1).sum()
            counts.caught_5[i] += (case.score > level_5).sum()
            top = np.array([sustained(case.score, self.n)])
            for j in range(size):
                counts.wins[i, j] += wins(case.score, self._negatives[j])
                counts.event_wins[i, j] += wins(top, self._window_scores[j])
            counts.events[i] += 1
            at = caught_at(case.score, level_1, self.n)
            if at is not None:
                counts.events_1[i] += 1
                counts.latency_s.append(float(case.t[at] - case.t_start))
                counts.latency_epochs.append(at + 1)
            counts.events_5[i] += caught_at(case.score, level_5, self.n) is not None
            if case.alarm_t is not None:
                counts.alarms[i] += 1
                counts.alarm_s.append(case.alarm_t - case.t_start)
                counts.alarm_epochs.append(int((case.t <= case.alarm_t).sum()))
        return counts


def _windows(clean: Clean, n: int) -> F8:
    """The event scores of a clean flight's windows, none of which overlap."""
    if not len(clean.t):
        return np.empty(0)
    number = ((clean.t - clean.t[0]) // WINDOW_S).astype(np.int64)
    # the last one is cut off by the end of the flight
    return np.array([sustained(clean.score[number == k], n) for k in range(int(number[-1]))])
