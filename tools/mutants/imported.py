"""A trial that imports everything again: for a change of what runs while modules are imported."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from tools.mutants.measure import FastFirst, Measured, options
from tools.mutants.rooms import Room
from tools.mutants.task import Task
from tools.rooms import ROOT


def import_and_run(room: Room, task: Task, base: Measured) -> int:
    """Run all tests of the room with the changed module; 0: all pass. For a process that has not loaded it yet."""
    sys.meta_path.insert(0, _Finder(task.module, task.mutant.tree))
    return int(pytest.main(options(room), plugins=[FastFirst(base)]))


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
