"""A recording (`.wklog`) as an episode: everyone's state at every step, by the rules of the live detector `intent`.

Steps are the multiples of the step length, rounded up to whole ticks, from the first command or waypoint to the last
sample. At each step a vehicle is where its last report, at most MAX_AGE_S old, says that it is by then; its command is
the last one since the step before. Everybody who reports takes part, but only pairs of which at least one is
controlled, that is for whom a command or a waypoint has been heard by then. Written apart from `intent` (the whole log
at once instead of tick by tick), so that the two can be held against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.intent.steps import arrives
from watchkeeper.evaluation.conflicts.episode import Episode, last_of, within
from watchkeeper.streams.batch import F8, Batch, Bool
from watchkeeper.streams.check import checked
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.geo import KT_MS, direct_many
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.logs.source import LogError, Source, open_log
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.periods import periods_over, periods_until

MAX_AGE_S = DEFAULT.detectors.conflict.max_age_s
TICK_S = DEFAULT.time.tick_s
_USED = (Kind.ADSB, Kind.ACTION, Kind.ROUTE)


def read_log(path: Path, step_s: float) -> Episode:
    """The episode in a recording; raises LogError when nobody is controlled in it or nobody reports."""
    try:
        meta = read_json(path.with_name(path.name + ".truth.json"))
    except LogError:
        meta = {}
    plain = {name: meta[name] for name in ("scenario", "seed") if isinstance(meta, dict) and name in meta}
    return read_source(open_log(path), step_s, plain)


def read_source(source: Source, step_s: float, meta: dict[str, Any] | None = None) -> Episode:
    """The episode in an open log, a frame or a simulation."""
    samples = _Samples(source.batches())
    info = source.info()
    for kind in (Kind.ACTION, Kind.ADSB):
        if not samples.count[kind]:
            problem = f"no {kind.word} stream: an episode needs commands, and positions to judge them by"
            raise LogError(info.path, problem)
    return samples.episode(step_s, meta or {}, info.problems)


class _Samples:
    """All samples of the three streams that matter, by vehicle and in order of time."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self.count = dict.fromkeys(_USED, 0)
        self.t_max = -math.inf
        self._rows: dict[Kind, dict[str, list[tuple[F8, F8]]]] = {kind: {} for kind in _USED}
        for batch in batches:
            self._add(batch)

    def _add(self, batch: Batch) -> None:
        for kind, cols in checked(batch).kinds.items():
            self.t_max = max(self.t_max, float(cols.t.max()))
            if kind not in _USED:
                continue
            self.count[kind] += len(cols)
            for vid in np.unique(cols.vid).tolist():
                mine = cols.vid == vid
                self._rows[kind].setdefault(batch.ids[vid], []).append((cols.t[mine], cols.data[:, mine]))

    def of(self, kind: Kind, name: str) -> tuple[F8, F8]:
        """Times and fields of one vehicle; of equal times the first to arrive stays."""
        parts = self._rows[kind].get(name)
        if parts is None:
            return np.empty(0), np.empty((len(COLUMN[kind]), 0))
        t, data = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts], axis=1)
        # np.unique gives the first of equals, and sorts
        t, first = np.unique(t, return_index=True)
        return t, data[:, first]

    def episode(self, step_s: float, meta: dict[str, Any], problems: tuple[str, ...]) -> Episode:
        """Columns at every step."""
        began = min(self.of(kind, name)[0][0] for kind in (Kind.ACTION, Kind.ROUTE) for name in self._rows[kind])
        at, before = _steps(began, self.t_max, step_s)
        ids = tuple(sorted(self._rows[Kind.ADSB]))
        shape = len(at), len(ids)
        lat, lon, alt, heading, speed, turn, faster, way_lat, way_lon = np.full((9, *shape), np.nan)
        arrived, controlled = np.zeros((2, *shape), bool)
        for a, name in enumerate(ids):
            lat[:, a], lon[:, a], heading[:, a], speed[:, a], alt[:, a] = self._state(name, at)
            t, data = self.of(Kind.ACTION, name)
            last = np.searchsorted(t, at, side="right") - 1
            due = (last >= 0) & (np.append(t, -np.inf)[last] > before)
            turn[due, a], faster[due, a] = data[:, last[due]]
            route_t, route = self.of(Kind.ROUTE, name)
            way = np.searchsorted(route_t, at, side="right") - 1
            known = way >= 0
            way_lat[known, a], way_lon[known, a], reached = (*route[:2, way[known]], np.full(len(at), np.nan))
            reached[known] = route[COLUMN[Kind.ROUTE]["reached"], way[known]]
            near = within(lat[:, a], lon[:, a], way_lat[:, a], way_lon[:, a])
            arrived[:, a] = _arrivals(way_lat[:, a], way_lon[:, a], reached, near)
            controlled[:, a] = known | (last >= 0)
        return Episode(
            ids, at, step_s, lat, lon, alt, heading, speed, turn, faster, way_lat, way_lon,
            arrived=arrived,
            completed=last_of(arrived, ~np.isnan(lat)),
            controlled=controlled,
            reward=np.full(shape, np.nan),
            meta=meta,
            problems=problems,
        )  # fmt: skip

    def _state(self, name: str, at: F8) -> tuple[F8, F8, F8, F8, F8]:
        """Latitude, longitude, heading, speed in kt and altitude at these times, NaN where the vehicle is not heard."""
        t, data = self.of(Kind.ADSB, name)
        value = {field: _latest(t, data[COLUMN[Kind.ADSB][field]], at) for field in COLUMN[Kind.ADSB]}
        here = ~np.isnan(value["lat"][0]) & ~np.isnan(value["gs_kt"][0]) & ~np.isnan(value["trk_deg"][0])
        here &= value["on_ground"][0] != 1.0
        out = np.full((5, len(at)), np.nan)
        rows = np.flatnonzero(here)
        speed = value["gs_kt"][0][rows]
        moved_m = speed * KT_MS * (at[rows] - value["lat"][1][rows])
        out[:3, rows] = direct_many(value["lat"][0][rows], value["lon"][0][rows], value["trk_deg"][0][rows], moved_m)
        out[3, rows], out[4, rows] = speed, value["alt_ft"][0][rows]
        return out[0], out[1], out[2], out[3], out[4]


def _steps(first_t: float, last_t: float, step_s: float) -> tuple[F8, F8]:
    """When each step is looked at, and when the step before it was.

    From the step that the first command belongs to up to the last that ends in the tick of the last sample.
    """
    ended = math.ceil(last_t / TICK_S) * TICK_S
    first = periods_until(first_t, step_s)
    if _looked_t(first - 1, step_s) >= first_t:
        first -= 1  # a command after the end of a step, in the tick that ends it
    at = np.array([_looked_t(k, step_s) for k in range(first - 1, periods_over(ended, step_s) + 1)])
    return at[1:], at[:-1]


def _looked_t(step: int, step_s: float) -> float:
    """Live a step is looked at when the tick ends in which it ends; shorter steps than ticks are not known there."""
    return periods_until(step * step_s, TICK_S) * TICK_S if step_s >= TICK_S else step * step_s


def _latest(t: F8, values: F8, at: F8) -> tuple[F8, F8]:
    """The last value at or before each time, and when it was measured; NaN when it is older than MAX_AGE_S."""
    there = ~np.isnan(values)
    t, values = t[there], values[there]
    last = np.searchsorted(t, at, side="right") - 1
    when = np.append(t, -np.inf)[last]
    fresh = when >= at - MAX_AGE_S
    return np.where(fresh, np.append(values, np.nan)[last], np.nan), when


@njit(cache=True)
def _arrivals(way_lat: F8, way_lon: F8, reached: F8, near: Bool) -> Bool:
    there = np.zeros(way_lat.size, np.bool_)
    for k in range(way_lat.size):
        if not math.isnan(way_lat[k]):
            same = k > 0 and way_lat[k] == way_lat[k - 1] and way_lon[k] == way_lon[k - 1]
            there[k] = arrives(k > 0 and there[k - 1], same, reached[k], near[k])
    return there
