"""Another's environment and another's agent, with the calls that the usage example of the metrics reference shows.

No module of watchkeeper is imported here. The reference does not say what observations and actions hold: here actions
are tuples of words and observations name devices, which is our choice. Answers have no noise. The agent is given the
action space, as Gymnasium has it; the example does not show where an agent gets it from.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

TYPES = ("device_failure", "link_failure", "misconfiguration", "performance_degradation")
Link = frozenset[str]


class NetworkTroubleshootingEnv:
    """One network, one fault. Devices are r0 (where one sits), r1, r2, ...; a location is "r1" or "r1 r2"."""

    max_episode_steps = 60

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        rng = random.Random(seed)
        names = [f"r{i}" for i in range(rng.randint(4, 8))]
        shape = rng.choice(("line", "star", "ring"))
        pairs = [(names[0] if shape == "star" else a, b) for a, b in pairwise(names)]
        if shape == "ring":
            pairs.append((names[-1], names[0]))
        self.shape, self.names, self.links = shape, names, [frozenset(pair) for pair in pairs]
        self.fault_type = rng.choice(TYPES)
        on_device = self.fault_type == "device_failure"
        self.location: Link = frozenset({rng.choice(names)}) if on_device else rng.choice(self.links)
        self.known: set[str] = {names[0]}
        self.seen: set[Link] = set()
        self.steps = 0
        return self._obs(None), {}

    def step(self, action: tuple[str, ...]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.steps += 1
        what, *rest = action
        if what == "diagnose":
            right = rest[0] == self.fault_type and frozenset(rest[1].split()) == self.location
            return self._obs(None), 10.0 if right else -5.0, True, False, {"success": right}
        result = getattr(self, f"_{what}")(*rest)
        return self._obs(result), -0.1, False, self.steps >= self.max_episode_steps, {"success": False}

    def _obs(self, result: Any) -> dict[str, Any]:
        connections = sorted(tuple(sorted(link)) for link in self.seen)
        return {"step": self.steps, "devices": sorted(self.known), "connections": connections, "result": result}

    def _way(self, start: str, end: str) -> list[str] | None:
        """The shortest way that works."""
        dead = self.location if self.fault_type == "device_failure" else frozenset()
        stopped = self.location if self.fault_type in ("link_failure", "misconfiguration") else None
        queue, before = deque([start]), {start: ""}
        while queue and not {start, end} & dead:
            here = queue.popleft()
            if here == end:
                way = [end]
                while before[way[-1]]:
                    way.append(before[way[-1]])
                return way[::-1]
            for link in self.links:
                (other,) = link - {here} if here in link else {""}
                if other and other not in before and other not in dead and link != stopped:
                    before[other] = here
                    queue.append(other)
        return None

    def _scan(self) -> Any:
        """Everything that is wired up, working or not."""
        self.known, self.seen = set(self.names), set(self.links)
        return {"found": len(self.names)}

    def _ping(self, start: str, end: str) -> Any:
        way = self._way(start, end)
        if way is None:
            return {"reply": False}
        slow = self.fault_type == "performance_degradation"
        hops = [frozenset(pair) for pair in pairwise(way)]
        return {"reply": True, "ms": 5.0 * len(hops) + 800.0 * (slow and self.location in hops)}

    def _traceroute(self, start: str, end: str) -> Any:
        way = self._way(start, end) or []
        return [(hop, self._ping(start, hop)["ms"]) for hop in way[1:]]

    def _status(self, device: str) -> Any:
        return {"up": self._way(self.names[0], device) is not None}

    def _interfaces(self, device: str) -> Any:
        if self._way(self.names[0], device) is None:
            return None
        ports = {}
        for link in self.links:
            if device in link:
                (peer,) = link - {device}
                here = self.fault_type if link == self.location else ""
                dead = self.location == frozenset({peer}) and self.fault_type == "device_failure"
                ports[peer] = {
                    "lamp": here != "link_failure",
                    "traffic": not dead and here not in ("link_failure", "misconfiguration"),
                    "refused": 20 if here == "misconfiguration" else 0,
                    "queue_ms": 400 if here == "performance_degradation" else 0,
                }
        return ports


@dataclass
class Metrics:
    diagnosis_success: bool
    steps: int
    shape: str


class Evaluator:
    def __init__(self) -> None:
        self.episodes: list[Metrics] = []

    def compute_summary(self) -> dict[str, float]:
        return {"diagnosis_success_rate": sum(m.diagnosis_success for m in self.episodes) / len(self.episodes)}


class MetricsCollectorWrapper:
    def __init__(self, env: NetworkTroubleshootingEnv) -> None:
        self.env, self.evaluator, self.last_metrics = env, Evaluator(), None

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.env.reset(seed)

    def step(self, action: tuple[str, ...]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        result = self.env.step(action)
        if result[2] or result[3]:
            self.last_metrics = Metrics(result[4]["success"], self.env.steps, self.env.shape)  # type: ignore[assignment]
            self.evaluator.episodes.append(self.last_metrics)  # type: ignore[arg-type]
        return result


class OutsideAgent:
    """Knows that it is given observations and must give actions, and which actions there are: anything of them."""

    def __init__(self, action_space: Any) -> None:
        self.action_space = action_space

    def act(self, obs: Any) -> Any:
        assert obs is not None
        return self.action_space.sample()


class BrokenAgent(OutsideAgent):
    def act(self, obs: Any) -> Any:
        raise KeyError("no such key")
