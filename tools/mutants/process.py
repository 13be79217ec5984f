"""Work in forked processes: a trial that ends, fails or hangs leaves nothing behind in the process that asks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

SURVIVED, KILLED, STUCK, MISSED = "survived", "killed", "stuck", "missed"
# What work returns when the change could not be made: nothing was tried.
NOT_TRIED = 99
POLL_S = 0.01


@dataclass(frozen=True)
class Job:
    """One trial: its number, what to do (0: nothing was noticed), and how long that may take."""

    number: int
    work: Callable[[], int]
    patience_s: float


def forked(work: Callable[[], int]) -> int:
    """Begin work in a process of its own, which prints nothing and ends with what work returns; its id."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            code = work()
        finally:
            os._exit(code)
    return pid


def outcomes(jobs: Iterable[Job], workers: int) -> Iterator[tuple[int, str]]:
    """Do these jobs, some side by side: the number of each with SURVIVED, KILLED, STUCK or MISSED."""
    waiting = iter(jobs)
    running: dict[int, tuple[Job, float]] = {}
    try:
        while True:
            while len(running) < workers and (job := next(waiting, None)):
                running[forked(lambda job=job: _leading(job))] = job, time.monotonic()  # type: ignore[misc]
            if not running:
                return
            for pid, (job, started_s) in list(running.items()):
                found = _outcome(pid, started_s + job.patience_s)
                if found:
                    del running[pid]
                    yield job.number, found
            time.sleep(POLL_S)
    finally:
        for pid in running:
            os.killpg(pid, signal.SIGKILL)


def _leading(job: Job) -> int:
    os.setsid()  # so that what a test starts can be ended with it
    return job.work()


def _outcome(pid: int, until_s: float) -> str:
    """What became of a trial; empty while it goes on."""
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        return {0: SURVIVED, NOT_TRIED: MISSED}.get(os.waitstatus_to_exitcode(status), KILLED)
    if time.monotonic() < until_s:
        return ""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return STUCK
