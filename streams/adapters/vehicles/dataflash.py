"""ArduPilot's own flight logs, DataFlash `.bin`, read with pymavlink (extra `mavlink`): the sensors as it heard them.

    IMU    IMU: GyrX/Y/Z [rad/s], AccX/Y/Z [m/s2] (body axes forward, right, down), the first instance
    GPS    GPS: Lat, Lng [deg], Alt [m], Spd and GCrs as velocity north and east, VZ down, Status, NSats, HDop
    GPA    HAcc, VAcc and SAcc of the fix that was logged at the same moment: eph, epv [m], speed_acc [m/s]
    UBX1   noisePerMS, jamInd and agcCnt of a u-blox receiver, with the fixes that follow: noise, jamming, agc
    PARM   SYSID_THISMAV: the vehicle is called `mav` and that, as over MAVLink; without it, after the file

A log describes its own messages (FMT), so columns are found by name. Nothing that the autopilot estimated is judged: no
ATT, no POS, no filter states. Modes, failsafes and the receiver's own figures are for reports (dataflash_told.py).

Times are microseconds since boot (TimeUS). GPS week and milliseconds (GWk, GMS) say what that is in Unix time, less the
leap seconds of the day; samples of a log that never knew the time count from boot.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.table import Table, TableLog
from watchkeeper.streams.adapters.vehicles.chosen import Chosen
from watchkeeper.streams.adapters.vehicles.dataflash_signals import KINDS as SIGNALS
from watchkeeper.streams.adapters.vehicles.dataflash_signals import Signals
from watchkeeper.streams.adapters.vehicles.dataflash_told import KINDS, Story
from watchkeeper.streams.foreign.library import library
from watchkeeper.streams.logs.base import Format, LogError
from watchkeeper.streams.messages import ID_MAX, Kind

MAGIC = b"\xa3\x95\x80"
GPS_EPOCH_S, WEEK_S = 315_964_800, 604_800
# Unix time from which on GPS is ahead of UTC by so many seconds; autopilots have logged this way since 2013.
LEAPS = ((1_483_228_800, 18), (1_435_708_800, 17), (1_341_100_800, 16), (0, 15))
_IMU = {f"imu_a{axis}": f"Acc{axis.upper()}" for axis in "xyz"} | {
    f"imu_w{axis}": f"Gyr{axis.upper()}" for axis in "xyz"
}
_GPS = {"lat": "Lat", "lon": "Lng", "alt_m": "Alt", "gps_vz": "VZ", "fix": "Status", "sats": "NSats", "hdop": "HDop"}
_UBX1 = {"noise": "noisePerMS", "jamming": "jamInd", "agc": "agcCnt"}
_FIX_2D = 2
_READ = {"IMU", "GPS", "GPA", "PARM", *KINDS, *SIGNALS}
Row = dict[str, float]


def open_dataflash(path: Path, recordings: Recordings | None = None) -> TableLog:
    """A flight log. Raises LogError."""
    try:
        from pymavlink.DFReader import DFReader_binary  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LogError(path, 'an ArduPilot log needs pymavlink: pip install "watchkeeper[mavlink]"') from error
    chosen = Chosen(recordings)
    with (
        library(path, "not a DataFlash log"),
        _overheard() as said,
        contextlib.closing(_limited(DFReader_binary)(str(path), zero_time_base=True)) as reader,
    ):
        found = _Found(reader, chosen)
    if not found.imu and not found.gps:
        raise LogError(path, "no IMU and no GPS messages: neither was logged (LOG_BITMASK)")
    problems = ["the log is damaged: what could be read was read"] if said else []
    problems += chosen.problems()
    if found.bad:
        problems.append(f"{found.bad:,} messages not used (their columns are no numbers)")
    offset_s = found.utc_offset_s()
    tables: dict[Kind, Table] = {}
    for kind, rows in ((Kind.GPS, found.gps), (Kind.IMU, found.imu)):
        if rows:
            tables[kind] = _table(rows, offset_s)
    if (signals := found.signals.table(offset_s)) is not None:
        tables[Kind.SIGNAL] = signals
    name = found.name or path.stem[:ID_MAX]
    until_t = max(float(t.max()) for t, _, _ in tables.values())
    told = found.story.told(name, offset_s, until_t)
    return TableLog(path, "dataflash", [name], tables, problems=problems, bad_rows=found.bad, told=told)


def _limited(reader: Any) -> Any:
    """The reader of pymavlink, which reads a message whose format claims no length for ever."""

    class Limited(reader):  # type: ignore[misc]
        def _parse_next(self) -> Any:
            before = self.offset
            message = super()._parse_next()
            if message is not None and self.offset <= before:
                raise ValueError(f"a message without a length at byte {before:,}")
            return message

    return Limited


@contextlib.contextmanager
def _overheard() -> Iterator[list[str]]:
    """Keeps what pymavlink prints off the terminal; a word in the list if it printed anything.

    It prints what it does not understand, partly from compiled code, so the file handles themselves are turned away.
    """
    said: list[str] = []
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as aside, contextlib.ExitStack() as stack:
        for handle in (1, 2):
            kept = os.dup(handle)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, handle)
            os.dup2(aside.fileno(), handle)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            yield said
        ctypes.CDLL(None).fflush(None)  # what compiled code holds back
        if out.getvalue().strip() or aside.seek(0, os.SEEK_END):
            said.append("printed")


class _Found:
    """What is in a log, in the order of the file."""

    def __init__(self, reader: Any, chosen: Chosen) -> None:
        self.imu: list[Row] = []
        self.gps: list[Row] = []
        self.bad = 0
        self.name = ""
        self.story = Story()
        self.signals = Signals(chosen)
        self._words: Row = {}
        self._utc: list[float] = []
        more = {form.name for form in reader.formats.values() if chosen.might(form.name)}
        while (message := reader.recv_match(type=list(_READ | more))) is not None:
            kind = message.get_type()
            try:
                if kind in more:
                    self.signals.take_chosen(kind, message)
                if kind not in _READ:
                    continue
                if kind == "PARM":
                    if message.Name in ("SYSID_THISMAV", "MAV_SYSID"):
                        self.name = f"mav{int(message.Value)}"
                elif kind in SIGNALS:
                    self.signals.take(kind, message, reader.flightmode)
                elif kind in KINDS:
                    self.signals.take(kind, message, reader.flightmode)
                    if kind == "UBX1" and int(getattr(message, "Instance", 0)) == 0:
                        self._words = {field: float(getattr(message, name)) for field, name in _UBX1.items()}
                    self.story.take(kind, message, reader.flightmode)
                elif getattr(message, "I", 0) != 0:
                    continue
                elif kind == "GPA":
                    # written right behind the GPS message of the same moment
                    self._add_accuracy(message)
                elif kind == "GPS":
                    self._add_gps(message)
                    self.signals.take(kind, message, "")
                else:
                    values = {field: float(getattr(message, name)) for field, name in _IMU.items()}
                    self.imu.append({"t": message.TimeUS / 1e6, **values})
            except (AttributeError, TypeError, ValueError, OverflowError):
                self.bad += 1

    def _add_gps(self, message: Any) -> None:
        row = {field: float(getattr(message, name)) for field, name in _GPS.items() if hasattr(message, name)}
        row["t"] = message.TimeUS / 1e6
        if row["fix"] < _FIX_2D and not (row["lat"] or row["lon"]):
            del row["lat"], row["lon"], row["alt_m"]  # there never was a fix
        row |= self._words
        speed_ms, course = float(message.Spd), math.radians(float(message.GCrs))
        row |= {"gps_vx": speed_ms * math.cos(course), "gps_vy": speed_ms * math.sin(course)}
        self.gps.append(row)
        if message.GWk > 0:
            self._utc.append(utc_s(int(message.GWk), int(message.GMS)) - row["t"])

    def _add_accuracy(self, message: Any) -> None:
        if self.gps and self.gps[-1]["t"] == message.TimeUS / 1e6:
            self.gps[-1] |= {"eph": float(message.HAcc), "epv": float(message.VAcc)}
            if hasattr(message, "SAcc"):
                self.gps[-1]["speed_acc"] = float(message.SAcc)

    def utc_offset_s(self) -> float:
        """Unix time at boot; 0 if it was never known."""
        return float(np.median(self._utc)) if self._utc else 0.0


def utc_s(week: int, milliseconds: int) -> float:
    """Unix time from GPS week and the milliseconds in it."""
    gps_s = GPS_EPOCH_S + WEEK_S * week + milliseconds / 1e3
    return gps_s - next(leap_s for since, leap_s in LEAPS if gps_s - leap_s >= since)


def _table(rows: list[Row], offset_s: float) -> Table:
    columns: dict[str, list[float]] = defaultdict(list)
    names = sorted(set[str]().union(*rows) - {"t"})
    for row in rows:
        for name in names:
            columns[name].append(row.get(name, math.nan))
    t = np.array([row["t"] for row in rows]) + offset_s
    return t, np.zeros(len(rows), np.int32), {name: np.array(values) for name, values in columns.items()}


DATAFLASH = AdapterDeclaration(
    name="dataflash",
    help="flight logs of ArduPilot",
    docs="adapters/ardupilot.md",
    extra="watchkeeper[mavlink]",
    formats=(Format("dataflash", f"{__name__}:open_dataflash", (), b"\xa3\x95\x80", chooses=True),),
)
