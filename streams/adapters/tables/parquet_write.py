"""Writes logs as Parquet (extra `parquet`, pyarrow): one table, a row per sample in order of arrival.

The columns are those of CSV logs: `t`, `id`, `kind`, `via`, `callsign` and the fields, only those that the log fills.
It is one table, because `pandas.read_parquet` gives one frame, and that frame is what `watchkeeper.watch` takes;
`filters` reads a single kind. `t` is seconds as float64, bit by bit. Absent values are null. Each column carries its
unit and its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.flat import EVERY_FIELD, Flattener

# Rows that are compressed together, and wait in memory until they are: some 25 MB when all columns are in use.
GROUP_ROWS = 1 << 16
_TEXTS = ("id", "kind", "via", "callsign", "signal")


class ParquetWriter:
    """One file. `columns` are those that it has; see flat.columns_in_use."""

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self.samples = 0
        self.notes: tuple[str, ...] = ()
        self._schema = pa.schema([_field(name) for name in columns])
        self._flattener = Flattener()
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._file = path.open("wb")
        self._parquet = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write(self, batch: Batch) -> None:
        """See Writer."""
        flat = self._flattener.flatten(batch)
        texts = dict(zip(_TEXTS, (flat.id, flat.kind, flat.via, flat.callsign, flat.signal), strict=True))
        arrays = []
        for name in self._schema.names:
            if name in texts:
                arrays.append(pa.array(texts[name], pa.string()))
            elif (column := flat.t if name == "t" else flat.fields.get(name)) is not None:
                arrays.append(pa.array(column, pa.float64(), mask=np.isnan(column)))
            else:
                arrays.append(pa.nulls(len(flat.t), pa.float64()))
        self._held.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._held_rows += len(flat.t)
        self.samples += len(flat.t)
        if self._held_rows >= GROUP_ROWS:
            self._end_group()

    def close(self) -> None:
        """See Writer."""
        self._end_group()
        self._parquet.close()
        self._file.close()

    def _end_group(self) -> None:
        if self._held:
            self._parquet.write_table(pa.Table.from_batches(self._held), row_group_size=self._held_rows)
        self._held, self._held_rows = [], 0


def _field(name: str) -> pa.Field:
    if name in _TEXTS:
        return pa.field(name, pa.string())
    known = EVERY_FIELD.get(name)
    about = {"unit": "s", "doc": "Unix seconds"} if known is None else {"unit": known.unit, "doc": known.doc}
    return pa.field(name, pa.float64(), metadata=about)
