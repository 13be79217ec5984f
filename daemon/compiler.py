"""One process of the compiler: everything that is needed into the cache, a line of output for each kernel.

    python -m watchkeeper.daemon.compiler NUMBER KINDS OFF      see compiling.py, which starts it

Most of Numba's time goes into things that need not be done, so this process, and no other, changes some of its habits:
no garbage is collected (it ends soon), the type of an operation is looked up once for the same arguments, settings are
compared by what was set, and kernels that only other kernels call get no entry for Python. The code that comes out is
the same. What a version of Numba does not have is left as it is; should this process fail, kernels are compiled
elsewhere when they are called.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from numba.core import dispatcher as numba_dispatcher
from numba.core import event
from numba.core.dispatcher import Dispatcher
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.compiling import free_bytes
from watchkeeper.detectors.engine.warmup import heavy_kernels, warm_up
from watchkeeper.streams.kernelcache import KernelCache, codes, global_names
from watchkeeper.streams.messages import KIND_OF_WORD

# With less memory garbage is collected.
HASTY_BYTES = 1.2e9
# As Numba has them, without the types that it gives them.
_Functions: Any = BaseFunction
_Settings: Any = TargetConfig
_Compilers: Any = numba_dispatcher


def main(arguments: Sequence[str]) -> int:
    """Number of the process, kinds of samples, and detectors that are off."""
    number, words, off = arguments
    # who started us has been asked to stop, too, and says what is to be said
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if free_bytes() > HASTY_BYTES:
        gc.disable()
    event.register("numba:compile", _Progress())  # type: ignore[no-untyped-call]
    hurry()
    kinds = [KIND_OF_WORD[word] for word in words.split(",")]
    config = _without(off.split(","))
    heavy = heavy_kernels(config, kinds)
    longest_first = list(chain.from_iterable(heavy.values()))
    if number == "0":
        # from the other end: what takes longest is the other's
        warm_up(_without([*off.split(","), *heavy]), kinds)
        longest_first.reverse()
    for call in longest_first:
        call()
    warm_up(config, kinds)
    return 0


def _without(names: Iterable[str]) -> Config:
    return load(None, env={}, overrides={"detectors": {name: {"enabled": False} for name in names if name}})


class _Progress(event.Listener):
    def on_start(self, event: Any) -> None:
        """One begins."""

    def on_end(self, event: Any) -> None:
        """One is done."""
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher._cache, KernelCache):
            try:
                print(dispatcher.py_func.__name__, flush=True)
            except BrokenPipeError:
                # nobody waits for the rest: the process that asked is gone
                os._exit(1)


# -- Numba's habits ---------------------------------------------------------------------------------------------


def hurry() -> None:
    """Change the habits of Numba in this process."""
    with suppress(AttributeError):
        _remember_types()
    with suppress(AttributeError):
        _compare_what_was_set()
    with suppress(AttributeError):
        _give_no_entry(_inner_kernels())


def _remember_types() -> None:
    look_up = _Functions.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return look_up(self, context, args, kws)
        known = self.__dict__.setdefault("_watchkeeper_known", {})
        found = known.get(args)
        if found is None:
            found = known[args] = look_up(self, context, args, kws)
        return found

    _Functions.get_call_type = get_call_type


def _compare_what_was_set() -> None:
    compare = _Settings.__eq__

    def equal(self: Any, other: object) -> Any:
        if isinstance(other, _Settings) and self._values == other._values:
            return True
        return compare(self, other)

    _Settings.__eq__, _Settings.__hash__ = equal, lambda self: hash(type(self))


def _give_no_entry(inner: set[Any]) -> None:
    customize = _Compilers._FunctionCompiler._customize_flags
    compilers = {kernel._compiler for kernel in inner}

    def customize_flags(self: Any, flags: Any) -> Any:
        flags = customize(self, flags)
        if self in compilers:
            flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    _Compilers._FunctionCompiler._customize_flags = customize_flags
    for kernel in inner:
        kernel._cache.variant = "inner"


def _inner_kernels() -> set[Any]:
    """Kernels that no function of ours calls which is not a kernel itself."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("watchkeeper.")]
    kernels: set[Any] = set()
    called: set[Any] = set()
    for module in modules:
        kernels |= {value for value in vars(module).values() if isinstance(value, Dispatcher)}
        for function in _functions(module):
            for name in chain.from_iterable(map(global_names, codes(function.__code__))):
                value = function.__globals__.get(name)
                called |= {value} if isinstance(value, Dispatcher) else _parts_of(value)
    return {kernel for kernel in kernels - called if isinstance(kernel._cache, KernelCache)}


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    todo: list[Any] = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    while todo:
        value = todo.pop()
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, (staticmethod, classmethod)):
            todo.append(value.__func__)
        elif isinstance(value, property):
            todo += [part for part in (value.fget, value.fset) if part is not None]
        elif isinstance(value, cached_property):
            todo.append(value.func)
        elif isinstance(value, type):
            todo += list(vars(value).values())


def _parts_of(value: Any) -> set[Any]:
    """Kernels that are reached by way of something else: a module, or a table of them."""
    if isinstance(value, ModuleType) and value.__name__.startswith("watchkeeper."):
        return {part for part in vars(value).values() if isinstance(part, Dispatcher)}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list, set)) else ()
    return {part for part in parts if isinstance(part, Dispatcher)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
