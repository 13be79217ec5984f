"""readsb, tar1090 and dump1090: `aircraft.json`, live or as a file, and the traces of single aircraft.

aircraft.json: `{"now": …, "aircraft": [{…}, …]}`. A sample is made of each aircraft whose position is newer than at the
last look; its time is `now - seen_pos`.

    hex             id (a leading ~ marks an address that is not ICAO's)
    lat, lon        or, without them, nothing: lastPosition is old
    alt_baro [ft]   alt_ft, or "ground": on_ground
    gs, track, baro_rate (without it geom_rate)       gs_kt, trk_deg, vs_fpm
    altitude, speed, vert_rate                        what older programs call these
    nac_p, nic, nav_altitude_mcp (without it nav_altitude_fms), nav_heading, squawk, flight
    emergency ("none", "nordo" …), acas_ra            emergency, tcas_ra

Traces: `{"icao": …, "timestamp": …, "trace": [[seconds, lat, lon, alt, gs, track, flags, rate, details, …], …]}`,
each row a sample. Flags: 1 the position is stale (left out), 8 the altitude is geometric (alt_ft is left out).
"""

from __future__ import annotations

from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.adapters.readsb import Readsb as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import (
    AIRCRAFT_MAX,
    FORGET_S,
    Reports,
    category_of,
    emergency_of,
    squawk_of,
)
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import Bytes, ForeignError, json_decoder
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import ID_MAX, Drop

# Positions of one aircraft this close in time are the same one: `seen_pos` is rounded.
_SAME_S = 0.15
_STALE, _GEOMETRIC_ALTITUDE = 1, 8
_DT, _LAT, _LON, _ALT, _GS, _TRACK, _FLAGS, _RATE, _DETAILS = range(9)
GROUND = "ground"
# Five times what an aircraft that is heard twice a second has in a day.
TRACE_MAX = 1_000_000


class _Aircraft(msgspec.Struct, gc=False):
    """What we read of one aircraft."""

    hex: str
    lat: float | None = None
    lon: float | None = None
    seen_pos: float | None = None
    alt_baro: float | str | None = None
    altitude: float | str | None = None
    gs: float | None = None
    speed: float | None = None
    track: float | None = None
    baro_rate: float | None = None
    geom_rate: float | None = None
    vert_rate: float | None = None
    nac_p: float | None = None
    nic: float | None = None
    nav_altitude_mcp: float | None = None
    nav_altitude_fms: float | None = None
    nav_heading: float | None = None
    squawk: str | None = None
    emergency: str | None = None
    category: str | None = None
    acas_ra: Any = None
    flight: str | None = None


class _Look(msgspec.Struct, gc=False):
    """One aircraft.json. Each aircraft is read by itself: a bad one does not spoil the rest."""

    now: float
    aircraft: list[msgspec.Raw]


class _Trace(msgspec.Struct, gc=False):
    """The track of one aircraft."""

    icao: str
    timestamp: float
    trace: list[list[Any]]


_look = json_decoder(_Look)
_aircraft = json_decoder(_Aircraft)
_trace = json_decoder(_Trace)


class Readsb:
    """One aircraft.json after the other, each pushed whole; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._reports = Reports(via=via)
        self._last_t: dict[str, float] = {}

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002  the document has its own time
        """Take in one document."""
        try:
            look = _look(data)
        except ForeignError:
            self.refused[Drop.SYNTAX] += 1
            return
        if len(look.aircraft) > AIRCRAFT_MAX:
            self.refused[Drop.SIZE] += 1
            return
        for raw in look.aircraft:
            try:
                self.see(raw, look.now)
            except ForeignError:
                self.refused[Drop.TYPE] += 1

    def close(self) -> None:
        """See Feed: a document is whole or refused."""

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def see(self, raw: Bytes, now: float) -> None:
        """One aircraft of a document, or a line of readsb's JSON port. Raises ForeignError."""
        craft = _aircraft(raw)
        name = craft.hex.strip().lower()
        if not 0 < len(name) <= ID_MAX:
            self.refused[Drop.ID] += 1
            return
        if craft.lat is None or craft.lon is None or craft.seen_pos is None:
            return
        t = now - craft.seen_pos
        if t <= self._last_t.get(name, -inf) + _SAME_S:
            return
        self._last_t[name] = t
        if len(self._last_t) > AIRCRAFT_MAX:
            self._last_t = {name: t for name, t in self._last_t.items() if t > now - FORGET_S}
            if len(self._last_t) > AIRCRAFT_MAX // 2:  # no sky has so many: a position may come twice
                self._last_t.clear()
        self._reports.call(name, craft.flight or "")
        values = {
            "gs_kt": _first(craft.gs, craft.speed),
            "trk_deg": craft.track,
            "vs_fpm": _first(craft.baro_rate, craft.geom_rate, craft.vert_rate),
            "nacp": craft.nac_p,
            "nic": craft.nic,
            "sel_alt_ft": _first(craft.nav_altitude_mcp, craft.nav_altitude_fms),
            "sel_hdg_deg": craft.nav_heading,
            "squawk": squawk_of(craft.squawk),
            "emergency": emergency_of(craft.emergency),
            "tcas_ra": _advisory(craft.acas_ra),
            "category": category_of(craft.category),
            **_altitude(_first(craft.alt_baro, craft.altitude)),
        }
        self._reports.place(name, t, craft.lat, craft.lon, _known(values))


def _first(*values: Any) -> Any:
    """The first that is there."""
    return next((value for value in values if value is not None), None)


def _altitude(alt: Any) -> dict[str, float | None]:
    """An altitude in feet, or the word that stands for the ground."""
    if alt == GROUND:
        return {"on_ground": 1.0}
    return {"alt_ft": alt, "on_ground": None if alt is None else 0.0}


def _advisory(acas: Any) -> float | None:
    """Whether a resolution advisory is on: the first bit of ARA, or MTE, and not RAT; all are texts of bits."""
    if not isinstance(acas, dict) or not isinstance(ara := acas.get("ARA"), str):
        return None
    return float((ara[:1] == "1" or acas.get("MTE") == "1") and acas.get("RAT") != "1")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _known(values: dict[str, Any]) -> dict[str, float]:
    """The fields that are numbers."""
    return {field: float(value) for field, value in values.items() if isinstance(value, (int, float))}


class ReadsbTrace:
    """The trace of one aircraft, pushed whole; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._reports = Reports(via=via)

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002
        """Take in one document."""
        try:
            trace = _trace(data)
        except ForeignError:
            self.refused[Drop.SYNTAX] += 1
            return
        name = trace.icao.strip().lower()
        if not 0 < len(name) <= ID_MAX:
            self.refused[Drop.ID] += 1
            return
        if len(trace.trace) > TRACE_MAX:
            self.refused[Drop.SIZE] += 1
            return
        for row in trace.trace:
            try:
                self._row(name, trace.timestamp, row)
            except OverflowError:  # a whole number that no float can hold
                self.refused[Drop.TYPE] += 1

    def close(self) -> None:
        """See Feed."""

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def _row(self, name: str, began: float, row: list[Any]) -> None:
        if len(row) <= _DETAILS or not all(isinstance(row[i], (int, float)) for i in (_DT, _LAT, _LON, _FLAGS)):
            self.refused[Drop.TYPE] += 1
            return
        flags, details = int(row[_FLAGS]), row[_DETAILS] if isinstance(row[_DETAILS], dict) else {}
        if flags & _STALE:
            return
        alt = _altitude(row[_ALT])
        if flags & _GEOMETRIC_ALTITUDE:
            alt.pop("alt_ft", None)
        if isinstance(flight := details.get("flight"), str):
            self._reports.call(name, flight)
        values = {
            "gs_kt": row[_GS],
            "trk_deg": row[_TRACK],
            "vs_fpm": row[_RATE],
            "nacp": details.get("nac_p"),
            "nic": details.get("nic"),
            "sel_alt_ft": details.get("nav_altitude_mcp", details.get("nav_altitude_fms")),
            "sel_hdg_deg": details.get("nav_heading"),
            "squawk": squawk_of(details.get("squawk")),
            "emergency": emergency_of(_text(details.get("emergency"))),
            "tcas_ra": _advisory(details.get("acas_ra")),
            "category": category_of(details.get("category")),
            **alt,
        }
        self._reports.place(name, began + row[_DT], float(row[_LAT]), float(row[_LON]), _known(values))


def open_aircraft_json(path: Path) -> FeedLog:
    """An aircraft.json that was kept."""
    return FeedLog(path, "readsb", Readsb, whole=True)


def open_trace(path: Path) -> FeedLog:
    """A trace file, such as tar1090 keeps."""
    return FeedLog(path, "readsb trace", ReadsbTrace, whole=True)


_JSON = (".json", ".json.gz")

READSB = AdapterDeclaration(
    name="readsb",
    help="aircraft.json of readsb, tar1090 and dump1090, and traces of tar1090",
    docs="adapters/receivers.md",
    settings=Settings,
    feed=f"{__name__}:Readsb",
    ways=(Way.DOCUMENT,),
    sample=Sample(
        data=b'{"now": 1709294400.5, "aircraft": [{"hex": "4ca7b3", "lat": 51.5, "lon": -0.5, "seen_pos": 0.2, '
        b'"alt_baro": 35000, "gs": 450.5, "track": 90.0}]}',
        settings={"url": "http://192.168.1.21/tar1090/data/aircraft.json"},
    ),
    formats=(
        Format("readsb", f"{__name__}:open_aircraft_json", _JSON, holds=(b'"now"', b'"aircraft"')),
        Format("readsb trace", f"{__name__}:open_trace", _JSON, holds=(b'"icao"', b'"timestamp"', b'"trace"')),
    ),
)
