"""What the simulated network answers to each tool: readings with the noise that real ones have.

Packets get lost on healthy links, busy and idle processors overlap, a port's signal lamp lies now and then, and an
explanation that fits one cause fits others a little. The caller sees readings only, never the network.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.incidents.faults import STOPPING, Form
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import Device, sensor_kind
from watchkeeper.evaluation.diagnosis.network import Network

PACKETS = 10
# A healthy device that does not answer in time, and a hop that never answers such packets.
NO_ANSWER = 0.015
SHY_HOP = 0.02
# A lamp that shows the wrong state; a router that words "no way" and "nothing comes back" the other way round.
LAMP_WRONG = 0.02
WORDED_WRONGLY = 0.05
# A self-test that passes a broken IMU, and one that fails a good one.
TEST_MISSES, TEST_FAILS = 0.1, 0.02

# Which share of a contradiction each simple cause explains.
_SCAN_WORD = {Form.FRAME: "turned", Form.AXIS: "turned", Form.UNIT: "scaled", Form.SPOOF: "led", Form.IMU: "erratic"}


class SimulatedTools:
    """Answers from one network. Asking the same again gives another draw of the noise."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        self._network = network
        self._rng = rng

    def can(self, tool: Tool, target: str) -> bool:  # noqa: ARG002 - one cannot know before
        """See detectors.diagnosis_tools.Tools."""
        return True

    def ask(self, tool: Tool, target: str) -> Report:
        """See detectors.diagnosis_tools.Tools."""
        if target not in self._network.topology:
            raise ValueError(f"{target!r} is no device of this network")
        if tool is Tool.TRACEROUTE:
            return self._traceroute(target)
        if tool is Tool.PING:
            return Report(tool, target, {target: self._trip(target)})
        if not self._network.reachable(target) or self._rng.random() < NO_ANSWER:
            return Report(tool, target, {target: {"answered": 0.0}})
        readings: dict[str, dict[str, float]] = {target: {"answered": 1.0}}
        if tool is Tool.STATUS:
            readings[target] |= self._status(target)
        elif tool is Tool.SCAN:
            readings[target] |= self._scan(target)
        elif tool is Tool.INTERFACES:
            readings |= {peer: self._port(target, peer) for peer in self._peers(target)}
        elif tool is Tool.DISCOVER:
            readings |= {child: {"heard": self._heard(child)} for child in self._network.topology.children[target]}
        neighbours = () if tool is Tool.STATUS else self._neighbours(target)
        return Report(tool, target, readings, neighbours)

    def _peers(self, device: str) -> list[str]:
        topology = self._network.topology
        return [*topology.children[device], *([topology.parent[device]] if device in topology.parent else [])]

    def _neighbours(self, device: str) -> tuple[tuple[str, Device, str], ...]:
        topology = self._network.topology
        return tuple((child, topology.kind[child], device) for child in topology.children[device])

    # -- packets --------------------------------------------------------------------------------------------

    def _way(self, device: str) -> tuple[float, float]:
        """Round trip in seconds and share of packets lost, from the broker to a device that can be reached."""
        network, fault = self._network, self._network.fault
        rtt_s, kept = 0.002, 1.0
        for hop in network.topology.path(device)[1:]:
            rtt_s += network.rtt_s[hop]
            kept *= 1.0 - network.lost[hop]
            if hop == fault.device and fault.form is Form.LATENCY:
                rtt_s += fault.size * float(self._rng.uniform(0.8, 1.3))
            if hop == fault.device and fault.form is Form.LOSS:
                kept *= 1.0 - fault.size
        return rtt_s * math.exp(0.15 * float(self._rng.standard_normal())), 1.0 - kept

    def _trip(self, device: str) -> dict[str, float]:
        if not self._network.reachable(device) or self._rng.random() < NO_ANSWER:
            return {"answered": 0.0, "lost": 1.0}
        rtt_s, lost = self._way(device)
        share = float(self._rng.binomial(PACKETS, lost)) / PACKETS
        return {"answered": 1.0, "rtt_s": rtt_s, "lost": min(share, 1.0 - 1.0 / PACKETS)}

    def _traceroute(self, target: str) -> Report:
        network, rng = self._network, self._rng
        readings: dict[str, dict[str, float]] = {}
        for hop in network.topology.path(target)[1:]:
            if not network.reachable(hop):
                no_way = (network.fault.form is Form.CUT) != (rng.random() < WORDED_WRONGLY)
                readings[hop] = {"answered": 0.0, "stop": 1.0 if no_way else 2.0}
                break
            if hop != target and rng.random() < SHY_HOP:
                continue
            rtt_s, lost = self._way(hop)
            share = float(rng.binomial(PACKETS, lost)) / PACKETS
            readings[hop] = {"answered": 1.0, "stop": 0.0, "rtt_s": rtt_s, "lost": share}
        return Report(Tool.TRACEROUTE, target, readings)

    def _port(self, device: str, peer: str) -> dict[str, float]:
        """The port of a device to one neighbour. Its link is the uplink of the one further out."""
        network, fault, rng = self._network, self._network.fault, self._rng
        outer = device if network.topology.parent.get(device) == peer else peer
        here = outer == fault.device
        form = fault.form if here else None
        heard = self._heard(outer)
        carrier = (form is not Form.CUT) != (rng.random() < LAMP_WRONG)
        return {
            "carrier": float(carrier),
            "heard": heard,
            "filtered": float(rng.poisson(12.0 if form is Form.BLOCKED else 0.02)),
            "errors": float(rng.exponential(0.005)) + (fault.size * 0.5 if form is Form.LOSS else 0.0),
            "backlog_s": float(rng.exponential(0.008)) + (fault.size * 0.5 if form is Form.LATENCY else 0.0),
        }

    def _heard(self, outer: str) -> float:
        """Traffic over the uplink of a device, over what is usual."""
        fault = self._network.fault
        form = fault.form if outer == fault.device else None
        if form in STOPPING:
            return abs(float(self._rng.normal(0.0, 0.05)))
        heard = float(self._rng.normal(1.0, 0.1)) * (1.0 - fault.size if form is Form.LOSS else 1.0)
        return max(heard, 0.0)

    # -- inside a device ------------------------------------------------------------------------------------

    def _status(self, device: str) -> dict[str, float]:
        network, rng = self._network, self._rng
        form = network.fault.form if device == network.fault.device else None
        if network.topology.kind[device] is not Device.SENSOR:
            return {"load": float(rng.beta(14.0, 3.0) if form is Form.RATE else rng.beta(3.0, 9.0))}
        readings = {"rate": self._rate(form)}
        if sensor_kind(device) == "gps":
            readings["noise_db"] = float(rng.normal(11.0, 3.0) if form is Form.JAM else rng.normal(0.0, 1.5))
            readings["spread_db"] = float(rng.normal(1.5, 0.7) if form is Form.SPOOF else rng.normal(4.5, 0.9))
        elif sensor_kind(device) == "imu":
            failed = rng.random() >= TEST_MISSES if form is Form.IMU else rng.random() < TEST_FAILS
            readings["self_test"] = float(not failed)
        return readings

    def _rate(self, form: Form | None) -> float:
        rate = self._network.fault.size if form is Form.RATE else 1.0
        return max(rate * float(self._rng.normal(1.0, 0.05)), 0.0)

    def _scan(self, device: str) -> dict[str, float]:
        network, rng = self._network, self._rng
        fault = network.fault
        form = fault.form if device == fault.device else None
        kind = network.topology.kind[device]
        if kind is not Device.SENSOR:
            readings = self._status(device)
            if kind is Device.VEHICLE:
                readings["clock_s"] = (fault.size if form is Form.CLOCK else 0.0) + float(rng.normal(0.0, 0.03))
            return readings
        readings = {"rate": self._rate(form)}
        if sensor_kind(device) == "gps":
            readings["noise_db"] = float(rng.normal(11.0, 3.0) if form is Form.JAM else rng.normal(0.0, 1.5))
        if sensor_kind(device) in ("gps", "imu"):
            cause = _SCAN_WORD.get(form) if form is not None else None
            for word in ("turned", "scaled", "led", "erratic"):
                readings[word] = float(rng.beta(11.0, 3.0) if word == cause else rng.beta(2.0, 9.0))
        return readings
