"""Samples of one vehicle in few bytes: differences from sample to sample, byte by byte in planes, then zlib.

    block   zlib of planes[4][1 + columns][samples]: the lowest bytes of everything, then the next ones …
    frame   zlib of samples u32 · vehicles i64[samples] · rows i4[1 + columns][samples]

Row 0 is the time in milliseconds since the beginning of the bucket, which may be negative: the first sample of a block
is the last one before it, so that a moment can be read from one bucket. A difference is written with its sign in the
lowest bit, so that small ones of either sign have zeros in the higher planes. Arithmetic is modulo 2^32.

A bucket is BUCKET_S of event time. Both "one vehicle over a day" (480 blocks) and "everybody at a moment" (one block
per vehicle) read blocks of this length within tens of milliseconds (`watchkeeper bench history`).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import I4, I8, U1

BUCKET_S = 180.0
LEVEL = 1
_COUNT = struct.Struct("<I")
# A block holds three minutes; more bytes than this are no block of ours.
BLOCK_MAX = 64 << 20


class DamagedError(ValueError):
    """Bytes that are no block or frame."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Samples in any order: whose, when (ms since the bucket began), and the columns [column, sample]."""

    vehicle: I8
    t_ms: I4
    data: I4

    def __len__(self) -> int:
        return len(self.t_ms)

    def take(self, rows: I8 | slice | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Rows:
        """Some of them."""
        return Rows(self.vehicle[rows], self.t_ms[rows], self.data[:, rows])


def bucket_of(t: float) -> int:
    """The bucket of a moment."""
    return math.floor(t / BUCKET_S)


def joined(parts: Sequence[Rows]) -> Rows:
    """All samples, in the order of the parts, which is not empty."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.vehicle for part in parts]),
        np.concatenate([part.t_ms for part in parts]),
        np.concatenate([part.data for part in parts], axis=1),
    )


def by_vehicle(rows: Rows) -> Rows:
    """Sorted by vehicle and time; of samples of one vehicle and time the last stays."""
    order = np.lexsort((rows.t_ms, rows.vehicle))
    rows = rows.take(order)
    last = np.ones(len(rows), np.bool_)
    last[:-1] = (rows.vehicle[1:] != rows.vehicle[:-1]) | (rows.t_ms[1:] != rows.t_ms[:-1])
    return rows if last.all() else rows.take(last)


# -- frames -----------------------------------------------------------------------------------------------------


def pack_frame(rows: Rows) -> bytes:
    """Samples of many vehicles, as they come."""
    data = np.vstack((rows.t_ms[None], rows.data)).astype("<i4")
    return zlib.compress(_COUNT.pack(len(rows)) + rows.vehicle.astype("<i8").tobytes() + data.tobytes(), LEVEL)


def unpack_frame(packed: bytes, columns: int) -> Rows:
    """The reverse. Raises DamagedError."""
    raw = _unpacked(packed)
    n = _COUNT.unpack_from(raw)[0] if len(raw) >= _COUNT.size else 0
    at = _COUNT.size + 8 * n
    if len(raw) != at + 4 * n * (columns + 1):
        raise DamagedError("a frame of another length")
    data = np.frombuffer(raw, "<i4", n * (columns + 1), at).reshape(columns + 1, n)
    return Rows(np.frombuffer(raw, "<i8", n, _COUNT.size).astype(np.int64), data[0], data[1:])


# -- blocks -----------------------------------------------------------------------------------------------------


def pack_blocks(rows: Rows) -> tuple[list[int], list[bytes]]:
    """Samples that are sorted by vehicle and time, as one block per vehicle."""
    data = np.vstack((rows.t_ms[None], rows.data)).astype(np.int32)
    starts = np.flatnonzero(np.r_[True, rows.vehicle[1:] != rows.vehicle[:-1]]) if len(rows) else np.empty(0, np.int64)
    step = data.copy()
    with np.errstate(over="ignore"):
        step[:, 1:] -= data[:, :-1]
        step[:, starts] = data[:, starts]
        signed = (step << 1) ^ (step >> 31)
    planes = np.ascontiguousarray(signed.astype("<i4").view(np.uint8).reshape(*signed.shape, 4).transpose(2, 0, 1))
    ends = [*starts[1:].tolist(), len(rows)]
    cuts = zip(starts.tolist(), ends, strict=True)
    return rows.vehicle[starts].tolist(), [zlib.compress(planes[:, :, a:b].tobytes(), LEVEL) for a, b in cuts]


def unpack_blocks(packed: Sequence[bytes], columns: int) -> list[tuple[I8, I4]]:
    """Blocks as [block, 1 + column, sample], those of one length together, with their places in `packed`.

    Raises DamagedError.
    """
    return [
        (places, np.cumsum(_steps(planes), axis=2, dtype=np.int32)) for places, planes in _by_length(packed, columns)
    ]


def unpack_last(packed: Sequence[bytes], columns: int, at_ms: int) -> list[tuple[I8, I4]]:
    """Each block's last sample at or before `at_ms`, as [block, 1 + column], with the blocks' places in `packed`.

    Blocks without one are left out. Only what leads to it is summed up. Raises DamagedError.
    """
    found = []
    for places, planes in _by_length(packed, columns):
        samples = (np.cumsum(_steps(planes[:, :, :1]), axis=2, dtype=np.int32)[:, 0] <= at_ms).sum(axis=1)
        known = np.flatnonzero(samples)
        if not len(known):
            continue
        most = samples.max()
        steps = _steps((planes if len(known) == len(samples) else planes[known])[..., :most])
        if samples[known].min() < most:
            steps *= (np.arange(most) < samples[known, None])[:, None]
        found.append((places[known], steps.sum(axis=2, dtype=np.int32)))
    return found


def _by_length(packed: Sequence[bytes], columns: int) -> Iterator[tuple[I8, U1]]:
    """Blocks as [block, plane, 1 + column, sample], those of one length together, with their places in `packed`."""
    by_size: dict[int, list[int]] = {}
    raws = list(map(_unpacked, packed))
    for i, raw in enumerate(raws):
        by_size.setdefault(len(raw), []).append(i)
    rows = columns + 1
    for size, places in by_size.items():
        n, odd = divmod(size, 4 * rows)
        if odd or not n:
            raise DamagedError("a block of another length")
        planes = np.frombuffer(b"".join([raws[i] for i in places]), np.uint8).reshape(len(places), 4, rows, n)
        yield np.array(places), planes


def _steps(planes: U1) -> I4:
    """The differences from sample to sample that the planes of bytes stand for."""
    signed = planes[:, 0].astype(np.uint32)
    for k in range(1, 4):
        # most steps are small: a plane of zeros is cheaper to look at than to add
        if planes[:, k].any():
            signed |= planes[:, k].astype(np.uint32) << np.uint32(8 * k)
    step: I4 = ((signed >> 1) ^ (0 - (signed & 1))).view(np.int32)
    return step


def unpack_rows(vehicles: Sequence[int], packed: Sequence[bytes], columns: int) -> Rows | None:
    """All samples of these blocks, one after the other; None without blocks. Raises DamagedError."""
    numbers = np.array(vehicles, np.int64)
    parts = []
    for places, data in unpack_blocks(packed, columns):
        flat = data.transpose(1, 0, 2).reshape(columns + 1, -1)
        parts.append(Rows(np.repeat(numbers[places], data.shape[2]), flat[0], flat[1:]))
    return joined(parts) if parts else None


def _unpacked(packed: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(packed, BLOCK_MAX)
    except zlib.error as error:
        raise DamagedError(str(error)) from error
    if not inflate.eof:
        raise DamagedError("cut off, or too long")
    return raw
