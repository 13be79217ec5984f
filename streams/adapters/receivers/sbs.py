"""SBS-1 / BaseStation text: what dump1090, readsb and many receivers serve on TCP port 30003, and its recordings.

One message a line, 22 columns separated by commas:

     0 MSG        1 type      4 ICAO address (hex)      6, 7 date and time generated      8, 9 the same, logged
    10 callsign  11 altitude [ft]  12 ground speed [kt]  13 track [deg]  14 latitude  15 longitude
    16 vertical rate [ft/min]  17 squawk  21 on the ground (-1 or 1: yes, 0: no)

Types 2 and 3 carry positions, 4 velocity, 1 the callsign, the others altitude or ground; every column that is filled is
used, whatever the type. Lines of other sorts (SEL, ID, AIR, STA, CLK) belong to the format and say nothing to us.

Times are the receiver's local time without a zone. A recording is read as UTC; live, samples get the time of arrival
(`times = "message"` takes the receiver's, for those that run on UTC).
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Literal

from watchkeeper.config.adapters.sbs import Sbs as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import Reports, squawk_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

Times = Literal["arrival", "message"]
# A real line has some 120 characters.
LINE_MAX = 512
# Columns that are numbers, and our names for them.
_NUMBERS = {11: "alt_ft", 12: "gs_kt", 13: "trk_deg", 16: "vs_fpm"}
_ADDRESS, _DATE, _TIME, _CALLSIGN, _LAT, _LON = 4, 6, 7, 10, 14, 15
_SQUAWK, _GROUND = 17, 21
# MSG lines end with column 21, and some programs leave off the last empty ones.
_LEAST_COLUMNS = 10
_OTHER = (b"SEL,", b"ID,", b"AIR,", b"STA,", b"CLK")


class Sbs(LineFeed):
    """One feed; see adapters/base.py."""

    def __init__(self, *, via: str = "", times: Times = "message") -> None:
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self._times = times
        self._reports = Reports(via=via)
        self._day = ("", 0.0)

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        line = line.strip()
        if not line or line.startswith(_OTHER):
            return
        cells = line.decode("ascii", "replace").split(",")
        if cells[0] != "MSG" or len(cells) < _LEAST_COLUMNS:
            self.refused[Drop.SYNTAX] += 1
            return
        try:
            self._message(cells, now)
        except _RefusedError as refused:
            self.refused[refused.reason] += 1

    def _message(self, cells: list[str], now: float) -> None:
        name = cells[_ADDRESS].strip().lower()
        if not (len(name) == 6 and all(c in "0123456789abcdef" for c in name)):
            raise _RefusedError(Drop.ID)
        t = now if self._times == "arrival" and not isnan(now) else self._when(cells)
        cells += [""] * (_GROUND + 1 - len(cells))
        values = {field: _number(cells[i]) for i, field in _NUMBERS.items() if cells[i].strip()}
        if cells[_GROUND].strip():
            values["on_ground"] = float(_number(cells[_GROUND]) != 0.0)
        # some programs leave off the zeros at the front
        if (squawk := squawk_of((digits := cells[_SQUAWK].strip()) and digits.zfill(4))) is not None:
            values["squawk"] = squawk
        self._reports.call(name, cells[_CALLSIGN])
        if cells[_LAT].strip() and cells[_LON].strip():
            self._reports.place(name, t, _number(cells[_LAT]), _number(cells[_LON]), values)
        else:
            self._reports.note(name, t, values)

    def _when(self, cells: list[str]) -> float:
        """Unix seconds of the time generated; days are repeated all day long, so the last one is kept."""
        date, clock = cells[_DATE].strip(), cells[_TIME].strip()
        try:
            if date != self._day[0]:
                year, month, day = map(int, date.split("/"))
                self._day = date, datetime(year, month, day, tzinfo=UTC).timestamp()
            hours, minutes, seconds = clock.split(":")
            return self._day[1] + 3600 * int(hours) + 60 * int(minutes) + float(seconds)
        except (ValueError, OverflowError) as error:
            raise _RefusedError(Drop.TIME) from error


class _RefusedError(Exception):
    """A line that cannot be used, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise _RefusedError(Drop.TYPE) from error


def open_sbs(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "sbs", Sbs)


SBS = AdapterDeclaration(
    name="sbs",
    help="BaseStation text of ADS-B receivers",
    docs="adapters/receivers.md",
    settings=Settings,
    feed=f"{__name__}:Sbs",
    takes=("via", "times"),
    ways=(Way.STREAM,),
    sample=Sample(
        data=b"MSG,4,1,1,4CA7B3,1,2024/03/01,12:00:00.250,2024/03/01,12:00:00.250,,,450.5,90.0,,,-64,,,,,0\r\n"
        b"MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.500,2024/03/01,12:00:00.500,,35000,,,51.5,-0.5,,,0,0,0,0\r\n",
        settings={"url": "tcp://192.168.1.20:30003"},
    ),
    formats=(Format("sbs", f"{__name__}:open_sbs", (".sbs", ".sbs.gz", ".bst", ".bst.gz")),),
)
