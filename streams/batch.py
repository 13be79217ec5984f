"""Batch: decoded samples as columns, on their way from a source (MQTT, log, CSV, simulator) to the pipeline.

A batch holds any mix of stream kinds in arrival order. Vehicle names appear once, in `ids`; samples point at
them. Slots (fleet rows) are the pipeline's business and never appear here, so a batch can be written to a log,
sent to another process, or fed twice.

A CheckedBatch is a batch whose samples have passed the one check (check.py). Only that is judged. What takes rows out
of a batch or joins batches keeps the type; what changes values makes a Batch, to be checked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]
Bool = NDArray[np.bool_]
B = TypeVar("B", bound="Batch")


@dataclass(frozen=True, slots=True)
class Columns:
    """The samples of one kind, in arrival order.

    `seq` numbers a batch's samples 0, 1, 2 … across all kinds in the order they arrived; `vid` indexes
    `Batch.ids`; `via` indexes `Batch.vias` (-1: none); `data[c]` is the column of field c (messages.COLUMN).
    """

    seq: I8
    vid: I4
    via: I4
    t: F8
    data: F8

    def __len__(self) -> int:
        return len(self.t)

    def take(self, rows: I8 | Bool) -> Columns:
        """The given rows (indices or mask), in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        # np.take keeps C order, which kernels are compiled for; data[:, index] would not
        data = np.take(self.data, index, axis=1)
        return Columns(self.seq[index], self.vid[index], self.via[index], self.t[index], data)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of several kinds, with the names they refer to.

    `callsigns` by vehicle id; `called_t` is when the first sample with this callsign was made, where that is known and
    not the vehicle's first sample here.
    """

    ids: list[str]
    kinds: dict[Kind, Columns]
    vias: list[str] = field(default_factory=list)
    callsigns: dict[str, str] = field(default_factory=dict)
    called_t: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(c) for c in self.kinds.values())

    @property
    def nbytes(self) -> int:
        """Size of the columns in memory."""
        return sum(a.nbytes for c in self.kinds.values() for a in (c.seq, c.vid, c.via, c.t, c.data))

    @property
    def t_max(self) -> float:
        """Newest sample time in the batch; -inf when it is empty."""
        return max((float(c.t.max()) for c in self.kinds.values() if len(c)), default=-np.inf)

    @property
    def t_min(self) -> float:
        """Oldest sample time in the batch; inf when it is empty."""
        return min((float(c.t.min()) for c in self.kinds.values() if len(c)), default=np.inf)

    def first_t(self) -> F8:
        """When each vehicle's first sample was made, by its place in `ids`; inf without one."""
        return first_times(len(self.ids), self.kinds)

    def having(self, kinds: dict[Kind, Columns]) -> Self:
        """The same names with these samples: rows of this batch, unchanged, or such as have passed the same check."""
        kept = {k: c for k, c in kinds.items() if len(c)}
        return type(self)(self.ids, kept, self.vias, self.callsigns, self.called_t)


class CheckedBatch(Batch):
    """Every sample is in range and has what it needs, angles are in one convention. Made by check.py and the codec."""

    __slots__ = ()


def first_times(vehicles: int, kinds: dict[Kind, Columns]) -> F8:
    """The oldest time of each vehicle; inf for one without samples."""
    first_t = np.full(vehicles, np.inf)
    for cols in kinds.values():
        np.minimum.at(first_t, cols.vid, cols.t)
    return first_t


def later_calls(ids: Sequence[str], kinds: dict[Kind, Columns], called_t: dict[str, float]) -> dict[str, float]:
    """`called_t` of a batch: the times that are not those of their vehicles' first samples."""
    first_t = dict(zip(ids, first_times(len(ids), kinds).tolist(), strict=True)) if called_t else {}
    return {name: t for name, t in called_t.items() if t > first_t.get(name, np.inf)}


def columns_of(
    kind: Kind, vid: I4, t: F8, values: dict[str, F8], *, seq: I8 | None = None, via: I4 | None = None
) -> Columns:
    """Columns from named arrays, for simulators, adapters and tests; fields not given are absent (NaN)."""
    n = len(t)
    data = np.full((len(FIELDS[kind]), n), np.nan)
    for name, column in values.items():
        data[COLUMN[kind][name]] = column
    return Columns(
        seq=np.arange(n, dtype=np.int64) if seq is None else seq,
        vid=np.asarray(vid, np.int32),
        via=np.full(n, -1, np.int32) if via is None else via,
        t=np.asarray(t, np.float64),
        data=data,
    )


def concat(blocks: Sequence[Columns]) -> Columns:
    """Several blocks of one kind, one after the other."""
    return Columns(
        np.concatenate([b.seq for b in blocks]),
        np.concatenate([b.vid for b in blocks]),
        np.concatenate([b.via for b in blocks]),
        np.concatenate([b.t for b in blocks]),
        np.concatenate([b.data for b in blocks], axis=1),
    )


def slice_batch(batch: B, start: int, stop: int) -> B:
    """The samples numbered start..stop-1 in arrival order, renumbered from 0: re-chunks a log."""
    kinds: dict[Kind, Columns] = {}
    for kind, cols in batch.kinds.items():
        lo, hi = np.searchsorted(cols.seq, (start, stop))
        if hi > lo:
            part = cols.take(np.arange(lo, hi))
            kinds[kind] = Columns(part.seq - start, part.vid, part.via, part.t, part.data)
    return batch.having(kinds)
