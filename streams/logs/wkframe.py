r"""The bytes of a `.wklog`: what a frame looks like. The writer and the reader of whole logs are in wklog.py.

    file    = magic, header frame, data frame …, index frame, trailer
    magic   = b"WKLOG1\n"
    frame   = head (36 bytes), payload
    head    = tag[4], u32 payload length, u32 samples, f8 t_min, f8 t_max, u32 payload crc, u32 crc of the head so far
    trailer = u64 offset of the index frame, b"WKLOGEND"

All numbers are little-endian, checksums are CRC-32, payloads MessagePack:

    HEAD    {"version": 2, "schema": {"adsb": [["lat", "deg"], …], …}}
    DATA    {"ids": […], "vias": […], "callsigns": {id: callsign}, "called_t": {id: since when, if not at once},
             "kinds": [[word, samples, has via, has seq, [columns], [codes]], …], "arrays": bin}
    INDX    {"offset": bin i8, "samples": bin i8, "t_min": bin f8, "t_max": bin f8}

`arrays` holds, kind after kind: t f8, seq i8 (the place in the order of arrival; left out when there is one kind),
the named columns f8 (those that are NaN throughout are left out; a number points into the schema), vid i4 and via
i4 (left out when no sample has a gateway), each array filled up to a multiple of 8 bytes. It ends the payload, so
a reader that puts the payload's end on a multiple of 8 has every array aligned and need not copy it. With codes (since
version 2), one for each of these arrays, they are written as packing.py says.
"""

from __future__ import annotations

import struct
from io import BytesIO, FileIO
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Batch, Columns
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.logs.packing import Arrays, Code, pack, pack_whole, unpack, unpack_whole
from watchkeeper.streams.messages import COLUMN, FIELDS, ID_MAX, KIND_OF_WORD, Kind

MAGIC = b"WKLOG1\n"
VERSION = 2
END = b"WKLOGEND"
TRAILER = struct.Struct("<Q8s")
HEADER, DATA, INDEX = b"HEAD", b"DATA", b"INDX"
_HEAD = struct.Struct("<4sIIddI")
_CRC = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _CRC.size
# Twenty times what the fullest frame of the writer has; a head may claim 4 GB.
FRAME_MAX_BYTES = 64 << 20
# As many times the fullest frame of the writer; a million equal samples take no more bytes than one.
FRAME_MAX_SAMPLES = 1 << 18


class DamageError(Exception):
    """Bytes that are not a whole, correct frame; the message says what is wrong with them."""


class Head(NamedTuple):
    """A frame's head: enough to find the next frame and to know the time span of this one."""

    tag: bytes
    length: int
    samples: int
    t_min: float
    t_max: float
    crc: int


class Header(msgspec.Struct):
    """Payload of the first frame. `schema` is kind → (field, unit) in column order, as the writer knew them."""

    version: int
    schema: dict[str, list[tuple[str, str]]] = {}


class _Block(msgspec.Struct, array_like=True):
    word: str
    samples: int
    has_via: bool
    has_seq: bool
    columns: list[int]
    codes: list[Code] = []


class _Data(msgspec.Struct, kw_only=True, omit_defaults=True):
    ids: list[str]
    vias: list[str]
    callsigns: dict[str, str]
    called_t: dict[str, float] = {}
    kinds: list[_Block]
    arrays: memoryview


class Index(msgspec.Struct):
    """Payload of the last frame: one entry per data frame, as packed columns."""

    offset: bytes
    samples: bytes
    t_min: bytes
    t_max: bytes


_decode = msgpack_decoder(_Data)


def pack_frame(tag: bytes, payload: bytes, samples: int = 0, t_min: float = 0.0, t_max: float = 0.0) -> bytes:
    """Head and payload."""
    head = _HEAD.pack(tag, len(payload), samples, t_min, t_max, crc32(payload))
    return head + _CRC.pack(crc32(head)) + payload


def read_head(file: FileIO | BytesIO) -> Head:
    """The head at the file's position. Raises DamageError."""
    raw = file.read(HEAD_BYTES)
    if len(raw) < HEAD_BYTES:
        raise DamageError("cut off inside a frame")
    if _CRC.unpack_from(raw, _HEAD.size)[0] != crc32(raw[: _HEAD.size]):
        raise DamageError("a damaged frame head")
    return Head(*_HEAD.unpack_from(raw))


def read_payload(file: FileIO | BytesIO, head: Head) -> memoryview:
    """The payload that follows a head, in memory of its own that ends on a multiple of 8. Raises DamageError."""
    if head.length > FRAME_MAX_BYTES:
        raise DamageError(f"a frame of {head.length:,} bytes, at most {FRAME_MAX_BYTES:,} are one")
    lead = -head.length % 8
    room = np.empty((lead + head.length) // 8, np.float64)
    payload = memoryview(room.view(np.uint8))[lead:]  # type: ignore[arg-type]
    if file.readinto(payload) != head.length:
        raise DamageError("cut off inside a frame")
    if crc32(payload) != head.crc:
        raise DamageError("a damaged frame (wrong checksum)")
    return payload


def encode_data(batch: Batch, *, packed: bool = False) -> bytes:
    """The payload of a data frame, from a batch numbered without holes. `packed`: shorter, and slower to write."""
    blocks: list[_Block] = []
    arrays: list[bytes] = []
    for kind, cols in batch.kinds.items():
        present = np.flatnonzero(~np.isnan(cols.data).all(axis=1)).tolist()
        block = _Block(kind.word, len(cols), bool((cols.via >= 0).any()), len(batch.kinds) > 1, present)
        arrays += _packed(block, cols) if packed else _plain(block, cols)
        blocks.append(block)
    blob = memoryview(b"".join(arrays))
    return msgspec.msgpack.encode(
        _Data(
            ids=batch.ids,
            vias=batch.vias,
            callsigns=batch.callsigns,
            called_t=batch.called_t,
            kinds=blocks,
            arrays=blob,
        )
    )


def _plain(block: _Block, cols: Columns) -> list[bytes]:
    arrays = [cols.t.astype("<f8").tobytes()]
    if block.has_seq:
        arrays.append(cols.seq.astype("<i8").tobytes())
    arrays += [cols.data[c].astype("<f8").tobytes() for c in block.columns]
    fill = bytes(4 * (len(cols) % 2))
    arrays.append(cols.vid.astype("<i4").tobytes() + fill)
    if block.has_via:
        arrays.append(cols.via.astype("<i4").tobytes() + fill)
    return arrays


def _packed(block: _Block, cols: Columns) -> list[bytes]:
    """The arrays; the block gets their codes."""
    found = [pack(cols.t)]
    if block.has_seq:
        found.append(pack_whole(cols.seq))
    found += [pack(cols.data[c]) for c in block.columns]
    found.append(pack_whole(cols.vid))
    if block.has_via:
        found.append(pack_whole(cols.via))
    block.codes = [code for code, _ in found]
    return [array for _, arrays in found for array in arrays]


def our_columns(header: Header) -> dict[str, list[int]]:
    """For each kind of a file's schema that we know, our column of each of its fields (-1: unknown to us)."""
    return {
        word: [COLUMN[KIND_OF_WORD[word]].get(name, -1) for name, _ in fields]
        for word, fields in header.schema.items()
        if word in KIND_OF_WORD
    }


def decode_data(payload: memoryview, columns: dict[str, list[int]]) -> Batch:
    """The batch in a data frame; without codes it is views into the payload. Raises DamageError."""
    try:
        return _batch(_decode(payload), columns)
    except (ValueError, IndexError, OverflowError) as error:
        raise DamageError(f"a frame that makes no sense ({error})") from error


def _batch(frame: _Data, columns: dict[str, list[int]]) -> Batch:
    for names in (frame.ids, frame.vias):
        if names and (len(set(names)) != len(names) or "" in names or max(map(len, names)) > ID_MAX):
            raise ValueError("names that are none, or occur twice")
    arrays = Arrays(frame.arrays)
    total = sum(block.samples for block in frame.kinds)
    if total > FRAME_MAX_SAMPLES or any(block.samples < 0 for block in frame.kinds):
        raise ValueError(f"{total:,} samples, at most {FRAME_MAX_SAMPLES:,} are one frame")
    kinds: dict[Kind, Columns] = {}
    for block in frame.kinds:
        n = block.samples
        t, seq, present, vid, via = _unpacked(block, arrays) if block.codes else _views(block, arrays)
        if block.word not in columns:
            continue  # a stream that this version does not know
        if n == 0 or not (_within(vid, 0, len(frame.ids)) and _within(via, -1, len(frame.vias))):
            raise ValueError("samples without a vehicle")
        if not _within(seq, 0, total) or (np.diff(seq) <= 0).any():
            raise ValueError("samples without a place in the order")
        kind = KIND_OF_WORD[block.word]
        ours = columns[block.word]
        data = present
        if (places := [ours[column] for column in block.columns]) != list(range(len(FIELDS[kind]))):
            found = dict(zip(places, present, strict=True))
            data = np.empty((len(FIELDS[kind]), n))
            for column in range(len(data)):
                data[column] = found.get(column, np.nan)
        kinds[kind] = Columns(seq, vid, via, t, data)
    if len(kinds) > 1:
        taken = np.zeros(total, bool)
        for cols in kinds.values():
            taken[cols.seq] = True
        if np.count_nonzero(taken) != sum(map(len, kinds.values())):
            raise ValueError("samples that share a place in the order")
    return Batch(frame.ids, kinds, frame.vias, frame.callsigns, frame.called_t)


_Parts = tuple[F8, I8, F8, I4, I4]


def _views(block: _Block, arrays: Arrays) -> _Parts:
    """Time, place in the order, the fields that are present, vehicle and gateway."""
    n = block.samples
    t: F8 = arrays.take("<f8", n)
    seq: I8 = arrays.take("<i8", n) if block.has_seq else np.arange(n)
    present = arrays.take("<f8", n * len(block.columns)).reshape(-1, n)
    vid: I4 = arrays.take("<i4", n)
    via: I4 = arrays.take("<i4", n) if block.has_via else np.full(n, -1, np.int32)
    return t, seq, present, vid, via


def _unpacked(block: _Block, arrays: Arrays) -> _Parts:
    """The same from codes."""
    n = block.samples
    codes = iter(block.codes)
    if len(block.codes) != 2 + block.has_seq + len(block.columns) + block.has_via:
        raise ValueError("arrays without a code, or codes without an array")

    def whole(*, there: bool, otherwise: I8 | I4) -> Any:
        if there:
            unpack_whole(next(codes), arrays, otherwise)
        return otherwise

    t = np.empty(n)
    unpack(next(codes), arrays, t)
    seq = whole(there=block.has_seq, otherwise=np.arange(n))
    present = np.empty((len(block.columns), n))
    for column in present:
        unpack(next(codes), arrays, column)
    vid = whole(there=True, otherwise=np.empty(n, np.int32))
    return t, seq, present, vid, whole(there=block.has_via, otherwise=np.full(n, -1, np.int32))


def _within(numbers: I4 | I8, lo: int, stop: int) -> bool:
    return bool(numbers.min() >= lo and numbers.max() < stop)
