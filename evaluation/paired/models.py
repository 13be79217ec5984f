"""Two models held against each other: whether they can be compared, which records pair up, and what the tests say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.evaluation.paired.files import BOUNDS, Model, Pairs, pair
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.seeds import SeedComparison, compare_seeds
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED, compare_models_paired, correct
from watchkeeper.streams.batch import F8
from watchkeeper.streams.logs.source import LogError

# A tenth of a millimetre: bounds that another program wrote with fewer digits are still the same.
SAME_DEG = 1e-9


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models, how their records were paired, and a result for each metric."""

    first: Model
    second: Model
    pairs: Pairs
    values: dict[str, tuple[F8, F8]]
    """For each metric the values of both models, pair by pair."""
    results: list[PairedResult]
    seeds: list[SeedComparison]
    """The same figures over the seeds of each model; empty where each has one run."""
    notes: list[str]

    @property
    def names(self) -> tuple[str, str]:
        """What the two are called."""
        return self.results[0].model1_name, self.results[0].model2_name


def compare(
    first: Model,
    second: Model,
    names: tuple[str, str],
    metrics: Sequence[str],
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Pair two models and test each metric; corrected over the metrics. Raises LogError if they do not compare."""
    notes = check(first, second, metrics)
    for name, model in zip(names, (first, second), strict=True):
        if len(model.runs) > 1:
            listed = ", ".join(run.seed or "none" for run in model.runs)
            notes.append(f"{name}: values are means over its {len(model.runs)} runs (seeds {listed})")
    pairs = pair(first.records, second.records)
    if not pairs.numbers:
        raise LogError(second.path, f"no record in common with {first.path}: nothing to compare")
    values: dict[str, tuple[F8, F8]] = {}
    for metric in metrics:
        rows = [(first.records[i].values[metric], second.records[k].values[metric]) for i, k in pairs.numbers]
        a, b = np.array(rows, np.float64).T
        values[metric] = a, b
    results = [
        msgspec.structs.replace(
            compare_models_paired(a, b, *names, metric, alpha, seed=seed, resamples=resamples),
            model1_folder=first.folder,
            model2_folder=second.folder,
        )
        for metric, (a, b) in values.items()
    ]
    seeds = compare_seeds(first, second, names, alpha)
    return Comparison(first, second, pairs, values, correct(results, alpha), seeds, notes)


def check(first: Model, second: Model, metrics: Sequence[str]) -> list[str]:
    """What a person should know about the two. Raises LogError where their records do not mean the same."""
    must = ["od_source", "grid_size", *(["edr_eps"] if "edr" in metrics else [])]
    for name in must:
        a, b = first.metadata[name], second.metadata[name]
        # None: a frame, which does not say
        if a != b and a is not None and b is not None:
            raise LogError(second.path, f"metadata: {name} is {b}, but {a} in {first.path}: they cannot be compared")
    notes = _check_grids(first, second)
    a, b = (model.metadata.get("real_data_file") for model in (first, second))
    return notes if a == b else [*notes, f"the real trajectories are from different files: {a} and {b}"]


def _check_grids(first: Model, second: Model) -> list[str]:
    """Cells of different areas have the same numbers and other places. Raises LogError."""
    a, b = (model.metadata.get("grid_bounds") for model in (first, second))
    if a is None and b is None:
        return []
    if a is None or b is None:
        silent = first if a is None else second
        return [f"{silent.path} does not say its grid's bounds: whether the cells are the same is not checked"]
    if any(abs(a[side] - b[side]) > SAME_DEG for side in BOUNDS):
        raise LogError(
            second.path,
            f"its grid covers {_area(b)}, but that of {first.path} {_area(a)}: the numbers of their cells mean "
            "different places, so they cannot be compared; run `evaluate tracks` for both with the same --bounds",
        )
    return []


def _area(bounds: Mapping[str, float]) -> str:
    return " ".join(f"{side} {bounds[side]:.10g}" for side in BOUNDS)


def as_json(comparison: Comparison, *, seed: int, resamples: int) -> dict[str, Any]:
    """Everything, ready for JSON."""
    c = comparison
    paired = len(c.pairs.numbers)
    return {
        "metadata": {
            "models": [
                {
                    "name": name,
                    "folder": model.folder,
                    "file": str(model.path),
                    "records": len(model.records),
                    "runs": [{"seed": run.seed or None, "file": str(run.path)} for run in model.runs],
                }
                for name, model in zip(c.names, (c.first, c.second), strict=True)
            ],
            "od_source": c.first.metadata["od_source"],
            "grid_size": c.first.metadata["grid_size"],
            "edr_eps": c.first.metadata["edr_eps"],
            "grid_bounds": c.first.metadata.get("grid_bounds"),
            "seed": seed,
            "resamples": resamples,
        },
        "matching": {
            "pairs": paired,
            "by_real_traj_idx": c.pairs.by_index,
            "by_order": c.pairs.by_order,
            "unmatched_model1": len(c.first.records) - paired,
            "unmatched_model2": len(c.second.records) - paired,
        },
        "notes": c.notes,
        "results": msgspec.to_builtins(c.results),
        "across_seeds": msgspec.to_builtins(c.seeds),
    }


def short_names(paths: Sequence[Path]) -> list[str]:
    """What models are called when nobody says: the first part of their paths in which all differ."""
    absolute = [Path(os.path.abspath(str(path).removesuffix(".json"))).parts for path in paths]  # noqa: PTH100
    for parts in zip(*absolute, strict=False):
        if len(set(parts)) == len(paths):
            return list(parts)
    return [f"model{i}" for i in range(1, len(paths) + 1)]
