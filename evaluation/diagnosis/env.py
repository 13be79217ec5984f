"""The Gymnasium environment: a simulated network with one fault, tools to ask about it, and a diagnosis to give.

Action, four whole numbers: what (0 … 5 a tool, in the order of `Tool`; 6 the diagnosis), the slot of a device, the slot
of another device, and the fault type (in the order of FAULT_TYPES). A ping or traceroute goes from the other device to
the device; the other tools ask the device and do not look at the rest. The diagnosis is about the device when both
slots are the same, else about the link between the two. An action that names an empty slot, or is no such four
numbers, is an error: nothing is asked.

observation.py has what an agent sees.

Reward: minus a tenth of a tool's cost for each use, -0.5 for an error; the diagnosis gives 10 when type and location
are right, 2 when one of them is, else -5. An episode ends with the diagnosis, or after 2 * devices + 20 actions.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import COST, Report, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, link_name
from watchkeeper.evaluation.diagnosis.metrics import (
    BETWEEN,
    COST_REWARD,
    ERROR_REWARD,
    Call,
    EpisodeLog,
    answer_reward,
)
from watchkeeper.evaluation.diagnosis.observation import ERROR, NOTHING, Obs, observation_space, observe
from watchkeeper.evaluation.diagnosis.simulated.answers import SimulatedTools
from watchkeeper.evaluation.diagnosis.simulated.draw import CYCLE_SIZE_MIN, CYCLES, draw_network
from watchkeeper.evaluation.diagnosis.simulated.network import SIZE_MAX, SIZE_MIN, Network

Action = NDArray[np.int64]
DIAGNOSE = len(Tool)
_LIMITS = (DIAGNOSE + 1, SIZE_MAX, SIZE_MAX, len(FAULT_TYPES))


class NetworkTroubleshootingEnv(gymnasium.Env[Obs, Action]):
    """See the module's docstring. Each reset draws a network, `cycles` of them with standby links.

    Options of a reset: network_size, fault_type, cycles (true or false), at_root (a fault of the broker); or network,
    a `Network` to play on.
    """

    def __init__(
        self,
        *,
        min_devices: int = SIZE_MIN,
        max_devices: int = SIZE_MAX,
        max_episode_steps: int | None = None,
        cycles: float = CYCLES,
    ) -> None:
        if not SIZE_MIN <= min_devices <= max_devices <= SIZE_MAX:
            raise ValueError(
                f"min_devices is {min_devices} and max_devices {max_devices}: not within {SIZE_MIN}..{SIZE_MAX}"
            )
        if not 0.0 <= cycles <= 1.0:
            raise ValueError(f"cycles is {cycles}, expected a share from 0 to 1")
        self._sizes = (min_devices, max_devices)
        self._cycles = cycles
        self._limit = max_episode_steps
        self.action_space = spaces.MultiDiscrete(list(_LIMITS))
        self.observation_space = observation_space()  # type: ignore[assignment]  # its stubs know no dict of arrays

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """A new network with a new fault."""
        super().reset(seed=seed)
        asked = dict(options or {})
        network = asked.pop("network", None)
        if network is None:
            network = self._draw(asked)
        elif asked:
            raise ValueError(f"option {next(iter(asked))!r} next to network: a given network is played as it is")
        return self._begin(network), {}

    def _draw(self, asked: dict[str, Any]) -> Network:
        size = asked.pop("network_size", None) or int(self.np_random.integers(self._sizes[0], self._sizes[1] + 1))
        cycles = asked.pop("cycles", None)
        if cycles is None:
            cycles = self.np_random.random() < self._cycles and size >= CYCLE_SIZE_MIN
        fault_type, at_root = asked.pop("fault_type", None), asked.pop("at_root", False)
        if asked:
            names = "network_size, fault_type, cycles, at_root, network"
            raise ValueError(f"option {next(iter(asked))!r} is none of {names}")
        return draw_network(self.np_random, size, fault_type, cycles=bool(cycles), at_root=bool(at_root))

    def _begin(self, network: Network) -> Obs:
        """Start an episode on a network."""
        self.network = network
        self._tools = SimulatedTools(network, self.np_random)
        whole, fault = network.topology, network.fault
        limit = self._limit or 2 * len(whole) + 20
        truth = (fault.type, fault.location)
        self.log = EpisodeLog(len(whole), len(whole.links()), limit, truth, whole.ends(fault.location))
        self.known = Topology(whole.broker)
        self.slots = [whole.broker]
        self._over = False
        for symptom in network.symptoms:
            self._reveal(symptom.sensor)
            # an alarm names the other ways of its stream too: the standby links over which its devices could send
            for hop in whole.path(symptom.sensor)[1:]:
                for peer in whole.standby.get(hop, ()):
                    if whole.kind[peer] <= Device.GATEWAY:
                        self._reveal(peer)
                        self.known.join(hop, peer)
        self._count()
        return self._observe(None, NOTHING)

    def step(self, action: Action) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Ask a tool, or give the diagnosis, which ends the episode."""
        if self._over:
            raise RuntimeError("the episode is over: call reset()")
        report: Report | None = None
        info: dict[str, Any] = {}
        terminated, done = False, ERROR
        try:
            what, slot, other, fault_type = self._checked(action)
        except ValueError as error:
            self.log.errors += 1
            reward = ERROR_REWARD
            info["tool_error"] = str(error)
        else:
            self.log.steps += 1
            done = (what, slot)
            if what == DIAGNOSE:
                reward, terminated = self._judge(self.slots[slot], self.slots[other], fault_type), True
            else:
                report = info["report"] = self._ask(Tool(what), self.slots[slot], self.slots[other])
                reward = COST_REWARD * COST[Tool(what)]
        self.log.total_reward += reward
        self._count()
        truncated = not terminated and self.log.steps + self.log.errors >= self.log.max_episode_steps
        self._over = terminated or truncated
        return self._observe(report, done), reward, terminated, truncated, info

    def _checked(self, action: Action) -> tuple[int, int, int, int]:
        """The four numbers of an action; a tool that has no source gets slot 0. Raises ValueError with the problem."""
        try:
            numbers = np.asarray(action, np.float64).ravel().tolist()
        except (TypeError, ValueError) as error:
            raise ValueError("an action is four whole numbers") from error
        if len(numbers) != len(_LIMITS) or any(n % 1.0 != 0.0 for n in numbers):
            raise ValueError("an action is four whole numbers")
        what, slot, other, fault_type = map(int, numbers)
        if not 0 <= what < _LIMITS[0]:
            raise ValueError(f"{what} is no tool: expected 0 to {DIAGNOSE}")
        if what != DIAGNOSE:
            fault_type, other = 0, other if Tool(what) in BETWEEN else 0
        if not 0 <= fault_type < _LIMITS[3]:
            raise ValueError(f"{fault_type} is no fault type: expected 0 to {_LIMITS[3] - 1}")
        for number in (slot, other):
            if not 0 <= number < len(self.slots):
                raise ValueError(f"slot {number} is empty: {len(self.slots)} devices are known")
        return what, slot, other, fault_type

    def _ask(self, tool: Tool, device: str, source: str) -> Report:
        report = self._tools.ask(tool, device, source)
        self.log.calls.append(Call.of(tool, device, source))
        for neighbour, _, _ in report.neighbours:
            self._reveal(neighbour)
        for ends in report.standby:
            self.known.join(*ends)
        return report

    def _judge(self, device: str, other: str, fault_type: int) -> float:
        location = device if device == other else link_name(device, other)
        self.log.predicted = (FAULT_TYPES[fault_type], location)
        return answer_reward(self.log.predicted, self.log.truth)

    def _reveal(self, device: str) -> None:
        whole = self.network.topology
        for hop in whole.path(device)[1:]:
            if self.known.add(hop, whole.kind[hop], whole.parent[hop]):
                self.slots.append(hop)

    def _count(self) -> None:
        self.log.discovered_nodes = len(self.known)
        self.log.discovered_edges = len(self.known.links())

    def _observe(self, report: Report | None, last: tuple[int, int]) -> Obs:
        return observe(self.known, self.slots, self.network.symptoms, report, last)
