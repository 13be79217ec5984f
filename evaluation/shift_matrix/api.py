"""`watchkeeper.evaluate.shift_matrix`: how good are models on scenarios that they were not trained on?

Reads episodes with what their model was trained and judged on (outcomes.py), and works out a matrix per metric with
differences to the diagonal, intervals and generalisation gaps (matrix.py). command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias, cast

import msgspec
from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.conflicts.api import Conflicts
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shift_matrix.matrix import Draws, Matrix, matrix_of
from watchkeeper.evaluation.shift_matrix.outcomes import NAMES, Cell, Outcome, chosen, outcomes_in
from watchkeeper.streams.frames.write import COUNT, NUMBER, TEXT, Backend, rows_frame

OutcomeData: TypeAlias = str | PathLike[str] | Conflicts | IntoDataFrame | Mapping[str, Any]
"""A frame with a row per episode, a .csv of one, a result of `evaluate.conflicts`, or its JSON file."""
CELL_COLUMNS = {
    "metric": TEXT, "trained_on": TEXT, "judged_on": TEXT, "n": COUNT,
    **dict.fromkeys(("mean", "std", "difference", "ratio", "low", "high"), NUMBER), "how": TEXT, "p_value": NUMBER,
    "native_difference": NUMBER,
}  # fmt: skip
GAP_COLUMNS = {
    "metric": TEXT, "trained_on": TEXT, "scenarios": COUNT,
    **dict.fromkeys(("gap", "low", "high"), NUMBER), "how": TEXT,
}  # fmt: skip
TABLES = {"cells": CELL_COLUMNS, "gaps": GAP_COLUMNS}


@dataclass(frozen=True, slots=True)
class ShiftMatrix:
    """A matrix per metric."""

    matrices: list[Matrix]
    episodes: int
    notes: list[str]
    draws: Draws

    def __getitem__(self, metric: str) -> Matrix:
        """The matrix of a metric."""
        found = {matrix.metric: matrix for matrix in self.matrices}
        if metric not in found:
            raise KeyError(f"metric {metric!r}: there are {', '.join(found)}")
        return found[metric]

    def to_frame(self, backend: Backend | None = None, *, table: str = "cells") -> Any:
        """One row per metric and cell; with `table="gaps"` one per metric and what models were trained on ("": all)."""
        if table not in TABLES:
            raise ValueError(f"table {table!r}: allowed are {', '.join(TABLES)}")
        rows = [{"metric": m.metric, **msgspec.to_builtins(row)} for m in self.matrices for row in getattr(m, table)]
        return rows_frame(rows, TABLES[table], backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: what `--out` writes."""
        return {
            "settings": msgspec.to_builtins(self.draws),
            "episodes": self.episodes,
            "notes": self.notes,
            "matrices": msgspec.to_builtins(self.matrices),
        }


def shift_matrix(
    data: OutcomeData | Sequence[OutcomeData] | Mapping[Cell, OutcomeData],
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    trained_key: str | None = None,
    judged_key: str | None = None,
    seed_key: str | None = None,
    model_key: str | None = None,
) -> ShiftMatrix:
    """Judge models on the scenarios that they were trained on and on others: a matrix per metric.

    `data` is one or several of: a frame or .csv with a row per episode, a result of `evaluate.conflicts`, its JSON
    file. Or it maps (trained on, judged on) to such. `metrics` are by default the headlines of `evaluate.conflicts`, or
    every column of numbers where there are none of these. Columns or metadata are `trained_on`, `judged_on`, `seed` and
    `model`; `seed_key="episode_id"`, for example, names one that is called otherwise.

    >>> import watchkeeper as wk
    >>> here = {"trained_on": ["calm"] * 4, "judged_on": ["calm"] * 4, "seed": [1, 2, 3, 4]}
    >>> here["f1_score"] = [0.9, 1.0, 0.8, 0.9]
    >>> away = {**here, "judged_on": ["busy"] * 4, "f1_score": [0.6, 0.8, 0.5, 0.7]}
    >>> cell = wk.evaluate.shift_matrix([here, away])["f1_score"].cells[1]
    >>> cell.judged_on, round(cell.mean, 2), round(cell.difference, 2), round(cell.ratio, 2), cell.how
    ('busy', 0.65, -0.25, 0.72, 'paired')
    """
    named = zip(NAMES, (trained_key, judged_key, seed_key, model_key), strict=True)
    keys = {name: word for name, word in named if word}
    if isinstance(data, Mapping) and data and all(isinstance(cell, tuple) for cell in data):
        given: list[tuple[Cell | None, Any]] = list(cast("Mapping[Cell | None, Any]", data).items())
    else:
        given = [(None, one) for one in (data if isinstance(data, (list, tuple)) else [data])]
    found = [outcome for cell, one in given for outcome in outcomes_in(one, keys, cell)]
    return judged(found, metrics, Draws(alpha, seed, resamples))


def judged(outcomes: Sequence[Outcome], metrics: Sequence[str] | None, draws: Draws) -> ShiftMatrix:
    """The matrices of outcomes that were read already. Raises EvaluationError."""
    if not 0.0 < draws.alpha < 1.0:
        raise EvaluationError(f"alpha {draws.alpha}: expected a number between 0 and 1")
    cells: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.trained_on, outcome.judged_on), []).append(outcome)
    rows = list(dict.fromkeys(trained for trained, _ in cells))
    judged_on = list(dict.fromkeys(to for _, to in cells))
    # the diagonal first, in the order of the rows
    columns = [name for name in rows if name in judged_on] + [name for name in judged_on if name not in rows]
    if not outcomes:
        raise EvaluationError("no episode to judge")
    if not any(trained == to for trained, to in cells):
        raise EvaluationError(
            "no model was judged on what it was trained on: "
            f"trained on {', '.join(rows)}; judged on {', '.join(columns)}"
        )
    try:
        names = chosen(outcomes, metrics)
    except LookupError as error:
        raise EvaluationError(error.args[0]) from None
    if not names:
        raise EvaluationError("no column of numbers that could be a metric")
    matrices = [matrix_of(name, cells, rows, columns, draws) for name in names]
    return ShiftMatrix(matrices, len(outcomes), _notes(cells, rows, columns), draws)


def _notes(cells: Mapping[Cell, Sequence[Outcome]], rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    notes = [
        f"trained on {name}: never judged there, so nothing to compare with"
        for name in rows
        if (name, name) not in cells
    ]
    missing = [
        f"{row} on {column}" for row in rows for column in columns if (row, column) not in cells and row != column
    ]
    if missing:
        notes.append(f"no episodes of {', '.join(missing)}")
    for (trained, to), outcomes in cells.items():
        keys = [outcome.pair for outcome in outcomes if outcome.pair is not None]
        if len(set(keys)) < len(keys):
            notes.append(f"trained on {trained}, judged on {to}: a seed comes twice, so its episodes are not paired")
    return notes
