"""Makes Numba leave out work that need not be done, in a process that only compiles; the code computes the same.

    hurry()      before the first kernel is compiled; compiler.py calls it, and nobody else

- Kernels that only other kernels call get no entry for Python. They are part of their callers' machine code, so they
  get none of their own, and the optimiser sees them there and not by themselves as well.
- Declarations, which have nothing in them, are not optimised.
- A call with a number that is known gets the code of one with any number; the optimiser knows the number all the same.
- The type of an operation is looked up once for the same arguments, settings are compared by what was set, the words
  for a record are made once, and the variables of a statement are listed without a call for each of its parts.
- Values without references, such as tuples of numbers, are not taken apart to count references.
- Nobody listens to the lock of the optimiser, which is told a hundred thousand times that it is taken.

All of it reaches into Numba. What a version of Numba does not have is left as it is.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

from llvmlite.binding import ffi
from numba.core import codegen, environment, ir
from numba.core import dispatcher as numba_dispatcher
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import TargetConfig
from numba.core.types import unliteral
from numba.core.types.functions import BaseFunction
from numba.core.types.npytypes import Record

from watchkeeper.streams.kernelcache import KernelCache, codes, global_names

# As Numba has them, without the types that it gives them.
_Functions: Any = BaseFunction
_Settings: Any = TargetConfig
_Compilers: Any = numba_dispatcher
_Library: Any = codegen.JITCodeLibrary
_Codegen: Any = codegen.JITCPUCodegen
_Instruction: Any = ir.Inst
_Record: Any = Record
_References: Any = NRTContext
_without_number: Any = unliteral
_ENVIRONMENT = "_ZN08NumbaEnv"


def hurry() -> None:
    """Change the habits of Numba in this process."""
    changes = _remember_types, _remember_records, _forget_numbers, _compare_what_was_set, _list_variables
    for change in (*changes, _count_references, _tell_nobody):
        with suppress(AttributeError):
            change()
    with suppress(AttributeError):
        _give_no_entry(_inner_kernels())
        _optimise_definitions()
        _make_code_when_called()


# -- types and statements ---------------------------------------------------------------------------------------


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


def _remember_records() -> None:
    describe = _Record.__repr__

    def words(self: Any) -> str:
        found: str | None = self.__dict__.get("_watchkeeper_words")
        if found is None:
            found = self.__dict__["_watchkeeper_words"] = describe(self)
        return found

    _Record.__repr__ = words


def _forget_numbers() -> None:
    template_of = _Compilers.Dispatcher.get_call_template

    def get_call_template(self: Any, args: Any, kws: Any) -> Any:
        try:
            named = {name: _without_number(arg) for name, arg in kws.items()}
            return template_of(self, tuple(map(_without_number, args)), named)
        except TypingError:
            # a kernel that needs the number, as to choose from a tuple
            return template_of(self, args, kws)

    _Compilers.Dispatcher.get_call_template = get_call_template


def _compare_what_was_set() -> None:
    compare = _Settings.__eq__

    def equal(self: Any, other: object) -> Any:
        if isinstance(other, _Settings) and self._values == other._values:
            return True
        return compare(self, other)

    _Settings.__eq__, _Settings.__hash__ = equal, lambda self: hash(type(self))


def _list_variables() -> None:
    plain = _Instruction._rec_list_vars
    empty = (str, int, float, bool, type(None), ir.Loc)

    def variables(self: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is not dict and kind is not list and kind is not tuple:
            return plain(self, value)  # type: ignore[no-any-return]
        found: list[Any] = []
        for part in value.values() if kind is dict else value:
            if type(part) is ir.Var:
                found.append(part)
            elif type(part) not in empty:
                found += variables(self, part)
        return found

    _Instruction._rec_list_vars = variables


def _count_references() -> None:
    take_apart = _References.get_meminfos
    known: dict[Any, bool] = {}

    def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> Any:
        if kind not in known:
            known[kind] = self._context.data_model_manager[kind].contains_nrt_meminfo()
        return take_apart(self, builder, kind, value) if known[kind] else []

    _References.get_meminfos = get_meminfos


def _tell_nobody() -> None:
    callbacks: list[Any] = ffi.lib._lock._cblist
    callbacks.clear()


# -- machine code -----------------------------------------------------------------------------------------------


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


def _optimise_definitions() -> None:
    def optimise(self: Any, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager()
                manager.run(function, builder)

    _Library._optimize_functions = optimise


def _make_code_when_called() -> None:
    """A library is linked as it is, and optimised and made machine code of when its entry is asked for."""
    optimise, make_code = _Library._optimize_final_module, _Library._finalize_final_module
    address_of, keep = _Library.get_pointer_to_function, _Library.serialize_using_object_code

    def wait(self: Any) -> None:
        if self._object_caching_enabled and self._compiled_object:
            # comes from the cache, with its code
            make_code(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = self._watchkeeper_waits = True

    def get_pointer_to_function(self: Any, name: str) -> Any:
        self._ensure_finalized()
        if self.__dict__.get("_watchkeeper_waits"):
            if not _defines(self._final_module, name):
                return 0
            self._watchkeeper_waits = False
            optimise(self)
            self._final_module.verify()
            make_code(self)
            _set_environments(self)
        return address_of(self, name)

    def serialize(self: Any) -> Any:
        self._ensure_finalized()
        if self.__dict__.get("_watchkeeper_waits"):
            return self.name, "bitcode", self._get_module_for_linking().as_bitcode()
        return keep(self)

    _Library._optimize_final_module = lambda _self: None
    _Library._finalize_final_module = wait
    _Library.get_pointer_to_function = get_pointer_to_function
    _Library.serialize_using_object_code = serialize
    _Codegen.set_env = _set_environment


def _defines(module: Any, name: str) -> bool:
    try:
        return not module.get_function(name).is_declaration
    except NameError:
        return False


def _set_environments(library: Any) -> None:
    """Those of the kernels that are part of this one: they were compiled when there was no code to tell."""
    look_up: Callable[[str], Any] = environment.lookup_environment
    for name in [variable.name for variable in library._final_module.global_variables]:
        if name.startswith(_ENVIRONMENT) and (found := look_up(name)) is not None:
            library.codegen.set_env(name, found)


def _set_environment(self: Any, name: str, value: Any) -> None:
    """As Numba does it, where there is code already."""
    if address := self._engine.get_global_value_address(name):
        (ctypes.c_void_p * 1).from_address(address)[0] = ctypes.c_void_p(id(value))


# -- which kernels only kernels call ----------------------------------------------------------------------------


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
