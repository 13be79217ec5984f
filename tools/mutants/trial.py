"""Mutants against the tests of their rooms, each in a process forked from one that has the libraries loaded.

Kernels are plain Python here (NUMBA_DISABLE_JIT), so a mutant of a kernel costs no compiler.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from tools.mutants.mutate import Mutant
from tools.mutants.rooms import ROOMS
from tools.rooms import ROOT

SURVIVED, KILLED, STUCK = "survived", "killed", "stuck"
# A mutant may take this many times as long as the tests usually do: a loop may have become endless.
PATIENCE, PATIENCE_LEAST_S = 4.0, 20.0
POLL_S = 0.02
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long")


@dataclass(frozen=True)
class Task:
    """One mutant of a module to try."""

    room: str
    module: str
    mutant: Mutant


def tried(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, str]]:
    """Try them side by side: each with SURVIVED, KILLED or STUCK. RuntimeError: a room's tests fail anyway."""
    patience_s: dict[str, float] = {}
    running: dict[int, tuple[Task, float]] = {}
    waiting = list(reversed(tasks))
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                task = waiting.pop()
                if task.room not in patience_s:
                    patience_s[task.room] = max(PATIENCE_LEAST_S, PATIENCE * _usual_s(task))
                running[_start(task, task.mutant.tree)] = task, time.monotonic()
            for pid, (task, started_s) in list(running.items()):
                found = _outcome(pid, started_s + patience_s[task.room])
                if found:
                    del running[pid]
                    yield task, found
            time.sleep(POLL_S)
    finally:
        for pid in running:
            os.killpg(pid, signal.SIGKILL)


def _usual_s(task: Task) -> float:
    """How long the tests of a room take when nothing was changed."""
    started_s = time.monotonic()
    pid = _start(task, ast.parse((ROOT / task.module).read_text()))
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"the tests of the room {task.room} fail without any change")
    return time.monotonic() - started_s


def _start(task: Task, tree: ast.Module) -> int:
    """Begin the tests with this content of the module; the process."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.meta_path.insert(0, _Finder(task.module, tree))
    code = 1
    try:
        code = int(pytest.main([*OPTIONS, *(str(ROOT / "tests" / test) for test in ROOMS[task.room].tests)]))
    finally:
        os._exit(code)


def _outcome(pid: int, until_s: float) -> str:
    """What became of a trial; empty while it goes on."""
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        return KILLED if status else SURVIVED
    if time.monotonic() < until_s:
        return ""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return STUCK


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, with other content."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self._name = "watchkeeper." + module.removesuffix(".py").replace("/", ".")
        self._path, self._tree = ROOT / module, tree

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """See MetaPathFinder."""
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, loader=_Loader(fullname, self._path, self._tree))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        super().__init__(name, str(path))
        self._tree = tree

    def get_code(self, *_: object) -> CodeType:
        """See SourceFileLoader."""
        return compile(self._tree, self.path, "exec")
