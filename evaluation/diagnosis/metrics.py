"""The metrics of one episode, under the names of the metrics reference. summary.py has those of many.

Steps are the valid actions of an episode, the diagnosis included, which costs nothing. A call with an error (of an
unknown device) was not made: it is no step, costs nothing and is no diagnostic action. Discover and scan learn the
network; they cost, and count neither for evidence nor for redundancy. Filled in by env.py and streamed.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from watchkeeper.detectors.incidents.tools import COST, Tool

# No diagnosis was given.
NO_ANSWER = "none"
# Tools that send packets from a source to a destination; all others are asked of one target.
BETWEEN = frozenset({Tool.PING, Tool.TRACEROUTE})
# Tools that learn the network and do not look for its fault.
DISCOVERY = frozenset({Tool.DISCOVER, Tool.SCAN})
# Cost of a step that counts as 1 in the normalised cost.
COST_SCALE = 5.0

# Rewards: for a tool's use, per unit of its cost; for a call of an unknown device; for a diagnosis with both, one or
# none of type and location right.
COST_REWARD, ERROR_REWARD = -0.1, -0.5
RIGHT_REWARD, HALF_REWARD, WRONG_REWARD = 10.0, 2.0, -5.0


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool, of a target, or from a source to a destination."""

    tool: Tool
    target: str | None = None
    source: str | None = None
    destination: str | None = None

    @classmethod
    def of(cls, tool: Tool, device: str, source: str) -> Call:
        """The call of a tool: its packets go from the source to the device, or it asks the device alone."""
        return cls(tool, source=source, destination=device) if tool in BETWEEN else cls(tool, target=device)

    def touches(self, devices: Collection[str]) -> bool:
        """Whether one of these devices is its target, source or destination."""
        return any(device in devices for device in (self.target, self.source, self.destination) if device is not None)


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
    calls: list[Call] = field(default_factory=list)
    steps: int = 0
    """Valid actions."""
    errors: int = 0
    """Actions that could not be taken."""
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
    cost = sum(COST[call.tool] for call in log.calls)
    cost_normalized = min(1.0, cost / (COST_SCALE * max(1, log.steps)))
    diagnostic = [call for call in log.calls if call.tool not in DISCOVERY]
    relevant = sum(call.touches(log.ends) for call in diagnostic)
    redundant = len(diagnostic) - len(set(diagnostic))
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
        evidence_sufficiency=_share(relevant, len(diagnostic)),
        redundancy_count=redundant,
        redundancy_rate=_share(redundant, len(diagnostic)),
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


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
