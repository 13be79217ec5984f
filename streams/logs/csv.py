"""CSV logs, `.csv` and `.csv.gz`: one row per sample, columns named as in messages.py plus `id`, `t` and `kind`.

`callsign` and `via` are text, an empty cell (or `nan`) is absent, true and false are 1 and 0. What a row is, and
what happens without a `kind` column, is said in csv_table.py. Bad rows never stop the reading: they are counted by
reason, with the line numbers of the first few. Memory holds a block of lines, whatever the file's length.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.files import PIECE_BYTES, open_file, unpacked
from watchkeeper.streams.logs.base import LogError, SourceInfo
from watchkeeper.streams.logs.chunks import select_time
from watchkeeper.streams.logs.csv_scan import Table
from watchkeeper.streams.logs.csv_table import NAMED_ROWS, Layout, to_batch
from watchkeeper.streams.messages import Drop

# Bytes read at once, and so the longest line that is read at all.
BLOCK_BYTES = 1 << 20
# More than ten times the fields there are. Each row of a table takes memory for all of its columns.
COLUMNS_MAX = 1000
# Cells of one table in memory: what a block of ordinary lines has at most. Empty lines have few bytes and all cells.
CELLS_AT_ONCE = 2 * BLOCK_BYTES
_BOM = b"\xef\xbb\xbf"
# Separates cells once quotes are gone; it has no place in a name.
_UNIT = "\x1f"


class CsvLog:
    """One CSV file."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.position = 0
        self.bad: Counter[str] = Counter()
        self._named: list[str] = []
        self._cut: str | None = None
        try:
            with open_file(self.path) as raw:
                self._size = raw.seek(0, io.SEEK_END)
                first = _first_line(unpacked(raw))[0].removeprefix(_BOM).decode("utf-8", "replace")
            header = next(csv.reader([first]), [])
            if not header:
                raise LogError(self.path, "empty: a CSV log starts with a line of column names")
            if len(header) > COLUMNS_MAX:
                raise LogError(self.path, f"line 1: {len(header):,} columns, at most {COLUMNS_MAX:,} are read")
            self._layout = Layout([name.strip() for name in header])
        except (OSError, csv.Error, ValueError) as error:
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
        """Rows in the order of the file, at most `chunk` at a time."""
        self.bad, self._named, self._cut = Counter(), [], None
        with open_file(self.path) as raw:
            for table in self._tables(raw):
                for at in range(0, len(table), chunk):
                    batch = to_batch(self._layout, table.keep(slice(at, at + chunk)), self._count)
                    if start > -math.inf or stop < math.inf:
                        batch = select_time(batch, start, stop)
                    if len(batch):
                        yield batch

    def _count(self, line: int, reason: str, detail: str, count: int = 1) -> None:
        self.bad[reason] += count
        if count == 1 and len(self._named) < NAMED_ROWS:
            self._named.append(f"line {line:,} {reason}" + (f" ({detail})" if detail else ""))

    def _tables(self, raw: BinaryIO) -> Iterator[Table]:
        text = unpacked(raw)
        _, rest = _first_line(text)
        blocks = self._blocks(raw, text, rest)
        line = 2
        for block in blocks:
            if b'"' in block:
                yield from self._quoted(chain([block], blocks), line)
                return
            for part in _parts(block, max(1, CELLS_AT_ONCE // self._layout.width)):
                table = Table(part, b",", self._layout.width, line)
                line += len(table)
                yield table

    def _blocks(self, raw: BinaryIO, text: BinaryIO, rest: bytes) -> Iterator[bytes]:
        """The file in blocks that end with a newline. A line longer than a block is cut into (bad) pieces."""
        while True:
            try:
                block = text.read(BLOCK_BYTES)
            except OSError as error:
                self._cut = f"cut off or damaged at byte {raw.tell():,}: {error}"
                # whole lines before the damage are read, the last one may be half
                if end := rest.rfind(b"\n") + 1:
                    yield rest[:end]
                return
            self.position = raw.tell()
            if not block:
                break
            end = block.rfind(b"\n") + 1
            if end:
                yield rest + block[:end]
                rest = block[end:]
            elif len(rest) > BLOCK_BYTES:
                yield rest + b"\n"
                rest = block
            else:
                rest += block
        if rest:
            yield rest + b"\n"

    def _quoted(self, blocks: Iterator[bytes], first_line: int) -> Iterator[Table]:
        """The rest of a file in which quotes occur: Python's csv module takes them away."""
        lines = (line + "\n" for block in blocks for line in block.decode("utf-8", "replace").split("\n")[:-1])
        rows = csv.reader(lines)
        plain: list[str] = []
        numbers: list[int] = []
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                self._count(first_line - 1 + rows.line_num, Drop.SYNTAX, str(error))
                continue
            if row is not None:
                plain.append(_UNIT.join(" ".join(cell.splitlines()).strip() for cell in row))
                numbers.append(first_line - 1 + rows.line_num)
            if plain and (row is None or len(plain) == 8192):
                block = "\n".join([*plain, ""]).encode()
                table = Table(block, _UNIT.encode(), self._layout.width, 0)
                table.lines = np.array(numbers)
                yield table
                plain, numbers = [], []
            if row is None:
                return


def _first_line(text: BinaryIO) -> tuple[bytes, bytes]:
    """The first line of a file, and what was read behind it."""
    read = b""
    while b"\n" not in read and len(read) < BLOCK_BYTES and (piece := text.read(PIECE_BYTES)):
        read += piece
    line, _, rest = read.partition(b"\n")
    return line, rest


def _parts(block: bytes, lines: int) -> Iterator[bytes]:
    """A block of whole lines in parts of so many lines."""
    if block.count(b"\n") <= lines:
        yield block
        return
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))[lines - 1 :: lines] + 1
    for start, stop in pairwise(dict.fromkeys([0, *ends.tolist(), len(block)])):
        yield block[start:stop]
