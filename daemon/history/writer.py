"""The one thread that writes the history, and the queue before it.

Jobs (writing.py) wait in a bounded queue. The thread takes all that wait, runs them in one transaction every COMMIT_S,
and looks after the file between two of them. What goes wrong never reaches anybody else:

- a disk that is full or read-only, or a state directory that is away: the jobs are kept and tried again; meanwhile the
  queue fills, the recorder samples less often (`pressure`), and at the end new jobs are dropped and counted.
- a damaged file is set aside as `<name>.damaged`, and a new one is begun.
- a job that fails by itself is left out and counted.

`trouble` says in words what is wrong now; `notes` what was found and mended. `patient`: `put` waits for room instead
of dropping, for a replay, which can wait.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from watchkeeper.config.history import History
from watchkeeper.daemon.history import keeping
from watchkeeper.daemon.history.blocks import DamagedError
from watchkeeper.daemon.history.tables import open_for_writing
from watchkeeper.daemon.history.writing import Job
from watchkeeper.daemon.logs import kv

log = logging.getLogger(__name__)

QUEUE = 2000
COMMIT_S = 2.0
# Between two attempts after the disk refused.
RETRY_S = 2.0
# Between two looks of somebody who waits for room.
PATIENCE_S = 0.2
# Jobs in one transaction, so that it stays small.
AT_ONCE = 200
# Old buckets removed, and frames packed, in one turn.
TURN = 8
# Old buckets removed at once when there is no room at all.
ROOM = 100
# Errors that the disk or the file system makes, and that may pass; the first words of SQLite's messages.
PASSING = (
    "database or disk is full",
    "attempt to write a readonly",
    "disk I/O error",
    "unable to open",
    "database is locked",
)
DAMAGE = ("file is not a database", "database disk image is malformed", "written by another version")


class Writer:
    """Owns the file. `start`, then `put` from any thread; `flush` waits until all is written; `close` ends it."""

    def __init__(self, path: Path, settings: History, *, patient: bool = False) -> None:
        self.path = path
        self.settings = settings
        self.max_bytes = settings.max_mb << 20
        self.trouble = ""
        self.notes: list[str] = []
        self.written = self.dropped = self.failed = self.removed_buckets = 0
        self.bytes = 0
        # counts the files that were begun, for readers: a new one is another file
        self.opened = 0
        # newest era and time that the recorder has given, for packing
        self.era, self.t = 0, float("-inf")
        self._patient = patient
        self._queue: queue.Queue[Job] = queue.Queue(QUEUE)
        self._db: sqlite3.Connection | None = None
        self._kept: list[Job] = []
        self._wake, self._again = threading.Event(), threading.Event()
        self._ending = False
        self._idle = threading.Condition()
        self._busy = False
        self._tended_s = 0.0
        # asked before a file is opened: empty, or why the folder cannot be used
        self.check: Callable[[], str] = lambda: ""
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    # -- from other threads ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, job: Job) -> bool:
        """Hand over a job; False when there is no room, and it is dropped."""
        while True:
            try:
                self._queue.put(job, block=self._patient, timeout=PATIENCE_S)
            except queue.Full:
                # who can wait does so while there is hope
                if self._patient and not self.trouble and self._thread.is_alive():
                    continue
                self.dropped += 1
                return False
            return True

    @property
    def waiting(self) -> int:
        """Jobs that are not written yet."""
        return self._queue.qsize() + len(self._kept) + self._busy

    @property
    def pressure(self) -> float:
        """How full the queue is, 0 to 1; 0 for somebody who waits for room."""
        return 0.0 if self._patient else self._queue.qsize() / QUEUE

    def reopen(self) -> None:
        """The folder was deleted, replaced or away: write into the file that has the name now."""
        self._again.set()

    def nudge(self) -> None:
        """Write what waits now rather than in a moment."""
        self._wake.set()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was put is written; False when the time was not enough."""
        until_s = time.monotonic() + timeout_s
        self._wake.set()
        with self._idle:
            while self.waiting:
                if time.monotonic() > until_s:
                    return False
                self._wake.set()
                self._idle.wait(0.02)
        return True

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what waits, as far as the time allows, and end."""
        if not self._thread.is_alive():
            return
        if not self.trouble:
            self.flush(timeout_s)
        self._ending = True
        self._wake.set()
        self._thread.join(timeout_s)

    def health(self) -> list[str]:
        """What is wrong, in words for a person."""
        said = [*self.notes]
        if self.trouble:
            said.append(f"not written: {self.trouble}")
        if self.dropped:
            said.append(f"{self.dropped:,} entries left out: the disk does not keep up")
        return said

    # -- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ending:
            self._wake.clear()
            try:
                self._turn()
            except Exception:  # nobody awaits this thread
                self.failed += 1
                log.exception("history")
            with self._idle:
                self._idle.notify_all()
            if not self._ending:
                self._wake.wait(RETRY_S if self.trouble else COMMIT_S)
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.close()
            self._db = None

    def _turn(self) -> None:
        """One transaction with what waits, and then the housekeeping."""
        if not self._ready():
            return
        while True:
            self._busy = True
            batch = self._kept or self._some()
            self._kept = []
            try:
                if batch and not self._write(batch):
                    return
            finally:
                self._busy = False
            if self._queue.empty():
                break
        self._guarded(self._tend)

    def _some(self) -> list[Job]:
        batch: list[Job] = []
        with suppress(queue.Empty):
            while len(batch) < AT_ONCE:
                batch.append(self._queue.get_nowait())
        return batch

    def _write(self, batch: list[Job]) -> bool:
        """All of a batch, or, when one fails by itself, all but that; False: later."""
        if self._guarded(lambda: self._transaction(batch)):
            self.written += len(batch)
            return True
        if self._must_wait():
            self._kept = batch
            return False
        for i, job in enumerate(batch):
            alone = partial(self._transaction, [job])
            if self._guarded(alone) or (not self._must_wait() and self._guarded(alone)):
                self.written += 1
            elif self._must_wait():
                self._kept = batch[i:]
                return False
            else:
                self.failed += 1
        return True

    def _must_wait(self) -> bool:
        """Nothing can be written before something has changed."""
        return bool(self.trouble) or self._db is None

    def _transaction(self, jobs: list[Job]) -> None:
        db = self._db
        assert db is not None
        db.execute("BEGIN IMMEDIATE")
        for job in jobs:
            job(db)
        db.execute("COMMIT")

    def _guarded(self, work: Callable[[], object]) -> bool:
        """Do it; False when it failed, and `trouble` says whether it may be tried again."""
        try:
            work()
        except (sqlite3.Error, DamagedError) as error:
            self._failed(error)
            return False
        if self.trouble:
            log.info("history written again", extra=kv(path=self.path))
            self.trouble = ""
        return True

    def _failed(self, error: Exception) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
        words = str(error)
        if isinstance(error, DamagedError) or words.startswith(DAMAGE):
            self._set_aside(words)
        elif words.startswith(PASSING):
            # a history that is full makes room for what comes; a disk that is full is another matter
            if not (words.startswith(PASSING[0]) and self._db is not None and self._make_room(ROOM, keeping.STUCK)):
                self._say(words)
        else:
            log.error("history entry left out", extra=kv(problem=words))

    def _say(self, problem: str) -> None:
        if problem != self.trouble:
            log.error("history not written", extra=kv(path=self.path, problem=problem))
        self.trouble = problem

    # -- the file -------------------------------------------------------------------------------------------

    def _ready(self) -> bool:
        if self._again.is_set() or (self._db is not None and not self.path.exists()):
            self._again.clear()
            self._let_go()
        if self._db is None:
            if problem := self.check():
                self._say(problem)
                return False
            try:
                self._db = open_for_writing(self.path, self.max_bytes)
                self.opened += 1
            except (sqlite3.Error, OSError) as error:
                words = str(error)
                if isinstance(error, sqlite3.DatabaseError) and words.startswith(DAMAGE):
                    self._set_aside(words)
                else:
                    self._say(words)
                return False
        return True

    def _let_go(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _set_aside(self, problem: str) -> None:
        """Keep one damaged file for whoever wants to look at it, and begin again."""
        self._let_go()
        aside = self.path.with_name(f"{self.path.name}.damaged")
        with suppress(OSError):
            self.path.replace(aside)
        for end in ("-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + end).unlink()
        log.error("history damaged, begun again", extra=kv(path=self.path, aside=aside, problem=problem))
        self.notes = [f"damaged ({problem}): set aside as {aside.name}, and begun again; the journal has every alarm"]

    def _make_room(self, most: int, full: float = keeping.FULL) -> bool:
        """Remove up to so many of the oldest buckets while the file is nearly full; whether any went."""
        db, before = self._db, self.removed_buckets
        assert db is not None
        for _ in range(most):
            try:
                db.execute("BEGIN IMMEDIATE")
                gone = keeping.make_room(db, self.max_bytes, full)
                db.execute("COMMIT")
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                break
            if not gone:
                break
            self.removed_buckets += gone
        return self.removed_buckets > before

    def _tend(self) -> None:
        """Pack buckets that are over, remove what is too old, give disk back."""
        db = self._db
        assert db is not None
        due = keeping.due(db, self.era, self.t)[:TURN]
        for era, bucket in due:
            self._transaction([lambda db, era=era, bucket=bucket: keeping.pack(db, era, bucket)])  # type: ignore[misc]
        if due or time.monotonic() - self._tended_s > 30.0:
            self._tended_s = time.monotonic()
            self._transaction([self._forget_old])
            self._make_room(TURN)
            keeping.give_back(db)
        if len(due) == TURN:
            self._wake.set()
        self.bytes = size_bytes(self.path)

    def _forget_old(self, db: sqlite3.Connection) -> None:
        self.removed_buckets += keeping.forget_old(db, self.settings.hours)


def size_bytes(path: Path) -> int:
    """What the history takes on disk."""
    total = 0
    for end in ("", "-wal", "-shm"):
        with suppress(OSError):
            total += path.with_name(path.name + end).stat().st_size
    return total
