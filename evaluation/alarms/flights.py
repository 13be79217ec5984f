"""What the aircraft of a log really did: their reports, cleaned, and where each of them was at every full second.

Nothing here comes from a detector. The whole log is held in memory, because truth needs the future as well as the
past. With a lowest altitude, reports from below it, and those without an altitude, are taken out of the batches first:
neither the pipeline nor the truth gets them. What is left of an aircraft's reports is cleaned like this:
- a position equal to the one before is no measurement (receivers repeat the last one when nothing new came);
- a position that would need more than JUMP_KT to reach and to leave is a jump and is dropped, as is the first or last
  one of a track that would need it on its only side;
- an altitude that lasts less than SPIKE_S and lies more than SPIKE_FT above, or below, both the altitude before it
  and the one after it is a spike and is dropped. Equal altitudes in a row are one: spikes are repeated too.

Between reports at most MAX_GAP_S apart, position (Earth-centred, along the chord) and altitude run linearly; across a
longer gap the aircraft is nowhere. It is nowhere either between two positions if a report from below the lowest
altitude was taken out between them. It is in the air unless its on-ground flag says otherwise or, where no flag came
for MAX_GAP_S, its ground speed is under `min_gs_kt`. Times are the samples' own, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.geo import KT_MS, ecef_many
from watchkeeper.streams.messages import COLUMN, Kind

MAX_GAP_S = 30.0
JUMP_KT = 1500.0
SPIKE_FT = 300.0
SPIKE_S = 10.0

_NAMES = ("lat", "lon", "alt_ft", "gs_kt", "trk_deg", "on_ground")
_FIELDS = [COLUMN[Kind.ADSB][name] for name in _NAMES]


@dataclass(frozen=True, slots=True)
class Flight:
    """One aircraft's cleaned reports, each with its own times: positions, altitudes, velocities, ground or air."""

    pos_t: F8
    xyz_m: F8
    """Earth-centred positions, [n, 3]."""
    alt_t: F8
    alt_ft: F8
    velocity_t: F8
    gs_kt: F8
    flag_t: F8
    on_ground: F8
    low_t: F8
    """When it reported from below the lowest altitude; those reports are in none of the others."""


@dataclass(frozen=True, slots=True)
class Sky:
    """Where everyone was: one row per aircraft and second in the air. `aircraft` indexes `ids`."""

    ids: list[str]
    flights: list[Flight]
    second: I8
    aircraft: I4
    xyz_m: F8
    alt_ft: F8
    t_first: float
    """The oldest report's time."""
    interval_s: float
    """The usual time between two positions of one aircraft: the median."""

    @property
    def hours(self) -> float:
        """Flight hours."""
        return len(self.second) / 3600.0

    @property
    def lasts_h(self) -> float:
        """From the first second with anyone in the air to the last, in hours."""
        return float(np.ptp(self.second)) / 3600.0 if len(self.second) else 0.0


class Reports:
    """Collects the ADS-B samples of a stream of batches on its way to someone else.

    Those below `min_alt_ft`, or without an altitude, go no further. A `min_alt_ft` of 0 is no limit.
    """

    def __init__(self, min_alt_ft: float = 0.0) -> None:
        self.min_alt_ft = min_alt_ft
        self.number: dict[str, int] = {}
        self._who: list[I4] = []
        self._t: list[F8] = []
        self._data: list[F8] = []
        self._low: dict[str, list[F8]] = {}

    def passing(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches, noted, without the samples that are too low."""
        for batch in batches:
            yield self.add(batch)

    def add(self, batch: Batch) -> Batch:
        """Take note of the samples that pass the check every sample has to pass; the batch as it goes on."""
        cols = batch.kinds.get(Kind.ADSB)
        if cols is None:
            return batch
        if self.min_alt_ft > 0.0:
            batch = self._above(batch, cols)
        batch = checked(batch)
        cols = batch.kinds.get(Kind.ADSB)
        if cols is None:
            return batch
        number = np.full(len(batch.ids), -1, np.int32)
        for vid in np.unique(cols.vid).tolist():
            number[vid] = self.number.setdefault(batch.ids[vid], len(self.number))
        self._who.append(number[cols.vid])
        self._t.append(cols.t)
        self._data.append(cols.data[_FIELDS])
        return batch

    def _above(self, batch: Batch, cols: Columns) -> Batch:
        """The batch without ADS-B samples below the limit. These are remembered by their times."""
        alt_ft = cols.data[COLUMN[Kind.ADSB]["alt_ft"]]
        below = np.flatnonzero(alt_ft < self.min_alt_ft)
        for vid in np.unique(cols.vid[below]).tolist():
            self._low.setdefault(batch.ids[vid], []).append(cols.t[below[cols.vid[below] == vid]])
        # an unknown altitude is not above the limit either
        cols = cols.take(alt_ft >= self.min_alt_ft)
        return batch.having(batch.kinds | {Kind.ADSB: cols})

    def sky(self, *, min_gs_kt: float) -> Sky:
        """All that was noted, cleaned, at every full second."""
        ids = list(self.number)
        if not ids:
            nothing = np.empty(0)
            return Sky([], [], nothing.astype(np.int64), nothing.astype(np.int32), np.empty((0, 3)), nothing, 0.0, 0.0)
        who, t = np.concatenate(self._who), np.concatenate(self._t)
        order = np.lexsort((t, who))
        who, t, data = who[order], t[order], np.concatenate(self._data, axis=1)[:, order]
        # one report a time: merged logs may hold the same one twice
        once = np.append(True, (np.diff(who) != 0) | (np.diff(t) != 0))
        who, t, data = who[once], t[once], data[:, once]
        bounds = np.searchsorted(who, np.arange(len(ids) + 1))
        low_t = [np.sort(np.concatenate(self._low.get(name, [np.empty(0)]))) for name in ids]
        flights = [
            flight_of(t[a:z], data[:, a:z], low) for (a, z), low in zip(pairwise(bounds.tolist()), low_t, strict=True)
        ]

        rows = [_seconds(flight, min_gs_kt) for flight in flights]
        aircraft = np.repeat(np.arange(len(ids), dtype=np.int32), [len(row[0]) for row in rows])
        intervals = np.concatenate([np.diff(flight.pos_t) for flight in flights])
        return Sky(
            ids=ids,
            flights=flights,
            second=np.concatenate([row[0] for row in rows]),
            aircraft=aircraft,
            xyz_m=np.concatenate([row[1] for row in rows]),
            alt_ft=np.concatenate([row[2] for row in rows]),
            t_first=float(t.min()),
            interval_s=float(np.median(intervals)) if len(intervals) else 0.0,
        )


def flight_of(t: F8, data: F8, low_t: F8) -> Flight:
    """One aircraft's reports in order of time (rows of `data`: _NAMES), cleaned. `low_t`: see Flight."""
    lat, lon, alt_ft, gs_kt, trk_deg, on_ground = data
    moved = np.append(True, (np.diff(lat) != 0.0) | (np.diff(lon) != 0.0))
    pos_t, xyz_m = t[moved], np.ascontiguousarray(ecef_many(lat[moved], lon[moved]).T)
    kept = ~jumps(pos_t, xyz_m)
    level = ~np.isnan(alt_ft)
    alt_t, alt_ft = t[level], alt_ft[level]
    sound = ~spikes(alt_t, alt_ft)
    velocity, flag = ~(np.isnan(gs_kt) | np.isnan(trk_deg)), ~np.isnan(on_ground)
    return Flight(
        pos_t[kept], xyz_m[kept], alt_t[sound], alt_ft[sound],
        t[velocity], gs_kt[velocity], t[flag], on_ground[flag], low_t,
    )  # fmt: skip


def jumps(t: F8, xyz_m: F8) -> Bool:
    """Positions that no aircraft can have come to and gone from."""
    if len(t) < 3:
        return np.zeros(len(t), bool)
    step_m = np.linalg.norm(np.diff(xyz_m, axis=0), axis=1)
    fast = step_m > JUMP_KT * KT_MS * np.diff(t)
    jump: Bool = np.append(fast, True) & np.append(True, fast)
    # next to a jump the first and the last position look like one too, if they have no other neighbour
    jump[0] &= not jump[1]
    jump[-1] &= not jump[-2]
    return jump


def spikes(t: F8, alt_ft: F8) -> Bool:
    """Altitudes that stick out on both sides for a moment."""
    spike = np.zeros(len(t), bool)
    first = np.flatnonzero(np.append(True, np.diff(alt_ft) != 0.0)) if len(t) else np.empty(0, np.int64)
    if len(first) < 3:
        return spike
    level, lasts_s = alt_ft[first], t[np.append(first[1:], len(t)) - 1] - t[first]
    before, own, after = level[:-2], level[1:-1], level[2:]
    over, under = np.minimum(own - before, own - after), np.minimum(before - own, after - own)
    out = (np.maximum(over, under) > SPIKE_FT) & (lasts_s[1:-1] < SPIKE_S)
    run = np.zeros(len(first), bool)
    run[1:-1] = out
    spike[:] = np.repeat(run, np.diff(np.append(first, len(t))))
    return spike


def between(t: F8, values: F8, at: F8) -> F8:
    """Values at the given times, linear between reports at most MAX_GAP_S apart, NaN elsewhere."""
    out = np.full((len(at), *values.shape[1:]), np.nan)
    if not len(t):
        return out
    i = np.searchsorted(t, at, side="right") - 1
    exact = (i >= 0) & (t[i] == at)
    out[exact] = values[i[exact]]
    inside = ~exact & (i >= 0) & (i < len(t) - 1)
    i = i[inside]
    gap_s = t[i + 1] - t[i]
    near = gap_s <= MAX_GAP_S
    i, rows = i[near], np.flatnonzero(inside)[near]
    share = (at[rows] - t[i]) / gap_s[near]
    share = share.reshape(-1, *([1] * (values.ndim - 1)))
    out[rows] = values[i] + share * (values[i + 1] - values[i])
    return out


def _last(t: F8, values: F8, at: F8) -> F8:
    """The last value reported at or before each time; NaN when it is older than MAX_GAP_S."""
    if not len(t):
        return np.full(len(at), np.nan)
    i = np.searchsorted(t, at, side="right") - 1
    return np.where((i >= 0) & (at - t[i] <= MAX_GAP_S), values[i], np.nan)


def _dipped(t: F8, low_t: F8, at: F8) -> Bool:
    """Whether there is a time in `low_t` between the last of `t` before and the first after; never exactly at one."""
    before, after = np.searchsorted(t, at, side="right") - 1, np.searchsorted(t, at, side="left")
    lows = np.searchsorted(low_t, t, side="left")
    return (before < after) & (lows[before] < lows[after])


def _seconds(flight: Flight, min_gs_kt: float) -> tuple[I8, F8, F8]:
    """The full seconds at which the aircraft was somewhere in the air, its positions and its altitudes then."""
    if not len(flight.pos_t):
        return np.empty(0, np.int64), np.empty((0, 3)), np.empty(0)
    second = np.arange(int(np.ceil(flight.pos_t[0])), int(np.floor(flight.pos_t[-1])) + 1)
    at = second.astype(np.float64)
    xyz_m, alt_ft = between(flight.pos_t, flight.xyz_m, at), between(flight.alt_t, flight.alt_ft, at)
    flag = _last(flight.flag_t, flight.on_ground, at)
    slow = _last(flight.velocity_t, flight.gs_kt, at) < min_gs_kt
    ground = np.where(np.isnan(flag), slow, flag == 1.0)
    # a line between two reports at 3,100 ft would hide the dip below 3,000 ft between them
    rows = ~np.isnan(xyz_m[:, 0]) & ~ground & ~_dipped(flight.pos_t, flight.low_t, at)
    return second[rows], xyz_m[rows], alt_ft[rows]
