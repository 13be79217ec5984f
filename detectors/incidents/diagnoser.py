"""The diagnoser: from alarms to what is wrong and where, by asking as little as possible.

An `Investigation` keeps a probability over hypotheses (form of fault, place). The alarms give it its first shape; then
it asks the tool with the most expected information per cost, never the same question twice, and stops when one answer
(fault type and location) is probable enough or when nothing left to ask would change much.

Pure: it neither asks tools itself nor looks at a clock. `next_question()` says what to ask, `learn(report)` takes the
answer; `investigate(tools, …)` is the loop for tools that answer at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

from watchkeeper.detectors.incidents.expect import PLAIN, expected, observed
from watchkeeper.detectors.incidents.faults import hypotheses
from watchkeeper.detectors.incidents.symptoms import Shown
from watchkeeper.detectors.incidents.tools import COST, Report, Symptom, Tool, Tools
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.streams.batch import F8, I8

# How often a tool's answer amounts to the word that the truth calls for. A miss mostly looks as if nothing were wrong.
RELIABILITY: dict[Tool, float] = {
    Tool.STATUS: 0.92,
    Tool.PING: 0.95,
    Tool.DISCOVER: 0.97,
    Tool.INTERFACES: 0.94,
    Tool.TRACEROUTE: 0.92,
    Tool.SCAN: 0.94,
}
MISSED_AS_PLAIN = 0.6
# Words that a tool may say in error, that nothing is wrong among them.
VOCABULARY = 8
FALSE_ALARM = 0.04
# Places that explain fewer of the symptoms than this share of the best are not looked at.
EXPLAINS = 0.5
# Nor are hypotheses that the symptoms make e^12 times less likely than the best: no answer could bring them back.
HOPELESS = 12.0
# A fault of the broker touches every stream. Where only those with an alarm are known, a few of them look like all: a
# false alarm behind another gateway must not outweigh that the rest is quiet. e^7, one false alarm.
ROOT_UNLIKELY = 7.0
ALTERNATIVES = 3
# Streams that contradict each other; symptoms are named after whom they blame.
CONTRADICTORY = ("gps", "imu")
DIGITS = 4


class Diagnosis(msgspec.Struct, frozen=True):
    """What is wrong and where, exactly as it is published."""

    type: str
    location: str
    confidence: float
    evidence: list[dict[str, str]]
    alternatives: list[dict[str, str | float]]


@dataclass(frozen=True, slots=True)
class Rule:
    """When to stop (sure enough, nothing worth asking, or enough asked), and which devices may be at fault.

    The live daemon hears nothing when its broker fails, so the broker is no suspect there.
    """

    sure: float = 0.99
    min_gain_bits: float = 0.01
    max_questions: int = 40
    suspects: frozenset[Device] = frozenset({Device.GATEWAY, Device.VEHICLE, Device.SENSOR})


DEFAULT_RULE = Rule()


class Investigation:
    """One case, from its symptoms to its diagnosis."""

    def __init__(self, topology: Topology, symptoms: Iterable[Symptom], rule: Rule = DEFAULT_RULE) -> None:
        self.topology = topology
        self.asked: list[tuple[Tool, str]] = []
        self._rule = rule
        self._said = {s.sensor: s.word for s in symptoms}
        self._latency_s = max((abs(s.size) for s in symptoms if s.word == "latency"), default=0.0)
        self._heard: list[tuple[Tool, str, str]] = []
        self._evidence = [{"alarm": s.word, "stream": s.sensor} for s in symptoms]
        self._think()

    # -- the probability ------------------------------------------------------------------------------------

    def _think(self) -> None:
        """Work out everything from the beginning: the topology has grown."""
        topology = self.topology
        every = hypotheses(topology, self._places())
        per_type = Counter(h.form.fault_type for h in every)
        shown = Shown(topology, self._said)
        found = [h for h in every if shown.explains(h)] or every
        log = np.array([shown.log_likelihood(h) - math.log(per_type[h.form.fault_type]) for h in found])
        if len({topology.path(sensor)[1] for sensor in self._said}) > 1:
            log[[h.device == topology.broker for h in found]] -= ROOT_UNLIKELY
        keep = np.flatnonzero(log >= log.max(initial=-np.inf) - HOPELESS)
        self.hypotheses, self._log = [found[i] for i in keep.tolist()], log[keep]
        self._answers = [(h.form.fault_type, h.location(topology)) for h in self.hypotheses]
        self._open: list[tuple[Tool, str]] | None = None
        self._words: dict[tuple[Tool, str], tuple[I8, list[str]]] = {}
        for tool, device, word in self._heard:
            self._weigh(tool, device, word)

    def _places(self) -> list[str]:
        """Devices that may be at fault: those with enough of the symptoms on or below them."""
        below: dict[str, int] = {}
        for sensor in self._said:
            for device in self.topology.path(sensor):
                if self.topology.kind[device] in self._rule.suspects:
                    below[device] = below.get(device, 0) + 1
        # everything is below the broker, false alarms too: it sets no measure for the others
        apart = [n for device, n in below.items() if device != self.topology.broker]
        enough = EXPLAINS * max(apart, default=0)
        found = {device for device, n in below.items() if n >= enough}
        # the one that is blamed may be the neighbour of the one at fault
        for sensor, word in self._said.items():
            if word in CONTRADICTORY and sensor in found:
                found.update(self.topology.children[self.topology.parent[sensor]])
        return sorted(found)

    @property
    def probability(self) -> F8:
        """Of each hypothesis."""
        weight: F8 = np.exp(self._log - self._log.max())
        total: F8 = weight / weight.sum()
        return total

    def _ranked(self) -> list[tuple[float, tuple[str, str]]]:
        """Answers (type, location) by falling probability: forms of one type at one place are one answer."""
        total: dict[tuple[str, str], float] = {}
        for p, answer in zip(self.probability.tolist(), self._answers, strict=True):
            total[answer] = total.get(answer, 0.0) + p
        return sorted(((p, answer) for answer, p in total.items()), key=lambda e: (-e[0], e[1]))

    # -- asking ---------------------------------------------------------------------------------------------

    def next_question(self, can: Callable[[Tool, str], bool] = lambda _tool, _device: True) -> tuple[Tool, str] | None:
        """What to ask now, of what can be asked; None when it is time for the diagnosis."""
        if not self.hypotheses or len(self.asked) >= self._rule.max_questions:
            return None
        if self._ranked()[0][0] >= self._rule.sure:
            return None
        p = self.probability
        best: tuple[float, Tool, str] | None = None
        if self._open is None:
            self._open = self._telling(can)
        for tool, device in self._open:
            gain = self._gain(p, tool, device)
            if gain >= self._rule.min_gain_bits and (best is None or gain / COST[tool] > best[0]):
                best = (gain / COST[tool], tool, device)
        return self._look_around(can) if best is None else best[1:]

    def _look_around(self, can: Callable[[Tool, str], bool]) -> tuple[Tool, str] | None:
        """Nothing left to ask, and still not sure: a sensor that nobody has named yet may be the one that lies."""
        for sensor, word in self._said.items():
            vehicle = self.topology.parent[sensor]
            alone = sum(sensor_kind(s) in CONTRADICTORY for s in self.topology.children[vehicle]) == 1
            question = (Tool.DISCOVER, vehicle)
            if word in CONTRADICTORY and alone and question not in self.asked and can(*question):
                return question
        return None

    def _telling(self, can: Callable[[Tool, str], bool]) -> list[tuple[Tool, str]]:
        """The questions to which not all hypotheses would have the same answer, of suspects and what they hang on."""
        devices = {h.device for h in self.hypotheses}
        parent = self.topology.parent
        return [
            (tool, device)
            for device in sorted(devices | {parent[device] for device in devices if device in parent})
            for tool in Tool
            if (tool, device) not in self.asked and can(tool, device) and self._expected(tool, device)[0].any()
        ]

    def _gain(self, p: F8, tool: Tool, device: str) -> float:
        """Expected information of a question about the hypotheses, in bits."""
        codes, words = self._expected(tool, device)
        # the first word is that nothing is wrong
        shares: list[float] = np.bincount(codes, p, minlength=len(words)).tolist()
        plain, others = shares[0], shares[1:]
        odd = 1.0 - plain
        channel = _channel(tool)
        seen = plain * channel.plain_as_plain + odd * channel.odd_as_plain
        total = _surprise(seen)
        for share in others:
            other = plain * channel.plain_as_odd + (odd - share) * channel.odd_as_other
            total += _surprise(share * channel.odd_as_itself + other)
        unexpected = plain * channel.plain_as_odd + odd * channel.odd_as_other
        total += max(VOCABULARY - len(words), 0) * _surprise(unexpected)
        return total - plain * channel.plain_bits - odd * channel.odd_bits

    def _expected(self, tool: Tool, device: str) -> tuple[I8, list[str]]:
        """For each hypothesis the number of the word that it would make this tool say, and the words."""
        known = self._words.get((tool, device))
        if known is None:
            number = {PLAIN: 0}
            said = [expected(h, tool, device, self.topology) for h in self.hypotheses]
            codes = np.array([number.setdefault(word, len(number)) for word in said])
            known = self._words[tool, device] = codes, list(number)
        return known

    # -- learning -------------------------------------------------------------------------------------------

    def learn(self, tool: Tool, device: str, report: Report | None) -> None:
        """Take in the answer to a question; None: it could not be answered, which says nothing."""
        self.asked.append((tool, device))
        if self._open is not None and (tool, device) in self._open:
            self._open.remove((tool, device))
        if report is None:
            return
        news = [self.topology.add(*neighbour) for neighbour in report.neighbours]
        news += [self.topology.join(*ends) for ends in report.standby]
        word = observed(report, self.topology, self._latency_s)
        self._heard.append((tool, device, word))
        self._evidence.append({"tool": tool.word, "target": device, "found": word})
        if any(news):
            self._think()
        else:
            self._weigh(tool, device, word)

    def _weigh(self, tool: Tool, device: str, word: str) -> None:
        codes, words = self._expected(tool, device)
        channel = _channel(tool)
        if word == PLAIN:
            likely = np.where(codes == 0, channel.plain_as_plain, channel.odd_as_plain)
        else:
            likely = np.where(codes == 0, channel.plain_as_odd, channel.odd_as_other)
            if word in words:
                likely = np.where(codes == words.index(word), channel.odd_as_itself, likely)
        self._log += np.log(likely)

    def diagnosis(self) -> Diagnosis | None:
        """The most probable answer with its rivals; None when there is nothing to explain."""
        if not self.hypotheses:
            return None
        ranked = self._ranked()
        p, (fault_type, location) = ranked[0]
        return Diagnosis(
            type=fault_type,
            location=location,
            confidence=round(p, DIGITS),
            evidence=list(self._evidence),
            alternatives=[
                {"type": t, "location": where, "confidence": round(q, DIGITS)}
                for q, (t, where) in ranked[1 : 1 + ALTERNATIVES]
            ],
        )


@dataclass(frozen=True, slots=True)
class Channel:
    """How a tool errs among its words, of which one is that nothing is wrong; and the uncertainty that this leaves."""

    plain_as_plain: float
    plain_as_odd: float
    odd_as_itself: float
    odd_as_plain: float
    odd_as_other: float
    plain_bits: float
    odd_bits: float


@cache
def _channel(tool: Tool) -> Channel:
    n = VOCABULARY
    missed = 1.0 - RELIABILITY[tool]
    false, other = FALSE_ALARM / (n - 1), missed * (1.0 - MISSED_AS_PLAIN) / (n - 2)
    odd_as_plain = missed * MISSED_AS_PLAIN
    return Channel(
        plain_as_plain=1.0 - FALSE_ALARM,
        plain_as_odd=false,
        odd_as_itself=RELIABILITY[tool],
        odd_as_plain=odd_as_plain,
        odd_as_other=other,
        plain_bits=_surprise(1.0 - FALSE_ALARM) + (n - 1) * _surprise(false),
        odd_bits=_surprise(RELIABILITY[tool]) + _surprise(odd_as_plain) + (n - 2) * _surprise(other),
    )


def _surprise(p: float) -> float:
    """What an outcome of this probability adds to the uncertainty, in bits."""
    return -p * math.log2(p) if p > 0.0 else 0.0


def investigate(
    tools: Tools, topology: Topology, symptoms: Iterable[Symptom], rule: Rule = DEFAULT_RULE
) -> Investigation:
    """Ask until it is clear; for tools that answer at once."""
    case = Investigation(topology, list(symptoms), rule)
    while (question := case.next_question(tools.can)) is not None:
        case.learn(*question, tools.ask(*question))
    return case
