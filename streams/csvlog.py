"""CSV logs, `.csv` and `.csv.gz`: one row per sample, columns named as in messages.py plus `id`, `t` and `kind`.

`callsign` and `via` are text, an empty cell (or `nan`) is absent, true and false are 1 and 0. What a row is, and
what happens without a `kind` column, is said in csvtable.py. Bad rows never stop the reading: they are counted by
reason, with the line numbers of the first few. Memory holds one chunk of rows, whatever the file's length.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.chunks import select_time
from watchkeeper.streams.csvtable import Layout, to_batch
from watchkeeper.streams.messages import Drop
from watchkeeper.streams.source import LogError, SourceInfo

# How many bad rows are named by line; the rest are only counted.
NAMED_ROWS = 5
_GZIP = b"\x1f\x8b"


class CsvLog:
    """One CSV file."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.position = 0
        self.bad: Counter[str] = Counter()
        self._named: list[str] = []
        self._cut: str | None = None
        try:
            with self.path.open("rb") as raw:
                self._size = raw.seek(0, io.SEEK_END)
                header = next(_Rows(raw), [])
            if not header:
                raise LogError(self.path, "empty: a CSV log starts with a line of column names")
            self._layout = Layout([name.strip() for name in header])
        except (OSError, EOFError, zlib.error, csv.Error, ValueError) as error:
            raise LogError(self.path, getattr(error, "strerror", None) or str(error)) from error

    def info(self) -> SourceInfo:
        """Format, size, and what was wrong with the rows read so far."""
        problems: list[str] = []
        if self._layout.unknown:
            problems.append(f"columns that are not ours, ignored: {', '.join(self._layout.unknown)}")
        if self.bad:
            counts = ", ".join(f"{n:,} {reason}" for reason, n in sorted(self.bad.items()))
            problems.append(f"{self.bad.total():,} bad rows ({counts}); first: {'; '.join(self._named)}")
        if self._cut:
            problems.append(self._cut)
        cut_at = self.position if self._cut else None
        return SourceInfo(self.path, "csv", self._size, tuple(problems), cut_at, self.bad.total())

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Rows in the order of the file, `chunk` rows at a time."""
        self.bad, self._named, self._cut = Counter(), [], None
        with self.path.open("rb") as raw:
            rows = _Rows(raw)
            next(rows, None)
            more = True
            while more:
                line = rows.line
                table: list[list[str]] = []
                more = self._fill(table, rows, chunk)
                self.position = raw.tell()
                batch = self._batch(table, line, rows.line)
                if start > -math.inf or stop < math.inf:
                    batch = select_time(batch, start, stop)
                if len(batch):
                    yield batch

    def _fill(self, table: list[list[str]], rows: _Rows, chunk: int) -> bool:
        """Read up to `chunk` rows, fewer before one that cannot be read; False at the end of the file."""
        try:
            table.extend(islice(rows, chunk))
        except csv.Error as error:
            self._count(rows.line, Drop.SYNTAX, str(error))
            return True
        except (EOFError, OSError, zlib.error) as error:
            self._cut = f"cut off or damaged after line {rows.line:,}: {error}"
            return False
        return len(table) == chunk

    def _batch(self, table: list[list[str]], first_line: int, last_line: int) -> Batch:
        lines = range(first_line + 1, first_line + 1 + len(table))
        if last_line - first_line != len(table):
            # some cells have line breaks in them
            ends = [1 + sum(cell.count("\n") for cell in row) for row in table]
            lines = [first_line + sum(ends[:i]) + 1 for i in range(len(ends))]  # type: ignore[assignment]
        width = self._layout.width
        if any(len(row) != width for row in table):
            for line, row in zip(lines, table, strict=True):
                if row and len(row) != width:  # an empty line is not a row
                    self._count(line, Drop.SYNTAX, f"{len(row)} cells, the header has {width}")
            kept = [(line, row) for line, row in zip(lines, table, strict=True) if len(row) == width]
            lines, table = [line for line, _ in kept], [row for _, row in kept]  # type: ignore[assignment]
        return to_batch(self._layout, table, lambda row, reason, detail: self._count(lines[row], reason, detail))

    def _count(self, line: int, reason: str, detail: str) -> None:
        self.bad[reason] += 1
        if len(self._named) < NAMED_ROWS:
            self._named.append(f"line {line:,} {reason}" + (f" ({detail})" if detail else ""))


class _Rows:
    """The rows of a file that may be compressed; `line` is the number of the line last read."""

    def __init__(self, raw: BinaryIO) -> None:
        raw.seek(0)
        zipped = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        plain = gzip.GzipFile(fileobj=raw) if zipped else raw
        # bytes that are not UTF-8 make a bad cell, not an unreadable file
        self._reader = csv.reader(io.TextIOWrapper(plain, "utf-8-sig", errors="replace", newline=""))

    @property
    def line(self) -> int:
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self._reader)

    def __next__(self) -> list[str]:
        return next(self._reader)
