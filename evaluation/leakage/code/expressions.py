"""What an expression gives: names, members, comparisons, comprehensions. The half of the interpreter below follow.py.

Comparisons pick rows or measure, and are no data themselves; a random order of rows stays one through every index.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

from watchkeeper.evaluation.leakage.code import judge
from watchkeeper.evaluation.leakage.code.values import NONE, NOTHING, Value, merged, roles_of

Environment = dict[str, Value]
# Attributes that say how much there is, not what.
_ABOUT = frozenset(("shape", "size", "ndim", "columns", "index", "dtype", "dtypes", "name", "id", "empty"))


class Expressions(ABC):
    """Goes through expressions. Statements and calls are follow.py's."""

    def __init__(self) -> None:
        self.top: Environment = {}
        self.attributes: dict[tuple[str, str], Value] = {}

    @abstractmethod
    def say(self, node: ast.AST, verdicts: Iterator[judge.Verdict]) -> bool:
        """Note what was judged; whether a rule is broken."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, env: Environment, source: ast.expr) -> None:
        """A name, an attribute or a member gets a value."""

    @abstractmethod
    def call(self, node: ast.Call, env: Environment) -> Value:
        """What a call gives, and what is wrong with it."""

    @abstractmethod
    def by_name(self, name: str) -> Value:
        """What a name stands for that nobody has assigned."""

    def value(self, node: ast.expr, env: Environment) -> Value:
        """What an expression gives."""
        match node:
            case ast.Constant():
                return Value(text=node.value) if isinstance(node.value, str) else NOTHING
            case ast.Name():
                return env.get(node.id) or self.top.get(node.id) or self.by_name(node.id)
            case ast.Attribute():
                return self._attribute(node, env)
            case ast.Subscript():
                return self._subscript(node, env)
            case ast.Call():
                return self.call(node, env)
            case ast.Compare():
                return self._compare(node, env)
            case ast.BinOp():
                left, right = self.value(node.left, env), self.value(node.right, env)
                if isinstance(node.op, ast.Sub) and left.is_set:
                    return left
                if isinstance(node.op, ast.Sub | ast.Div | ast.Mult):
                    self.say(node, judge.scaling(left, right))
                return replace(merged((left, right)), is_set=left.is_set and right.is_set)
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return replace(self.value(node.operand, env), select=NONE)
            case ast.Tuple() | ast.List() | ast.Set():
                parts = tuple(self.value(part, env) for part in node.elts)
                return replace(merged([*parts, NOTHING]), parts=parts, is_set=isinstance(node, ast.Set))
            case ast.Dict():
                keys = tuple(
                    k.value if isinstance(k, ast.Constant) and isinstance(k.value, str) else None for k in node.keys
                )
                parts = tuple(_or_named(self.value(v, env), k) for k, v in zip(keys, node.values, strict=True))
                return replace(merged([*parts, NOTHING]), parts=parts, keys=keys)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, env)
            case ast.Lambda():
                return Value(function=node)
            case ast.NamedExpr():
                value = self.value(node.value, env)
                self.assign(node.target, value, env, node.value)
                return value
            case _:
                children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
                return merged([*(self.value(child, env) for child in children), NOTHING])

    def _attribute(self, node: ast.Attribute, env: Environment) -> Value:
        base = self.value(node.value, env)
        if (base.instance, node.attr) in self.attributes:
            return self.attributes[base.instance, node.attr]
        if own := roles_of(node.attr):
            return Value(data=own)
        return NOTHING if node.attr in _ABOUT else replace(base, parts=None, text=None, instance="", function=None)

    def _subscript(self, node: ast.Subscript, env: Environment) -> Value:
        base, index = self.value(node.value, env), self.value(node.slice, env)
        if base.parts is not None:
            if index.text in base.keys and index.text is not None:
                return base.parts[base.keys.index(index.text)]
            place = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(place, int) and not base.keys and -len(base.parts) <= place < len(base.parts):
                return base.parts[place]
        if index.text is not None and (own := roles_of(index.text)):
            return Value(data=own)
        drawn = index.level
        if base.ordered and not isinstance(node.slice, ast.Slice | ast.Tuple):
            return Value(level=base.data | base.level | drawn, unsure=not base.data)
        return replace(
            base, data=base.data | index.select | (index.data if not base.data else NONE), level=base.level | drawn,
            shuffled=base.shuffled or index.shuffled, parts=None, text=None, select=NONE,
            unknown=base.unknown and not index.select and not index.data,
        )  # fmt: skip

    def _compare(self, node: ast.Compare, env: Environment) -> Value:
        sides = [self.value(side, env) for side in (node.left, *node.comparators)]
        select: frozenset[str] = NONE
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
                self.say(node, judge.comparison(left, right))
            elif isinstance(operator, ast.Eq):
                select |= frozenset[str]().union(*(roles_of(s.text) for s in (left, right) if s.text))
            elif isinstance(operator, ast.In):
                select |= right.data
        # how often it holds is a measure of what is compared
        asked = not any(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops)
        about = frozenset[str]().union(*(side.roles | side.metric for side in sides if asked))
        return Value(metric=about, select=select, shuffled=any(side.shuffled for side in sides))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Environment
    ) -> Value:
        inner = dict(env)
        chosen: frozenset[str] = NONE
        for part in node.generators:
            over = self.value(part.iter, inner)
            members = merged([*over.parts, NOTHING]) if over.parts is not None and not over.keys else over
            self.assign(part.target, replace(members, parts=None, ordered=False), inner, part.iter)
            for condition in part.ifs:
                chosen |= self.value(condition, inner).select
        made = self.value(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        return replace(made, data=made.data | chosen, parts=None, text=None, is_set=isinstance(node, ast.SetComp))


def _or_named(value: Value, key: str | None) -> Value:
    return value if value.roles or key is None else replace(value, data=roles_of(key))
