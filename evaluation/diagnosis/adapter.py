"""Our diagnoser in another's environment with the interface of the metrics reference: reset, step, `act(obs)`.

The reference says how an environment is called, not what its observations and actions look like. A `Translation` says
that for one environment: the network as far as an observation shows it, the answer to the last question in the readings
of detectors/incidents/tools.py, and actions from names. Where alarms are not part of an environment, the diagnoser
makes its own: it learns the network, pings the devices at its edge, and takes those that do not answer for silent.

    agent = ForeignDiagnoser(MyTranslation())
    obs, info = env.reset(seed=0)
    obs, reward, terminated, truncated, info = env.step(agent.act(obs))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from watchkeeper.detectors.incidents.diagnoser import Investigation, Rule
from watchkeeper.detectors.incidents.expect import PLAIN, SILENT, observed
from watchkeeper.detectors.incidents.tools import Report, Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology

# Devices of others have no sensors that could be at fault.
RULE = Rule(suspects=frozenset({Device.BROKER, Device.GATEWAY, Device.VEHICLE}))
# What pings show, in the words of alarms. A stream that is touched by a fault has two, as a vehicle has sensors.
_ALARM = {SILENT: "silence", "lossy": "loss", "slow": "latency"}
_STREAMS = ("there", "back")
_OURS = "\0"
# What a word means at face value, for faults that no ping shows: the fault type, and whether it is on the link.
_FACE_VALUE = {
    SILENT: ("device_failure", False), "busy": ("performance_degradation", False), "idle": ("device_failure", False),
    "down": ("link_failure", True), "filtered": ("misconfiguration", True),
    "errors": ("performance_degradation", True), "backlog": ("performance_degradation", True),
}  # fmt: skip
_PORT = {"carrier": 1.0, "heard": 1.0, "filtered": 0.0, "errors": 0.0, "backlog_s": 0.0}
_ABSENT: dict[Tool, Mapping[str, float]] = {
    Tool.PING: {"rtt_s": 0.0, "lost": 0.0},
    Tool.TRACEROUTE: {"stop": 0.0},
}


@dataclass(frozen=True, slots=True)
class View:
    """What an observation shows: the device that questions start at, devices and links by name, the last answer.

    `begins` says whether nothing was done yet, `whole` whether nothing is left to discover. Readings are by device, for
    the tool and device that were asked last; None when that was an error.
    """

    root: str
    devices: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    begins: bool
    readings: Mapping[str, Mapping[str, float]] | None = None
    whole: bool = False


class Translation(Protocol):
    """Between an environment's observations and actions and names."""

    tools: frozenset[Tool]
    """The tools that the environment has."""

    def view(self, obs: Any) -> View:
        """What an observation shows."""
        ...

    def ask(self, tool: Tool, source: str, device: str) -> Any:
        """The action that asks a device, or sends packets from the source to it."""
        ...

    def answer(self, fault_type: str, ends: tuple[str, ...]) -> Any:
        """The action that gives the diagnosis: at a device, or on the link between two."""
        ...


@dataclass(slots=True)
class _Episode:
    """What was asked and heard so far."""

    asked: set[tuple[Tool, str]] = field(default_factory=set)
    last: tuple[Tool, str] | None = None
    reports: list[Report] = field(default_factory=list)
    case: Investigation | None = None


class ForeignDiagnoser:
    """Plays with a translation."""

    def __init__(self, translation: Translation, rule: Rule = RULE) -> None:
        self._translation, self._rule = translation, rule
        self._now = _Episode()

    def act(self, obs: Any) -> Any:
        """What to do now."""
        view = self._translation.view(obs)
        if view.begins:
            self._now = _Episode()
        now, topology = self._now, topology_of(view)
        self._learn(view)
        question = next(self._look(view, topology), None) if now.case is None else None
        if now.case is None and question is None:
            now.case = self._open(topology)
        if now.case is not None:
            question = now.case.next_question(self._can) or next(self._check(now.case, view), None)
        if question is None:
            return self._answer(topology)
        now.asked.add(question)
        now.last = question
        return self._translation.ask(question[0], view.root, question[1])

    def _open(self, topology: Topology) -> Investigation:
        """The case, with what was learned on the way; pings of the edge are its alarms and count once."""
        case = Investigation(topology, alarms(self._now.reports, topology), self._rule)
        for report in self._now.reports:
            if report.tool is not Tool.PING:
                case.learn(report.tool, report.target, report)
        return case

    def _can(self, tool: Tool, device: str) -> bool:
        # the streams that pings stand for are no devices of theirs
        ours = device.startswith(_OURS)
        return tool in self._translation.tools and not ours and (tool, device) not in self._now.asked

    def _learn(self, view: View) -> None:
        now = self._now
        if now.last is None:
            return
        report = None if view.readings is None else filled(Report(*now.last, view.readings))
        if report is not None:
            now.reports.append(report)
        if now.case is not None:
            now.case.learn(*now.last, report)
        now.last = None

    def _look(self, view: View, topology: Topology) -> Iterator[tuple[Tool, str]]:
        """Questions before the investigation: who is there, and does the edge of the network answer?"""
        if not view.whole:
            ask = [(Tool.SCAN, view.root), *((Tool.DISCOVER, device) for device in view.devices)]
            yield from (question for question in ask if self._can(*question))
        edge = [device for device in view.devices if stream_of(device, _STREAMS[0]) in topology]
        yield from (question for question in ((Tool.PING, device) for device in edge) if self._can(*question))

    def _check(self, case: Investigation, view: View) -> Iterator[tuple[Tool, str]]:
        """Every answer at the edge was as usual: the fault shows inside of devices or at their ports only."""
        if not case.hypotheses:
            every = ((tool, device) for device in view.devices for tool in (Tool.STATUS, Tool.INTERFACES))
            yield from (question for question in every if self._can(*question))

    def _answer(self, topology: Topology) -> Any:
        diagnosis = self._now.case.diagnosis() if self._now.case is not None else None
        if diagnosis is not None:
            return self._translation.answer(diagnosis.type, topology.ends(diagnosis.location))
        return self._translation.answer(*face_value(self._now.reports, topology))


def topology_of(view: View) -> Topology:
    """The network of a view as ours: fewest hops from the root are the uplinks, all other links stand by."""
    topology = Topology(view.root)
    beside: dict[str, list[str]] = {device: [] for device in view.devices}
    for a, b in view.links:
        beside[a].append(b)
        beside[b].append(a)
    queue = [view.root]
    for device in queue:
        for peer in beside[device]:
            if peer not in topology:
                inner = len(beside[peer]) > 1
                topology.add(peer, Device.GATEWAY if inner else Device.VEHICLE, device)
                queue.append(peer)
    for a, b in view.links:
        topology.join(a, b)
    for device in queue:
        if not topology.children[device]:
            for stream in _STREAMS:
                topology.add(stream_of(device, stream), Device.SENSOR, device)
    return topology


def stream_of(device: str, stream: str) -> str:
    """The name of a stream of a device at the edge, which no device of theirs can have."""
    return f"{_OURS}{device}/{stream}"


def alarms(reports: list[Report], topology: Topology) -> list[Symptom]:
    """What the pings of the edge amount to, as symptoms of the devices' streams."""
    found = []
    for report in reports:
        if report.tool is Tool.PING and (word := _ALARM.get(observed(report, topology, 0.0))):
            size = report.readings[report.target].get("rtt_s", 0.0)
            found += [Symptom(stream_of(report.target, stream), word, size) for stream in _STREAMS]
    return found


def filled(report: Report) -> Report:
    """The report with usual values for readings that an environment does not have."""
    usual = _ABSENT.get(report.tool, {})
    readings: dict[str, Mapping[str, float]] = {}
    if report.tool is not Tool.TRACEROUTE:
        readings[report.target] = {"answered": 1.0, **usual}
    for device, own in report.readings.items():
        if report.tool is Tool.INTERFACES and device != report.target:
            dark = {"heard": 0.0} if own.get("carrier", 1.0) < 0.5 else {}
            readings[device] = {**_PORT, **dark, **own}
        else:
            neighbour = {"heard": 1.0} if device != report.target else {}
            readings[device] = {**usual, **readings.get(device, neighbour), **own}
    return Report(report.tool, report.target, readings)


def face_value(reports: list[Report], topology: Topology) -> tuple[str, tuple[str, ...]]:
    """The first odd answer by its plain meaning; the root where there is none."""
    for report in reports:
        word, _, where = observed(report, topology, 0.0).partition(":")
        if word == PLAIN or word not in _FACE_VALUE:
            continue
        fault_type, on_link = _FACE_VALUE[word]
        device = where or report.target
        link = device if "~" in device else topology.uplink(device) if device in topology.parent else device
        if on_link:
            return fault_type, topology.ends(link)
        # a port with a signal and no traffic: the device at its other end
        return fault_type, tuple(d for d in link.split("~") if d != report.target) if where else (device,)
    return "device_failure", (topology.broker,)
