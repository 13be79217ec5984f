"""Plays simulated episodes: which agents there are, and one episode of one of them.

Every agent gets the same networks: an episode's network depends on the seed and the episode's number only.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from watchkeeper.evaluation.diagnosis.agents import (
    Agent,
    DiagnoserAgent,
    NearestAlarmAgent,
    RandomAgent,
    ScanEverythingAgent,
)
from watchkeeper.evaluation.diagnosis.env import MetricsCollectorWrapper, NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics

OURS = "watchkeeper"
AGENTS: dict[str, Callable[[int], Agent]] = {
    OURS: lambda _seed: DiagnoserAgent(),
    "scan everything": lambda _seed: ScanEverythingAgent(),
    "nearest alarm": lambda _seed: NearestAlarmAgent(),
    "random": RandomAgent,
}


class Task(msgspec.Struct, frozen=True):
    """One episode of one agent."""

    agent: str
    seed: int
    number: int
    min_devices: int
    max_devices: int


class Played(msgspec.Struct, frozen=True):
    """How it went; `form` is the form of the fault, which the metrics do not name."""

    agent: str
    form: str
    metrics: EpisodeMetrics


def play(task: Task) -> Played:
    """Play one episode from its first observation to its end."""
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv(min_devices=task.min_devices, max_devices=task.max_devices))
    drawn = int(np.random.SeedSequence((task.seed, task.number)).generate_state(1)[0])
    agent = AGENTS[task.agent](drawn)
    obs, _ = env.reset(seed=drawn)
    done = False
    while not done:
        obs, _, terminated, truncated, _ = env.step(agent.act(obs))
        done = terminated or truncated
    assert env.last_metrics is not None
    unwrapped = env.unwrapped
    assert isinstance(unwrapped, NetworkTroubleshootingEnv)
    return Played(task.agent, unwrapped.network.fault.form.word, env.last_metrics)
