"""A batch in one line: its samples in order of arrival across kinds, as the event clock judges them."""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.engine.eventtime import HeldSample
from watchkeeper.streams.batch import CheckedBatch, Columns
from watchkeeper.streams.messages import Kind


class Arrivals:
    """A batch's samples in one line, in arrival order."""

    def __init__(self, batch: CheckedBatch) -> None:
        self.batch = batch
        columns = batch.kinds
        if len(columns) == 1:
            ((kind, cols),) = columns.items()
            self.t, self.vid, self.via = cols.t, cols.vid, cols.via
            self.place = {kind: np.arange(len(cols.t))}
            return
        seq = np.concatenate([cols.seq for cols in columns.values()])
        order = np.argsort(seq, kind="stable")
        self.t = np.concatenate([cols.t for cols in columns.values()])[order]
        self.vid = np.concatenate([cols.vid for cols in columns.values()])[order]
        self.via = np.concatenate([cols.via for cols in columns.values()])[order]
        place = np.empty(len(seq), np.int64)
        place[order] = np.arange(len(seq))
        ends = np.cumsum([len(cols.t) for cols in columns.values()])
        self.place = dict(zip(columns, np.split(place, ends[:-1]), strict=True))

    def where(self, i: int) -> tuple[Kind, int]:
        """Kind and row of sample i."""
        for kind, place in self.place.items():
            row = int(np.searchsorted(place, i))
            if row < len(place) and place[row] == i:
                return kind, row
        raise IndexError(i)

    def held(self, i: int, t: float) -> HeldSample:
        """Sample i by itself, at the time t."""
        kind, row = self.where(i)
        cols = self.batch.kinds[kind]
        via = self.batch.vias[cols.via[row]] if cols.via[row] >= 0 else ""
        name = self.batch.ids[cols.vid[row]]
        called = cols.t[row] >= self.batch.called_t.get(name, -np.inf)
        sign = self.batch.callsigns.get(name, "") if called else ""
        return HeldSample(kind, name, via, t, cols.data[:, row].copy(), sign)


def single(held: HeldSample) -> tuple[CheckedBatch, Kind, Columns]:
    """A held sample as a batch of its own."""
    via = np.full(1, 0 if held.via else -1, np.int32)
    cols = Columns(np.zeros(1, np.int64), np.zeros(1, np.int32), via, np.array([held.t]), held.data.reshape(-1, 1))
    signs = {held.name: held.callsign} if held.callsign else {}
    return CheckedBatch([held.name], {held.kind: cols}, [held.via] if held.via else [], signs), held.kind, cols
