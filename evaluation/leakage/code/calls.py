"""What functions of other modules do with what they are given: draw a number, measure, sort, pick, shuffle, attack.

Everything that is not known hands on what it is given. Asked by follow.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from watchkeeper.evaluation.leakage.code.judge import FITS, INJECTS, QUANTILES
from watchkeeper.evaluation.leakage.code.values import (
    ATTACKED,
    FLIGHTS,
    NONE,
    NOTHING,
    Value,
    merged,
    named,
    roles_of,
    speaks_of,
    words,
)

DYNAMIC = frozenset(("exec", "eval", "compile", "__import__"))
_DRAWS = QUANTILES | {
    "max", "min", "amax", "amin", "nanmax", "nanmin", "mean", "nanmean", "median", "nanmedian", "std", "nanstd", "var",
    "average", "mode",
}  # fmt: skip
_PICKS = frozenset(("argmax", "argmin", "nanargmax", "nanargmin", "argsort", "argpartition", "idxmax", "idxmin"))
_SORTS = frozenset(("sort", "sorted", "sort_values", "partition", "nlargest", "nsmallest", "msort"))
_CURVES = frozenset(("roc_curve", "precision_recall_curve", "det_curve"))
_MEASURES = frozenset(
    ("auc", "f1", "recall", "precision", "accuracy", "confusion_matrix", "classification_report", "auroc", "roc_auc",
     "mean_squared_error", "mean_absolute_error", "log_loss", "evaluate", "trapz", "trapezoid")
)  # fmt: skip
_SAYS_NOTHING = frozenset(
    ("len", "range", "print", "isinstance", "type", "str", "repr", "hasattr", "id", "issubclass", "info", "debug",
     "warning", "linspace", "arange", "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "nunique",
     "count_nonzero")
)  # fmt: skip
_RANDOM = frozenset(("permutation", "rand", "random", "random_sample", "permuted", "randperm"))
_LESS = frozenset(("drop", "exclude", "without", "remove", "except", "minus", "difference", "setdiff1d", "discard"))
_LOADS = frozenset(("load", "read", "open", "get", "fetch", "loadtxt", "genfromtxt", "csv", "parquet"))
KEYED_CHOICE = frozenset(("max", "min", "sorted", "minimize", "minimize_scalar", "nlargest", "nsmallest"))


def result_of(name: str, node: ast.Call, on: Value, given: Sequence[Value], by_name: dict[str, Value]) -> Value:
    """What a call gives."""
    said, seen = set(words(name)), merged([on, *given, *by_name.values(), NOTHING])
    seen = replace(seen, parts=None, text=None, select=NONE)
    if name in _SAYS_NOTHING:
        return NOTHING
    if name in FITS and name not in ("fit_transform", "fit_predict", "fit_resample"):
        return replace(on, data=NONE)
    if name in _CURVES:
        return Value(parts=(Value(metric=seen.roles), Value(metric=seen.roles), Value(level=seen.roles)))
    # score(x, y) measures; score(x) is what a detector says of x
    if name in _MEASURES or name.endswith("_score") or (name == "score" and len(given) > 1):
        return Value(metric=seen.roles | seen.metric)
    if name in _DRAWS:
        if not seen.roles and seen.metric:
            return Value(metric=seen.metric)
        return Value(level=seen.roles, unsure=not seen.roles and _of_rows(name, node))
    if name in _PICKS:
        return Value(level=seen.roles | seen.metric)
    if name in _SORTS:
        return replace(seen, ordered=True)
    if name in INJECTS or said & {"inject", "spoof", "tamper"}:
        return replace(seen, data=seen.data | {ATTACKED})
    if name in ("set", "frozenset"):
        return replace(seen, is_set=True)
    if name == "isin":
        return Value(select=seen.data)
    if name in _RANDOM:
        if not node.args and not node.keywords:
            return NOTHING  # one number
        return Value(shuffled=not speaks_of([*node.args, *_owner(node)], FLIGHTS))
    if said & _LESS:
        return replace(
            on if isinstance(node.func, ast.Attribute) and on != NOTHING else (given or [NOTHING])[0], parts=None
        )
    return _handed_on(name, said, on, given, by_name, seen)


def _handed_on(
    name: str, said: set[str], on: Value, given: Sequence[Value], by_name: dict[str, Value], seen: Value
) -> Value:
    if name == "items" and on.parts is not None and on.keys:
        return Value(parts=tuple(Value(parts=(Value(text=k), v)) for k, v in zip(on.keys, on.parts, strict=False)))
    if name == "values" and on.parts is not None:
        return Value(parts=on.parts)
    if name == "zip":
        rows = [v.parts for v in given]
        if rows and all(row is not None for row in rows):
            return Value(parts=tuple(Value(parts=tuple(row)) for row in zip(*rows, strict=False)))
        return (
            Value(parts=tuple(replace(v, parts=None) for v in given)) if len(given) == 1 else replace(seen, parts=None)
        )
    if name == "get" and given and given[0].text is not None:
        key = given[0].text
        if on.parts is not None and key in on.keys:
            return on.parts[on.keys.index(key)]
        return Value(data=roles_of(key) or seen.data)
    if said & _LOADS:
        texts = [v.text for v in (*given, *by_name.values()) if v.text]
        return replace(seen, data=seen.data | frozenset[str]().union(*map(roles_of, texts)))
    return seen


def _of_rows(name: str, node: ast.Call) -> bool:
    """Whether a number is drawn from a column of something: max(a, 1) is arithmetic, quantile(x, 0.9) is not."""
    if name in QUANTILES:
        return True
    data = [*node.args, *_owner(node)]
    return speaks_of(data, frozenset(("score", "scores", "residuals", "errors", "distances", "losses")))


def _owner(node: ast.Call) -> list[ast.expr]:
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def bound(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, given: Sequence[Value], by_name: dict[str, Value]
) -> dict[str, Value]:
    """The parameters of a function with what a call gives them; where it says nothing, with what their names say."""
    arguments = function.args
    places = [*arguments.posonlyargs, *arguments.args]
    env: dict[str, Value] = {}
    for place, value in zip(places, given, strict=False):
        env[place.arg] = value
    if arguments.vararg is not None:
        env[arguments.vararg.arg] = merged([*given[len(places) :], NOTHING])
    for place in (*places, *arguments.kwonlyargs):
        env[place.arg] = by_name.get(place.arg, env.get(place.arg, NOTHING))
        if env[place.arg] == NOTHING:
            env[place.arg] = named(place.arg)
    if arguments.kwarg is not None:
        env[arguments.kwarg.arg] = merged([*by_name.values(), NOTHING])
    return env
