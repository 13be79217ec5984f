"""The samples of a step as arrays in a row, without a copy between the columns and the memory that they go to.

    head, arrays = laid_out(batch)      names and shapes for a head, and the arrays themselves, one after the other
    batch = read(head, memory, at)      the same batch, copied out of the memory; and where the next one begins

Only the columns with a value are in it. The order of arrival across kinds is not: whoever gets it has no use for that,
as the samples were admitted before. Every array begins at a multiple of eight bytes of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, CheckedBatch, Columns
from watchkeeper.streams.messages import FIELDS, Kind

Buffer = bytes | bytearray | memoryview


class KindHead(msgspec.Struct, array_like=True):
    """The samples of one kind: how many, whether a gateway is known of one, and the columns that have a value."""

    kind: int
    samples: int
    has_via: bool
    columns: list[int]


class Head(msgspec.Struct, array_like=True):
    """The names of a batch, and its kinds in the order of their arrays."""

    ids: list[str]
    vias: list[str]
    callsigns: dict[str, str]
    called_t: dict[str, float]
    kinds: list[KindHead]


def laid_out(batch: CheckedBatch) -> tuple[Head, list[Buffer]]:
    """What `read` makes the batch of."""
    kinds: list[KindHead] = []
    arrays: list[Buffer] = []
    for kind, cols in batch.kinds.items():
        has_via = bool((cols.via >= 0).any())
        columns = [c for c in range(len(cols.data)) if _has_value(cols.data[c])]
        kinds.append(KindHead(int(kind), len(cols), has_via, columns))
        whole = [cols.t, *(cols.data[c] for c in columns)]
        arrays += [_bytes(array) for array in whole]
        for numbers in (cols.vid, cols.via)[: 1 + has_via]:
            arrays.append(_bytes(numbers))
            if len(cols) % 2:
                arrays.append(bytes(4))
    return Head(batch.ids, batch.vias, batch.callsigns, batch.called_t, kinds), arrays


def read(head: Head, memory: Buffer, at: int) -> tuple[CheckedBatch, int]:
    """The batch whose arrays begin at this byte, and the byte after the last of them."""
    kinds: dict[Kind, Columns] = {}
    for block in head.kinds:
        n, kind = block.samples, Kind(block.kind)
        t = np.frombuffer(memory, np.float64, n, at).copy()
        at += 8 * n
        data: F8 = np.empty((len(FIELDS[kind]), n))
        for column in sorted(set(range(len(data))) - set(block.columns)):
            data[column] = np.nan
        for column in block.columns:
            data[column] = np.frombuffer(memory, np.float64, n, at)
            at += 8 * n
        vid = np.frombuffer(memory, np.int32, n, at).copy()
        at += 4 * (n + n % 2)
        via = np.full(n, -1, np.int32)
        if block.has_via:
            via[:] = np.frombuffer(memory, np.int32, n, at)
            at += 4 * (n + n % 2)
        kinds[kind] = Columns(np.arange(n), vid, via, t, data)
    return CheckedBatch(head.ids, kinds, head.vias, head.callsigns, head.called_t), at


def size_of(pieces: Sequence[Buffer]) -> int:
    """Bytes in all."""
    return sum(map(len, pieces))


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data


def _has_value(column: F8) -> bool:
    # as a rule the first sample says it
    return bool(len(column)) and (not np.isnan(column[0]) or not bool(np.isnan(column).all()))
