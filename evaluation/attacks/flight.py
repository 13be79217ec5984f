"""A flight as the protocol sees it: one vehicle's GPS and IMU samples as columns, in order of time.

SI units, times in seconds; fields are those of streams/messages.py, NaN where absent. Arrays are shared and must not be
written to: an attack works on copies of the part that it changes (catalogue.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from narwhals.typing import IntoDataFrame

from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.frames.read import is_frame
from watchkeeper.streams.frames.sources import Data, Log, sources_of
from watchkeeper.streams.logs.source import LogError, open_log, read_logs
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

# Recordings of ours, and of autopilots and ground stations: DataFlash, ULog, MAVLink telemetry.
ENDINGS = (".csv", ".csv.gz", ".wklog", ".bin", ".ulg", ".tlog", ".tlog.gz")
SENSORS = (Kind.GPS, Kind.IMU)
_G = COLUMN[Kind.GPS]
FlightData: TypeAlias = Data | Mapping[str, "Log | IntoDataFrame | Mapping[str, object]"]
"""A folder, a frame of several vehicles, or frames and logs by the name of the flight."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The samples of one sensor: times, and `data[field, sample]`."""

    t: F8
    data: F8

    def __len__(self) -> int:
        return len(self.t)

    def between(self, start: float, stop: float) -> slice:
        """The samples with start <= t < stop."""
        low, high = np.searchsorted(self.t, (start, stop)).tolist()
        return slice(low, high)


@dataclass(frozen=True, slots=True)
class Flight:
    """One vehicle's flight. Splits go by its `id`; its airframe class is the letters that the id begins with."""

    id: str
    gps: Stream
    imu: Stream

    @property
    def airframe(self) -> str:
        """The class, such as `quad` of quad_optflow or `wing` of wing-12."""
        return airframe_of(self.id)

    @property
    def start(self) -> float:
        """Time of the first sample."""
        return float(min(self.gps.t[0], self.imu.t[0]))

    @property
    def end(self) -> float:
        """Time of the last GPS fix: nothing can be judged after it."""
        return float(self.gps.t[-1])

    @property
    def hours(self) -> float:
        """Length."""
        return (self.end - self.start) / 3600.0

    @property
    def speed(self) -> F8:
        """Speed over ground at each fix, m/s; NaN where there is no velocity."""
        velocity = self.gps.data[_G["gps_vx"] : _G["gps_vy"] + 1]
        speed: F8 = np.hypot(velocity[0], velocity[1])
        return speed

    def stream(self, kind: Kind) -> Stream:
        """GPS or IMU."""
        return self.gps if kind is Kind.GPS else self.imu

    def from_zero(self) -> Flight:
        """The same flight, begun at t = 0."""
        begin = self.start
        return replace(
            self, gps=Stream(self.gps.t - begin, self.gps.data), imu=Stream(self.imu.t - begin, self.imu.data)
        )


def airframe_of(flight_id: str) -> str:
    """The letters at the start of an id.

    >>> airframe_of("quad_optflow"), airframe_of("wing-12")
    ('quad', 'wing')
    """
    found = re.match(r"[A-Za-z]+", flight_id)
    return found.group().lower() if found else "unknown"


def flights_of(batches: Iterable[Batch]) -> list[Flight]:
    """Every vehicle in the batches that has both GPS and IMU samples, by name."""
    parts: dict[str, dict[Kind, list[Stream]]] = {}
    for batch in batches:
        for kind in SENSORS:
            cols = batch.kinds.get(kind)
            if cols is None:
                continue
            for vid in np.unique(cols.vid).tolist():
                rows = cols.vid == vid
                streams = parts.setdefault(batch.ids[vid], {kind: [] for kind in SENSORS})
                streams[kind].append(Stream(cols.t[rows], cols.data[:, rows]))
    return [
        Flight(name, _join(Kind.GPS, streams[Kind.GPS]), _join(Kind.IMU, streams[Kind.IMU]))
        for name, streams in sorted(parts.items())
        if streams[Kind.GPS] and streams[Kind.IMU]
    ]


def _join(kind: Kind, parts: list[Stream]) -> Stream:
    t = np.concatenate([part.t for part in parts])
    data = np.concatenate([np.empty((len(FIELDS[kind]), 0)), *(part.data for part in parts)], axis=1)
    # in order, and of samples with the same time the first, as the pipeline would have it
    order = np.argsort(t, kind="stable")
    order = order[np.append(True, np.diff(t[order]) > 0.0)]
    return Stream(t[order], np.ascontiguousarray(data[:, order]))


def flights_in(data: FlightData | Sequence[Flight]) -> list[Flight]:
    """All flights in a folder of logs, in a frame of several vehicles, in frames and logs by name, or given."""
    if isinstance(data, (list, tuple)) and all(isinstance(part, Flight) for part in data):
        return list(data)
    if isinstance(data, (str, PathLike)) and Path(data).is_dir():
        return read_flights(Path(data))
    if not isinstance(data, Mapping) or not all(_is_log(part) for part in data.values()):
        return _found(data)
    return [
        replace(flight, id=name if len(own) == 1 else f"{name}/{flight.id}")
        for name, part in data.items()
        for own in [_found(part)]
        for flight in own
    ]


def _is_log(part: object) -> bool:
    return isinstance(part, (str, PathLike)) or is_frame(part)


def _found(data: object) -> list[Flight]:
    sources = sources_of(data)
    found = flights_of(read_logs(sources))
    if not found:
        raise LogError(sources[0].info().path, "no vehicle with both GPS and IMU samples")
    return found


def read_flights(folder: Path) -> list[Flight]:
    """All flights in the logs of a folder, by id. A log of one vehicle gives it the file's name."""
    paths = sorted(path for path in folder.glob("*") if path.name.lower().endswith(ENDINGS))
    if not paths:
        raise LogError(folder, f"no flights: no file ends in {', '.join(ENDINGS)}")
    flights: dict[str, Flight] = {}
    for path in paths:
        found = flights_of(open_log(path).batches(start=-math.inf))
        if not found:
            raise LogError(path, "no vehicle with both GPS and IMU samples")
        if len(found) == 1:
            found = [replace(found[0], id=_stem(path))]
        for flight in found:
            if flight.id in flights:
                raise LogError(path, f"flight {flight.id!r} is in another file as well")
            flights[flight.id] = flight
    return list(flights.values())


def _stem(path: Path) -> str:
    """A file's name without the ending that we know it by; the rest may have dots of its own."""
    ending = max((e for e in ENDINGS if path.name.lower().endswith(e)), key=len)
    return path.name[: -len(ending)]
