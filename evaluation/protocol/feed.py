"""Feeds many variants of few flights to a pipeline: each a vehicle of its own, slice by slice in order of arrival.

A variant is a flight, clean or with an attack. It shares the clean flight's samples up to the onset and ends with the
attack, so that thousands fit into memory. The strict profile takes an AHRS's attitude out here, before anything else
sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from watchkeeper.evaluation.attacks.catalogue import Injection
from watchkeeper.evaluation.attacks.flight import SENSORS, Flight
from watchkeeper.evaluation.shared.features import AHRS
from watchkeeper.streams.batch import F8, I4, Batch, Columns
from watchkeeper.streams.messages import COLUMN, Kind

# Shorter than a tick waits for stragglers, so that the order inside a slice does not matter.
SLICE_S = 1.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A flight to run: clean, or with an attack and then only up to its end."""

    flight: Flight
    injection: Injection | None = None

    @property
    def samples(self) -> int:
        """How many are fed, if none is lost."""
        if self.injection is None:
            return len(self.flight.gps) + len(self.flight.imu)
        return int(self.injection.gps_rows.stop + self.injection.imu_rows.stop)


def batches(variants: Sequence[Variant], *, strict: bool) -> Iterator[Batch]:
    """All variants in slices of a second, in order of arrival."""
    ids = [str(i) for i in range(len(variants))]
    feeds = [
        feed for flight in _unique(variants) for feed in (_Feed(flight, kind, variants, strict) for kind in SENSORS)
    ]
    for k in range(int(max(f.last_t for f in feeds) // SLICE_S) + 1):
        kinds: dict[Kind, list[tuple[I4, F8, F8]]] = {kind: [] for kind in SENSORS}
        for feed in feeds:
            kinds[feed.kind] += feed.slice(k)
        columns: dict[Kind, Columns] = {}
        seq = 0
        for kind, parts in kinds.items():
            if parts:
                columns[kind] = _columns(parts, seq)
                seq += len(columns[kind])
        if columns:
            yield Batch(ids, columns)


def _unique(variants: Sequence[Variant]) -> list[Flight]:
    return list({id(v.flight): v.flight for v in variants}.values())


def _columns(parts: list[tuple[I4, F8, F8]], seq: int) -> Columns:
    vid = np.concatenate([part[0] for part in parts])
    t = np.concatenate([part[1] for part in parts])
    data = np.concatenate([part[2] for part in parts], axis=1)
    return Columns(np.arange(seq, seq + len(t)), vid, np.full(len(t), -1, np.int32), t, data)


class _Feed:
    """One sensor of all variants of one flight."""

    def __init__(self, flight: Flight, kind: Kind, variants: Sequence[Variant], strict: bool) -> None:
        self.kind = kind
        self._stream = flight.stream(kind)
        self._data = _allowed(kind, self._stream.data, strict)
        self.last_t = float(self._stream.t[-1]) if len(self._stream) else 0.0  # a flight may have one sensor only
        slices = int(self.last_t // SLICE_S) + 2
        self._edges = np.searchsorted(self._stream.t, np.arange(slices + 1) * SLICE_S)
        self._strict = strict
        self._clean: list[int] = []
        self._waiting: list[tuple[int, int, Injection]] = []
        for i, variant in enumerate(variants):
            if variant.flight is flight:
                if variant.injection is None:
                    self._clean.append(i)
                else:
                    self._waiting.append((self._rows(variant.injection).start, i, variant.injection))
        self._waiting.sort(key=lambda w: w[:2], reverse=True)
        self._attacked: list[tuple[int, Injection]] = []

    def _rows(self, injection: Injection) -> slice:
        return injection.gps_rows if self.kind is Kind.GPS else injection.imu_rows

    def slice(self, k: int) -> list[tuple[I4, F8, F8]]:
        """Vehicles, times and fields of what arrives in slice k."""
        if k + 1 >= len(self._edges):
            return []
        low, high = int(self._edges[k]), int(self._edges[k + 1])
        while self._waiting and self._waiting[-1][0] < high:
            _, i, injection = self._waiting.pop()
            self._attacked.append((i, injection))
        parts: list[tuple[I4, F8, F8]] = []
        # until its onset a variant is the clean flight, and so are all that still wait
        same = np.array([*self._clean, *(w[1] for w in self._waiting)], np.int32)
        if high > low and len(same):
            n = high - low
            t, data = self._stream.t[low:high], self._data[:, low:high]
            parts.append((np.repeat(same, n), np.tile(t, len(same)), np.tile(data, (1, len(same)))))
        for i, injection in self._attacked:
            parts += self._part(i, injection, low, high)
        self._attacked = [(i, made) for i, made in self._attacked if self._rows(made).stop > high]
        return parts

    def _part(self, i: int, injection: Injection, low: int, high: int) -> list[tuple[I4, F8, F8]]:
        rows = self._rows(injection)
        stream, lost = (
            (injection.gps, injection.gps_lost) if self.kind is Kind.GPS else (injection.imu, injection.imu_lost)
        )
        parts: list[tuple[I4, F8, F8]] = []
        if low < (stop := min(rows.start, high)):
            vid = np.full(stop - low, i, np.int32)
            parts.append((vid, self._stream.t[low:stop], self._data[:, low:stop]))
        a, b = max(low, rows.start) - rows.start, min(high, rows.stop) - rows.start
        if a < b and (kept := ~lost[a:b]).any():
            data = _allowed(self.kind, stream.data[:, a:b][:, kept], self._strict)
            parts.append((np.full(int(kept.sum()), i, np.int32), stream.t[a:b][kept], data))
        return parts


def _allowed(kind: Kind, data: F8, strict: bool) -> F8:
    """The fields without an AHRS's attitude, if the profile is strict."""
    if kind is Kind.GPS or not strict:
        return data
    data = data.copy()
    data[[COLUMN[Kind.IMU][name] for name in AHRS]] = np.nan
    return data
