"""`watchkeeper.evaluate.paired`: which of two models comes nearer to the same real trajectories, and is it chance?

Pairs the records of `evaluate.tracks` for each model (files.py) and tests every metric (models.py, stats.py). With more
than two models every two are compared. command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.paired.files import Model, Record, find_file, frame_model, read_model
from watchkeeper.evaluation.paired.models import Comparison, as_json, compare
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.tracks.api import Evaluation as TracksResult
from watchkeeper.evaluation.tracks.metrics import FILE_NAME
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame

# As the document recommends: kilometres grow with the number of points, and so say as much about the data as about the
# model.
DEFAULT_METRICS = ("hausdorff_norm", "dtw_norm", "edr")
ModelData: TypeAlias = str | PathLike[str] | TracksResult | IntoDataFrame | Mapping[str, object]
"""A result folder or file of `evaluate tracks`, its result, or the result's frame."""
_TYPES = {"str": TEXT, "bool": FLAG, "int": COUNT}
# One column per figure of a test, by its declared type.
COLUMNS = {
    name: _TYPES.get(str(kind), NUMBER)
    for name, kind in PairedResult.__annotations__.items()
    if str(kind).partition(" ")[0] in ("str", "bool", "int", "float")
}


@dataclass(frozen=True, slots=True)
class Paired:
    """All comparisons, each of two models."""

    comparisons: list[Comparison]
    seed: int
    resamples: int

    @property
    def results(self) -> list[PairedResult]:
        """The tests of all comparisons, metric by metric."""
        return [result for comparison in self.comparisons for result in comparison.results]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per comparison and metric."""
        return rows_frame([msgspec.to_builtins(result) for result in self.results], COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """Every comparison as `paired_results.json` has it, by the two names."""
        return {"_vs_".join(c.names): as_json(c, seed=self.seed, resamples=self.resamples) for c in self.comparisons}


def paired(
    models: Mapping[str, ModelData] | Sequence[ModelData],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Paired:
    """Compare models on the same trajectories: paired tests, effect sizes, intervals and corrected p-values.

    `models` maps names to results of `evaluate.tracks`: the result itself, its frame, its folder or its file. Without
    names they are called model1, model2 and so on. Needs the extra `stats`.

    >>> import watchkeeper as wk
    >>> where = {"origin": range(9), "destination": [0] * 9, "real_traj_idx": range(9)}
    >>> near = {**where, "edr": [0.10, 0.12, 0.11, 0.10, 0.13, 0.09, 0.10, 0.12, 0.11]}
    >>> far = {**where, "edr": [0.31, 0.30, 0.35, 0.29, 0.33, 0.30, 0.32, 0.36, 0.30]}
    >>> result = wk.evaluate.paired({"near": near, "far": far}, metrics=["edr"]).results[0]
    >>> result.n_pairs, result.significant, round(result.mean_difference, 2)
    (9, True, -0.21)
    """
    if problem := missing_extra("evaluate.paired", "statsmodels", "stats"):
        raise ImportError(problem)
    if isinstance(models, Mapping):
        names, given = list(models), list(models.values())
    else:
        names, given = [f"model{i}" for i in range(1, len(models) + 1)], list(models)
    if len(given) < 2:
        raise EvaluationError("fewer than two models to compare")
    read = [model_of(data, metrics) for data in given]
    comparisons = [
        compare(read[i], read[k], (names[i], names[k]), metrics, alpha=alpha, seed=seed, resamples=resamples)
        for i, k in combinations(range(len(read)), 2)
    ]
    return Paired(comparisons, seed, resamples)


def model_of(data: ModelData, metrics: Sequence[str]) -> Model:
    """The records of one model, wherever they are."""
    if isinstance(data, TracksResult):
        records = [
            Record(m.od_pair, m.real_traj_idx, {name: getattr(m, name) for name in metrics})
            for m in data.metrics.trajectory_metrics
        ]
        return Model(data.gen.path, msgspec.to_builtins(data.metrics.metadata), records)
    if not isinstance(data, (str, PathLike)):
        return frame_model(data, metrics)
    path = Path(data)
    file = find_file(path)
    if file is None:
        raise EvaluationError(f"{path}: no {FILE_NAME} in this folder")
    return read_model(file, metrics)
