"""Files that others wrote, read within limits: unpacked if they are packed, and never more than the memory holds.

    open_file(path)            a file to read; no pipe or device, which would be waited for without end
    unpacked(raw)              an open file as bytes to read in pieces; gzip and zstd are told by their first bytes
    first_bytes(path, n)       what a file begins with
    read_document(path)        the whole of a file that cannot be read in pieces
    read_json(path, Shape), read_msgpack(path)

A packed file may claim to be anything: 1.8 MB of gzip can become 3.7 GB. A document of a few bytes per item becomes
Python objects of fifty and more. Both are bounded before the memory is taken, and the error says by which limit.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast, overload

import numpy as np

from watchkeeper.streams.foreign.decode import ForeignError, from_json, from_msgpack
from watchkeeper.streams.logs.base import LogError

T = TypeVar("T")
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
# A window of 128 MB is the most that zstd itself takes without being asked.
_ZSTD_WINDOW_BYTES = 128 << 20
PIECE_BYTES = 1 << 16
# gzip can make a thousand bytes of one. Telemetry is packed to a third or a tenth, the dullest table to a fiftieth.
UNPACK_RATIO = 100
# What a small file may become whatever its ratio.
UNPACK_FREE_BYTES = 32 << 20
# A document is held in memory as Python objects; this is what they may take together.
DOCUMENT_MEMORY_BYTES = 1 << 30
# What an object takes at least, with its place in a list: {} is 64 bytes, [] 56, a number 24 to 32.
_OBJECT_BYTES, _CELL_BYTES = 160, 40


class UnpackError(OSError):
    """A packed file that is damaged, cut off, or grows beyond all measure; the message says where."""


class _Gunzip(io.RawIOBase):
    """The content of a gzip file of any number of members. What is whole is given before damage is reported."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._inflate = zlib.decompressobj(wbits=31)
        self._packed = b""
        self._began = False
        self._packed_bytes = 0
        self._unpacked_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill as much as there is at hand; 0 at the end. Raises UnpackError."""
        space = memoryview(room).nbytes
        while space:
            if not self._packed and not self._inflate.eof:
                self._packed = self._raw.read(PIECE_BYTES)
                self._packed_bytes += len(self._packed)
                if not self._packed:
                    if self._began:
                        raise self._error("cut off")
                    return 0
            if self._inflate.eof and not self._next_member():
                return 0
            data = self._some(space)
            if data:
                room[: len(data)] = data
                return len(data)
        return 0

    def _some(self, space: int) -> bytes:
        try:
            data = self._inflate.decompress(self._packed, space)
        except zlib.error as error:
            raise self._error(f"damaged ({error})") from error
        self._began = not self._inflate.eof
        self._packed = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        self._unpacked_bytes += len(data)
        if self._unpacked_bytes > max(UNPACK_FREE_BYTES, UNPACK_RATIO * self._packed_bytes):
            raise self._error(f"unpacks to more than {UNPACK_RATIO} times its size, which no recording does")
        return data

    def _next_member(self) -> bool:
        """Files may be put one behind the other, and filled up with zeros."""
        while not (rest := self._packed.lstrip(b"\0")):
            self._packed = self._raw.read(PIECE_BYTES)
            self._packed_bytes += len(self._packed)
            if not self._packed:
                return False
        self._packed = rest
        self._inflate = zlib.decompressobj(wbits=31)
        self._began = True
        return True

    def _error(self, problem: str) -> UnpackError:
        at = self._packed_bytes - len(self._packed)
        return UnpackError(f"gzip: {problem} at byte {max(0, at):,}")


class _Unzstd(io.RawIOBase):
    """The content of a zstd file of any number of frames."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._reader = zstd().stream_reader(raw, read_across_frames=True, closefd=False)
        self._unpacked_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill as much as there is at hand; 0 at the end. Raises UnpackError."""
        try:
            data = self._reader.read(min(memoryview(room).nbytes, PIECE_BYTES))
        except Exception as error:  # the library has one class of error for everything
            raise UnpackError(f"zstd: damaged ({error}) before byte {self._raw.tell():,}") from error
        room[: len(data)] = data
        self._unpacked_bytes += len(data)
        if self._unpacked_bytes > max(UNPACK_FREE_BYTES, UNPACK_RATIO * self._raw.tell()):
            raise UnpackError(f"zstd: unpacks to more than {UNPACK_RATIO} times its size, which no recording does")
        return len(data)


def zstd() -> Any:
    """A decompressor of zstd, within limits. Raises UnpackError where its library is not installed."""
    try:
        import zstandard  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise UnpackError('zstd needs zstandard: pip install "watchkeeper[zstd]"') from error
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)


def open_file(path: Path) -> BinaryIO:
    """A file to read. Raises OSError, also for a pipe or a device: readers go through a file twice, and go back."""
    raw = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115  the caller closes it
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        raw.close()
        raise OSError(errno.EINVAL, "a pipe or a device: only files are read", str(path))
    return raw


def unpacked(raw: BinaryIO) -> BinaryIO:
    """The content of an open file from its start. `read` may give less than it is asked for, and nothing at the end."""
    raw.seek(0)
    magic = raw.read(len(ZSTD))
    raw.seek(0)
    if magic.startswith(GZIP):
        return cast(BinaryIO, _Gunzip(raw))
    return cast(BinaryIO, _Unzstd(raw)) if magic == ZSTD else raw


def text_of(raw: BinaryIO) -> io.TextIOWrapper:
    """The content of an open file as text for the csv module; bytes that are not UTF-8 become odd characters."""
    content = unpacked(raw)
    whole = content if content is raw else io.BufferedReader(cast(io.RawIOBase, content))
    # utf-8-sig: spreadsheets put a mark before the first column's name
    return io.TextIOWrapper(whole, "utf-8-sig", "replace", newline="")


@contextmanager
def text_file(path: Path) -> Iterator[io.TextIOWrapper]:
    """A file as text. Raises LogError when it cannot be opened."""
    try:
        raw = open_file(path)
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    with raw:
        yield text_of(raw)


def first_bytes(path: Path, count: int) -> bytes:
    """What a file begins with, unpacked if it is packed; less if it is shorter or damaged. Raises LogError."""
    try:
        with open_file(path) as raw:
            file, head = unpacked(raw), b""
            try:
                while len(head) < count and (piece := file.read(count - len(head))):
                    head += piece
            except UnpackError:
                pass  # the reader says what is damaged
            return head
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error


def read_document(path: Path, *, limit: int = DOCUMENT_MEMORY_BYTES // 4) -> bytes:
    """The whole of a file, unpacked if it is packed. Raises LogError."""
    pieces: list[bytes] = []
    total = 0
    try:
        with open_file(path) as raw:
            file = unpacked(raw)
            while piece := file.read(PIECE_BYTES):
                pieces.append(piece)
                total += len(piece)
                if total > limit:
                    raise LogError(path, f"a document of more than {limit >> 20:,} MB, which is the most that is read")
    except UnpackError as error:
        raise LogError(path, f"cut off or damaged: {error}") from error
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    return b"".join(pieces)


@overload
def read_json(path: Path) -> Any: ...
@overload
def read_json(path: Path, shape: type[T]) -> T: ...
def read_json(path: Path, shape: Any = Any) -> Any:
    """One JSON document. Raises LogError."""
    data = read_document(path)
    check_json_size(path, data)
    try:
        return from_json(data, shape)
    except ForeignError as error:
        raise LogError(path, f"not a JSON document of the expected form: {error}") from error


def read_msgpack(path: Path) -> Any:
    """One MessagePack document. Raises LogError."""
    data = read_document(path)
    # 0x80 to 0x9f begin a small map or list; the same bytes inside a number are counted too, which does no harm
    objects = int(np.count_nonzero((np.frombuffer(data, np.uint8) & 0xE0) == 0x80))
    _check_memory(path, len(data) * 4 + objects * 72)
    try:
        return from_msgpack(data)
    except ForeignError as error:
        raise LogError(path, f"not a MessagePack document: {error}") from error


def check_json_size(path: Path, data: bytes) -> None:
    """Whether a document can be held once it is decoded. Raises LogError."""
    objects = data.count(b"{") + data.count(b"[")
    _check_memory(path, len(data) + objects * _OBJECT_BYTES + data.count(b",") * _CELL_BYTES)


def _check_memory(path: Path, needed: int) -> None:
    if needed > DOCUMENT_MEMORY_BYTES:
        raise LogError(
            path,
            f"some {needed / 1e9:.1f} GB in memory, at most {DOCUMENT_MEMORY_BYTES / 1e9:.1f} GB are taken: "
            "cut it into parts, or write it in a format that is read in pieces",
        )
