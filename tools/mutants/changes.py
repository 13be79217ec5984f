"""What can be changed about one node of a syntax tree, and the way to a node in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

# A place is the way to it from the root: names of fields and, in lists, positions.
Path = tuple[str | int, ...]
Change = Callable[[ast.Module, Path], None]

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def get(tree: ast.AST, path: Path) -> object:
    """The node or list at a place."""
    found: object = tree
    for step in path:
        found = found[step] if isinstance(step, int) else getattr(found, step)  # type: ignore[index]
    return found


def at(tree: ast.AST, path: Path) -> ast.AST:
    """The node at a place."""
    found = get(tree, path)
    assert isinstance(found, ast.AST)
    return found


def _put(tree: ast.Module, path: Path, new: ast.AST) -> None:
    holder = get(tree, path[:-1])
    if isinstance(path[-1], int):
        holder[path[-1]] = ast.copy_location(new, holder[path[-1]])  # type: ignore[index]
    else:
        setattr(holder, path[-1], ast.copy_location(new, getattr(holder, path[-1])))


def changes(node: ast.AST) -> Iterator[Change]:
    """What can be changed about one node."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield _set_op(i, COMPARED[type(op)])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED and not _of_text(node):
        yield _set("op", COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield lambda tree, path: _put(tree, path, at(tree, (*path, "operand")))
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
    return lambda tree, path: setattr(at(tree, path), field, value)


def _set_op(i: int, op: type[ast.cmpop]) -> Change:
    def change(tree: ast.Module, path: Path) -> None:
        node = at(tree, path)
        assert isinstance(node, ast.Compare)
        node.ops[i] = op()

    return change


def _negate(tree: ast.Module, path: Path) -> None:
    test = at(tree, path)
    assert isinstance(test, ast.expr)
    _put(tree, path, ast.UnaryOp(ast.Not(), test))


def _of_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Texts are added and formatted, too; and `A | B` may be a type."""
    return any(isinstance(part, ast.JoinedStr) or _is_words(part) for part in ast.walk(node))


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and (isinstance(node.value, str) or node.value is None)
