"""What a report gathers while a log goes through the pipeline, in columns: readings, scores, coverage, alarms.

    replay = Replay(config, collector.hear)
    collector.follow(replay)            its watcher, from the first batch on
    replay.run(batches)
    collector.finish()

Nothing is decided here and nothing depends on it: the alarms are those of any replay. Memory does not grow with the
length of the log, only with its vehicles (envelope.py) and its alarms (lives.py), and both have a limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from watchkeeper.daemon.report.gather.envelope import Envelope
from watchkeeper.daemon.report.gather.judged import JudgedTable
from watchkeeper.daemon.report.gather.lives import Lives
from watchkeeper.daemon.report.gather.rows import Rows
from watchkeeper.daemon.report.gather.streams import Streams
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.messages import COLUMN, Kind

# Vehicles with a row of their own, and bins of time for each: an aircraft passes, a drone is looked at closely.
VEHICLES_MAX = 2000
BINS = {Kind.ADSB: 512, Kind.GPS: 2048, Kind.IMU: 2048}
SCORE_BINS = 2048
# Bins of each where there are many vehicles; the tracks of aircraft stay as they are.
BINS_MANY = 256
# Samples that wait to be folded in together: the work is by the array, not by the sample.
FOLD = 16_384
EARTH_M = 111_194.93  # one degree of a great circle, m
READINGS: dict[Kind, tuple[str, ...]] = {
    Kind.ADSB: ("alt_ft", "gs_kt", "nacp", "nic"),
    Kind.GPS: ("alt_m", "speed_mps", "sats", "eph", "epv", "hdop", "fix"),
    Kind.IMU: ("force_mps2", "rate_rps"),
}
POINTS = ("east_m", "north_m")
SCATTER = ("force_scatter_mps2", "rate_scatter_rps")
SCORE = "score"


class Collector:
    """See the module's docstring."""

    def __init__(self, *, enu: bool) -> None:
        self.rows = Rows(VEHICLES_MAX)
        self.lives = Lives()
        self.readings = {
            kind: Envelope(
                names,
                BINS[kind],
                many=BINS[kind] if kind is Kind.ADSB else BINS_MANY,
                points=() if kind is Kind.IMU else POINTS,
            )
            for kind, names in READINGS.items()
        }
        # how much the IMU scatters within a second
        self.scatter = Envelope(SCATTER, BINS[Kind.IMU], many=BINS_MANY)
        self.scores: dict[str, Envelope] = {}
        self.streams: dict[Kind, Streams] = {}
        self.judged = JudgedTable(())
        self.on_earth: set[int] = set()
        # the middle of the map: the first position on Earth that was heard
        self.middle: tuple[float, float] | None = None
        self.restarts = 0
        self._enu = enu
        self._waiting: defaultdict[Kind | str, list[tuple[I8, F8, F8]]] = defaultdict(list)
        self._waits = 0
        self._t = -np.inf
        self._replay: Replay | None = None

    def follow(self, replay: Replay) -> None:
        """Watch this replay."""
        self._replay = replay
        self.judged = JudgedTable(replay.pipeline.guard.coverage.detectors)
        replay.watchers.append(self._tick)
        replay.listeners.append(self.lives.hear)

    def finish(self) -> None:
        """The log has ended."""
        self._fold()
        if self._replay is not None and np.isfinite(self._t):
            self.judged.look(self._replay.pipeline, self.rows, self._t, last=True)

    def _tick(self, window: Window, evidence: list[Evidence]) -> None:
        assert self._replay is not None
        fleet = self._replay.pipeline.fleet
        if window.t < self._t:
            self.restarts += 1
        self._t = window.t
        for kind, samples in window.samples.items():
            row = self.rows.of(fleet, samples.slot)
            self._keep(
                kind, row, samples.t, _READ[kind](samples, enu=self._enu) if kind in _READ else np.empty((0, len(row)))
            )
        for found in evidence:
            # pairs and places have their figures in their alarms
            if found.b is None and not found.places and len(found):
                matrix = np.stack((found.score / found.threshold, *found.numbers.values()))
                if found.kind not in self.scores:
                    self.scores[found.kind] = Envelope((SCORE, *found.numbers), SCORE_BINS, many=BINS_MANY)
                self._keep(found.kind, self.rows.of(fleet, found.a), found.t, matrix)
        self.judged.look(self._replay.pipeline, self.rows, window.t)
        if self._waits >= FOLD:
            self._fold()

    def _keep(self, what: Kind | str, row: I8, t: F8, matrix: F8) -> None:
        self._waiting[what].append((row, t, matrix))
        self._waits += len(t)

    def _fold(self) -> None:
        for what, blocks in self._waiting.items():
            row, t = np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
            matrix = np.concatenate([b[2] for b in blocks], axis=1)
            order = np.lexsort((t, row))
            order = order[row[order] >= 0]
            if len(order):
                self._take(what, row[order], t[order], matrix[:, order])
        self._waiting.clear()
        self._waits = 0

    def _take(self, what: Kind | str, row: I8, t: F8, matrix: F8) -> None:
        if isinstance(what, str):
            self.scores[what].add(row, t, matrix)
            return
        self.streams.setdefault(what, Streams()).add(row, t)
        if what is Kind.IMU:
            self.scatter.add(*_scatter(row, t, matrix))
            self.readings[what].add(row, t, matrix)
        elif what in READINGS:
            values, (lat, lon, east, north) = matrix[:-4], matrix[-4:]
            points = self._points(row, lat, lon, east, north)
            self.readings[what].add(row, t, values, points)

    def _points(self, row: I8, lat: F8, lon: F8, east: F8, north: F8) -> F8:
        """Metres east and north: of the middle of the map on Earth, of its own origin in a local frame."""
        known = np.isfinite(lat) & np.isfinite(lon)
        if not known.any():
            return np.stack((east, north))
        if self.middle is None:
            first = int(np.flatnonzero(known)[0])
            self.middle = float(lat[first]), float(lon[first])
        self.on_earth.update(np.unique(row[known]).tolist())
        lat0, lon0 = self.middle
        across = (lon - lon0 + 540.0) % 360.0 - 180.0
        on_earth = np.stack((across * EARTH_M * np.cos(np.radians(lat0)), (lat - lat0) * EARTH_M))
        return np.where(known, on_earth, np.nan)


def _adsb(samples: Samples, *, enu: bool) -> F8:  # noqa: ARG001
    none = np.full(len(samples), np.nan)
    names = (*READINGS[Kind.ADSB], "lat", "lon")
    return np.stack((*(samples.col(name) for name in names), none, none))


def _gps(samples: Samples, *, enu: bool) -> F8:
    up = samples.col("gps_z") * (1.0 if enu else -1.0)
    alt = np.where(np.isnan(samples.col("alt_m")), up, samples.col("alt_m"))
    speed = np.hypot(samples.col("gps_vx"), samples.col("gps_vy"))
    east, north = (samples.col(name) for name in (("gps_x", "gps_y") if enu else ("gps_y", "gps_x")))
    others = (samples.col(name) for name in READINGS[Kind.GPS][2:])
    return np.stack((alt, speed, *others, samples.col("lat"), samples.col("lon"), east, north))


def _imu(samples: Samples, *, enu: bool) -> F8:  # noqa: ARG001
    column = COLUMN[Kind.IMU]
    force = samples.data[column["imu_ax"] : column["imu_az"] + 1]
    rate = samples.data[column["imu_wx"] : column["imu_wz"] + 1]
    return np.stack((np.sqrt((force**2).sum(axis=0)), np.sqrt((rate**2).sum(axis=0))))


_READ: dict[Kind, Callable[..., F8]] = {Kind.ADSB: _adsb, Kind.GPS: _gps, Kind.IMU: _imu}


def _scatter(row: I8, t: F8, matrix: F8) -> tuple[I8, F8, F8]:
    """Standard deviation of each column within each second of each row."""
    second = np.floor(t)
    starts = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(second, prepend=-1.0) != 0.0))
    n = np.diff(starts, append=len(t))
    mean = np.add.reduceat(matrix, starts, axis=1) / n
    apart = matrix - np.repeat(mean, n, axis=1)
    spread = np.sqrt(np.add.reduceat(apart**2, starts, axis=1) / n)
    # a few samples say nothing about scatter
    spread[:, n < 5] = np.nan
    return row[starts], t[starts], spread
