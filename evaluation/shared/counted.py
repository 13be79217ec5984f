"""Work on many items, by several processes where it pays, with a progress bar on a terminal (none in a pipe).

`counted` gives all results, `shown` one after the other for work that would not fit into memory.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")
R = TypeVar("R")
# A process takes a second or two to start and to load the kernels; items below take milliseconds each.
PAYS_FROM = 400
# Items that a process takes at a time: its messages cost less than the work, and the bar still moves.
CHUNK = 16


def counted(work: Callable[[T], R], items: Sequence[T], what: str, *, jobs: int = 0, hidden: bool = False) -> list[R]:
    """The results in order. `jobs` 0: as many processes as cores if that pays; `work` must be a module's function."""
    return list(shown(_results(work, items, jobs or _cores(len(items))), len(items), what, hidden=hidden))


def shown(results: Iterable[R], total: int, what: str, *, hidden: bool = False) -> Iterator[R]:
    """The same results; meanwhile a bar says how many of them there are."""
    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    ) as progress:
        task = progress.add_task(what, total=total)
        for result in results:
            yield result
            progress.advance(task)


def _cores(items: int) -> int:
    return len(os.sched_getaffinity(0)) if items >= PAYS_FROM else 1


def _results(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    if jobs == 1:
        yield from map(work, items)
        return
    # threads and locks of the parent do not survive a fork, so each process starts afresh
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_rarely_collect) as pool:
        yield from pool.map(work, items, chunksize=CHUNK)


def _rarely_collect() -> None:
    """A decoded file is thousands of objects without a cycle; looking for one among them took a fifth of the time."""
    gc.set_threshold(500_000, 20, 20)
