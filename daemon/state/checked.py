"""State files that notice their own damage: a checksum on every line, record and small file.

    line    {…,"seq":812,"crc":"1a2b3c4d"}             one JSON object: people read it with jq
    record  MARK, length u32, seq u64, crc u32, bytes  little-endian, for logs that only we read
    slots   two lines of SLOT_BYTES, written in turn   for a few numbers that change often
    file    a line, then perhaps more bytes            replaced as a whole

The checksum is CRC-32 of all that is before it in the line, or of the record's other fields and its bytes: it finds
every damage of up to 32 bits in a row, and other damage but for one case in four billion. `seq` numbers the lines of a
file; a line that does not follow `seq - 1` has `prev`, the number before it. So a line that is missing is noticed too.

A tail that was never written completely (the power went) looks like damage that reaches the end of the file. Both
readers say `torn` for it; the caller cuts it off.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

Bytes = bytes | bytearray | memoryview

# Files of the state directory are for us alone: they say who flew where, and are trusted when they are read.
FILE_MODE = 0o600

_CRC = b',"crc":"%08x"}\n'
_CRC_BYTES = len(_CRC % 0)
_SEAL = re.compile(rb',"crc":"[0-9a-f]{8}"\}')

MARK = b"\xa7wk\n"
_RECORD = struct.Struct("<4sIQI")

SLOT_BYTES = 256


@dataclass(frozen=True, slots=True)
class Good:
    """A line or a record as it was written."""

    seq: int
    body: bytes
    at: int
    """Line number from 1 on; for records, the offset of its first byte."""
    end: int
    """Offset of the byte after it."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no line or record, or a place where some are missing (`raw` is empty then)."""

    at: int
    """Line number from 1 on; for records, the offset of the first damaged byte."""
    raw: bytes
    after: int
    """The last good number before it; 0 at the beginning of the file."""
    before: int
    """The number before the next good one; equal to `after`: nothing is missing."""
    torn: bool = False
    """It reaches the end of the file: perhaps a write that was cut short."""


# -- lines ------------------------------------------------------------------------------------------------------


class _Place(msgspec.Struct, frozen=True):
    seq: int
    prev: int | None = None


_place = msgspec.json.Decoder(_Place).decode


def seal(body: bytes) -> bytes:
    """A JSON object that is not empty, as a line with its checksum."""
    covered = body[:-1]
    return covered + _CRC % zlib.crc32(covered)


def unseal(line: bytes) -> bytes | None:
    """The object of a line, without the checksum; None when it is not exactly what was written."""
    body = line[:-_CRC_BYTES] + b"}"
    return body if len(line) > _CRC_BYTES + 1 and seal(body) == line else None


def seal_in_chain(body: bytes, seq: int, prev: int) -> bytes:
    """A JSON object as a numbered line that follows the line `prev` (0: it is the first of its file)."""
    place = b',"seq":%d' % seq if prev == seq - 1 else b',"seq":%d,"prev":%d' % (seq, prev)
    return seal(body[:-1] + place + b"}")


def is_sealed(line: bytes) -> bool:
    """True if the line has, or had before it was damaged, a checksum."""
    return b'"crc":"' in line[-_CRC_BYTES:] or b'"seq":' in line[-_CRC_BYTES - 40 :]


def read_chain(lines: Iterable[bytes]) -> Iterator[Good | Damage]:
    """The lines of a file in order, and what is wrong between them."""
    last = end = 0
    spoilt: list[tuple[int, bytes]] = []
    for number, line in enumerate(lines, 1):
        end += len(line)
        for piece in _pieces(line):
            body = unseal(piece)
            place = _decoded(body)
            if body is None or place is None:
                spoilt.append((number, piece))
                continue
            prev = place.seq - 1 if place.prev is None else place.prev
            yield from (Damage(at, raw, last, prev) for at, raw in spoilt)
            if prev != last and not spoilt:
                yield Damage(number, b"", last, prev)
            if piece is not line and not spoilt:
                # the objects are whole, the newline between them is not
                yield Damage(number, b"", last, last)
            spoilt.clear()
            last = place.seq
            yield Good(place.seq, body, number, end)
    for at, raw in spoilt:
        torn = not raw.endswith(b"\n")
        # nothing after them tells how many there were
        yield Damage(at, raw, last, last if torn else last + len(spoilt), torn)


def _pieces(line: bytes) -> list[bytes]:
    """The line, or the lines that it was before the newline between them was damaged."""
    ends = [found.end() for found in _SEAL.finditer(line)]
    if not ends or (len(ends) == 1 and ends[0] == len(line) - 1 and line.endswith(b"\n")):
        return [line]
    starts = [0, *(end + 1 for end in ends)]
    pieces = [line[start:end] + b"\n" for start, end in zip(starts, ends, strict=False)]
    return pieces + [rest for rest in [line[starts[-1] :]] if rest]


def _decoded(body: bytes | None) -> _Place | None:
    try:
        return _place(body) if body is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


# -- records ----------------------------------------------------------------------------------------------------


def seal_record(payload: bytes, seq: int) -> bytes:
    """The bytes as a record."""
    return _RECORD.pack(MARK, len(payload), seq, _record_crc(len(payload), seq, payload)) + payload


def _record_crc(length: int, seq: int, payload: Bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<IQ", length, seq)))


def read_records(data: bytes) -> Iterator[Good | Damage]:
    """The records of a file in order, and what is wrong between them. Numbers go up by one; the first may be any."""
    at = spoilt = last = 0
    while at < len(data):
        record = _record_at(data, at)
        if record is None:
            found = data.find(MARK, at + 1)
            at = found if found >= 0 else len(data)
            continue
        if at > spoilt or (last and record.seq != last + 1):
            yield Damage(spoilt, data[spoilt:at], last, record.seq - 1)
        yield record
        last, at = record.seq, record.end
        spoilt = at
    if at > spoilt:
        yield Damage(spoilt, data[spoilt:], last, last, torn=True)


def _record_at(data: bytes, at: int) -> Good | None:
    start = at + _RECORD.size
    if start > len(data):
        return None
    mark, length, seq, crc = _RECORD.unpack_from(data, at)
    if mark != MARK or start + length > len(data):
        return None
    payload = data[start : start + length]
    return Good(seq, payload, at, start + length) if _record_crc(length, seq, payload) == crc else None


# -- slots ------------------------------------------------------------------------------------------------------


class Slots:
    """Some numbers at the beginning of a file that is open for reading and writing, changed in place.

    They are written in turn to two places, so that a write that is cut short leaves the numbers before it.
    """

    BYTES = 2 * SLOT_BYTES

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._turn = 0
        self._numbers: dict[str, int] = {}

    def read(self) -> tuple[dict[str, int], bool]:
        """The newest numbers that are whole (none: empty), and whether anything is damaged."""
        found, damaged = read_slots(os.pread(self._handle, self.BYTES, 0))
        self._turn = found.get("turn", 0)
        self._numbers = {name: number for name, number in found.items() if name != "turn"}
        return found, damaged

    def write(self, **numbers: int) -> None:
        """Replace them, unless they are the same."""
        if numbers == self._numbers:
            return
        turn = self._turn + 1
        os.pwrite(self._handle, _slot(turn, numbers), turn % 2 * SLOT_BYTES)
        self._turn, self._numbers = turn, numbers

    @classmethod
    def fresh(cls, **numbers: int) -> bytes:
        """The beginning of a new file."""
        return _slot(2, numbers) + _slot(1, numbers)


def read_slots(data: bytes) -> tuple[dict[str, int], bool]:
    """See Slots.read."""
    slots = [_numbers(data[at : at + SLOT_BYTES]) for at in (0, SLOT_BYTES)]
    good = [slot for slot in slots if slot is not None]
    return max(good, key=lambda slot: slot["turn"], default={}), len(good) < 2


def _slot(turn: int, numbers: dict[str, int]) -> bytes:
    body = msgspec.json.encode({"turn": turn, **numbers})
    room = SLOT_BYTES - _CRC_BYTES - len(body) + 1
    assert room >= 0, "too many numbers for a slot"
    return seal(body[:-1] + b" " * room + b"}")


def _numbers(slot: bytes) -> dict[str, int] | None:
    body = unseal(slot) if len(slot) == SLOT_BYTES else None
    try:
        found = msgspec.json.decode(body, type=dict[str, int]) if body is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if found is not None and "turn" in found else None


# -- whole files ------------------------------------------------------------------------------------------------


def replace_file(path: Path, pieces: Iterable[Bytes], *, keep: Path | None = None, sync: bool = True) -> None:
    """Write a file again in one step: a crash or a full disk leaves the old one or the new one, whole.

    With `keep` the old one stays under that name. Each piece is on the disk before the next one is written: others
    have the same disk, and must not wait for all of it. Without `sync` a power cut may leave either of them empty.
    """
    fresh = path.with_name(path.name + ".new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            for i, piece in enumerate(pieces):
                if i:
                    os.fdatasync(handle)
                write_all(handle, piece)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        if keep is not None:
            keep_as(path, keep)
        fresh.replace(path)
    except OSError:
        # half a file takes the room that a full disk needs for the journal
        fresh.unlink(missing_ok=True)
        raise
    if sync:
        sync_dir(path.parent)


def keep_as(path: Path, name: Path) -> None:
    """Give a file a second name, in place of the file that had it; nothing when there is no such file."""
    spare = name.with_name(name.name + ".new")
    spare.unlink(missing_ok=True)
    try:
        os.link(path, spare)
    except FileNotFoundError:
        return
    except PermissionError:
        # a file system without second names (FAT)
        shutil.copyfile(path, spare)
    spare.replace(name)


def write_all(handle: int, data: Bytes) -> None:
    """Write all of it, in as many steps as the system takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_dir(directory: Path) -> None:
    """Make a rename in this directory survive a power cut."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def same_file(handle: int, path: Path) -> bool:
    """True if the path still names the open file: it was not deleted, moved or mounted over."""
    try:
        now = path.stat()
    except OSError:
        return False
    opened = os.fstat(handle)
    return (opened.st_ino, opened.st_dev) == (now.st_ino, now.st_dev)
