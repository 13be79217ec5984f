"""The metrics of an investigation: one episode's, and the summary of many, under the names of the metrics reference.

Steps are all actions of an episode, the diagnosis and calls with an error included. A call with an error (of an unknown
device) was not made: it costs nothing and is no diagnostic action. Averages of a summary are weighted by the size of
the network, except the wall time and the breakdown by fault type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from watchkeeper.detectors.incidents.faults import BASE_TYPES, FAULT_TYPES
from watchkeeper.detectors.incidents.tools import COST, Tool

# No diagnosis was given.
NO_ANSWER = "none"
# Tools whose packets start at the broker: it is their source.
FROM_BROKER = frozenset({Tool.PING, Tool.TRACEROUTE})
# Cost of a step that counts as 1 in the normalised cost.
COST_SCALE = 5.0

# Rewards: for a tool's use, per unit of its cost; for a call of an unknown device; for a diagnosis with both, one or
# none of type and location right.
COST_REWARD, ERROR_REWARD = -0.1, -0.5
RIGHT_REWARD, HALF_REWARD, WRONG_REWARD = 10.0, 2.0, -5.0


@dataclass(slots=True)
class EpisodeLog:
    """What happened in one episode, however it was played."""

    network_size: int
    total_edges: int
    max_episode_steps: int
    truth: tuple[str, str]
    """Type and location of the fault."""
    ends: tuple[str, ...]
    """The fault's device, or the two ends of its link."""
    broker: str
    calls: list[tuple[Tool, str]] = field(default_factory=list)
    steps: int = 0
    errors: int = 0
    total_reward: float = 0.0
    discovered_nodes: int = 0
    discovered_edges: int = 0
    predicted: tuple[str, str] | None = None
    wall_time_seconds: float = 0.0


class EpisodeMetrics(msgspec.Struct, frozen=True):
    """All metrics of one episode, in the order of the reference."""

    diagnosis_success: bool
    network_size: int
    steps: int
    normalized_steps: float
    total_reward: float
    tool_cost: float
    tool_cost_normalized: float
    tool_error_count: int
    tool_error_rate: float
    topology_coverage: float
    node_coverage: float
    edge_coverage: float
    evidence_sufficiency: float
    redundancy_count: int
    redundancy_rate: float
    location_correct: bool
    steps_per_device: float
    cost_efficiency: float
    wall_time_seconds: float
    ground_truth_type: str
    ground_truth_location: str
    predicted_type: str
    predicted_location: str
    composite_episode_score: float


def answer_reward(predicted: tuple[str, str], truth: tuple[str, str]) -> float:
    """What a diagnosis is worth."""
    right = sum(a == b for a, b in zip(predicted, truth, strict=True))
    return (WRONG_REWARD, HALF_REWARD, RIGHT_REWARD)[right]


def episode_metrics(log: EpisodeLog) -> EpisodeMetrics:
    """The metrics of one episode."""
    predicted = log.predicted or (NO_ANSWER, NO_ANSWER)
    success = predicted == log.truth
    cost = sum(COST[tool] for tool, _ in log.calls)
    cost_normalized = min(1.0, cost / (COST_SCALE * max(1, log.steps)))
    relevant = sum(target in log.ends or (tool in FROM_BROKER and log.broker in log.ends) for tool, target in log.calls)
    redundant = len(log.calls) - len(set(log.calls))
    nodes, edges = log.discovered_nodes / log.network_size, log.discovered_edges / log.total_edges
    return EpisodeMetrics(
        diagnosis_success=success,
        network_size=log.network_size,
        steps=log.steps,
        normalized_steps=log.steps / log.max_episode_steps,
        total_reward=log.total_reward,
        tool_cost=cost,
        tool_cost_normalized=cost_normalized,
        tool_error_count=log.errors,
        tool_error_rate=_share(log.errors, log.errors + log.steps),
        topology_coverage=(nodes + edges) / 2.0,
        node_coverage=nodes,
        edge_coverage=edges,
        evidence_sufficiency=_share(relevant, len(log.calls)),
        redundancy_count=redundant,
        redundancy_rate=_share(redundant, len(log.calls)),
        location_correct=predicted[1] == log.truth[1],
        steps_per_device=log.steps / log.network_size,
        cost_efficiency=success / (1.0 + cost_normalized),
        wall_time_seconds=log.wall_time_seconds,
        ground_truth_type=log.truth[0],
        ground_truth_location=log.truth[1],
        predicted_type=predicted[0],
        predicted_location=predicted[1],
        composite_episode_score=log.total_reward,
    )


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


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float | None:
    if not values:
        return None
    if weights is None:
        return float(sum(values)) / len(values)
    return float(sum(v * w for v, w in zip(values, weights, strict=True))) / sum(weights)
