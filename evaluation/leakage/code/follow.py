"""Follows values through one file: assignments, loops, comprehensions, helper functions, methods. Nothing is run.

A small interpreter over the syntax tree: statements and calls here, expressions in expressions.py. A function of the
file is gone through again for each call, with what that call gives it; one that nobody calls is gone through with what
its parameters' names say. Functions of other modules hand on what they are given, unless calls.py knows better. Called
by check.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from watchkeeper.evaluation.leakage.code import judge
from watchkeeper.evaluation.leakage.code.calls import DYNAMIC, KEYED_CHOICE, bound, result_of
from watchkeeper.evaluation.leakage.code.expressions import Environment, Expressions
from watchkeeper.evaluation.leakage.code.values import HELD_OUT, NONE, NOTHING, Value, is_limit, merged, named, roles_of

Finding = tuple[int, str, str]
"""Line, rule and what is wrong."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# Calls within calls, and functions gone through in one file; what is beyond is listed as not followed.
DEPTH, ENTERED = 8, 3000


def follow(tree: ast.Module) -> list[Finding]:
    """Everything that judge.py has to say about a file."""
    walker = _Walker(tree)
    walker.body(tree.body, walker.top)
    walker.never_called(tree)
    return walker.found


class _Walker(Expressions):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Finding] = []
        super().__init__()
        self._functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._methods = {
            c.name: {m.name: m for m in c.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)}
            for c in ast.walk(tree)
            if isinstance(c, ast.ClassDef)
        }
        self._active: dict[ast.AST, frozenset[str]] = {}
        self._entered = 0
        self._called: set[ast.AST] = set()
        self._guards: list[frozenset[str]] = []
        self._returned: list[list[Value]] = []

    def say(self, node: ast.AST, verdicts: Iterator[judge.Verdict]) -> bool:
        """Note what was judged; whether a rule is broken."""
        said = [(getattr(node, "lineno", 0), rule, what) for rule, what in verdicts]
        self.found += [finding for finding in said if finding not in self.found]
        return any(rule != judge.NOT_FOLLOWED for _, rule, _ in said)

    # -- statements --------------------------------------------------------------------------------------------------

    def never_called(self, tree: ast.Module) -> None:
        """The functions that no line of the file has called: first those that no line names, which call the others."""
        calls = {_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        owners = {method: owner for owner, methods in self._methods.items() for method in methods.values()}
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in sorted(functions, key=lambda f: f.name in calls):
            if function not in self._called:
                self._enter(function, [Value(instance=owners[function])] if function in owners else [], {})

    def body(self, statements: Sequence[ast.stmt], env: Environment) -> None:
        """One after the other."""
        for statement in statements:
            self._statement(statement, env)

    def _statement(self, node: ast.stmt, env: Environment) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                env[node.name] = Value(function=node)
            case ast.ClassDef():
                self.body([s for s in node.body if not isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)], env)
            case ast.Assign():
                value = self.value(node.value, env)
                for target in node.targets:
                    self.assign(target, value, env, node.value)
            case ast.AnnAssign() if node.value is not None:
                self.assign(node.target, self.value(node.value, env), env, node.value)
            case ast.AugAssign():
                value = merged((self.value(node.target, env), self.value(node.value, env)))
                self.assign(node.target, value, env, node.value)
            case ast.For() | ast.AsyncFor():
                self._loop(node, env)
            case ast.If():
                self._branch(node, env)
            case ast.While():
                self._guarded(node.test, [*node.body, *node.orelse], env)
                self._guarded(node.test, [*node.body, *node.orelse], env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.value(item.context_expr, env)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, value, env, item.context_expr)
                self.body(node.body, env)
            case ast.Try() | ast.TryStar():
                for block in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
                    self.body(block, env)
            case ast.Match():
                self.value(node.subject, env)
                for case in node.cases:
                    self.body(case.body, env)
            case ast.Return():
                if node.value is not None and self._returned:
                    self._returned[-1].append(self.value(node.value, env))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, env)

    def _loop(self, node: ast.For | ast.AsyncFor, env: Environment) -> None:
        over = self.value(node.iter, env)
        # a literal's members one by one, anything else twice: what a round leaves behind reaches the next
        rounds = over.parts if over.parts is not None and len(over.parts) <= 8 else (replace(over, parts=None),) * 2
        for member in rounds:
            self.assign(node.target, member, env, node.iter)
            self.body(node.body, env)
        self.body(node.orelse, env)

    def _branch(self, node: ast.If, env: Environment) -> None:
        truth = self._known(node.test, env)
        if truth is not False:
            self._guarded(node.test, node.body, env)
        if truth is not True:
            self._guarded(node.test, node.orelse, env)

    def _guarded(self, condition: ast.expr, statements: Sequence[ast.stmt], env: Environment) -> None:
        """What is assigned here is chosen by the condition."""
        seen = self.value(condition, env)
        self._guards.append(seen.metric | seen.level)
        self.body(statements, env)
        self._guards.pop()

    def _known(self, condition: ast.expr, env: Environment) -> bool | None:
        """Whether a comparison of two known texts holds."""
        if (
            isinstance(condition, ast.Compare)
            and len(condition.ops) == 1
            and isinstance(condition.ops[0], ast.Eq | ast.NotEq)
        ):
            left, right = self.value(condition.left, env).text, self.value(condition.comparators[0], env).text
            if left is not None and right is not None:
                return (left == right) == isinstance(condition.ops[0], ast.Eq)
        return None

    def assign(self, target: ast.expr, value: Value, env: Environment, source: ast.expr) -> None:
        """A name, an attribute or a member gets a value."""
        if isinstance(target, ast.Tuple | ast.List):
            for i, part in enumerate(target.elts):
                if value.parts is not None and i < len(value.parts):
                    self.assign(part, value.parts[i], env, source)
                else:
                    # a function that separates: where the name says which part it is, the name is right
                    own = roles_of(ast.unparse(part))
                    self.assign(part, replace(value, data=NONE) if own else replace(value, parts=None), env, source)
            return
        if isinstance(target, ast.Starred):
            self.assign(target.value, value, env, source)
            return
        name = target.slice.value if _is_key(target) else ast.unparse(target)  # type: ignore[attr-defined]
        guard = frozenset[str]().union(*self._guards)
        value = replace(value, level=value.level | guard) if guard else value
        if is_limit(name) and self.say(target, judge.limit(name, value)):
            value = NOTHING
        own = roles_of(name)
        if self.say(target, judge.assignment(name, own, value)):
            value = replace(value, shuffled=False)
        value = replace(value, data=value.data | own, unknown=value.unknown and not own)
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value, env)
            key = (base.instance, target.attr)
            self.attributes[key] = merged((self.attributes.get(key, NOTHING), value)) if base.instance else value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            env[target.value.id] = self._with_member(env.get(target.value.id, NOTHING), target, value)

    def _with_member(self, whole: Value, target: ast.Subscript, value: Value) -> Value:
        if whole.parts is not None and _is_key(target):
            kept = [(k, p) for k, p in zip(whole.keys, whole.parts, strict=False) if k != target.slice.value]  # type: ignore[attr-defined]
            kept.append((target.slice.value, value))  # type: ignore[attr-defined]
            return Value(parts=tuple(p for _, p in kept), keys=tuple(k for k, _ in kept))
        return replace(merged((replace(whole, parts=None), value)), parts=None, text=None)

    def by_name(self, name: str) -> Value:
        """What a name stands for that nobody has assigned."""
        if name in self._functions:
            return Value(function=self._functions[name])
        return named(name)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, env: Environment) -> Value:
        """What a call gives, and what is wrong with it."""
        on = self.value(node.func.value, env) if isinstance(node.func, ast.Attribute) else NOTHING
        given = [self.value(argument, env) for argument in node.args]
        by_name = {k.arg or "**": self.value(k.value, env) for k in node.keywords}
        name = _called(node)
        if name in DYNAMIC and isinstance(node.func, ast.Name):
            self.say(node, iter([(judge.NOT_FOLLOWED, f"{name}() makes code at run time")]))
        for key, value in by_name.items():
            if is_limit(key):
                self.say(node, judge.limit(key, value))
        function = self._function(node, on, env)
        # a function of this file is judged by what it does, unless its name leaves no doubt
        judged = function is None or name in judge.BY_NAME
        said = judged and self.say(node, judge.call(name, node, on, given, by_name))
        if function is not None:
            owner = [on] if on.instance else []
            if name in self._methods and isinstance(node.func, ast.Name):
                self._enter(function, [Value(instance=name), *given], by_name)
                return Value(instance=name)
            return self._enter(function, [*owner, *given], by_name)
        if name in self._methods:
            return Value(instance=name)
        # a function that is handed over is called with the rest: map, apply, max(key=…)
        rest = [value for value in (on, *given, *by_name.values()) if value.function is None]
        chosen = NOTHING
        for value in (*given, *by_name.values()):
            if value.function is not None:
                chosen = merged((chosen, self._enter(value.function, [replace(v, parts=None) for v in rest], {})))
        if said:
            return NOTHING  # it has been said; what comes of it need not be said again
        if chosen == NOTHING:
            return result_of(name, node, on, given, by_name)
        if name in KEYED_CHOICE:
            return Value(level=chosen.roles | chosen.metric)
        return merged((result_of(name, node, on, given, by_name), chosen))

    def _function(self, node: ast.Call, on: Value, env: Environment) -> Function | None:
        """The function of this file that is called."""
        if isinstance(node.func, ast.Name):
            if (made := self._methods.get(node.func.id)) is not None:
                return made.get("__init__")
            known = self.value(node.func, env).function
            return known if isinstance(known, Function) else None
        if isinstance(node.func, ast.Attribute) and on.instance:
            return self._methods.get(on.instance, {}).get(node.func.attr)
        return None

    def _enter(self, function: ast.AST, given: Sequence[Value], by_name: dict[str, Value]) -> Value:
        """Go through a function with these arguments; what it returns."""
        assert isinstance(function, Function)
        self._called.add(function)
        seen = replace(merged([*given, *by_name.values(), NOTHING]), parts=None)
        if function in self._active or len(self._active) >= DEPTH or self._entered >= ENTERED:
            # a function that calls itself has been gone through with what it was given at first
            if new := (seen.roles & HELD_OUT) - self._active.get(function, NONE):
                what = f"{', '.join(sorted(new))} data goes too deep into functions that call each other"
                self.say(function, iter([(judge.NOT_FOLLOWED, what)]))
            return seen
        self._entered += 1
        env = dict(self.top) | bound(function, given, by_name)
        for key, value in env.items():
            if is_limit(key) and key not in self.top and value.roles:
                self.say(function, judge.limit(key, value))
        self._active[function] = seen.roles
        guards, self._guards = self._guards, []
        if isinstance(function, ast.Lambda):
            result = self.value(function.body, env)
        else:
            self._returned.append([])
            self.body(function.body, env)
            returned = self._returned.pop()
            result = merged(returned) if returned else NOTHING
            if is_limit(function.name) and self.say(function, judge.limit(f"{function.name}()", result)):
                result = NOTHING
        self._guards = guards
        del self._active[function]
        return result


def _is_key(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str)
    )


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
