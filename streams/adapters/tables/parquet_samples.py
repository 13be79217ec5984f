"""Parquet tables of samples: what `watchkeeper convert` writes, and any table with the columns of our CSV logs.

`t` (seconds, or dates with time) and `id` must be there; `kind`, `via`, `callsign` and fields of messages.py may be.
Rows mean what they mean in a CSV log, and bad ones are counted and named in the same way (streams/logs/csv_table.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import types

from watchkeeper.streams.adapters.base import problems_of, within
from watchkeeper.streams.batch import F8, I8, Batch, Bool
from watchkeeper.streams.foreign.library import library
from watchkeeper.streams.foreign.library import reason as why
from watchkeeper.streams.logs.base import LogError, SourceInfo
from watchkeeper.streams.logs.csv_table import NAMED_ROWS, TEXT_COLUMNS, Layout, to_batch

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ArrowRows:
    """Rows of a table, as csv_table.py asks for them; `lines` are their numbers in the file, counted from 0."""

    def __init__(self, columns: list[Any], first: int) -> None:
        self._columns = columns
        self.lines: I8 = first + np.arange(len(columns[0]))
        self.cells: I8 = np.full(len(self.lines), len(columns))

    def __len__(self) -> int:
        return len(self.lines)

    def is_blank(self) -> Bool:
        """None is: every row has all cells."""
        return np.zeros(len(self), bool)

    def keep(self, rows: Bool | slice) -> Self:
        """The same table with these rows only."""
        chosen = np.arange(len(self))[rows]
        part = type(self)([column.take(pa.array(chosen)) for column in self._columns], 0)
        part.lines = self.lines[chosen]
        return part

    def filled(self, column: int) -> Bool:
        """Rows in which this cell has a value."""
        there: Bool = ~np.isnan(_numbers(self._columns[column]))
        return there

    def text(self, column: int) -> list[str]:
        """A column as text, empty where there is none."""
        return [cell or "" for cell in self._columns[column].cast(pa.string()).to_pylist()]

    def numbers(self, column: int, rows: I8) -> tuple[F8, I8]:
        """A column's values in these rows (NaN: null); all of them are numbers."""
        return _numbers(self._columns[column])[rows], np.empty(0, np.int64)


class SamplesParquet:
    """One table. It is read a piece at a time."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        self.position = 0
        self.bad: Counter[str] = Counter()
        self._named: list[str] = []
        self._cut = ""
        self._file = file
        self._size = path.stat().st_size
        names = file.schema_arrow.names
        try:
            self._layout = Layout(names)
        except ValueError as error:
            raise LogError(path, str(error).replace("the header has", "the table has")) from error
        for name in names:
            kind = file.schema_arrow.field(name).type
            if name not in (*TEXT_COLUMNS, *self._layout.unknown) and not _is_number(kind):
                raise LogError(path, f"column {name!r} has the type {kind}; it must be numbers")

    def info(self) -> SourceInfo:
        """Format, size, and what was wrong with the rows read so far."""
        problems = list(problems_of(self._cut, "rows", self.bad))
        if self._named:
            problems.append(f"first bad rows: {'; '.join(self._named)}")
        if self._layout.unknown:
            problems.append(f"columns that are not ours, ignored: {', '.join(self._layout.unknown)}")
        return SourceInfo(self.path, "parquet", self._size, tuple(problems), None, self.bad.total())

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Rows in the order of the file, at most `chunk` at a time."""
        self.bad, self._named, self._cut = Counter(), [], ""
        row = 0
        pieces = self._file.iter_batches(chunk)
        while (piece := self._next(pieces)) is not None:
            with library(self.path, "not a table of samples"):
                batch = to_batch(self._layout, ArrowRows(piece.columns, row), self._count)
            row += piece.num_rows
            self.position = self._size * row // max(1, self._file.metadata.num_rows)
            yield from within(batch, start, stop)

    def _next(self, pieces: Iterator[Any]) -> Any:
        try:
            return next(pieces, None)
        except Exception as error:  # what pyarrow runs into
            self._cut = f"cut off or damaged: {why(error)}"
            return None

    def _count(self, line: int, reason: str, detail: str, count: int = 1) -> None:
        self.bad[reason] += count
        if count == 1 and len(self._named) < NAMED_ROWS:
            self._named.append(f"row {line:,} {reason}" + (f" ({detail})" if detail else ""))


def _is_number(kind: Any) -> bool:
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_timestamp(kind)
    ) or bool(types.is_null(kind))


def _numbers(column: Any) -> F8:
    """A column as numbers, NaN for null; dates as seconds since 1970."""
    per = 1.0
    if types.is_timestamp(column.type):
        per = PER_SECOND[column.type.unit]
        column = column.cast(pa.int64())
    values: F8 = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    return values / per
