"""Plain MessagePack samples, many at a time: a kernel that reads what decode.py reads of one.

    reader = PlainReader(Kind.ADSB)
    found = reader.read([payload, …])       a Plain, or None: some of these are not plain

Plain is a map with text for keys whose values are numbers, true, false, null or short text: what a sender sends whose
software is right. Everything else, and all that would be refused for its form, is somebody else's to judge: None says
nothing about what is wrong. Values are those that msgspec gives, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import FIELDS, Kind

U4 = NDArray[np.uint32]
F4 = NDArray[np.float32]
U8 = NDArray[np.uint64]

# Keys that are text: places in `Plain.words`.
WORDS = ("id", "via", "callsign")
ID, VIA, CALLSIGN = range(3)
# Keys of a map beyond which its order is not remembered.
ORDER_MAX = 64


class Plain(NamedTuple):
    """What a list of payloads says."""

    t: F8
    data: F8
    """By field, in the order of the kind's fields; NaN where there is none."""
    texts: list[tuple[list[str], I8]]
    """Of each of WORDS: the texts that are there and are not empty, and the payloads that they are in."""


class Keys(NamedTuple):
    """The keys that a kind knows: their bytes one after the other, where each begins, and the end of the last."""

    text: U1
    start: I4
    flag: Bool
    """Those that may be true or false."""


class Out(NamedTuple):
    """What the kernel fills in, and its room."""

    values: F8
    """The time and the fields, by [field, payload]."""
    bits: U8
    """The same memory."""
    words: I8
    """By [word, start and length, payload]."""
    order: I4
    """The key that came k-th last time: senders repeat themselves."""
    single: F4
    single_bits: U4
    """The same memory."""


class PlainReader:
    """One kind's keys."""

    def __init__(self, kind: Kind) -> None:
        fields = FIELDS[kind]
        names = [name.encode() for name in (*WORDS, "t", *(field.name for field in fields))]
        flags = [False] * (len(WORDS) + 1) + [field.unit == "" and field.hi == 1.0 for field in fields]
        start = np.cumsum([0, *map(len, names)]).astype(np.int32)
        self._columns = 1 + len(fields)
        self._keys = Keys(_bytes(b"".join(names)), start, np.array(flags))
        self._order = np.zeros(ORDER_MAX, np.int32)
        self._single = np.zeros(1, np.float32)

    def read(self, payloads: Sequence[bytes]) -> Plain | None:
        """What these say; None if any of them is not plain."""
        n = len(payloads)
        ends = np.fromiter(map(len, payloads), np.int64, n).cumsum()
        whole = b"".join(payloads)
        values = np.full((self._columns, n), np.nan)
        words = np.zeros((len(WORDS), 2, n), np.int64)
        single_bits = self._single.view(np.uint32)
        out = Out(values, values.view(np.uint64), words, self._order, self._single, single_bits)
        if not _read(_bytes(whole), ends, self._keys, out):
            return None
        texts = []
        for place in range(len(WORDS)):
            at = np.flatnonzero(words[place, 1])
            begin, length = words[place, 0, at].tolist(), words[place, 1, at].tolist()
            try:
                texts.append(([whole[b : b + m].decode() for b, m in zip(begin, length, strict=True)], at))
            except UnicodeDecodeError:
                return None
        return Plain(values[0], values[1:], texts)


def _bytes(data: bytes) -> U1:
    # a copy: kernels would be compiled once more for arrays that cannot be written
    return np.frombuffer(data, np.uint8).copy()


@njit(cache=True)
def _read(data: U1, ends: I8, keys: Keys, out: Out) -> bool:
    """Fill `out`; False if any is not plain."""
    words = out.words
    at = 0
    for i in range(ends.size):
        end = ends[i]
        if at >= end:
            return False
        head = data[at]
        if 0x80 <= head <= 0x8F:
            count = head & 0x0F
            at += 1
        elif head == 0xDE and at + 3 <= end:
            count = _whole(data, at + 1, 2)
            at += 3
        else:
            return False
        timed = False
        for k in range(count):
            begin, length = _text(data, at, end)
            if length < 0:
                return False
            at = begin + length
            key = _key(data, begin, length, k, keys, out.order)
            if at >= end or (key < 0 and not _ascii(data, begin, length)):
                return False
            if key in (ID, VIA, CALLSIGN):
                if data[at] == 0xC0:
                    begin, length = at + 1, 0
                else:
                    begin, length = _text(data, at, end)
                    if length < 0:
                        return False
                at = begin + length
                words[key, 0, i], words[key, 1, i] = begin, length
                if key == ID and length == 0 and data[at - 1] != 0xC0:
                    # an empty name is a wrong one
                    return False
                continue
            row = key - len(WORDS)
            timed |= row == 0
            at = _value(data, at, end, row, i, row < 0 or keys.flag[key], out)
            if at < 0:
                return False
        if at != end or not timed:
            return False
    return True


@njit(cache=True)
def _value(data: U1, at: int, end: int, row: int, i: int, flag: bool, out: Out) -> int:
    """Read the value at `at` into a place, below row 0: into none; where it ends, or -1 when it is not plain."""
    values = out.values
    kind = data[at]
    size = _SIZE[kind]
    if at + 1 + size > end:
        return -1
    if kind == 0xCB:
        if row >= 0:
            out.bits[row, i] = _word(data, at + 1, 8)
    elif kind == 0xCA:
        out.single_bits[0] = np.uint32(_word(data, at + 1, 4))
        if row >= 0:
            values[row, i] = out.single[0]
    elif kind == 0xC0:
        if row == 0:
            return -1
        if row > 0:
            values[row, i] = np.nan
    elif kind in (0xC2, 0xC3):
        if not flag:
            return -1
        if row >= 0:
            values[row, i] = 1.0 if kind == 0xC3 else 0.0
    elif kind <= 0x7F or kind >= 0xE0 or 0xCC <= kind <= 0xD3:
        if row >= 0:
            if flag:
                return -1
            values[row, i] = _integer(data, at, kind, size)
    elif row < 0:
        begin, length = _text(data, at, end)
        return begin + length if length >= 0 and _ascii(data, begin, length) else -1
    else:
        return -1
    return int(at + 1 + size)


# Bytes that follow the first one of a number.
_SIZE = np.zeros(256, np.int64)
_SIZE[[0xCA, 0xCB]] = 4, 8
_SIZE[0xCC:0xD0] = _SIZE[0xD0:0xD4] = 1, 2, 4, 8


@njit(cache=True)
def _integer(data: U1, at: int, kind: int, size: int) -> float:
    """A whole number as the nearest float."""
    if kind <= 0x7F:
        return float(kind)
    if kind >= 0xE0:
        return float(kind) - 256.0
    word = _word(data, at + 1, size)
    if kind >= 0xD0 and data[at + 1] >= 0x80:
        # of a negative one the distance from zero, which is a whole number too
        least = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(8 * (8 - size))
        return -float((~word & least) + np.uint64(1))
    return float(word)


@njit(cache=True)
def _word(data: U1, at: int, size: int) -> np.uint64:
    """The bytes from here, the first the highest."""
    word = np.uint64(0)
    for k in range(at, at + size):
        word = (word << np.uint64(8)) | np.uint64(data[k])
    return word


@njit(cache=True)
def _whole(data: U1, at: int, size: int) -> int:
    return int(_word(data, at, size))


@njit(cache=True)
def _text(data: U1, at: int, end: int) -> tuple[int, int]:
    """Where a text begins and how long it is; its length is -1 when there is none here."""
    if at >= end:
        return at, -1
    head = data[at]
    if 0xA0 <= head <= 0xBF:
        begin, length = at + 1, int(head & 0x1F)
    elif head == 0xD9 and at + 2 <= end:
        begin, length = at + 2, int(data[at + 1])
    else:
        return at, -1
    return (begin, length) if begin + length <= end else (at, -1)


@njit(cache=True)
def _ascii(data: U1, begin: int, length: int) -> bool:
    bits = 0
    for k in range(begin, begin + length):
        bits |= data[k]
    return bits < 0x80


@njit(cache=True)
def _key(data: U1, begin: int, length: int, k: int, keys: Keys, order: I4) -> int:
    """The number of a key, -1 for one that is not known."""
    if k < order.size and _is(order[k], data, begin, length, keys):
        return int(order[k])
    for key in range(keys.flag.size):
        if _is(key, data, begin, length, keys):
            if k < order.size:
                order[k] = key
            return key
    return -1


@njit(cache=True)
def _is(key: int, data: U1, begin: int, length: int, keys: Keys) -> bool:
    start = keys.start[key]
    same: bool = keys.start[key + 1] - start == length
    m = 0
    while same and m < length:
        same = keys.text[start + m] == data[begin + m]
        m += 1
    return same
