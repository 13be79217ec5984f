"""Types and statements: how Numba gets from bytecode to a typed function, without what it does more than once.

Called by hurry(), in the process that compiles. Each function changes one habit of Numba; AttributeError: this version
of Numba does it in another way, and goes on doing so.
"""

from __future__ import annotations

import sys
from functools import cache
from types import BuiltinFunctionType
from typing import Any

from numba.core import dispatcher as numba_dispatcher
from numba.core import errors, ir, postproc, transforms, utils
from numba.core.base import BaseContext
from numba.core.errors import TypingError
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import TargetConfig
from numba.core.types import unliteral
from numba.core.types.functions import BaseFunction
from numba.core.types.npytypes import Record
from numba.core.typing.context import BaseContext as TypingContext

# As Numba has them, without the types that it gives them.
_Functions: Any = BaseFunction
_Settings: Any = TargetConfig
_Compilers: Any = numba_dispatcher
_Instruction: Any = ir.Inst
_Record: Any = Record
_References: Any = NRTContext
_Target: Any = BaseContext
_Typing: Any = TypingContext
_Statements: Any = postproc.PostProcessor
_Errors: Any = errors
_Utilities: Any = utils
_without_number: Any = unliteral


def remember_types() -> None:
    """Look the type of an operation up once for the same arguments."""
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


def remember_records() -> None:
    """Make the words for a record once."""
    describe = _Record.__repr__

    def words(self: Any) -> str:
        found: str | None = self.__dict__.get("_watchkeeper_words")
        if found is None:
            found = self.__dict__["_watchkeeper_words"] = describe(self)
        return found

    _Record.__repr__ = words


def forget_numbers() -> None:
    """Compile one function for every number that it is called with."""
    template_of = _Compilers.Dispatcher.get_call_template

    def get_call_template(self: Any, args: Any, kws: Any) -> Any:
        try:
            named = {name: _without_number(arg) for name, arg in kws.items()}
            return template_of(self, tuple(map(_without_number, args)), named)
        except TypingError:
            # a kernel that needs the number, as to choose from a tuple
            return template_of(self, args, kws)

    _Compilers.Dispatcher.get_call_template = get_call_template


def compare_what_was_set() -> None:
    """Compare settings by what was set."""
    compare = _Settings.__eq__

    def equal(self: Any, other: object) -> Any:
        if isinstance(other, _Settings) and self._values == other._values:
            return True
        return compare(self, other)

    _Settings.__eq__, _Settings.__hash__ = equal, lambda self: hash(type(self))


def list_variables() -> None:
    """List the variables of a statement without a call for each of its parts."""
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


def count_references() -> None:
    """Take apart only what has references."""
    take_apart = _References.get_meminfos
    known: dict[Any, bool] = {}

    def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> Any:
        if kind not in known:
            known[kind] = self._context.data_model_manager[kind].contains_nrt_meminfo()
        return take_apart(self, builder, kind, value) if known[kind] else []

    _References.get_meminfos = get_meminfos


def say_nothing_of_errors() -> None:
    """Most errors of Numba are how it finds out what does not fit: their words are made and thrown away."""
    silence, context = _Silence(), _Errors.new_error_context

    def no_context(*_: Any, **__: Any) -> _Silence:
        return silence

    for name, module in list(sys.modules.items()):
        if name.startswith("numba.") and vars(module).get("new_error_context") is context:
            vars(module)["new_error_context"] = no_context
    _Errors.HighlightColorScheme._markup = lambda _self, words, _color=None, _style=None: words


class _Silence:
    def __enter__(self) -> None:
        """Nothing is said about where an error was."""

    def __exit__(self, *_: object) -> None:
        """It goes on as it is."""


def find_lifetimes_when_asked() -> None:
    """After each step Numba works out where variables live, for generators and for whoever asks: mostly nobody."""
    in_full = _Statements.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = self.func_ir
        if function.is_generator:
            in_full(self, emit_dels, extend_lifetimes)
            return
        function.blocks = transforms.canonicalize_cfg(function.blocks)  # type: ignore[no-untyped-call]
        function.variable_lifetime = postproc.VariableLifetime(function.blocks)  # type: ignore[no-untyped-call]
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    _Statements.run = run


def register_what_is_new() -> None:
    """Registries are looked through before each function that is compiled; here only when they have grown."""
    look_through = _Target.refresh

    def registered(context: Any) -> int:
        tables = context._registries.items()
        return sum(len(getattr(registry, name)) for registry, loader in tables for name in loader.registry_items)

    def refresh(self: Any) -> None:
        if self.__dict__.get("_watchkeeper_registered") != (found := _found(self)):
            look_through(self)
            found = _found(self)
        self._watchkeeper_registered = found

    def _found(self: Any) -> tuple[int, int, int]:
        return registered(self), registered(self.typing_context), len(sys.modules)

    _Target.refresh = refresh


def know_operators() -> None:
    """An operator is no value with a type: found where functions are, without an error first."""
    resolve = _Typing.resolve_value_type

    def resolve_value_type(self: Any, value: Any) -> Any:
        found = self._get_global_type(value) if type(value) is BuiltinFunctionType else None
        return resolve(self, value) if found is None else found

    _Typing.resolve_value_type = resolve_value_type


def remember_signatures() -> None:
    """Those of functions of Python."""
    _Utilities.pysignature = cache(_Utilities.pysignature)
