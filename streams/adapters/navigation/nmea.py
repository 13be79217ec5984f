"""NMEA 0183 of a satellite receiver, live and recorded: the GPS of one vehicle.

    GGA   time of day, position, quality, satellites, HDOP, altitude above mean sea level
    RMC   time and date, position, speed [kt] and course [deg] over ground
    GST   the receiver's own 1-sigma estimates of latitude, longitude, altitude [m]
    ZDA   time and date

GGA and RMC of one time are one sample, made when both are there, or when the next time begins. Velocity is north and
east (local frame `ned`). The date comes from RMC or ZDA, live before them from the clock of this machine; sentences of
a recording before the first date are refused. Quality as `fix`: 0 none, 1 three dimensions, 2 differential, 4 and 5
RTK. All talkers are read alike; other sentences belong to the format and say nothing to us.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from math import cos, hypot, isnan, nan, radians, sin
from pathlib import Path

from watchkeeper.config.adapters.nmea import Nmea as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.navigation.epochs import Said
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.adapters.sentences import SENTENCE_MAX, sentence_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop, Kind

DAY_S = 86_400.0
CHECKSUM = "checksum"
# Quality of GGA as fix type: differential is 4, RTK float 5, RTK fixed 6; estimated and simulated positions are none.
_FIX = {"0": 0.0, "1": 3.0, "2": 4.0, "3": 4.0, "4": 6.0, "5": 5.0, "6": 1.0, "7": 1.0, "8": 1.0}
_LENGTH = {"GGA": 14, "RMC": 9, "GST": 8, "ZDA": 4}


class Nmea(LineFeed):
    """One receiver; see adapters/base.py."""

    def __init__(self, *, via: str = "", id: str = "gps") -> None:  # noqa: A002  a setting
        super().__init__(SENTENCE_MAX)
        self.refused: Counter[str] = Counter()
        self._name = id
        self._rows = Rows(via)
        self._said = Said()
        self._midnight = nan
        self._time_s = nan
        self._parts: dict[str, dict[str, float]] = {}

    def take(self) -> Batch | None:
        """See Feed."""
        return self._rows.take()

    def close(self) -> None:
        """See Feed."""
        super().close()
        self._finish()

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        if not (text := line.strip()):
            return
        sentence = sentence_of(text)
        if sentence is None:
            self.refused[CHECKSUM if text[:1] in b"$!\\" else Drop.SYNTAX] += 1
            return
        if len(sentence.cells) < _LENGTH.get(sentence.word, 0):
            self.refused[Drop.MISSING] += 1
            return
        try:
            self._read(sentence.word, sentence.cells, now)
        except (ValueError, OverflowError):
            self.refused[Drop.TYPE] += 1

    def _read(self, word: str, cells: list[str], now: float) -> None:
        if word not in _LENGTH or not cells[0]:
            return
        time_s = _time_of_day(cells[0])
        if word == "ZDA":
            self._midnight = _midnight(cells[1], cells[2], cells[3])
            return
        if time_s != self._time_s:
            self._finish()
            if time_s < self._time_s - DAY_S / 2:
                self._midnight += DAY_S  # GGA of a new day comes before the new date
            self._time_s = time_s
        if word == "RMC" and cells[8]:
            self._midnight = _midnight(cells[8][:2], cells[8][2:4], f"20{cells[8][4:6]}")
        elif isnan(self._midnight) and not isnan(now):
            # the nearest midnight to which this time of day belongs
            self._midnight = DAY_S * round((now - time_s) / DAY_S)
        if word == "GST":
            lat_m, lon_m, alt_m = (float(cell) if cell else nan for cell in cells[5:8])
            if not isnan(self._midnight) and not isnan(lat_m + lon_m):
                epv = {} if isnan(alt_m) else {"epv": alt_m}
                self._said.note(self._midnight + time_s, {"eph": hypot(lat_m, lon_m), **epv})
            return
        self._parts[word] = _gga(cells) if word == "GGA" else _rmc(cells)
        if len(self._parts) == 2:
            self._finish()

    def _finish(self) -> None:
        """The sentences of this time are complete."""
        parts, self._parts = self._parts, {}
        if not parts:
            return
        if isnan(self._midnight):
            self.refused[Drop.TIME] += len(parts)
            return
        t = self._midnight + self._time_s
        # GGA has the altitude, and its position is the same
        values = {**parts.get("RMC", {}), **parts.get("GGA", {})}
        self._rows.add(Kind.GPS, self._name, t, {**self._said.take(t), **values})


def _midnight(day: str, month: str, year: str) -> float:
    return datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp()


def _time_of_day(text: str) -> float:
    """Seconds since midnight of hhmmss.sss."""
    seconds = float(text[4:])
    hours, minutes = int(text[:2]), int(text[2:4])
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0.0 <= seconds < 61.0):
        raise ValueError(text)
    return 3600.0 * hours + 60.0 * minutes + seconds


def _degrees(text: str, side: str, negative: str) -> float:
    """dddmm.mmm and its side in degrees."""
    if side not in ("N", "S", "E", "W"):
        raise ValueError(side)
    whole = text.index(".") - 2 if "." in text else len(text) - 2
    value = int(text[:whole] or "0") + float(text[whole:]) / 60.0
    return -value if side == negative else value


def _position(cells: list[str]) -> dict[str, float]:
    """Latitude and longitude of four cells, if they are there."""
    if not (cells[0] and cells[2]):
        return {}
    return {"lat": _degrees(cells[0], cells[1], "S"), "lon": _degrees(cells[2], cells[3], "W")}


def _gga(cells: list[str]) -> dict[str, float]:
    values = {"fix": _FIX.get(cells[5], 0.0), **_position(cells[1:5])}
    for field, cell in (("sats", cells[6]), ("hdop", cells[7]), ("alt_m", cells[8])):
        if cell:
            values[field] = float(cell)
    if values["fix"] == 0.0:  # receivers repeat the last position, or say 99.99 for HDOP
        values = {field: values[field] for field in ("fix", "sats") if field in values}
    return values


def _rmc(cells: list[str]) -> dict[str, float]:
    if cells[1] != "A":
        return {"fix": 0.0}
    values = {"fix": 3.0, **_position(cells[2:6])}
    if cells[6] and cells[7]:
        speed_ms, course = float(cells[6]) * KT_MS, radians(float(cells[7]))
        values |= {"gps_vx": speed_ms * cos(course), "gps_vy": speed_ms * sin(course)}
    return values


def open_nmea(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "nmea", Nmea)


NMEA = AdapterDeclaration(
    name="nmea",
    help="NMEA 0183 of satellite receivers",
    docs="adapters/navigation.md",
    settings=Settings,
    feed=f"{__name__}:Nmea",
    takes=("via", "id"),
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(
        data=b"$GPRMC,120000.00,A,5130.0000,N,00030.0000,W,010.00,090.00,010324,,,A*47\r\n"
        b"$GPGGA,120000.00,5130.0000,N,00030.0000,W,1,09,0.90,80.0,M,47.0,M,,*72\r\n",
        settings={"url": "serial:///dev/ttyUSB0?baud=9600", "id": "boat-1"},
    ),
    formats=(Format("nmea", f"{__name__}:open_nmea", (".nmea", ".nmea.gz", ".nma")),),
)
