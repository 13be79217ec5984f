"""`watchkeeper.evaluate.paired`: which of two models comes nearer to the same real trajectories, and is it chance?

Pairs the records of `evaluate.tracks` for each model (files.py) and tests every metric (models.py, stats.py). With more
than two models every two are compared. command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.paired.discover import Found, models_below, runs_of
from watchkeeper.evaluation.paired.files import Model, Record, frame_model, read_model
from watchkeeper.evaluation.paired.models import Comparison, as_json, check, compare
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.seeds import merged
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.tracks.api import Evaluation as TracksResult
from watchkeeper.evaluation.tracks.metrics import FILE_NAME
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame
from watchkeeper.streams.logs.source import LogError

# As the document recommends: kilometres grow with the number of points, and so say as much about the data as about the
# model.
DEFAULT_METRICS = ("hausdorff_norm", "dtw_norm", "edr")
ModelData: TypeAlias = Found | str | PathLike[str] | TracksResult | IntoDataFrame | Mapping[str, object]
"""A result folder or file of `evaluate tracks`, its result, or the result's frame."""
TOO_FEW = "fewer than two models to compare: run `watchkeeper evaluate tracks … --out FOLDER` for each"
_TYPES = {"str": TEXT, "bool": FLAG, "int": COUNT}
# One column per figure of a test, by its declared type.
COLUMNS = {
    name: _TYPES.get(str(kind), NUMBER)
    for name, kind in PairedResult.__annotations__.items()
    if str(kind).partition(" ")[0] in ("str", "bool", "int", "float")
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How models are compared."""

    metrics: tuple[str, ...] = DEFAULT_METRICS
    alpha: float = ALPHA
    seed: int = SEED
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Paired:
    """All comparisons, each of two models."""

    comparisons: list[Comparison]
    seed: int
    resamples: int
    notes: list[str]
    """What was left out, where models were looked for."""

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
    models: str | PathLike[str] | Mapping[str, ModelData] | Sequence[ModelData],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Paired:
    """Compare models on the same trajectories: paired tests, effect sizes, intervals and corrected p-values.

    `models` maps names to results of `evaluate.tracks`: the result itself, its frame, its folder or its file. Without
    names they are called model1, model2 and so on. One path is a folder of models, which are found by themselves. A
    model's folder with a folder per seed (`seed1`, `seed2`) is compared over its seeds too. Needs the extra `stats`.

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
    settings = Settings(tuple(metrics), alpha, seed, resamples)
    if isinstance(models, (str, PathLike)):
        found, empty = models_below(Path(models))
        done = compare_all({model.name: model for model in found}, settings, skip=True)
        return replace(done, notes=[*(left_out(folder) for folder in empty), *done.notes])
    if isinstance(models, Mapping):
        return compare_all(models, settings)
    return compare_all({f"model{i}": data for i, data in enumerate(models, 1)}, settings)


def left_out(folder: Path) -> str:
    """What is said of a model without metrics."""
    return f"{folder}: no {FILE_NAME} in this folder, left out"


def compare_all(models: Mapping[str, ModelData], settings: Settings, *, skip: bool = False) -> Paired:
    """Every two of these models. Raises EvaluationError, and LogError for two that cannot be compared.

    With `skip`, for models that nobody has chosen, such two are left out with a note, as long as others remain.
    """
    if len(models) < 2:
        raise EvaluationError(TOO_FEW)
    read = {name: model_of(data, settings.metrics) for name, data in models.items()}
    comparisons: list[Comparison] = []
    notes: list[str] = []
    how: dict[str, Any] = {"alpha": settings.alpha, "seed": settings.seed, "resamples": settings.resamples}
    for a, b in combinations(read, 2):
        try:
            comparisons.append(compare(read[a], read[b], (a, b), settings.metrics, **how))
        except LogError as error:
            if not skip:
                raise
            notes.append(f"{a} and {b} are not compared: {error}")
    if not comparisons:
        raise EvaluationError("; ".join(("no two of these models can be compared", *notes)))
    return Paired(comparisons, settings.seed, settings.resamples, notes)


def model_of(data: ModelData, metrics: Sequence[str]) -> Model:
    """The records of one model, wherever they are."""
    if isinstance(data, TracksResult):
        records = [
            Record(m.od_pair, m.real_traj_idx, {name: getattr(m, name) for name in metrics})
            for m in data.metrics.trajectory_metrics
        ]
        return Model(data.gen.path, msgspec.to_builtins(data.metrics.metadata), records)
    if isinstance(data, Found):
        return read_runs(data.folder, data.files, metrics)
    if not isinstance(data, (str, PathLike)):
        return frame_model(data, metrics)
    path = Path(data)
    return read_runs(path, runs_of(path), metrics)


def read_runs(folder: Path, files: Mapping[str, Path], metrics: Sequence[str]) -> Model:
    """A model of one run, or of one for each seed. Raises LogError where runs do not go together."""
    if not files:
        raise EvaluationError(f"{folder}: no {FILE_NAME} in this folder")
    runs = [(seed, read_model(file, metrics)) for seed, file in files.items()]
    for _, run in runs[1:]:
        check(runs[0][1], run, metrics)
    return merged(folder, runs, metrics)
