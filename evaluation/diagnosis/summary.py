"""The summary of many episodes, under the names of the metrics reference.

Averages are weighted by the size of the network, except the wall time and the breakdown by fault type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from watchkeeper.detectors.incidents.faults import BASE_TYPES, FAULT_TYPES
from watchkeeper.evaluation.diagnosis.metrics import NO_ANSWER, EpisodeMetrics

# Name in the summary to name in an episode: averages weighted by network size.
_AVERAGES: dict[str, str] = {
    "diagnosis_success_rate": "diagnosis_success",
    "location_accuracy": "location_correct",
    "avg_steps": "steps",
    "avg_steps_per_device": "steps_per_device",
    "normalized_steps": "normalized_steps",
    "cost_efficiency": "cost_efficiency",
    "tool_cost_index": "tool_cost_normalized",
    "tool_error_rate": "tool_error_rate",
    "topology_coverage": "topology_coverage",
    "evidence_sufficiency": "evidence_sufficiency",
    "redundancy_rate": "redundancy_rate",
    "avg_total_reward": "total_reward",
    "composite_episode_score": "composite_episode_score",
}


class CompetitionEvaluator:
    """Collects episodes and sums them up."""

    def __init__(self, episodes: Iterable[EpisodeMetrics] = ()) -> None:
        self.episodes: list[EpisodeMetrics] = list(episodes)

    def add(self, metrics: EpisodeMetrics) -> None:
        """One more episode."""
        self.episodes.append(metrics)

    def compute_summary(self) -> dict[str, Any]:
        """The aggregate metrics; averages of no episodes are None."""
        episodes = self.episodes
        weights = [max(1, m.network_size) for m in episodes]
        answers = [(m.ground_truth_type, m.predicted_type) for m in episodes]
        f1 = f1_scores(answers)
        average = {name: _mean([getattr(m, of) for m in episodes], weights) for name, of in _AVERAGES.items()}
        return {
            "episodes": len(episodes),
            "diagnosis_success_rate": average.pop("diagnosis_success_rate"),
            "fault_type_macro_f1": _mean(list(f1.values())),
            "fault_type_macro_f1_over": list(f1),
            "fault_type_macro_f1_base": sum(f1.get(t, 0.0) for t in BASE_TYPES) / len(BASE_TYPES) if episodes else None,
            **average,
            "avg_wall_time_seconds": _mean([m.wall_time_seconds for m in episodes]),
            "confusion_matrix": confusion_matrix(answers),
            "per_fault_type": {
                t: _breakdown(episodes, t) for t in FAULT_TYPES if any(t == truth for truth, _ in answers)
            },
        }


def f1_scores(answers: Sequence[tuple[str, str]]) -> dict[str, float]:
    """F1 of each fault type that occurs in truth or prediction; without a diagnosis, a type is missed."""
    pairs = Counter(answers)
    truths, predictions = Counter(t for t, _ in answers), Counter(p for _, p in answers)
    return {t: 2.0 * pairs[t, t] / (truths[t] + predictions[t]) for t in FAULT_TYPES if truths[t] + predictions[t]}


def confusion_matrix(answers: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Truth to prediction to how often; `none` is no diagnosis."""
    pairs = Counter(answers)
    rows = [t for t in FAULT_TYPES if any(truth == t for truth, _ in pairs)]
    columns = [p for p in (*FAULT_TYPES, NO_ANSWER) if p in rows or any(predicted == p for _, predicted in pairs)]
    return {t: {p: pairs[t, p] for p in columns} for t in rows}


def _breakdown(episodes: Sequence[EpisodeMetrics], fault_type: str) -> dict[str, float | int | None]:
    own = [m for m in episodes if m.ground_truth_type == fault_type]
    return {
        "episodes": len(own),
        "success_rate": _mean([m.diagnosis_success for m in own]),
        "avg_steps": _mean([m.steps for m in own]),
        "location_accuracy": _mean([m.location_correct for m in own]),
    }


def _mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float | None:
    if not values:
        return None
    if weights is None:
        return float(sum(values)) / len(values)
    return float(sum(v * w for v, w in zip(values, weights, strict=True))) / sum(weights)
