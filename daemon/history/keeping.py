"""Looking after the history's file, in the writer's thread: frames become blocks, and what is too old goes.

Frames of a bucket that is over become one block per vehicle. Each block begins with the vehicle's last sample before
the bucket, so that a moment can be read from one bucket. A bucket whose samples come late is packed again, with them.

What is removed: everything older than `hours` before the newest time of the newest era, and, when the file is fuller
than FULL of its limit, the oldest bucket of all, again and again until it is not. Eras go from the oldest on.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator

import msgspec
import numpy as np

from watchkeeper.daemon.history.blocks import (
    BUCKET_S,
    Rows,
    by_vehicle,
    joined,
    pack_blocks,
    unpack_blocks,
    unpack_frame,
    unpack_rows,
)
from watchkeeper.daemon.history.layers import Column
from watchkeeper.daemon.history.tables import used_bytes

log = logging.getLogger(__name__)

# After the end of a bucket: for samples that are late, and for time that runs ahead of the stream.
SETTLE_S = 60.0
# A vehicle that was not heard for so long is no longer carried into the next bucket.
CARRY_S = 900.0
# Of the limit; the rest is for what one turn writes.
FULL = 0.9
# The same when something found no room at all: it may be large.
STUCK = 0.7
# Pages given back to the file system in one turn.
VACUUM_PAGES = 2000

_TIMED = ("pairs", "watch")


def columns_of(db: sqlite3.Connection, layer: int) -> list[Column]:
    """The columns of a layer."""
    found = db.execute("SELECT columns FROM layers WHERE layer = ?", (layer,)).fetchone()
    return msgspec.json.decode(found[0], type=list[Column])


# -- frames to blocks -------------------------------------------------------------------------------------------


def due(db: sqlite3.Connection, era: int, t: float) -> list[tuple[int, int]]:
    """The buckets (era, bucket) that can be packed when the newest era has reached t."""
    found = db.execute("SELECT DISTINCT era, bucket FROM frames ORDER BY era, bucket").fetchall()
    return [(e, bucket) for e, bucket in found if e != era or (bucket + 1) * BUCKET_S + SETTLE_S <= t]


def pack(db: sqlite3.Connection, era: int, bucket: int) -> None:
    """Make blocks of one bucket's frames."""
    place = era, bucket
    layers = db.execute("SELECT DISTINCT layer FROM frames WHERE era = ? AND bucket = ?", place).fetchall()
    for (layer,) in layers:
        rows = joined(list(_bucket(db, era, bucket, layer)))
        vehicles, packed = pack_blocks(by_vehicle(rows))
        db.executemany(
            "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)",
            [(era, bucket, layer, vehicle, data) for vehicle, data in zip(vehicles, packed, strict=True)],
        )
    db.execute("DELETE FROM frames WHERE era = ? AND bucket = ?", place)


def _bucket(db: sqlite3.Connection, era: int, bucket: int, layer: int) -> Iterator[Rows]:
    """What belongs into a bucket: the last samples before it, blocks that there are already, frames."""
    n = len(columns_of(db, layer))
    if (carried := carry(db, era, bucket, layer, n)) is not None:
        yield carried
    found = db.execute(
        "SELECT code, data FROM blocks WHERE era = ? AND layer = ? AND bucket = ?", (era, layer, bucket)
    ).fetchall()
    if (rows := unpack_rows([code for code, _ in found], [data for _, data in found], n)) is not None:
        yield rows
    frames = db.execute(
        "SELECT data FROM frames WHERE era = ? AND bucket = ? AND layer = ? ORDER BY frame", (era, bucket, layer)
    )
    for (data,) in frames:
        yield unpack_frame(data, n)


def carry(db: sqlite3.Connection, era: int, bucket: int, layer: int, columns: int) -> Rows | None:
    """Each vehicle's last sample in the blocks of the bucket before, counted from the beginning of this bucket."""
    found = db.execute(
        "SELECT code, data FROM blocks WHERE era = ? AND layer = ? AND bucket = ?", (era, layer, bucket - 1)
    ).fetchall()
    last = []
    for places, data in unpack_blocks([data for _, data in found], columns):
        vehicle = np.array([found[i][0] for i in places.tolist()], np.int64)
        last.append(Rows(vehicle, data[:, 0, -1] - int(BUCKET_S * 1000), data[:, 1:, -1].T))
    if not last:
        return None
    rows = joined(last)
    return rows.take(rows.t_ms > -CARRY_S * 1000)


# -- what is too old --------------------------------------------------------------------------------------------


def forget_old(db: sqlite3.Connection, hours: float) -> int:
    """Remove what is older than this, and then all older eras too; the number of buckets that went."""
    newest = db.execute("SELECT era, t_first, t_last FROM eras ORDER BY era DESC LIMIT 1").fetchone()
    if newest is None:
        return 0
    era, t_first, t_last = newest
    t = (t_last - 3600.0 * hours) // BUCKET_S * BUCKET_S
    if t <= t_first:
        return 0
    for (older,) in db.execute("SELECT era FROM eras WHERE era < ?", (era,)).fetchall():
        _forget_era(db, older)
    return _forget_before(db, era, t)


def make_room(db: sqlite3.Connection, max_bytes: int, full: float = FULL) -> int:
    """Remove the oldest bucket if the file is nearly full; how many went (0: it is not, or nothing can go)."""
    if used_bytes(db) <= full * max_bytes:
        return 0
    eras = db.execute("SELECT era, t_first, t_last FROM eras ORDER BY era LIMIT 2").fetchall()
    if not eras:
        return 0
    era, t_first, t_last = eras[0]
    t = _first_t(db, era, t_first) // BUCKET_S * BUCKET_S + BUCKET_S
    if t <= t_last:
        return max(_forget_before(db, era, t), 1)
    if len(eras) > 1:
        _forget_era(db, era)
        return 1
    return 0


def _first_t(db: sqlite3.Connection, era: int, t_first: float) -> float:
    """The oldest time of an era of which anything can be removed."""
    asked = (
        (BUCKET_S, "SELECT min(bucket) FROM blocks WHERE era = ?"),
        (BUCKET_S, "SELECT min(bucket) FROM frames WHERE era = ?"),
        (1.0, "SELECT min(t_cleared) FROM alarms WHERE era = ?"),
    )
    answers = [(unit, db.execute(question, (era,)).fetchone()[0]) for unit, question in asked]
    found = [unit * first for unit, first in answers if first is not None]
    return max(t_first, min(found, default=t_first))


def _forget_before(db: sqlite3.Connection, era: int, t: float) -> int:
    """Remove what an era has before t, the beginning of a bucket; the number of buckets that went."""
    bucket = round(t / BUCKET_S)
    here = era, bucket
    n = db.execute("SELECT count(DISTINCT bucket) FROM blocks WHERE era = ? AND bucket < ?", here).fetchone()[0]
    db.execute("DELETE FROM blocks WHERE era = ? AND bucket < ?", here)
    db.execute("DELETE FROM frames WHERE era = ? AND bucket < ?", here)
    for table in _TIMED:
        db.execute(f"DELETE FROM {table} WHERE era = ? AND t < ?", (era, t))  # noqa: S608  names of our own
    over = "SELECT alarm FROM alarms WHERE era = ? AND t_cleared < ?"
    db.execute(f"DELETE FROM events WHERE era = ? AND alarm IN ({over})", (era, era, t))  # noqa: S608
    db.execute(f"DELETE FROM subjects WHERE era = ? AND alarm IN ({over})", (era, era, t))  # noqa: S608
    db.execute(f"DELETE FROM acks WHERE alarm IN ({over})", (era, t))  # noqa: S608
    db.execute("DELETE FROM alarms WHERE era = ? AND t_cleared < ?", (era, t))
    # an alarm that lasts keeps its beginning, and the events of the time that is kept
    db.execute("DELETE FROM events WHERE era = ? AND t < ? AND state = 'updated'", (era, t))
    seen = "EXISTS (SELECT 1 FROM blocks WHERE blocks.code = vehicles.code)"
    db.execute(f"DELETE FROM vehicles WHERE t < ? AND NOT {seen}", (t,))  # noqa: S608
    db.execute("UPDATE eras SET t_first = max(t_first, ?) WHERE era = ?", (t, era))
    return int(n)


def _forget_era(db: sqlite3.Connection, era: int) -> None:
    for table in ("blocks", "frames", "events", "alarms", "subjects", "eras", *_TIMED):
        db.execute(f"DELETE FROM {table} WHERE era = ?", (era,))  # noqa: S608  names of our own


def give_back(db: sqlite3.Connection) -> None:
    """Make the file smaller by pages that hold nothing."""
    db.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
