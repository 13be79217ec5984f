"""Gliders and other light aircraft: APRS lines of the Open Glider Network (FLARM, OGN trackers, FANET and others).

    FLRDDA5BA>APRS,qAS,LFMX:/165829h4415.41N/00600.03E'342/049/A=005524 !W12! id0ADDA5BA -454fpm -1.1rot …

Time of day (UTC), position in degrees and minutes, course [deg] and ground speed [kt], altitude [ft]; `!W12!` are one
more digit of latitude and longitude; `id` is a byte of flags and the address; `fpm` the climb. The id of an aircraft
is the address in hexadecimal; one that is not ICAO's has a leading `~`.

The altitude is of GNSS, above mean sea level, and stands in `alt_ft`: it differs from pressure altitude by what the
weather makes of it, some hundred feet. Aircraft whose pilot asks not to be tracked are left out and counted
(`no_track`), as the network's rules say.

The date is that of the arrival; in a recording that of the server's remarks (`# aprsc … 1 Mar 2024 12:00:00 GMT …`),
before the first of which lines are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from math import isnan, nan
from pathlib import Path

from watchkeeper.config.adapters.ogn import Ogn as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import Reports
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

LINE_MAX = 512
DAY_S = 86_400.0
NO_TRACK = "no_track"
_POSITION = re.compile(
    r"[A-Za-z0-9-]{1,9}>[^:]{1,60}:[/@]"
    r"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)h"
    r"(?P<lat>\d\d)(?P<lat_min>\d\d\.\d\d)(?P<north>[NS])."
    r"(?P<lon>\d{3})(?P<lon_min>\d\d\.\d\d)(?P<east>[EW])."
    r"(?:(?P<course>\d{3})/(?P<speed>\d{3}))?"
    r"(?:/A=(?P<alt>-?\d{5,6}))?(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)
_PRECISION = re.compile(r"!W(\d)(\d)!")
_ID = re.compile(r"\bid([0-9A-F]{2})([0-9A-F]{6})\b", re.ASCII)
_CLIMB = re.compile(r"([+-]\d{1,5})fpm", re.ASCII)
_SERVER_TIME = re.compile(r"(\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d) GMT")
# Bits of the first byte of the id: the pilot's wish, and the kind of address.
_NOT_TRACKED, _ADDRESS, _ICAO = 0x40, 0x03, 1
# Of the same byte, four bits: what it is, as OGN numbers it, and as we do (streams/messages.py).
_WHAT_BITS = 2
_CATEGORY = {1: 9.0, 2: 1.0, 3: 7.0, 4: 11.0, 5: 1.0, 6: 12.0, 7: 12.0, 8: 1.0, 9: 3.0, 11: 10.0, 12: 10.0, 13: 14.0}


class Ogn(LineFeed):
    """One connection to a server; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self._reports = Reports(via=via)
        self._server_t = nan

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("#"):
            self._remark(text)
        elif text:
            self._read(text, now)

    def _remark(self, text: str) -> None:
        if found := _SERVER_TIME.search(text):
            try:
                when = datetime.strptime(found[1], "%d %b %Y %H:%M:%S").replace(tzinfo=UTC)
            except ValueError:
                self.refused[Drop.TIME] += 1
                return
            self._server_t = when.timestamp()

    def _read(self, text: str, now: float) -> None:
        found = _POSITION.fullmatch(text)
        if found is None:
            # messages without a position (status of receivers) belong to the format
            self.refused[Drop.SYNTAX] += ">" not in text or ":" not in text
            return
        address = _ID.search(found["rest"])
        if address is None:  # a ground station
            return
        flags = int(address[1], 16)
        if flags & _NOT_TRACKED:
            self.refused[NO_TRACK] += 1
            return
        near = self._server_t if isnan(now) else now
        seconds = 3600.0 * int(found["hour"]) + 60.0 * int(found["minute"]) + int(found["second"])
        if isnan(near) or seconds >= DAY_S:
            self.refused[Drop.TIME] += 1
            return
        t = seconds + DAY_S * round((near - seconds) / DAY_S)
        name = ("" if flags & _ADDRESS == _ICAO else "~") + address[2].lower()
        what = _CATEGORY.get(flags >> _WHAT_BITS & 15)
        values = _motion(found) if what is None else {**_motion(found), "category": what}
        self._reports.place(name, t, *_place(found), values)


def _place(found: re.Match[str]) -> tuple[float, float]:
    finer = _PRECISION.search(found["rest"])
    extra = (int(finer[1]) / 1000.0, int(finer[2]) / 1000.0) if finer else (0.0, 0.0)
    lat = int(found["lat"]) + (float(found["lat_min"]) + extra[0]) / 60.0
    lon = int(found["lon"]) + (float(found["lon_min"]) + extra[1]) / 60.0
    return (-lat if found["north"] == "S" else lat), (-lon if found["east"] == "W" else lon)


def _motion(found: re.Match[str]) -> dict[str, float]:
    values: dict[str, float] = {"on_ground": 0.0}
    if found["alt"]:
        values["alt_ft"] = float(found["alt"])
    if found["speed"]:
        values["gs_kt"] = float(found["speed"])
        if found["course"] != "000":  # not known, or standing; north is 360
            values["trk_deg"] = float(found["course"])
    if climb := _CLIMB.search(found["rest"]):
        values["vs_fpm"] = float(climb[1])
    return values


def hello(source: Settings) -> bytes:
    """The login of a server, which may be anybody's, and what we want to hear."""
    wanted = f" filter {source.filter}" if source.filter else ""
    return f"user {source.login} pass -1 vers watchkeeper 1{wanted}\r\n".encode()


def open_ogn(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "ogn", Ogn)


OGN = AdapterDeclaration(
    name="ogn",
    help="gliders: APRS lines of the Open Glider Network (FLARM and others)",
    docs="adapters/gliders.md",
    settings=Settings,
    feed=f"{__name__}:Ogn",
    ways=(Way.STREAM,),
    hello=f"{__name__}:hello",
    sample=Sample(
        data=b"# aprsc 2.1.15-gc67551b 1 Mar 2024 11:59:58 GMT GLIDERN1 51.178.19.212:10152\r\n"
        b"FLRDDA5BA>APRS,qAS,LFMX:/115959h4415.41N/00600.03E'342/049/A=005524 !W12! id06DDA5BA -454fpm 8.8dB\r\n",
        settings={"url": "tcp://aprs.glidernet.org:14580", "filter": "r/44.2/6.0/100"},
    ),
    formats=(Format("ogn", f"{__name__}:open_ogn", (".ogn", ".ogn.gz", ".aprs")),),
)
