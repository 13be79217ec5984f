"""A turn for all workers at once: every sample is in shared memory once, and each worker takes its own out of it.

    heads, arrays = laid_out_turn(turn)    one head for each operator, vehicles first; and arrays that follow each other
    steps = own_steps(head, memory)        in the worker: what `Turn.split` would have given it

To cut a batch in parts takes a core longer than to write it down whole, and here the workers do it, each on its own
core. What a worker gets of names is its own only: names of others would cost every worker.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from watchkeeper.engines.columns import Buffer, KindHead, laid_out
from watchkeeper.engines.steps import Spread, Step, Turn
from watchkeeper.engines.wire import PlainClock, clock_of, plain_clock
from watchkeeper.streams.batch import F8, I4, Bool, CheckedBatch, Columns
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.split import compact

# The number of the operator of the fleet.
FLEET = -1


class OwnHead(msgspec.Struct, array_like=True):
    """The samples of one operator: its names, in this order, and where in the arrays the whole batch is.

    The arrays begin with three tables by name: its operator of vehicles, its place among the names of that operator,
    and its place among those of the operator of the fleet (-1: none).
    """

    operator: int
    ids: list[str]
    vias: list[str]
    callsigns: dict[str, str]
    called_t: dict[str, float]
    kinds: list[KindHead]
    names: int
    at: int


class OwnStep(msgspec.Struct, array_like=True):
    """One step for one operator."""

    samples: OwnHead | None
    moved: bool
    clock: PlainClock


_encode = msgspec.msgpack.Encoder().encode
_steps = msgpack_decoder(list[OwnStep])


def laid_out_turn(turn: Turn) -> tuple[list[bytes], list[Buffer]]:
    """What `own_steps` makes the steps of each operator of."""
    steps: list[list[OwnStep]] = [[] for _ in range(turn.shards + 1)]
    arrays: list[Buffer] = []
    at = 0
    for spread in turn.spreads:
        clock = plain_clock(spread.clock)
        heads, own = ([None] * (turn.shards + 1), []) if spread.samples is None else _laid_out(spread, turn.shards, at)
        at += sum(map(len, own))
        arrays += own
        for found, head in zip(steps, heads, strict=True):
            found.append(OwnStep(head, spread.moved, clock))
    return [_encode(found) for found in steps], arrays


def _laid_out(spread: Spread, shards: int, at: int) -> tuple[list[OwnHead | None], list[Buffer]]:
    batch = spread.samples
    assert batch is not None
    head, columns = laid_out(batch)
    used = np.zeros(len(batch.ids), bool)
    for cols in batch.kinds.values():
        used[cols.vid] = True
    part = np.where(used, spread.part, np.int32(shards))
    order = np.argsort(part, kind="stable")
    start = np.searchsorted(part[order], np.arange(shards + 1)).tolist()
    place = np.empty(len(part), np.int32)
    across = np.flatnonzero(spread.across & used)
    for p in range(shards):
        place[order[start[p] : start[p + 1]]] = np.arange(start[p + 1] - start[p], dtype=np.int32)
    place_across = np.full(len(part), -1, np.int32)
    place_across[across] = np.arange(len(across), dtype=np.int32)
    names = [[batch.ids[i] for i in order[start[p] : start[p + 1]].tolist()] for p in range(shards)]
    names.append(batch.ids if len(across) == len(part) else [batch.ids[i] for i in across.tolist()])
    heads = [_head(batch, p if p < shards else FLEET, own, head.kinds, at) for p, own in enumerate(names)]
    tables = np.concatenate([part, place, place_across, np.zeros(len(part) % 2, np.int32)])
    return heads, [tables.view(np.uint8).data, *columns]


def _head(batch: CheckedBatch, operator: int, ids: list[str], kinds: list[KindHead], at: int) -> OwnHead | None:
    if not ids:
        return None
    signs = batch.callsigns
    own = {name: signs[name] for name in ids if name in signs} if signs else {}
    since_t = {name: batch.called_t[name] for name in own if name in batch.called_t}
    return OwnHead(operator, ids, batch.vias, own, since_t, kinds, len(batch.ids), at)


def own_steps(head: Buffer, memory: Buffer) -> Iterator[Step]:
    """One operator's steps of a turn. Samples are copied: the memory may be another's by the time they are judged."""
    for step in _steps(head):
        yield Step(None if step.samples is None else _own(step.samples, memory), step.moved, clock_of(step.clock))


def _own(head: OwnHead, memory: Buffer) -> CheckedBatch:
    n, at = head.names, head.at
    part, place, across = np.frombuffer(memory, np.int32, 3 * n, at).reshape(3, n)
    table: I4 = across if head.operator == FLEET else np.where(part == head.operator, place, np.int32(-1))
    at += 4 * (3 * n + n % 2)
    kinds: dict[Kind, Columns] = {}
    heard: Bool = np.zeros(len(head.vias) + 1, bool)
    for block in head.kinds:
        count, kind, present = block.samples, Kind(block.kind), len(block.columns)
        t = np.frombuffer(memory, np.float64, count, at)
        values = np.frombuffer(memory, np.float64, present * count, at + 8 * count).reshape(present, count)
        at += 8 * count * (1 + present)
        own = table[np.frombuffer(memory, np.int32, count, at)]
        at += 4 * (count + count % 2)
        rows = np.flatnonzero(own >= 0)
        via = np.full(len(rows), -1, np.int32)
        if block.has_via:
            via = np.frombuffer(memory, np.int32, count, at)[rows]
            at += 4 * (count + count % 2)
        if len(rows):
            data = _spread_out(np.take(values, rows, axis=1), block.columns, len(FIELDS[kind]))
            kinds[kind] = Columns(np.arange(len(rows)), own[rows], via, t[rows], data)
            heard[via] = True
    vias, kinds = compact(head.vias, heard, kinds)
    return CheckedBatch(head.ids, kinds, vias, head.callsigns, head.called_t)


def _spread_out(values: F8, columns: list[int], fields: int) -> F8:
    """All columns of a kind, of which these have a value."""
    if len(columns) == fields:
        return values
    data = np.full((fields, values.shape[1]), np.nan)
    data[columns] = values
    return data
