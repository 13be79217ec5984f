"""What an adapter is: bytes of some feed in, batches out. The same code reads a live connection and a recorded file.

An `AdapterDeclaration` is all that the rest of the house knows of an adapter; catalog.py lists them. Live,
daemon/intake/sources.py pushes what the network brings; from a file, FeedLog pushes its bytes. `now` is the Unix time
at which the bytes arrived (NaN: read from a file), for feeds that carry no time of their own. Bad input is counted by
reason in `refused` and never raises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from watchkeeper.config.adapters.base import Document, Source, type_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.files import open_file, read_document, unpacked
from watchkeeper.streams.logs.base import Format, LogError, SourceInfo, Target
from watchkeeper.streams.logs.chunks import select_time

READ_BYTES = 1 << 16
# A look at a sky of 20,000 aircraft has some 10 MB. As Python objects a hostile document is thirty times its size.
DOCUMENT_MAX_BYTES = 24 << 20
# A recording of which so much was refused, and not one in so many was a sample, is something else: reading on is vain.
GIVE_UP_AFTER, GIVE_UP_SHARE = 500_000, 1000


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


class Line(Protocol):
    """A connection that blocks: it is read in a thread. `read` raises OSError when it is lost."""

    def read(self, wait_s: float) -> bytes:
        """What has arrived; nothing after `wait_s` in which nothing did."""
        ...

    def close(self) -> None:
        """Called once. A `read` may still wait in its thread."""
        ...


class Way(StrEnum):
    """How the bytes of a live source reach us."""

    STREAM = "stream"
    """tcp://, udp://, unix://, serial://: read as it comes."""
    DOCUMENT = "document"
    """http://, https://, file://: fetched every `period_s`, and pushed whole."""
    BUS = "bus"
    """A `Line` that the adapter opens."""
    PROCESS = "process"
    """The standard output of a program that the adapter starts."""


_SCHEMES = {
    "tcp": Way.STREAM, "udp": Way.STREAM, "unix": Way.STREAM, "serial": Way.STREAM,
    "http": Way.DOCUMENT, "https": Way.DOCUMENT, "file": Way.DOCUMENT,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A few bytes of a live feed that give one sample at least, and the table of `[[sources]]` that reads them.

    `files` are those that the settings name, as text by file name.
    """

    data: bytes
    settings: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterDeclaration:
    """All that others need to know of an adapter: live sources of one type, files that it reads or writes.

    Code is named as `module:attribute` and imported when a source or a file asks for it, so that an optional dependency
    costs nothing until it is used.
    """

    name: str
    """Its name; for live sources also the value of `type`."""
    help: str
    """What it reads, in half a line."""
    docs: str
    """Its page: a path below docs/, or the address of a page elsewhere."""
    settings: type[Source] | None = None
    """Live: the keys of its `[[sources]]` table."""
    feed: str = ""
    """Live: the Feed, called with `takes` by keyword."""
    takes: tuple[str, ...] = ("via",)
    """Live: the settings that the feed takes."""
    ways: tuple[Way, ...] = ()
    """Live: how its bytes may come."""
    datagrams: bool = False
    """Live over udp://: a datagram is whole, and what one leaves incomplete is not continued by the next."""
    hello: str = ""
    """Live over tcp:// and unix://: a function that gives what is sent to a source first."""
    line: str = ""
    """Way.BUS: a function that opens the Line of a source."""
    command: str = ""
    """Way.PROCESS: a function that gives the command line for a source."""
    sample: Sample | None = None
    """Live: for conformance tests and documentation."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Live: modules that must be there besides those that the feed imports, and what each is called on PyPI."""
    extra: str = ""
    """What to give to `pip install` for its dependencies."""
    formats: tuple[Format, ...] = ()
    """Files that it reads."""
    targets: tuple[Target, ...] = ()
    """Files that it writes."""

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise ValueError(f"adapter {self.name!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        if not self.help or not self.docs:
            yield "help and docs must be given"
        if self.settings is None:
            if not self.formats and not self.targets:
                yield "it reads neither a live source nor files, and writes none"
            if self.feed or self.ways or self.sample is not None:
                yield "a live source needs settings"
            return
        if type_of(self.settings) != self.name:
            yield f'the tag of its settings is "{type_of(self.settings)}"'
        if not self.feed or not self.ways or self.sample is None:
            yield "a live source needs a feed, ways and a sample"
        if unknown := set(self.takes) - set(self.settings.__struct_fields__):
            yield f"it takes {', '.join(sorted(unknown))}, which its settings do not have"
        if Way.DOCUMENT in self.ways and not issubclass(self.settings, Document):
            yield "settings of documents are a subclass of watchkeeper.config.adapters.base.Document"
        if (Way.BUS in self.ways) != bool(self.line) or (Way.PROCESS in self.ways) != bool(self.command):
            yield "a bus needs a line, a process a command, and no other way does"
        if self.line and self.command:
            yield "it is a bus or a process, not both"

    def way_of(self, url: str) -> Way:
        """How the bytes of a source at this address come. Raises ValueError."""
        own = next((way for way in (Way.BUS, Way.PROCESS) if way in self.ways), None)
        way = _SCHEMES.get(urlsplit(url).scheme, own)
        if way not in self.ways:
            raise ValueError(f"{url}: {self.name} has no such address")
        return way


def resolve(where: str) -> Any:
    """The object that `module:attribute` names."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


class FeedLog:
    """A recorded feed as a log (streams/logs/source.py). `make` makes a fresh feed for each reading.

    A document is pushed `whole`, a stream in pieces.
    """

    def __init__(self, path: Path | str, format_name: str, make: Callable[[], Feed], *, whole: bool = False) -> None:
        self.path = Path(path)
        self.position = 0
        self._format = format_name
        self._make = make
        self._whole = whole
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
        samples = 0
        if self._whole:
            feed.push(read_document(self.path, limit=DOCUMENT_MAX_BYTES), math.nan)
            self.position = self._size
        else:
            for data in self._pieces():
                feed.push(data, math.nan)
                if (batch := feed.take()) is not None:
                    samples += len(batch)
                    yield from within(batch, start, stop)
                if (refused := feed.refused.total()) > GIVE_UP_AFTER and samples * GIVE_UP_SHARE < refused:
                    self._cut = f"hardly anything in it is a message: not read further than byte {self.position:,}"
                    break
        feed.close()
        batch = feed.take()
        if not samples + (0 if batch is None else len(batch)):
            self._refuse_garbage()
        yield from within(batch, start, stop)

    def _refuse_garbage(self) -> None:
        """Without one sample it is another file, unless it has messages and none of them is wrong."""
        if not self._size:
            raise LogError(self.path, "empty")
        if self._refused or self._cut:
            raise LogError(self.path, "; ".join(("no sample in it", *self.info().problems)))

    def _pieces(self) -> Iterator[bytes]:
        with open_file(self.path) as raw:
            file = unpacked(raw)
            try:
                while data := file.read(READ_BYTES):
                    self.position = raw.tell()
                    yield data
            except OSError as error:
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
        # empty lines say nothing in any format, and a file may be full of them
        for line in whole if self._skipping else filter(None, whole):
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
