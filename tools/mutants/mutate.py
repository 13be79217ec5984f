"""The mutants of one module: its source, each with one small change that a test should notice.

Changed are comparisons, arithmetic, logic, numbers, conditions and whole statements. Left alone are texts,
annotations, decorators, docstrings and `__all__`: changing them changes what a person reads, not what happens.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, the text of that place before and after, and the whole module with it."""

    line: int
    before: str
    after: str
    tree: ast.Module

    def __str__(self) -> str:
        return f"{self.line}: {self.before}  ->  {self.after}"


def mutants(source: str) -> list[Mutant]:
    """Every mutant, in the order of the source.

    >>> [str(mutant) for mutant in mutants("y = x < 2")]
    ['1: y = x < 2  ->  y = x <= 2', '1: y = x < 2  ->  y = x < 3']
    """
    tree = ast.parse(source)
    found = []
    for path in _places(tree):
        for change in _changes(_at(tree, path)):
            mutated = copy.deepcopy(tree)
            whole = _statement(mutated, path)
            before = ast.unparse(whole)
            change(mutated, path)
            whole = _statement(mutated, path)
            after = ast.unparse(whole)
            if before != after:
                found.append(Mutant(whole.lineno, *_heads(before, after), ast.fix_missing_locations(mutated)))
    return found


# A place is the way to it from the root: names of fields and, in lists, positions.
Path = tuple[str | int, ...]
Change = Callable[[ast.Module, Path], None]


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


def _at(tree: ast.AST, path: Path) -> ast.AST:
    found: object = tree
    for step in path:
        found = found[step] if isinstance(step, int) else getattr(found, step)  # type: ignore[index]
    assert isinstance(found, ast.AST)
    return found


def _statement(tree: ast.Module, path: Path) -> ast.stmt:
    """The innermost statement at a place."""
    nodes = [_at(tree, path[:n]) for n in range(1, len(path) + 1) if n == len(path) or isinstance(path[n], str)]
    return next(node for node in reversed(nodes) if isinstance(node, ast.stmt))


def _put(tree: ast.Module, path: Path, new: ast.AST) -> None:
    holder = tree if len(path) == 1 else _container(tree, path)
    if isinstance(path[-1], int):
        holder[path[-1]] = ast.copy_location(new, holder[path[-1]])  # type: ignore[index]
    else:
        setattr(holder, path[-1], ast.copy_location(new, getattr(holder, path[-1])))


def _container(tree: ast.Module, path: Path) -> object:
    found: object = tree
    for step in path[:-1]:
        found = found[step] if isinstance(step, int) else getattr(found, step)  # type: ignore[index]
    return found


def _changes(node: ast.AST) -> Iterator[Change]:
    """What can be changed about one node."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield _set_op(i, COMPARED[type(op)])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED and not _of_text(node):
        yield _set("op", COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield lambda tree, path: _put(tree, path, _at(tree, (*path, "operand")))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _set("value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield _set("value", node.value + 1 if isinstance(node.value, int) else node.value * 1.5 or 1.0)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield lambda tree, path: _negate(tree, (*path, "test"))
    if _has_effect(node):
        yield lambda tree, path: _put(tree, path, ast.Pass())
    if isinstance(node, ast.Break):
        yield lambda tree, path: _put(tree, path, ast.Continue())
    elif isinstance(node, ast.Continue):
        yield lambda tree, path: _put(tree, path, ast.Break())


def _has_effect(node: ast.AST) -> bool:
    """Whether a statement can be left out: a name that is never given a value fails at once, which proves nothing."""
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete)


def _set(field: str, value: object) -> Change:
    return lambda tree, path: setattr(_at(tree, path), field, value)


def _set_op(i: int, op: type[ast.cmpop]) -> Change:
    def change(tree: ast.Module, path: Path) -> None:
        node = _at(tree, path)
        assert isinstance(node, ast.Compare)
        node.ops[i] = op()

    return change


def _negate(tree: ast.Module, path: Path) -> None:
    test = _at(tree, path)
    assert isinstance(test, ast.expr)
    _put(tree, path, ast.UnaryOp(ast.Not(), test))


def _of_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Texts are added and formatted, too; and `A | B` may be a type."""
    return any(isinstance(part, ast.JoinedStr) or _is_words(part) for part in ast.walk(node))


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and (isinstance(node.value, str) or node.value is None)


def _heads(before: str, after: str) -> tuple[str, str]:
    """The first line that differs."""
    lines = zip(before.splitlines(), [*after.splitlines(), "pass"], strict=False)
    return next(((a.strip(), b.strip()) for a, b in lines if a != b), (before, after))
