"""Named records: a class whose annotations are both the types for the checker and the layout in memory.

    class Track:
        t: float = math.nan
        agree: int = 0
        place: Annotated[F8, (3,)]
        slot: Int4

    tracks = blank(Track, capacity)

makes a NumPy array of structures. A kernel gets the array, or one record at a time (`track = tracks[slot]`): to the
compiler a pointer, to the reader named fields. `int` is int64, `float` float64, `bool` one byte, `Annotated` an array
of fixed shape, or a scalar of another width (Int4). The values in the class are those of a blank record; without one
a field is zero.

With NUMBA_DISABLE_JIT=1 the tables are `np.recarray`: only their elements have fields as attributes in plain Python.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numba
import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.fleet.tables import zeros

Float4 = Annotated[float, np.float32]
Int4 = Annotated[int, np.int32]

_SCALARS: dict[Any, type[np.generic]] = {int: np.int64, float: np.float64, bool: np.bool_}


@cache
def layout(record: type) -> np.dtype[Any]:
    """The NumPy structure that a record class describes."""
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        if hasattr(np.record, name):
            raise TypeError(f"{record.__name__}.{name}: NumPy's records have an attribute of that name")
        if get_origin(hint) is Annotated:
            base, detail = get_args(hint)
            if base in _SCALARS:
                fields.append((name, detail, ()))
            else:
                # NDArray is short for ndarray[shape, dtype[scalar]]; from NumPy 2.5 on it is an alias with a scalar
                inner = get_args(base)[-1]
                scalar = get_args(inner)[0] if get_origin(inner) is np.dtype else inner
                fields.append((name, scalar, detail))
        else:
            fields.append((name, _SCALARS[hint], ()))
    return np.dtype(fields, align=True)


@cache
def _values(record: type) -> NDArray[Any] | None:
    """One blank record; None where all of it is zero."""
    row, zero = np.zeros((), layout(record)), True
    for name in row.dtype.names or ():
        if (value := getattr(record, name, 0)) != 0:
            row[name], zero = value, False
    return None if zero else row


def blank(record: type, shape: int | tuple[int, ...]) -> NDArray[Any]:
    """An array of blank records. Memory of records that are all zeros is not touched before it is used."""
    rows, values = zeros(shape, layout(record)), _values(record)
    if values is not None:
        rows[...] = values
    return _readable(rows)


def room(record: type, shape: int | tuple[int, ...]) -> NDArray[Any]:
    """An array of records with nothing meaningful in them, for a kernel that fills them all: quicker than `blank`."""
    return _readable(np.empty(shape, layout(record)))


def _readable(rows: NDArray[Any]) -> NDArray[Any]:
    return rows.view(np.recarray) if numba.config.DISABLE_JIT else rows  # type: ignore[attr-defined]


def take_over(rows: NDArray[Any], saved: NDArray[Any]) -> None:
    """Copy saved records into the first rows. ValueError when they have another layout, or are too many."""
    if saved.dtype != rows.dtype or saved.shape[1:] != rows.shape[1:] or len(saved) > len(rows):
        raise ValueError(f"saved records of another layout: {saved.shape} of {saved.dtype}")
    rows[: len(saved)] = saved
