"""Compiled kernels on disk, by what they are made of: nothing that has not changed is compiled a second time.

A kernel's compiled code depends on its own bytecode, on that of every kernel it calls, on the constants they read, on
its compiler options, on Numba's version and on the processor. All but the last make a digest that names its files,
which have an entry for each kind of processor. So environments share what they have in common, an upgrade or a switch
of branches finds what it had before, and a changed docstring, comment or line number changes nothing. A changed kernel
is compiled again with its callers, and nothing else is.

While one process compiles a kernel, others that need it wait for the file: a kernel's callers come before it and what
it calls after it, so two can never wait for each other.

Numba names the code of a function by the function's name, the types of its arguments and a number, which it counts from
1 in every process. Files of several processes would then have the same name for different code, parts of Numba's own
such as its sorting among it, and a process that loads both would run one of the two for both. So here every process
counts from a number of its own.

The files are below the user's cache directory, or below NUMBA_CACHE_DIR. They are loaded as code, so a directory that
others may write is not used. Where nothing can be written, kernels are compiled again at each start.
"""

# Numba's classes are half typed.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import dis
import fcntl
import itertools
import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator
from numba.core.dispatcher import Dispatcher

from watchkeeper.streams.blas import ask_later

log = logging.getLogger(__name__)

Function = Any  # a function object; Numba says Callable

# Files of kernels that nobody has used for so long are deleted when something is compiled.
UNUSED_S = 60 * 86400.0
# So long for another process to compile what we need; the largest kernel takes half a minute on a slow core.
PATIENCE_S = 300.0
POLL_S = 0.01
SEAL_BYTES = 16

# Part of every digest: another one where files of before must not be read. 2: code is named by numbers of one process.
LAYOUT = 2
FIRST_NUMBER_BYTES = 6


def _count_apart() -> None:
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(FIRST_NUMBER_BYTES)))


_count_apart()
os.register_at_fork(after_in_child=_count_apart)

# What these bring is Numba's to know: they change with its version.
_FOREIGN = ("builtins", "math", "numpy", "numba")
_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]


@cache
def folder() -> Path | None:
    """Where compiled kernels are; None: nowhere that is safe."""
    asked = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    path = Path(asked) if asked else home / "watchkeeper" / "kernels"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError:
        return path if path.is_dir() else None
    if found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o022:
        log.warning("compiled kernels are not kept: others may write %s", path)
        return None
    return path


class KernelCache(NullCache):
    """The cache of one kernel. Its digest is taken when it is first called: by then all that it calls is defined."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        # of code that is not quite like that of others, see daemon/compiler.py
        self.variant = ""
        self._opened: FunctionCache | None = None
        # the file that says that we compile this kernel, and how often we do at once
        self._lock: int | None = None
        self._compiling = 0

    @property
    def cache_path(self) -> str:
        """For Numba's statistics."""
        return str(folder() or "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types of arguments, or None: then the caller compiles it."""
        ask_later()
        found = self._load(sig, target_context)
        if found is None and self._claim():
            # another process was at it meanwhile
            found = self._load(sig, target_context)
        if found is None:
            self._compiling += 1
        elif not self._compiling:
            self._release()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            files = self._files()
            return files and files.load_overload(sig, target_context)
        except Exception as error:  # damaged, or of something else: compiled again, and replaced
            log.debug("compiled kernel not read: %r", error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        try:
            if (files := self._files()) is not None:
                files.save_overload(sig, data)
        except OSError as error:
            log.debug("compiled kernel not kept: %r", error)
        self._compiling -= 1
        if self._compiling <= 0:
            self._release()

    def _claim(self) -> bool:
        """Be the one process that compiles this kernel; whether somebody else was."""
        if self._lock is not None or self._opened is None:
            return False
        try:
            self._lock = os.open(f"{self._opened._cache_file._index_path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        until_s = time.monotonic() + PATIENCE_S
        waited = False
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = True
                if time.monotonic() < until_s:
                    time.sleep(POLL_S)
                    continue
            except OSError:
                pass
            return waited

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _files(self) -> FunctionCache | None:
        if self._opened is None and (path := folder()) is not None:
            function = self._dispatcher.py_func
            _Locator.digests[function] = digest_of(self._dispatcher) + self.variant
            self._opened = _Files(function)
            if (index := path / f"{self._opened._impl.filename_base}.nbi").exists():
                with suppress(OSError):  # an image's own, which is root's or read-only: it is read all the same
                    os.utime(index)
        return self._opened


class _Locator(_CacheLocator):
    digests: ClassVar[dict[Function, str]] = {}

    def __init__(self, function: Function, file: str) -> None:
        self._py_file = file
        self._digest = self.digests[function]

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest

    @classmethod
    def from_function(cls, function: Function, file: str) -> _Locator:
        return cls(function, file)


class _Impl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  # as in its base


class _Files(FunctionCache):
    _impl_class = _Impl

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._cache_file = _Sealed(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())


class _Sealed(IndexDataCacheFile):
    """Files with a checksum: a damaged one would be run as it is."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # whatever a damaged pickle does: it is written again
            return {}

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        is_whole = data[-SEAL_BYTES:] == _seal(data[:-SEAL_BYTES])
        return super()._load_data(name) if is_whole else None

    def _dump(self, obj: Any) -> bytes:
        payload: bytes = super()._dump(obj)
        return payload + _seal(payload)


def _seal(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=SEAL_BYTES).digest()


def digest_of(dispatcher: Dispatcher) -> str:
    """What a kernel is made of: its own digest and those of all that it calls."""
    todo, found = [dispatcher], {}
    while todo:
        kernel = todo.pop()
        if kernel not in found:
            found[kernel], called = _own(kernel)
            todo += called
    parts = sorted(digest for kernel, digest in found.items() if kernel is not dispatcher)
    return blake2b(b"".join([found[dispatcher], *parts]), digest_size=10).hexdigest()


@cache
def _own(kernel: Dispatcher) -> tuple[bytes, tuple[Dispatcher, ...]]:
    """The digest of one kernel without those that it calls, and these."""
    function = kernel.py_func
    called: list[Dispatcher] = []
    name = f"{function.__module__}.{function.__qualname__}"
    digest = blake2b(f"{LAYOUT} {numba.__version__} {name} {kernel.targetoptions!r}".encode(), digest_size=16)
    for part in _parts(function, called):
        digest.update(f"{len(part)}:".encode())
        digest.update(part)
    return digest.digest(), tuple(called)


def _parts(function: Function, called: list[Dispatcher]) -> Iterator[bytes]:
    yield from _code_parts(function.__code__, function.__doc__)
    yield from (_value(default, function, called) for default in function.__defaults__ or ())
    for cell in function.__closure__ or ():
        yield _value(cell.cell_contents, function, called)
    for code in codes(function.__code__):
        for name in global_names(code):
            if name in function.__globals__:
                value = function.__globals__[name]
                yield name.encode() + b"=" + _value(value, function, called)
                if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _FOREIGN:
                    yield from (_value(getattr(value, n), function, called) for n in code.co_names if hasattr(value, n))


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of all that is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _code_parts(code: CodeType, doc: str | None) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant, None)
        elif doc is None or constant != doc:
            yield repr(constant).encode()


def global_names(code: CodeType) -> list[str]:
    """The names that are read from the module, as opposed to those of attributes.

    As `dis.get_instructions` has them, which describes every instruction first and takes ten times as long.
    """
    names, extended = set(), 0
    for opcode, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument |= extended  # noqa: PLW2901
        extended = argument << 8 if opcode == dis.EXTENDED_ARG else 0
        if opcode == _LOAD_GLOBAL:
            # the lowest bit asks for a place on the stack
            names.add(code.co_names[argument >> 1])
    return sorted(names)


def _value(value: Any, function: Function, called: list[Dispatcher]) -> bytes:
    """What a kernel sees of a value outside it."""
    if isinstance(value, Dispatcher):
        called.append(value)
        return f"{value.py_func.__module__}.{value.py_func.__qualname__}".encode()
    if isinstance(value, np.ndarray):
        return f"{value.dtype!r} {value.shape}".encode() + value.tobytes()
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None))):
        return repr(value).encode()
    if isinstance(value, (tuple, frozenset)):
        parts = [_value(part, function, called) for part in value]
        return type(value).__qualname__.encode() + b"(" + b",".join(parts) + b")"
    if isinstance(value, ModuleType):
        return value.__name__.encode()
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}".encode()
    if (getattr(value, "__module__", "") or "").partition(".")[0] in _FOREIGN:
        return f"{value.__module__}.{getattr(value, '__qualname__', value)}".encode()
    # not known what a kernel makes of it: whatever is in the file of the kernel may matter
    return repr(type(value)).encode() + Path(function.__code__.co_filename).read_bytes()


def forget_unused(now_s: float | None = None) -> None:
    """Delete the files of kernels that nobody has called for long."""
    path, before_s = folder(), (time.time() if now_s is None else now_s) - UNUSED_S
    if path is None:
        return
    for index in path.glob("*.nbi"):
        try:
            if index.stat().st_mtime < before_s:
                for file in (index, Path(f"{index}.lock"), *path.glob(f"{index.stem}.*.nbc")):
                    file.unlink(missing_ok=True)
        except OSError:
            continue
