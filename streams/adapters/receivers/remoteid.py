"""Remote ID of drones (ASTM F3411) as receivers decode it into JSON, a line each time; live and recorded.

    [{"Basic ID": {"id_type": "Serial Number (ANSI/CTA-2063-A)", "id": "1581F5FJD229400", "MAC": "8e:3b:93:22:33:fa"}},
     {"Location/Vector Message": {"latitude": 51.5, "longitude": -0.5, "geodetic_altitude": 120.5, "speed": 12.5, …}},
     {"System Message": {"latitude": 51.49, "longitude": -0.51}}]

as the programs around droneid-go and DragonSync write it: a list of messages, or one object with the same keys (the
firmware of ESP32 receivers). Location: `latitude`, `longitude` [deg], `pressure_altitude` or `geodetic_altitude` [m],
`speed` and `vert_speed` [m/s], `direction` [deg], `op_status`. System: the operator's `latitude` and `longitude`, or
`operator_lat` and `operator_lon`. Numbers may be texts with a unit (`"150.0 m"`).

A drone is called by its id. A line without one belongs to the drone of the same MAC. The time is `timestamp` (Unix
seconds, of the location or the line); live without one that of the arrival.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

from watchkeeper.config.adapters.remoteid import RemoteId as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import DRONE, Reports
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.geo import FT_M, KT_MS, inverse
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import ID_MAX, T_MAX, Drop

LINE_MAX = 1 << 16
NAMES_MAX = 10_000
# Messages of one line: a pack of Remote ID has nine.
MESSAGES_MAX = 32
# Unix time; what is smaller counts from somewhere else.
_UNIX_S = 1e9
_NUMBER = re.compile(r"\s*([+-]?\d{1,12}(?:\.\d{0,12})?)(?:\s*(?:m|m/s|°|deg))?\s*")
# What stands for "not known": a speed of 255 m/s, a direction of 361, an altitude of -1,000 m.
_NO_SPEED, _NO_DIRECTION, _NO_ALTITUDE, _NO_CLIMB = 255.0, 361.0, -1000.0, 63.0
_STATUS = {"airborne": 0.0, "ground": 1.0}


class RemoteId(LineFeed):
    """One receiver; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self._reports = Reports(via=via)
        # by hardware address, and the operators by drone
        self._names: dict[str, str] = {}
        self._operators: dict[str, tuple[float, float]] = {}

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        if not line.strip():
            return
        try:
            parts = _messages(from_json(line))
        except ForeignError as error:
            self.refused[error.reason] += 1
            return
        if parts is None:
            self.refused[Drop.TYPE] += 1
        else:
            self._drone(parts, now)

    def _drone(self, parts: dict[str, dict[str, Any]], now: float) -> None:
        basic, place = parts.get("Basic ID", {}), parts.get("Location/Vector Message")
        macs = [mac for part in parts.values() if isinstance(mac := part.get("MAC"), str)]
        name = basic.get("id")
        if isinstance(name, str) and 0 < len(name := name.strip()) <= ID_MAX:
            _keep(self._names, macs[0] if macs else "", name)
        else:
            name = next((self._names[mac] for mac in macs if mac in self._names), "")
        if not name:
            self.refused[Drop.ID] += place is not None
            return
        system = parts.get("System Message", {})
        operator = _place(system, ("latitude", "longitude")) or _place(system, ("operator_lat", "operator_lon"))
        if operator is not None:
            _keep(self._operators, name, operator)
        if place is None:
            return
        at = _place(place, ("latitude", "longitude"))
        if at is None:
            self.refused[Drop.MISSING] += 1
            return
        t = next((t for part in (place, parts.get("", {})) if _UNIX_S < (t := _number(part, "timestamp")) < T_MAX), now)
        if isnan(t):
            self.refused[Drop.TIME] += 1
            return
        values = {"category": DRONE, **_motion(place)}
        if name in self._operators:
            values["operator_m"] = inverse(*at, *self._operators[name])[0]
        self._reports.place(name, t, *at, values)


def _messages(document: Any) -> dict[str, dict[str, Any]] | None:
    """The messages of a line by their names, and under "" what stands next to them; None: it is something else."""
    objects = document if isinstance(document, list) else [document]
    if len(objects) > MESSAGES_MAX or not all(isinstance(each, dict) for each in objects):
        return None
    found: dict[str, dict[str, Any]] = {}
    for each in objects:
        found |= {name: part for name, part in each.items() if isinstance(part, dict)}
    found[""] = {name: value for each in objects for name, value in each.items() if not isinstance(value, dict)}
    return found


def _number(part: dict[str, Any], name: str) -> float:
    """A number, or a text of one with its unit; NaN without."""
    value = part.get(name)
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return float(match[1]) if match else nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return nan
    return float(value) if abs(value) < 1e18 and isfinite(value) else nan


def _place(part: dict[str, Any], names: tuple[str, str]) -> tuple[float, float] | None:
    """Latitude and longitude; 0, 0 stands for not known."""
    lat, lon = (_number(part, name) for name in names)
    return (lat, lon) if abs(lat) <= 90.0 and abs(lon) <= 180.0 and (lat or lon) else None


def _motion(place: dict[str, Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name in ("pressure_altitude", "geodetic_altitude"):
        altitude = _number(place, name)
        if altitude > _NO_ALTITUDE:
            values["alt_ft"] = altitude / FT_M
            break
    if 0.0 <= (speed := _number(place, "speed")) < _NO_SPEED:
        values["gs_kt"] = speed / KT_MS
    if 0.0 <= (direction := _number(place, "direction")) < _NO_DIRECTION:
        values["trk_deg"] = direction % 360.0
    if abs(climb := _number(place, "vert_speed")) < _NO_CLIMB:
        values["vs_fpm"] = climb / FT_M * 60.0
    status = place.get("op_status")
    if isinstance(status, str) and status.lower() in _STATUS:
        values["on_ground"] = _STATUS[status.lower()]
    return values


def _keep(table: dict[str, Any], key: str, value: Any) -> None:
    """Remember, and forget the oldest of too many."""
    if key not in table and len(table) >= NAMES_MAX:
        table.pop(next(iter(table)))
    table[key] = value


def open_remoteid(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "remoteid", RemoteId)


def _example() -> Iterator[bytes]:
    for k in range(2):
        yield (
            b'[{"Basic ID": {"id_type": "Serial Number (ANSI/CTA-2063-A)", "id": "1581F5FJD229400", '
            b'"MAC": "8e:3b:93:22:33:fa"}}, {"Location/Vector Message": {"latitude": 51.5, "longitude": -0.5, '
            b'"geodetic_altitude": 120.5, "speed": 12.5, "vert_speed": -0.5, "direction": 90, "op_status": "Airborne", '
            b'"timestamp": %d}}, {"System Message": {"latitude": 51.49, "longitude": -0.51}}]\n' % (1_709_294_400 + k)
        )


REMOTEID = AdapterDeclaration(
    name="remoteid",
    help="Remote ID of drones, decoded into JSON lines by a receiver",
    docs="adapters/remoteid.md",
    settings=Settings,
    feed=f"{__name__}:RemoteId",
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(data=b"".join(_example()), settings={"url": "tcp://192.168.1.40:4224", "via": "roof"}),
    formats=(
        Format("remoteid", f"{__name__}:open_remoteid", (".remoteid", ".jsonl", ".json"), holds=(b'"Basic ID"',)),
    ),
)
