"""Recordings of the `traffic` library, `.json` and `.json.gz`: what pandas writes for its tables.

Two shapes: a list of records, `[{"timestamp": …, "icao24": …}, …]`, or a table by columns, each keyed by row number,
`{"timestamp": {"0": …, "1": …}, "icao24": {…}, …}`. Columns become ADS-B samples:

    timestamp      t, from a number since 1970 (milliseconds, pandas' default; other units are told by their size) or
                   from an ISO 8601 text (without an offset: UTC)
    icao24         id
    latitude, longitude [deg]           lat, lon
    altitude [ft]                       alt_ft
    groundspeed [kt]                    gs_kt
    track [deg]                         trk_deg
    vertical_rate [ft/min]              vs_fpm
    selected_altitude, selected_mcp, selected_fms [ft]   sel_alt_ft, the first of these that a row has
    NACp or nacp, NIC or nic            nacp, nic
    onground                            on_ground
    squawk                              squawk
    callsign                            for people to read

null is absent. Values are taken as they are: many of these tables repeat the last known value until there is a new
one, and saying so is for the detectors. Rows come out by time, rows of one time in the order of the file. Bad rows are
counted by reason and the first few are named, counted from 0 as pandas does.

A JSON document cannot be read in pieces, and its rows are sorted, so memory grows with the file: about 1 kB a row
while it is opened, some 110 bytes a row after that. `watchkeeper convert` makes a .wklog, which is read in pieces.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.receivers.reports import squawk_of
from watchkeeper.streams.batch import F8, I4, U1, Batch, Bool, CheckedBatch, Columns
from watchkeeper.streams.check import OK, REASONS, sound
from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.foreign.files import check_json_size, read_document
from watchkeeper.streams.logs.base import Format, LogError, SourceInfo
from watchkeeper.streams.messages import COLUMN, FIELDS, ID_MAX, T_MAX, T_MIN, Drop, Kind

REQUIRED = ("timestamp", "icao24", "latitude", "longitude")
# Our field: the columns it may come from, the first that a row fills counts.
SOURCES: dict[str, tuple[str, ...]] = {
    "lat": ("latitude",),
    "lon": ("longitude",),
    "alt_ft": ("altitude",),
    "gs_kt": ("groundspeed",),
    "trk_deg": ("track",),
    "vs_fpm": ("vertical_rate",),
    "sel_alt_ft": ("selected_altitude", "selected_mcp", "selected_fms"),
    "nacp": ("NACp", "nacp"),
    "nic": ("NIC", "nic"),
    "on_ground": ("onground",),
}
COLUMNS = ("timestamp", "icao24", "callsign", "squawk", *(name for names in SOURCES.values() for name in names))
# The names are those of the columns; whatever else a record has is skipped without being decoded.
_Record = msgspec.defstruct("_Record", [(name, Any, None) for name in COLUMNS], gc=False)
# Other JSON files about flights, told by keys that only they have together.
STRANGERS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"result", "_api"}), "a Flightradar24 playback"),
    (frozenset({"columns", "index", "data"}), "a pandas table with orient='split'; write it with orient='records'"),
)
# A time since 1970 up to the limit is in the unit: each is the year 5138 in its own unit and 1973 in the next.
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (math.inf, 1e9))
# How many bad rows are named; the rest are only counted.
NAMED_ROWS = 5

Cells = Sequence[Any]


class TrafficJson:
    """One file. It is read when it is opened, and kept as columns."""

    format = "traffic"

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.position = 0
        self.bad: Counter[str] = Counter()
        self._named: list[str] = []
        self._size, table = self._load()
        self._ids, self._samples, self._signs = self._read(table)

    def _load(self) -> tuple[int, dict[str, Cells]]:
        """The size of the file and its columns. Raises LogError."""
        text = read_document(self.path)
        check_json_size(self.path, text)
        try:
            return self.path.stat().st_size, _table(text)
        except ValueError as error:
            raise LogError(self.path, str(error)) from error

    def info(self) -> SourceInfo:
        """Format, size, and what was wrong with the rows."""
        problems: list[str] = []
        if self.bad:
            counts = ", ".join(f"{n:,} {reason}" for reason, n in sorted(self.bad.items()))
            problems.append(f"{self.bad.total():,} bad rows ({counts}); first: {'; '.join(self._named)}")
        return SourceInfo(self.path, self.format, self._size, tuple(problems), None, self.bad.total())

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Rows by time, at most `chunk` at once."""
        rows, signs = self._samples, self._signs
        first, last = np.searchsorted(rows.t, (start, stop)).tolist()
        for a in range(first, last, chunk):
            b = min(a + chunk, last)
            cols = rows.take(np.arange(a, b))
            self.position = self._size * b // len(rows)
            callsigns = {self._ids[v]: sign for v, sign in zip(cols.vid.tolist(), signs[a:b], strict=True) if sign}
            yield CheckedBatch(
                self._ids, {Kind.ADSB: Columns(cols.seq - a, cols.vid, cols.via, cols.t, cols.data)}, [], callsigns
            )
        self.position = self._size

    def _read(self, table: dict[str, Cells]) -> tuple[list[str], Columns, list[str]]:
        """Names, samples by time, and the callsign of each sample."""
        n = len(table["timestamp"])
        alive: Bool = np.ones(n, bool)

        def refuse(rows: Bool, reason: str, detail: Callable[[int], str]) -> None:
            for row in np.flatnonzero(rows & alive).tolist():
                alive[row] = False
                self.bad[reason] += 1
                if len(self._named) < NAMED_ROWS:
                    self._named.append(f"row {row:,} {reason} ({detail(row)})")

        def shown(name: str) -> Callable[[int], str]:
            return lambda row: f"{name} {table[name][row]!r}"[:40]

        t, odd = _times(table["timestamp"])
        refuse(odd, Drop.TIME, shown("timestamp"))
        refuse(np.isnan(t), Drop.MISSING, lambda _: "no timestamp")
        ids, vid, absent = _names(table["icao24"])
        refuse(absent, Drop.MISSING, lambda _: "no icao24")
        refuse(vid < 0, Drop.ID, shown("icao24"))
        data = np.full((len(FIELDS[Kind.ADSB]), n), np.nan)
        for field, names in SOURCES.items():
            column = data[COLUMN[Kind.ADSB][field]]
            for name in names:
                if name in table:
                    values, odd = _numbers(table[name])
                    refuse(odd, Drop.TYPE, shown(name))
                    np.copyto(column, values, where=np.isnan(column))
        if "squawk" in table:
            data[COLUMN[Kind.ADSB]["squawk"]] = _codes(table["squawk"])
        rows = np.flatnonzero(alive)

        def refuse_samples(codes: U1) -> None:
            code_of = np.full(n, OK, np.uint8)
            code_of[rows] = codes
            for code, reason in enumerate(REASONS):
                if code != OK:
                    refuse(code_of == code, reason, lambda row: _why(t[row], data[:, row]))

        none = np.full(len(rows), -1, np.int32)
        found = Columns(rows, vid[rows], none, t[rows], np.take(data, rows, axis=1))
        found = sound(Kind.ADSB, found, refuse_samples)
        found = found.take(np.argsort(found.t, kind="stable"))
        samples = Columns(np.arange(len(found)), found.vid, found.via, found.t, found.data)
        return ids, samples, _callsigns(table.get("callsign", [None] * n), found.seq.tolist())


def _table(text: bytes) -> dict[str, Cells]:
    """The columns of either shape that are ours and not empty. Raises ValueError, saying what the file is instead."""
    try:
        table = _from_records(text) if text.lstrip()[:1] == b"[" else _from_columns(text)
    except ForeignError as error:
        typed = error.reason in (Drop.TYPE, Drop.MISSING)
        what = "a table as the traffic library writes it" if typed else "a JSON document"
        raise ValueError(f"not {what}: {error}") from error
    _require(table)
    return table


def _require(columns: Iterable[str]) -> None:
    missing = [name for name in REQUIRED if name not in set(columns)]
    if missing:
        raise ValueError(f"not a table of positions as the traffic library writes it: no {', '.join(missing)}")


def _from_records(text: bytes) -> dict[str, Cells]:
    records = from_json(text, list[_Record])  # type: ignore[valid-type]
    if not records:
        raise ValueError("an empty list: no record, so no column names")
    columns = {name: [getattr(record, name) for record in records] for name in COLUMNS}
    return {name: cells for name, cells in columns.items() if any(cell is not None for cell in cells)}


def _from_columns(text: bytes) -> dict[str, Cells]:
    raw = from_json(text, dict[str, msgspec.Raw])
    for keys, what in STRANGERS:
        if keys <= raw.keys():
            raise ValueError(f"{what}, not a table as the traffic library writes it")
    _require(raw)
    columns = {name: from_json(raw[name], dict[str, Any]) for name in COLUMNS if name in raw}
    index = list(columns["timestamp"])
    # pandas writes every column with all rows in one order; a file edited by hand may not
    return {
        name: list(cells.values()) if list(cells) == index else [cells.get(row) for row in index]
        for name, cells in columns.items()
    }


def _numbers(cells: Cells) -> tuple[F8, Bool]:
    """A column's values (NaN: null), and which cells are something else."""
    odd = np.zeros(len(cells), bool)
    try:
        values: F8 = np.array(cells, np.float64)
        if values.shape == odd.shape:
            return values, odd
    except (TypeError, ValueError, OverflowError):
        pass
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        try:
            values[i] = np.nan if cell is None else float(cell)
        except (TypeError, ValueError, OverflowError):
            odd[i] = True
    return values, odd


def _codes(cells: Cells) -> F8:
    """Transponder codes; NaN for what is none: the position next to it is worth as much without."""
    known = {cell: squawk_of(cell) for cell in {c for c in cells if isinstance(c, (str, int, float))}}
    return np.array([known.get(c) if isinstance(c, (str, int, float)) else None for c in cells], np.float64)


def _times(cells: Cells) -> tuple[F8, Bool]:
    """Unix seconds (NaN: null), and which cells are no time."""
    is_text = np.fromiter((isinstance(cell, str) for cell in cells), bool, len(cells))
    t, odd = _numbers(
        [None if text else cell for cell, text in zip(cells, is_text, strict=True)] if is_text.any() else cells
    )
    if (~np.isnan(t)).any():
        size = float(np.nanmedian(np.abs(t)))
        t /= next(per_second for limit, per_second in _UNITS if size <= limit)
    for i in np.flatnonzero(is_text).tolist():
        try:
            when = datetime.fromisoformat(cells[i])
        except ValueError:
            odd[i] = True
        else:
            t[i] = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return t, odd


def _names(cells: Cells) -> tuple[list[str], I4, Bool]:
    """The different names, the number of each row's (-1: not a name), and which rows have none."""
    absent = np.fromiter((cell is None or cell == "" for cell in cells), bool, len(cells))
    good = {name: 0 for name in cells if isinstance(name, str) and 0 < len(name) <= ID_MAX and name.isprintable()}
    number = {name: i for i, name in enumerate(good)}
    vid = np.fromiter((number.get(c, -1) if isinstance(c, str) else -1 for c in cells), np.int32, len(cells))
    return list(good), vid, absent


def _callsigns(cells: Cells, rows: list[int]) -> list[str]:
    """The callsigns of these rows; one text for all rows that have it."""
    known = {sign: sign.strip()[:ID_MAX] for sign in set(map(_text, cells))}
    return [known[_text(cells[row])] for row in rows]


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else ""


def _why(t: float, values: F8) -> str:
    """Which value of a row the common check refuses, for people."""
    if not T_MIN <= t <= T_MAX:
        return f"t {t:g}"
    for field, value in zip(FIELDS[Kind.ADSB], values.tolist(), strict=True):
        if math.isnan(value):
            if field.required:
                return f"no {SOURCES[field.name][0]}"
        elif not field.lo <= value <= field.hi:
            return f"{SOURCES[field.name][0]} {value:g}"
    return f"t {t:g}"


TRAFFIC = AdapterDeclaration(
    name="traffic",
    help="JSON tables of the traffic library",
    docs="adapters/traffic.md",
    formats=(Format("traffic", f"{__name__}:TrafficJson", (".json", ".json.gz")),),
)
