"""Several runs of a model, one per seed: the spread between them, and whether two models differ by more than that.

A paired test says whether one run is better than another on the same trajectories. It says nothing about the next seed.
Here the value of a run is one figure: the mean of a metric over its comparisons or, where `results.json` lies next to
the metrics, a match rate or a divergence. Over seeds there are mean, standard deviation (n - 1) and interval by
Student's t; two models differ beyond the spread of seeds when Welch's t-test on these values says so.

For the paired tests the runs of a model become one: the mean over its seeds for each real trajectory (`merged`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy import stats

from watchkeeper.evaluation.paired.files import Model, OdPair, Record, Run
from watchkeeper.streams.foreign.files import read_json

RESULTS_NAME = "results.json"
# Below this share of the values a spread is rounding.
_ROUNDING = 1e-12


class Spread(msgspec.Struct, frozen=True):
    """One figure of one model over its seeds; NaN where one run cannot say."""

    model: str
    by_seed: dict[str, float]
    mean: float
    std: float
    ci_low: float
    ci_high: float
    """Of the mean, by Student's t at the level 1 - alpha."""


class SeedComparison(msgspec.Struct, frozen=True):
    """One figure of two models over their seeds. The difference is model 1 minus model 2."""

    figure: str
    first: Spread
    second: Spread
    difference: float
    in_stds: float
    """The difference over the seeds' pooled standard deviation, in absolute terms."""
    test_name: str
    test_statistic: float
    p_value: float
    beyond_seeds: bool | None
    """Whether the models differ by more than their seeds do; None where there are too few seeds to say."""
    words: str


def merged(folder: Path, runs: Sequence[tuple[str, Model]], metrics: Sequence[str]) -> Model:
    """A model of several runs: records with the means over the seeds that have them, and each run's own figures."""
    told = tuple(Run(seed, run.path, figures(run, metrics)) for seed, run in runs)
    if len(runs) == 1:
        _, only = runs[0]
        return Model(only.path, only.metadata, only.records, told, str(only.path.parent))
    values: defaultdict[tuple[OdPair, int | None, int], list[dict[str, float]]] = defaultdict(list)
    for _, run in runs:
        # records that do not say which real trajectory they are about go by their order
        seen: Counter[tuple[OdPair, int | None]] = Counter()
        for record in run.records:
            place = record.od_pair, record.real_traj_idx
            values[*place, seen[place]].append(record.values)
            seen[place] += 1
    records = [
        Record(od_pair, index, {name: float(np.mean([own[name] for own in several])) for name in metrics})
        for (od_pair, index, _), several in values.items()
    ]
    return Model(folder, runs[0][1].metadata, records, told, str(folder))


def figures(run: Model, metrics: Sequence[str]) -> dict[str, float]:
    """What a run comes to: the mean of each metric, and what `results.json` says of the whole. Raises LogError."""
    found = {}
    for name in metrics:
        values = np.array([record.values[name] for record in run.records], np.float64)
        if np.isfinite(values).any():
            found[name] = float(values[np.isfinite(values)].mean())
    results = run.path.parent / RESULTS_NAME
    document = read_json(results) if results.is_file() else {}
    for group, member in (("match_rates", "rate"), ("divergences", "jsd")):
        for name, own in _items(document, group):
            value = own.get(member) if isinstance(own, dict) else None
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                found[f"{member} {name}"] = float(value)
    return found


def compare_seeds(first: Model, second: Model, names: tuple[str, str], alpha: float) -> list[SeedComparison]:
    """Every figure that all runs of both models have; empty where no model has a second run."""
    if not first.runs or not second.runs or len(first.runs) + len(second.runs) < 3:
        return []
    common = [name for name in first.runs[0].figures if all(name in run.figures for run in (*first.runs, *second.runs))]
    return [_compared(name, _spread(names[0], first, name, alpha), _spread(names[1], second, name, alpha), alpha)
            for name in common]  # fmt: skip


def _spread(model: str, of: Model, figure: str, alpha: float) -> Spread:
    by_seed = {run.seed or str(k): run.figures[figure] for k, run in enumerate(of.runs)}
    values = np.array(list(by_seed.values()))
    n, mean = len(values), float(values.mean())
    std = float(values.std(ddof=1)) if n > 1 else math.nan
    reach = float(stats.t.ppf(1.0 - 0.5 * alpha, n - 1)) * std / math.sqrt(n) if n > 1 else math.nan
    return Spread(model, by_seed, mean, std, mean - reach, mean + reach)


def _compared(figure: str, a: Spread, b: Spread, alpha: float) -> SeedComparison:
    difference = a.mean - b.mean
    pooled = float(np.sqrt(np.nanmean([a.std**2, b.std**2])))
    rounding = _ROUNDING * max(abs(a.mean), abs(b.mean))
    in_stds = abs(difference) / pooled if pooled > rounding else math.inf if abs(difference) > rounding else 0.0
    statistic = p_value = math.nan
    beyond: bool | None = None
    if pooled <= rounding and len(a.by_seed) > 1 and len(b.by_seed) > 1:
        beyond = abs(difference) > rounding
        words = "the seeds of each model give the same figure: there is no spread to go beyond"
    elif len(a.by_seed) > 1 and len(b.by_seed) > 1:
        found = stats.ttest_ind(list(a.by_seed.values()), list(b.by_seed.values()), equal_var=False)
        statistic, p_value = float(found.statistic), float(found.pvalue)
        beyond = p_value < alpha
        words = "they differ by more than their seeds do" if beyond else "seeds alone may explain the difference"
    else:
        single = a.model if len(a.by_seed) == 1 else b.model
        words = f"{single} has one run, so how far its seeds spread is not known: no test"
    test_name = "none" if math.isnan(p_value) else "Welch's t-test"
    return SeedComparison(figure, a, b, difference, in_stds, test_name, statistic, p_value, beyond, words)


def _items(document: Any, group: str) -> Sequence[tuple[str, Any]]:
    inner = document.get(group) if isinstance(document, Mapping) else None
    return list(inner.items()) if isinstance(inner, Mapping) else []
