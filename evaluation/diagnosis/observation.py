"""What an agent sees of an episode: arrays by slot. Made by env.py, read again by seen.py.

Observation, by slot in the order in which devices became known (the broker first, then all that the alarms name, with
their standby links):

| key | shape | what |
|---|---|---|
| device | slots | 0 unknown, else 1 + `Device` |
| sensor | slots | 0 none, else 1 + the stream's `Kind` |
| parent | slots | slot at the other end of the uplink, -1 none |
| standby | slots × 2 | slots at the ends of each known standby link, -1 none |
| symptoms | slots × SYMPTOMS | what the alarms say about this stream, 0 nothing |
| readings | slots × READINGS | the last answer |
| read | slots × READINGS | which of them there are in it |
| last | 2 | what was done last and to which slot; -1, -1 nothing yet; -1, 0 an error |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from watchkeeper.detectors.incidents.tools import READINGS, SYMPTOMS, Report, Symptom
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.evaluation.diagnosis.simulated.network import SIZE_MAX
from watchkeeper.streams.messages import KIND_OF_WORD

Obs = dict[str, NDArray[Any]]
# What was done last: nothing yet, or something that could not be done.
NOTHING, ERROR = (-1, -1), (-1, 0)
_READING = {name: i for i, name in enumerate(READINGS)}


def observation_space() -> spaces.Dict:
    """The shapes and bounds of an observation."""
    slots, far = SIZE_MAX, np.finfo(np.float32).max
    return spaces.Dict(
        {
            "device": spaces.Box(0, 1 + max(Device), (slots,), np.int8),
            "sensor": spaces.Box(0, 1 + len(KIND_OF_WORD), (slots,), np.int8),
            "parent": spaces.Box(-1, slots - 1, (slots,), np.int16),
            "standby": spaces.Box(-1, slots - 1, (slots, 2), np.int16),
            "symptoms": spaces.Box(-far, far, (slots, len(SYMPTOMS)), np.float32),
            "readings": spaces.Box(-far, far, (slots, len(READINGS)), np.float32),
            "read": spaces.MultiBinary((slots, len(READINGS))),
            "last": spaces.Box(-1, slots, (2,), np.int16),
        }
    )


def observe(
    known: Topology, slots: Sequence[str], symptoms: Iterable[Symptom], report: Report | None, last: tuple[int, int]
) -> Obs:
    """What the agent sees now: what is known, the alarms, and the last answer."""
    obs: Obs = {
        "device": np.zeros(SIZE_MAX, np.int8),
        "sensor": np.zeros(SIZE_MAX, np.int8),
        "parent": np.full(SIZE_MAX, -1, np.int16),
        "standby": np.full((SIZE_MAX, 2), -1, np.int16),
        "symptoms": np.zeros((SIZE_MAX, len(SYMPTOMS)), np.float32),
        "readings": np.zeros((SIZE_MAX, len(READINGS)), np.float32),
        "read": np.zeros((SIZE_MAX, len(READINGS)), np.int8),
        "last": np.array(last, np.int16),
    }
    slot_of = {device: i for i, device in enumerate(slots)}
    for device, i in slot_of.items():
        kind = known.kind[device]
        obs["device"][i] = 1 + kind
        if kind is Device.SENSOR:
            obs["sensor"][i] = 1 + KIND_OF_WORD[sensor_kind(device)]
        if device in known.parent:
            obs["parent"][i] = slot_of[known.parent[device]]
    for row, link in enumerate(known.links()[len(known.parent) :][:SIZE_MAX]):
        obs["standby"][row] = [slot_of[end] for end in link.split("~")]
    for symptom in symptoms:
        obs["symptoms"][slot_of[symptom.sensor], SYMPTOMS.index(symptom.word)] = symptom.size
    for device, readings in (report.readings if report else {}).items():
        for name, value in readings.items():
            obs["readings"][slot_of[device], _READING[name]] = value
            obs["read"][slot_of[device], _READING[name]] = 1
    return obs
