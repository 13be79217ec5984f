"""Runs the cases of a target in a worker process within limits, and tells what became of them.

A case is `target:seed:number` and nothing else: the same three give the same bytes and the same outcome. Each case has
CPU_S of processor time and MEMORY_BYTES more than the worker had when it was ready; the kernel ends a worker that
takes more time (SIGPROF), and an allocation beyond the limit fails. To claim a size that cannot be is no failure, to
use HELD_BYTES of memory is one. A worker that ends is replaced by a fresh one that goes on with the next case.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

CPU_S = 5.0
MEMORY_BYTES = 1 << 30
HELD_BYTES = 600 << 20
# Between two reports of a worker.
CASES_AT_ONCE = 50
# A case takes a word and says what became of it: "read", "part", "refused". An exception is a failure.
Case = Callable[[random.Random], str]
Target = Callable[[], Case]
"""Called once in the worker, before limits are set: imports and warms up what the cases need."""


@dataclass
class Outcome:
    """What became of the cases of one target."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)


def draw_of(name: str, seed: int, number: int) -> random.Random:
    """The random numbers of one case."""
    return random.Random(f"{name}:{seed}:{number}")


def run_target(name: str, target: Target, seed: int, numbers: range, most_failures: int = 20) -> Outcome:
    """All cases of a target, one worker after the other."""
    found = Outcome(name)
    at = numbers.start
    context = multiprocessing.get_context("spawn")
    while at < numbers.stop and len(found.failures) < most_failures:
        ours, theirs = context.Pipe(duplex=False)
        mark = context.Value("q", -1, lock=False)
        worker = context.Process(target=_work, args=(name, target, seed, at, numbers.stop, theirs, mark), daemon=True)
        worker.start()
        theirs.close()
        for counts, slowest_s, failures in _reports(ours):
            found.counts.update(counts)
            found.slowest_s = max(found.slowest_s, slowest_s)
            found.failures += failures
            found.counts["failed"] += len(failures)
        worker.join()
        if worker.exitcode == 0:
            break
        if mark.value < 0:
            raise RuntimeError(f"{name}: the worker did not get ready")
        at = mark.value + 1
        found.failures.append((mark.value, _end_of(worker)))
        found.counts["failed"] += 1
    return found


def _reports(pipe: Connection) -> Iterator[Any]:
    while True:
        try:
            yield pipe.recv()
        except EOFError:
            return


def _end_of(worker: BaseProcess) -> str:
    code = worker.exitcode or 0
    if code == -signal.SIGPROF:
        return f"more than {CPU_S:g} s of processor time"
    return f"the process ended: {signal.Signals(-code).name}" if code < 0 else f"the process ended with {code}"


def _work(name: str, target: Target, seed: int, start: int, stop: int, pipe: Connection, mark: Any) -> None:
    case = target()
    limit = _virtual_bytes() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    counts: Counter[str] = Counter()
    failures: list[tuple[int, str]] = []
    slowest_s, held = 0.0, _most_bytes()
    for number in range(start, stop):
        mark.value = number
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        began_s = time.process_time()
        try:
            counts[case(draw_of(name, seed, number))] += 1
        except BaseException as error:
            failures.append((number, _told(error)))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        slowest_s = max(slowest_s, time.process_time() - began_s)
        if (now := _most_bytes()) > held + HELD_BYTES:
            failures.append((number, f"MemoryError: held {(now - held) >> 20:,} MB"))
            held = now
        if number % CASES_AT_ONCE == 0 or number == stop - 1 or failures:
            pipe.send((counts, slowest_s, failures))
            counts, failures = Counter(), []


def _told(error: BaseException) -> str:
    """The innermost cause, with where it was raised."""
    while error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__} at {where}: {str(error)[:120]}"


def _most_bytes() -> int:
    """The most memory that this process has used so far; the figure of getrusage may be that of its parent."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _virtual_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
