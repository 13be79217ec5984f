"""Parquet files (extra `parquet`, pyarrow): our own, exports of the `traffic` library and dumps of OpenSky.

Which of them a file is, its columns tell: `timestamp` and `latitude` are traffic's (see traffic.py, the same
columns and rules), `time` and `lat` OpenSky's (opensky.py), `t` and `id` ours (parquet_samples.py; written by
parquet_write.py). Of flights, only the columns that are used are read.

OpenSky's dumps are in order of time and are read a piece at a time. traffic's tables are in order of flights, so they
are read whole and sorted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from watchkeeper.streams.adapters.base import AdapterDeclaration, problems_of, within
from watchkeeper.streams.adapters.tables import opensky
from watchkeeper.streams.adapters.tables import traffic as traffic_json
from watchkeeper.streams.adapters.tables.traffic import Cells, TrafficJson
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.library import library, reason
from watchkeeper.streams.logs.base import COLUMNS, Format, LogError, Source, SourceInfo, Target

PIECE_ROWS = 16_384


def open_parquet(path: Path) -> Source:
    """A table of flights, or of samples. Raises LogError."""
    file = _file(path)
    names = set(file.schema_arrow.names)
    if set(traffic_json.REQUIRED) <= names:
        return TrafficParquet(path)
    if set(opensky.REQUIRED) <= names:
        return OpenSkyParquet(path)
    if {"t", "id"} <= names:
        # pyarrow is there: the file has been opened
        from watchkeeper.streams.adapters.tables.parquet_samples import SamplesParquet  # noqa: PLC0415

        return SamplesParquet(path, file)
    known = f"{', '.join(traffic_json.REQUIRED)} of traffic, {', '.join(opensky.REQUIRED)} of OpenSky, or t, id of ours"
    raise LogError(path, f"not a table of flights: it has not the columns {known}")


def _file(path: Path) -> Any:
    try:
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LogError(path, 'a Parquet file needs pyarrow: pip install "watchkeeper[parquet]"') from error
    with library(path, "not a Parquet file"):
        return parquet.ParquetFile(path)


def _cells(column: Any) -> Cells:
    """A column's cells as Python has them; times as numbers since 1970 in their own unit."""
    from pyarrow import int64, types  # noqa: PLC0415

    if types.is_timestamp(column.type):
        column = column.cast(int64())
    cells: Cells = column.to_pylist()
    return cells


class TrafficParquet(TrafficJson):
    """An export of the traffic library. It is read when it is opened, and kept as columns."""

    format = "traffic parquet"

    def _load(self) -> tuple[int, dict[str, Cells]]:
        file = _file(self.path)
        with library(self.path, "cut off"):
            names = [name for name in traffic_json.COLUMNS if name in file.schema_arrow.names]
            table = file.read(columns=names)
            columns = {name: _cells(table.column(name)) for name in names}
        # a column without a single value is as good as absent, as in JSON, unless nothing works without it
        used = {n: c for n, c in columns.items() if n in traffic_json.REQUIRED or any(x is not None for x in c)}
        return self.path.stat().st_size, used


class OpenSkyParquet:
    """A dump of OpenSky."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self._size = path.stat().st_size
        self._refused: Counter[str] = Counter()
        self._cut = ""

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:  # noqa: ARG002
        """Samples in the order of the file."""
        from pyarrow import types  # noqa: PLC0415

        file = _file(self.path)
        names = [name for name in file.schema_arrow.names if name in opensky.COLUMNS]
        # seconds, unless the column says otherwise
        units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
        per_second = {f.name: units[f.type.unit] for f in file.schema_arrow if types.is_timestamp(f.type)}
        states = opensky.States()
        self._refused, self._cut, rows = states.refused, "", 0
        try:
            for piece in file.iter_batches(PIECE_ROWS, columns=names):
                columns = {name: _cells(piece.column(name)) for name in names}
                for name, per in per_second.items():
                    if name in columns:
                        columns[name] = [None if cell is None else cell / per for cell in columns[name]]
                for row in opensky.rows_of(columns):
                    states.add_row(row)
                rows += piece.num_rows
                self.position = self._size * rows // max(1, file.metadata.num_rows)
                yield from within(states.take(), start, stop)
        except Exception as error:  # what pyarrow runs into, and numbers that it hands on
            self._cut = f"cut off or damaged: {reason(error)}"
        states.close()
        yield from within(states.take(), start, stop)

    def info(self) -> SourceInfo:
        """Format, size, and what was refused."""
        problems = problems_of(self._cut, "rows", self._refused)
        return SourceInfo(self.path, "opensky parquet", self._size, problems, None, self._refused.total())


PARQUET = AdapterDeclaration(
    name="parquet",
    help="Parquet tables: our own, of the traffic library and of OpenSky",
    docs="adapters/opensky.md",
    extra="watchkeeper[parquet]",
    formats=(Format("parquet", f"{__name__}:open_parquet", (".parquet",), b"PAR1"),),
    targets=(
        Target(
            name="parquet",
            help="one table, a row per sample: pandas, Polars, DuckDB",
            writer="watchkeeper.streams.adapters.tables.parquet_write:ParquetWriter",
            suffixes=(".parquet",),
            takes=(COLUMNS,),
            needs={"pyarrow": "pyarrow"},
            extra="watchkeeper[parquet]",
        ),
    ),
)
