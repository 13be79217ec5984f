"""Plays simulated episodes: which agents there are, another's agents by name, and one episode of one of them.

Every agent gets the same networks and the same noise, those of the episode's snapshot. Called by api.py, also in
processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec
from gymnasium import spaces

from watchkeeper.evaluation.diagnosis.agents import Agent, DiagnoserAgent
from watchkeeper.evaluation.diagnosis.baselines import NearestAlarmAgent, RandomAgent, ScanEverythingAgent
from watchkeeper.evaluation.diagnosis.collector import MetricsCollectorWrapper
from watchkeeper.evaluation.diagnosis.env import NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.episodes import Snapshot
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics
from watchkeeper.evaluation.shared.errors import AgentError, EvaluationError

OURS = "watchkeeper"
AGENTS: dict[str, Callable[[int], Agent]] = {
    OURS: lambda _seed: DiagnoserAgent(),
    "scan everything": lambda _seed: ScanEverythingAgent(),
    "nearest alarm": lambda _seed: NearestAlarmAgent(),
    "random": RandomAgent,
}


class Task(msgspec.Struct, frozen=True):
    """One episode of one agent; `maker` is module:name of another's agent, empty for one of AGENTS."""

    agent: str
    episode: Snapshot
    number: int = 0
    maker: str = ""


class Played(msgspec.Struct, frozen=True):
    """How it went; `form` is the form of the fault, which the metrics do not name."""

    agent: str
    form: str
    metrics: EpisodeMetrics


def maker_of(where: str) -> Callable[[spaces.Space[Any]], Agent]:
    """What makes another's agent, by module:name. Raises EvaluationError."""
    module, _, name = where.partition(":")
    try:
        made: Any = import_module(module)
        for part in name.split("."):
            made = getattr(made, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise EvaluationError(f"agent {where!r}: expected module:name of what makes an agent ({error})") from error
    if not callable(made):
        raise EvaluationError(f"agent {where!r}: is not callable")
    return made  # type: ignore[no-any-return]


def play(task: Task) -> Played:
    """Play one episode from its first observation to its end. Raises AgentError when another's agent fails."""
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv())
    if not task.maker:
        _play(env, AGENTS[task.agent](task.episode.seed), task)
    else:
        env.action_space.seed(task.episode.seed)
        try:
            _play(env, maker_of(task.maker)(env.action_space), task)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise AgentError(f"agent {task.agent!r} failed in episode {task.number}: {problem}") from error
    assert env.last_metrics is not None
    return Played(task.agent, task.episode.form, env.last_metrics)


def _play(env: MetricsCollectorWrapper, agent: Agent, task: Task) -> None:
    obs, _ = env.reset(seed=task.episode.seed, options={"network": task.episode.network()})
    done = False
    while not done:
        obs, _, terminated, truncated, _ = env.step(agent.act(obs))
        done = terminated or truncated
