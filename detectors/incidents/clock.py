"""Slow link or wrong clock: round trips, which need no clock, and seams in time stamps, which no slow link leaves.

Also what a look into an incident starts from: what its alarms are about (`Situation`) and what earlier looks saw
(`Memory`). Used by the live tools.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.expect import USUAL_RTT_S
from watchkeeper.detectors.incidents.heard import Heard
from watchkeeper.detectors.incidents.scan import GpsLook
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import BROKER, Device, Topology
from watchkeeper.detectors.link.stats import LinkStats

# A clock that was set leaves a seam in the time stamps as long as the latency it seems to add; a slow link leaves none.
SEAM = 0.5
# A latency may have changed this long before it was first seen to have.
ONSET_S = 2.0


@dataclass(slots=True)
class Memory:
    """What earlier looks into one incident saw and later ones no longer can: jumps of fixes, seams of time stamps.

    `accused` is the sensor of a vehicle, `gps` or `imu`, that a contradiction is the fault of by its pattern; `likely`
    is what that pattern says, by vehicle: an alarm ends with the last fix, and a jammer does not.
    """

    jumps: dict[str, GpsLook] = field(default_factory=dict)
    seams_s: dict[str, float] = field(default_factory=dict)
    accused: dict[str, str] = field(default_factory=dict)
    likely: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Situation:
    """What the alarms of an incident are about, at event time `t`.

    `contradicted` are the vehicles whose GPS and IMU contradict each other, `late_t` those whose latency has changed,
    with the time when it did; `lossy` says whether samples are missing.
    """

    t: float
    contradicted: frozenset[str] = frozenset()
    late_t: Mapping[str, float] = field(default_factory=dict)
    lossy: bool = False


class Clocks:
    """Answers about one situation."""

    def __init__(
        self, heard: Heard, fleet: Fleet, stats: LinkStats, topology: Topology, situation: Situation, memory: Memory
    ) -> None:
        self._heard, self._fleet, self._stats, self._topology = heard, fleet, stats, topology
        self._now, self._memory = situation, memory

    def can_ping(self, target: str) -> bool:
        """Whether a round trip to this device was ever reported."""
        return self._topology.kind[target] in (Device.GATEWAY, Device.VEHICLE) and self._heard.ever(target, "rtt_s")

    def ping(self, target: str) -> Report:
        """The round trip to a device: that of its own hop, and of the gateway before it."""
        rtt_s = self._heard.value(target, "rtt_s")
        if math.isnan(rtt_s):
            return Report(Tool.PING, target, {target: {"answered": 0.0, "lost": 1.0}})
        errors = self._heard.value(target, "errors")
        above = self._topology.parent[target]
        if above != BROKER and not math.isnan(more_s := self._heard.value(above, "rtt_s")):
            rtt_s += more_s
        lost = 0.0 if math.isnan(errors) else errors
        return Report(Tool.PING, target, {target: {"answered": 1.0, "rtt_s": rtt_s, "lost": lost}})

    def slow(self, vehicle: str) -> bool | None:
        """Whether it is a vehicle's link that its latency has changed by, and not its clock; None: not known."""
        excess_s = float(self._stats.latency_excess_s()[self._fleet.slot_of[vehicle]])
        if self.can_ping(vehicle):
            trip = self.ping(vehicle)
            return trip.readings[vehicle]["rtt_s"] > USUAL_RTT_S + 0.5 * abs(excess_s) if trip.answered else None
        seam_s = self.seam_s(vehicle)
        return None if math.isnan(seam_s) or math.isnan(excess_s) else abs(seam_s) < SEAM * abs(excess_s)

    def seam_s(self, vehicle: str) -> float:
        """The seam in a vehicle's time stamps since its latency changed, by the first look that could see it."""
        seams_s, began_t = self._memory.seams_s, self._now.late_t.get(vehicle, -math.inf)
        if vehicle not in seams_s and self._now.t - began_t <= self._stats.window_s - ONSET_S:
            seam_s = self._stats.seam_s(self._fleet.slot_of[vehicle])
            if not math.isnan(seam_s):
                seams_s[vehicle] = seam_s
        return seams_s.get(vehicle, math.nan)
