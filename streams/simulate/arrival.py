"""Arrival order: puts the samples of all simulated sources into batches by the time at which they are received.

A source makes the samples of one second at a time; those that are still on their way at its end wait for the
next batch. So the whole stream is sorted by receive time, whatever the batches, and memory does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool, Columns
from watchkeeper.streams.linkmeter import LinkMeter
from watchkeeper.streams.messages import Kind


@dataclass(frozen=True, slots=True)
class Chunk:
    """Samples of one kind on their way: `t` and `arrive` are seconds since the start of the simulation."""

    kind: Kind
    vid: I4
    t: F8
    arrive: F8
    data: F8

    def take(self, rows: I8 | Bool) -> Chunk:
        """The given rows (indices or mask)."""
        return Chunk(self.kind, self.vid[rows], self.t[rows], self.arrive[rows], self.data[:, rows])


class Source(Protocol):
    """Vehicles that report. A name may be given to another vehicle once nothing of the old one is on its way."""

    names: list[str]
    callsigns: list[str]

    def second(self, s: int) -> list[Chunk]:
        """Samples measured from about s to s + 1, none of them to arrive before s; called for s = 0, 1, 2 and on."""
        ...


def batches(sources: Sequence[Source], seconds: float, t0: float, meter: LinkMeter | None = None) -> Iterator[Batch]:
    """One batch per second of simulated time, in order of arrival; times are shifted to start at t0.

    With a meter the receiver also measures how long samples were on their way.
    """
    waiting: dict[Kind, Chunk] = {}
    last = math.ceil(seconds) - 1
    for s in range(last + 1):
        base = 0
        for source in sources:
            for chunk in source.second(s):
                moved = Chunk(chunk.kind, chunk.vid + np.int32(base), chunk.t, chunk.arrive, chunk.data)
                before = waiting.get(chunk.kind)
                waiting[chunk.kind] = moved if before is None else _join(before, moved)
            base += len(source.names)
        ready: dict[Kind, Chunk] = {}
        for kind in sorted(waiting):
            chunk = waiting[kind]
            here = chunk.t < seconds if s == last else chunk.arrive < s + 1
            ready[kind] = chunk.take(here)
            waiting[kind] = chunk.take(~here)
        batch, arrived = _batch(ready, sources, base, t0)
        if len(batch):
            yield batch if meter is None else meter.add(batch, arrived)


def _join(a: Chunk, b: Chunk) -> Chunk:
    return Chunk(
        a.kind,
        np.concatenate((a.vid, b.vid)),
        np.concatenate((a.t, b.t)),
        np.concatenate((a.arrive, b.arrive)),
        np.concatenate((a.data, b.data), axis=1),
    )


def _batch(ready: dict[Kind, Chunk], sources: Sequence[Source], vehicles: int, t0: float) -> tuple[Batch, F8]:
    """The batch, and when each of its samples arrived, in order."""
    chunks = [c for c in ready.values() if len(c.t)]
    if not chunks:
        return Batch([], {}), np.empty(0)
    # a stable sort keeps ties in the order in which they were made, so that equal times are no source of chance
    arrive = np.concatenate([c.arrive for c in chunks])
    order = np.argsort(arrive, kind="stable")

    present = np.zeros(vehicles, bool)
    for c in chunks:
        present[c.vid] = True
    compact = (np.cumsum(present) - 1).astype(np.int32)
    ids: list[str] = []
    callsigns: dict[str, str] = {}
    base = 0
    for source in sources:
        for i in np.flatnonzero(present[base : base + len(source.names)]).tolist():
            ids.append(source.names[i])
            if source.callsigns[i]:
                callsigns[source.names[i]] = source.callsigns[i]
        base += len(source.names)

    kinds: dict[Kind, Columns] = {}
    start = 0
    for c in chunks:
        seq = np.flatnonzero((order >= start) & (order < start + len(c.t)))
        rows = order[seq] - start
        via = np.full(len(rows), -1, np.int32)
        kinds[c.kind] = Columns(seq, compact[c.vid[rows]], via, c.t[rows] + t0, c.data[:, rows])
        start += len(c.t)
    return Batch(ids, kinds, callsigns=callsigns), arrive[order] + t0
