"""Pending samples, and how they become windows: sorted by (slot, t), without duplicates, one window per tick.

Used by the pipeline only. Samples wait here for their tick to close; `cut` hands out what belongs to closed ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from watchkeeper.detectors.engine.eventtime import tick_of
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind

# Moves per sample that putting a few right may take: a sort of all takes as long as some 30.
MOVES = 8
# Ticks in one cut, of which so many fit two bytes: NumPy sorts those by counting.
FEW = 2**16


@dataclass(frozen=True, slots=True)
class Block:
    """Accepted samples of one kind, in arrival order.

    Sample i has column i of the data, or where there is a `column`, column[i]: values are moved once, to their window.
    """

    slot: I4
    via: I4
    t: F8
    data: F8
    column: I8 | None = None

    def take(self, rows: I8 | slice) -> Block:
        """The given rows, in that order."""
        slot, via, t = self.slot[rows], self.via[rows], self.t[rows]
        if self.column is not None:
            return Block(slot, via, t, self.data, self.column[rows])
        return (
            Block(slot, via, t, self.data[:, rows]) if isinstance(rows, slice) else Block(slot, via, t, self.data, rows)
        )

    def values(self, order: I8) -> F8:
        """The data of these rows, in that order."""
        values: F8 = np.take(self.data, order if self.column is None else self.column[order], axis=1)
        return values

    def whole(self) -> Block:
        """The same with data of its own: what waits must not keep the memory of more than itself."""
        if self.column is None:
            return self
        return Block(self.slot, self.via, self.t, np.take(self.data, self.column, axis=1))


class Pending:
    """Samples of one kind that wait for their tick."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._blocks: list[Block] = []
        self.n = 0
        self.first_t = np.inf

    def add(self, block: Block) -> None:
        """Queue accepted samples."""
        if len(block.t):
            self._blocks.append(block.whole())
            self.n += len(block.t)
            self.first_t = min(self.first_t, float(block.t.min()))

    @property
    def last_t(self) -> float:
        """The newest time that waits."""
        return max(float(block.t.max()) for block in self._blocks)

    def cut(self, tick: int, tick_s: float) -> dict[int, Block]:
        """Take out everything up to the given tick: tick to its samples, in arrival order."""
        if not self.n or self.first_t > tick * tick_s:
            return {}
        whole = self._whole()
        ticks = tick_of(whole.t, tick_s)
        if (np.diff(ticks) < 0).any():
            order = _by_tick(ticks)
            whole, ticks = whole.take(order), ticks[order]
        stop = int(np.searchsorted(ticks, tick, side="right"))
        self._blocks, self.n, self.first_t = [], 0, np.inf
        self.add(whole.take(slice(stop, None)))
        edges = np.flatnonzero(np.diff(ticks[:stop])) + 1
        starts = [0, *edges.tolist()] if stop else []
        ends = [*edges.tolist(), stop]
        return {int(ticks[a]): whole.take(slice(a, b)) for a, b in zip(starts, ends, strict=bool(stop))}

    def _whole(self) -> Block:
        blocks = self._blocks
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            np.concatenate([b.slot for b in blocks]),
            np.concatenate([b.via for b in blocks]),
            np.concatenate([b.t for b in blocks]),
            np.concatenate([b.data for b in blocks], axis=1),
        )

    def snapshot(self) -> dict[str, Any]:
        """What is waiting, in time order (arrival order where equal)."""
        if not self.n:
            return {}
        # sorted once stays sorted
        whole = in_time_order(self._whole()).whole()
        self._blocks = [whole]
        return {"slot": whole.slot, "via": whole.via, "t": whole.t, "data": whole.data}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._blocks, self.n, self.first_t = [], 0, np.inf
        if state:
            self.add(Block(state["slot"], state["via"], state["t"], state["data"]))


def in_time_order(block: Block) -> Block:
    """The samples by time, in arrival order where equal."""
    return block.take(np.argsort(block.t, kind="stable")) if (np.diff(block.t) < 0.0).any() else block


def _by_tick(ticks: I8) -> I8:
    """The order by tick, in arrival order within one. As a rule they are few: small numbers are sorted by counting."""
    after = ticks - ticks.min()
    order: I8 = np.argsort(after.astype(np.uint16) if after.max() < FEW else after, kind="stable")
    return order


def samples_of(kind: Kind, block: Block, slots: int, count_duplicates: Callable[[int], None]) -> Samples:
    """One tick's samples sorted by (slot, t); of samples with the same slot and time the first to arrive stays.

    Of signals a vehicle has many at one time: the detector, which knows them by name, leaves out what comes twice.
    """
    order, duplicate, sorted_out = _by_slot(block.slot, block.t, slots)
    if not sorted_out:
        block = in_time_order(block)
        order, duplicate, _ = _by_slot(block.slot, block.t, slots)
    if kind is not Kind.SIGNAL and duplicate.any():
        count_duplicates(int(duplicate.sum()))
        order = order[~duplicate]
    return Samples(kind, block.slot[order], block.t[order], block.values(order), block.via[order])


@njit(cache=True)
def _by_slot(slot: I4, t: F8, slots: int) -> tuple[I8, Bool, bool]:
    """The order by (slot, t), stable, and which of the samples repeat the one before.

    Counting puts slots in order. Within one, samples come in time order or nearly so, and those that were overtaken
    move back one by one; False at the end if that would take too many moves.
    """
    n = slot.size
    start = np.zeros(slots + 1, np.int64)
    for i in range(n):
        start[slot[i] + 1] += 1
    for s in range(slots):
        start[s + 1] += start[s]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[start[slot[i]]] = i
        start[slot[i]] += 1
    duplicate = np.zeros(n, np.bool_)
    moves = MOVES * n
    for k in range(1, n):
        i = order[k]
        at = k
        while at > 0 and slot[order[at - 1]] == slot[i] and t[order[at - 1]] > t[i]:
            order[at] = order[at - 1]
            at -= 1
            moves -= 1
            if moves < 0:
                return order, duplicate, False
        order[at] = i
    for k in range(1, n):
        i, j = order[k - 1], order[k]
        duplicate[k] = slot[i] == slot[j] and t[i] == t[j]
    return order, duplicate, True
