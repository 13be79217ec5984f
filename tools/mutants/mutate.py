"""The mutants of one module: its source, each with one small change that a test should notice.

Changed are comparisons, arithmetic, logic, numbers, conditions and whole statements. Left alone are texts,
annotations, decorators, docstrings and `__all__`: changing them changes what a person reads, not what happens.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

from tools.mutants.changes import Change, Path, at, changes, get


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and the text of that place before and after."""

    line: int
    last: int
    """The changed statement, without the statements inside it, goes from `line` to this one."""
    before: str
    after: str
    under: tuple[str, ...]
    """The heads of the statements around it, the outermost first."""
    function: str
    """The outermost function around it, with its class; empty outside of functions."""
    source: str
    path: Path
    change: Change

    @property
    def tree(self) -> ast.Module:
        """The whole module with this change."""
        tree = ast.parse(self.source)
        self.change(tree, self.path)
        return ast.fix_missing_locations(tree)

    def __str__(self) -> str:
        return f"{self.line}: {self.before}  ->  {self.after}"


def mutants(source: str) -> list[Mutant]:
    """Every mutant, in the order of the source.

    >>> [str(mutant) for mutant in mutants("y = x < 2")]
    ['1: y = x < 2  ->  y = x <= 2', '1: y = x < 2  ->  y = x < 3']
    """
    tree = ast.parse(source)
    heads: dict[ast.AST, str] = {}
    found = []
    for path in _places(tree):
        for change in changes(at(tree, path)):
            outside, inside = _split(tree, path)
            whole = at(tree, outside)
            assert isinstance(whole, ast.stmt)
            before = ast.unparse(whole)
            # a module of this statement alone: a copy of the whole one costs a hundred times as much
            copied = ast.Module([copy.deepcopy(whole)], [])
            change(copied, ("body", 0, *inside))
            after = ast.unparse(copied.body[0])
            if before != after:
                around = [at(tree, outside[:n]) for n in range(1, len(outside)) if isinstance(outside[n], str)]
                under = tuple(heads.setdefault(node, _head(node)) for node in around if isinstance(node, ast.stmt))
                function = _function(around) if "args" not in inside[:1] else ""
                place = whole.lineno, _last_line(whole), *_difference(before, after)
                found.append(Mutant(*place, under, function, source, path, change))
    return found


def _split(tree: ast.Module, path: Path) -> tuple[Path, Path]:
    """The way to the innermost statement at a place, and the rest of the way."""
    n = next(n for n in range(len(path), 0, -1) if isinstance(get(tree, path[:n]), ast.stmt))
    return path[:n], path[n:]


def _head(node: ast.AST) -> str:
    lines = ast.unparse(node).splitlines()
    return next(line for line in lines if not line.startswith("@"))


def _last_line(node: ast.stmt) -> int:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if body:
        first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
        return max(node.lineno, first.lineno - 1)
    return node.end_lineno or node.lineno


def _function(around: list[ast.AST]) -> str:
    names = []
    for node in around:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return ".".join(names)
    return ""


def _places(node: ast.AST, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "bases", "keywords") and not (
            name == "keywords" and isinstance(node, ast.Call)
        ):
            continue
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            continue
        if isinstance(node, ast.Subscript | ast.Raise) and _is_typing(node):
            continue
        for place, child in [((name,), value)] if isinstance(value, ast.AST) else _listed(name, value):
            if isinstance(child, ast.AST) and not isinstance(child, ast.arg | ast.expr_context):
                yield from _places(child, (*path, *place))


def _listed(name: str, value: object) -> list[tuple[Path, object]]:
    return [((name, i), child) for i, child in enumerate(value)] if isinstance(value, list) else []


def _is_typing(node: ast.AST) -> bool:
    """An alias of a type; and what an error says is words."""
    return isinstance(node, ast.Raise) or ast.unparse(node).startswith(("Annotated[", "Callable[", "dict[", "tuple["))


def _difference(before: str, after: str) -> tuple[str, str]:
    """The first line that differs."""
    lines = zip(before.splitlines(), [*after.splitlines(), "pass"], strict=False)
    return next(((a.strip(), b.strip()) for a, b in lines if a != b), (before, after))
