"""Signals of recorded and simulated vehicles as tables: one time axis per vehicle, a column per signal.

Recordings with GPS, IMU and ADS-B are read as if each of their columns were a signal: what a detector that knows no
physics makes of them. An aircraft that was away for longer than TRACK_S has another track. Rates above `rate_hz` are
thinned, so that every method sees the same values in reasonable time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import FIELDS, SIGNAL, Kind
from watchkeeper.streams.signals import names_in
from watchkeeper.streams.simulate.signals import NAMES, SignalSource

# Columns of recordings that are states or other than measurements of the vehicle.
LEFT_OUT = frozenset({"fix", "sats", "lat", "lon"})
# Columns of ADS-B that are measured; a track goes round from 360 to 0.
ADSB = frozenset({"alt_ft", "gs_kt", "vs_fpm"})
TRACK_S = 60.0
# A signal must have so many values, and change in so many of them, to be judged at all.
VALUES_MIN, CHANGES_MIN = 200, 0.2


@dataclass(frozen=True, slots=True)
class Vehicle:
    """`values[k]` is the signal `names[k]` at the times `t`; NaN where it did not come."""

    name: str
    names: tuple[str, ...]
    t: F8
    values: F8


def simulated(
    vehicles: int, seconds: float, seed: int, rate_hz: float = 1.0, signals: int = len(NAMES)
) -> list[Vehicle]:
    """A fleet without faults."""
    rng = np.random.Generator(np.random.PCG64(seed))
    source = SignalSource(rng, vehicles=vehicles, seconds=seconds, signals=signals, rate_hz=rate_hz, faults=False)
    steps = round(seconds * rate_hz)
    table = np.full((vehicles, len(source.names), steps), np.nan)
    place = {name: k for k, name in enumerate(source.names)}
    for batch in source.batches(0.0):
        cols = batch.kinds[Kind.SIGNAL]
        which = [place[name] for name in names_in(cols.data[SIGNAL.name_0 :])]
        table[cols.vid, which, np.rint(cols.t * rate_hz).astype(int)] = cols.data[SIGNAL.value]
    t = np.arange(steps) / rate_hz
    return [Vehicle(name, tuple(source.names), t, table[i]) for i, name in enumerate(source.ids)]


def recorded(path: Path, rate_hz: float, most: int = 1000) -> Iterator[Vehicle]:
    """A log, or every log of a folder that can be read; of each at most so many vehicles, those heard most."""
    for log in sorted(path.iterdir()) if path.is_dir() else [path]:
        try:
            batches = list(open_log(log).batches(1 << 20))
        except LogError:
            continue
        found = list(_vehicles(log.name.split(".")[0], batches, rate_hz))
        yield from sorted(found, key=lambda v: (-int((~np.isnan(v.values)).sum()), v.name))[:most]


def _vehicles(log: str, batches: list, rate_hz: float) -> Iterator[Vehicle]:  # type: ignore[type-arg]
    series: dict[str, dict[str, list[tuple[F8, F8]]]] = {}
    for batch in batches:
        for kind, cols in batch.kinds.items():
            for vid in np.unique(cols.vid).tolist():
                own = cols.vid == vid
                found = series.setdefault(batch.ids[vid], {})
                if kind is Kind.SIGNAL:
                    names = np.array(names_in(cols.data[SIGNAL.name_0 :, own]), object)
                    for name in set(names.tolist()):
                        rows = np.flatnonzero(own)[names == name]
                        found.setdefault(name, []).append((cols.t[rows], cols.data[SIGNAL.value, rows]))
                elif kind in (Kind.GPS, Kind.IMU, Kind.ADSB):
                    for field, column in zip(FIELDS[kind], cols.data, strict=True):
                        if field.name in ADSB if kind is Kind.ADSB else field.name not in LEFT_OUT:
                            found.setdefault(field.name, []).append((cols.t[own], column[own]))
    for name, parts in series.items():
        joined = {signal: tuple(map(np.concatenate, zip(*some, strict=True))) for signal, some in parts.items()}
        for number, track in enumerate(_tracks(joined)):
            if made := _aligned(f"{log}/{name}" + (f"/{number}" if number else ""), track, rate_hz):
                yield made


def _tracks(series: dict[str, tuple[F8, ...]]) -> Iterator[dict[str, tuple[F8, ...]]]:
    """The series between the times at which nothing came for long."""
    times = np.unique(np.concatenate([t for t, _ in series.values()]))
    cuts = [-np.inf, *times[1:][np.diff(times) > TRACK_S].tolist(), np.inf]
    for first, end in pairwise(cuts):
        yield {name: (t[own], x[own]) for name, (t, x) in series.items() if (own := (t >= first) & (t < end)).any()}


def _aligned(name: str, series: dict[str, tuple[F8, ...]], rate_hz: float) -> Vehicle | None:
    """One time axis: in each bin the last value of each signal."""
    kept = {
        signal: (t[there], x[there])
        for signal, (t, x) in sorted(series.items())
        if (there := ~np.isnan(x)).sum() >= VALUES_MIN and np.mean(np.diff(x[there]) != 0.0) >= CHANGES_MIN
    }
    if not kept:
        return None
    first = min(float(t[0]) for t, _ in kept.values())
    last = max(float(t[-1]) for t, _ in kept.values())
    steps = int((last - first) * rate_hz) + 1
    table = np.full((len(kept), steps), np.nan)
    for k, (t, x) in enumerate(kept.values()):
        table[k, np.clip(((t - first) * rate_hz).astype(int), 0, steps - 1)] = x
    enough = (~np.isnan(table)).sum(axis=1) >= VALUES_MIN
    if not enough.any():
        return None
    names = tuple(signal for signal, there in zip(kept, enough.tolist(), strict=True) if there)
    return Vehicle(name, names, np.arange(steps) / rate_hz, table[enough])
