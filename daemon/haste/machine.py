"""Machine code: made once, where it is called, and not of what is part of other code.

Called by hurry(), in the process that compiles. AttributeError: this version of Numba does it in another way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite.binding import ffi
from numba.core import codegen, environment
from numba.core import dispatcher as numba_dispatcher

# As Numba has them, without the types that it gives them.
_Compilers: Any = numba_dispatcher
_Library: Any = codegen.JITCodeLibrary
_Codegen: Any = codegen.JITCPUCodegen
_ENVIRONMENT = "_ZN08NumbaEnv"


def tell_nobody() -> None:
    """Nobody listens to the lock of the optimiser, which is told a hundred thousand times that it is taken."""
    callbacks: list[Any] = ffi.lib._lock._cblist
    callbacks.clear()


def give_no_entry(inner: set[Any]) -> None:
    """Kernels that only other kernels call cannot be called from Python."""
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


def optimise_definitions() -> None:
    """Declarations have nothing in them."""

    def optimise(self: Any, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager()
                manager.run(function, builder)

    _Library._optimize_functions = optimise


def make_code_when_called() -> None:
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
