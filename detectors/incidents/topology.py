"""The telemetry network: sensors on vehicles, vehicles behind gateways, gateways behind the broker.

Who knows it: the live daemon learns it from the streams (`via` names the gateway, the stream's kind the sensor), the
simulated network of evaluation/ reveals it piece by piece. A link has no name of its own: it is `<a>~<b>` of the two
devices at its ends, a < b, as in alarm topics.

Every device has one uplink, which its traffic takes as long as it works; the uplinks are a tree. Standby links close
cycles: traffic goes over them when a device or an uplink fails, and not before. The live daemon knows of none.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush

from watchkeeper.streams.messages import Kind

BROKER = "broker"
Way = tuple[str, ...]


class Device(IntEnum):
    """What a device is; the order is that from the broker outwards."""

    BROKER = 0
    GATEWAY = 1
    VEHICLE = 2
    SENSOR = 3


def link_name(a: str, b: str) -> str:
    """The name of the link between two devices.

    >>> link_name("uav-1", "gw-2")
    'gw-2~uav-1'
    """
    return f"{min(a, b)}~{max(a, b)}"


def sensor_name(vehicle: str, kind: Kind) -> str:
    """The sensor that makes a vehicle's stream of one kind: `uav-1/gps`."""
    return f"{vehicle}/{kind.word}"


def sensor_kind(name: str) -> str:
    """The stream of a sensor, by its name: `gps` of `uav-1/gps`."""
    return name.rsplit("/", 1)[-1]


class Topology:
    """Devices, uplinks and standby links. The broker is always there; other devices are added below a known one."""

    def __init__(self, broker: str = BROKER) -> None:
        self.broker = broker
        self.kind: dict[str, Device] = {broker: Device.BROKER}
        self.parent: dict[str, str] = {}
        self.children: dict[str, list[str]] = {broker: []}
        self.standby: dict[str, list[str]] = {}
        """Both ends of every standby link, each with the devices at the other ends."""
        self._paths: dict[str, Way] = {}
        self._around: dict[tuple[str, bool], dict[str, Way]] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def __contains__(self, device: str) -> bool:
        return device in self.kind

    def add(self, device: str, kind: Device, parent: str) -> bool:
        """Make a device known below its parent; False if it was known. It may have moved to another gateway."""
        if device in self.kind:
            if (before := self.parent[device]) != parent:
                self._forget()
                self._part(device, parent)
                self.children[before].remove(device)
                self.children[parent].append(device)
                self.parent[device] = parent
            return False
        self._around.clear()
        self.kind[device] = kind
        self.parent[device] = parent
        self.children[device] = []
        self.children[parent].append(device)
        return True

    def remove(self, device: str) -> None:
        """Forget a device, all below it and their links."""
        self._forget()
        for below in list(self.children[device]):
            self.remove(below)
        for peer in list(self.standby.get(device, ())):
            self._part(device, peer)
        self.children[self.parent[device]].remove(device)
        del self.kind[device], self.parent[device], self.children[device]

    def join(self, a: str, b: str) -> bool:
        """Make a standby link between two known devices known; False if there is a link between them already."""
        if a == b or b in self.neighbours(a):
            return False
        self._around.clear()
        self.standby.setdefault(a, []).append(b)
        self.standby.setdefault(b, []).append(a)
        return True

    def _part(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            if other in self.standby.get(one, ()):
                self.standby[one].remove(other)
                if not self.standby[one]:
                    del self.standby[one]

    def _forget(self) -> None:
        self._paths.clear()
        self._around.clear()

    def neighbours(self, device: str) -> list[str]:
        """The devices at the other ends of all its links: those behind it, its uplink's, those of standby links."""
        above = [self.parent[device]] if device in self.parent else []
        return [*self.children[device], *above, *self.standby.get(device, ())]

    def links(self) -> list[str]:
        """The names of all links, each once: uplinks, then standby links."""
        spare = {link_name(a, b) for a, peers in self.standby.items() for b in peers}
        return [*map(self.uplink, self.parent), *sorted(spare)]

    def path(self, device: str) -> Way:
        """The devices from the broker to this one over uplinks, both included."""
        found = self._paths.get(device)
        if found is None:
            above = self.path(self.parent[device]) if device != self.broker else ()
            found = self._paths[device] = (*above, device)
        return found

    def below(self, device: str) -> Iterator[str]:
        """The device itself and all below it."""
        yield device
        for child in self.children[device]:
            yield from self.below(child)

    def uplink(self, device: str) -> str:
        """The name of the link from this device towards the broker."""
        return link_name(device, self.parent[device])

    def ends(self, location: str) -> tuple[str, ...]:
        """The device at a location, or the two ends of a link, the one further from the broker first."""
        return tuple(sorted(location.split("~"), key=lambda device: -self.kind[device]))

    def around(self, device: str, *, dead: bool) -> dict[str, Way]:
        """New ways from the broker for devices below this one when it is dead, or when its uplink is cut.

        Those without a way are not in it. Fewest hops first, then by name. Gateways pass traffic on in every direction,
        a vehicle to and from its own sensors only.
        """
        if not self.standby:
            return {}
        known = self._around.get((device, dead))
        if known is None:
            known = self._around[device, dead] = self._ways_around(device, dead)
        return known

    def _ways_around(self, device: str, dead: bool) -> dict[str, Way]:
        lost = set(self.below(device))
        open_to = lost - {device} if dead else lost
        first = [
            (*self.path(peer), inner)
            for inner in open_to
            for peer in self.standby.get(inner, ())
            if peer not in lost and self.kind[peer] <= Device.GATEWAY
        ]
        found: dict[str, Way] = {}
        heap = [(len(way), way) for way in first]
        heapify(heap)
        while heap:
            hops, way = heappop(heap)
            end = way[-1]
            if end not in found:
                found[end] = way
                onward = self.neighbours(end) if self.kind[end] <= Device.GATEWAY else self.children[end]
                for after in onward:
                    if after in open_to:
                        heappush(heap, (hops + 1, (*way, after)))
        return found
