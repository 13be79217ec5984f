"""`watchkeeper.evaluate.leakage`: does anything in an evaluation know what it must not know?

Three checks, each by itself or all together: splits (flights.py), features (features.py) and code (code/). command.py
is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.attacks.flight import Flight, FlightData, flights_in
from watchkeeper.evaluation.leakage.code.check import check_code
from watchkeeper.evaluation.leakage.code.judge import NOT_FOLLOWED
from watchkeeper.evaluation.leakage.features import feature_leaks
from watchkeeper.evaluation.leakage.flights import split_leaks, turn_leaks
from watchkeeper.evaluation.protocol.splits import Splits, check_recipes, read_splits, simulated
from watchkeeper.streams.frames.write import TEXT, Backend, rows_frame

OWN_CODE = ("evaluation", "detectors")
SPLITS, FEATURES, CODE = "splits", "features", "code"
FeatureData: TypeAlias = str | PathLike[str] | IntoDataFrame | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Leaks:
    """What was found: check to leaks, one line each. A check that was not made is not in it."""

    checks: dict[str, list[str]]
    not_followed: tuple[str, ...] = ()
    """Lines of code about which nothing can be said: no leaks, and no proof that there is none."""

    def __len__(self) -> int:
        return sum(map(len, self.checks.values()))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per leak: which check found it, and what it is."""
        found = {**self.checks, NOT_FOLLOWED: self.not_followed}
        rows = [{"check": check, "leak": leak} for check, leaks in found.items() for leak in leaks]
        return rows_frame(rows, {"check": TEXT, "leak": TEXT}, backend)

    def to_dict(self) -> dict[str, list[str]]:
        """Check to leaks, and what could not be followed, if there is any."""
        return {**self.checks, NOT_FOLLOWED: [*self.not_followed]} if self.not_followed else self.checks


def leakage(
    *,
    splits: str | PathLike[str] | None = None,
    flights: FlightData | None = None,
    data: FeatureData | None = None,
    label: str | None = None,
    correlation_threshold: float = 0.9,
    features: str = "strict",
    code: Sequence[str | PathLike[str]] | None = None,
) -> Leaks:
    """Look for leaks: a flight in two splits, a feature that gives the label away, code that learns from test data.

    `splits` is a file, with `flights` (a folder, or frames by name) also by what the flights contain; `data` a table of
    features with a label; `code` Python files or folders, of which none are our own. Without these the shipped splits
    and our own code are checked. `features` says which names are banned: `strict` or `ahrs`.

    >>> import watchkeeper as wk
    >>> table = {"label": [0, 0, 1, 1, 0], "speed": [3.0, 5.0, 4.0, 3.5, 4.5], "flag": [0.0, 0.1, 0.9, 1.0, 0.0]}
    >>> wk.evaluate.leakage(data=table).to_dict()
    {'features': ["column 'flag' goes with 'label' (correlation +0.994, limit 0.9)"]}
    """
    everything = splits is None and data is None and code is None
    checks: dict[str, list[str]] = {}
    if splits is not None or everything:
        checks[SPLITS] = _splits(None if splits is None else Path(splits), flights)
    if data is not None:
        checks[FEATURES] = feature_leaks(data, correlation_threshold, label, features)
    if code is not None or everything:
        paths = [Path(path) for path in code or ()] or _own_code()
        read = check_code(paths, features)
        checks[CODE] = [str(leak) for leak in read.leaks]
        return Leaks(checks, tuple(map(str, read.not_followed)))
    return Leaks(checks)


def before_evaluation(flights: Sequence[Flight], splits: Splits | None, features: str) -> Leaks:
    """What an evaluation asks by itself before it begins: the flights that it is about to use, and our own code.

    Without `splits` flights are left out in turn.
    """
    found = turn_leaks(flights) if splits is None else split_leaks(splits, flights)
    read = check_code(_own_code(), features)
    return Leaks({SPLITS: found, CODE: [str(leak) for leak in read.leaks]}, tuple(map(str, read.not_followed)))


def _own_code() -> list[Path]:
    package = Path(__file__).parents[2]
    return [package / folder for folder in OWN_CODE]


def _splits(path: Path | None, flights: FlightData | None) -> list[str]:
    splits = read_splits(path)
    if flights is not None:
        return split_leaks(splits, flights_in(flights))
    wrong = check_recipes(splits)
    made = [] if wrong else [simulated(name, recipe) for name, recipe in splits.flights.items()]
    return wrong + split_leaks(splits, made)
