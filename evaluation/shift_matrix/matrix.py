"""The shift matrix of one metric: rows are what a model was trained on, columns what it was judged on.

The diagonal is in-distribution. Each other cell is compared with the diagonal of its row: the same model at home. Where
both cells have the same models and seeds, each once, the comparison is pair by pair, by the tests of `evaluate paired`;
elsewhere episodes of both cells are drawn independently with replacement. A difference is judged elsewhere minus at
home. The gap of a row is the mean of its differences, each scenario counting once. What is drawn depends on the seed
and on the names of the scenarios, never on the order of rows, columns or episodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from watchkeeper.evaluation.conflicts.direction import worse
from watchkeeper.evaluation.paired.stats import LEAST_PAIRS, compare_models_paired
from watchkeeper.evaluation.shared.bootstrap import weights
from watchkeeper.evaluation.shift_matrix.outcomes import Cell, Outcome
from watchkeeper.streams.batch import F8

PAIRED, INDEPENDENT, HOME, NO_INTERVAL = "paired", "independent", "diagonal", "none"


class CellFigures(msgspec.Struct, frozen=True):
    """One cell; NaN is what could not be worked out."""

    trained_on: str
    judged_on: str
    n: int
    """Episodes in which the metric is a number."""
    mean: float
    std: float
    """With n - 1."""
    difference: float
    """To the diagonal of the row: judged here minus judged at home; over the pairs where it is paired."""
    ratio: float
    """Of the means; NaN where the diagonal is 0."""
    low: float
    high: float
    """Interval of the difference."""
    how: str
    """What the interval is from: paired, independent, diagonal (0 by definition) or none."""
    p_value: float
    """Of the paired test; NaN where it is not paired."""
    native_difference: float
    """To the diagonal of the column: minus the mean of the model that was trained on this scenario."""
    worse: bool | None
    """Whether the interval lies on the worse side of 0; None where it does not, or the metric has no better side."""


class Gap(msgspec.Struct, frozen=True):
    """The generalisation gap of the models trained on one scenario; of all together with trained_on ""."""

    trained_on: str
    scenarios: int
    gap: float
    low: float
    high: float
    how: str
    worse: bool | None


class Matrix(msgspec.Struct, frozen=True):
    """One metric."""

    metric: str
    trained_on: list[str]
    judged_on: list[str]
    cells: list[CellFigures]
    """Row by row; a cell without episodes has n 0."""
    gaps: list[Gap]

    def grid(self, figure: str) -> F8:
        """One figure as an array [trained on, judged on]."""
        values = np.array([getattr(cell, figure) for cell in self.cells], np.float64)
        return values.reshape(len(self.trained_on), len(self.judged_on))


class Draws(msgspec.Struct, frozen=True):
    """How intervals are made."""

    alpha: float
    seed: int
    resamples: int


def matrix_of(
    metric: str, cells: Mapping[Cell, Sequence[Outcome]], rows: Sequence[str], columns: Sequence[str], draws: Draws
) -> Matrix:
    """The matrix of one metric, with rows and columns in this order."""
    values = {cell: _by_pair(outcomes, metric) for cell, outcomes in cells.items()}
    figures = [_cell(values, trained, judged, metric, draws) for trained in rows for judged in columns]
    gaps, drawn = [], []
    for trained in rows:
        away = sorted(to for to in columns if to != trained and len(_finite(values.get((trained, to)))))
        if not away or not len(_finite(values.get((trained, trained)))):
            continue
        gap, samples, how = _gap(values, trained, away, draws)
        gaps.append(_judged(Gap(trained, len(away), gap, math.nan, math.nan, how, None), samples, metric, draws))
        drawn.append(samples)
    if len(gaps) > 1:
        mean = float(np.mean([gap.gap for gap in gaps]))
        how = gaps[0].how if len({gap.how for gap in gaps}) == 1 else INDEPENDENT
        overall = Gap("", len(gaps), mean, math.nan, math.nan, how, None)
        gaps.append(_judged(overall, np.mean(drawn, axis=0), metric, draws))
    return Matrix(metric, list(rows), list(columns), figures, gaps)


Values = dict[Any, float]


def _by_pair(outcomes: Sequence[Outcome], metric: str) -> Values:
    """Values by what pairs them; by number where that is missing or comes twice, which pairs with nothing."""
    keys = [outcome.pair for outcome in outcomes]
    known = [key for key in keys if key is not None]
    unique = len(known) == len(keys) == len(set(keys))
    found = [outcome.values.get(metric, math.nan) for outcome in outcomes]
    return dict(sorted(zip(known, found, strict=True))) if unique else dict(enumerate(np.sort(found).tolist()))


def _cell(values: Mapping[Cell, Values], trained: str, judged: str, metric: str, draws: Draws) -> CellFigures:
    here, home = values.get((trained, judged), {}), values.get((trained, trained), {})
    found, at_home, native = _finite(here), _finite(home), _finite(values.get((judged, judged)))
    n, mean = len(found), _mean(found)
    difference, low, high, how, p_value = math.nan, math.nan, math.nan, NO_INTERVAL, math.nan
    if trained == judged and n:
        difference, low, high, how = 0.0, 0.0, 0.0, HOME
    elif n and len(at_home):
        difference, low, high, how, p_value = _against((here, home), (trained, judged), metric, draws)
    home_mean = _mean(at_home)
    return CellFigures(
        trained, judged, n, mean, float(found.std(ddof=1)) if n > 1 else math.nan,
        difference, mean / home_mean if home_mean else math.nan, low, high, how, p_value,
        mean - _mean(native), _side(metric, low, high),
    )  # fmt: skip


def _against(
    both: tuple[Values, Values], cell: Cell, metric: str, draws: Draws
) -> tuple[float, float, float, str, float]:
    """Difference of a cell to the diagonal of its row, its interval, how, and the p-value of a paired test."""
    here, home = both
    trained, judged = cell
    if _pairs(here, home):
        after, before = [here[key] for key in home], list(home.values())
        r = compare_models_paired(
            after, before, "elsewhere", "at home", metric, draws.alpha, seed=draws.seed, resamples=draws.resamples
        )
        return r.mean_difference, r.ci_low, r.ci_high, PAIRED if r.n_pairs >= LEAST_PAIRS else NO_INTERVAL, r.p_value
    found, at_home = _finite(here), _finite(home)
    difference = _mean(found) - _mean(at_home)
    if min(len(found), len(at_home)) < LEAST_PAIRS:
        return difference, math.nan, math.nan, NO_INTERVAL, math.nan
    samples = _drawn(found, draws, trained, judged) - _drawn(at_home, draws, trained, trained)
    return difference, *_interval(samples, draws.alpha), INDEPENDENT, math.nan


def _pairs(here: Values, home: Values) -> bool:
    return here.keys() == home.keys() and all(isinstance(key, tuple) for key in here)


def _gap(values: Mapping[Cell, Values], trained: str, away: Sequence[str], draws: Draws) -> tuple[float, F8, str]:
    """The mean difference of a row, its resamples (NaN: too few episodes), and how they were drawn."""
    home, cells = values[trained, trained], [values[trained, judged] for judged in away]
    if all(_pairs(cell, home) for cell in cells):
        table = np.array([[cell[key] - home[key] for cell in cells] for key in home])
        # a pair counts where every scenario has a number, so that all are of the same episodes
        whole = table[np.isfinite(table).all(axis=1)].mean(axis=1) if len(table) else table.sum(axis=1)
        if len(whole) >= LEAST_PAIRS:
            # the same seeds are drawn in every row, because episodes of one seed have something in common
            return _mean(whole), _drawn(whole, draws), PAIRED
    found = [_finite(cell) for cell in (home, *cells)]
    gap = float(np.mean([_mean(cell) for cell in found[1:]])) - _mean(found[0])
    if min(map(len, found)) < LEAST_PAIRS:
        return gap, np.full(draws.resamples, np.nan), NO_INTERVAL
    drawn = [_drawn(cell, draws, trained, judged) for cell, judged in zip(found, (trained, *away), strict=True)]
    return gap, np.mean(drawn[1:], axis=0) - drawn[0], INDEPENDENT


def _judged(gap: Gap, samples: F8, metric: str, draws: Draws) -> Gap:
    low, high = _interval(samples, draws.alpha) if np.isfinite(samples).all() else (math.nan, math.nan)
    return msgspec.structs.replace(gap, low=low, high=high, worse=_side(metric, low, high))


def _side(metric: str, low: float, high: float) -> bool | None:
    """Whether an interval lies on the worse (True) or the better (False) side of 0; None where it holds 0."""
    if not (low > 0.0 or high < 0.0):
        return None
    return worse(metric, low if low > 0.0 else high)


def _drawn(values: F8, draws: Draws, *names: str) -> F8:
    """Means of resamples of these values."""
    own = int(np.random.SeedSequence((draws.seed, *(crc32(name.encode()) for name in names))).generate_state(1)[0])
    means: F8 = weights(len(values), draws.resamples, own) @ values / len(values)
    return means


def _interval(samples: F8, alpha: float) -> tuple[float, float]:
    low, high = np.quantile(samples, (0.5 * alpha, 1.0 - 0.5 * alpha)).tolist()
    return low, high


def _finite(values: Values | None) -> F8:
    found = np.array(list((values or {}).values()), np.float64)
    return found[np.isfinite(found)]


def _mean(values: F8) -> float:
    return float(values.mean()) if len(values) else math.nan
