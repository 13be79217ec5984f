"""What can be wrong, and where: the fault types, the forms in which each occurs, and the hypotheses of a case.

A hypothesis is a form of fault at a place. Its place is a device, or the uplink of a device; both are kept by the
device's name, for every device has one uplink. Standby links carry no traffic, so their faults show in no stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from watchkeeper.detectors.incidents.topology import Device, Topology, Way, sensor_kind

FAULT_TYPES: tuple[str, ...] = (
    "device_failure", "link_failure", "misconfiguration", "performance_degradation",
    "gps_spoofing", "gps_jamming", "imu_fault",
)  # fmt: skip
BASE_TYPES = FAULT_TYPES[:4]


class Form(Enum):
    """The forms of faults: word, fault type, and whether it sits on a link."""

    DEAD = ("dead", "device_failure", False)
    CUT = ("cut", "link_failure", True)
    BLOCKED = ("blocked", "misconfiguration", True)
    CLOCK = ("clock", "misconfiguration", False)
    FRAME = ("frame", "misconfiguration", False)
    UNIT = ("unit", "misconfiguration", False)
    AXIS = ("axis", "misconfiguration", False)
    LATENCY = ("latency", "performance_degradation", True)
    LOSS = ("loss", "performance_degradation", True)
    RATE = ("rate", "performance_degradation", False)
    SPOOF = ("spoof", "gps_spoofing", False)
    JAM = ("jam", "gps_jamming", False)
    IMU = ("imu", "imu_fault", False)

    def __init__(self, word: str, fault_type: str, on_link: bool) -> None:
        self.word = word
        self.fault_type = fault_type
        self.on_link = on_link


# Forms that stop everything behind them that has no other way.
STOPPING = frozenset({Form.DEAD, Form.CUT, Form.BLOCKED})

# Where each form can be. A bus between sensor and vehicle is cut, but has no rules that could block one direction and
# no queue that could be slow.
_PLACES: dict[Form, tuple[Device, ...]] = {
    Form.DEAD: (Device.BROKER, Device.GATEWAY, Device.VEHICLE, Device.SENSOR),
    Form.CUT: (Device.GATEWAY, Device.VEHICLE, Device.SENSOR),
    Form.BLOCKED: (Device.GATEWAY, Device.VEHICLE),
    Form.CLOCK: (Device.VEHICLE,),
    Form.LATENCY: (Device.GATEWAY, Device.VEHICLE),
    Form.LOSS: (Device.GATEWAY, Device.VEHICLE),
    Form.RATE: (Device.BROKER, Device.GATEWAY, Device.VEHICLE, Device.SENSOR),
}
_SENSORS: dict[Form, tuple[str, ...]] = {
    Form.FRAME: ("gps",),
    Form.UNIT: ("gps", "imu"),
    Form.AXIS: ("imu",),
    Form.SPOOF: ("gps",),
    Form.JAM: ("gps",),
    Form.IMU: ("imu",),
}


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A form of fault at a device or its uplink."""

    form: Form
    device: str

    def around(self, topology: Topology) -> Mapping[str, Way]:
        """The ways that devices behind the fault have now, of those that kept one; empty if it stops nothing."""
        return topology.around(self.device, dead=self.form is Form.DEAD) if self.form in STOPPING else {}

    def location(self, topology: Topology) -> str:
        """The place as it is published: a device, or a link `<a>~<b>`."""
        return topology.uplink(self.device) if self.form.on_link else self.device


def forms_at(kind: Device, device: str) -> tuple[Form, ...]:
    """The forms of fault that a device, or its uplink, can have."""
    return _forms(kind, sensor_kind(device) if kind is Device.SENSOR else "")


@cache
def _forms(kind: Device, sensor: str) -> tuple[Form, ...]:
    return tuple(form for form in Form if kind in _PLACES.get(form, ()) or sensor in _SENSORS.get(form, ()))


def hypotheses(topology: Topology, devices: Iterable[str]) -> list[Hypothesis]:
    """Everything that can be wrong with these devices and their uplinks, in a fixed order."""
    return [
        Hypothesis(form, device)
        for device in sorted(devices)
        for form in forms_at(topology.kind[device], device)
    ]  # fmt: skip
