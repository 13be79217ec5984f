"""What a shift changed: each shifted episode minus its own baseline, metric by metric, with a paired test.

Shapiro-Wilk chooses between the paired t-test and Wilcoxon's; p-values are corrected over all shifts and metrics of the
run together (paired/stats.py). A difference is shifted minus baseline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from watchkeeper.evaluation.conflicts.direction import worse
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.stats import compare_models_paired, correct
from watchkeeper.evaluation.shifts.deviation import Deviation
from watchkeeper.evaluation.shifts.flown import Pair, ShiftKey
from watchkeeper.streams.simulate.shift import SHIFT_KINDS

SHIFTED, OWN_BASELINE = "shifted", "baseline"
NO_DIFFERENCE = "no difference"


class Effect(msgspec.Struct, frozen=True):
    """One shift and one metric."""

    target_agent: str
    shift_type: str
    shift_value: float | str
    unit: str
    metric: str
    differences: dict[str, float]
    """Shifted minus baseline, by seed; NaN where one of the two is not a number."""
    tested: PairedResult
    worse: bool | None
    """Whether the mean difference is one for the worse; None where the metric has no better side or nothing differs."""

    @property
    def key(self) -> ShiftKey:
        """Which shift."""
        return ShiftKey(self.target_agent, self.shift_type, self.shift_value)

    @property
    def verdict(self) -> str:
        """In words."""
        r = self.tested
        if math.isnan(r.p_value):
            return "not tested"
        if r.mean_difference == 0.0 and r.std_difference == 0.0:
            return NO_DIFFERENCE
        way = {True: "worse", False: "better", None: "different"}[self.worse]
        if r.significant_holm:
            return way
        return f"{way}, uncorrected" if r.significant else "not significant"


def effects(
    groups: Mapping[ShiftKey, Sequence[Pair]], metrics: Sequence[str], *, alpha: float, seed: int, resamples: int
) -> list[Effect]:
    """Every shift by every metric."""
    results: list[PairedResult] = []
    owners: list[tuple[ShiftKey, str, dict[str, float]]] = []
    for key, pairs in groups.items():
        for metric in metrics:
            after, before = ([float(pair[side].metrics[metric]) for pair in pairs] for side in (0, 1))
            results.append(
                compare_models_paired(
                    after, before, SHIFTED, OWN_BASELINE, metric, alpha, seed=seed, resamples=resamples
                )
            )
            by_seed = {pair[0].seed: a - b for pair, a, b in zip(pairs, after, before, strict=True)}
            owners.append((key, metric, by_seed))
    return [
        Effect(*key, unit_of(key.kind), metric, by_seed, result, worse(metric, result.mean_difference))
        for (key, metric, by_seed), result in zip(owners, correct(results, alpha), strict=True)
    ]


def unit_of(kind: str) -> str:
    """The unit of a kind that we know; empty for others."""
    return SHIFT_KINDS[kind].unit if kind in SHIFT_KINDS else ""


def track_summary(rows: Sequence[Deviation]) -> list[dict[str, Any]]:
    """By shift: means over the seeds of the shifted agent's figures, and of those of all others."""
    groups: dict[ShiftKey, list[Deviation]] = {}
    for row in rows:
        groups.setdefault(ShiftKey(row.target_agent, row.shift_type, row.shift_value), []).append(row)
    summary = []
    for key, mine in groups.items():
        target = [row for row in mine if row.is_target]
        others = [row for row in mine if not row.is_target]
        farthest = max(others, key=lambda row: row.dtw_m, default=None)
        summary.append(
            {
                **key._asdict(),
                "episodes": len({row.seed for row in mine}),
                "target_dtw_m": _mean([row.dtw_m for row in target]),
                "target_dtw_per_point_m": _mean([row.dtw_per_point_m for row in target]),
                "target_hausdorff_m": _mean([row.hausdorff_m for row in target]),
                "target_dtw_less_own_m": _mean([row.dtw_less_own_m for row in target]),
                "target_dtw_per_point_less_own_m": _mean([row.dtw_per_point_less_own_m for row in target]),
                "others_dtw_m": _mean([row.dtw_m for row in others]),
                "others_dtw_per_point_m": _mean([row.dtw_per_point_m for row in others]),
                "farthest_other": "" if farthest is None or farthest.dtw_m == 0.0 else farthest.agent,
                "farthest_other_dtw_m": math.nan if farthest is None else farthest.dtw_m,
            }
        )
    return summary


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
