"""Messages of the stream `signal`: any named numbers of a vehicle, as one sample or as a frame; to rows and back.

A sample is a map with `t` and a number for each name: `{"t": 1700000000, "battery_v": 15.2, "armed": true, "mode":
"MISSION"}`. True and false are 1 and 0, a word stands for a state (its first eight characters, streams/signals.py),
null is absent. A frame is `{"v":1, "id":[…], "t":<number or column>, "<name>":<column>, …}` with one value per id; or
long, with one row per value: `{"v":1, "id":[…], "t":…, "signal":[…], "value":<column>}`. Every value becomes one row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.messages import Drop
from watchkeeper.streams.signals import RESERVED, is_name, label, label_of, name_columns, name_numbers, names_in

# What one sample may hold.
Sample = dict[str, float | bool | str | None]
# Words of a frame that are no signals of its own.
_HEAD = frozenset({"v", "id", "t", "via", "callsign", "kind"})


class SignalError(Exception):
    """A message that cannot be used, with its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def sample_rows(found: Sample) -> list[tuple[float, ...]]:
    """A row (t, value, name …) for each value. Raises SignalError."""
    t = found.get("t")
    if t is None:
        raise SignalError(Drop.MISSING)
    if isinstance(t, (str, bool)):
        raise SignalError(Drop.TYPE)
    rows = []
    for name, value in found.items():
        if name in RESERVED or value is None or value != value:  # noqa: PLR0124  NaN is absent
            continue
        if not is_name(name):
            raise SignalError(Drop.NAME)
        number = label(value) if isinstance(value, str) else float(value)
        rows.append((t, number, *name_numbers(name)))
    if not rows:
        raise SignalError(Drop.MISSING)
    return rows


def text_of(found: dict[str, Any], key: str) -> str | None:
    """A text of a message; None when it has none. Raises SignalError."""
    text = found.get(key)
    if text is not None and not isinstance(text, str):
        raise SignalError(Drop.TYPE)
    return text


def frame_rows(found: dict[str, Any], most: int) -> tuple[I8, F8, F8]:
    """Of each value its row in `id`, its time, and its fields as the columns of messages.py. Raises SignalError."""
    ids, version = found.get("id"), found.get("v", 1)
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise SignalError(Drop.MISSING if ids is None else Drop.TYPE)
    if version != 1 or not ids:
        raise SignalError(Drop.FRAME)
    n, t = len(ids), found.get("t")
    if t is None:
        raise SignalError(Drop.MISSING)
    times = np.full(n, float(t)) if _is_number(t) else _column(t, n)
    if isinstance(found.get("signal"), list):
        names, values = found["signal"], _column(found.get("value"), n).reshape(1, n)
        if len(names) != n:
            raise SignalError(Drop.FRAME)
        columns = _names(names)
        rows = np.flatnonzero(~np.isnan(values[0]))
        return rows, times[rows], np.concatenate([values[:, rows], columns[:, rows]])
    names = [name for name, column in found.items() if name not in _HEAD and column is not None]
    if not names:
        raise SignalError(Drop.MISSING)
    if n * len(names) > most:
        raise SignalError(Drop.FRAME)
    table = np.array([_column(found[name], n) for name in names]).T
    rows, which = np.nonzero(~np.isnan(table))
    return rows, times[rows], np.concatenate([table[rows, which].reshape(1, -1), _names(names)[:, which]])


def _names(names: Sequence[Any]) -> F8:
    if not all(isinstance(name, str) and is_name(name) for name in names):
        raise SignalError(Drop.NAME)
    return name_columns(names)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _column(values: Any, n: int) -> F8:
    if isinstance(values, bytes):
        if len(values) not in (8 * n, 4 * n):
            raise SignalError(Drop.FRAME)
        return np.frombuffer(values, "<f8" if len(values) == 8 * n else "<f4").astype(np.float64)
    if not isinstance(values, list):
        raise SignalError(Drop.TYPE)
    if len(values) != n:
        raise SignalError(Drop.FRAME)
    try:
        cells = [math.nan if v is None else label(v) if isinstance(v, str) else float(v) for v in values]
    except (TypeError, ValueError, OverflowError) as error:
        raise SignalError(Drop.TYPE) from error
    return np.array(cells, np.float64)


def spoken(name: str, value: float) -> dict[str, float | str]:
    """One value as a message says it: a state by its word."""
    return {name: label_of(value) or value}


def encode_rows(ids: Sequence[str], t: F8, data: F8, via: Sequence[str] | None) -> bytes:
    """A long frame."""
    frame: dict[str, Any] = {"v": 1, "id": list(ids)}
    frame["t"] = float(t[0]) if (t == t[0]).all() else t.astype("<f8").tobytes()
    frame["signal"], frame["value"] = names_in(data[1:]), data[0].astype("<f8").tobytes()
    if via is not None and any(via):
        frame["via"] = via[0] if len(set(via)) == 1 else list(via)
    return msgspec.msgpack.encode(frame)
