"""Reads the history from any thread: one connection for each thread, none of which waits for the writer.

    Reader.use(work)    run `work(db)` with a connection of this thread; NoHistoryError: there is no file, or none
                        that can be read

Samples of one vehicle come from its blocks and, for the last minutes, from the frames; see past.py for everybody at a
moment. All of it is in event time, within one era.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from watchkeeper.daemon.history.blocks import (
    BUCKET_S,
    DamagedError,
    Rows,
    bucket_of,
    by_vehicle,
    joined,
    unpack_blocks,
    unpack_frame,
)
from watchkeeper.daemon.history.keeping import columns_of
from watchkeeper.daemon.history.layers import Column, Layer
from watchkeeper.daemon.history.tables import code_of, open_for_reading
from watchkeeper.daemon.history.writer import Writer
from watchkeeper.streams.batch import F8, I4

T = TypeVar("T")


class NoHistoryError(Exception):
    """Nothing can be read now; the message says why."""


class NotBegunError(NoHistoryError):
    """There is a history, and its file is not open yet."""


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one vehicle: event times, and the columns by name. NaN: not known."""

    t: F8
    columns: dict[str, F8]
    layer: Layer


@dataclass(frozen=True, slots=True)
class Era:
    """One time axis: its number, and from when to when anything is known."""

    era: int
    t_first: float
    t_last: float


class Reader:
    """Reads the file of one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._local = threading.local()

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` answers. Raises NoHistoryError."""
        try:
            return work(self._connection())
        except (sqlite3.Error, DamagedError, OSError) as error:
            self._local.db = None
            raise NoHistoryError(f"the history cannot be read: {error}") from error

    def _connection(self) -> sqlite3.Connection:
        opened: int = self._writer.opened
        if not opened or not self._writer.path.exists():
            if self._writer.trouble:
                raise NoHistoryError(self._writer.trouble)
            raise NotBegunError("the history is being opened; ask again in a moment")
        if getattr(self._local, "db", None) is None or self._local.opened != opened:
            self._local.db, self._local.opened = open_for_reading(self._writer.path), opened
        found: sqlite3.Connection = self._local.db
        return found


def eras(db: sqlite3.Connection) -> list[Era]:
    """All eras, the newest first."""
    return [Era(*row) for row in db.execute("SELECT era, t_first, t_last FROM eras ORDER BY era DESC")]


def era_of(db: sqlite3.Connection, era: int | None) -> Era | None:
    """The era of a number, or the newest."""
    return next((found for found in eras(db) if era is None or found.era == era), None)


def layers_of(db: sqlite3.Connection, name: str) -> list[tuple[int, Layer]]:
    """All layers of a name, the newest first: versions may have had other columns."""
    numbers = [row[0] for row in db.execute("SELECT layer FROM layers WHERE name = ? ORDER BY layer DESC", (name,))]
    return [(number, Layer(name, tuple(columns_of(db, number)))) for number in numbers]


def series(db: sqlite3.Connection, era: int, name: str, vehicle: str, t0: float, t1: float) -> Series | None:
    """The samples of a vehicle in [t0, t1] from one layer, of all its versions; None when there are none."""
    parts = [
        (layer, times, data)
        for number, layer in layers_of(db, name)
        for times, data in [_samples(db, era, number, len(layer.columns), code_of(vehicle), t0, t1)]
        if len(times)
    ]
    if not parts:
        return None
    columns: dict[str, Column] = {column.name: column for layer, _, _ in parts for column in layer.columns}
    t = np.concatenate([times for _, times, _ in parts])
    order = np.argsort(t, kind="stable")
    read = [(layer.values(data), len(times)) for layer, times, data in parts]
    found = {
        column: np.concatenate([values.get(column, np.full(n, np.nan)) for values, n in read])[order]
        for column in columns
    }
    return Series(t[order], found, Layer(name, tuple(columns.values())))


def _samples(
    db: sqlite3.Connection, era: int, layer: int, columns: int, code: int, t0: float, t1: float
) -> tuple[F8, I4]:
    parts = list(_parts(db, era, layer, columns, code, bucket_of(t0), bucket_of(t1)))
    if not parts:
        return np.empty(0), np.empty((columns, 0), np.int32)
    t = np.concatenate([times for times, _ in parts])
    data = np.concatenate([rows for _, rows in parts], axis=1)
    # the first sample of a block is the last of the one before
    t, first = np.unique(t, return_index=True)
    keep = (t >= t0) & (t <= t1)
    return t[keep], data[:, first[keep]]


def _parts(
    db: sqlite3.Connection, era: int, layer: int, columns: int, code: int, first: int, last: int
) -> Iterator[tuple[F8, I4]]:
    place = code, era, layer, first, last
    found = db.execute(
        # without a word the planner walks through everybody's blocks of that time
        "SELECT bucket, data FROM blocks INDEXED BY blocks_by_vehicle "
        "WHERE code = ? AND era = ? AND layer = ? AND bucket BETWEEN ? AND ?",
        place,
    ).fetchall()
    for places, data in unpack_blocks([data for _, data in found], columns):
        began = np.array([found[i][0] for i in places.tolist()]) * BUCKET_S
        yield (began[:, None] + data[:, 0] / 1000.0).ravel(), data[:, 1:].transpose(1, 0, 2).reshape(columns, -1)
    frames = db.execute(
        "SELECT bucket, data FROM frames WHERE era = ? AND bucket BETWEEN ? AND ? AND layer = ?",
        (era, first, last, layer),
    )
    for bucket, packed in frames:
        rows = unpack_frame(packed, columns)
        mine = rows.vehicle == code
        if mine.any():
            yield bucket * BUCKET_S + rows.t_ms[mine] / 1000.0, rows.data[:, mine]


def thinned(found: Series, step_s: float, *, highest: bool) -> Series:
    """At most one sample per step: the last one, or the highest of each column."""
    if step_s <= 0.0 or not len(found.t):
        return found
    step = np.floor(found.t / step_s)
    starts = np.flatnonzero(np.r_[True, step[1:] != step[:-1]])
    last = np.r_[starts[1:], len(step)] - 1
    if highest:
        columns = {name: np.fmax.reduceat(values, starts) for name, values in found.columns.items()}
    else:
        columns = {name: values[last] for name, values in found.columns.items()}
    return Series(found.t[last], columns, found.layer)


def open_rows(db: sqlite3.Connection, era: int, bucket: int, layer: int, columns: int) -> Rows | None:
    """The samples of a bucket that are not packed yet, sorted; None when there are none."""
    place = era, bucket, layer
    frames = db.execute("SELECT data FROM frames WHERE era = ? AND bucket = ? AND layer = ? ORDER BY frame", place)
    parts = [unpack_frame(data, columns) for (data,) in frames]
    return by_vehicle(joined(parts)) if parts else None
