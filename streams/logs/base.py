"""What a recorded log is to the rest of the house: the contracts of readers (source.py) and of writers (target.py).

A reader or a writer imports this file; source.py knows the readers, target.py the writers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from watchkeeper.streams.batch import Batch


class LogError(Exception):
    """A log that cannot be used; the message names the file."""

    def __init__(self, path: Path, problem: str) -> None:
        problem = one_line(problem)
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def __reduce__(self) -> tuple[type[LogError], tuple[Path, str]]:
        # so that it finds its way out of a worker process
        return type(self), (self.path, self.problem)


class TargetError(LogError):
    """A log that cannot be written as it was asked for: a usage error. The message says what can be asked for."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a source knows about itself. `problems` is complete once its batches have been read to the end."""

    path: Path
    format: str
    size_bytes: int
    problems: tuple[str, ...]
    truncated_at: int | None = None
    """Byte offset behind which the log is lost; None when it is whole."""
    bad_rows: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", tuple(map(one_line, self.problems)))


def one_line(text: str) -> str:
    """A text that may quote a file, as one line of printable characters: a file says nothing to a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class Source(Protocol):
    """A recorded log. `batches` may be called again: each call reads from the start."""

    @property
    def position(self) -> int:
        """Bytes of the file consumed so far, for progress."""
        ...

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Samples with start <= t < stop in the order they were recorded.

        `chunk` is the batch size that suits the caller; a source whose file is already in frames may ignore it.
        """
        ...

    def info(self) -> SourceInfo:
        """Format, size, and what was found wrong so far."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file. `reader` is `module:attribute`, called with the path; it raises LogError on a wrong file.

    A file is told by its magic bytes; if no format has those, by its name. Formats that look for bytes they hold come
    before those that do not.
    """

    name: str
    reader: str
    suffixes: tuple[str, ...]
    magic: bytes = b""
    holds: tuple[bytes, ...] = ()
    """Bytes near its beginning that tell it from other files with the same ending."""
    chooses: bool = False
    """Whether the reader takes the section `[recordings]`, which chooses signals, as well where there is one."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a local frame begins. Without `alt_m` (NaN) heights in it are not altitudes."""

    lat: float
    lon: float
    alt_m: float = math.nan
    axes: str = "ned"
    """`ned` or `enu`: what gps_x, gps_y and gps_z are."""


class Writer(Protocol):
    """Makes one file. It is whole once `close` has returned. Raises LogError, or OSError for a full disk."""

    @property
    def samples(self) -> int:
        """How many samples are in the file."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the log is not in the file, and why; complete after `close`. One line each, for people."""
        ...

    def write(self, batch: Batch) -> None:
        """Add samples; the arrays do not change afterwards."""
        ...

    def close(self) -> None:
        """Complete the file."""
        ...


# What a writer may ask for in `Target.takes`, and what it then gets by keyword.
COLUMNS, ALARMS, POINTS, ORIGIN = "columns", "alarms", "points", "origin"
OPTIONS: dict[str, str] = {
    COLUMNS: "the names of the columns in use (streams/logs/flat.py), found by reading the log once before",
    ALARMS: "the path of a file of alarm events, or None",
    POINTS: "whether each position is wanted as a point",
    ORIGIN: "an Origin: where on the globe the local frame of GPS samples begins, or None",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of file that logs are written to.

    `writer` is `module:attribute`. It is called with the path and, by keyword, with the options that it takes, and
    gives a Writer. It is imported when a file asks for it.
    """

    name: str
    """The value of `--to`."""
    help: str
    """What it is good for, in half a line."""
    writer: str
    suffixes: tuple[str, ...]
    takes: tuple[str, ...] = ()
    """Options, see OPTIONS."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Modules that must be there, and what each is called on PyPI."""
    extra: str = ""
    """What to give to `pip install` for them."""

    def __post_init__(self) -> None:
        if unknown := set(self.takes) - OPTIONS.keys():
            raise ValueError(
                f"target {self.name!r}: no option {', '.join(sorted(unknown))}; there are {', '.join(OPTIONS)}"
            )
        if not self.suffixes or not self.help:
            raise ValueError(f"target {self.name!r}: endings and help must be given")
