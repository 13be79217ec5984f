"""What a call, an assignment or a comparison may not see: the rules of the code check. follow.py asks them.

- `fit-on-test`, `fit-on-validation`: something is fitted on anything but training data; early stopping may see
  validation data.
- `fit-transform`: fit_transform on anything but training data.
- `threshold-on-test`: a threshold comes from test or attacked scores, by whatever means.
- `sample-split`: rows are split, shuffled or sampled without regard to flights.
- `attack-in-training`: an attack is put into training or validation data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from watchkeeper.evaluation.leakage.code.values import (
    FLIGHTS,
    HELD_OUT,
    ROWS,
    TIMES,
    TRAIN,
    VALIDATION,
    Value,
    merged,
    speaks_of,
    words,
)

NOT_FOLLOWED = "not followed"
FITS = frozenset(
    ("fit", "partial_fit", "fit_predict", "fit_resample", "fit_transform", "learn", "learn_one", "learn_many")
)
QUANTILES = frozenset(("quantile", "nanquantile", "percentile", "nanpercentile", "scoreatpercentile", "mquantiles"))
THRESHOLDS = frozenset(
    ("threshold", "thresholds", "calibrate", "calibration", "calibrated", "cutoff", "youden", "tune")
)
# A fit that may see validation data: it sets thresholds or probabilities, it is no model and no scaler.
CALIBRATORS = THRESHOLDS | {"calibrator", "isotonic", "platt", "conformal"}
EARLY = frozenset(("eval_set", "validation_data", "eval_sets", "valid_sets", "callbacks"))
ROW_SPLITS = frozenset(
    ("train_test_split", "KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit",
     "StratifiedShuffleSplit", "random_split", "shuffle", "cross_val_score", "cross_val_predict", "cross_validate")
)  # fmt: skip
INJECTS = frozenset(("inject", "attack", "attacked", "spoof"))
# Names that say what a function does, also one that is followed.
BY_NAME = FITS | INJECTS | {"calibrate", "threshold"}
_INJECTING = frozenset(("inject", "injects", "spoof", "tamper"))
Verdict = tuple[str, str]


def call(name: str, node: ast.Call, on: Value, given: Sequence[Value], named: dict[str, Value]) -> Iterator[Verdict]:
    """What is wrong with a call: `on` is what a method is called on, `given` and `named` are its arguments."""
    said = words(name)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in FITS:
        yield from _fit(name, node, receiver, given, named)
    elif name in QUANTILES or THRESHOLDS & set(said):
        # what a method is called on counts where it is data, not where it is a model
        seen = merged([*given, *named.values(), *([on] if not given or name in QUANTILES else [])])
        if (bad := seen.roles & HELD_OUT) and not (name in QUANTILES and speaks_of([node], TIMES)):
            yield "fit-on-test", f"{name}() sees {_words(bad)} data"
    elif said[:1] in (["fit"], ["learn"], ["train"]) and given:
        seen = merged(given)
        if (bad := seen.roles & HELD_OUT) and TRAIN in seen.roles:
            yield NOT_FOLLOWED, f"{name}() is given {_words(bad)} data next to training data, and is not in this file"
        elif bad:
            yield "fit-on-test", f"{name}() sees {_words(bad)} data"
    if name in ROW_SPLITS or name == "sample":
        yield from _split(name, node, on, given, named)
    elif _shuffles(name, node) and merged([*given, on]).data != {TRAIN}:
        yield NOT_FOLLOWED, f"{name}(shuffle=True): of which split are these rows?"
    injects = name in INJECTS or _INJECTING & set(said)
    if injects and (bad := merged([*given, *named.values(), on]).data & {TRAIN, VALIDATION}):
        yield "attack-in-training", f"{name}() is given {_words(bad)} data"


def _fit(
    name: str, node: ast.Call, receiver: ast.expr | None, given: Sequence[Value], named: dict[str, Value]
) -> Iterator[Verdict]:
    seen = merged([*given, *(value for key, value in named.items() if key not in EARLY)])
    early = merged(value for key, value in named.items() if key in EARLY)
    if "validation_split" in named:
        yield "sample-split", f"{name}(validation_split=…) separates rows, not flights"
    if bad := early.roles & HELD_OUT:
        yield "fit-on-test", f"{name}() stops early on {_words(bad)} data"
    if not given and not named:
        return
    wrong = seen.roles - {TRAIN}
    if name == "fit_transform" and (wrong or not seen.roles or seen.unknown):
        what = f"{_words(wrong)} data" if wrong else "what is not known to be training data"
        yield "fit-transform", f"fit_transform() sees {what}: fit on training flights, then transform"
    elif bad := wrong & HELD_OUT:
        yield "fit-on-test", f"{name}() sees {_words(bad)} data"
    elif VALIDATION in wrong and not (receiver is not None and speaks_of([receiver], CALIBRATORS)):
        yield "fit-on-validation", f"{name}() sees validation data, which is for thresholds and early stopping"
    elif (not seen.roles or seen.unknown) and name != "learn" and not _constant(node):
        yield NOT_FOLLOWED, f"{name}({', '.join(map(ast.unparse, node.args))}): of which split is this?"


def _split(name: str, node: ast.Call, on: Value, given: Sequence[Value], named: dict[str, Value]) -> Iterator[Verdict]:
    receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    what = [*node.args, *receiver, *(k.value for k in node.keywords if k.arg in ("groups", "groupby", "by"))]
    if speaks_of(what, FLIGHTS | {"groupby"}) or any(key in named for key in ("groups", "groupby")):
        return
    if merged([*given, on]).data == {TRAIN}:
        return  # an order inside of the training split says nothing about the others
    if name == "sample" and not ({"frac", "n"} & set(named) or speaks_of(receiver, ROWS)):
        return  # of a distribution, or of a generator
    yield "sample-split", f"{name}() separates rows, not flights"


def limit(target: str, value: Value) -> Iterator[Verdict]:
    """A threshold gets a value."""
    if bad := value.roles & HELD_OUT:
        yield "threshold-on-test", f"{target} comes from {_words(bad)} data"
    elif value.unsure:
        yield NOT_FOLLOWED, f"{target} is drawn from data of which the split is not known"


def comparison(left: Value, right: Value) -> Iterator[Verdict]:
    """Scores held against a number that was drawn from test or attacked data."""
    for scores, number in ((left, right), (right, left)):
        if scores.data and not scores.level and not number.data and (bad := number.level & HELD_OUT):
            yield "threshold-on-test", f"scores are held against a level of {_words(bad)} data"


def scaling(left: Value, right: Value) -> Iterator[Verdict]:
    """Training data brought to scale by hand, with a mean or a deviation of what it must not know."""
    for rows, number in ((left, right), (right, left)):
        if rows.data & {TRAIN} and not number.data and (bad := number.level & HELD_OUT):
            yield "fit-on-test", f"training data is scaled with a level of {_words(bad)} data"


def assignment(target: str, roles: frozenset[str], value: Value) -> Iterator[Verdict]:
    """A split gets rows."""
    if roles and value.shuffled and not FLIGHTS & set(words(target)):
        yield "sample-split", f"{target} is a random choice of rows, not of flights"


def _shuffles(name: str, node: ast.Call) -> bool:
    asked = any(k.arg == "shuffle" and getattr(k.value, "value", None) is True for k in node.keywords)
    return asked and name not in FITS and "Group" not in name


def _constant(node: ast.Call) -> bool:
    return all(isinstance(argument, ast.Constant) for argument in node.args)


def _words(roles: frozenset[str]) -> str:
    return " and ".join(sorted(roles))
