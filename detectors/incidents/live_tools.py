"""The tools on live telemetry: answers from link statistics, port reports and ring buffers, at one moment.

Nothing is asked of the network here: what a gateway, the broker's host or a vehicle has reported about its ports and
itself (stream `link`, docs/messages.md) is in the fleet's newest values, and the daemon pings gateways so that there is
something fresh (daemon/intake/ping.py). Where nothing was reported a tool has no answer, and the diagnosis goes on
without.

Several tools may draw on the same reading (a port's lamp is in `interfaces` and ends a `traceroute`). It counts once:
an answer that would only repeat what another has told is no answer.
"""

from __future__ import annotations

import math

from watchkeeper.config.schema import Frames
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.clock import Clocks, Memory, Situation
from watchkeeper.detectors.incidents.expect import EXPLAINED, IDLE, NOISY_DB, SLOW_SHARE
from watchkeeper.detectors.incidents.heard import Heard
from watchkeeper.detectors.incidents.network import LiveNetwork
from watchkeeper.detectors.incidents.route import Routes
from watchkeeper.detectors.incidents.scan import ODD_FORCE_MS2, GpsLook, ImuLook, look_at_gps, look_at_imu
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.messages import KIND_OF_WORD, Kind

# Contradicted by a force that no velocity shows up to this share, an IMU is believed.
BELIEVED = 0.35


class LiveTools:
    """Answers about one situation. Made for each look into an incident; the memory is the incident's."""

    def __init__(
        self, fleet: Fleet, stats: LinkStats, network: LiveNetwork, topology: Topology, frames: Frames,
        situation: Situation, memory: Memory,
    ) -> None:  # fmt: skip
        self._fleet, self._stats, self._topology = fleet, stats, topology
        self._frames, self._now, self._memory = frames, situation, memory
        self._heard = Heard(fleet, stats, topology, situation.t)
        self._clocks = Clocks(self._heard, fleet, stats, topology, situation, memory)
        self._routes = Routes(self._heard, network, topology, self._clocks, situation)
        self._told: set[tuple[str, str]] = set()
        for vehicle in situation.contradicted:
            self._gps(vehicle)
        for vehicle in situation.late_t:
            self._clocks.seam_s(vehicle)

    def can(self, tool: Tool, target: str) -> bool:
        """See diagnosis_tools.Tools."""
        kind, heard = self._topology.kind[target], self._heard
        if tool is Tool.STATUS:
            # what a gateway says nothing about its neighbours may say: discover
            return kind in (Device.VEHICLE, Device.SENSOR) or (kind is Device.GATEWAY and heard.speaks(target))
        if tool is Tool.PING:
            return self._clocks.can_ping(target)
        if tool is Tool.DISCOVER:
            return self._routes.can_discover(target)
        if tool is Tool.INTERFACES:
            return any(heard.ever(peer, "carrier") for peer in self._topology.children[target])
        if tool is Tool.TRACEROUTE:
            return kind is not Device.BROKER and self._routes.can_trace(target)
        return kind in (Device.VEHICLE, Device.SENSOR)

    def misread(self, vehicle: str) -> bool:
        """Whether the samples of a vehicle are those of another frame, unit or order of axes."""
        gps, imu = self._gps(vehicle), self._imu(vehicle)
        return max(gps.turned, gps.scaled, imu.turned, imu.scaled) > EXPLAINED

    def sees_forces(self, vehicle: str) -> bool:
        """Whether a vehicle's forces can be compared with its velocities: it sends its attitude."""
        return not math.isnan(self._imu(vehicle).odd_ms2)

    def ask(self, tool: Tool, target: str) -> Report | None:
        """See diagnosis_tools.Tools."""
        if not self.can(tool, target):
            return None
        report = self._answer(tool, target)
        if report is None or tool is Tool.SCAN:
            return report
        facts = _facts(report)
        if facts <= self._told:
            return None
        self._told |= facts
        return report

    def _answer(self, tool: Tool, target: str) -> Report | None:
        if tool is Tool.STATUS:
            return self._status(target)
        if tool is Tool.PING:
            return self._clocks.ping(target)
        if tool is Tool.DISCOVER:
            return self._routes.discover(target)
        if tool is Tool.INTERFACES:
            return self._interfaces(target)
        return self._routes.traceroute(target) if tool is Tool.TRACEROUTE else self._scan(target)

    # -- tools ----------------------------------------------------------------------------------------------

    def _status(self, target: str) -> Report | None:
        kind = self._topology.kind[target]
        if not self._heard.alive(target):
            return Report(Tool.STATUS, target, {target: {"answered": 0.0}})
        own = {"answered": 1.0}
        if kind is not Device.SENSOR:
            load = self._heard.value(target, "load")
            if not math.isnan(load):
                return Report(Tool.STATUS, target, {target: own | {"load": load}})
            # that it is there we know from what it sends; why it sends little only its load could say
            return None if self._heard.thin(target) else Report(Tool.STATUS, target, {target: own})
        rate = self._rate(target)
        if rate is not None and rate < SLOW_SHARE:
            return Report(Tool.STATUS, target, {target: own | {"rate": rate}})
        noise_db = self._gps(self._topology.parent[target]).noise_db if sensor_kind(target) == "gps" else 0.0
        if noise_db >= NOISY_DB:
            return Report(Tool.STATUS, target, {target: own | {"noise_db": noise_db}})
        # telemetry has neither signal strengths nor self-tests: that nothing shows says nothing
        return None

    def _rate(self, sensor: str) -> float | None:
        """How fast a sensor makes samples, over what is usual: next to its neighbours, for a link thins them all."""
        vehicle = self._topology.parent[sensor]
        slot = self._fleet.slot_of[vehicle]
        ratios = self._stats.rate_ratio()[:, slot]
        own = float(ratios[self._stats.kinds.index(KIND_OF_WORD[sensor_kind(sensor)])])
        if math.isnan(own):
            return None
        others = [float(r) for r in ratios if not math.isnan(r)]
        return own / max(*others, own) if len(others) > 1 else own

    def _interfaces(self, target: str) -> Report:
        """What the target has reported about the ports to those behind it."""
        ports = {peer: port for peer in self._topology.children[target] if (port := self._heard.port(peer)) is not None}
        if not ports:
            return Report(Tool.INTERFACES, target, {target: {"answered": 0.0}})
        return Report(Tool.INTERFACES, target, {target: {"answered": 1.0}, **ports})

    def _scan(self, target: str) -> Report | None:
        kind = self._topology.kind[target]
        if kind is Device.VEHICLE:
            return self._scan_clock(target)
        vehicle = self._topology.parent[target]
        look = self._gps(vehicle) if sensor_kind(target) == "gps" else None
        if look is not None and look.noise_db > 0.0 and not self._heard.alive(target):
            # it has fallen silent, and its last words were about noise
            return Report(Tool.SCAN, target, {target: {"answered": 1.0, "noise_db": look.noise_db}})
        if not self._heard.alive(target):
            return Report(Tool.SCAN, target, {target: {"answered": 0.0}})
        if vehicle not in self._now.contradicted:
            return None
        found = self._scan_gps(vehicle) if look is not None else self._scan_imu(vehicle)
        return None if found is None else Report(Tool.SCAN, target, {target: {"answered": 1.0, **found}})

    def _scan_clock(self, vehicle: str) -> Report | None:
        """What has been added to a vehicle's latency is its clock's error unless the link is slow."""
        excess_s = float(self._stats.latency_excess_s()[self._fleet.slot_of[vehicle]])
        slow = self._clocks.slow(vehicle)
        if math.isnan(excess_s) or slow is None or not self._heard.alive(vehicle):
            return None
        return Report(Tool.SCAN, vehicle, {vehicle: {"answered": 1.0, "clock_s": 0.0 if slow else excess_s}})

    # -- sensors --------------------------------------------------------------------------------------------

    def _gps(self, vehicle: str) -> GpsLook:
        """What the fixes give away: of all looks, the one that saw them jump."""
        slot = self._fleet.slot_of[vehicle]
        look = look_at_gps(*self._fleet.ring[Kind.GPS].history(slot))
        before = self._memory.jumps.get(vehicle)
        if before is not None and before.jumped > look.jumped:
            look = GpsLook(before.turned, before.scaled, before.jumped, look.noise_db)
        self._memory.jumps[vehicle] = look
        return look

    def _imu(self, vehicle: str) -> ImuLook:
        slot = self._fleet.slot_of[vehicle]
        ring = self._fleet.ring
        return look_at_imu(*ring[Kind.IMU].history(slot), *ring[Kind.GPS].history(slot), self._frames)

    def _scan_gps(self, vehicle: str) -> dict[str, float] | None:
        look = self._gps(vehicle)
        found = {"turned": look.turned, "scaled": look.scaled, "noise_db": look.noise_db}
        if max(look.turned, look.scaled) > 0.5:
            return found | {"led": 0.0}
        accused = self._memory.accused.get(vehicle)
        if look.jumped or accused == "gps":
            return found | {"led": 0.9}
        if accused == "imu":
            return found | {"led": 0.1}
        imu = self._imu(vehicle)
        if math.isnan(imu.odd_ms2):
            return None
        # the forces are what the velocities show: it is the position that goes its own way
        sound = imu.odd_ms2 < BELIEVED * ODD_FORCE_MS2 and not (imu.turned or imu.scaled or imu.stuck)
        return found | {"led": 0.8 if sound else 0.1}

    def _scan_imu(self, vehicle: str) -> dict[str, float] | None:
        look, gps = self._imu(vehicle), self._gps(vehicle)
        found = {"turned": look.turned, "scaled": look.scaled}
        accused = self._memory.accused.get(vehicle)
        if look.turned or look.scaled:
            return found | {"erratic": 0.0}
        if look.stuck or accused == "imu":
            return found | {"erratic": 1.0}
        if max(gps.turned, gps.scaled) > 0.5 or gps.jumped or accused == "gps":
            # velocities that lie themselves show nothing
            return found | {"erratic": 0.0}
        return None if math.isnan(look.odd_ms2) else found | {"erratic": min(look.odd_ms2 / ODD_FORCE_MS2, 1.0)}


def _facts(report: Report) -> set[tuple[str, str]]:
    """The readings, as (device, which), on which an answer rests."""
    others = {device: own for device, own in report.readings.items() if device != report.target}
    if report.tool is Tool.PING:
        return {(report.target, "rtt_s")}
    if report.tool is Tool.TRACEROUTE:
        ends = {(hop, "port") for hop, own in report.readings.items() if own["stop"] > 0.0}
        return ends or {(hop, "rtt_s") for hop in report.readings}
    if not report.answered or not others:
        own = report.readings[report.target].keys() - {"answered"}
        return {(report.target, "alive"), *((report.target, name) for name in own)}
    # one that is missing says more than all that are there
    which = "port" if report.tool is Tool.INTERFACES else "alive"
    missing = {(device, which) for device, own in others.items() if own["heard"] < IDLE}
    return missing or {(device, which) for device in others}
