"""Recorded logs, `.wklog`: written in frames, readable after a crash, indexed by time. The bytes: wkframe.py.

Nothing in a log depends on the clock or the machine: the same samples give the same bytes. A log that was not
closed lacks its index; its frame heads are then walked instead, up to the first that is not whole.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedWriter, FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from watchkeeper.streams.batch import Batch, slice_batch
from watchkeeper.streams.foreign.decode import ForeignError, from_msgpack
from watchkeeper.streams.logs.base import LogError, SourceInfo
from watchkeeper.streams.logs.chunks import join, numbered, select_time
from watchkeeper.streams.logs.wkframe import (
    DATA,
    END,
    HEAD_BYTES,
    HEADER,
    INDEX,
    MAGIC,
    TRAILER,
    VERSION,
    DamageError,
    Head,
    Header,
    Index,
    decode_data,
    encode_data,
    our_columns,
    pack_frame,
    read_head,
    read_payload,
)
from watchkeeper.streams.messages import FIELDS, Kind

# Large enough that a frame's fixed cost vanishes, small enough that its columns stay in a core's cache.
FRAME_SAMPLES = 8192
FRAME_SAMPLES_MAX = 2 * FRAME_SAMPLES


@dataclass(frozen=True, slots=True)
class Truncation:
    """Where a log stops being readable, and why."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """A data frame as the index describes it."""

    offset: int
    samples: int
    t_min: float
    t_max: float


class LogWriter:
    """Writes one log. `write` gathers batches into frames, `flush` ends the frame at hand, `close` adds the index."""

    def __init__(self, path: Path | str, *, frame_samples: int = FRAME_SAMPLES, fsync: bool = False) -> None:
        self.path = Path(path)
        self.samples = 0
        self.notes: tuple[str, ...] = ()
        self.size_bytes = 0
        self._frame_samples = frame_samples
        self._fsync = fsync
        self._held: list[Batch] = []
        self._held_samples = 0
        self._entries: list[_Entry] = []
        try:
            self._file = BufferedWriter(FileIO(self.path, "wb"))
        except OSError as error:
            raise LogError(self.path, error.strerror or str(error)) from error
        schema = {kind.word: [(f.name, f.unit) for f in FIELDS[kind]] for kind in Kind}
        # at once: whoever looks at a recording that has just begun finds a whole one
        self._put(MAGIC + pack_frame(HEADER, msgspec.msgpack.encode(Header(VERSION, schema))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, batch: Batch) -> None:
        """Add a batch; its arrays must not change afterwards. Raises LogError when the disk is full."""
        batch = numbered(batch)
        n = len(batch)
        at = 0
        while at < n:
            stop = min(n, at + FRAME_SAMPLES_MAX - self._held_samples)
            self._held.append(batch if stop - at == n else slice_batch(batch, at, stop))
            self._held_samples += stop - at
            at = stop
            if self._held_samples >= self._frame_samples:
                self._end_frame()

    def flush(self) -> None:
        """Everything so far is in the file, in whole frames, when this returns. Raises LogError."""
        self._end_frame()
        self._put(b"")
        if self._fsync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """End the last frame and write the index."""
        if self._file.closed:
            return
        self._end_frame()
        index_at = self.size_bytes
        index = Index(
            np.array([e.offset for e in self._entries], "<i8").tobytes(),
            np.array([e.samples for e in self._entries], "<i8").tobytes(),
            np.array([e.t_min for e in self._entries], "<f8").tobytes(),
            np.array([e.t_max for e in self._entries], "<f8").tobytes(),
        )
        self._put(pack_frame(INDEX, msgspec.msgpack.encode(index)) + TRAILER.pack(index_at, END))
        self.flush()
        self._file.close()

    def _end_frame(self) -> None:
        if not self._held:
            return
        batch = join(self._held)
        self._held, self._held_samples = [], 0
        entry = _Entry(self.size_bytes, len(batch), batch.t_min, batch.t_max)
        self._put(pack_frame(DATA, encode_data(batch, packed=True), entry.samples, entry.t_min, entry.t_max))
        self._entries.append(entry)
        self.samples += entry.samples

    def _put(self, raw: bytes) -> None:
        try:
            self.size_bytes += self._file.write(raw)
            self._file.flush()
        except OSError as error:
            # closed below its buffer: a full disk must not be tried again on the way out
            self._file.raw.close()
            raise LogError(self.path, error.strerror or str(error)) from error


class LogReader:
    """Reads one log, a frame at a time. `truncated` says where the readable part ends; None: the log is whole.

    A log without an index shows that at once; a damaged frame shows when the reading comes to it, and ends it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.truncated: Truncation | None = None
        self.position = 0
        try:
            with FileIO(self.path) as file:
                self._size = os.fstat(file.fileno()).st_size
                self._columns = self._read_header(file)
                self._first = file.tell()
                self._entries = self._read_entries(file)
        except OSError as error:
            raise LogError(self.path, error.strerror or str(error)) from error

    def info(self) -> SourceInfo:
        """Format, size and damage."""
        cut = self.truncated
        problems = (f"{cut.reason}; readable up to byte {cut.offset:,} of {self._size:,}",) if cut else ()
        return SourceInfo(self.path, "wklog", self._size, problems, cut.offset if cut else None)

    def batches(self, chunk: int = 0, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:  # noqa: ARG002
        """The frames that have samples in [start, stop), one batch each, as they were written."""
        with FileIO(self.path) as file:
            for entry in self._entries:
                if entry.t_max < start or entry.t_min >= stop:
                    continue
                file.seek(entry.offset)
                try:
                    batch = decode_data(read_payload(file, read_head(file)), self._columns)
                except DamageError as damage:
                    self.truncated = Truncation(entry.offset, str(damage))
                    return
                self.position = file.tell()
                if entry.t_min < start or entry.t_max >= stop:
                    batch = select_time(batch, start, stop)
                if len(batch):
                    yield batch
        self.position = self._size

    def __len__(self) -> int:
        """How many frames there were when the log was opened."""
        return len(self._entries)

    def frame(self, offset: int) -> tuple[Batch, int] | None:
        """The frame at a byte (0: the first), and where the next one is; None: there is no whole frame there (yet).

        LogError: it is damaged.
        """
        with FileIO(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            at = offset or self._first
            file.seek(at)
            if size < at + HEAD_BYTES:
                return None
            try:
                head = read_head(file)
                if head.tag != DATA or size < at + HEAD_BYTES + head.length:
                    return None
                return decode_data(read_payload(file, head), self._columns), file.tell()
            except DamageError as damage:
                raise LogError(self.path, f"{damage}; readable up to byte {at:,} of {size:,}") from damage

    def _read_header(self, file: FileIO) -> dict[str, list[int]]:
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if magic[:5] == MAGIC[:5] and magic[5:6].isdigit():
                raise self._newer(magic[5:6].decode())
            raise LogError(self.path, "not a .wklog: it does not start with its magic bytes")
        try:
            header = from_msgpack(self._read(file, HEADER), Header)
        except (DamageError, ForeignError) as error:
            raise LogError(self.path, f"the header cannot be read: {error}") from error
        if header.version > VERSION:
            raise self._newer(str(header.version))
        return our_columns(header)

    def _newer(self, version: str) -> LogError:
        return LogError(self.path, f"a .wklog of version {version}; this watchkeeper reads up to version {VERSION}")

    @staticmethod
    def _read(file: FileIO, tag: bytes) -> memoryview:
        head = read_head(file)
        if head.tag != tag:
            raise DamageError(f"not the frame that belongs here ({tag.decode()})")
        return read_payload(file, head)

    def _read_entries(self, file: FileIO) -> list[_Entry]:
        """Where the data frames are: from the index, or by walking over their heads."""
        first = file.tell()
        trailer_at = self._size - TRAILER.size
        problem = "the log was not closed (no index)"
        if trailer_at > first:
            file.seek(trailer_at)
            index_at, end = TRAILER.unpack(file.read(TRAILER.size))
            if end == END and first <= index_at < trailer_at:
                file.seek(index_at)
                try:
                    index = from_msgpack(self._read(file, INDEX), Index)
                    return _entries_of(index, first, index_at)
                except (DamageError, ValueError) as error:
                    problem = f"the index cannot be read: {error}"
        return self._walk(file, first, problem)

    def _walk(self, file: FileIO, offset: int, problem: str) -> list[_Entry]:
        entries: list[_Entry] = []
        while offset < self._size:
            file.seek(offset)
            try:
                head: Head = read_head(file)
            except DamageError as damage:
                problem = f"{problem}, {damage}"
                break
            if head.tag != DATA:
                break
            if offset + HEAD_BYTES + head.length > self._size:
                problem = f"{problem}, cut off inside a frame"
                break
            entries.append(_Entry(offset, head.samples, head.t_min, head.t_max))
            offset += HEAD_BYTES + head.length
        self.truncated = Truncation(offset, problem)
        return entries


def _entries_of(index: Index, first: int, stop: int) -> list[_Entry]:
    """The frames of an index. Raises ValueError when they do not lie one behind the other in [first, stop)."""
    columns: list[list[Any]] = [
        np.frombuffer(index.offset, "<i8").tolist(),
        np.frombuffer(index.samples, "<i8").tolist(),
        np.frombuffer(index.t_min, "<f8").tolist(),
        np.frombuffer(index.t_max, "<f8").tolist(),
    ]
    entries = [_Entry(*row) for row in zip(*columns, strict=True)]
    places = [first - 1, *(entry.offset for entry in entries), stop]
    if any(a >= b for a, b in pairwise(places)):
        raise ValueError("frames that do not follow each other")
    return entries
