"""Columns that code may not use: banned ones by name, and features that are another one again.

- `banned-feature`: a column that the profile bans is looked up, listed as a feature or renamed. The truth about a
  flight (label, attack_type …) may be looked up as what is to be learned, and must not be listed as a feature.
- `copied-feature`: a column is another one again, as it is or scaled, and both stay.

Called by check.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from watchkeeper.evaluation.leakage.code.values import ROWS, words
from watchkeeper.evaluation.leakage.features import BOOKKEEPING
from watchkeeper.evaluation.shared.features import banned, is_truth

Finding = tuple[int, str, str]
_LOOKUPS = frozenset(("col", "get", "column", "filter", "select"))
# In the condition of a comprehension: the columns that begin so.
_PREFIXES = frozenset(("startswith", "endswith"))
_LISTS = frozenset(
    ("usecols", "columns", "cols", "features", "feature_cols", "feature_columns", "items", "like", "regex")
)
_FEATURES = frozenset(("feature", "features", "columns", "cols", "inputs", "sensors", "usecols", "x"))
_UNUSED = frozenset(
    ("banned", "drop", "dropped", "exclude", "excluded", "ignore", "ignored", "forbidden", "unwanted", "skip",
     "refused", "remove", "removed", "pop", "discard")
)  # fmt: skip
_ANSWERS = frozenset(("y", "label", "labels", "target", "targets", "truth", "gt", "answer"))
_RAW = re.compile("gps_v?[xyz]|imu_[aw][xyz]")
_SAME = frozenset(("copy", "astype", "to_numpy", "to_list", "tolist", "asarray", "array", "float", "Series", "values"))
_TIMES = frozenset(("time", "timestamp", "timestamps", "sec", "secs", "seconds", "us", "ns"))


def column_leaks(tree: ast.Module, profile: str, *, every_lookup: bool) -> Iterator[Finding]:
    """What a file does with columns. `every_lookup`: in a detector no column of the truth may be looked up at all."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        name = _text(node)
        if (
            name is not None
            and not isinstance(parents.get(node), ast.JoinedStr | ast.BinOp)
            and banned([name], profile)
        ):
            if _is_used(node, name, parents, every_lookup):
                yield getattr(node, "lineno", 0), "banned-feature", f"reads column {name!r}"
        elif isinstance(node, ast.Attribute) and _is_column(node, parents) and banned([node.attr], "ahrs"):
            yield node.lineno, "banned-feature", f"reads column {node.attr!r}"
    yield from _copies(tree)


def _text(node: ast.AST) -> str | None:
    """A text as far as it is known: what is put in at run time is an x."""
    match node:
        case ast.Constant(value=str(text)):
            # a pattern, too
            return text.strip("^$.*()") or text
        case ast.JoinedStr():
            return "".join(_text(part) or "x" for part in node.values)
        case ast.BinOp(op=ast.Add()):
            left, right = _text(node.left), _text(node.right)
            return None if left is None and right is None else (left or "x") + (right or "x")
    return None


def _is_used(node: ast.AST, name: str, parents: dict[ast.AST, ast.AST], every_lookup: bool) -> bool:
    truth = is_truth(name) and not every_lookup
    up, below = parents.get(node), node
    listed: ast.AST | None = None
    while isinstance(up, ast.List | ast.Tuple | ast.Set | ast.Starred):
        listed, below, up = up, up, parents.get(up)
    if listed is not None and _next_to_raw(listed):
        return not _unused(up, parents)
    if isinstance(up, ast.Subscript) and up.slice is below:
        return not (truth and listed is None) and not _is_answer(up, name, parents) and not _unused(up, parents)
    if isinstance(up, ast.Dict):
        call = parents.get(parents.get(up, up))
        return isinstance(call, ast.Call) and _called(call) == "rename" and below in up.keys
    if isinstance(up, ast.keyword):
        return up.arg in _LISTS and not _unused(up, parents) and not (truth and listed is None)
    if isinstance(up, ast.Call):
        if _called(up) in _PREFIXES:
            return isinstance(parents.get(up), ast.comprehension) and not truth
        return _called(up) in _LOOKUPS and not truth
    if isinstance(up, ast.Assign | ast.AnnAssign) and listed is not None:
        return bool(_target_words(up) & _FEATURES) and not _unused(up, parents)
    return False


def _next_to_raw(listed: ast.AST) -> bool:
    return any(isinstance(e, ast.Constant) and _RAW.fullmatch(str(e.value)) for e in getattr(listed, "elts", ()))


def _unused(node: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether this is in a call that drops columns, in a del, or gets a name that says so."""
    while node is not None and not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
        if isinstance(node, ast.Delete) or (isinstance(node, ast.Call) and _UNUSED & set(words(_called(node)))):
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign):
            return bool(_target_words(node) & _UNUSED)
        node = parents.get(node)
    return False


def _is_answer(node: ast.AST | None, name: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a column of the truth becomes what is to be learned."""
    while node is not None and "truth" in name.lower():
        if isinstance(node, ast.Assign | ast.AnnAssign):
            return bool(_target_words(node) & _ANSWERS)
        node = parents.get(node)
    return False


def _target_words(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {word for target in targets for word in words(ast.unparse(target))}


def _is_column(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> bool:
    called = isinstance(up := parents.get(node), ast.Call) and up.func is node
    return (
        not called
        and isinstance(node.value, ast.Name)
        and bool(ROWS & set(words(node.value.id)))
        and not is_truth(node.attr)
    )


def _copies(tree: ast.Module) -> Iterator[Finding]:
    dropped = {
        part.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Delete) or (isinstance(node, ast.Call) and _UNUSED & set(words(_called(node))))
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    for node in ast.walk(tree):
        made: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and (key := _column(node.targets[0])):
            made.append((key, node.value))
        elif isinstance(node, ast.Call) and _called(node) == "assign":
            made += [(k.arg, k.value) for k in node.keywords if k.arg]
        for key, value in made:
            source = _scaled(value.body if isinstance(value, ast.Lambda) else value)
            if (
                source
                and source != key
                and source not in dropped
                and not _keeps_books(key)
                and not _keeps_books(source)
            ):
                yield value.lineno, "copied-feature", f"column {key!r} is {source!r} again"


def _keeps_books(name: str) -> bool:
    """Where a row comes from, or what is to be learned: no feature."""
    return (
        name.lower() in BOOKKEEPING
        or bool(_TIMES & set(words(name)))
        or bool(banned([name], "ahrs") and is_truth(name))
    )


def _column(node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value if isinstance(node.value, ast.Name) else None
    return None


def _scaled(node: ast.expr) -> str | None:
    """The column of which this is a multiple, with or without an offset."""
    match node:
        case ast.Subscript():
            return _column(node)
        case ast.UnaryOp(op=ast.USub()):
            return _scaled(node.operand)
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.Add() | ast.Sub()):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(other, ast.Constant) and not isinstance(other.value, str):
                    return _scaled(one)
        case ast.Attribute(attr=attr) if attr in _SAME:
            return _scaled(node.value)
        case ast.Call() if _called(node) in _SAME:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            return (_scaled(owner) if owner is not None else None) or (_scaled(node.args[0]) if node.args else None)
    return None


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
