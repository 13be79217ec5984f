"""Measures every episode that is played in the environment: the wrapper that the metrics reference shows.

Used as `MetricsCollectorWrapper(NetworkTroubleshootingEnv())`, by play.py and by anybody's agent.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium

from watchkeeper.evaluation.diagnosis.env import Action, NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.metrics import EpisodeMetrics, episode_metrics
from watchkeeper.evaluation.diagnosis.observation import Obs
from watchkeeper.evaluation.diagnosis.summary import CompetitionEvaluator


class MetricsCollectorWrapper(gymnasium.Wrapper[Obs, Action, Obs, Action]):
    """Measures every episode: `last_metrics` is the last one's, `evaluator` has them all."""

    def __init__(self, env: NetworkTroubleshootingEnv, evaluator: CompetitionEvaluator | None = None) -> None:
        super().__init__(env)
        self.evaluator = evaluator or CompetitionEvaluator()
        self.last_metrics: EpisodeMetrics | None = None
        self._troubleshooting = env
        self._began_s = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """See the environment."""
        result = self.env.reset(seed=seed, options=options)
        self._began_s = time.perf_counter()
        return result

    def step(self, action: Action) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """See the environment; the end of an episode adds its metrics."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            log = self._troubleshooting.log
            log.wall_time_seconds = time.perf_counter() - self._began_s
            self.last_metrics = episode_metrics(log)
            self.evaluator.add(self.last_metrics)
        return obs, float(reward), terminated, truncated, info
