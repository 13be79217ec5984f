"""The Gymnasium environment: a simulated network with one fault, tools to ask about it, and a diagnosis to give.

Action, four whole numbers: what (0 … 5 a tool, in the order of `Tool`; 6 the diagnosis), the slot of a device, the
fault type (in the order of FAULT_TYPES) and whether the fault is on the device (0) or on its uplink (1). Tools look at
the first two, the diagnosis at the last three.

Observation, by slot in the order in which devices became known (the broker first, then all that the alarms name):

| key | shape | what |
|---|---|---|
| device | slots | 0 unknown, else 1 + `Device` |
| sensor | slots | 0 none, else 1 + the stream's `Kind` |
| parent | slots | slot of the device towards the broker, -1 none |
| symptoms | slots × SYMPTOMS | what the alarms say about this stream, 0 nothing |
| readings | slots × READINGS | the last answer |
| read | slots × READINGS | which of them there are in it |
| last | 2 | what was done last and to which slot, -1 nothing |

Reward: minus a tenth of a tool's cost for each use, -0.5 for a call of an unknown device; the diagnosis gives 10 when
type and location are right, 2 when one of them is, else -5.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import COST, READINGS, SYMPTOMS, Report, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.evaluation.diagnosis.answers import SimulatedTools
from watchkeeper.evaluation.diagnosis.metrics import (
    COST_REWARD,
    ERROR_REWARD,
    CompetitionEvaluator,
    EpisodeLog,
    EpisodeMetrics,
    answer_reward,
    episode_metrics,
)
from watchkeeper.evaluation.diagnosis.network import SIZE_MAX, SIZE_MIN, Network, draw_network
from watchkeeper.streams.messages import KIND_OF_WORD

Obs = dict[str, NDArray[Any]]
Action = NDArray[np.int64]
DIAGNOSE = len(Tool)
_READING = {name: i for i, name in enumerate(READINGS)}


class NetworkTroubleshootingEnv(gymnasium.Env[Obs, Action]):
    """See the module's docstring. Each reset draws a network; options={"network_size": n} asks for one of n devices."""

    def __init__(
        self, *, min_devices: int = SIZE_MIN, max_devices: int = SIZE_MAX, max_episode_steps: int | None = None
    ) -> None:
        if not SIZE_MIN <= min_devices <= max_devices <= SIZE_MAX:
            raise ValueError(
                f"min_devices is {min_devices} and max_devices {max_devices}: not within {SIZE_MIN}..{SIZE_MAX}"
            )
        self._sizes = (min_devices, max_devices)
        self._limit = max_episode_steps
        slots, far = SIZE_MAX, np.finfo(np.float32).max
        self.action_space = spaces.MultiDiscrete([DIAGNOSE + 1, slots, len(FAULT_TYPES), 2])
        self.observation_space = spaces.Dict(  # type: ignore[assignment]  # its stubs know no dict of arrays
            {
                "device": spaces.Box(0, 1 + max(Device), (slots,), np.int8),
                "sensor": spaces.Box(0, 1 + len(KIND_OF_WORD), (slots,), np.int8),
                "parent": spaces.Box(-1, slots - 1, (slots,), np.int16),
                "symptoms": spaces.Box(-far, far, (slots, len(SYMPTOMS)), np.float32),
                "readings": spaces.Box(-far, far, (slots, len(READINGS)), np.float32),
                "read": spaces.MultiBinary((slots, len(READINGS))),
                "last": spaces.Box(-1, slots, (2,), np.int16),
            }
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """A new network with a new fault."""
        super().reset(seed=seed)
        size = (options or {}).get("network_size") or int(self.np_random.integers(self._sizes[0], self._sizes[1] + 1))
        network = draw_network(self.np_random, size, (options or {}).get("fault_type"))
        return self.begin(network), {}

    def begin(self, network: Network) -> Obs:
        """Start an episode on a given network."""
        self.network = network
        self._tools = SimulatedTools(network, self.np_random)
        whole, fault = network.topology, network.fault
        size = len(whole)
        limit = self._limit or 2 * size + 20
        ends = whole.ends(fault.location)
        self.log = EpisodeLog(size, size - 1, limit, (fault.type, fault.location), ends, whole.broker)
        self.known = Topology(whole.broker)
        self.slots = [whole.broker]
        self._over = False
        for symptom in network.symptoms:
            self._reveal(symptom.sensor)
        self._count()
        return self._observe(None, (-1, -1))

    def step(self, action: Action) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Ask a tool, or give the diagnosis, which ends the episode."""
        if self._over:
            raise RuntimeError("the episode is over: call reset()")
        what, slot, fault_type, on_link = (int(number) for number in action)
        self.log.steps += 1
        report: Report | None = None
        info: dict[str, Any] = {}
        terminated = False
        if slot >= len(self.slots):
            self.log.errors += 1
            reward = ERROR_REWARD
            info["tool_error"] = f"slot {slot} is empty: {len(self.slots)} devices are known"
        elif what == DIAGNOSE:
            reward, terminated = self._judge(self.slots[slot], fault_type, bool(on_link)), True
        else:
            tool, target = Tool(what), self.slots[slot]
            report = info["report"] = self._tools.ask(tool, target)
            self.log.calls.append((tool, target))
            reward = COST_REWARD * COST[tool]
            for device, _, _ in report.neighbours:
                self._reveal(device)
        self.log.total_reward += reward
        self._count()
        truncated = not terminated and self.log.steps >= self.log.max_episode_steps
        self._over = terminated or truncated
        return self._observe(report, (what, slot)), reward, terminated, truncated, info

    def _judge(self, device: str, fault_type: int, on_link: bool) -> float:
        # the broker has no uplink: such a diagnosis is about the broker itself
        on_link = on_link and device in self.known.parent
        predicted = (FAULT_TYPES[fault_type], self.known.uplink(device) if on_link else device)
        self.log.predicted = predicted
        return answer_reward(predicted, self.log.truth)

    def _reveal(self, device: str) -> None:
        whole = self.network.topology
        for hop in whole.path(device)[1:]:
            if self.known.add(hop, whole.kind[hop], whole.parent[hop]):
                self.slots.append(hop)

    def _count(self) -> None:
        self.log.discovered_nodes = len(self.known)
        self.log.discovered_edges = len(self.known.parent)

    def _observe(self, report: Report | None, last: tuple[int, int]) -> Obs:
        obs: Obs = {
            "device": np.zeros(SIZE_MAX, np.int8),
            "sensor": np.zeros(SIZE_MAX, np.int8),
            "parent": np.full(SIZE_MAX, -1, np.int16),
            "symptoms": np.zeros((SIZE_MAX, len(SYMPTOMS)), np.float32),
            "readings": np.zeros((SIZE_MAX, len(READINGS)), np.float32),
            "read": np.zeros((SIZE_MAX, len(READINGS)), np.int8),
            "last": np.array(last, np.int16),
        }
        slot_of = {device: i for i, device in enumerate(self.slots)}
        for device, i in slot_of.items():
            kind = self.known.kind[device]
            obs["device"][i] = 1 + kind
            if kind is Device.SENSOR:
                obs["sensor"][i] = 1 + KIND_OF_WORD[sensor_kind(device)]
            if device in self.known.parent:
                obs["parent"][i] = slot_of[self.known.parent[device]]
        for symptom in self.network.symptoms:
            obs["symptoms"][slot_of[symptom.sensor], SYMPTOMS.index(symptom.word)] = symptom.size
        for device, readings in (report.readings if report else {}).items():
            for name, value in readings.items():
                obs["readings"][slot_of[device], _READING[name]] = value
                obs["read"][slot_of[device], _READING[name]] = 1
        return obs


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
