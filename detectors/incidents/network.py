"""The network around some vehicles, as it is declared and as its streams show it; and where the two disagree.

`via` puts a vehicle behind a gateway, its streams are its sensors. A vehicle, a gateway or a sensor that is declared
(`[topology]`) is part of the network before it was ever heard. What is heard adds to that, and where a vehicle is heard
through another gateway than the declared one, the stream is believed: it is counted, and the diagnosis says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from watchkeeper.detectors.fleet.declared import SENT_BY_VEHICLES
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.heard import ALIVE_S
from watchkeeper.detectors.incidents.topology import BROKER, Device, Topology, sensor_name
from watchkeeper.detectors.link.stats import LinkStats

# A gateway is looked at together with so many of its vehicles that have no alarm: that they are well clears the
# gateway, and more of them would not change the answer.
WITNESSES = 6


class LiveNetwork:
    """All that is known of the network; `gateways` are their numbers, as in the samples' `via`."""

    def __init__(self, fleet: Fleet, stats: LinkStats, gateways: Mapping[str, int]) -> None:
        self._fleet, self._stats = fleet, stats
        self._number, self._names = gateways, {number: name for name, number in gateways.items()}
        self._home = stats.home(gateways)

    def around(self, vehicles: Iterable[str]) -> Topology:
        """The network around these vehicles: their gateways, some of what else is behind those, and all sensors."""
        fleet, topology = self._fleet, Topology()
        mine = [fleet.slot_of[name] for name in sorted(set(vehicles)) if name in fleet.slot_of]
        alarmed = np.zeros(fleet.high, bool)
        alarmed[mine] = True
        heard = fleet.count[self._stats.kinds, : fleet.high].any(axis=0)
        by_name = fleet.ids.__getitem__
        for slot in mine:
            number = int(self._home[slot])
            gateway = self._names[number] if number >= 0 else topology.broker
            if number < 0:
                self._add(topology, slot, gateway)
            elif gateway not in topology:
                topology.add(gateway, Device.GATEWAY, topology.broker)
                # by name: slots depend on who came first, and on how the fleet is spread
                others = sorted(np.flatnonzero((self._home == number) & heard & ~alarmed).tolist(), key=by_name)
                behind = {*others[:WITNESSES], *(s for s in mine if self._home[s] == number)}
                for other in sorted(behind, key=by_name):
                    self._add(topology, other, gateway)
        return topology

    def behind(self, gateway: str) -> list[tuple[str, Device, str]]:
        """All vehicles behind a gateway, heard or declared, each as (name, what it is, gateway); sorted by name."""
        fleet = self._fleet
        known = fleet.count[self._stats.kinds, : fleet.high].any(axis=0) | fleet.declared.kept[: fleet.high]
        slots = np.flatnonzero(known & (self._home == self._number.get(gateway, -2))).tolist()
        return [(name, Device.VEHICLE, gateway) for name in sorted(fleet.ids[slot] for slot in slots)]

    def _add(self, topology: Topology, slot: int, parent: str) -> None:
        fleet = self._fleet
        name = fleet.ids[slot]
        # a gateway may carry the name of a vehicle, and the broker too: the tree keeps one of them
        if name in topology:
            return
        topology.add(name, Device.VEHICLE, parent)
        for kind in self._stats.kinds:
            if fleet.count[kind, slot] or fleet.declared.streams[kind, slot]:
                topology.add(sensor_name(name, kind), Device.SENSOR, name)

    # -- declared and heard ---------------------------------------------------------------------------------

    def remarks(self, vehicles: Iterable[str]) -> list[dict[str, str]]:
        """Evidence about these vehicles that only the declaration gives: never heard, or heard from elsewhere."""
        fleet, declared = self._fleet, self._fleet.declared
        found: list[dict[str, str]] = []
        for name in sorted(vehicles):
            slot = fleet.slot_of.get(name, -1)
            if slot < 0 or not declared.named[slot]:
                continue
            silent = [k for k in self._stats.kinds if declared.streams[k, slot] and not fleet.count[k, slot]]
            if silent and not fleet.count[SENT_BY_VEHICLES, slot].any():
                found.append({"declared": name, "found": "never heard"})
            else:
                found += [{"declared": sensor_name(name, kind), "found": "never heard"} for kind in silent]
            gateway, via = declared.gateway_of(slot), int(self._stats.via[slot])
            if gateway and via >= 0 and self._names[via] != gateway:
                found.append({"declared": f"{name} behind {gateway}", "found": f"behind {self._names[via]}"})
        return found

    def listing(self, t: float) -> list[dict[str, str]]:
        """Every vehicle that is declared or heard, sorted by name: where it is, where it should be, and how it is."""
        fleet, declared = self._fleet, self._fleet.declared
        found: list[dict[str, str]] = []
        for name, slot in sorted(fleet.slot_of.items()):
            last_t = float(fleet.last_t[SENT_BY_VEHICLES, slot].max())
            if last_t == -np.inf and not declared.named[slot]:
                continue
            number = int(self._home[slot])
            state = "never heard" if last_t == -np.inf else "heard" if t - last_t <= ALIVE_S else "silent"
            row = {"vehicle": name, "behind": self._names[number] if number >= 0 else BROKER, "state": state}
            found.append(row | {"declared": declared.gateway_of(slot) or "yes" if declared.named[slot] else "no"})
        return found

    def gauges(self) -> dict[str, float]:
        """How many vehicles are declared by name, were never heard, are heard elsewhere, or are heard undeclared."""
        fleet, declared, n = self._fleet, self._fleet.declared, self._fleet.high
        if not declared.any:
            return dict.fromkeys(("declared", "never_heard", "elsewhere", "undeclared"), 0.0)
        heard = fleet.count[SENT_BY_VEHICLES, :n].any(axis=0)
        said, via = declared.numbers(self._number)[:n], self._stats.via[:n]
        return {
            "declared": float(declared.kept[:n].sum()),
            "never_heard": float((declared.kept[:n] & ~heard).sum()),
            "elsewhere": float(((said >= 0) & (via >= 0) & (said != via)).sum()),
            "undeclared": float((heard & ~declared.named[:n]).sum()),
        }
