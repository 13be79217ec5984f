"""gpsd's JSON (TCP port 2947), live and recorded: a report a line, the GPS of one vehicle.

    TPV   time, mode, lat, lon, altMSL (older: alt), speed [m/s], track [deg], climb [m/s], eph, epv, eps
    SKY   uSat, hdop, which the next TPV takes along

Velocity is north, east and down (local frame `ned`). gpsd's estimates are of 95 % probability; ours are 1 sigma, so
they are halved. Reports of other classes (VERSION, DEVICES, WATCH, …) say nothing to us.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from math import cos, radians, sin
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.adapters.gpsd import Gpsd as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.navigation.epochs import Said
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop, Kind

# SKY lists every satellite: some 10 kB.
LINE_MAX = 1 << 16
SIGMAS = 2.0
WATCH = b'?WATCH={"enable":true,"json":true}\n'
_FIX = {0: 0.0, 1: 0.0, 2: 2.0, 3: 3.0}
_DIFFERENTIAL = 2


class _Report(msgspec.Struct, gc=False, rename={"kind": "class"}):
    """What we read of a report."""

    kind: str = ""
    time: str | None = None
    mode: int = 0
    status: int = 0
    lat: float | None = None
    lon: float | None = None
    altMSL: float | None = None  # noqa: N815  gpsd's names
    alt: float | None = None
    speed: float | None = None
    track: float | None = None
    climb: float | None = None
    eph: float | None = None
    epv: float | None = None
    eps: float | None = None
    uSat: float | None = None  # noqa: N815
    hdop: float | None = None


_report = json_decoder(_Report)


class Gpsd(LineFeed):
    """One connection; see adapters/base.py."""

    def __init__(self, *, via: str = "", id: str = "gps") -> None:  # noqa: A002  a setting
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self._name = id
        self._rows = Rows(via)
        self._said = Said()
        self._t = 0.0

    def take(self) -> Batch | None:
        """See Feed."""
        return self._rows.take()

    def _line(self, line: bytes | None, now: float) -> None:  # noqa: ARG002  a report has its own time
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        if not line.strip():
            return
        try:
            self._read(_report(line))
        except ForeignError as error:
            self.refused[error.reason] += 1

    def _read(self, report: _Report) -> None:
        if report.kind == "SKY":
            self._said.note(self._t, _there(sats=report.uSat, hdop=report.hdop))
        if report.kind != "TPV" or report.time is None:
            return
        try:
            self._t = datetime.fromisoformat(report.time).timestamp()
        except (ValueError, OverflowError):
            self.refused[Drop.TIME] += 1
            return
        values = {"fix": _FIX.get(report.mode, 0.0)}
        if values["fix"] >= 2.0:
            values["fix"] += report.status == _DIFFERENTIAL and report.mode == 3
            alt = report.alt if report.altMSL is None else report.altMSL
            values |= _there(lat=report.lat, lon=report.lon, alt_m=alt if report.mode == 3 else None)
            values |= {field: value / SIGMAS for field, value in _there(
                eph=report.eph, epv=report.epv, speed_acc=report.eps).items()}  # fmt: skip
            if report.speed is not None and report.track is not None:
                course = radians(report.track)
                values |= {"gps_vx": report.speed * cos(course), "gps_vy": report.speed * sin(course)}
            if report.climb is not None:
                values["gps_vz"] = -report.climb
        self._rows.add(Kind.GPS, self._name, self._t, {**self._said.take(self._t), **values})


def _there(**values: Any) -> dict[str, float]:
    return {field: float(value) for field, value in values.items() if value is not None}


def hello(source: Settings) -> bytes:  # noqa: ARG001
    """The request without which gpsd says nothing."""
    return WATCH


def open_gpsd(path: Path) -> FeedLog:
    """A recording, such as gpspipe -w writes."""
    return FeedLog(path, "gpsd", Gpsd)


GPSD = AdapterDeclaration(
    name="gpsd",
    help="JSON of gpsd",
    docs="adapters/navigation.md",
    settings=Settings,
    feed=f"{__name__}:Gpsd",
    takes=("via", "id"),
    ways=(Way.STREAM,),
    hello=f"{__name__}:hello",
    sample=Sample(
        data=b'{"class":"VERSION","release":"3.22","proto_major":3,"proto_minor":14}\r\n'
        b'{"class":"SKY","device":"/dev/ttyUSB0","hdop":0.9,"uSat":9}\r\n'
        b'{"class":"TPV","device":"/dev/ttyUSB0","mode":3,"time":"2024-03-01T12:00:00.500Z","lat":51.5,"lon":-0.5,'
        b'"altMSL":80.0,"speed":5.0,"track":90.0,"climb":0.1,"eph":4.0,"epv":6.0,"eps":0.4}\r\n',
        settings={"url": "tcp://127.0.0.1:2947", "id": "rover"},
    ),
    formats=(
        Format("gpsd", f"{__name__}:open_gpsd", (".gpsd", ".gpsd.gz", ".json", ".jsonl"), holds=(b'"class"', b'"TPV"')),
    ),
)
