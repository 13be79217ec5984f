"""Tracks of vehicles: positions gathered over a log, handed out vehicle by vehicle and cut into legs.

    tracks = Tracks(folder)
    tracks.add(batch)                  as the log is read
    for track in tracks.each(): …      at its end, by kind and name

A log is in order of time and a track is one vehicle's, so all positions have to be seen before the first track is
whole. They wait in a file without a name in `folder`, 32 bytes each; memory holds HELD_BYTES of them, and one track
at a time. A leg ends where a vehicle was not heard for GAP_S.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from watchkeeper.streams.adapters.exports.positions import Positions, positions
from watchkeeper.streams.batch import F8, Batch, Bool, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.logs.base import Origin
from watchkeeper.streams.logs.flat import hear
from watchkeeper.streams.messages import Kind

# Positions in memory before they are moved to the file.
HELD_BYTES = 32 << 20
# Nobody knows where a vehicle was in so long a time: no line is drawn.
GAP_S = 300.0
_ROW_BYTES = 4 * 8


@dataclass(slots=True)
class _Waiting:
    """The positions of one vehicle and kind: those in memory, and where the others are in the file."""

    held: list[F8] = field(default_factory=list)
    stored: list[tuple[int, int]] = field(default_factory=list)
    vias: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """One vehicle in one kind: `where` is (t, lon, lat, alt_m) by time, `vias` are the gateways it came through."""

    kind: Kind
    id: str
    callsign: str
    vias: tuple[str, ...]
    where: F8

    def legs(self) -> list[F8]:
        """The track in parts without a long silence."""
        return cut_where(self.where, np.diff(self.where[:, 0]) > GAP_S)


class Tracks:
    """All tracks of a log.

    `placed` counts the samples with a place on the globe, `placeless` those without one by kind, and `refused` those
    that no detector would judge. `callsigns` has the last one of each vehicle.
    """

    def __init__(self, folder: Path, origin: Origin | None = None) -> None:
        self.placed = 0
        self.placeless: dict[Kind, int] = {}
        self.refused = 0
        self._origin = origin
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115  it lives as long as the tracks
        self._waiting: dict[tuple[Kind, str], _Waiting] = {}
        self._held_rows = 0
        self.callsigns: dict[str, str] = {}

    def add(self, batch: Batch) -> Iterator[tuple[Kind, Columns, Positions]]:
        """Take the positions of a batch, and hand them on with the samples that they are of.

        Samples that no detector would judge are left out.
        """
        hear(batch, self.callsigns)
        good = checked(batch)
        self.refused += len(batch) - len(good)
        for kind, cols in good.kinds.items():
            found = positions(kind, cols, self._origin)
            placed = 0 if found is None else len(found.rows)
            self.placed += placed
            if placed < len(cols):
                self.placeless[kind] = self.placeless.get(kind, 0) + len(cols) - placed
            if found is not None:
                self._gather(kind, batch, found)
                yield kind, cols, found
        if self._held_rows * _ROW_BYTES > HELD_BYTES:
            self._store()

    def each(self) -> Iterator[Track]:
        """Every track, by kind and then by name."""
        for kind, name in sorted(self._waiting):
            waiting = self._waiting[kind, name]
            where = np.concatenate([*map(self._read, waiting.stored), *waiting.held])
            where = where[np.argsort(where[:, 0], kind="stable")]
            yield Track(kind, name, self.callsigns.get(name, ""), tuple(waiting.vias), where)

    def _gather(self, kind: Kind, batch: Batch, found: Positions) -> None:
        order = np.argsort(found.vid, kind="stable")
        vids, starts = np.unique(found.vid[order], return_index=True)
        for vid, rows in zip(vids.tolist(), np.split(order, starts[1:]), strict=True):
            waiting = self._waiting.setdefault((kind, batch.ids[vid]), _Waiting())
            waiting.held.append(found.where[rows])
            waiting.vias |= {batch.vias[via]: None for via in dict.fromkeys(found.via[rows].tolist()) if via >= 0}
        self._held_rows += len(order)

    def _store(self) -> None:
        for waiting in self._waiting.values():
            if waiting.held:
                where = np.concatenate(waiting.held)
                waiting.stored.append((self._file.tell(), len(where)))
                self._file.write(where.tobytes())
                waiting.held = []
        self._held_rows = 0

    def _read(self, place: tuple[int, int]) -> F8:
        offset, rows = place
        self._file.seek(offset)
        found: F8 = np.frombuffer(self._file.read(rows * _ROW_BYTES)).reshape(rows, 4)
        return found


def cut_where(where: F8, between: Bool) -> list[F8]:
    """The rows in parts; `between[i]` says whether row i and row i + 1 are apart."""
    return np.split(where, np.flatnonzero(between) + 1)
