"""What an adapter is: bytes of some feed in, batches out. The same code reads a live connection and a recorded file.

Live, daemon/intake/sources.py pushes what the network brings; from a file, FeedLog pushes its bytes. `now` is the Unix
time at which the bytes arrived (NaN: read from a file), for feeds that carry no time of their own. Bad input is
counted by reason in `refused` and never raises.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import LogError, SourceInfo
from watchkeeper.streams.logs.chunks import select_time

READ_BYTES = 1 << 16
# A look at a sky of 20,000 aircraft has some 10 MB.
DOCUMENT_MAX_BYTES = 64 << 20
_GZIP = b"\x1f\x8b"


class Feed(Protocol):
    """One feed. `push` and `take` in any rhythm, from one thread; however a stream is cut, its samples are the same."""

    refused: Counter[str]

    def push(self, data: bytes, now: float) -> None:
        """Take in what arrived."""
        ...

    def take(self) -> Batch | None:
        """The samples since the last take; None when there are none."""
        ...

    def close(self) -> None:
        """The input has ended: what is still incomplete will not be completed."""
        ...


class FeedLog:
    """A recorded feed as a log (streams/logs/source.py). `make` makes a fresh feed for each reading.

    A document is pushed `whole`, a stream in pieces.
    """

    def __init__(self, path: Path | str, format_name: str, make: Callable[[], Feed], *, whole: bool = False) -> None:
        self.path = Path(path)
        self.position = 0
        self._format = format_name
        self._make = make
        self._piece_bytes = DOCUMENT_MAX_BYTES if whole else READ_BYTES
        self._refused: Counter[str] = Counter()
        self._cut = ""
        try:
            self._size = self.path.stat().st_size
        except OSError as error:
            raise LogError(self.path, error.strerror or str(error)) from error

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:  # noqa: ARG002
        """Samples in the order of the file, as many at a time as a piece of it holds."""
        feed = self._make()
        self._refused, self._cut = feed.refused, ""
        with self.path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            for data in self._pieces(file):
                feed.push(data, math.nan)
                self.position = raw.tell()
                yield from within(feed.take(), start, stop)
        feed.close()
        yield from within(feed.take(), start, stop)

    def _pieces(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            while data := file.read(self._piece_bytes):
                yield data
        except (OSError, EOFError, zlib.error) as error:
            self._cut = f"cut off or damaged: {error}"

    def info(self) -> SourceInfo:
        """Format, size, and what was refused."""
        problems = problems_of(self._cut, "messages", self._refused)
        return SourceInfo(self.path, self._format, self._size, problems, None, self._refused.total())


def problems_of(cut: str, what: str, refused: Counter[str]) -> tuple[str, ...]:
    """For `info`: where a log breaks off, if it does, and what of it was not used."""
    counts = ", ".join(f"{n:,} {reason}" for reason, n in sorted(refused.items()))
    unused = f"{refused.total():,} {what} not used ({counts})" if refused else ""
    return tuple(problem for problem in (cut, unused) if problem)


def within(batch: Batch | None, start: float, stop: float) -> Iterator[Batch]:
    """What of a batch is in a span of time, if anything is."""
    if batch is None:
        return
    if batch.t_min < start or batch.t_max >= stop:
        batch = select_time(batch, start, stop)
    if len(batch):
        yield batch


class Lines:
    """Cuts a stream of bytes into lines; one longer than `limit` bytes is dropped and counted as None."""

    def __init__(self, limit: int, end: bytes = b"\n") -> None:
        self._limit = limit
        self._end = end
        self._rest = b""
        self._skipping = False

    def push(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that this completes, without their ends."""
        *whole, self._rest = (self._rest + data).split(self._end)
        for line in whole:
            if self._skipping:
                self._skipping = False
            elif len(line) > self._limit:
                yield None
            else:
                yield line
        if len(self._rest) > self._limit:
            self._rest = b""
            if not self._skipping:
                self._skipping = True
                yield None

    def close(self) -> Iterator[bytes]:
        """The last line, if the input ended without an end of line."""
        if self._rest and not self._skipping:
            yield self._rest
        self._rest = b""


class LineFeed:
    """What feeds of text lines share; a subclass says in `_line` what a line means (None: it was too long)."""

    def __init__(self, limit: int) -> None:
        self._lines = Lines(limit)

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        for line in self._lines.push(data):
            self._line(line, now)

    def close(self) -> None:
        """See Feed."""
        for line in self._lines.close():
            self._line(line, math.nan)

    def _line(self, line: bytes | None, now: float) -> None:
        raise NotImplementedError
