"""Three baselines to compare the diagnoser with. Each sees the observation only; see play.py."""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.incidents.expect import PLAIN, SILENT, observed
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import Tool
from watchkeeper.detectors.incidents.topology import Device
from watchkeeper.evaluation.diagnosis.env import DIAGNOSE, Action
from watchkeeper.evaluation.diagnosis.observation import Obs
from watchkeeper.evaluation.diagnosis.seen import Seen


class RandomAgent:
    """Asks anything of any known device, and at some time says anything."""

    STOP = 0.15

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        known = int(np.count_nonzero(obs["device"]))
        what = DIAGNOSE if self._rng.random() < self.STOP else int(self._rng.integers(len(Tool)))
        slot, other = self._rng.integers(known, size=2).tolist()
        if what == DIAGNOSE and self._rng.random() < 0.5:
            other = slot
        return np.array([what, slot, other, self._rng.integers(len(FAULT_TYPES))])


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
