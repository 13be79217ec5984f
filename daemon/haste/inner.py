"""Which kernels only kernels call: they are part of their callers' machine code and need none of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from numba.core.dispatcher import Dispatcher

from watchkeeper.streams.kernelcache import KernelCache, codes, global_names


def inner_kernels() -> set[Any]:
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
