"""Columns over time in a bounded number of bins: of each bin the least and the greatest value, so that no peak is lost.

    envelope.add(row, t, values)    samples of any rows (vehicles), values by [column, sample]
    envelope.lo, envelope.hi        [column, row, bin]; NaN where nothing was heard
    envelope.count                  [row, bin], samples

Each row has bins of its own width, which begin at its first sample. When a row is full, neighbouring bins are joined
and the width doubles: memory depends on the number of rows alone, however long the log is. With more than FEW rows all
of them have fewer bins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I4, I8

F4 = NDArray[np.float32]
# Bins are this wide at first, s: finer than any plot of a minute can show.
FINEST_S = 0.05
# Of up to so many rows each is looked at closely.
FEW = 32


class Envelope:
    """See the module's docstring. `points` are columns of which a bin keeps its first value, such as positions."""

    def __init__(
        self, columns: Sequence[str], bins: int, *, many: int | None = None, points: Sequence[str] = ()
    ) -> None:
        # bins of a row where there are more than FEW
        self._many = bins if many is None else many
        self.columns = tuple(columns)
        self.points = tuple(points)
        self.bins = bins
        self.rows = 0
        self.origin_t: F8 = np.empty(0)
        self.width_s: F8 = np.empty(0)
        self.count: I4 = np.empty((0, bins), np.int32)
        self.lo: F4 = np.empty((len(columns), 0, bins), np.float32)
        self.hi: F4 = self.lo.copy()
        self.first: F4 = np.empty((len(points), 0, bins), np.float32)

    def add(self, row: I8, t: F8, values: F8, points: F8 | None = None) -> None:
        """Take in samples, in order of time for each row."""
        if not len(t):
            return
        self._reserve(int(row.max()) + 1)
        fresh, at = np.unique(row, return_index=True)
        new = np.isnan(self.origin_t[fresh])
        self.origin_t[fresh[new]] = t[at[new]]
        self.width_s[fresh[new]] = FINEST_S
        place = self._place(row, t)
        while (over := place >= self.bins).any():
            self._join(np.unique(row[over]))
            place = self._place(row, t)
        cell = row * self.bins + np.maximum(place, 0)
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        cells = cell[starts]
        np.add.at(self.count.reshape(-1), cells, np.diff(starts, append=len(cell)).astype(np.int32))
        lows, highs = np.fmin.reduceat(values, starts, axis=1), np.fmax.reduceat(values, starts, axis=1)
        for c in range(len(self.columns)):
            np.fmin.at(self.lo[c].reshape(-1), cells, lows[c].astype(np.float32))
            np.fmax.at(self.hi[c].reshape(-1), cells, highs[c].astype(np.float32))
        for c in range(len(self.points)):
            assert points is not None
            flat = self.first[c].reshape(-1)
            # the first of each cell, and only where there is none yet
            cells_once, at = np.unique(cells, return_index=True)
            empty = np.isnan(flat[cells_once])
            flat[cells_once[empty]] = points[c, starts[at[empty]]]

    def _place(self, row: I8, t: F8) -> I8:
        place: I8 = np.floor((t - self.origin_t[row]) / self.width_s[row]).astype(np.int64)
        return place

    def _join(self, rows: I8) -> None:
        """Neighbouring bins become one."""
        half = self.bins // 2
        self.width_s[rows] *= 2.0
        whole = self.count[rows]
        self.count[rows, :half], self.count[rows, half:] = whole[:, ::2] + whole[:, 1::2], 0
        for c in range(len(self.columns)):
            for table, least in ((self.lo[c], np.fmin), (self.hi[c], np.fmax)):
                pairs = table[rows]
                table[rows, :half], table[rows, half:] = least(pairs[:, ::2], pairs[:, 1::2]), np.nan
        for table in self.first:
            pairs = table[rows]
            earlier, later = pairs[:, ::2], pairs[:, 1::2]
            table[rows, :half], table[rows, half:] = np.where(np.isnan(earlier), later, earlier), np.nan

    def _thin(self) -> None:
        """Fewer bins for everybody: half of them each time, until there are as many as many rows may have."""
        used = np.arange(self.rows)
        while self.bins > self._many:
            self._join(used)
            self.bins //= 2
            self.count = self.count[:, : self.bins].copy()
            self.lo, self.hi, self.first = (t[:, :, : self.bins].copy() for t in (self.lo, self.hi, self.first))

    def _reserve(self, rows: int) -> None:
        if rows > FEW and self.bins > self._many:
            self._thin()
        self.rows = max(self.rows, rows)
        have = len(self.origin_t)
        if rows <= have:
            return
        more = max(rows, 2 * have) - have

        def grown(table: F4) -> F4:
            return np.concatenate((table, np.full((len(table), more, self.bins), np.nan, np.float32)), axis=1)

        self.origin_t = np.concatenate((self.origin_t, np.full(more, np.nan)))
        self.width_s = np.concatenate((self.width_s, np.full(more, np.nan)))
        self.count = np.concatenate((self.count, np.zeros((more, self.bins), np.int32)))
        self.lo, self.hi, self.first = grown(self.lo), grown(self.hi), grown(self.first)
