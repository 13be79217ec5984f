"""What the alarms say about a simulated fault, with their errors: some are missing, false, or blame the wrong sensor.

Called by draw.py. A fault that stops traffic silences the streams that have no other way and delays those that go
around it over a standby link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from watchkeeper.detectors.incidents.faults import STOPPING, Form
from watchkeeper.detectors.incidents.tools import SYMPTOMS, Symptom
from watchkeeper.detectors.incidents.topology import Device, Topology, Way, link_name, sensor_kind
from watchkeeper.evaluation.diagnosis.simulated.network import Fault, way_under

# How the alarms err. Of the streams that a fault touches, some raise no alarm; of the others, a few do.
ALARM_MISSED = 0.05
ALARM_FALSE = 0.001
# A thinned stream taken for a slow one, and the reverse; a contradiction blamed on the wrong sensor.
THIN_AS_SLOW = 0.15
BLAMED_WRONGLY = 0.06
# A jammed receiver falls silent instead of reporting that it is lost.
JAMMED_SILENT = 0.3


def draw_symptoms(
    rng: np.random.Generator, topology: Topology, rtt_s: Mapping[str, float], fault: Fault
) -> tuple[Symptom, ...]:
    """What the alarms say: at least one is about the fault, or nobody would look."""
    found: dict[str, Symptom] = {}
    touched = [d for d in topology.below(fault.device) if topology.kind[d] is Device.SENSOR]
    while not found:
        for sensor in touched:
            if rng.random() >= ALARM_MISSED:
                symptom = _symptom(rng, topology, rtt_s, fault, sensor)
                found[symptom.sensor] = symptom
    for sensor, kind in topology.kind.items():
        if kind is Device.SENSOR and sensor not in found and rng.random() < ALARM_FALSE * len(SYMPTOMS):
            found[sensor] = Symptom(sensor, SYMPTOMS[int(rng.integers(len(SYMPTOMS)))], 0.5)
    return tuple(found[sensor] for sensor in sorted(found))


def trip_s(rtt_s: Mapping[str, float], way: Way) -> float:
    """The round trip over all links of a way, in seconds."""
    return sum(rtt_s[link_name(a, b)] for a, b in pairwise(way))


def _symptom(
    rng: np.random.Generator, topology: Topology, rtt_s: Mapping[str, float], fault: Fault, sensor: str
) -> Symptom:
    form, size = fault.form, fault.size
    chance = float(rng.random())
    measured = size * math.exp(0.1 * float(rng.standard_normal()))
    if form in STOPPING:
        way = way_under(topology, fault, sensor)
        if way is None:
            return Symptom(sensor, "silence", 1.0)
        more_s = trip_s(rtt_s, way) - trip_s(rtt_s, topology.path(sensor))
        return Symptom(sensor, "latency", more_s * measured)
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
