"""Draws simulated networks: devices, links, one fault and its alarms, all from one random generator.

Networks have 4 to 200 devices: a broker, gateways, vehicles, sensors. The same generator state gives the same network.
With cycles, standby links join gateways with each other and vehicles with a second gateway. Called by env.py and
episodes.py.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.incidents.faults import FAULT_TYPES, Form, Hypothesis, forms_at
from watchkeeper.detectors.incidents.topology import Device, Topology, link_name, sensor_name
from watchkeeper.evaluation.diagnosis.simulated.alarms import draw_symptoms
from watchkeeper.evaluation.diagnosis.simulated.network import SIZE_MAX, SIZE_MIN, Fault, Network
from watchkeeper.streams.messages import Kind

# Broker, two gateways, a vehicle and its sensor: the least that can have a cycle.
CYCLE_SIZE_MIN = 5
# The share of networks with cycles where nothing else is asked for.
CYCLES = 0.5
# One gateway for so many devices.
GATEWAY_SHARE = (0.03, 0.10)
# Which share of gateways and of vehicles has a standby link of its own.
GATEWAYS_JOINED, VEHICLES_JOINED = 0.6, 0.4
# Round trips by the outer end of a link, median in seconds and spread: a backbone, a radio, a bus. A standby link is a
# satellite or a phone network.
UPLINK_RTT = {Device.GATEWAY: (0.02, 0.5), Device.VEHICLE: (0.06, 0.5), Device.SENSOR: (0.001, 0.2)}
STANDBY_RTT = (0.6, 0.25)
CLOCK_AHEAD = 0.25
_SENSOR_SETS: dict[int, tuple[Kind, ...]] = {
    1: (Kind.GPS,),
    2: (Kind.GPS, Kind.IMU),
    3: (Kind.GPS, Kind.IMU, Kind.ADSB),
}


def draw_network(
    rng: np.random.Generator, size: int, fault_type: str | None = None, *, cycles: bool = False, at_root: bool = False
) -> Network:
    """A network of this many devices with a fault of the given type, or of any; with `at_root`, one of the broker."""
    least = CYCLE_SIZE_MIN if cycles else SIZE_MIN
    if not least <= size <= SIZE_MAX:
        with_cycles = " with cycles" if cycles else ""
        raise ValueError(f"network_size is {size}, expected {least} to {SIZE_MAX}{with_cycles}")
    topology = _draw_topology(rng, size, cycles=cycles)
    rtt_s, lost = _draw_links(rng, topology)
    fault = _draw_fault(rng, topology, fault_type, at_root=at_root)
    return Network(topology, rtt_s, lost, fault, draw_symptoms(rng, topology, rtt_s, fault))


def _draw_links(rng: np.random.Generator, topology: Topology) -> tuple[dict[str, float], dict[str, float]]:
    """Round trip and share of lost packets of each link."""
    rtt_s: dict[str, float] = {}
    lost: dict[str, float] = {}
    for device in topology.parent:
        kind, link = topology.kind[device], topology.uplink(device)
        median_s, sigma = UPLINK_RTT[kind]
        rtt_s[link] = median_s * math.exp(sigma * float(rng.standard_normal()))
        lost[link] = float(rng.beta(1.0, 80.0)) if kind is Device.VEHICLE else 0.001
    for link in topology.links()[len(topology.parent) :]:
        rtt_s[link] = STANDBY_RTT[0] * math.exp(STANDBY_RTT[1] * float(rng.standard_normal()))
        lost[link] = 0.001
    return rtt_s, lost


def _draw_topology(rng: np.random.Generator, size: int, *, cycles: bool) -> Topology:
    topology = Topology()
    # a cycle takes two gateways
    gateways = min(max(1 + cycles, round(float(rng.uniform(*GATEWAY_SHARE)) * size)), size - 3)
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
    if cycles:
        _draw_standby(rng, topology, gateway_names)
    return topology


def _draw_standby(rng: np.random.Generator, topology: Topology, gateways: list[str]) -> None:
    """Standby links: between gateways, and from vehicles to a second gateway; at least one."""
    vehicles = [device for device, kind in topology.kind.items() if kind is Device.VEHICLE]
    spare = [d for d in gateways if rng.random() < GATEWAYS_JOINED]
    spare += [d for d in vehicles if rng.random() < VEHICLES_JOINED]
    links = set()
    for device in spare or [vehicles[int(rng.integers(len(vehicles)))]]:
        others = [gateway for gateway in gateways if gateway not in (device, topology.parent[device])]
        links.add(link_name(device, others[int(rng.integers(len(others)))]))
    # in the order of their names, as a snapshot has them
    for link in sorted(links):
        topology.join(*link.split("~"))


def _draw_fault(rng: np.random.Generator, topology: Topology, fault_type: str | None, *, at_root: bool) -> Fault:
    """Every type as likely as any other, then every form of it, then every place; or the broker's faults alone."""
    places: dict[str, dict[Form, list[str]]] = {}
    for device, kind in topology.kind.items():
        # a gateway without vehicles has nobody to complain about it
        if all(topology.kind[d] is not Device.SENSOR for d in topology.below(device)):
            continue
        if at_root and kind is not Device.BROKER:
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
