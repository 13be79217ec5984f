"""Two live tools that look along the tree: who is behind a device, and how far the way to it goes.

Both answer from what has been heard, declared and reported by one moment. `discover` lists all neighbours that are
known, with when each was last heard; one that is declared and was never heard has no `age_s`. `traceroute` goes hop by
hop from the broker: delay and loss of a hop are those that were reported about it, or else what the vehicles behind a
gateway have in common, and it ends at the first hop that is silent. Of a gateway that neither says anything of itself
nor has two vehicles that were heard nothing can be said: it is left out.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.incidents.clock import Clocks, Situation
from watchkeeper.detectors.incidents.expect import IDLE, USUAL_RTT_S
from watchkeeper.detectors.incidents.heard import Heard
from watchkeeper.detectors.incidents.network import LiveNetwork
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology

# Of a stopped way: the hop before says that there is none, or nothing comes back.
NO_WAY, NOTHING_BACK = 1.0, 2.0


class Routes:
    """Answers about one topology in one situation."""

    def __init__(
        self, heard: Heard, network: LiveNetwork, topology: Topology, clocks: Clocks, situation: Situation
    ) -> None:
        self._heard, self._network, self._topology = heard, network, topology
        self._clocks, self._now = clocks, situation

    # -- discover -------------------------------------------------------------------------------------------

    def can_discover(self, target: str) -> bool:
        """Whether anything is known behind it, and whether its own silence could be told.

        The sensors of a vehicle are better asked for their status, unless one is declared and was never heard.
        """
        behind = self._topology.children[target]
        if self._topology.kind[target] in (Device.VEHICLE, Device.SENSOR):
            return any(math.isinf(self._heard.age_s(sensor)) for sensor in behind)
        return bool(behind) and self._heard.known_apart(target)

    def discover(self, target: str) -> Report:
        """The neighbours behind a device, each with how much is heard of it and since when nothing is."""
        heard, kind = self._heard, self._topology.kind
        if not heard.alive(target):
            return Report(Tool.DISCOVER, target, {target: {"answered": 0.0}})
        listed = self._network.behind(target) if kind[target] is Device.GATEWAY else []
        news = tuple(neighbour for neighbour in listed if neighbour[0] not in self._topology)
        readings = {target: {"answered": 1.0}}
        for child in (*self._topology.children[target], *(name for name, _, _ in news)):
            if heard.known_apart(child):
                age_s = heard.age_s(child)
                readings[child] = {"heard": float(heard.alive(child))} | (
                    {"age_s": age_s} if math.isfinite(age_s) else {}
                )
        return Report(Tool.DISCOVER, target, readings, news)

    # -- traceroute -----------------------------------------------------------------------------------------

    def can_trace(self, target: str) -> bool:
        """Whether it would tell why the way ends, or at which hop it is slow or loses samples."""
        for hop in self._topology.path(target)[1:]:
            if not self._heard.known_apart(hop):
                return False
            if not self._heard.alive(hop):
                return self._heard.ever(hop, "carrier")
            if self._now.late_t and math.isnan(self._delay_s(hop)):
                return False
            if self._now.lossy and math.isnan(self._loss(hop)):
                return False
        return bool(self._now.late_t) or self._now.lossy

    def traceroute(self, target: str) -> Report:
        """Hop by hop until it ends."""
        heard = self._heard
        readings: dict[str, dict[str, float]] = {}
        rtt_s = lost = 0.0
        for hop in self._topology.path(target)[1:]:
            if not heard.known_apart(hop):
                continue
            age_s = heard.age_s(hop)
            seen = {"age_s": age_s} if math.isfinite(age_s) else {}
            if not heard.alive(hop):
                port = heard.port(hop)
                dark = port is not None and port["carrier"] < 0.5 and port["heard"] < IDLE
                readings[hop] = seen | {"answered": 0.0, "stop": NO_WAY if dark else NOTHING_BACK}
                break
            readings[hop] = seen | {"answered": 1.0, "stop": 0.0}
            if not math.isnan(delay_s := self._delay_s(hop)):
                rtt_s += delay_s
                readings[hop]["rtt_s"] = rtt_s
            if not math.isnan(loss := self._loss(hop)):
                lost = 1.0 - (1.0 - lost) * (1.0 - loss)
                readings[hop]["lost"] = lost
        return Report(Tool.TRACEROUTE, target, readings)

    def _delay_s(self, hop: str) -> float:
        """What this hop adds to a round trip, as reported, or to what is usual; NaN when not known."""
        known = self._reported(hop, "rtt_s", "late_s")
        if known is not None:
            return known
        slow = self._clocks.slow(hop)
        if slow is None:
            return math.nan
        return _at_least_0(self._heard.late_s(hop) - self._above(hop, "late_s")) if slow else 0.0

    def _loss(self, hop: str) -> float:
        """Share of packets that get lost on this hop; NaN when not known."""
        known = self._reported(hop, "errors", "lost")
        if known is not None:
            return known
        above = self._above(hop, "lost")
        return _at_least_0((self._heard.lost(hop) - above) / (1.0 - above)) if above != 1.0 else math.nan

    def _reported(self, hop: str, field: str, in_common: str) -> float | None:
        """What was reported about a hop, or what a gateway's vehicles have in common; None: it is in the statistics."""
        value = self._heard.value(hop, field)
        kind = self._topology.kind[hop]
        if kind is Device.GATEWAY and math.isnan(value):
            return _at_least_0(self._heard.shared(hop, in_common))
        return None if kind is Device.VEHICLE and math.isnan(value) else value

    def _above(self, vehicle: str, reading: str) -> float:
        """The part of a vehicle's latency or loss that its gateway's link has; NaN when that is not known."""
        parent = self._topology.parent[vehicle]
        if self._topology.kind[parent] is Device.BROKER:
            return 0.0
        shared = self._heard.shared(parent, reading)
        if math.isnan(shared) and reading == "late_s" and self._heard.value(parent, "rtt_s") <= USUAL_RTT_S:
            return 0.0
        return shared


def _at_least_0(x: float) -> float:
    return x if math.isnan(x) else max(x, 0.0)
