"""A frame as a log: rows to samples of the pipeline, checked once. Called by the Python API and by evaluations.

One row is one sample, or several where it fills the fields of several kinds. Columns are those of the messages
(messages.py): `id`, `t` (numbers or dates), the fields, and perhaps `via`, `callsign` and `kind`. Without `kind` the
fields tell what a row is, by the same rules as in CSV logs (logs/csv_table.py). Rows need no order: a frame is a
table, not a stream, so its samples are taken in order of time.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool, Columns
from watchkeeper.streams.frames.cells import Cells, FrameError, numbers, texts, times
from watchkeeper.streams.logs.chunks import arrival_times, cut, numbered
from watchkeeper.streams.logs.csv_table import Layout, own_fields
from watchkeeper.streams.logs.source import SourceInfo
from watchkeeper.streams.messages import FIELDS, GPS_POSITIONS, ID_MAX, KIND_OF_WORD, SIGNAL, Drop, Field, Kind
from watchkeeper.streams.signals import is_name, name_columns

NAME = Path("<frame>")
# How many unknown words are named in a message.
_NAMED = 3


def is_frame(data: object) -> bool:
    """Whether this is a frame, a table of Arrow or a dictionary of columns."""
    return (
        isinstance(data, Mapping)
        or hasattr(data, "__arrow_c_stream__")
        or isinstance(nw.from_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))
    )


def columns_in(data: object) -> dict[str, Cells]:
    """The columns of a frame by name. Raises FrameError when there are none, or no rows."""
    if isinstance(data, Mapping):
        found: dict[str, Cells] = {str(name): cells for name, cells in data.items()}
    else:
        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if not isinstance(frame, nw.DataFrame):
            frame = nw.from_arrow(data, backend=_arrow_backend())
        found = {name: frame[name] for name in frame.columns}
    lengths = {len(cells) for cells in found.values()}
    if len(lengths) > 1:
        raise FrameError(f"columns of {' and '.join(map(str, sorted(lengths)))} rows; allowed: one length for all")
    if not lengths or not max(lengths):
        raise FrameError("the frame has no rows" if lengths else "the frame has no columns")
    return found


def _arrow_backend() -> Any:
    from watchkeeper.streams.frames.write import choose  # noqa: PLC0415 - only for bare Arrow streams

    return choose(None)


class FrameLog:
    """A frame that reads like any log (logs/source.py). `drops` counts samples that were refused here, by reason."""

    def __init__(self, data: object) -> None:
        self.position = 0
        self.drops: Counter[tuple[str, str]] = Counter()
        columns = columns_in(data)
        try:
            layout = Layout(list(columns))
        except ValueError as error:
            problem = str(error).replace("the header has", "the frame has")
            raise FrameError(f"{problem} (allowed: t, id, kind, via, callsign and the fields of a stream)") from None
        if layout.unknown:
            warnings.warn(f"columns that are not ours, ignored: {_hinted(layout.unknown)}", stacklevel=_caller())
        self._unknown = layout.unknown
        self._columns = columns
        self._rows = len(next(iter(columns.values())))
        t, self.clock = times(columns["t"], "t")
        self._batch = self._by_time(layout, t)
        self._t = arrival_times(self._batch)

    def info(self) -> SourceInfo:
        """Its size is in samples."""
        problems = [f"columns that are not ours, ignored: {', '.join(self._unknown)}"] if self._unknown else []
        if self.drops:
            counts = ", ".join(f"{n:,} {kind} {reason}" for (kind, reason), n in sorted(self.drops.items()))
            problems.append(f"{self.drops.total():,} bad samples ({counts})")
        return SourceInfo(NAME, "frame", len(self._t), tuple(problems), None, self.drops.total())

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Samples by time, at most `chunk` at once."""
        first, last = np.searchsorted(self._t, (start, stop)).tolist()
        edges = [*range(first, last, chunk), last]
        for end, batch in zip(edges[1:], cut(self._batch, edges), strict=True):
            self.position = end
            yield batch

    def _by_time(self, layout: Layout, t: F8) -> Batch:
        members = self._members(layout)
        for kind in members:
            _complete(kind, self._columns)
        names = texts(self._columns["id"])
        ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
        vid = np.fromiter(map(ids.__getitem__, names), np.int32, len(names))
        nameless = np.array([not (0 < len(name) <= ID_MAX and name.isprintable()) for name in ids])[vid]
        timeless: Bool = np.isnan(t)
        vias, via = self._vias()
        # rows in order of time, and a row of several kinds as one sample after the other
        rank: I8 = np.empty(len(t), np.int64)
        rank[np.argsort(t, kind="stable")] = np.arange(len(t))
        kinds: dict[Kind, Columns] = {}
        for kind, member in members.items():
            self._drop(kind, Drop.ID, int((member & nameless).sum()))
            self._drop(kind, Drop.MISSING, int((member & timeless & ~nameless).sum()))
            rows = np.flatnonzero(member & ~nameless & ~timeless)
            if kind is Kind.SIGNAL:
                rows = self._named(rows)
            rows = rows[np.argsort(rank[rows])]
            if len(rows):
                seq = rank[rows] * len(Kind) + int(kind)
                kinds[kind] = Columns(seq, vid[rows], via[rows], t[rows], self._data(kind, rows))
        return numbered(Batch(list(ids), kinds, vias, self._callsigns(names)))

    def _data(self, kind: Kind, rows: I8) -> F8:
        data = np.full((len(FIELDS[kind]), len(rows)), np.nan)
        for c, field in enumerate(FIELDS[kind]):
            if field.name in self._columns:
                data[c] = self._numbers(field)[rows]
        if kind is Kind.SIGNAL:
            names = texts(self._columns["signal"])
            data[SIGNAL.name_0 :] = name_columns([names[row] for row in rows.tolist()])
        return data

    def _named(self, rows: I8) -> I8:
        """Those of these rows that name a signal."""
        names = texts(self._columns["signal"])
        good = np.array([is_name(names[row]) for row in rows.tolist()], bool)
        self._drop(Kind.SIGNAL, Drop.NAME, int((~good).sum()))
        named: I8 = rows[good]
        return named

    def _numbers(self, field: Field) -> F8:
        return numbers(self._columns[field.name], field.name, f"{field.lo:g} to {field.hi:g} {field.unit}".rstrip())

    def _members(self, layout: Layout) -> dict[Kind, Bool]:
        """For each kind, which rows are samples of it."""
        if "kind" in self._columns:
            words = texts(self._columns["kind"])
            if unknown := [word for word in dict.fromkeys(words) if word.lower() not in KIND_OF_WORD]:
                named = ", ".join(repr(word) for word in unknown[:_NAMED])
                raise FrameError(f"column 'kind': {named} is no kind of stream; allowed: {', '.join(KIND_OF_WORD)}")
            codes = np.array([KIND_OF_WORD[word.lower()] for word in words])
            return {kind: codes == kind for kind in Kind if (codes == kind).any()}
        if len(layout.kinds) == 1:
            return {layout.kinds[0]: np.ones(self._rows, bool)}
        members: dict[Kind, Bool] = {}
        for kind in layout.kinds:
            own = [self._numbers(field) for field in own_fields(kind) if field.name in self._columns]
            members[kind] = np.any(~np.isnan(own), axis=0)
        if lost := int((~np.any(list(members.values()), axis=0)).sum()):
            self.drops["row", Drop.MISSING] += lost
        return {kind: member for kind, member in members.items() if member.any()}

    def _vias(self) -> tuple[list[str], I4]:
        if "via" not in self._columns:
            return [], np.full(self._rows, -1, np.int32)
        names = texts(self._columns["via"])
        index = {name: i for i, name in enumerate(name for name in dict.fromkeys(names) if 0 < len(name) <= ID_MAX)}
        return list(index), np.array([index.get(name, -1) for name in names], np.int32)

    def _callsigns(self, names: list[str]) -> dict[str, str]:
        if "callsign" not in self._columns:
            return {}
        signs = texts(self._columns["callsign"])
        return {name: sign[:ID_MAX] for name, sign in zip(names, signs, strict=True) if name and sign}

    def _drop(self, kind: Kind, reason: str, n: int) -> None:
        if n:
            self.drops[kind.word, reason] += n


def _complete(kind: Kind, columns: Mapping[str, Cells]) -> None:
    """Refuse a frame in which no sample of this kind can be whole: it would be dropped row by row."""
    needed = ["signal", "value"] if kind is Kind.SIGNAL else [f.name for f in FIELDS[kind] if f.required]
    missing = [name for name in needed if name not in columns]
    if kind is Kind.GPS and not any(set(pair) <= columns.keys() for pair in GPS_POSITIONS):
        missing = [" and ".join(pair) for pair in GPS_POSITIONS]
        raise FrameError(f"gps samples need a position: no columns {' nor '.join(missing)}")
    if missing:
        optional = ", ".join(field.name for field in FIELDS[kind] if not field.required)
        raise FrameError(
            f"no column {', '.join(map(repr, missing))}: {kind.word} samples need it; optional: {optional}"
        )


def _caller() -> int:
    """How far up the stack the user's own line is, for warnings."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("watchkeeper."):
        frame, level = frame.f_back, level + 1
    return level


def _hinted(unknown: list[str]) -> str:
    known = [
        "t",
        "id",
        "kind",
        "via",
        "callsign",
        "signal",
        *(field.name for fields in FIELDS.values() for field in fields),
    ]
    near = {name: get_close_matches(name.lower(), known, 1, 0.7) for name in unknown}
    return ", ".join(f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in unknown)
