"""Writes CSV logs, `.csv` and `.csv.gz`: what csv.py reads, one row per sample in order of arrival.

    t,id,kind,via,callsign,lat,lon,alt_ft,…

Only columns that the log fills are written. Numbers have as many digits as it takes to read the same bits back, at most
17; an absent value is an empty cell. Text is quoted where it has to be. The lines of a file are one stream: `.gz` holds
no name and no date, so the same samples give the same bytes.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.logs.flat import Flattener

# A gzip header and trailer around the deflated bytes, without a name or a date.
_GZIP_WBITS = 31
_GZIP_LEVEL = 6


class CsvWriter:
    """One CSV file. `columns` are those that it has; see flat.columns_in_use."""

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self.samples = 0
        self.notes: tuple[str, ...] = ()
        self._columns = columns
        self._flattener = Flattener()
        self._file = path.open("wb")
        packed = path.name.lower().endswith(".gz")
        self._deflate = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WBITS) if packed else None
        self._put(",".join(columns) + "\n")

    def write(self, batch: Batch) -> None:
        """See Writer."""
        flat = self._flattener.flatten(batch)
        absent = [""] * len(flat.t)
        cells: dict[str, Sequence[str | None]] = {
            "t": list(map(repr, flat.t.tolist())),
            "id": flat.id,
            "kind": flat.kind,
        }
        # csv writes None as an empty cell
        cells |= {"via": flat.via, "callsign": flat.callsign, "signal": flat.signal}
        cells |= {name: _written(column) for name, column in flat.fields.items()}
        text = io.StringIO()
        rows = zip(*(cells.get(name, absent) for name in self._columns), strict=True)
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._put(text.getvalue())
        self.samples += len(flat.t)

    def close(self) -> None:
        """See Writer."""
        if self._deflate is not None:
            self._file.write(self._deflate.flush())
        self._file.close()

    def _put(self, text: str) -> None:
        data = text.encode()
        self._file.write(data if self._deflate is None else self._deflate.compress(data))


def _written(column: F8) -> list[str]:
    """The shortest text that reads as the same number; nothing for NaN."""
    cells = [""] * len(column)
    there = np.flatnonzero(~np.isnan(column))
    for row, text in zip(there.tolist(), map(repr, column[there].tolist()), strict=True):
        cells[row] = text
    return cells
