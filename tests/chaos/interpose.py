"""Puts the model in place of the machine: clock, threads, disk, connection to the broker and chance.

`with interposed():` replaces, while it lasts, the functions of `os`, `io`, `fcntl` and `time` that it calls (paths
and handles of the model go there, all others to the real function), every reference to them that a module of ours holds
(default arguments such as `now=time.monotonic`), thread pools, and the connection behind the transport. The daemon's
own code runs as it is: it has no idea. `stage(world)` says which world is on.
"""

from __future__ import annotations

import builtins
import fcntl
import gc
import inspect
import io
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import watchkeeper.daemon.app  # noqa: F401  every module of the daemon is loaded before it is looked through
from watchkeeper.daemon import background, compiling, logs
from watchkeeper.detectors.engine import warmup
from watchkeeper.streams.mqtt import transport

from chaos import census, scenes
from chaos.disk import FIRST_HANDLE, ROOT, Disk
from chaos.network import Connection
from chaos.timeline import EPOCH_S, Pool

if TYPE_CHECKING:
    from chaos.world import World

# The world whose code runs now.
_stage: list[World] = []

BY_PATH = (
    "open",
    "stat",
    "lstat",
    "replace",
    "rename",
    "link",
    "unlink",
    "remove",
    "mkdir",
    "listdir",
    "scandir",
    "chmod",
)
BY_HANDLE = (
    "close", "dup", "read", "pread", "write", "pwrite", "lseek", "ftruncate", "fsync", "fdatasync", "fstat",
    "fchmod",
)  # fmt: skip
AS = {"lstat": "stat", "rename": "replace", "remove": "unlink", "fdatasync": "fsync"}


@contextmanager
def stage(world: World) -> Iterator[None]:
    """This world's clock and disk are the machine's, and chance follows its seed.

    Memory is tidied up only between worlds: what a dead process leaves behind must not act in another's time.
    """
    gc.disable()
    _stage.append(world)
    patches = Patches()
    logger = logging.getLogger("watchkeeper")
    patches.set(logger, "propagate", False)
    patches.set(logger, "handlers", [_ToTrace()])
    before = random.getstate()
    random.seed(world.seed)
    try:
        yield
        world.daemon.bury()
    finally:
        _stage.pop()
        patches.undo()
        random.setstate(before)
        gc.enable()


def on_stage() -> World | None:
    """The world whose code runs now."""
    return _stage[-1] if _stage else None


def _disk() -> Disk:
    return _stage[-1].disk


def _ours(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and str(path).startswith(ROOT)


def _by_path(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    model = AS.get(name, name)

    def call(path: Any = ".", *args: Any, **named: Any) -> Any:
        if _stage and _ours(path):
            return getattr(_disk(), model)(path, *args, **named)
        return real(path, *args, **named)

    return call


def _by_handle(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    model = AS.get(name, name)

    def call(number: Any, *args: Any) -> Any:
        handle = number if isinstance(number, int) else number.fileno()
        if handle >= FIRST_HANDLE:
            return getattr(_disk(), model)(handle, *args) if _stage else None
        return real(number, *args)

    return call


def _open_file(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(file: Any, *args: Any, **named: Any) -> Any:
        if _stage and (_ours(file) or (isinstance(file, int) and file >= FIRST_HANDLE)):
            return _disk().open_file(file, *args, **named)
        return real(file, *args, **named)

    return call


def _file_io(file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
    if _stage and (_ours(file) or (isinstance(file, int) and file >= FIRST_HANDLE)):
        return _disk().open_file(file, mode.replace("b", "") + "b", 0)
    return _REAL_FILE_IO(file, mode, *args, **named)


_REAL_FILE_IO = io.FileIO


def _flock(file: Any, operation: int) -> None:
    if _stage and (file if isinstance(file, int) else file.fileno()) >= FIRST_HANDLE:
        _disk().flock(file, operation)
    else:
        _REAL_FLOCK(file, operation)


_REAL_FLOCK = fcntl.flock


def _clock(real: Callable[[], float], scale: int = 0) -> Callable[[], float]:
    def now() -> float:
        if not _stage:
            return real()
        seconds = _stage[-1].timeline.now
        return int(seconds * scale) if scale else seconds

    return now


def wall_clock() -> float:
    """time.time on the stage."""
    return _stage[-1].timeline.now + EPOCH_S + _stage[-1].wall_s if _stage else _REAL_TIME()


_REAL_TIME = time.time


def _pool(*_args: Any, **_named: Any) -> Any:
    world = _stage[-1]
    assert world.timeline.current is not None, "threads belong to a process"
    return Pool(world.timeline, world.timeline.current)


def _make_pool(*args: Any, **named: Any) -> Any:
    return _pool() if _stage else ThreadPoolExecutor(*args, **named)


async def _in_background(name: str, work: Callable[[], object]) -> None:
    """The compiler's thread: everything is compiled before the first world begins, so it only takes its time."""
    await _stage[-1].daemon.compile()


def _replacements() -> dict[int, Any]:
    """What modules of ours may hold a reference to, by identity, and what they get instead."""
    pairs: list[tuple[Any, Any]] = [
        (time.monotonic, _clock(time.monotonic)),
        (time.perf_counter, _clock(time.perf_counter)),
        (time.time, wall_clock),
        (time.monotonic_ns, _clock(time.monotonic_ns, scale=10**9)),
        (ThreadPoolExecutor, _make_pool),
        (io.FileIO, _file_io),
        (background.in_background, _in_background),
        (logs.set_up, lambda _settings: None),
        (compiling.compile_kernels, lambda _config, **_options: 0),
        (warmup.warm_up, lambda _config: None),
        (gc, SimpleNamespace(collect=lambda: 0, freeze=lambda: None)),
    ]
    return {id(old): new for old, new in pairs}


def _modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("watchkeeper.")]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for thing in vars(module).values():
        if inspect.isfunction(thing):
            yield thing
        elif inspect.isclass(thing) and thing.__module__ == module.__name__:
            yield from (member for member in vars(thing).values() if inspect.isfunction(member))


class Patches:
    """Attributes that were set, and how to set them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, where: Any, name: str, value: Any) -> None:
        before = getattr(where, name)
        self._undo.append(lambda: setattr(where, name, before))
        setattr(where, name, value)

    def undo(self) -> None:
        for step in reversed(self._undo):
            step()
        self._undo.clear()


@contextmanager
def interposed() -> Iterator[None]:
    """While this lasts, worlds can be staged. Compiles what has to be compiled first."""
    with census.registered():
        warmup.warm_up(scenes.config())
        with _replaced():
            yield


@contextmanager
def _replaced() -> Iterator[None]:
    patches = Patches()
    replaced = _replacements()
    for module in _modules():
        for name, value in list(vars(module).items()):
            if id(value) in replaced:
                patches.set(module, name, replaced[id(value)])
        for function in _functions(module):
            if any(id(value) in replaced for value in function.__defaults__ or ()):
                defaults = tuple(replaced.get(id(value), value) for value in function.__defaults__ or ())
                patches.set(function, "__defaults__", defaults)
            if any(id(value) in replaced for value in (function.__kwdefaults__ or {}).values()):
                named = {key: replaced.get(id(value), value) for key, value in (function.__kwdefaults__ or {}).items()}
                patches.set(function, "__kwdefaults__", named)
    for name in ("monotonic", "perf_counter", "time", "monotonic_ns"):
        patches.set(time, name, replaced[id(getattr(time, name))])
    for name in BY_PATH:
        patches.set(os, name, _by_path(name, getattr(os, name)))
    for name in BY_HANDLE:
        patches.set(os, name, _by_handle(name, getattr(os, name)))
    opener = _open_file(io.open)
    patches.set(io, "open", opener)
    patches.set(builtins, "open", opener)
    patches.set(fcntl, "flock", _flock)
    patches.set(transport, "_connection", lambda wiring: Connection(_stage[-1], wiring))
    patches.set(sys, "unraisablehook", lambda _problem: None)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        patches.undo()
        gc.unfreeze()


class _ToTrace(logging.Handler):
    """What the daemon logs, in the trace of its world."""

    def emit(self, record: logging.LogRecord) -> None:
        if _stage:
            fields = " ".join(f"{key}={value}" for key, value in getattr(record, "fields", {}).items())
            error = f" {record.exc_info[1]!r}" if record.exc_info else ""
            _stage[-1].note("log", f"{record.levelname.lower()} {record.getMessage()} {fields}{error}")
