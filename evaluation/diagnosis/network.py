"""A simulated telemetry network with one hidden fault: who is there, what is wrong, and what the alarms say about it.

Networks have 4 to 200 devices: a broker, gateways, vehicles, sensors. Everything is drawn from one random generator:
the same seed gives the same network, fault, alarms and answers. answers.py answers the tools.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from watchkeeper.detectors.incidents.faults import FAULT_TYPES, STOPPING, Form, Hypothesis, forms_at
from watchkeeper.detectors.incidents.tools import SYMPTOMS, Symptom
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind, sensor_name
from watchkeeper.streams.messages import Kind

SIZE_MIN, SIZE_MAX = 4, 200
# One gateway for so many devices.
GATEWAY_SHARE = (0.03, 0.10)
_SENSOR_SETS: dict[int, tuple[Kind, ...]] = {
    1: (Kind.GPS,),
    2: (Kind.GPS, Kind.IMU),
    3: (Kind.GPS, Kind.IMU, Kind.ADSB),
}

# How the alarms err. Of the streams that a fault touches, some raise no alarm; of the others, a few do.
ALARM_MISSED = 0.05
ALARM_FALSE = 0.001
# A thinned stream taken for a slow one, and the reverse; a contradiction blamed on the wrong sensor.
THIN_AS_SLOW = 0.15
BLAMED_WRONGLY = 0.06
# A jammed receiver falls silent instead of reporting that it is lost.
JAMMED_SILENT = 0.3
CLOCK_AHEAD = 0.25


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong. `size` is seconds for a latency or a clock, a share for a loss, a ratio for a rate, else 1."""

    form: Form
    device: str
    location: str
    size: float

    @property
    def type(self) -> str:
        """The fault type of the form."""
        return self.form.fault_type


@dataclass(frozen=True, slots=True)
class Network:
    """The whole truth, hidden from the agent. `rtt_s` and `lost` are those of each device's uplink."""

    topology: Topology
    rtt_s: dict[str, float]
    lost: dict[str, float]
    fault: Fault
    symptoms: tuple[Symptom, ...]

    def affected(self, device: str) -> bool:
        """Whether the fault is on the way from the broker to this device, the device included."""
        return self.fault.device in self.topology.path(device)

    def reachable(self, device: str) -> bool:
        """Whether packets get to this device and back."""
        return not (self.fault.form in STOPPING and self.affected(device))


def draw_network(rng: np.random.Generator, size: int, fault_type: str | None = None) -> Network:
    """A network of this many devices with a fault; of the given type, or of any that it can have."""
    if not SIZE_MIN <= size <= SIZE_MAX:
        raise ValueError(f"network_size is {size}, expected {SIZE_MIN} to {SIZE_MAX}")
    topology = _draw_topology(rng, size)
    rtt_s, lost = {}, {}
    for device, kind in topology.kind.items():
        if kind is Device.BROKER:
            continue
        # a backbone, a radio, a bus: medians and how much they differ
        median_s, sigma = {Device.GATEWAY: (0.02, 0.5), Device.VEHICLE: (0.06, 0.5)}.get(kind, (0.001, 0.2))
        rtt_s[device] = median_s * math.exp(sigma * float(rng.standard_normal()))
        lost[device] = float(rng.beta(1.0, 80.0)) if kind is Device.VEHICLE else 0.001
    fault = _draw_fault(rng, topology, fault_type)
    return Network(topology, rtt_s, lost, fault, _draw_symptoms(rng, topology, fault))


def _draw_topology(rng: np.random.Generator, size: int) -> Topology:
    topology = Topology()
    gateways = min(max(1, round(float(rng.uniform(*GATEWAY_SHARE)) * size)), size - 3)
    left = size - 1 - gateways
    sets: list[int] = []
    while left >= 2:
        sensors = min(int(rng.choice((1, 2, 2, 3))), left - 1)
        # one device alone is no vehicle with a sensor
        sensors += left - 1 - sensors == 1 and sensors < 3
        sets.append(sensors)
        left -= 1 + sensors
    gateways += left
    # names tell nothing about the order in which things were made
    gateway_names = [f"gw-{i + 1}" for i in rng.permutation(gateways).tolist()]
    for name in gateway_names:
        topology.add(name, Device.GATEWAY, topology.broker)
    for i, sensors in zip(rng.permutation(len(sets)).tolist(), sets, strict=True):
        vehicle = f"uav-{i + 1}"
        topology.add(vehicle, Device.VEHICLE, gateway_names[int(rng.integers(gateways))])
        for kind in _SENSOR_SETS[sensors]:
            topology.add(sensor_name(vehicle, kind), Device.SENSOR, vehicle)
    return topology


def _draw_fault(rng: np.random.Generator, topology: Topology, fault_type: str | None) -> Fault:
    """Every type as likely as any other, then every form of it, then every place."""
    places: dict[str, dict[Form, list[str]]] = {}
    for device, kind in topology.kind.items():
        # a gateway without vehicles has nobody to complain about it
        if kind is Device.BROKER or all(topology.kind[d] is not Device.SENSOR for d in topology.below(device)):
            continue
        for form in forms_at(kind, device):
            places.setdefault(form.fault_type, {}).setdefault(form, []).append(device)
    types = [t for t in FAULT_TYPES if t in places and fault_type in (None, t)]
    if not types:
        raise ValueError(
            f"fault_type is {fault_type!r}, expected one of {', '.join(t for t in FAULT_TYPES if t in places)}"
        )
    forms = places[types[int(rng.integers(len(types)))]]
    form = list(forms)[int(rng.integers(len(forms)))]
    device = forms[form][int(rng.integers(len(forms[form])))]
    return Fault(form, device, Hypothesis(form, device).location(topology), _draw_size(rng, form))


def _draw_size(rng: np.random.Generator, form: Form) -> float:
    if form is Form.LATENCY:
        return float(math.exp(rng.uniform(math.log(0.25), math.log(3.0))))
    if form is Form.CLOCK:
        size = float(math.exp(rng.uniform(math.log(0.25), math.log(5.0))))
        return -size if rng.random() < CLOCK_AHEAD else size
    if form is Form.LOSS:
        return float(rng.uniform(0.25, 0.6))
    return float(rng.uniform(0.15, 0.5)) if form is Form.RATE else 1.0


def _draw_symptoms(rng: np.random.Generator, topology: Topology, fault: Fault) -> tuple[Symptom, ...]:
    """What the alarms say: at least one is about the fault, or nobody would look."""
    found: dict[str, Symptom] = {}
    touched = [d for d in topology.below(fault.device) if topology.kind[d] is Device.SENSOR]
    while not found:
        for sensor in touched:
            if rng.random() >= ALARM_MISSED:
                symptom = _symptom(rng, topology, fault, sensor)
                found[symptom.sensor] = symptom
    for sensor, kind in topology.kind.items():
        if kind is Device.SENSOR and sensor not in found and rng.random() < ALARM_FALSE * len(SYMPTOMS):
            found[sensor] = Symptom(sensor, SYMPTOMS[int(rng.integers(len(SYMPTOMS)))], 0.5)
    return tuple(found[sensor] for sensor in sorted(found))


def _symptom(rng: np.random.Generator, topology: Topology, fault: Fault, sensor: str) -> Symptom:
    form, size = fault.form, fault.size
    chance = float(rng.random())
    measured = size * math.exp(0.1 * float(rng.standard_normal()))
    if form in STOPPING:
        return Symptom(sensor, "silence", 1.0)
    if form in (Form.CLOCK, Form.LATENCY):
        return Symptom(sensor, "latency" if size > 0 else "early", measured)
    if form is Form.LOSS:
        return Symptom(sensor, "rate" if chance < THIN_AS_SLOW else "loss", measured)
    if form is Form.RATE:
        return Symptom(sensor, "loss" if chance < THIN_AS_SLOW else "rate", measured)
    if form is Form.JAM:
        return Symptom(sensor, "silence" if chance < JAMMED_SILENT else "accuracy", 1.0)
    others = [s for s in topology.children[topology.parent[sensor]] if sensor_kind(s) in ("gps", "imu") and s != sensor]
    if others and chance < BLAMED_WRONGLY:
        sensor = others[0]
    return Symptom(sensor, sensor_kind(sensor), 1.0)
