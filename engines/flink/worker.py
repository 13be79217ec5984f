"""What every Python worker of the job does first, and what it watches over.

mend_print()            before anything imports Numba
memory = Memory(mb)     raises MemoryError, with words, from a turn at which the process has grown beyond that
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import time
from pathlib import Path

# How often to look for the TaskManager.
LOOK_S = 2.0
_followed = threading.Event()
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


def mend_print() -> None:
    """Put the `print` of Python back, so that Numba can be imported in a worker.

    PyFlink puts a method in its place (FLINK-22487), and Numba knows `print` as a function that it compiles. The
    method's object has the function that was there before.
    """
    before = getattr(getattr(builtins.print, "__self__", None), "_print", None)
    if before is not None:
        builtins.print = before


def follow_manager() -> None:
    """End with the TaskManager: one that was killed leaves its Python workers behind, each with its memory."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or not spec.name.endswith("beam_boot") or _followed.is_set():
        return
    _followed.set()
    script = os.getppid()
    manager = _parent(script)

    def follow() -> None:
        while _parent(script) == manager:
            time.sleep(LOOK_S)
        os._exit(1)

    threading.Thread(target=follow, name="watchkeeper-manager", daemon=True).start()


def _parent(pid: int) -> int:
    """A process's parent; -1: it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


class Memory:
    """The memory of this process. Without a limit a machine runs out of it, and the kernel chooses whom to kill."""

    def __init__(self, limit_mb: int) -> None:
        self.limit_mb = limit_mb
        self._statm = Path("/proc/self/statm")

    @property
    def used_mb(self) -> float:
        """Resident now."""
        return int(self._statm.read_text().split()[1]) * _PAGE_MB

    def check(self) -> None:
        """MemoryError: beyond the limit."""
        if self.limit_mb and (used_mb := self.used_mb) > self.limit_mb:
            raise MemoryError(f"this worker has {used_mb:,.0f} MB, flink.worker_memory_mb is {self.limit_mb:,}")
