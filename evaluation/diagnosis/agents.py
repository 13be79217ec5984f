"""Who plays the episodes: our diagnoser, and three baselines. Each sees the observation only.

An agent has `act(obs) -> action`; an observation in which nothing has been done yet begins a new episode. The names of
devices are not observed: agents call them by kind and slot.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from watchkeeper.detectors.incidents.diagnoser import DEFAULT_RULE, Investigation, Rule
from watchkeeper.detectors.incidents.expect import PLAIN, SILENT, observed
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import READINGS, SYMPTOMS, Report, Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_name
from watchkeeper.evaluation.diagnosis.env import DIAGNOSE, Action, Obs
from watchkeeper.streams.messages import Kind


class Agent(Protocol):
    """Plays an episode."""

    def act(self, obs: Obs) -> Action:
        """What to do now."""
        ...


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
            self.report = Report(Tool(self.last[0]), self.names[self.last[1]], readings, tuple(neighbours))

    def _name(self, obs: Obs, slot: int, kind: Device) -> str:
        if kind is Device.BROKER:
            return "broker"
        if kind is Device.SENSOR:
            return sensor_name(self.names[int(obs["parent"][slot])], Kind(int(obs["sensor"][slot]) - 1))
        return f"{kind.name.lower()}-{slot}"

    @property
    def first(self) -> bool:
        """Whether nothing has been done yet."""
        return self.last == (-1, -1)

    def ask(self, tool: Tool, device: str) -> Action:
        """The action that asks."""
        return np.array([tool, self.slot_of[device], 0, 0])

    def answer(self, fault_type: str, location: str) -> Action:
        """The action that gives the diagnosis."""
        device, *other = self.topology.ends(location)
        return np.array([DIAGNOSE, self.slot_of[device], FAULT_TYPES.index(fault_type), len(other)])


class DiagnoserAgent:
    """Our diagnoser behind the observation."""

    def __init__(self, rule: Rule = DEFAULT_RULE) -> None:
        self._rule = rule
        self.case: Investigation | None = None

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        seen = Seen(obs)
        if seen.first or self.case is None:
            self.case = Investigation(seen.topology, seen.symptoms, self._rule)
        elif seen.report is not None:
            self.case.learn(seen.report.tool, seen.report.target, seen.report)
        question = self.case.next_question()
        if question is not None:
            return seen.ask(*question)
        diagnosis = self.case.diagnosis()
        assert diagnosis is not None, "an episode begins with a symptom"
        return seen.answer(diagnosis.type, diagnosis.location)


class RandomAgent:
    """Asks anything of any known device, and at some time says anything."""

    STOP = 0.15

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        known = int(np.count_nonzero(obs["device"]))
        what = DIAGNOSE if self._rng.random() < self.STOP else int(self._rng.integers(len(Tool)))
        return np.array([what, self._rng.integers(known), self._rng.integers(len(FAULT_TYPES)), self._rng.integers(2)])


# What an alarm means at face value.
_FACE_VALUE = {
    "silence": "device_failure", "latency": "performance_degradation", "loss": "performance_degradation",
    "rate": "performance_degradation", "early": "misconfiguration", "gps": "gps_spoofing", "imu": "imu_fault",
    "accuracy": "gps_jamming",
}  # fmt: skip
_BY_LINK = frozenset({"latency", "loss"})


class NearestAlarmAgent:
    """Asks nothing: takes the first alarm at face value, at the device that all alarms have in common."""

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        seen = Seen(obs)
        return seen.answer(*face_value(seen))


def face_value(seen: Seen) -> tuple[str, str]:
    """The commonest symptom's plain meaning, at the device furthest out that has all such symptoms below it."""
    words = [s.word for s in seen.symptoms]
    word = max(sorted(set(words)), key=words.count)
    paths = [seen.topology.path(s.sensor) for s in seen.symptoms if s.word == word]
    common = [hops[0] for hops in zip(*paths, strict=False) if len(set(hops)) == 1]
    device = common[-1]
    if word in _BY_LINK and seen.topology.kind[device] is Device.SENSOR:
        device = seen.topology.parent[device]
    on_link = word in _BY_LINK and device in seen.topology.parent
    return _FACE_VALUE[word], seen.topology.uplink(device) if on_link else device


_SCAN_MEANS = {
    SILENT: "device_failure", "busy": "performance_degradation", "noisy": "gps_jamming", "led": "gps_spoofing",
    "erratic": "imu_fault", "turned": "misconfiguration", "scaled": "misconfiguration", "clock": "misconfiguration",
}  # fmt: skip


class ScanEverythingAgent:
    """Scans device after device from the broker outwards, then blames the one that looks worst, alarmed ones first."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        seen = Seen(obs)
        if seen.first:
            self._words = {}
        if seen.report is not None:
            self._words[seen.report.target] = observed(seen.report, seen.topology, 0.0)
        for device in sorted(seen.names, key=lambda name: (seen.topology.kind[name], seen.slot_of[name])):
            if device not in self._words:
                return seen.ask(Tool.SCAN, device)
        return seen.answer(*self._blame(seen))

    def _blame(self, seen: Seen) -> tuple[str, str]:
        alarmed = {device for s in seen.symptoms for device in seen.topology.path(s.sensor)}
        odd = [device for device, word in self._words.items() if word != PLAIN]
        # those nearest to the broker explain those behind them
        odd.sort(key=lambda device: (device not in alarmed, seen.topology.kind[device], seen.slot_of[device]))
        for device in odd:
            meaning = _SCAN_MEANS.get(self._words[device])
            if meaning is not None and device in alarmed:
                return meaning, device
        return face_value(seen)
