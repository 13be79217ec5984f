"""Rows of text to a batch: the part of the CSV reader that knows columns and kinds. Pure; files are csvlog.py's job.

`kind` says what a row is (adsb, gps, imu, action, route). Without that column the fields tell: a row is a sample of
each kind of which it fills a field that no other kind has (`alt_ft` makes it ADS-B, `imu_ax` IMU, `alt_m` GPS); rows
with bare `lat` and `lon` are ADS-B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from math import nan

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool, Columns
from watchkeeper.streams.check import OK, REASONS, check
from watchkeeper.streams.chunks import numbered
from watchkeeper.streams.messages import FIELDS, ID_MAX, KIND_OF_WORD, Drop, Kind

# Row number, Drop reason, detail for people.
OnBadRow = Callable[[int, str, str], None]
_TEXT = ("id", "kind", "via", "callsign")
_FLAGS = {"true": 1.0, "false": 0.0}
_KINDS_WITH = Counter(field.name for fields in FIELDS.values() for field in fields)
# Fields that only one kind has: a row that fills one of them says what it is.
_OWN = {kind: [f.name for f in FIELDS[kind] if _KINDS_WITH[f.name] == 1] for kind in Kind}


class Layout:
    """What a header line means. Raises ValueError, saying what is missing."""

    def __init__(self, header: Sequence[str]) -> None:
        self.width = len(header)
        # of two columns with one name the first counts
        self.place = {name: i for i, name in reversed(list(enumerate(header)))}
        self.unknown = [name for name in header if name not in {"t", *_TEXT, *_KINDS_WITH}]
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


def to_batch(layout: Layout, table: Sequence[Sequence[str]], on_bad: OnBadRow) -> Batch:
    """The good samples among rows that all have the layout's width."""
    if not table:
        return Batch([], {})
    columns = list(zip(*table, strict=True))
    names = columns[layout.place["id"]]
    ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
    vid = np.fromiter(map(ids.__getitem__, names), np.int32, len(names))
    alive = np.array([0 < len(name) <= ID_MAX and name.isprintable() for name in ids])[vid]
    for row in np.flatnonzero(~alive).tolist():
        on_bad(row, Drop.ID, "")
    t = _numbers(columns[layout.place["t"]], np.arange(len(table)), alive, Drop.TIME, on_bad)
    absent = np.isnan(t) & alive
    for row in np.flatnonzero(absent).tolist():
        on_bad(row, Drop.MISSING, "no t")
    alive &= ~absent
    vias, via = _vias(layout, columns, len(table))

    kinds: dict[Kind, Columns] = {}
    for kind, member in _members(layout, columns, alive, on_bad).items():
        rows = np.flatnonzero(member)
        data = np.full((len(FIELDS[kind]), len(rows)), nan)
        for c, field in enumerate(FIELDS[kind]):
            if field.name in layout.place:
                cells = list(compress(columns[layout.place[field.name]], member))
                data[c] = _numbers(cells, rows, alive, Drop.TYPE, on_bad)
        good = alive[rows]
        codes = check(kind, t[rows], data)
        for at in np.flatnonzero(good & (codes != OK)).tolist():
            on_bad(int(rows[at]), REASONS[codes[at]], kind.word)
        good &= codes == OK
        if good.any():
            # a row that is a sample of several kinds arrives as one after the other
            seq = rows * len(Kind) + int(kind)
            kinds[kind] = Columns(seq, vid[rows], via[rows], t[rows], data).take(good)
    return numbered(Batch(list(ids), kinds, vias, _callsigns(layout, columns, names)))


def _numbers(cells: Sequence[str], rows: I8, alive: Bool, reason: str, on_bad: OnBadRow) -> F8:
    """Cells as float64, empty ones NaN. Rows with something else are reported and no longer alive."""
    n = len(cells)
    if not any(cells):
        return np.full(n, nan)
    try:
        return np.fromiter(map(float, cells), np.float64, n)
    except ValueError:
        pass
    try:
        return np.array([float(cell) if cell else nan for cell in cells])
    except ValueError:
        pass
    values = np.full(n, nan)
    for i, cell in enumerate(cells):
        word = cell.strip().lower()
        try:
            values[i] = _FLAGS[word] if word in _FLAGS else float(word or nan)
        except ValueError:
            row = int(rows[i])
            if alive[row]:
                alive[row] = False
                on_bad(row, reason, repr(cell[:20]))
    return values


def _members(layout: Layout, columns: list[tuple[str, ...]], alive: Bool, on_bad: OnBadRow) -> dict[Kind, list[bool]]:
    """For each kind, which of the living rows are samples of it."""
    n = len(alive)
    if "kind" in layout.place:
        words = columns[layout.place["kind"]]
        kind_of = {word: KIND_OF_WORD.get(word.strip().lower()) for word in set(words)}
        for row, word in enumerate(words) if None in kind_of.values() else ():
            if kind_of[word] is None and alive[row]:
                alive[row] = False
                on_bad(row, Drop.TYPE, f"kind {word[:20]!r}")
        number = {word: -1 if kind is None else int(kind) for word, kind in kind_of.items()}
        codes = np.fromiter(map(number.__getitem__, words), np.int8, n)
        return {
            kind: (alive & (codes == kind)).tolist() for kind in sorted({k for k in kind_of.values() if k is not None})
        }
    if len(layout.kinds) == 1:
        return {layout.kinds[0]: alive.tolist()}
    members: dict[Kind, list[bool]] = {}
    any_kind = np.zeros(n, bool)
    for kind in layout.kinds:
        filled = np.zeros(n, bool)
        for name in _OWN[kind]:
            if name in layout.place:
                filled |= np.fromiter(map(bool, columns[layout.place[name]]), bool, n)
        any_kind |= filled
        members[kind] = (alive & filled).tolist()
    for row in np.flatnonzero(alive & ~any_kind).tolist():
        on_bad(row, Drop.MISSING, "no field says what it is")
    return members


def _vias(layout: Layout, columns: list[tuple[str, ...]], n: int) -> tuple[list[str], I4]:
    if "via" not in layout.place:
        return [], np.full(n, -1, np.int32)
    names = columns[layout.place["via"]]
    index = {name: i for i, name in enumerate(name for name in dict.fromkeys(names) if 0 < len(name) <= ID_MAX)}
    return list(index), np.array([index.get(name, -1) for name in names], np.int32)


def _callsigns(layout: Layout, columns: list[tuple[str, ...]], names: Sequence[str]) -> dict[str, str]:
    if "callsign" not in layout.place:
        return {}
    signs = columns[layout.place["callsign"]]
    return {name: sign.strip()[:ID_MAX] for name, sign in zip(names, signs, strict=True) if sign.strip()}
