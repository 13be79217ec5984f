"""What a recorded log is to the rest of the house: the contracts between readers and callers of source.py.

A reader imports this file, and source.py knows the readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
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
