"""Our environment with another's agent, and our diagnoser in another's environment, by the calls of the reference."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import foreign_env
import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.detectors.incidents.tools import Tool
from watchkeeper.evaluation.diagnosis import (
    ForeignDiagnoser,
    MetricsCollectorWrapper,
    NetworkTroubleshootingEnv,
    View,
)
from watchkeeper.evaluation.diagnosis.api import diagnosis
from watchkeeper.evaluation.shared.errors import AgentError


class Tuples:
    """The foreign environment's words."""

    tools = frozenset({Tool.SCAN, Tool.PING, Tool.TRACEROUTE, Tool.STATUS, Tool.INTERFACES})

    def __init__(self) -> None:
        self.last: tuple[str, ...] = ()

    def view(self, obs: Any) -> View:
        links = tuple((a, b) for a, b in obs["connections"])
        readings = None if obs["step"] == 0 else self.readings(obs["result"])
        return View("r0", tuple(obs["devices"]), links, obs["step"] == 0, readings, whole=bool(links))

    def readings(self, result: Any) -> dict[str, dict[str, float]] | None:
        what, *rest = self.last
        if what == "ping":
            return {rest[1]: {"answered": float(result["reply"]), "rtt_s": result.get("ms", 0.0) / 1000.0}}
        if what == "traceroute":
            # nothing came back, and it does not say from where
            if not result:
                return None
            return {hop: {"answered": 1.0, "rtt_s": ms / 1000.0, "hop": i} for i, (hop, ms) in enumerate(result, 1)}
        if what == "status":
            return {rest[0]: {"answered": float(result["up"])}}
        if what == "interfaces":
            if result is None:
                return {rest[0]: {"answered": 0.0}}
            return {
                peer: {
                    "carrier": float(port["lamp"]), "heard": float(port["traffic"]), "filtered": float(port["refused"]),
                    "backlog_s": port["queue_ms"] / 1000.0,
                }
                for peer, port in result.items()
            }  # fmt: skip
        return {}

    def ask(self, tool: Tool, source: str, device: str) -> tuple[str, ...]:
        between = (source, device) if tool in (Tool.PING, Tool.TRACEROUTE) else (device,)
        self.last = (tool.word, *(() if tool is Tool.SCAN else between))
        return self.last

    def answer(self, fault_type: str, ends: tuple[str, ...]) -> tuple[str, ...]:
        return ("diagnose", fault_type, " ".join(ends))


def test_the_fixture_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(foreign_env.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "random", "collections", "dataclasses", "itertools", "typing"}


def test_our_diagnoser_plays_in_anothers_environment() -> None:
    env = foreign_env.MetricsCollectorWrapper(foreign_env.NetworkTroubleshootingEnv())
    agent = ForeignDiagnoser(Tuples())
    for seed in range(1000, 1200):
        obs, _ = env.reset(seed=seed)
        done = False
        while not done:
            obs, _, terminated, truncated, _ = env.step(agent.act(obs))
            done = terminated or truncated
    episodes = env.evaluator.episodes
    assert len(episodes) == 200
    assert env.evaluator.compute_summary()["diagnosis_success_rate"] >= 0.98
    assert {m.shape for m in episodes if m.diagnosis_success} == {"line", "star", "ring"}
    assert max(m.steps for m in episodes) < env.env.max_episode_steps


def test_anothers_agent_plays_a_hundred_episodes_in_ours() -> None:
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv())
    agent = foreign_env.OutsideAgent(env.action_space)
    env.action_space.seed(0)
    for seed in range(100):
        obs, _ = env.reset(seed=seed)
        done = False
        while not done:
            obs, _, terminated, truncated, _ = env.step(agent.act(obs))
            done = terminated or truncated
        assert env.last_metrics is not None
    summary = env.evaluator.compute_summary()
    assert summary["episodes"] == 100
    # most slots are empty, and it does not know that
    assert 0.5 < summary["tool_error_rate"] < 1.0


def test_anothers_agent_plays_from_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--episodes",
        "3",
        "--devices",
        "4",
        "9",
        "--agents",
        "random",
        "--agent",
        "theirs=foreign_env:OutsideAgent",
    ]
    assert main(["evaluate", "diagnosis", *words, "--jobs", "1"]) == 0
    assert "theirs" in capsys.readouterr().out.splitlines()[1]


def test_anothers_agent_that_fails_is_named_with_its_episode(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AgentError, match="agent 'theirs' failed in episode 0: KeyError: 'no such key'"):
        diagnosis(episodes=2, devices=(4, 9), agents=[], outside={"theirs": "foreign_env:BrokenAgent"})
    words = ["--episodes", "2", "--devices", "4", "9", "--agent", "theirs=foreign_env:BrokenAgent", "--jobs", "1"]
    assert main(["evaluate", "diagnosis", *words]) == 1
    assert "agent 'theirs' failed in episode 0" in capsys.readouterr().err
