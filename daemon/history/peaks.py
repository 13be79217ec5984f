"""The highest scores and the largest residuals since they were last taken, by slot.

A sample every few seconds would miss a score that was over its threshold for a tick: so the history keeps the highest
of each period, not the one that happens to be there. Evidence is sorted by subject, so a tick costs a few array
operations, whatever the number of vehicles.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.daemon.history.layers import Layer, ratios
from watchkeeper.daemon.live.scores import vehicle_kinds
from watchkeeper.detectors.base import Evidence
from watchkeeper.streams.batch import F8, I8

# The kind whose evidence has channels, and how their names end.
CHANNELS_OF, CHANNEL = "gps_imu", "_sigma"


class Peaks:
    """For the slots of one fleet. `scores` and `residuals` are [column, slot], NaN where there was nothing."""

    def __init__(self, capacity: int) -> None:
        self.kinds = vehicle_kinds()
        self.score_layer = ratios("scores", self.kinds)
        self.scores: F8 = np.full((len(self.kinds), capacity), np.nan)
        self.residual_layer: Layer | None = None
        self.residuals: F8 = np.empty((0, capacity))

    def take(self, evidence: list[Evidence]) -> None:
        """One tick's evidence."""
        for found in evidence:
            if found.kind not in self.kinds or not len(found):
                continue
            starts = np.flatnonzero(np.r_[True, found.a[1:] != found.a[:-1]])
            slots = found.a[starts]
            row = self.scores[self.kinds.index(found.kind)]
            row[slots] = np.fmax(row[slots], np.fmax.reduceat(found.score / found.threshold, starts))
            if found.kind == CHANNELS_OF:
                self._channels(found, starts)

    def _channels(self, found: Evidence, starts: I8) -> None:
        names = [name for name in found.numbers if name.endswith(CHANNEL)]
        if self.residual_layer is None or self.residual_layer.names != names:
            self.residual_layer = ratios("residuals", names)
            self.residuals = np.full((len(names), self.scores.shape[1]), np.nan)
        if names:
            highest = np.fmax.reduceat(np.stack([found.numbers[name] for name in names]), starts, axis=1)
            slots = found.a[starts]
            self.residuals[:, slots] = np.fmax(self.residuals[:, slots], highest)

    @staticmethod
    def drain(table: F8, slots: I8) -> tuple[I8, F8]:
        """Of these slots those that have something, and what; it is forgotten."""
        some = slots[~np.isnan(table[:, slots]).all(axis=0)] if len(table) else slots[:0]
        values: F8 = table[:, some]
        table[:, some] = np.nan
        return some, values
