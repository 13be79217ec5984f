"""Measures, at the edge, how long samples were on their way: arrival minus sample time, once a second per vehicle.

Everything behind the edge works in event time and never sees when a sample arrived. So the receiver of samples (the
daemon's pump, `record`, the simulator) runs one LinkMeter, which adds samples of the stream `link` to each batch: they
go into the pipeline and into logs like any other, and a replay judges the same latencies as the live run did.

Only while the stream's time runs like the wall clock: a log that is replayed to a broker at another speed has times,
but no latencies. Nor has what comes after nothing arrived for a while: it waited for us (a restart, a line that was
cut), and says nothing about a vehicle's link. A clock that is off by a constant is fine; detectors compare with the
vehicle's own past.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from watchkeeper.streams.batch import F8, I8, U1, B, Batch, Bool, Columns, columns_of, concat
from watchkeeper.streams.check import OK, sound
from watchkeeper.streams.messages import COLUMN, Kind

# One report per vehicle and second of its own time.
REPORT_S = 1.0
# Only vehicles with these streams are reported: aircraft come and go, and there may be tens of thousands.
METERED = (Kind.GPS, Kind.IMU)
# Stream time over wall time, looked at over this long: outside of this it is no live stream.
PACE_S = 4.0
PACE = (0.7, 1.4)
# An answer after longer than this is to some other clock's ping.
MAX_TRIP_S = 60.0
_ECHO, _RTT = COLUMN[Kind.LINK]["echo_t"], COLUMN[Kind.LINK]["rtt_s"]


class LinkMeter:
    """One edge. Times are seconds; `arrived_s` is in the clock that the samples' times are compared with.

    Reports pass the check of all samples. `refused` gets the vehicle of one that does not: its clock jumps by decades.
    """

    def __init__(self, refused: Callable[[str], None] = lambda _name: None) -> None:
        self._refused = refused
        self._row: dict[str, int] = {}
        self._second: F8 = np.empty(0)
        self._newest: F8 = np.empty((len(METERED), 0))
        # a vehicle's first latency: clocks may be years apart, and sums of such squares would lose the milliseconds
        self._base: F8 = np.empty(0)
        # samples, sum and sum of squares of latency over the base, reordered
        self._sums: F8 = np.empty((4, 0))
        self._paces: list[tuple[float, float]] = []
        # nothing arrived for a while, and the pace since then is not known yet
        self._resuming = False

    def add(self, batch: B, arrived_s: F8) -> B:
        """The batch with the reports that it completes at its end; `arrived_s` by the samples' `seq`."""
        _answer_pings(batch, arrived_s)
        kinds = [kind for kind in METERED if kind in batch.kinds and len(batch.kinds[kind])]
        if not kinds or not len(arrived_s):
            return batch
        live = self._live(max(float(batch.kinds[kind].t.max()) for kind in kinds), float(arrived_s.max()))
        rows = self._rows(batch, kinds)
        ready = self._take(batch, kinds, arrived_s, rows)
        if not live or not len(ready):
            if self._resuming:
                self._sums[:, rows[rows >= 0]] = 0.0
            return batch
        self._resuming = False
        total = 1 + max(int(cols.seq[-1]) for cols in batch.kinds.values() if len(cols))
        reports = self._sound(batch, self._report(ready, rows, total))
        self._sums[:, rows[ready]] = 0.0
        before = batch.kinds.get(Kind.LINK)
        if before is not None and len(before):
            reports = concat((before, reports))
        return batch.having({**batch.kinds, Kind.LINK: reports})

    def resume(self) -> None:
        """What comes next has waited for us, however short."""
        self._paces.clear()
        self._resuming = True

    def snapshot(self) -> dict[str, Any]:
        """What has been measured so far, as plain values and arrays."""
        n = len(self._row)
        return {
            "names": list(self._row),
            "second": self._second[:n],
            "newest": self._newest[:, :n],
            "base": self._base[:n],
            "sums": self._sums[:, :n],
            "paces": [list(pace) for pace in self._paces],
            "resuming": self._resuming,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._row = {name: row for row, name in enumerate(state["names"])}
        self._second, self._base = state["second"], state["base"]
        self._newest, self._sums = state["newest"], state["sums"]
        self._paces = [(t, arrived_s) for t, arrived_s in state["paces"]]
        self._resuming = state.get("resuming", False)

    def _sound(self, batch: Batch, reports: Columns) -> Columns:
        def refuse(codes: U1) -> None:
            for vid in reports.vid[codes != OK].tolist():
                self._refused(batch.ids[vid])

        return sound(Kind.LINK, reports, refuse)

    def _live(self, t: float, arrived_s: float) -> bool:
        """Whether the stream's time keeps pace with the wall's."""
        paces = self._paces
        if paces and t < paces[-1][0] - PACE_S:
            paces.clear()  # the stream began again
        elif paces and arrived_s - paces[-1][1] >= PACE_S:
            self.resume()
        paces.append((max(t, paces[-1][0] if paces else t), arrived_s))
        while len(paces) > 2 and arrived_s - paces[1][1] >= PACE_S:
            del paces[0]
        first_t, first_s = paces[0]
        if arrived_s - first_s < PACE_S:
            return False
        return PACE[0] <= (paces[-1][0] - first_t) / (arrived_s - first_s) <= PACE[1]

    def _rows(self, batch: Batch, kinds: list[Kind]) -> I8:
        """The row of each of the batch's names, -1 for those without a metered stream."""
        used = np.zeros(len(batch.ids), bool)
        for kind in kinds:
            used[batch.kinds[kind].vid] = True
        rows = np.full(len(batch.ids), -1, np.int64)
        for vid in np.flatnonzero(used).tolist():
            rows[vid] = self._row.setdefault(batch.ids[vid], len(self._row))
        missing = len(self._row) - len(self._second)
        if missing > 0:
            room = max(missing, len(self._second), 64)
            self._second = np.concatenate((self._second, np.full(room, np.nan)))
            self._base = np.concatenate((self._base, np.full(room, np.nan)))
            self._newest = np.concatenate((self._newest, np.full((len(METERED), room), -np.inf)), axis=1)
            self._sums = np.concatenate((self._sums, np.zeros((4, room))), axis=1)
        return rows

    def _take(self, batch: Batch, kinds: list[Kind], arrived_s: F8, rows: I8) -> I8:
        """Count the batch's samples; the numbers (`vid`) of vehicles whose second is over."""
        newest = np.full(len(batch.ids), -np.inf)
        for kind in kinds:
            cols = batch.kinds[kind]
            k, row = METERED.index(kind), rows[cols.vid]
            latency = arrived_s[cols.seq] - cols.t
            fresh = np.isnan(self._base[row])
            self._base[row[fresh]] = latency[fresh]
            latency -= self._base[row]
            late = _after_newer(cols, self._newest[k], row)
            for i, weight in enumerate((None, latency, latency * latency, late.astype(float))):
                self._sums[i] += np.bincount(row, weight, minlength=len(self._second))
            np.maximum.at(self._newest[k], row, cols.t)
            np.maximum.at(newest, cols.vid, cols.t)
        vids = np.flatnonzero(newest > -np.inf)
        second = np.floor(newest[vids] / REPORT_S)
        known = self._second[rows[vids]]
        over = second > known
        moved = rows[vids[over | np.isnan(known)]]
        self._second[moved] = second[over | np.isnan(known)]
        return vids[over]

    def _report(self, vids: I8, rows: I8, first_seq: int) -> Columns:
        n, total, squares, late = self._sums[:, rows[vids]]
        mean = total / n
        jitter = np.sqrt(np.maximum(squares / n - mean * mean, 0.0))
        values = {"latency_s": self._base[rows[vids]] + mean, "jitter_s": jitter, "samples": n, "reordered": late}
        t = self._newest[:, rows[vids]].max(axis=0)
        seq = first_seq + np.arange(len(vids))
        return columns_of(Kind.LINK, vids.astype(np.int32), t, values, seq=seq)


def _answer_pings(batch: Batch, arrived_s: F8) -> None:
    """Where a sample answers a ping, the round trip is from the ping's time, which was ours, to its arrival."""
    links = batch.kinds.get(Kind.LINK)
    if links is None or not len(links):
        return
    echo_t, rtt_s = links.data[_ECHO], links.data[_RTT]
    rows = np.flatnonzero(np.isfinite(echo_t) & np.isnan(rtt_s))
    trip_s = arrived_s[links.seq[rows]] - echo_t[rows]
    rtt_s[rows] = np.where((trip_s >= 0.0) & (trip_s <= MAX_TRIP_S), trip_s, np.nan)


def _after_newer(cols: Columns, newest: F8, row: I8) -> Bool:
    """Which samples arrive after a newer one of the same vehicle, in this batch or before."""
    order = np.argsort(row, kind="stable")
    t, who = cols.t[order], row[order]
    late = np.zeros(len(t), bool)
    late[order] = t < newest[who]
    late[order[1:]] |= (np.diff(t) < 0.0) & (who[1:] == who[:-1])
    return late
