"""Columns to a frame of the library that the caller uses. Called wherever a result has a `to_frame`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np

from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.frames.cells import Clock
from watchkeeper.streams.logs.flat import EVERY_FIELD, TEXTS, Flattener

Backend = Literal["pandas", "polars", "pyarrow"]
# Where nothing says which: the first of these that is installed.
BACKENDS: tuple[Backend, ...] = ("pandas", "polars", "pyarrow")
TEXT, NUMBER, COUNT, FLAG = nw.String(), nw.Float64(), nw.Int64(), nw.Boolean()


def choose(backend: str | None) -> Backend:
    """The library that makes the frame. Raises ImportError when it is not installed, ValueError when it is unknown."""
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend {backend!r}: allowed are {', '.join(BACKENDS)}, or None for the first installed")
    wanted = BACKENDS if backend is None else (backend,)
    for name in wanted:
        if importlib.util.find_spec(name) is not None:
            return name
    raise ImportError(f"a frame needs {' or '.join(wanted)}: pip install {wanted[0]}")


def backend_of(data: object) -> Backend | None:
    """The library that a frame is of; None for anything else."""
    frame = nw.from_native(data, pass_through=True)
    name = frame.implementation.value if isinstance(frame, (nw.DataFrame, nw.LazyFrame)) else None
    return cast("Backend", name) if name in BACKENDS else None


def frame_of(columns: Mapping[str, Any], schema: Mapping[str, nw.dtypes.DType], backend: str | None) -> Any:
    """A frame with these columns (None or NaN: no value) and types, which it has also when it is empty."""
    made = nw.from_dict(
        {name: columns[name] for name in schema},
        schema=dict(schema),
        backend=choose(backend),
    )
    # in pandas NaN is how a value is absent; elsewhere it is a number, and counts in every mean
    absent = [] if made.implementation.is_pandas() else [name for name, kind in schema.items() if kind == NUMBER]
    return (made.with_columns(nw.col(absent).fill_nan(None)) if absent else made).to_native()


def rows_frame(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, nw.dtypes.DType], backend: str | None) -> Any:
    """A frame with one row per mapping."""
    return frame_of({name: [row[name] for row in rows] for name in schema}, schema, backend)


def time_type(clock: Clock) -> nw.dtypes.DType:
    """The type of a column of times, written as those of the input were."""
    return {"seconds": NUMBER, "naive": nw.Datetime("us"), "utc": nw.Datetime("us", "UTC")}[clock]


def time_cells(seconds: Iterable[float | None], clock: Clock) -> list[Any]:
    """Times as the input's were written."""
    if clock == "seconds":
        return list(seconds)
    return [None if t is None else _date(t, clock) for t in seconds]


def _date(t: float, clock: Clock) -> datetime:
    date = datetime.fromtimestamp(t, UTC)
    return date if clock == "utc" else date.replace(tzinfo=None)


def samples_frame(batches: Iterable[Batch], backend: str | None) -> Any:
    """All samples of a log or a simulation, one row each in order of arrival: what watch() reads back."""
    flattener = Flattener()
    flats = [flattener.flatten(batch) for batch in batches if len(batch)]
    used = {name for flat in flats for name in flat.fields}
    values = {"t": _joined([flat.t for flat in flats])}
    for name in (name for name in EVERY_FIELD if name in used):
        values[name] = _joined([flat.fields.get(name, np.full(len(flat.t), np.nan)) for flat in flats])
    columns: dict[str, Any] = {
        "id": [name for flat in flats for name in flat.id],
        "kind": [word for flat in flats for word in flat.kind],
        **values,
    }
    schema = {"id": TEXT, "kind": TEXT} | dict.fromkeys(values, NUMBER)
    for name in TEXTS:
        texts = [text for flat in flats for text in getattr(flat, name)]
        if any(text is not None for text in texts):
            columns[name], schema[name] = texts, TEXT
    return frame_of(columns, schema, backend)


def _joined(parts: Sequence[F8]) -> F8:
    return np.concatenate([np.empty(0), *parts])
