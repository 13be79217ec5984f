"""Time-shifted traffic: the flights of a log at other times, so that losses of separation happen that nobody prevented.

In a recording pilots and controllers keep most aircraft apart, and an alarm that came in time and was heeded looks like
a false one. Bilimoria and Lee shift the tracks in time (Properties of Air Traffic Conflicts for Free and Structured
Routing, AIAA 2001-4051): every flight is flown as it was, but among others that were not there, so no one reacts.

A flight is the reports of one id without a break of more than BREAK_S. It begins at a random moment within `hours`, the
same for the same seed and flight, whatever else is in the log; fewer hours are denser traffic. With `half` only every
other flight is taken, by its name: what is tuned on one half is judged on the other. Called by api.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from watchkeeper.streams.batch import F8, I4, Batch, Columns
from watchkeeper.streams.messages import Kind

BREAK_S = 600.0
# How much of the new time goes into one batch.
SLICE_S = 60.0

Half = Literal["first", "second"]


class Shift(msgspec.Struct, frozen=True):
    """How flights are shifted: over how many hours, by which seed, and which half of them."""

    hours: float
    seed: int = 1
    half: Half | None = None


def shifted(batches: Iterable[Batch], shift: Shift) -> Iterator[Batch]:
    """All ADS-B samples of the batches at their new times, in order; other kinds are left out."""
    number: dict[str, int] = {}
    who: list[I4] = []
    parts: list[Columns] = []
    for batch in batches:
        if (cols := batch.kinds.get(Kind.ADSB)) is not None:
            names = np.array([number.setdefault(name, len(number)) for name in batch.ids], np.int32)
            who.append(names[cols.vid])
            parts.append(cols)
    if not parts:
        return
    vid, t = np.concatenate(who), np.concatenate([part.t for part in parts])
    data = np.concatenate([part.data for part in parts], axis=1)
    order = np.lexsort((t, vid))
    vid, t, data = vid[order], t[order], data[:, order]
    begins = np.append(True, (np.diff(vid) != 0) | (np.diff(t) > BREAK_S))
    flight = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    ids = _named([*number], vid[first])
    offset_s = np.array([_offset_s(name, shift) for name in ids]) - t[first]
    t0 = np.floor(t.min())
    t, kept = t + offset_s[flight] + t0, ~np.isnan(offset_s)[flight]
    yield from _batches(ids, flight[kept].astype(np.int32), t[kept], data[:, kept])


def _named(names: list[str], vid: I4) -> list[str]:
    """A name for each flight: the id, and from its second flight on which one it is."""
    count: dict[int, int] = {}
    found = []
    for who in vid.tolist():
        count[who] = count.get(who, 0) + 1
        found.append(names[who] if count[who] == 1 else f"{names[who]}.{count[who]}")
    return found


def _offset_s(name: str, shift: Shift) -> float:
    """When the flight begins, in seconds from the new start; NaN if it is in the other half."""
    if shift.half is not None and zlib.crc32(name.partition(".")[0].encode()) % 2 != (shift.half == "second"):
        return np.nan
    rng = np.random.default_rng([shift.seed, zlib.crc32(name.encode())])
    # whole seconds: reports keep their place between full seconds, and with it their own noise
    return float(rng.integers(int(shift.hours * 3600.0)))


def _batches(ids: list[str], flight: I4, t: F8, data: F8) -> Iterator[Batch]:
    order = np.lexsort((flight, t))
    flight, t, data = flight[order], t[order], data[:, order]
    edges = np.arange(t[0], t[-1] + SLICE_S, SLICE_S) if len(t) else np.empty(0)
    bounds = [*np.searchsorted(t, edges).tolist(), len(t)]
    for start, stop in pairwise(bounds):
        if stop > start:
            n = stop - start
            cols = Columns(
                seq=np.arange(n, dtype=np.int64),
                vid=flight[start:stop],
                via=np.full(n, -1, np.int32),
                t=t[start:stop],
                data=np.ascontiguousarray(data[:, start:stop]),
            )
            yield Batch(ids=ids, kinds={Kind.ADSB: cols})
