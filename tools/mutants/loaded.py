"""Trials in forks of one process that has loaded a room's tests: the changed function gets other code there."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe
from types import CodeType, FunctionType

import pytest

from tools.mutants.measure import FastFirst, Measured, options
from tools.mutants.process import NOT_TRIED, SURVIVED, Job, forked, outcomes
from tools.mutants.rooms import Room
from tools.mutants.task import Task
from tools.rooms import ROOT

# By file, name and line of a function all that there are.
Functions = dict[tuple[str, str, int], list[FunctionType]]


def in_forks(
    room: Room, base: Measured, tasks: dict[int, tuple[Task, set[str]]], workers: int
) -> Iterator[tuple[int, str]]:
    """Try each task with its tests. RuntimeError: the tests fail anyway, in this order."""
    answers, send = Pipe(duplex=False)
    pid = forked(lambda: _load(room, _Trials(base, tasks, workers, send)))
    send.close()
    try:
        while True:
            yield answers.recv()
    except EOFError:
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("the tests fail without any change when the fast ones come first") from None
    except GeneratorExit:
        os.kill(pid, signal.SIGTERM)
        raise


def _load(room: Room, trials: _Trials) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of `finally`, which ends the trials
    pytest.main(options(room), plugins=[trials])
    return 0 if trials.passed else 1


class _Trials(FastFirst):
    """Takes the place of pytest's loop over the tests: one loop for each mutant, in a fork."""

    def __init__(
        self, base: Measured, tasks: dict[int, tuple[Task, set[str]]], workers: int, answers: Connection
    ) -> None:
        super().__init__(base)
        self._tasks, self._workers, self._answers = tasks, workers, answers
        self.passed = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """See pytest."""
        everything = set(self.base.seconds)
        unchanged = Job(0, lambda: _run(session, everything), self.base.patience_s(everything))
        self.passed = [found for _, found in outcomes([unchanged], 1)] == [SURVIVED]
        if self.passed:
            functions = _functions({str(ROOT / task.module) for task, _ in self._tasks.values()})
            for answer in outcomes(self._jobs(session, functions), self._workers):
                self._answers.send(answer)
        return True

    def _jobs(self, session: pytest.Session, functions: Functions) -> Iterator[Job]:
        for number, (task, tests) in self._tasks.items():

            def work(task: Task = task, tests: set[str] = tests) -> int:
                return _run(session, tests) if _put(task, functions) else NOT_TRIED

            yield Job(number, work, self.base.patience_s(tests))


def _run(session: pytest.Session, tests: set[str]) -> int:
    items = [item for item in session.items if item.nodeid in tests]
    for item, after in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return 1
    return 0


def _put(task: Task, functions: Functions) -> bool:
    """Give the changed function its other code, wherever it is used; False: that cannot be done."""
    path = str(ROOT / task.module)
    changed = False
    for code in _codes(compile(task.mutant.tree, path, "exec")):
        for function in functions.get((path, code.co_qualname, code.co_firstlineno), ()):
            if code.co_qualname == task.mutant.function:
                if code.co_freevars != function.__code__.co_freevars:
                    return False
                function.__code__ = code
                changed = True
    return changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _functions(paths: set[str]) -> Functions:
    found: Functions = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            code = thing.__code__
            path = os.path.realpath(code.co_filename)
            if path in paths:
                found.setdefault((path, code.co_qualname, code.co_firstlineno), []).append(thing)
    return found
