"""State vectors of the OpenSky Network: answers of its REST interface, live or kept, and its dumps (CSV, Parquet).

    JSON           /states/all   {"time": …, "states": [[icao24, callsign, country, time_position, last_contact,
                                 longitude, latitude, baro_altitude, on_ground, velocity, true_track, vertical_rate,
                                 sensors, geo_altitude, squawk, …], …]}
    CSV, Parquet   time, icao24, lat, lon, velocity, heading, vertrate, callsign, onground, alert, spi, squawk,
                   baroaltitude, geoaltitude, lastposupdate, lastcontact, by name and in any order

Metres and metres per second become alt_ft (barometric: the geometric one is not read), gs_kt and vs_fpm.

A state vector is the last that is known of an aircraft at `time`: positions repeat until there is a new one. A sample
is made of each position once, and its time is that of the position (time_position, lastposupdate; where there is
none, `time`). Positions of one `time` come out in the order of their own times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.adapters.opensky import OpenSky as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import AIRCRAFT_MAX, FORGET_S, LIMIT, squawk_of
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import ID_MAX, Drop, Kind

# A row of a dump has some 150 characters.
LINE_MAX = 1024
# Our field: the place in a JSON state, the column of a dump, and what one unit of it is.
_FIELDS: dict[str, tuple[int, str, float]] = {
    "lat": (6, "lat", 1.0),
    "lon": (5, "lon", 1.0),
    "alt_ft": (7, "baroaltitude", 1.0 / FT_M),
    "gs_kt": (9, "velocity", 1.0 / KT_MS),
    "trk_deg": (10, "heading", 1.0),
    "vs_fpm": (11, "vertrate", 60.0 / FT_M),
    "on_ground": (8, "onground", 1.0),
}
_ICAO24, _CALLSIGN, _TIME_POSITION, _LEAST, _SQUAWK = 0, 1, 3, 12, 14
REQUIRED = ("time", "icao24", "lat", "lon")
COLUMNS = (*REQUIRED, "callsign", "lastposupdate", "squawk", *(column for _, column, _ in _FIELDS.values()))
_WORDS = {"": math.nan, "null": math.nan, "true": 1.0, "false": 0.0}


class States:
    """State vectors one by one; what all forms share."""

    def __init__(self, via: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._rows = Rows(via)
        self._callsigns: dict[str, str] = {}
        self._time = math.nan
        self._waiting: list[tuple[float, str, dict[str, float]]] = []
        self._last_t: dict[str, float] = {}

    def add(self, time: Any, name: Any, t_position: Any, says: tuple[Any, Any], values: Mapping[str, Any]) -> None:
        """One state vector as it was read, in OpenSky's units; `says` are callsign and squawk, each may be missing."""
        callsign, squawk = says
        numbers = {field: _number(value) for field, value in values.items()}
        look, t = _number(time), _number(t_position)
        if any(number is None for number in (*numbers.values(), look, t)):
            self.refused[Drop.TYPE] += 1
            return
        if not (isinstance(name, str) and 0 < len(name := name.strip().lower()) <= ID_MAX):
            self.refused[Drop.ID] += 1
            return
        assert look is not None
        assert t is not None
        there = {f: x * _FIELDS[f][2] for f, x in numbers.items() if x is not None and not math.isnan(x)}
        # a position is worth as much with a code that cannot be read
        if (code := squawk_of(squawk)) is not None:
            there["squawk"] = code
        if "lat" not in there or "lon" not in there:
            return  # it was heard, but not where it is
        if math.isnan(look):
            self.refused[Drop.TIME] += 1
            return
        if look != self._time:
            self.flush()
            self._time = look
        if isinstance(callsign, str) and callsign.strip() and len(self._callsigns) < LIMIT:
            self._callsigns[name] = callsign.strip()[:ID_MAX]
        self._waiting.append((look if math.isnan(t) else t, name, there))

    def add_row(self, row: Mapping[str, Any]) -> None:
        """A row of a dump by the names of its columns."""
        values = {field: row.get(column) for field, (_, column, _) in _FIELDS.items()}
        self.add(row["time"], row["icao24"], row.get("lastposupdate"), (row.get("callsign"), row.get("squawk")), values)

    def flush(self) -> None:
        """The state vectors of one `time` are complete."""
        for t, name, values in sorted(self._waiting, key=lambda state: state[0]):
            if t > self._last_t.get(name, -math.inf):
                self._last_t[name] = t
                self._rows.add(Kind.ADSB, name, t, values)
        if len(self._last_t) > 2 * len(self._waiting) + 1000:
            self._last_t = {name: t for name, t in self._last_t.items() if t > self._time - FORGET_S}
        self._waiting = []

    def take(self) -> Batch | None:
        """See Feed."""
        told = {name: sign for name, sign in self._callsigns.items() if name in self._rows}
        # others wait for the next position of theirs
        self._callsigns = {name: sign for name, sign in self._callsigns.items() if name not in told}
        return self._rows.take(told)

    def close(self) -> None:
        """See Feed."""
        self.flush()


def _number(cell: Any) -> float | None:
    """A cell as a number, NaN if it is empty, None if it is something else."""
    if cell is None:
        return math.nan
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return _WORDS.get(cell.strip().lower()) if isinstance(cell, str) else None


class _Look(msgspec.Struct, gc=False):
    """One answer. Each state is read by itself: a bad one does not spoil the rest."""

    time: float
    states: list[msgspec.Raw] | None = None


_look = json_decoder(_Look)
_state = json_decoder(list[Any])


class OpenSky(States):
    """One answer after the other, each pushed whole; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        super().__init__(via)

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002  the document has its own time
        """Take in one document."""
        try:
            look = _look(data)
        except ForeignError:
            self.refused[Drop.SYNTAX] += 1
            return
        if len(look.states or ()) > AIRCRAFT_MAX:
            self.refused[Drop.SIZE] += 1
            return
        for raw in look.states or ():
            try:
                state = _state(raw)
            except ForeignError:
                self.refused[Drop.TYPE] += 1
                continue
            if len(state) < _LEAST:
                self.refused[Drop.MISSING] += 1
                continue
            values = {field: state[i] for field, (i, _, _) in _FIELDS.items()}
            squawk = state[_SQUAWK] if len(state) > _SQUAWK else None
            self.add(look.time, state[_ICAO24], state[_TIME_POSITION], (state[_CALLSIGN], squawk), values)
        self.flush()


class OpenSkyCsv(States, LineFeed):
    """A dump, line by line; see adapters/base.py."""

    def __init__(self) -> None:
        States.__init__(self)
        LineFeed.__init__(self, LINE_MAX)
        self._place: dict[str, int] = {}
        self._width = 0

    def close(self) -> None:
        """See Feed."""
        LineFeed.close(self)
        self.flush()

    def _line(self, line: bytes | None, now: float) -> None:  # noqa: ARG002
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        cells = line.decode("utf-8", "replace").strip().split(",")
        if cells == [""]:
            return
        if not self._place or "icao24" in cells:  # hourly files are often put one behind the other
            self._place = {name.strip().strip('"').lower(): i for i, name in enumerate(cells)}
            self._width = len(cells)
            return
        if len(cells) < self._width or any(name not in self._place for name in REQUIRED):
            self.refused[Drop.MISSING] += 1
            return
        self.add_row({name: cells[i].strip('"') for name, i in self._place.items()})


def rows_of(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """The rows of a table that is kept by columns."""
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def open_states(path: Path) -> FeedLog:
    """An answer that was kept."""
    return FeedLog(path, "opensky", OpenSky, whole=True)


def open_dump(path: Path) -> FeedLog:
    """An hourly dump as CSV."""
    return FeedLog(path, "opensky csv", OpenSkyCsv)


OPENSKY = AdapterDeclaration(
    name="opensky",
    help="state vectors of the OpenSky Network",
    docs="adapters/opensky.md",
    settings=Settings,
    feed=f"{__name__}:OpenSky",
    ways=(Way.DOCUMENT,),
    sample=Sample(
        data=b'{"time": 1709294400, "states": [["4ca7b3", "BAW123  ", "United Kingdom", 1709294399, 1709294400, '
        b"-0.5, 51.5, 10668.0, false, 231.5, 90.0, 0.0, null, 10700.0]]}",
        settings={"url": "https://opensky-network.org/api/states/all", "period_s": 10.0},
    ),
    formats=(
        Format("opensky csv", f"{__name__}:open_dump", (".csv", ".csv.gz"), holds=(b"icao24", b"lastposupdate")),
        Format("opensky", f"{__name__}:open_states", (".json", ".json.gz"), holds=(b'"time"', b'"states"')),
    ),
)
