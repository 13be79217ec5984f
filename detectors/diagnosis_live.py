"""The tools on live telemetry: answers from link statistics, port reports and ring buffers, at one moment.

Nothing is asked of the network here: what a gateway, the broker's host or a vehicle has reported about its ports and
itself (stream `link`, docs/messages.md) is in the fleet's newest values, and the daemon pings gateways so that there is
something fresh (daemon/ping.py). Where nothing was reported a tool has no answer, and the diagnosis goes on without.

The topology is learned: `via` puts a vehicle behind a gateway, its streams are its sensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from watchkeeper.config.schema import Frames
from watchkeeper.detectors.diagnosis_expect import NOISY_DB, SLOW_SHARE, USUAL_RTT_S
from watchkeeper.detectors.diagnosis_scan import ODD_FORCE_MS2, GpsLook, ImuLook, look_at_gps, look_at_imu
from watchkeeper.detectors.diagnosis_tools import Report, Tool
from watchkeeper.detectors.diagnosis_topology import BROKER, Device, Topology, sensor_kind, sensor_name
from watchkeeper.detectors.link_stats import LinkStats
from watchkeeper.streams.fleet import Fleet
from watchkeeper.streams.messages import COLUMN, KIND_OF_WORD, Kind

# A report older than this says nothing about now; devices report every few seconds.
FRESH_S = 6.5
# A device that was heard this recently is there.
ALIVE_S = 3.0
# A gateway is looked at together with so many of its vehicles that have no alarm: that they are well clears the
# gateway, and more of them would not change the answer.
WITNESSES = 6
_L = COLUMN[Kind.LINK]
_PORT = ("carrier", "heard", "filtered", "errors", "backlog_s")
# Contradicted by a force that no velocity shows up to this share, an IMU is believed.
BELIEVED = 0.35


def learn_topology(fleet: Fleet, stats: LinkStats, vias: Sequence[str], vehicles: Iterable[str]) -> Topology:
    """The network around these vehicles: their gateways, what else is behind those, and all sensors."""
    topology = Topology()
    mine = [fleet.slot_of[name] for name in sorted(set(vehicles)) if name in fleet.slot_of]
    n = fleet.high
    watched = fleet.count[stats.kinds, :n].any(axis=0)
    alarmed = np.zeros(n, bool)
    alarmed[mine] = True
    for slot in mine:
        gateway = int(stats.via[slot])
        if gateway < 0:
            _add_vehicle(topology, fleet, stats, slot, topology.broker)
        elif vias[gateway] not in topology:
            topology.add(vias[gateway], Device.GATEWAY, topology.broker)
            others = np.flatnonzero((stats.via[:n] == gateway) & watched & ~alarmed)[:WITNESSES].tolist()
            for other in sorted({*others, *(s for s in mine if stats.via[s] == gateway)}):
                _add_vehicle(topology, fleet, stats, other, vias[gateway])
    return topology


def _add_vehicle(topology: Topology, fleet: Fleet, stats: LinkStats, slot: int, parent: str) -> None:
    name = fleet.ids[slot]
    # a gateway may carry the name of a vehicle, and the broker too: the tree keeps one of them
    if name in topology:
        return
    topology.add(name, Device.VEHICLE, parent)
    for kind in stats.kinds:
        if fleet.count[kind, slot]:
            topology.add(sensor_name(name, kind), Device.SENSOR, name)


class LiveTools:
    """Answers as of event time `t`. `contradicted` are the vehicles whose GPS and IMU contradict each other now.

    `jumps` remembers, across several looks into one incident, what a vehicle's fixes gave away when they jumped: the
    ring buffer forgets.
    """

    def __init__(
        self, fleet: Fleet, stats: LinkStats, topology: Topology, frames: Frames, t: float,
        contradicted: frozenset[str], jumps: dict[str, GpsLook],
    ) -> None:  # fmt: skip
        self._fleet, self._stats, self._topology = fleet, stats, topology
        self._frames, self._t = frames, t
        self._contradicted, self._jumps = contradicted, jumps
        for vehicle in contradicted:
            self._gps(vehicle)

    def can(self, tool: Tool, target: str) -> bool:
        """See diagnosis_tools.Tools."""
        kind = self._topology.kind[target]
        if tool is Tool.STATUS:
            return kind is not Device.BROKER
        if tool is Tool.PING:
            return kind in (Device.GATEWAY, Device.VEHICLE) and self._ever(target, "rtt_s")
        if tool is Tool.INTERFACES:
            return any(self._ever(peer, "carrier") for peer in self._topology.children[target])
        return tool is Tool.SCAN and kind in (Device.VEHICLE, Device.SENSOR)

    def ask(self, tool: Tool, target: str) -> Report | None:
        """See diagnosis_tools.Tools."""
        if not self.can(tool, target):
            return None
        if tool is Tool.STATUS:
            return self._status(target)
        if tool is Tool.PING:
            return self._ping(target)
        return self._interfaces(target) if tool is Tool.INTERFACES else self._scan(target)

    # -- what is known of a device --------------------------------------------------------------------------

    def _value(self, device: str, field: str) -> float:
        """The newest reported value; NaN when there is none or it is old."""
        slot = self._fleet.slot_of.get(device)
        if slot is None or self._t - self._fleet.value_t[Kind.LINK][_L[field], slot] > FRESH_S:
            return math.nan
        return float(self._fleet.value[Kind.LINK][_L[field], slot])

    def _ever(self, device: str, field: str) -> bool:
        slot = self._fleet.slot_of.get(device)
        return slot is not None and bool(self._fleet.value_t[Kind.LINK][_L[field], slot] > -np.inf)

    def _alive(self, device: str) -> bool:
        """Whether anything that only this device can have sent has come lately."""
        kind = self._topology.kind[device]
        if kind is Device.BROKER or not math.isnan(self._value(device, "load")):
            return True
        if kind is Device.GATEWAY:
            return any(self._alive(vehicle) for vehicle in self._topology.children[device])
        slot = self._fleet.slot_of.get(device.rsplit("/", 1)[0] if kind is Device.SENSOR else device, -1)
        kinds = [KIND_OF_WORD[sensor_kind(device)]] if kind is Device.SENSOR else self._stats.kinds
        return slot >= 0 and bool((self._t - self._fleet.last_t[kinds, slot] <= ALIVE_S).any())

    # -- tools ----------------------------------------------------------------------------------------------

    def _status(self, target: str) -> Report | None:
        kind = self._topology.kind[target]
        if not self._alive(target):
            return Report(Tool.STATUS, target, {target: {"answered": 0.0}})
        own = {"answered": 1.0}
        if kind is not Device.SENSOR:
            load = self._value(target, "load")
            return Report(Tool.STATUS, target, {target: own | ({} if math.isnan(load) else {"load": load})})
        rate = self._rate(target)
        if rate is not None and rate < SLOW_SHARE:
            return Report(Tool.STATUS, target, {target: own | {"rate": rate}})
        noise_db = self._gps(self._topology.parent[target]).noise_db if sensor_kind(target) == "gps" else 0.0
        if noise_db >= NOISY_DB:
            return Report(Tool.STATUS, target, {target: own | {"noise_db": noise_db}})
        # telemetry has neither signal strengths nor self-tests: that nothing shows says nothing
        return None

    def _rate(self, sensor: str) -> float | None:
        """How fast a sensor makes samples, over what is usual: beside its neighbours, for a link thins them all."""
        vehicle = self._topology.parent[sensor]
        slot = self._fleet.slot_of[vehicle]
        ratios = self._stats.rate_ratio()[:, slot]
        own = float(ratios[self._stats.kinds.index(KIND_OF_WORD[sensor_kind(sensor)])])
        if math.isnan(own):
            return None
        others = [float(r) for r in ratios if not math.isnan(r)]
        return own / max(*others, own) if len(others) > 1 else own

    def _ping(self, target: str) -> Report:
        rtt_s = self._value(target, "rtt_s")
        if math.isnan(rtt_s):
            return Report(Tool.PING, target, {target: {"answered": 0.0, "lost": 1.0}})
        errors = self._value(target, "errors")
        above = self._topology.parent[target]
        if above != BROKER and not math.isnan(more_s := self._value(above, "rtt_s")):
            rtt_s += more_s
        lost = 0.0 if math.isnan(errors) else errors
        return Report(Tool.PING, target, {target: {"answered": 1.0, "rtt_s": rtt_s, "lost": lost}})

    def _interfaces(self, target: str) -> Report:
        """What the target has reported about the ports to those behind it."""
        peers = self._topology.children[target]
        ports = {peer: {name: self._value(peer, name) for name in _PORT} for peer in peers}
        fresh = {peer: port for peer, port in ports.items() if not any(map(math.isnan, port.values()))}
        if not fresh:
            return Report(Tool.INTERFACES, target, {target: {"answered": 0.0}})
        return Report(Tool.INTERFACES, target, {target: {"answered": 1.0}, **fresh})

    def _scan(self, target: str) -> Report | None:
        kind = self._topology.kind[target]
        if kind is Device.VEHICLE:
            return self._scan_clock(target)
        vehicle = self._topology.parent[target]
        look = self._gps(vehicle) if sensor_kind(target) == "gps" else None
        if look is not None and look.noise_db > 0.0 and not self._alive(target):
            # it has fallen silent, and its last words were about noise
            return Report(Tool.SCAN, target, {target: {"answered": 1.0, "noise_db": look.noise_db}})
        if not self._alive(target):
            return Report(Tool.SCAN, target, {target: {"answered": 0.0}})
        if vehicle not in self._contradicted:
            return None
        found = self._scan_gps(vehicle) if look is not None else self._scan_imu(vehicle)
        return None if found is None else Report(Tool.SCAN, target, {target: {"answered": 1.0, **found}})

    def _scan_clock(self, vehicle: str) -> Report | None:
        """A packet's round trip needs no clock: what latency has been added beyond it is the clock's error."""
        excess_s = float(self._stats.latency_excess_s()[self._fleet.slot_of[vehicle]])
        trip = self.ask(Tool.PING, vehicle)
        if math.isnan(excess_s) or trip is None or not trip.answered or not self._alive(vehicle):
            return None
        slow = trip.readings[vehicle]["rtt_s"] > USUAL_RTT_S + 0.5 * abs(excess_s)
        return Report(Tool.SCAN, vehicle, {vehicle: {"answered": 1.0, "clock_s": 0.0 if slow else excess_s}})

    # -- sensors --------------------------------------------------------------------------------------------

    def _gps(self, vehicle: str) -> GpsLook:
        """What the fixes give away: of all looks, the one that saw them jump."""
        slot = self._fleet.slot_of[vehicle]
        look = look_at_gps(*self._fleet.ring[Kind.GPS].history(slot))
        before = self._jumps.get(vehicle)
        if before is not None and before.jumped > look.jumped:
            look = GpsLook(before.turned, before.scaled, before.jumped, look.noise_db)
        self._jumps[vehicle] = look
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
        if look.jumped:
            return found | {"led": 0.9}
        imu = self._imu(vehicle)
        if math.isnan(imu.odd_ms2):
            return None
        # the forces are what the velocities show: it is the position that goes its own way
        sound = imu.odd_ms2 < BELIEVED * ODD_FORCE_MS2 and not (imu.turned or imu.scaled or imu.stuck)
        return found | {"led": 0.8 if sound else 0.1}

    def _scan_imu(self, vehicle: str) -> dict[str, float] | None:
        look, gps = self._imu(vehicle), self._gps(vehicle)
        found = {"turned": look.turned, "scaled": look.scaled}
        if look.stuck:
            return found | {"erratic": 1.0}
        if look.turned or look.scaled:
            return found | {"erratic": 0.0}
        if max(gps.turned, gps.scaled) > 0.5 or gps.jumped:
            # velocities that lie themselves show nothing
            return found | {"erratic": 0.0}
        return None if math.isnan(look.odd_ms2) else found | {"erratic": min(look.odd_ms2 / ODD_FORCE_MS2, 1.0)}
