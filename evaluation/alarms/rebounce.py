"""The alarms that another rule would have raised, from the evidence of one run of the pipeline.

`EvidenceLog` listens to the pipeline and notes every row of one kind of pair evidence and which aircraft reported in
which tick. `Rebounce` puts all of it through the Debouncer for any counts and thresholds. As in the watch that the
pipeline runs, a tick in which one of the two reported but the detector did not name them counts as score 0, a pair that
has nothing to be remembered for is forgotten, and an alarm without news is given up as lost. A threshold is that of a
loss which is near: further ahead it is as many times as high as the detector's own. So with the configured
rule and threshold the alarms are the pipeline's own. Pairs do not depend on each other: the first rows of all pairs
are counted together, then all second ones, and so on, for all thresholds at once.

Left out, because a curve does not need them: the limits on pairs and on active alarms, and vehicles that are evicted
sooner than an alarm of theirs is given up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.detectors.alarms.debounce import CLEAR, Debouncer
from watchkeeper.detectors.alarms.events import TIME_DIGITS
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.evaluation.alarms.verdicts import Alarm
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import Kind


class EvidenceLog:
    """All evidence of one kind, and who was heard when. Its `tick` gets what the pipeline gives to `on_evidence`.

    `threshold` is what the detector compares the scores with at least.
    """

    def __init__(self, kind: str, tick_s: float, threshold: float) -> None:
        self.kind = kind
        self.tick_s = tick_s
        self.threshold = threshold
        self.t_last = -math.inf
        self.score_max = 0.0
        self.number: dict[str, int] = {}
        # blocks of columns: aircraft, tick, time of its newest report; and pair, tick, epoch, score, threshold by the
        # lowest one
        self._heard: list[F8] = [np.empty((3, 0))]
        self._rows: list[F8] = [np.empty((6, 0))]

    def tick(self, window: Window, evidence: Sequence[Evidence], ids: Sequence[str]) -> None:
        """Note one tick; `ids` are the names by slot."""
        self.t_last = window.t
        reports = window.samples.get(Kind.ADSB)
        if reports is not None:
            # rows are sorted by slot and time: the last of each slot is its newest
            newest = np.flatnonzero(np.append(np.diff(reports.slot) != 0, True))
            who = self._numbers(reports.slot[newest], ids)
            self._heard.append(np.vstack((who, np.full(len(newest), window.t), reports.t[newest])))
        for found in evidence:
            if found.kind == self.kind and found.b is not None and len(found):
                self.score_max = max(self.score_max, float(found.score.max()))
                a, b = self._numbers(found.a, ids), self._numbers(found.b, ids)
                pair, rise = (np.minimum(a, b), np.maximum(a, b)), found.threshold / self.threshold
                self._rows.append(np.vstack((*pair, found.t, found.epoch, found.score, rise)))

    def _numbers(self, slots: I4, ids: Sequence[str]) -> I4:
        number = self.number
        return np.array([number.setdefault(ids[slot], len(number)) for slot in slots.tolist()], np.int32)

    def heard(self) -> F8:
        """Aircraft, tick and time of its newest report, sorted."""
        heard = np.concatenate(self._heard, axis=1)
        return heard[:, np.lexsort((heard[1], heard[0]))]

    def rows(self) -> F8:
        """Both aircraft, tick, epoch, score and threshold by the lowest one, sorted."""
        rows = np.concatenate(self._rows, axis=1)
        return rows[:, np.lexsort((rows[2], rows[1], rows[0]))]


class Rebounce:
    """The evidence made ready for the Debouncer. Of the rule only n and m may be varied later."""

    def __init__(self, log: EvidenceLog, rule: Debounce) -> None:
        self._log = log
        self._rule = rule
        names = list(log.number)
        heard, rows = log.heard(), log.rows()
        bounds = np.searchsorted(heard[0], np.arange(len(names) + 1))
        starts = np.flatnonzero(np.append(True, np.diff(rows[:2]).any(axis=0))[: rows.shape[1]])
        self.pairs: list[tuple[str, str]] = []
        parts: list[F8] = []
        for start, stop in pairwise([*starts.tolist(), rows.shape[1]]):
            a, b = int(rows[0, start]), int(rows[1, start])
            reports = np.concatenate([heard[1:, bounds[who] : bounds[who + 1]] for who in (a, b)], axis=1)
            self.pairs.append((names[a], names[b]) if names[a] < names[b] else (names[b], names[a]))
            parts.append(self._complete(rows[2:, start:stop], reports))
        sizes = [part.shape[1] for part in parts]
        pair = np.repeat(np.arange(len(parts)), sizes)
        rank = np.concatenate([np.arange(0), *map(np.arange, sizes)])
        order = np.lexsort((pair, rank))
        self._pair = pair[order]
        columns = np.concatenate([np.empty((4, 0)), *parts], axis=1)[:, order]
        self._t, self._epoch, self._score, self._rise = columns
        self._rounds = np.searchsorted(rank[order], np.arange(max(sizes, default=0) + 1))

    def alarms(self, n: int, m: int, thresholds: Sequence[float]) -> list[list[Alarm]]:
        """For each threshold the alarms when n of m epochs at or over it raise, in the order they are raised."""
        rule, k = msgspec.structs.replace(self._rule, n=n, m=m), len(thresholds)
        debouncer = Debouncer(rule, len(self.pairs) * k)
        cells = debouncer.cells
        found: list[list[Alarm]] = [[] for _ in thresholds]
        highest = np.maximum(thresholds, self._log.threshold * float(self._rise.max(initial=1.0)))

        def end(cell: int, t: float) -> None:
            cleared = round(t, TIME_DIGITS) if t <= self._log.t_last else None
            raised = round(float(cells["t_raised"][cell]), TIME_DIGITS)
            found[cell % k].append(Alarm(self.pairs[cell // k], raised, cleared))

        for start, stop in pairwise(self._rounds.tolist()):
            cell: I4 = (self._pair[start:stop, None] * k + np.arange(k)).ravel().astype(np.int32)
            t, epoch, score = (np.repeat(x[start:stop], k) for x in (self._t, self._epoch, self._score))
            # no higher for being far than the highest that the detector asked for
            threshold = np.minimum(np.outer(self._rise[start:stop], thresholds), highest).ravel()
            # what happened in the ticks since the row before, in which there was nothing to count
            active = cells["active"][cell]
            lost_t = self._tick_after(cells["last_epoch"][cell] + rule.lost_s)
            stale_t = self._tick_after(cells["last_epoch"][cell] + rule.bridge_s)
            for row in np.flatnonzero(active & (lost_t < t)).tolist():
                end(int(cell[row]), float(lost_t[row]))
            debouncer.reset(cell[np.where(active, lost_t, stale_t) < t])

            action = debouncer.update(cell, t, epoch, score, threshold)
            for row in np.flatnonzero(action == CLEAR).tolist():
                end(int(cell[row]), float(t[row]))
            debouncer.reset(debouncer.quiet(-math.inf, cell))
        for at in np.flatnonzero(cells["active"]).tolist():
            end(at, float(self._tick_after(cells["last_epoch"][at : at + 1] + rule.lost_s)[0]))
        return [sorted(alarms, key=lambda alarm: (alarm.t_raised, alarm.pair)) for alarms in found]

    def _complete(self, rows: F8, reports: F8) -> F8:
        """A pair's evidence (tick, epoch, score, rise) and, between and after it, the ticks that count as score 0."""
        reports = reports[:, np.lexsort((reports[1], reports[0]))]
        # of two reports in one tick the newer one counts
        reports = reports[:, np.append(np.diff(reports[0]) != 0, True)]
        reports = reports[:, (reports[0] >= rows[0, 0]) & ~np.isin(reports[0], rows[0])]
        # after the last evidence only as many as it takes to clear an alarm
        after = int(np.searchsorted(reports[0], rows[0, -1]))
        in_time = int(np.searchsorted(reports[0], rows[0, -1] + self._rule.min_on_s))
        reports = reports[:, : max(in_time, after + self._rule.clear_n) + 1]
        nothing = np.vstack((reports, np.zeros(reports.shape[1]), np.ones(reports.shape[1])))
        both = np.concatenate((rows, nothing), axis=1)
        return both[:, np.argsort(both[0], kind="stable")]

    def _tick_after(self, t: F8) -> F8:
        """The first tick later than t."""
        tick_s = self._log.tick_s
        later: F8 = (np.floor(t / tick_s) + 1.0) * tick_s
        return later
