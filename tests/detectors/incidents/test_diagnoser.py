"""The diagnoser: the right answer to plain cases, never the same question twice, no more than it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.incidents.diagnoser import Investigation, Rule, investigate
from watchkeeper.detectors.incidents.faults import Form, Hypothesis, hypotheses
from watchkeeper.detectors.incidents.tools import COST, SYMPTOMS, Report, Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, link_name


def network() -> Topology:
    """Two gateways; three vehicles with GPS and IMU behind the first, one behind the second."""
    topology = Topology()
    for gateway, vehicles in (("gw-1", ("a", "b", "c")), ("gw-2", ("d",))):
        topology.add(gateway, Device.GATEWAY, "broker")
        for vehicle in vehicles:
            topology.add(vehicle, Device.VEHICLE, gateway)
            for sensor in ("gps", "imu"):
                topology.add(f"{vehicle}/{sensor}", Device.SENSOR, vehicle)
    return topology


def silent(*vehicles: str) -> list[Symptom]:
    return [Symptom(f"{v}/{s}", "silence", 1.0) for v in vehicles for s in ("gps", "imu")]


class Answers:
    """Tools that give the readings they were told to; everything else answers that all is well."""

    def __init__(self, **readings: dict[str, dict[str, float]]) -> None:
        self.readings = readings
        self.asked: list[tuple[Tool, str]] = []

    def can(self, tool: Tool, target: str) -> bool:
        return True

    def ask(self, tool: Tool, target: str) -> Report | None:
        self.asked.append((tool, target))
        told = self.readings.get(tool.word, {})
        fine = {"answered": 1.0, "rtt_s": 0.03, "lost": 0.0, "stop": 0.0}
        return Report(tool, target, {target: told.get(target, fine), **told.get(f"ports of {target}", {})})  # type: ignore[arg-type]


PORT = {"carrier": 1.0, "heard": 1.0, "filtered": 0.0, "errors": 0.0, "backlog_s": 0.0}
DOWN = {"answered": 0.0}


@pytest.mark.parametrize(
    ("port", "answer"),
    [
        ({"carrier": 0.0, "heard": 0.0}, ("link_failure", "a~gw-1")),
        ({"heard": 0.0}, ("device_failure", "a")),
        ({"heard": 0.0, "filtered": 20.0}, ("misconfiguration", "a~gw-1")),
    ],
)
def test_the_port_tells_a_cut_link_from_a_dead_vehicle_and_a_blocked_direction(
    port: dict[str, float], answer: tuple[str, str]
) -> None:
    stop = {"answered": 0.0, "stop": 1.0 if answer[0] == "link_failure" else 2.0}
    tools = Answers(
        status={"a": DOWN, "a/gps": DOWN, "a/imu": DOWN},
        ping={"a": DOWN, "a/gps": DOWN, "a/imu": DOWN},
        interfaces={"ports of gw-1": {"a": PORT | port}},
        traceroute={"a": stop},
    )
    found = investigate(tools, network(), silent("a")).diagnosis()
    assert found is not None
    assert (found.type, found.location) == answer
    assert found.confidence > 0.9
    assert (Tool.INTERFACES, "gw-1") in tools.asked


def test_one_gateway_explains_all_its_vehicles_at_once() -> None:
    case = Investigation(network(), silent("a", "b", "c"))
    places = {case.hypotheses[i].device for i in np.argsort(case.probability)[-3:]}
    assert places == {"gw-1"}
    # nobody needs to be asked about the second gateway's vehicle
    assert "d" not in {h.device for h in case.hypotheses}


def test_a_ping_tells_a_slow_link_from_a_wrong_clock() -> None:
    late = [Symptom(f"a/{s}", "latency", 1.0) for s in ("gps", "imu")]
    slow = {device: {"answered": 1.0, "rtt_s": 1.1, "lost": 0.0} for device in ("a", "a/gps", "a/imu")}
    found = investigate(Answers(ping=slow), network(), late, Rule(max_questions=3)).diagnosis()
    assert found is not None
    assert (found.type, found.location) == ("performance_degradation", "a~gw-1")
    clock = Answers(scan={"a": {"answered": 1.0, "load": 0.2, "clock_s": 1.0}})
    found = investigate(clock, network(), late).diagnosis()
    assert found is not None
    assert (found.type, found.location) == ("misconfiguration", "a")


def test_discover_tells_a_missing_vehicle_from_a_silent_gateway() -> None:
    # of two vehicles of three: one is missing, or the gateway is and an alarm has not risen yet
    for answer, best in (({"heard": 0.0}, "a"), ({"heard": 1.0}, "gw-1")):
        case = Investigation(network(), [Symptom("a/gps", "silence", 1.0), Symptom("b/gps", "silence", 1.0)])
        readings = {"gw-1": {"answered": 1.0 if best == "a" else 0.0}, "a": answer, "b": {"heard": 1.0}}
        case.learn(Tool.DISCOVER, "gw-1", Report(Tool.DISCOVER, "gw-1", readings))
        found = case.diagnosis()
        assert found is not None
        assert found.location in (best, f"{best}~gw-1", f"broker~{best}")


def test_a_diagnosis_names_evidence_and_rivals() -> None:
    found = investigate(Answers(), network(), [Symptom("a/gps", "gps", 1.0)]).diagnosis()
    assert found is not None
    assert {"alarm": "gps", "stream": "a/gps"} in found.evidence
    assert any(line.get("tool") == "scan" for line in found.evidence)
    rivals = [float(a["confidence"]) for a in found.alternatives]
    assert rivals == sorted(rivals, reverse=True)
    assert found.confidence >= rivals[0]
    assert found.confidence + sum(rivals) <= 1.0 + 1e-3


def test_tools_that_cannot_answer_leave_the_probability_alone() -> None:
    class Nothing:
        def can(self, tool: Tool, target: str) -> bool:
            return tool is not Tool.SCAN

        def ask(self, tool: Tool, target: str) -> Report | None:
            return None

    case = Investigation(network(), silent("a"))
    before = case.probability.copy()
    case = investigate(Nothing(), network(), silent("a"))
    assert np.array_equal(case.probability, before)
    assert case.asked
    assert all(tool is not Tool.SCAN for tool, _ in case.asked)
    assert case.diagnosis() is not None


def test_without_a_symptom_there_is_nothing_to_diagnose() -> None:
    case = Investigation(network(), [])
    assert (case.next_question(), case.diagnosis()) == (None, None)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_answered_nothing_is_asked_twice_and_it_ends(data: st.DataObject) -> None:
    topology = network()
    sensors = sorted(d for d, kind in topology.kind.items() if kind is Device.SENSOR)
    said = data.draw(st.dictionaries(st.sampled_from(sensors), st.sampled_from(SYMPTOMS), min_size=1))
    case = Investigation(topology, [Symptom(s, word, 0.5) for s, word in said.items()])
    while (question := case.next_question()) is not None:
        assert question not in case.asked
        answered = data.draw(st.booleans())
        readings = {"answered": float(answered), "rtt_s": 0.05, "lost": data.draw(st.sampled_from((0.0, 0.5)))}
        case.learn(
            *question, Report(*question, {question[1]: readings | ({"stop": 2.0} if not answered else {"stop": 0.0})})
        )
    assert len(case.asked) <= Rule().max_questions
    assert case.probability.sum() == pytest.approx(1.0)


def test_of_two_tools_that_can_tell_the_cheaper_is_asked() -> None:
    # a dead receiver and a jammed one: status and scan both show the noise of a jammer
    case = Investigation(network(), [Symptom("a/gps", "silence", 1.0)])
    question = case.next_question(lambda tool, device: device == "a/gps" and tool in (Tool.STATUS, Tool.SCAN))
    assert question == (Tool.STATUS, "a/gps")
    assert COST[Tool.STATUS] < COST[Tool.SCAN]


def test_hypotheses_name_links_by_both_ends() -> None:
    topology = network()
    assert Hypothesis(Form.CUT, "a").location(topology) == link_name("gw-1", "a") == "a~gw-1"
    assert topology.ends("a~gw-1") == ("a", "gw-1")
    assert {h.form for h in hypotheses(topology, ["a/gps"])} == {
        Form.DEAD, Form.CUT, Form.FRAME, Form.UNIT, Form.RATE, Form.SPOOF, Form.JAM,
    }  # fmt: skip


def test_a_vehicle_that_moves_to_another_gateway_takes_its_sensors_along() -> None:
    topology = network()
    topology.add("a", Device.VEHICLE, "gw-2")
    assert topology.path("a/gps") == ("broker", "gw-2", "a", "a/gps")
    assert "a" not in topology.children["gw-1"]
    topology.remove("gw-2")
    assert "a/gps" not in topology
    assert "b/gps" in topology
