"""What the simulated network answers to each tool: readings with the noise that real ones have. Called by env.py.

Packets get lost on healthy links, busy and idle processors overlap, a port's signal lamp lies now and then, and an
explanation that fits one cause fits others a little. The caller sees readings only, never the network.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from watchkeeper.detectors.incidents.faults import STOPPING, Form, Hypothesis
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import Device, Way, link_name, sensor_kind
from watchkeeper.evaluation.diagnosis.simulated.network import Network, joined

PACKETS = 10
# A healthy device that does not answer in time, and a hop that never answers such packets.
NO_ANSWER = 0.015
SHY_HOP = 0.02
# A lamp that shows the wrong state; a router that words "no way" and "nothing comes back" the other way round.
LAMP_WRONG = 0.02
WORDED_WRONGLY = 0.05
# A self-test that passes a broken IMU, and one that fails a good one.
TEST_MISSES, TEST_FAILS = 0.1, 0.02

# Traffic over a standby link that carries streams, over that of one that waits.
IN_USE = 10.0

# Which share of a contradiction each simple cause explains.
_SCAN_WORD = {Form.FRAME: "turned", Form.AXIS: "turned", Form.UNIT: "scaled", Form.SPOOF: "led", Form.IMU: "erratic"}


class SimulatedTools:
    """Answers from one network. Asking the same again gives another draw of the noise."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        self._network = network
        self._rng = rng
        fault, topology = network.fault, network.topology
        detours = Hypothesis(fault.form, fault.device).around(topology).values()
        standby = set(topology.links()[len(topology.parent) :])
        self._in_use = standby & {link_name(a, b) for way in detours for a, b in pairwise(way)}

    def can(self, tool: Tool, target: str) -> bool:  # noqa: ARG002 - one cannot know before
        """See detectors.diagnosis_tools.Tools."""
        return True

    def ask(self, tool: Tool, target: str, source: str | None = None) -> Report:
        """See detectors.diagnosis_tools.Tools. Packets of a ping or traceroute start at the source, or the broker."""
        topology = self._network.topology
        start = topology.broker if source is None else source
        for device in (target, start):
            if device not in topology:
                raise ValueError(f"{device!r} is no device of this network")
        if tool is Tool.TRACEROUTE:
            return self._traceroute(start, target)
        if tool is Tool.PING:
            return Report(tool, target, {target: self._trip(start, target)})
        if not self._network.reachable(target) or self._rng.random() < NO_ANSWER:
            return Report(tool, target, {target: {"answered": 0.0}})
        readings: dict[str, dict[str, float]] = {target: {"answered": 1.0}}
        spare = topology.standby.get(target, [])
        if tool is Tool.STATUS:
            return Report(tool, target, {target: readings[target] | self._status(target)})
        if tool is Tool.SCAN:
            readings[target] |= self._scan(target)
        elif tool is Tool.INTERFACES:
            readings |= {peer: self._port(target, peer) for peer in topology.neighbours(target)}
        else:
            readings |= {peer: {"heard": self._heard(target, peer)} for peer in (*topology.children[target], *spare)}
        found = [self._place(child) for child in topology.children[target]]
        found += [self._place(hop) for peer in spare for hop in topology.path(peer)[1:]]
        return Report(tool, target, readings, tuple(found), tuple((target, peer) for peer in spare))

    def _place(self, device: str) -> tuple[str, Device, str]:
        topology = self._network.topology
        return device, topology.kind[device], topology.parent[device]

    # -- packets --------------------------------------------------------------------------------------------

    def _over(self, way: Way) -> tuple[float, float]:
        """Round trip in seconds and share of packets lost, over all links of a way."""
        network, fault = self._network, self._network.fault
        rtt_s, kept = 0.002, 1.0
        for ends in pairwise(way):
            link = link_name(*ends)
            rtt_s += network.rtt_s[link]
            kept *= 1.0 - network.lost[link]
            if link == fault.location and fault.form is Form.LATENCY:
                rtt_s += fault.size * float(self._rng.uniform(0.8, 1.3))
            if link == fault.location and fault.form is Form.LOSS:
                kept *= 1.0 - fault.size
        return rtt_s * math.exp(0.15 * float(self._rng.standard_normal())), 1.0 - kept

    def _trip(self, source: str, target: str) -> dict[str, float]:
        way = self._network.route(source, target)
        if way is None or self._rng.random() < NO_ANSWER:
            return {"answered": 0.0, "lost": 1.0}
        rtt_s, lost = self._over(way)
        share = float(self._rng.binomial(PACKETS, lost)) / PACKETS
        return {"answered": 1.0, "rtt_s": rtt_s, "lost": min(share, 1.0 - 1.0 / PACKETS)}

    def _traceroute(self, source: str, target: str) -> Report:
        """Hop by hop as packets go now; without a way, as they usually go, up to the first hop that is cut off."""
        network, rng, topology = self._network, self._rng, self._network.topology
        way = network.route(source, target)
        hops = way or joined(topology.path(source), topology.path(target))
        readings: dict[str, dict[str, float]] = {}
        for number, hop in enumerate(hops):
            if way is None and not network.reachable(hop):
                no_way = (network.fault.form is Form.CUT) != (rng.random() < WORDED_WRONGLY)
                readings[hop] = {"answered": 0.0, "stop": 1.0 if no_way else 2.0, "hop": float(number)}
                break
            if number == 0 or (hop != target and rng.random() < SHY_HOP):
                continue
            rtt_s, lost = self._over(hops[: number + 1])
            share = float(rng.binomial(PACKETS, lost)) / PACKETS
            readings[hop] = {"answered": 1.0, "stop": 0.0, "rtt_s": rtt_s, "lost": share, "hop": float(number)}
        # the devices of a way that was not known: parents before those behind them
        places = sorted({d for hop in readings for d in topology.path(hop)[1:]}, key=lambda d: len(topology.path(d)))
        spare = [
            (a, b) for a, b in pairwise(hops) if a in readings and b in readings and b in topology.standby.get(a, ())
        ]
        return Report(Tool.TRACEROUTE, target, readings, tuple(map(self._place, places)), tuple(spare))

    def _port(self, device: str, peer: str) -> dict[str, float]:
        """The port of a device to one neighbour."""
        fault, rng = self._network.fault, self._rng
        form = fault.form if link_name(device, peer) == fault.location else None
        heard = self._heard(device, peer)
        carrier = (form is not Form.CUT) != (rng.random() < LAMP_WRONG)
        return {
            "carrier": float(carrier),
            "heard": heard,
            "filtered": float(rng.poisson(12.0 if form is Form.BLOCKED else 0.02)),
            "errors": float(rng.exponential(0.005)) + (fault.size * 0.5 if form is Form.LOSS else 0.0),
            "backlog_s": float(rng.exponential(0.008)) + (fault.size * 0.5 if form is Form.LATENCY else 0.0),
        }

    def _heard(self, device: str, peer: str) -> float:
        """Traffic over a link, over what is usual for it."""
        fault, link = self._network.fault, link_name(device, peer)
        dead = fault.form is Form.DEAD and fault.device in (device, peer)
        if dead or (link == fault.location and fault.form in STOPPING):
            return abs(float(self._rng.normal(0.0, 0.05)))
        lossy = link == fault.location and fault.form is Form.LOSS
        heard = float(self._rng.normal(1.0, 0.1)) * (1.0 - fault.size if lossy else 1.0)
        return max(heard, 0.0) * (IN_USE if link in self._in_use else 1.0)

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
