"""A stream of messages that arrives in pieces: unpacked by its content, and cut into MessagePack maps or JSON lines.

    for message in cutter.push(data): …      bytes of whole messages; a word (see Drop) for what had to be left out

gzip and zstd are told by their first bytes, which begin no message. Then the first byte tells the form: `{` JSON lines,
anything else MessagePack. What is cut does not depend on how the stream was cut before.

MessagePack has no mark between messages. After bytes that are none the next map is looked for whose first key is one of
ours (`keys`), or a line that begins with `{`; one run of such bytes counts once. A text line that is no JSON object is
left out by itself. An unpacker that finds damage, or a stream that unpacks beyond all measure, raises UnpackError: the
caller ends the connection.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgpack

from watchkeeper.streams.foreign.files import (
    GZIP,
    PIECE_BYTES,
    UNPACK_FREE_BYTES,
    UNPACK_RATIO,
    ZSTD,
    UnpackError,
    zstd,
)
from watchkeeper.streams.messages import Drop

# zstd makes up to 128 kB of a few bytes: so much of it at a time stays within the memory.
_ZSTD_STEP_BYTES = 256
# How often the end of a stream is searched for messages behind half a map.
_TRIES = 100
_SPACE = b" \t\r\n"


class Unpacking:
    """The content of a stream that may be packed."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._gunzip: Any = None
        self._unzstd: Any = None
        self._packed_bytes = self._unpacked_bytes = 0

    def push(self, data: bytes) -> Iterator[bytes]:
        """What this piece holds. Raises UnpackError."""
        if self._head is not None:
            data, self._head = self._head + data, None
            if data and any(magic.startswith(data) for magic in (GZIP, ZSTD) if len(data) < len(magic)):
                self._head = data
                return
            if data.startswith(GZIP):
                self._gunzip = zlib.decompressobj(wbits=31)
            elif data.startswith(ZSTD):
                self._unzstd = zstd().decompressobj(read_across_frames=True)
        if self._gunzip is not None:
            yield from self._inflated(data)
        elif self._unzstd is not None:
            yield from self._expanded(data)
        elif data:
            yield data

    def close(self) -> bytes:
        """What waited to be told."""
        head, self._head = self._head or b"", None
        return head

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        self._packed_bytes += len(data)
        while data:
            if self._gunzip.eof:
                data = data.lstrip(b"\0")  # files may be put one behind the other, and filled up with zeros
                self._gunzip = zlib.decompressobj(wbits=31)
            try:
                piece = self._gunzip.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise UnpackError(f"gzip: damaged ({error}) before byte {self._packed_bytes:,}") from error
            yield self._within(piece)
            data = self._gunzip.unused_data if self._gunzip.eof else self._gunzip.unconsumed_tail

    def _expanded(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_STEP_BYTES):
            step = data[at : at + _ZSTD_STEP_BYTES]
            self._packed_bytes += len(step)
            try:
                piece = self._unzstd.decompress(step)
            except Exception as error:  # the library has one class of error for everything
                raise UnpackError(f"zstd: damaged ({error}) before byte {self._packed_bytes:,}") from error
            yield self._within(piece)

    def _within(self, piece: bytes) -> bytes:
        self._unpacked_bytes += len(piece)
        if self._unpacked_bytes > max(UNPACK_FREE_BYTES, UNPACK_RATIO * self._packed_bytes):
            raise UnpackError(f"unpacks to more than {UNPACK_RATIO} times its size, which no recording does")
        return piece


class Cutter:
    """Cuts content into messages of at most `limit` bytes."""

    def __init__(self, keys: Iterable[str], limit: int) -> None:
        self._limit = limit
        names = b"|".join(re.escape(bytes([0xA0 | len(key)]) + key.encode()) for key in sorted(keys))
        self._begins = re.compile(rb"(?s:[\x80-\x8f]|\xde..|\xdf....)(?:" + names + rb")|\n\{")
        # the longest start that the pattern can need
        self._longest = 5 + 1 + max(map(len, keys))
        self._buffer = bytearray()
        self._unpacker: Any = None
        self._began_at = 0
        self._lines: bool | None = None
        self._lost = False
        # 2: the next line, 1: the last one is the first since the search, and proves itself or the search goes on
        self._trial = 0

    def push(self, data: bytes) -> Iterator[bytes | str]:
        """The messages that this completes, and a reason for each run of bytes that are none."""
        self._buffer += data
        if self._unpacker is not None:
            self._unpacker.feed(data)
        while self._buffer:
            if self._lines is None and not self._lost:
                self._tell()
                continue
            found = self._line(b"\n") if self._lines else self._search() if self._lost else self._map()
            if found is None:
                return
            if found:
                yield found

    def close(self) -> Iterator[bytes | str]:
        """The end: a line without its end is whole. Half a map is none, but may have swallowed messages."""
        for _ in range(_TRIES):
            if self._lines or self._lost or not self._buffer:
                break
            yield self._lose(Drop.SYNTAX)
            yield from self.push(b"")
        if self._lines and self._buffer.strip() and len(self._buffer) <= self._limit:
            self._trial = max(0, self._trial - 1)
            yield bytes(self._buffer).strip()
        self._unpacker, self._lines, self._lost, self._trial = None, None, False, 0
        self._buffer.clear()

    def wrong(self, message: bytes) -> bool:
        """The caller says that the last message was none; whether that is to be counted.

        A map that is none may have swallowed messages behind damage: they are looked for in it.
        """
        if not self._lines:
            self._buffer[:0] = message
            self._lose(Drop.SYNTAX)
            return True
        if self._trial != 1:
            return True
        self._lines, self._lost, self._trial = None, True, 0
        return False

    def _tell(self) -> None:
        """The form, from the first byte that is no space."""
        rest = self._buffer.lstrip(_SPACE)
        if not rest:
            self._buffer.clear()
            return
        if rest[:1] == b"{":
            self._lines = True
        else:
            self._lines = False
            self._begin()

    def _begin(self) -> None:
        limit = self._limit
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=0, max_str_len=limit, max_bin_len=limit, max_array_len=limit, max_map_len=limit,
            max_ext_len=limit,
        )  # fmt: skip
        self._unpacker.feed(self._buffer)
        self._began_at = 0

    def _line(self, end: bytes) -> bytes | str | None:
        at = self._buffer.find(end, 0, self._limit + 1)
        if at >= 0:
            line = bytes(self._buffer[:at])
            del self._buffer[: at + 1]
            self._trial = max(0, self._trial - 1)
            return line.strip()
        if len(self._buffer) <= self._limit:
            return None
        # too long: what follows its end is read again
        self._lines, self._lost, self._trial = None, True, 0
        return Drop.SIZE

    def _map(self) -> bytes | str | None:
        """The next map; only maps are messages."""
        if not (0x80 <= self._buffer[0] <= 0x8F or self._buffer[0] in (0xDE, 0xDF)):
            return self._lose(Drop.SYNTAX)
        try:
            self._unpacker.skip()
        except msgpack.OutOfData:
            return None if len(self._buffer) <= self._limit else self._lose(Drop.SIZE)
        except Exception:  # ValueError and its kin, StackError for deep nesting
            return self._lose(Drop.SYNTAX)
        # it counts the bytes of half a message too, so the place where this one began is kept
        size = self._unpacker.tell() - self._began_at
        self._began_at += size
        message = bytes(self._buffer[:size])
        del self._buffer[:size]
        return message

    def _lose(self, reason: str) -> str:
        self._unpacker, self._lines, self._lost = None, None, True
        del self._buffer[:1]
        return reason

    def _search(self) -> bytes | None:
        """Go to where a message may begin again; None when it is not here yet."""
        found = self._begins.search(self._buffer)
        if found is None:
            # the end may be the beginning of a start
            del self._buffer[: max(0, len(self._buffer) - self._longest)]
            return None
        self._lost = False
        if self._buffer[found.start() : found.start() + 1] == b"\n":
            del self._buffer[: found.start() + 1]
            self._lines, self._trial = True, 2
        else:
            del self._buffer[: found.start()]
            self._lines = False
            self._begin()
        return b""
