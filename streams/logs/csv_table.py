"""A table of cells to a batch: the part of the CSV reader that knows columns and kinds. Files are csv.py's job.

Parquet tables of samples are read by the same rules (streams/adapters/tables/parquet_samples.py).

`kind` says what a row is (adsb, gps, imu, action, route, signal; a signal has its name in the column `signal` and its
number in `value`). Without that column the fields tell: a row is a sample of
each kind of which it fills a field that no other kind has (`alt_ft` makes it ADS-B, `imu_ax` IMU, `alt_m` GPS); rows
with bare `lat` and `lon` are ADS-B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Protocol, Self

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, U1, Bool, CheckedBatch, Columns
from watchkeeper.streams.check import OK, REASONS, sound
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.messages import FIELDS, ID_MAX, KIND_OF_WORD, SIGNAL, Drop, Field, Kind
from watchkeeper.streams.signals import is_name, name_columns

# How many bad rows are named by line; the rest are only counted.
NAMED_ROWS = 5
TEXT_COLUMNS = ("id", "kind", "via", "callsign", "signal")
_FLAGS = {"true": 1.0, "false": 0.0}
_KINDS_WITH = Counter(field.name for fields in FIELDS.values() for field in fields)
# Fields that only one kind has: a row that fills one of them says what it is. A bare `value` may be anything.
_OWN: dict[Kind, list[str]] = {
    kind: [f.name for f in FIELDS[kind] if _KINDS_WITH[f.name] == 1 and kind is not Kind.SIGNAL] for kind in Kind
}


def own_fields(kind: Kind) -> list[Field]:
    """The fields that only this kind has."""
    return [field for field in FIELDS[kind] if field.name in _OWN[kind]]


class OnBadRow(Protocol):
    """Line number, Drop reason and detail for people; or of how many rows it is the first."""

    def __call__(self, line: int, reason: str, detail: str, count: int = 1) -> None:
        """Count it, and name it if it is one."""
        ...


class Rows(Protocol):
    """Rows of a table; `cells` says how many cells each has, `lines` what people call it."""

    cells: I8
    lines: I8

    def __len__(self) -> int: ...

    def keep(self, rows: Bool | slice) -> Self:
        """The same table with these rows only."""
        ...

    def is_blank(self) -> Bool:
        """Rows that say nothing."""
        ...

    def filled(self, column: int) -> Bool:
        """Rows in which this cell is not empty."""
        ...

    def text(self, column: int) -> list[str]:
        """A column as text."""
        ...

    def numbers(self, column: int, rows: I8) -> tuple[F8, I8]:
        """A column's values in the given rows (NaN: empty), and which of those rows hold something else."""
        ...


class Layout:
    """What a header line means. Raises ValueError, saying what is missing."""

    def __init__(self, header: Sequence[str]) -> None:
        self.width = len(header)
        # of two columns with one name the first counts
        self.place = {name: i for i, name in reversed(list(enumerate(header)))}
        self.unknown = [name for name in header if name not in {"t", *TEXT_COLUMNS, *_KINDS_WITH}]
        has = f"the header has: {', '.join(header)}"
        for name in ("t", "id"):
            if name not in self.place:
                raise ValueError(f"no column {name!r}; {has}")
        self.kinds: list[Kind] = list(Kind)
        if "kind" not in self.place:
            self.kinds = [kind for kind in Kind if any(name in self.place for name in _OWN[kind])]
            if not self.kinds and {"lat", "lon"} <= self.place.keys():
                self.kinds = [Kind.ADSB]
        if not self.kinds:
            raise ValueError(f"no column says what the rows are; {has}")


def to_batch(layout: Layout, table: Rows, on_bad: OnBadRow) -> CheckedBatch:
    """The good samples among the rows; every bad row is reported once."""
    table = _whole_rows(layout, table, on_bad)
    return _Reading(layout, table, on_bad).batch() if len(table) else CheckedBatch([], {})


def _whole_rows(layout: Layout, table: Rows, on_bad: OnBadRow) -> Rows:
    whole = table.cells == layout.width
    if whole.all():
        return table
    bad = np.flatnonzero(~whole & ~table.is_blank())
    for row in bad[:NAMED_ROWS].tolist():
        detail = f"{table.cells[row]} cells, the header has {layout.width}"
        on_bad(int(table.lines[row]), Drop.SYNTAX, detail)
    if len(rest := bad[NAMED_ROWS:]):
        on_bad(int(table.lines[rest[0]]), Drop.SYNTAX, "", len(rest))
    return table.keep(whole)


class _Reading:
    """One table on its way to a batch. `alive` are the rows with nothing wrong so far."""

    def __init__(self, layout: Layout, table: Rows, on_bad: OnBadRow) -> None:
        self.place = layout.place
        self.layout = layout
        self.table = table
        self.on_bad = on_bad
        self.alive: Bool = np.ones(len(table), bool)

    def batch(self) -> CheckedBatch:
        names = self.table.text(self.place["id"])
        ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
        vid = np.fromiter(map(ids.__getitem__, names), np.int32, len(names))
        self._refuse(np.array([not (0 < len(name) <= ID_MAX and name.isprintable()) for name in ids])[vid], Drop.ID)
        t = self._numbers("t", np.arange(len(names)), Drop.TIME)
        self._refuse(np.isnan(t), Drop.MISSING, "no t")
        vias, via = self._vias(len(names))
        kinds: dict[Kind, Columns] = {}
        for kind, member in self._members().items():
            rows = np.flatnonzero(member & self.alive)
            data = np.full((len(FIELDS[kind]), len(rows)), nan)
            for c, field in enumerate(FIELDS[kind]):
                if field.name in self.place:
                    data[c] = self._numbers(field.name, rows, Drop.TYPE)
            if kind is Kind.SIGNAL:
                data[SIGNAL.name_0 :] = self._signals(rows)
            # a row that is a sample of several kinds arrives as one after the other
            cols = Columns(rows * len(Kind) + int(kind), vid[rows], via[rows], t[rows], data)
            if not (good := self.alive[rows]).all():
                rows, cols = rows[good], cols.take(good)
            cols = sound(kind, cols, partial(self._refuse_samples, kind, rows))
            if len(cols):
                kinds[kind] = cols
        return numbered(CheckedBatch(list(ids), kinds, vias, self._callsigns(names)))

    def _signals(self, rows: I8) -> F8:
        """The names of signals as columns; rows without one are refused."""
        names = self.table.text(self.place["signal"]) if "signal" in self.place else [""] * len(self.table)
        bad = np.zeros(len(names), bool)
        bad[rows] = [not is_name(names[row]) for row in rows.tolist()]
        self._refuse(bad, Drop.NAME, "signal")
        return name_columns(["_" if bad[row] else names[row] for row in rows.tolist()])

    def _refuse_samples(self, kind: Kind, rows: I8, codes: U1) -> None:
        for code in np.unique(codes[codes != OK]).tolist():
            bad = np.zeros(len(self.alive), bool)
            bad[rows[codes == code]] = True
            self._refuse(bad, REASONS[code], kind.word)

    def _refuse(self, rows: Bool, reason: str, detail: str = "") -> None:
        bad = np.flatnonzero(rows & self.alive)
        for row in bad[:NAMED_ROWS].tolist():
            self._refuse_row(row, reason, detail)
        if len(rest := bad[NAMED_ROWS:]):
            self.alive[rest] = False
            self.on_bad(int(self.table.lines[rest[0]]), reason, "", len(rest))

    def _refuse_row(self, row: int, reason: str, detail: str) -> None:
        if self.alive[row]:
            self.alive[row] = False
            self.on_bad(int(self.table.lines[row]), reason, detail)

    def _numbers(self, name: str, rows: I8, reason: str) -> F8:
        values, odd = self.table.numbers(self.place[name], rows)
        if len(odd):
            cells = self.table.text(self.place[name])
            for at in odd.tolist():
                word = cells[rows[at]].lower()
                try:
                    values[at] = _FLAGS[word] if word in _FLAGS else float(word)
                except ValueError:
                    self._refuse_row(int(rows[at]), reason, f"{name} {word[:20]!r}")
        return values

    def _members(self) -> dict[Kind, Bool]:
        """For each kind, which rows are samples of it."""
        if "kind" in self.place:
            words = self.table.text(self.place["kind"])
            kind_of = {word: KIND_OF_WORD.get(word.lower()) for word in set(words)}
            number = {word: -1 if kind is None else int(kind) for word, kind in kind_of.items()}
            codes = np.fromiter(map(number.__getitem__, words), np.int64, len(words))
            for row in np.flatnonzero(codes < 0).tolist():
                self._refuse_row(row, Drop.TYPE, f"kind {words[row][:20]!r}")
            return {kind: codes == kind for kind in Kind if (codes == kind).any()}
        if len(self.layout.kinds) == 1:
            return {self.layout.kinds[0]: self.alive}
        members = {
            kind: np.any([self.table.filled(self.place[name]) for name in _OWN[kind] if name in self.place], axis=0)
            for kind in self.layout.kinds
        }
        self._refuse(~np.any(list(members.values()), axis=0), Drop.MISSING, "no field says what it is")
        return members

    def _vias(self, n: int) -> tuple[list[str], I4]:
        if "via" not in self.place:
            return [], np.full(n, -1, np.int32)
        names = self.table.text(self.place["via"])
        index = {name: i for i, name in enumerate(name for name in dict.fromkeys(names) if 0 < len(name) <= ID_MAX)}
        return list(index), np.array([index.get(name, -1) for name in names], np.int32)

    def _callsigns(self, names: list[str]) -> dict[str, str]:
        if "callsign" not in self.place:
            return {}
        signs = self.table.text(self.place["callsign"])
        return {name: sign[:ID_MAX] for name, sign in zip(names, signs, strict=True) if sign}
