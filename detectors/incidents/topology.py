"""The telemetry network as a tree: sensors on vehicles, vehicles behind gateways, gateways behind the broker.

Who knows it: the live daemon learns it from the streams (`via` names the gateway, the stream's kind the sensor), the
simulated network of evaluation/ reveals it piece by piece. A link has no name of its own: it is `<a>~<b>` of the two
devices at its ends, a < b, as in alarm topics. In a tree each link is the uplink of exactly one device.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from watchkeeper.streams.messages import Kind

BROKER = "broker"


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
    """Devices and their uplinks. The broker is always there; every other device is added below a known one."""

    def __init__(self, broker: str = BROKER) -> None:
        self.broker = broker
        self.kind: dict[str, Device] = {broker: Device.BROKER}
        self.parent: dict[str, str] = {}
        self.children: dict[str, list[str]] = {broker: []}
        self._paths: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def __contains__(self, device: str) -> bool:
        return device in self.kind

    def add(self, device: str, kind: Device, parent: str) -> bool:
        """Make a device known below its parent; False if it was known. It may have moved to another gateway."""
        if device in self.kind:
            if (before := self.parent[device]) != parent:
                self._paths.clear()
                self.children[before].remove(device)
                self.children[parent].append(device)
                self.parent[device] = parent
            return False
        self.kind[device] = kind
        self.parent[device] = parent
        self.children[device] = []
        self.children[parent].append(device)
        return True

    def remove(self, device: str) -> None:
        """Forget a device and all below it."""
        self._paths.clear()
        for below in list(self.children[device]):
            self.remove(below)
        self.children[self.parent[device]].remove(device)
        del self.kind[device], self.parent[device], self.children[device]

    def path(self, device: str) -> tuple[str, ...]:
        """The devices from the broker to this one, both included."""
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
