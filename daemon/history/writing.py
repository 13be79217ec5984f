"""What is written into the history: each a job for the writer's thread, run inside one of its transactions.

A job is a function of the connection. It may be run again after its transaction failed, so it keeps nothing outside.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from watchkeeper.daemon.history.blocks import Rows, bucket_of, pack_frame
from watchkeeper.daemon.history.layers import Layer
from watchkeeper.daemon.history.tables import code_of
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, encode_event
from watchkeeper.detectors.base import SEVERITIES

Job = Callable[[sqlite3.Connection], None]


def layer_number(db: sqlite3.Connection, layer: Layer) -> int:
    """The number of a layer in this file, given out on first sight."""
    columns = msgspec.json.encode(layer.columns).decode()
    db.execute("INSERT OR IGNORE INTO layers (name, columns) VALUES (?, ?)", (layer.name, columns))
    found = db.execute("SELECT layer FROM layers WHERE name = ? AND columns = ?", (layer.name, columns)).fetchone()
    return int(found[0])


def frame(era: int, t: float, layer: Layer, rows: Rows) -> Job:
    """Samples of one moment; `rows.t_ms` counts from the beginning of the bucket of t."""

    def write(db: sqlite3.Connection) -> None:
        values = era, bucket_of(t), layer_number(db, layer), pack_frame(rows)
        db.execute("INSERT INTO frames (era, bucket, layer, data) VALUES (?, ?, ?, ?)", values)
        reached(db, era, t)

    return write


def reached(db: sqlite3.Connection, era: int, t: float) -> None:
    """An era goes to here at least."""
    db.execute(
        "INSERT INTO eras VALUES (?, ?, ?) ON CONFLICT (era) DO UPDATE SET t_first = min(t_first, excluded.t_first), "
        "t_last = max(t_last, excluded.t_last)",
        (era, t, t),
    )


def names(called: Mapping[str, str], t: float) -> Job:
    """Vehicles with their callsigns ("": none), heard at t."""
    listed = [(code_of(name), name, callsign, t) for name, callsign in called.items()]

    def write(db: sqlite3.Connection) -> None:
        db.executemany(
            "INSERT INTO vehicles (code, name, callsign, t) VALUES (?, ?, ?, ?) ON CONFLICT (code) DO UPDATE SET "
            "callsign = CASE excluded.callsign WHEN '' THEN callsign ELSE excluded.callsign END, t = excluded.t",
            listed,
        )

    return write


def pairs(era: int, t: float, columns: bytes) -> Job:
    """The pairs in conflict at t, as live/picture.py encodes columns."""
    return lambda db: void(
        db.execute("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?)", (era, t, zlib.compress(columns, 1)))
    )


def watched(era: int, t: float, changed: Sequence[tuple[str, bytes]]) -> Job:
    """What is watched of these vehicles from t on, as JSON."""
    listed = [(era, code_of(name), t, data) for name, data in changed]
    return lambda db: void(db.executemany("INSERT OR REPLACE INTO watch VALUES (?, ?, ?, ?)", listed))


def event(era: int, happened: AlarmEvent, said: str, search: str, *, known: bool = False) -> Job:
    """One alarm event, its sentence and the words that it is found by.

    It belongs to the era in which its alarm is active, else to this one. One that is `known` may be here already.
    """

    def write(db: sqlite3.Connection) -> None:
        found = db.execute(
            "SELECT era, state FROM alarms WHERE alarm = ? ORDER BY era DESC LIMIT 1", (happened.id,)
        ).fetchone()
        place = happened.id, happened.t, happened.state
        if known and db.execute("SELECT 1 FROM events WHERE alarm = ? AND t = ? AND state = ?", place).fetchone():
            return
        at = int(found[0]) if found is not None and (known or found[1] != CLEARED) else era
        row = at, happened.id, happened.t, happened.state, zlib.compress(encode_event(happened), 1)
        db.execute("INSERT INTO events (era, alarm, t, state, data) VALUES (?, ?, ?, ?, ?)", row)
        _alarm(db, at, happened, said, search)
        if at == era and not known:
            reached(db, era, happened.t)

    return write


def _alarm(db: sqlite3.Connection, era: int, happened: AlarmEvent, said: str, search: str) -> None:
    rank = SEVERITIES.index(happened.severity) if happened.severity in SEVERITIES else 0
    ratio = happened.score / happened.threshold if happened.threshold else happened.score
    db.execute(
        "INSERT INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?) ON CONFLICT (alarm, era) DO UPDATE SET "
        "severity = max(severity, excluded.severity), state = excluded.state, t_cleared = excluded.t_cleared, "
        "t = excluded.t, score = max(score, excluded.score), said = excluded.said, search = excluded.search, "
        "events = events + 1, incident = excluded.incident",
        (
            happened.id, era, happened.kind, rank, happened.state, happened.t_onset, happened.t_raised,
            happened.t_cleared if happened.state == CLEARED else None, happened.t, ratio, said, search.lower(),
            happened.incident,
        ),
    )  # fmt: skip
    db.executemany(
        "INSERT OR IGNORE INTO subjects VALUES (?, ?, ?)", [(name, happened.id, era) for name in happened.subjects]
    )


def acknowledged(alarm: str, by: str, t: float, *, given: bool) -> Job:
    """A person looks after an alarm, or does not any more; t is the wall clock's."""
    row = alarm, by, t, given
    return lambda db: void(db.execute("INSERT INTO acks (alarm, by, t, given) VALUES (?, ?, ?, ?)", row))


def void(_cursor: sqlite3.Cursor) -> None:
    """Nothing: a job gives back nothing."""
