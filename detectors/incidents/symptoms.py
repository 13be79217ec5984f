"""What a fault makes the alarms say: how likely each symptom of each stream is under each hypothesis.

Symptoms come before any tool is asked, and they are noisy: alarms are missed, false ones are raised, a thinned stream
looks like a slow sensor, and who contradicts whom (GPS or IMU) is sometimes told the wrong way round.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from watchkeeper.detectors.incidents.faults import Form, Hypothesis
from watchkeeper.detectors.incidents.tools import SYMPTOMS
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind

NONE = ""
# A healthy stream with an alarm: rare, but there are many streams. Any one word.
FALSE = 0.001
# A fault of one sensor is blamed on its neighbour this often.
BLAMED = 0.06

_STOPPED = {"silence": 0.94}
# Traffic that goes around a fault takes longer: standby links are slow ones.
_AROUND = {"latency": 0.94}
_WORDS: dict[Form, Mapping[str, float]] = {
    Form.DEAD: _STOPPED,
    Form.CUT: _STOPPED,
    Form.BLOCKED: _STOPPED,
    Form.CLOCK: {"latency": 0.68, "early": 0.26},
    Form.LATENCY: {"latency": 0.94},
    Form.LOSS: {"loss": 0.78, "rate": 0.16},
    Form.RATE: {"rate": 0.78, "loss": 0.16},
    Form.FRAME: {"gps": 0.9},
    Form.SPOOF: {"gps": 0.88},
    Form.AXIS: {"imu": 0.9},
    Form.IMU: {"imu": 0.88},
    Form.JAM: {"accuracy": 0.68, "silence": 0.26},
}
# Forms that contradict another sensor of the same vehicle.
_CONTRADICTING = frozenset({Form.FRAME, Form.UNIT, Form.AXIS, Form.SPOOF, Form.IMU})


def _words(form: Form, sensor: str) -> Mapping[str, float]:
    return {sensor_kind(sensor): 0.9} if form is Form.UNIT else _WORDS[form]


class Shown:
    """What all known sensors show, counted so that a hypothesis costs a few look-ups however many there are."""

    def __init__(self, topology: Topology, symptoms: Mapping[str, str]) -> None:
        self._topology, self._symptoms = topology, symptoms
        self._below: dict[str, Counter[str]] = {}
        self._all = self._words_below(topology.broker)

    def _words_below(self, device: str) -> Counter[str]:
        found = self._below.get(device)
        if found is None:
            kind, said = self._topology.kind, self._symptoms
            found = Counter(said.get(d, NONE) for d in self._topology.below(device) if kind[d] is Device.SENSOR)
            self._below[device] = found
        return found

    def _touched_by(self, h: Hypothesis) -> tuple[Counter[str], Counter[str]]:
        """What the sensors show that a hypothesis touches: those at or behind the fault, those with a way around it."""
        inside = self._words_below(h.device)
        ways = h.around(self._topology)
        if not ways:
            return inside, Counter()
        kind, said = self._topology.kind, self._symptoms
        around = Counter(said.get(d, NONE) for d in ways if kind[d] is Device.SENSOR)
        return inside - around, around

    def explains(self, h: Hypothesis) -> bool:
        """Whether a hypothesis would make any of the symptoms what it is."""
        inside, around = self._touched_by(h)
        if any(word in inside for word in _words(h.form, h.device)) or any(word in around for word in _AROUND):
            return True
        if h.form not in _CONTRADICTING:
            return False
        beside = self._topology.children[self._topology.parent[h.device]]
        return any(self._symptoms.get(sensor) == sensor_kind(sensor) for sensor in beside)

    def log_likelihood(self, h: Hypothesis) -> float:
        """Log probability of what is shown, and of what is not, under a hypothesis."""
        inside, around = self._touched_by(h)
        words = _words(h.form, h.device)
        total = sum(n * math.log(_touched(words, word)) for word, n in inside.items())
        total += sum(n * math.log(_touched(_AROUND, word)) for word, n in around.items())
        total += sum((n - inside[word] - around[word]) * math.log(_healthy(word)) for word, n in self._all.items())
        if h.form in _CONTRADICTING:
            for sensor in self._topology.children[self._topology.parent[h.device]]:
                if sensor != h.device:
                    word = self._symptoms.get(sensor, NONE)
                    total += math.log(_blamed(sensor, word) / _healthy(word))
        return total


def _touched(words: Mapping[str, float], word: str) -> float:
    return max(1.0 - sum(words.values()), 0.02) if word == NONE else words.get(word, FALSE)


def _healthy(word: str) -> float:
    return 1.0 - len(SYMPTOMS) * FALSE if word == NONE else FALSE


def _blamed(sensor: str, word: str) -> float:
    if word == NONE:
        return 1.0 - BLAMED
    return BLAMED if word == sensor_kind(sensor) else FALSE
