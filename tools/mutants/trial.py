"""Mutants against the tests of their rooms.

Kernels are plain Python here (NUMBA_DISABLE_JIT), so a mutant of a kernel costs no compiler. Most mutants change the
inside of a function: for those one process loads a room's tests once, and each trial is a fork of it (loaded.py). A
change of what runs during imports needs the imports again: its trial is a fork of a process that has loaded libraries
only (imported.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.mutants.imported import import_and_run
from tools.mutants.loaded import in_forks
from tools.mutants.measure import IMPORTED, PREPARED, measured
from tools.mutants.process import MISSED, SURVIVED, Job, outcomes
from tools.mutants.rooms import ROOMS, Room
from tools.mutants.task import Task


def tried(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, str]]:
    """Try mutants of one room: each with SURVIVED, KILLED or STUCK. RuntimeError: the room's tests fail anyway."""
    if tasks:
        for number, outcome in _tried(ROOMS[tasks[0].room], tasks, workers):
            yield tasks[number], outcome


def _tried(room: Room, tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, str]]:
    base = measured(room)
    everything = set(base.seconds)
    loaded = {}
    again = []
    for number, task in enumerate(tasks):
        tests = base.running(task.module, task.mutant)
        if IMPORTED in tests:
            again.append(number)
        elif tests:
            loaded[number] = task, (everything if PREPARED in tests else tests)
        else:
            yield number, SURVIVED  # no test runs this line
    if loaded:
        for number, outcome in in_forks(room, base, loaded, workers):
            if outcome == MISSED:
                again.append(number)
            else:
                yield number, outcome
    patience_s = base.patience_s(everything)
    jobs = [Job(n, lambda n=n: import_and_run(room, tasks[n], base), patience_s) for n in again]  # type: ignore[misc]
    yield from outcomes(jobs, workers)
