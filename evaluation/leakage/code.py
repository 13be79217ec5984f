"""Code leakage: Python sources read as a syntax tree, for what the protocol forbids. Nothing is run.

- `fit-on-test`: something is fitted, learned or calibrated, or a quantile is taken, from what is named after test or
  attacked data, or was assigned from such a name in the same function.
- `fit-transform`: fit_transform on anything that is not named after training data.
- `sample-split`: rows are split or shuffled without regard to flights.
- `attack-in-training`: an attack is injected into what is named after training, validation or calibration data.
- `banned-feature`: a column that the profile bans is looked up by name (in detectors only).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.evaluation.shared.features import banned
from watchkeeper.streams.logs.base import LogError

FITS = frozenset(
    ("fit", "partial_fit", "fit_predict", "calibrate", "learn", "learn_one", "learn_many", "threshold", "quantile",
     "nanquantile", "percentile", "nanpercentile")
)  # fmt: skip
SPLITS = frozenset(
    ("train_test_split", "KFold", "StratifiedKFold", "ShuffleSplit", "StratifiedShuffleSplit", "shuffle")
)
INJECTS = frozenset(("inject", "attack", "attacked"))
LOOKUPS = frozenset(("col", "get", "column"))
TEST = frozenset(("test", "tested", "tests", "heldout", "holdout", "attacked", "spoofed"))
TRAIN = frozenset(("train", "training", "validation", "val", "calibrate", "calibration", "calibrating"))


@dataclass(frozen=True, slots=True)
class Leak:
    """One line that breaks a rule."""

    path: Path
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


def code_leaks(paths: Iterable[Path], profile: str = "strict") -> list[Leak]:
    """All leaks in Python files, and in those of folders."""
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    return [leak for file in files for leak in _file(file, profile)]


def _file(path: Path, profile: str) -> Iterator[Leak]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise LogError(path, f"not Python: {error}") from error
    scopes: list[ast.AST] = [
        tree,
        *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)),
    ]
    seen: set[tuple[int, str]] = set()
    for scope in scopes:
        tests, trains = _named_after(scope, TEST), _named_after(scope, TRAIN)
        for node in _own(scope):
            for rule, what in _judge(node, tests, trains, path, profile):
                line = getattr(node, "lineno", 0)
                if (line, rule) not in seen:
                    seen.add((line, rule))
                    yield Leak(path, line, rule, what)


def _judge(node: ast.AST, tests: set[str], trains: set[str], path: Path, profile: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Subscript) and "detectors" in path.parts:
        yield from _lookup(node.slice, profile)
    if not isinstance(node, ast.Call):
        return
    name = _called(node)
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    names = {word for value in given for word in _names(value)}
    # what a method is called on counts where it is data (scores_test.quantile), not where it is a model
    on = set(_names(node.func.value)) if isinstance(node.func, ast.Attribute) and not given else set()
    if name in FITS and (bad := sorted((names | on) & tests)):
        yield "fit-on-test", f"{name}() sees {', '.join(bad)}"
    if name == "fit_transform" and not (names and names <= trains):
        yield "fit-transform", f"fit_transform({', '.join(sorted(names))}): fit on training flights, then transform"
    if name in SPLITS:
        yield "sample-split", f"{name}() separates rows, not flights"
    if name in INJECTS and (bad := sorted(names & trains)):
        yield "attack-in-training", f"{name}() is given {', '.join(bad)}"
    if name in LOOKUPS and "detectors" in path.parts:
        for value in given:
            yield from _lookup(value, profile)


def _lookup(value: ast.expr, profile: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and banned([value.value], profile):
        yield "banned-feature", f"reads column {value.value!r}"


def _named_after(scope: ast.AST, words: frozenset[str]) -> set[str]:
    """Names in a scope that say so themselves, or were assigned from one that does, however many steps away."""
    found = {name for node in _own(scope) for name in _name(node) if words & set(_words(name))}
    while True:
        more = set(found)
        for node in _own(scope):
            for target, value in _assigned(node):
                if set(_names(value)) & found:
                    more |= set(_names(target))
        if more == found:
            return found
        found = more


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions inside it."""
    stack = [scope]
    while stack:
        node = stack.pop()
        yield node
        stack += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.FunctionDef | ast.AsyncFunctionDef)]


def _names(node: ast.AST) -> Iterator[str]:
    """Names and dotted names in an expression: `fold.test` and `fold`."""
    for part in ast.walk(node):
        yield from _name(part)


def _name(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        yield ast.unparse(node)
    elif isinstance(node, ast.arg):
        yield node.arg


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


def _called(node: ast.Call) -> str:
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
