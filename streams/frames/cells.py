"""One column of a frame as NumPy: numbers, times or names. A wrong type is a FrameError that names the column.

Columns come as narwhals Series (any frame) or as plain sequences (a dictionary of lists or arrays).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8

Cells = nw.Series[Any] | Sequence[Any] | NDArray[Any]
# How times were written: numbers, dates without a zone (taken as UTC), or dates with one.
Clock = Literal["seconds", "naive", "utc"]
_SHOWN = 30


class FrameError(ValueError):
    """A frame that cannot be used; the message names the column and what is allowed."""


def numbers(cells: Cells, name: str, allowed: str) -> F8:
    """The column as numbers, NaN where a cell is empty; true and false are 1 and 0."""
    if isinstance(cells, nw.Series):
        if cells.dtype.is_numeric() or cells.dtype == nw.Boolean:
            return np.asarray(cells.cast(nw.Float64()).to_numpy(), np.float64)
        cells = cells.to_list()
    plain = np.asarray(cells)
    if plain.dtype.kind in "biuf":
        return plain.astype(np.float64)
    found = np.full(len(plain), np.nan)
    for row, cell in enumerate(plain.tolist()):
        if _is_empty(cell):
            continue
        if isinstance(cell, str) or not hasattr(cell, "__float__"):
            raise FrameError(f"column {name!r}: {_word(cell)} in row {row:,} is not a number; allowed: {allowed}")
        found[row] = float(cell)
    return found


def times(cells: Cells, name: str) -> tuple[F8, Clock]:
    """The column as seconds since 1970 (or of a simulation), NaN where a cell is empty, and how it was written."""
    allowed = "seconds as numbers, or dates with time"
    if isinstance(cells, nw.Series):
        if isinstance(cells.dtype, nw.Datetime):
            clock: Clock = "naive" if cells.dtype.time_zone is None else "utc"
            stamps = np.asarray(cells.dt.timestamp("us").cast(nw.Float64()).to_numpy(), np.float64)
            # narwhals gives an empty time as NaN, or as the least integer where the frame has no other
            return np.where(np.asarray(cells.is_null().to_numpy()), np.nan, stamps / 1e6), clock
        if cells.dtype.is_numeric():
            return numbers(cells, name, allowed), "seconds"
        cells = cells.to_list()
    plain = np.asarray(cells)
    if plain.dtype.kind == "M":
        stamps = plain.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(plain), np.nan, stamps), "naive"
    first = next((cell for cell in plain.tolist() if not _is_empty(cell)), None)
    if not isinstance(first, datetime):
        if isinstance(first, date):
            raise FrameError(f"column {name!r}: dates without a time of day; allowed: {allowed}")
        return numbers(cells, name, allowed), "seconds"
    seconds = [np.nan if _is_empty(cell) else _unix_s(cell, name) for cell in plain.tolist()]
    return np.array(seconds, np.float64), "naive" if first.tzinfo is None else "utc"


def texts(cells: Cells) -> list[str]:
    """The column as text, empty where a cell is; whole numbers without a point, as ids often are."""
    values = cells.to_list() if isinstance(cells, nw.Series) else np.asarray(cells, object).tolist()
    # text as it is, at the speed of a comparison: a frame has one name per row
    return [cell if type(cell) is str else "" if _is_empty(cell) else _text(cell) for cell in values]


def _text(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _unix_s(cell: Any, name: str) -> float:
    if not isinstance(cell, datetime):
        raise FrameError(f"column {name!r}: {_word(cell)} among dates; allowed: one way to write times in a column")
    return (cell if cell.tzinfo is not None else cell.replace(tzinfo=UTC)).timestamp()


def _is_empty(cell: Any) -> bool:
    if cell is None:
        return True
    try:
        return bool(cell != cell)  # noqa: PLR0124 - NaN and NaT are the values that differ from themselves
    except TypeError:  # pandas.NA has no truth
        return True


def _word(cell: Any) -> str:
    return repr(cell)[:_SHOWN]
