"""`watchkeeper.evaluate.shifts`: what does it change when one aircraft begins otherwise, and is that chance?

Every shifted episode is compared with its own baseline of the same seed (flown.py): the metrics of `evaluate.conflicts`
by paired tests (effects.py), the tracks by DTW and Hausdorff distance (deviation.py). command.py is the same from a
terminal; make.py simulates such episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from watchkeeper.evaluation.conflicts.api import EpisodeData
from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.direction import HEADLINES
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shifts.deviation import Deviation, deviations
from watchkeeper.evaluation.shifts.effects import Effect, effects, track_summary
from watchkeeper.evaluation.shifts.flown import Flown, Pair, ShiftKey, paired, read
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame

_KEY = {"target_agent": TEXT, "shift_type": TEXT, "shift_value": TEXT}
_FIGURES = (
    "model1_mean", "model2_mean", "mean_difference", "median_difference", "std_difference", "ci_low", "ci_high",
    "cohens_d", "p_value", "p_holm", "p_bh",
)  # fmt: skip
# Ours for the two sides of a paired test.
_RENAMED = {"model1_mean": "shifted_mean", "model2_mean": "baseline_mean"}
TEST_COLUMNS = {
    **_KEY, "unit": TEXT, "metric": TEXT, "n_pairs": COUNT,
    **{_RENAMED.get(name, name): NUMBER for name in _FIGURES}, "test_name": TEXT, "verdict": TEXT,
}  # fmt: skip
TRACK_COLUMNS = {
    **_KEY, "seed": TEXT, "agent": TEXT, "is_target": FLAG, "points_baseline": COUNT, "points_shifted": COUNT,
    **dict.fromkeys((
        "start_m", "dtw_m", "dtw_per_point_m", "hausdorff_m",
        "dtw_less_own_m", "dtw_per_point_less_own_m", "hausdorff_less_own_m",
    ), NUMBER),
}  # fmt: skip
TABLES = ("tests", "tracks")


@dataclass(frozen=True, slots=True)
class Shifts:
    """What every shift changed, and how far it moved everybody's track."""

    detector: HallucinationDetector
    groups: dict[ShiftKey, list[Pair]]
    effects: list[Effect]
    deviations: list[Deviation]
    notes: list[str]
    alpha: float

    @property
    def tracks(self) -> list[dict[str, Any]]:
        """By shift the mean distances of the shifted agent and of all others."""
        return track_summary(self.deviations)

    def to_frame(self, backend: Backend | None = None, *, table: str = "tests") -> Any:
        """One row per shift and metric; with `table="tracks"` one per shifted episode and agent, in metres."""
        if table not in TABLES:
            raise ValueError(f"table {table!r}: allowed are {', '.join(TABLES)}")
        if table == "tracks":
            rows = [msgspec.to_builtins(row) for row in self.deviations]
            return rows_frame(
                [row | {"shift_value": _word(row["shift_value"])} for row in rows], TRACK_COLUMNS, backend
            )
        return rows_frame([_test_row(effect) for effect in self.effects], TEST_COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: what `--out` writes."""
        return {
            "settings": asdict(self.detector) | {"alpha": self.alpha},
            "episodes": {
                "pairs": sum(map(len, self.groups.values())),
                "baselines": len({id(baseline) for pairs in self.groups.values() for _, baseline in pairs}),
            },
            "notes": self.notes,
            "effects": [msgspec.to_builtins(effect) | {"verdict": effect.verdict} for effect in self.effects],
            "tracks": self.tracks,
            "track_list": msgspec.to_builtins(self.deviations),
        }


def shifts(
    episodes: EpisodeData | Sequence[EpisodeData],
    *,
    metrics: Sequence[str] = HEADLINES,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    jobs: int = 0,
    quiet: bool = True,
    **settings: Any,
) -> Shifts:
    """Compare episodes in which one agent was shifted with their baselines of the same seed.

    An episode is what `evaluate.conflicts` takes; its metadata says `seed`, `target_agent`, `shift_type` and
    `shift_value`, and a baseline has the `shift_type` "baseline". `settings` are those of HallucinationDetector. Needs
    the extra `stats`. `watchkeeper.evaluation.shifts.make.episodes` simulates some.

    >>> import watchkeeper as wk
    >>> def two(seed, lon, **meta):
    ...     place = {"lat": [50.0] * 2, "lon": [8.0, lon], "seed": [seed] * 2}
    ...     return {"t": [0, 0], "agent": ["A", "B"], **place, **{key: [value] * 2 for key, value in meta.items()}}
    >>> moved = {"target_agent": "B", "shift_type": "position_lon", "shift_value": 0.1}
    >>> made = [two(seed, lon, **meta) for seed in range(3) for lon, meta in ((8.2, {}), (8.3, moved))]
    >>> result = wk.evaluate.shifts(made, metrics=["min_separation_nm"])
    >>> round(result.effects[0].tested.mean_difference, 2), round(result.deviations[1].dtw_m)
    (3.86, 7147)
    """
    if problem := missing_extra("evaluate.shifts", "statsmodels", "stats"):
        raise ImportError(problem)
    check_metrics(metrics)
    detector = HallucinationDetector(**settings)
    given: list[Any] = list(episodes) if isinstance(episodes, (list, tuple)) else [episodes]
    flown = read(given, detector, jobs=jobs, quiet=quiet)
    return compared(flown, detector, metrics, alpha=alpha, seed=seed, resamples=resamples)


def compared(
    flown: Sequence[Flown],
    detector: HallucinationDetector,
    metrics: Sequence[str],
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Shifts:
    """The same for episodes that were read already."""
    groups, notes = paired(flown)
    rows: list[Deviation] = []
    for key, pairs in groups.items():
        found, remarks = deviations(key, pairs)
        rows += found
        notes += remarks
        if lost := sum(shifted.lost_at_start for shifted, _ in pairs):
            notes.append(f"{key.words}: {lost} of {len(pairs)} shifted episodes begin with separation lost")
    tested = effects(groups, metrics, alpha=alpha, seed=seed, resamples=resamples)
    return Shifts(detector, groups, tested, rows, notes, alpha)


def check_metrics(metrics: Sequence[str]) -> None:
    """Raises EvaluationError for a name that is no metric."""
    if unknown := [name for name in metrics if name not in METRICS + BESIDE]:
        raise EvaluationError(f"metric {unknown[0]!r}: unknown; there are: {', '.join(METRICS + BESIDE)}")
    if not metrics:
        raise EvaluationError("no metric to compare")


def _test_row(effect: Effect) -> dict[str, Any]:
    r = effect.tested
    return {
        "target_agent": effect.target_agent, "shift_type": effect.shift_type,
        "shift_value": _word(effect.shift_value), "unit": effect.unit, "metric": effect.metric, "n_pairs": r.n_pairs,
        **{_RENAMED.get(name, name): getattr(r, name) for name in _FIGURES},
        "test_name": r.test_name, "verdict": effect.verdict,
    }  # fmt: skip


def _word(size: float | str) -> str:
    return size if isinstance(size, str) else f"{size:g}"
