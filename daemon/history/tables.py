"""The tables of the history's file, and opening it.

    eras       one time axis each: a clock that went back for good begins another
    vehicles   a number in the file for each vehicle; `code` is made from the name (see `code_of`)
    layers     the columns of samples, see layers.py
    frames     samples of the last minutes, many vehicles together, as they came
    blocks     older samples, one vehicle and one bucket each, see blocks.py
    pairs      the pairs in conflict at a moment
    events     every alarm event, whole, packed
    alarms     one row per alarm: what lists and searches need
    watch      what was watched of a vehicle, and what not, whenever it changed
    acks       acknowledgements

VERSION is in the file. A file of an earlier version is brought to this one; one of a later version is set aside as a
damaged one is: everything in it can be lost.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from watchkeeper.daemon.state.checked import FILE_MODE

VERSION = 3
PAGE_BYTES = 8192
# Written and not yet moved into the file itself; the rest is cut off after it was moved.
WAL_BYTES = 8 << 20
BUSY_S = 5.0

TABLES = """
CREATE TABLE eras (era INTEGER PRIMARY KEY, t_first REAL, t_last REAL);
CREATE TABLE vehicles (vehicle INTEGER PRIMARY KEY, code INTEGER UNIQUE, name TEXT, callsign TEXT DEFAULT '', t REAL);
CREATE TABLE layers (layer INTEGER PRIMARY KEY, name TEXT, columns TEXT, UNIQUE (name, columns));
CREATE TABLE frames (frame INTEGER PRIMARY KEY, era INTEGER, bucket INTEGER, layer INTEGER, data BLOB);
CREATE INDEX frames_by_time ON frames (era, bucket);
CREATE TABLE blocks (era INTEGER, bucket INTEGER, layer INTEGER, code INTEGER, data BLOB,
  PRIMARY KEY (era, layer, bucket, code)) WITHOUT ROWID;
CREATE INDEX blocks_by_vehicle ON blocks (code, era, layer, bucket);
CREATE TABLE pairs (era INTEGER, t REAL, data BLOB, PRIMARY KEY (era, t)) WITHOUT ROWID;
CREATE TABLE events (event INTEGER PRIMARY KEY, era INTEGER, alarm TEXT, t REAL, state TEXT, data BLOB);
CREATE INDEX events_by_alarm ON events (alarm, era, t);
CREATE TABLE alarms (alarm TEXT, era INTEGER, kind TEXT, severity INTEGER, state TEXT, t_onset REAL, t_raised REAL,
  t_cleared REAL, t REAL, score REAL, said TEXT, search TEXT, events INTEGER, incident TEXT,
  PRIMARY KEY (alarm, era)) WITHOUT ROWID;
CREATE INDEX alarms_by_time ON alarms (era, t_raised, alarm);
CREATE INDEX alarms_by_end ON alarms (era, t_cleared, t_raised, alarm, incident);
CREATE TABLE subjects (subject TEXT, alarm TEXT, era INTEGER, PRIMARY KEY (subject, alarm, era)) WITHOUT ROWID;
CREATE INDEX subjects_by_alarm ON subjects (alarm, era, subject);
CREATE TABLE watch (era INTEGER, code INTEGER, t REAL, data BLOB, PRIMARY KEY (era, code, t)) WITHOUT ROWID;
CREATE INDEX watch_by_time ON watch (era, t);
CREATE TABLE acks (ack INTEGER PRIMARY KEY, alarm TEXT, by TEXT, t REAL, given INTEGER);
CREATE INDEX acks_by_alarm ON acks (alarm);
"""
# By version: what makes the next one of it.
STEPS = {
    1: "ALTER TABLE alarms ADD COLUMN incident TEXT;",
    2: "CREATE INDEX alarms_by_end ON alarms (era, t_cleared, t_raised, alarm, incident); "
    "CREATE INDEX subjects_by_alarm ON subjects (alarm, era, subject); DROP TABLE shelves;",
}


def code_of(name: str) -> int:
    """A vehicle's number from its name alone: 63 bits, so that two names do not meet.

    >>> code_of("quad-3") == code_of("quad-3") != code_of("quad-4")
    True
    """
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def open_for_writing(path: Path, max_bytes: int) -> sqlite3.Connection:
    """The file, made if it is not there. Raises sqlite3.Error, or OSError."""
    with suppress(FileExistsError):
        path.touch(FILE_MODE, exist_ok=False)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        # these two only matter while the file is empty
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        # a power cut may lose the last seconds, and never breaks the file
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        db.execute(f"PRAGMA wal_autocheckpoint = {WAL_BYTES // PAGE_BYTES}")
        db.execute("PRAGMA cache_size = -8192")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            db.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version in STEPS:
            steps = " ".join(STEPS[each] for each in range(version, VERSION))
            db.executescript(f"BEGIN; {steps} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"written by another version ({version}, this is {VERSION})")
        db.execute(f"PRAGMA max_page_count = {max(max_bytes // page_bytes(db), 64)}")
    except BaseException:
        db.close()
        raise
    return db


def open_for_reading(path: Path) -> sqlite3.Connection:
    """The same, to look only. Raises sqlite3.Error."""
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = 1")
    db.execute("PRAGMA cache_size = -4096")
    return db


def page_bytes(db: sqlite3.Connection) -> int:
    """Bytes of one page of this file."""
    return int(db.execute("PRAGMA page_size").fetchone()[0])


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the pages that hold something."""
    pages = db.execute("PRAGMA page_count").fetchone()[0] - db.execute("PRAGMA freelist_count").fetchone()[0]
    return int(pages) * page_bytes(db)
