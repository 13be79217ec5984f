"""The seam where a library of others reads a file of others: whatever it raises becomes one clear error.

    with library(path, "not a PX4 log"):
        log = ULog(path)

Such libraries raise what their parsing runs into: KeyError, struct.error, IndexError, MemoryError, errors of their own.
`Fenced` is the same for whole readers, also those of other packages: open_log puts one around each. An error that it
catches is one that the reader did not foresee, and the fuzzer (tools/fuzz) counts it as a failure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import LogError, Source, SourceInfo


class UnforeseenError(LogError):
    """A log on which its reader broke down. What was read before it is good."""


@contextmanager
def library(path: Path, problem: str) -> Iterator[None]:
    """Raises LogError for whatever the block raises; `problem` says what the file is not."""
    try:
        yield
    except (LogError, ModuleNotFoundError):
        raise
    except FileNotFoundError as error:
        raise LogError(path, error.strerror or "not found") from error
    except Exception as error:
        raise LogError(path, f"{problem}, or damaged: {reason(error)}") from error


@contextmanager
def unforeseen(path: Path, place: str = "") -> Iterator[None]:
    """Raises UnforeseenError for what is neither a LogError nor a missing module or file."""
    try:
        yield
    except (LogError, ModuleNotFoundError, OSError):
        raise
    except Exception as error:
        raise UnforeseenError(path, f"the reader broke down{place}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """What went wrong, in one line: many errors of libraries have no text of their own."""
    if isinstance(error, MemoryError):
        return "it claims a size that does not fit into the memory"
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Fenced:
    """A log whose reader may break down: the caller gets a LogError with the place, never anything else."""

    def __init__(self, path: Path, source: Source) -> None:
        self._path = path
        self.source = source

    @property
    def position(self) -> int:
        """See Source."""
        return self.source.position

    def info(self) -> SourceInfo:
        """See Source."""
        return self.source.info()

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """See Source."""
        reading = self.source.batches(chunk, start=start, stop=stop)
        while True:
            with unforeseen(self._path, f" near byte {self.source.position:,}"):
                batch = next(reading, None)
            if batch is None:
                return
            yield batch
