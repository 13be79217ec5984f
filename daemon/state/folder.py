"""The state directory: one daemon at a time, for our user alone, and looked after while we run.

    lock   held (flock) while a daemon runs, with its process number

`check` is called every few seconds, from one worker thread. It finds a directory that was deleted, moved or mounted
over, makes and locks it again, and has every file written again (`on_return`). What the disk refused is tried again
with each look (`on_check`). While the directory cannot be had, for whatever reason, `trouble` says why: alarms go on
without it. A person must mend two things before a start: a path that is no directory, and a directory that others may
write to, because what is in it is trusted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import Metric

from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.checked import FILE_MODE, same_file

log = logging.getLogger(__name__)

FOLDER_MODE = 0o700


class StateError(Exception):
    """The state directory belongs to another daemon: this one must not start."""


class StateRefusedError(StateError):
    """The state directory must not be used as it is; the message says what to change."""


class StateFolder:
    """One state directory. Making it raises StateError; a disk that is full, away or read-only is `trouble` only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # why nothing can be written here now, in words; empty when all is well
        self.trouble = ""
        # how often it was there again after it had been deleted, replaced or away
        self.returns = 0
        # called then, to write every file again
        self.on_return: list[Callable[[], None]] = []
        # called with each look that finds it usable
        self.on_check: list[Callable[[], None]] = []
        # damage that was found and mended at the start
        self.notes: list[str] = []
        self._faults: dict[str, str] = {}
        self._lock: int | None = None
        try:
            self._take()
        except StateError as error:
            raise type(error)(f"state directory {path}: {error}") from error
        except OSError as error:
            self._say(error.strerror or str(error))

    @property
    def is_ours(self) -> bool:
        """Whether the directory that has the name now is the one that we hold. From any thread."""
        lock = self._lock
        return lock is not None and same_file(lock, self._lock_path)

    def check(self) -> str:
        """See that the directory is there and ours, and get it back if it is not; `trouble`."""
        if self.trouble or not self.is_ours:
            self._get_back()
        with suppress(OSError):
            exposed = _exposed(self.path)
            self.fault("may be written by others", exposed)
        if not self.trouble:
            for look in self.on_check:
                look()
        return self.trouble

    def fault(self, what: str, problem: str) -> None:
        """A file here cannot be written, or (empty) it can; logged when it begins and when it ends."""
        if problem and self._faults.get(what) != problem:
            log.error("state not kept", extra=kv(what=what, problem=problem))
            self._faults[what] = problem
        elif not problem and self._faults.pop(what, ""):
            log.info("state kept again", extra=kv(what=what))

    def warnings(self) -> list[str]:
        """What is wrong besides `trouble`, in words."""
        return [*self.notes, *(f"{what}: {problem}" for what, problem in sorted(self._faults.copy().items()))]

    def release(self) -> None:
        """Let another daemon have it. The file stays: removing it would race with the next owner."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _lock_path(self) -> Path:
        return self.path / "lock"

    def _get_back(self) -> None:
        had, trouble = self._lock, self.trouble
        try:
            self._take()
        except StateError as error:
            self._say(str(error))
            return
        except OSError as error:
            self._say(error.strerror or str(error))
            return
        if had is None or had != self._lock:
            self.returns += 1
            log.warning("state directory was away, deleted or replaced; written again", extra=kv(path=self.path))
            for write_again in self.on_return:
                write_again()
        elif trouble:
            log.info("state directory can be used again", extra=kv(path=self.path))

    def _take(self) -> None:
        """Make the directory and lock it. OSError: not now; StateError: not at all."""
        try:
            self.path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            wrong = next(path for path in (self.path, *self.path.parents) if path.exists())
            raise StateRefusedError(f"{wrong} is not a directory") from error
        except OSError:
            # a disk that is read-only may have it all the same
            if not self.path.is_dir():
                raise
        if exposed := _exposed(self.path):
            raise StateRefusedError(exposed)
        if not self.is_ours:
            self._lock_it()
        # on a disk that is read-only it is locked, but not to be written
        os.close(os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE))
        self._say("")

    def _lock_it(self) -> None:
        handle = _open_lock(self._lock_path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise StateError(f"in use by another daemon (pid {holder})") from error
        except OSError:
            os.close(handle)
            raise
        self.release()
        self._lock = handle
        # a full disk does not take the number
        with suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)

    def _say(self, problem: str) -> None:
        words = f"state directory {self.path}: {problem}" if problem else ""
        if words and words != self.trouble:
            log.error("state directory cannot be written", extra=kv(path=self.path, problem=problem))
        self.trouble = words


def state_metrics(folder: StateFolder | None) -> Iterator[Metric]:
    """For Prometheus; as if all were well without a state directory."""
    yield gauge("state_ok", "1 while the state directory can be written", not (folder and folder.trouble))
    returns = folder.returns if folder else 0
    yield total("state_returns", "Times that the state directory was there again after it had been away", returns)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
    except OSError:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def _exposed(path: Path) -> str:
    """Who else may write to this directory, and what to do about it; empty: nobody."""
    found = path.stat()
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"can be written by everybody: chmod 700 {path}"
    if found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid():
        return f"can be written by group {found.st_gid}, which is not ours: chmod 700 {path}"
    return ""
