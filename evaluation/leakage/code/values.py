"""What the code check knows of a value: which splits it comes from, and in which form. Names say so by default.

`data` are rows or scores of a split, `level` a number drawn from them (a maximum, a quantile), `metric` how well
something did on them, `select` a mask that picks them. Used by follow.py and judge.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

TRAIN, VALIDATION, TEST, ATTACKED = "training", "validation", "test", "attacked"
HELD_OUT = frozenset((TEST, ATTACKED))
NONE: frozenset[str] = frozenset()

_WORDS = {
    TRAIN: frozenset(("train", "training")),
    VALIDATION: frozenset(("val", "validation", "calib", "calibrate", "calibration", "calibrating")),
    TEST: frozenset(("test", "tests", "tested", "testing", "heldout", "holdout")),
    ATTACKED: frozenset(("attacked", "spoofed", "injected", "jammed", "tampered", "anomalous")),
}
# Words that say what sort of thing a name is.
ROWS = frozenset(
    ("df", "data", "frame", "x", "y", "set", "score", "scores", "rows", "samples", "features", "epochs", "table",
     "loader", "dataset", "row", "columns")
)  # fmt: skip
FLIGHTS = frozenset(
    ("flight", "flights", "id", "ids", "fid", "fids", "sequence", "sequences", "group", "groups", "mission", "missions",
     "log", "logs", "recording", "recordings", "file", "files", "path", "paths", "vehicle", "vehicles")
)  # fmt: skip
_COUNTS = frozenset(
    ("size", "fraction", "frac", "ratio", "n", "num", "count", "len", "seed", "share", "pct", "percent")
)
_LIMITS = frozenset(("threshold", "thresholds", "thresh", "thr", "cutoff", "limit", "limits", "tau"))
_NOT_LIMITS = frozenset(("above", "over", "below", "under", "exceeds", "exceeding", "crossed", "beyond", "per"))
TIMES = frozenset(("latency", "latencies", "delay", "delays", "duration", "durations", "seconds", "ms", "elapsed"))


@dataclass(frozen=True, slots=True)
class Value:
    """See the module's docstring. `parts` are the members of a tuple or dictionary, with their keys where they have."""

    data: frozenset[str] = NONE
    level: frozenset[str] = NONE
    metric: frozenset[str] = NONE
    select: frozenset[str] = NONE
    shuffled: bool = False
    """Rows in an order, or a choice of rows, that is random."""
    ordered: bool = False
    unsure: bool = False
    """A number drawn from data of which nothing is known."""
    unknown: bool = False
    """Some of the rows are of a split that is not known."""
    is_set: bool = False
    text: str | None = None
    parts: tuple[Value, ...] | None = None
    keys: tuple[str | None, ...] = ()
    function: ast.AST | None = None
    instance: str = ""

    @property
    def roles(self) -> frozenset[str]:
        """Splits that it comes from, whatever it is."""
        return self.data | self.level


NOTHING = Value()


def merged(values: Iterable[Value]) -> Value:
    """Any of these, or all of them together."""
    found = list(values)
    if len(found) == 1:
        return found[0]
    return Value(
        frozenset[str]().union(*(v.data for v in found)),
        frozenset[str]().union(*(v.level for v in found)),
        frozenset[str]().union(*(v.metric for v in found)),
        frozenset[str]().union(*(v.select for v in found)),
        any(v.shuffled for v in found),
        any(v.ordered for v in found),
        any(v.unsure for v in found),
        any(v.unknown for v in found),
    )


def words(name: str) -> list[str]:
    """The words of a name, in lower case.

    >>> words("xTest_scores2")
    ['x', 'test', 'scores', '2']
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def roles_of(name: str) -> frozenset[str]:
    """The splits that a name speaks of.

    >>> sorted(roles_of("x_test")), sorted(roles_of("attack_scores")), sorted(roles_of("test_size"))
    (['test'], ['attacked'], [])
    """
    said = set(words(name))
    if said & _COUNTS:
        return NONE
    roles = {role for role, known in _WORDS.items() if said & known}
    if {"held", "out"} <= said:
        roles.add(TEST)
    if "valid" in said and said & ROWS:
        roles.add(VALIDATION)
    if said & {"attack", "attacks", "spoof", "anomaly"} and said & (ROWS - {"set", "columns"}):
        roles.add(ATTACKED)
    return frozenset(roles)


def named(name: str) -> Value:
    """What a name says of the value that it has."""
    roles = roles_of(name)
    return Value(data=roles, unknown=not roles and bool(ROWS & set(words(name))))


def is_limit(name: str) -> bool:
    """Whether a name is that of a threshold.

    >>> is_limit("best_thr"), is_limit("scores_over_threshold")
    (True, False)
    """
    said = words(name)
    return bool(_LIMITS & set(said)) and not _NOT_LIMITS & set(said)


def speaks_of(nodes: Iterable[ast.AST], known: frozenset[str]) -> bool:
    """Whether a name, an attribute or a key in these expressions has one of the words."""
    for node in nodes:
        for part in ast.walk(node):
            name = (
                part.id if isinstance(part, ast.Name)
                else part.attr if isinstance(part, ast.Attribute)
                else part.value if isinstance(part, ast.Constant) and isinstance(part.value, str)
                else ""
            )  # fmt: skip
            if known & set(words(name)):
                return True
    return False
