"""An observation of our environment in names again, and actions from names. Used by our diagnoser and the baselines.

The names of devices are not observed: they are made up from kind and slot.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import READINGS, SYMPTOMS, Report, Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_name
from watchkeeper.evaluation.diagnosis.env import DIAGNOSE, Action
from watchkeeper.evaluation.diagnosis.observation import NOTHING, Obs
from watchkeeper.streams.messages import Kind


class Seen:
    """An observation in names again: `names[slot]`, topology, symptoms and the last report."""

    def __init__(self, obs: Obs) -> None:
        self.names: list[str] = []
        self.topology = Topology()
        neighbours = []
        for slot in np.flatnonzero(obs["device"]).tolist():
            kind = Device(int(obs["device"][slot]) - 1)
            name = self._name(obs, slot, kind)
            self.names.append(name)
            if kind is not Device.BROKER:
                neighbours.append((name, kind, self.names[int(obs["parent"][slot])]))
                self.topology.add(*neighbours[-1])
        standby = [(self.names[a], self.names[b]) for a, b in obs["standby"].tolist() if a >= 0]
        for ends in standby:
            self.topology.join(*ends)
        self.slot_of = {name: slot for slot, name in enumerate(self.names)}
        rows, words = np.nonzero(obs["symptoms"])
        self.symptoms = [
            Symptom(self.names[slot], SYMPTOMS[word], float(obs["symptoms"][slot, word]))
            for slot, word in zip(rows.tolist(), words.tolist(), strict=True)
        ]
        self.last = (int(obs["last"][0]), int(obs["last"][1]))
        self.report: Report | None = None
        if 0 <= self.last[0] < DIAGNOSE and obs["read"].any():
            readings: dict[str, dict[str, float]] = {}
            for slot, column in zip(*(part.tolist() for part in np.nonzero(obs["read"])), strict=True):
                readings.setdefault(self.names[slot], {})[READINGS[column]] = float(obs["readings"][slot, column])
            tool, target = Tool(self.last[0]), self.names[self.last[1]]
            self.report = Report(tool, target, readings, tuple(neighbours), tuple(standby))

    def _name(self, obs: Obs, slot: int, kind: Device) -> str:
        if kind is Device.BROKER:
            return "broker"
        if kind is Device.SENSOR:
            return sensor_name(self.names[int(obs["parent"][slot])], Kind(int(obs["sensor"][slot]) - 1))
        return f"{kind.name.lower()}-{slot}"

    @property
    def first(self) -> bool:
        """Whether nothing has been done yet."""
        return self.last == NOTHING

    def ask(self, tool: Tool, device: str) -> Action:
        """The action that asks, packets from the broker."""
        return np.array([tool, self.slot_of[device], 0, 0])

    def answer(self, fault_type: str, location: str) -> Action:
        """The action that gives the diagnosis."""
        ends = self.topology.ends(location)
        return np.array([DIAGNOSE, self.slot_of[ends[0]], self.slot_of[ends[-1]], FAULT_TYPES.index(fault_type)])
