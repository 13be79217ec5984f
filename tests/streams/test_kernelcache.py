"""Compiled kernels on disk: what has not changed is compiled once, whatever happens around it."""

from __future__ import annotations

import argparse
import dis
import os
import subprocess
import sys
import time
from pathlib import Path
from types import FunctionType

import pytest
from numba.core.bytecode import FunctionIdentity

from watchkeeper.streams import kernelcache
from watchkeeper.streams.kernelcache import UNUSED_S, codes, forget_unused, global_names

INNER = '''
"""Kernels that others call."""
from watchkeeper.streams.kernels import njit
from constants import SCALE, TABLE

@njit(cache=True)
def scaled(x):
    """Times a constant."""
    return x * SCALE

@njit(cache=True)
def looked_up(i):
    return TABLE[i]
'''
OUTER = """
import inner
from inner import scaled
from watchkeeper.streams.kernels import njit

@njit(cache=True)
def outer(x):
    return later(x) + scaled(x)

@njit(cache=True)
def later(x):
    return x + 1.0

@njit(cache=True)
def other(i):
    return inner.looked_up(i)
"""
CONSTANTS = "import numpy as np\nSCALE = 3.0\nTABLE = np.arange(4.0)\n"
PROGRAM = """
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, e): ...
    def on_end(self, e):
        if e.data["dispatcher"].py_func.__module__ in ("inner", "outer"):
            print(e.data["dispatcher"].py_func.__name__, end=" ")

event.register("numba:compile", Compiled())
from outer import other, outer
print("=", outer(2.0), other(3))
"""


class Place:
    """A folder of modules, run in a process of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        folder.mkdir()
        self.write(inner=INNER, outer=OUTER, constants=CONSTANTS)

    def write(self, **modules: str) -> None:
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(text)

    def run(self) -> tuple[list[str], str]:
        """What was compiled, and what it gave."""
        env = os.environ | {"PYTHONPATH": str(self.folder), "XDG_CACHE_HOME": str(self.cache)}
        # files change faster here than Python notices
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=env)
        compiled, _, result = done.stdout.partition("=")
        return sorted(compiled.split()), result.strip()


ALL = ["later", "looked_up", "other", "outer", "scaled"]


def test_only_what_has_changed_and_its_callers_are_compiled_again(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", tmp_path / "cache")
    assert place.run() == (ALL, "9.0 3.0")
    assert place.run() == ([], "9.0 3.0")
    # words and places of things
    place.write(inner="# more\n\n" + INNER.replace("Times a constant", "By a constant"))
    assert place.run() == ([], "9.0 3.0")
    # another environment
    elsewhere = Place(tmp_path / "b", tmp_path / "cache")
    assert elsewhere.run() == ([], "9.0 3.0")
    # code, also of a kernel that is defined after its caller
    elsewhere.write(outer=OUTER.replace("x + 1.0", "x + 2.0"))
    assert elsewhere.run() == (["later", "outer"], "10.0 3.0")
    # constants, which are in the code; a module's, too
    elsewhere.write(constants=CONSTANTS.replace("3.0", "4.0"))
    assert elsewhere.run() == (["outer", "scaled"], "12.0 3.0")
    elsewhere.write(constants=CONSTANTS.replace("arange(4.0)", "ones(4)"))
    assert elsewhere.run() == (["looked_up", "other"], "10.0 1.0")
    # and back again, in both
    assert place.run() == ([], "9.0 3.0")
    elsewhere.write(constants=CONSTANTS, outer=OUTER)
    assert elsewhere.run() == ([], "9.0 3.0")


SORTING = """
import sys
import numpy as np
from numba.core.bytecode import FunctionIdentity
from watchkeeper.streams.kernels import njit

@njit(cache=True)
def least(x):
    y = x.copy()
    y.sort()
    return y[0]

@njit(cache=True)
def first(x):
    return x[np.argsort(x)[0]]
"""


def test_code_that_other_processes_have_compiled_is_not_mistaken_for_another(tmp_path: Path) -> None:
    """Numba's sorting and its sorting of indices have one name; the number behind it is what tells them apart."""
    (tmp_path / "sorting.py").write_text(SORTING)
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)

    def run(program: str) -> str:
        command = [sys.executable, "-c", f"from sorting import *\nx = np.array([3.0, 1.0, 2.0, 9.0])\n{program}"]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    assert run("print(least(x))") == "1.0\n"
    # where both began to count at 1, these two more made the numbers equal
    assert run("for _ in range(2): next(FunctionIdentity._unique_ids)\nprint(first(x))") == "1.0\n"
    assert run("print(first(x), least(x))") == "1.0 1.0\n"
    assert run("print(least(x), first(x))") == "1.0 1.0\n"


def test_damaged_files_are_compiled_again_and_replaced(tmp_path: Path) -> None:
    place = Place(tmp_path / "a", tmp_path / "cache")
    place.run()
    folder = tmp_path / "cache" / "watchkeeper" / "kernels"
    for i, file in enumerate(sorted(folder.glob("*.nb?"))):
        whole = file.read_bytes()
        flipped = whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:]
        file.write_bytes((b"", whole[: len(whole) // 2], b"?" * 100, flipped)[i % 4 if file.suffix == ".nbi" else 3])
    compiled, result = place.run()
    assert (set(compiled) >= {"outer", "other"}, result) == (True, "9.0 3.0")
    place.run()
    assert place.run() == ([], "9.0 3.0")


@pytest.mark.parametrize("mode", [0o777, 0o500])
def test_where_others_may_write_or_nobody_may_nothing_is_kept(tmp_path: Path, mode: int) -> None:
    place = Place(tmp_path / "a", tmp_path / "cache")
    folder = tmp_path / "cache" / "watchkeeper" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    if mode == 0o500 and os.access(folder, os.W_OK):
        pytest.skip("nothing is read-only for root")
    for _ in range(2):
        assert place.run() == (ALL, "9.0 3.0")
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)


def test_files_of_somebody_else_are_read_as_well(tmp_path: Path) -> None:
    """Those of an image: root's own, or on a file system that is read-only, so that their times cannot be changed."""
    place = Place(tmp_path / "a", tmp_path / "cache")
    place.run()
    refused = "import os\ndef utime(*_, **__): raise PermissionError\nos.utime = utime\n"
    place.write(sitecustomize=refused, constants=refused + CONSTANTS)
    assert place.run() == ([], "9.0 3.0")


def test_files_that_nobody_uses_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernelcache.folder.cache_clear()
    try:
        place = Place(tmp_path / "a", tmp_path)
        place.run()
        folder = kernelcache.folder()
        assert folder is not None
        files = len(list(folder.iterdir()))
        for index in folder.glob("outer.outer-*.nbi"):
            os.utime(index, (0.0, time.time() - 2 * UNUSED_S))
        forget_unused()
        assert len(list(folder.iterdir())) == files - 3
        assert place.run()[0] == ["outer"]
    finally:
        kernelcache.folder.cache_clear()


def test_a_fork_counts_from_a_number_of_its_own() -> None:
    """Two processes that count alike give one name to different code, see the module."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert abs(int(os.read(reading, 100)) - next(FunctionIdentity._unique_ids)) > 1
    os.close(reading)
    os.close(writing)


def test_names_of_a_module_are_those_that_the_disassembler_finds() -> None:
    # long functions have arguments of more than a byte
    modules = (argparse, dis, subprocess, kernelcache)
    functions = [value for module in modules for value in vars(module).values() if isinstance(value, FunctionType)]
    methods = [value for value in vars(argparse.ArgumentParser).values() if isinstance(value, FunctionType)]
    found = [code for function in functions + methods for code in codes(function.__code__)]
    assert len(found) > 100
    for code in found:
        expected = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        assert global_names(code) == sorted(expected)
