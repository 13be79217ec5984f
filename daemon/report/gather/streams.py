"""How each stream of each vehicle came in: samples, rate, holes. Bounded: intervals are counted, not kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, I8

# Intervals are counted by their length, in steps of a twelfth of an octave from a millisecond on.
SHORTEST_S, PER_OCTAVE, CLASSES = 1e-3, 12, 256


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of one vehicle. `rate_hz` is that of its usual interval, None with fewer than two samples."""

    samples: int
    t_first: float
    t_last: float
    rate_hz: float | None
    gap_s: float
    gap_t: float


class Streams:
    """The streams of one kind, by row."""

    def __init__(self) -> None:
        self.samples: I8 = np.empty(0, np.int64)
        self.t_first: F8 = np.empty(0)
        self.t_last: F8 = np.empty(0)
        self.gap_s: F8 = np.empty(0)
        self.gap_t: F8 = np.empty(0)
        self._intervals = np.empty((0, CLASSES), np.int64)

    def add(self, row: I8, t: F8) -> None:
        """Samples sorted by row and time."""
        self._reserve(int(row.max()) + 1)
        first = np.flatnonzero(np.diff(row, prepend=-1))
        last = np.append(first[1:], len(row)) - 1
        rows = row[first]
        before = np.empty(len(t))
        before[1:] = t[:-1]
        before[first] = self.t_last[rows]
        interval = t - before
        known = np.isfinite(interval) & (interval > 0.0)
        steps = np.log2(interval[known] / SHORTEST_S) * PER_OCTAVE
        np.add.at(self._intervals, (row[known], np.clip(steps, 0, CLASSES - 1).astype(np.int64)), 1)
        # of each row the longest hole: it is last where holes are in order of length
        holes = np.where(known, interval, 0.0)
        longest = np.lexsort((holes, row))[last]
        wider = holes[longest] > self.gap_s[rows]
        self.gap_s[rows[wider]], self.gap_t[rows[wider]] = holes[longest[wider]], before[longest[wider]]
        self.samples[rows] += last - first + 1
        self.t_first[rows] = np.fmin(self.t_first[rows], t[first])
        self.t_last[rows] = np.fmax(self.t_last[rows], t[last])

    def of(self, row: int) -> Stream | None:
        """One vehicle's stream; None when it never sent one."""
        if row >= len(self.samples) or not self.samples[row]:
            return None
        counts = self._intervals[row].cumsum()
        rate_hz = None
        if counts[-1]:
            middle = int(np.searchsorted(counts, 0.5 * counts[-1]))
            rate_hz = 1.0 / (SHORTEST_S * 2.0 ** ((middle + 0.5) / PER_OCTAVE))
        samples, t_first, t_last = int(self.samples[row]), float(self.t_first[row]), float(self.t_last[row])
        return Stream(samples, t_first, t_last, rate_hz, float(self.gap_s[row]), float(self.gap_t[row]))

    def _reserve(self, rows: int) -> None:
        if rows <= len(self.samples):
            return
        more = max(rows, 2 * len(self.samples)) - len(self.samples)
        self.samples = np.concatenate((self.samples, np.zeros(more, np.int64)))
        self.t_first = np.concatenate((self.t_first, np.full(more, np.nan)))
        self.t_last = np.concatenate((self.t_last, np.full(more, np.nan)))
        self.gap_s = np.concatenate((self.gap_s, np.zeros(more)))
        self.gap_t = np.concatenate((self.gap_t, np.full(more, np.nan)))
        self._intervals = np.concatenate((self._intervals, np.zeros((more, CLASSES), np.int64)))
