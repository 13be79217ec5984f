"""A batch in parts by vehicle, each with the names that its own samples use and no others.

    bucket = bucket_of(name)             of a vehicle, by its name alone; its part of n is the bucket modulo n
    parts = split(batch, part, 4)        one batch per part, in the order of arrival; names of others are left out

Used by engines that spread vehicles over operators. Every part is a batch like any other. If each part kept all names,
every operator would pay for the names of the whole fleet: sixteen of them took 7.8 times the time of one, with names of
their own 1.85 times.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

import numpy as np

from watchkeeper.streams.batch import I4, I8, B, Bool, Columns
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind

# Vehicles are spread over this many buckets by name, and buckets over parts: what vehicles of one bucket share does not
# depend on the number of parts. More parts than buckets would stay empty.
BUCKETS = 64
# Names whose bucket is remembered: working it out takes longer than looking it up.
REMEMBERED = 1 << 18


@lru_cache(REMEMBERED)
def bucket_of(name: str) -> int:
    """The bucket of a vehicle, by its name alone."""
    return crc32(name.encode(errors="surrogatepass")) % BUCKETS


def split(batch: B, part: I4, parts: int) -> list[B]:
    """The batch in parts: `part[i]` is that of the vehicle `batch.ids[i]`. Parts without samples are empty batches."""
    used = np.zeros(len(batch.ids), bool)
    for cols in batch.kinds.values():
        used[cols.vid] = True
    # a vehicle's place among the names of its part
    place = np.empty(len(batch.ids), np.int32)
    ids: list[list[str]] = []
    for p in range(parts):
        mine = np.flatnonzero(used & (part == p))
        place[mine] = np.arange(len(mine), dtype=np.int32)
        ids.append([batch.ids[i] for i in mine.tolist()])
    kinds: list[dict[Kind, Columns]] = [{} for _ in range(parts)]
    heard: Bool = np.zeros((parts, len(batch.vias) + 1), bool)
    for kind, cols in batch.kinds.items():
        order, start = _by_part(cols.vid, part, parts)
        for p in np.flatnonzero(np.diff(start)).tolist():
            rows = cols.take(order[start[p] : start[p + 1]])
            kinds[p][kind] = Columns(rows.seq, place[rows.vid], rows.via, rows.t, rows.data)
            heard[p, rows.via] = True
    calls, called_t = batch.callsigns, batch.called_t
    found = []
    for p in range(parts):
        vias, own = compact(batch.vias, heard[p], kinds[p])
        signs = {name: calls[name] for name in ids[p] if name in calls} if calls else {}
        since_t = {name: called_t[name] for name in signs if name in called_t}
        found.append(type(batch)(ids[p], own, vias, signs, since_t))
    return found


def compact(vias: list[str], heard: Bool, kinds: dict[Kind, Columns]) -> tuple[list[str], dict[Kind, Columns]]:
    """Only the gateways that samples came through, and the samples with their new numbers."""
    numbers = np.flatnonzero(heard[:-1])
    if len(numbers) == len(vias):
        return list(vias), kinds
    table = np.full(len(vias) + 1, -1, np.int32)
    table[numbers] = np.arange(len(numbers), dtype=np.int32)
    own = {kind: Columns(cols.seq, cols.vid, table[cols.via], cols.t, cols.data) for kind, cols in kinds.items()}
    return [vias[i] for i in numbers.tolist()], own


@njit(cache=True)
def _by_part(vid: I4, part: I4, parts: int) -> tuple[I8, I8]:
    """Rows in the order of their parts, each part's in the order they had; and where each part begins."""
    start = np.zeros(parts + 1, np.int64)
    for i in range(vid.size):
        start[part[vid[i]] + 1] += 1
    for p in range(parts):
        start[p + 1] += start[p]
    place = start[:-1].copy()
    order = np.empty(vid.size, np.int64)
    for i in range(vid.size):
        p = part[vid[i]]
        order[place[p]] = i
        place[p] += 1
    return order, start
