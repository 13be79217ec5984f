"""Networks with cycles, and a broker that can fail: which ways are left after a fault, and what the diagnoser finds.

SciPy's connected components say who can still be reached.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from watchkeeper.detectors.incidents.diagnoser import DEFAULT_RULE, Investigation, Rule
from watchkeeper.detectors.incidents.expect import expected, observed
from watchkeeper.detectors.incidents.faults import Form, Hypothesis
from watchkeeper.detectors.incidents.tools import Report, Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology, link_name

ANY_DEVICE = Rule(suspects=frozenset(Device))


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Gateways behind gateways, vehicles, and standby links between any two of them."""
    topology = Topology()
    gateways = ["broker"]
    for i in range(draw(st.integers(1, 6))):
        topology.add(f"gw-{i}", Device.GATEWAY, draw(st.sampled_from(gateways)))
        gateways.append(f"gw-{i}")
    for i in range(draw(st.integers(1, 6))):
        topology.add(f"uav-{i}", Device.VEHICLE, draw(st.sampled_from(gateways)))
        topology.add(f"uav-{i}/gps", Device.SENSOR, f"uav-{i}")
    inner = [d for d, kind in topology.kind.items() if kind is not Device.SENSOR]
    for a, b in draw(st.lists(st.tuples(st.sampled_from(gateways), st.sampled_from(inner)), max_size=8)):
        topology.join(a, b)
    return topology


def reached(topology: Topology, target: str, fault: str, dead: bool) -> bool:
    """Whether SciPy finds a way from the broker that no other vehicle passes on."""
    names = list(topology.kind)
    own = topology.path(target)
    number = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for link in topology.links():
        ends = link.split("~")
        passed_on = all(topology.kind[d] <= Device.GATEWAY or d in own for d in ends)
        broken = fault in ends if dead else link == topology.uplink(fault)
        if passed_on and not broken:
            matrix[number[ends[0]], number[ends[1]]] = 1.0
    groups = connected_components(csr_array(matrix), directed=False)[1]
    gone = dead and fault in (target, "broker")
    return bool(groups[number["broker"]] == groups[number[target]]) and not gone


@given(networks(), st.data())
def test_the_ways_that_are_left_are_those_that_scipy_finds(topology: Topology, data: st.DataObject) -> None:
    dead = data.draw(st.booleans())
    fault = data.draw(st.sampled_from([d for d in topology.kind if dead or d != "broker"]))
    links = set(topology.links())
    around = topology.around(fault, dead=dead)
    for device in topology.below(fault):
        assert (device in around) is reached(topology, device, fault, dead)
    for device, way in around.items():
        assert (way[0], way[-1]) == ("broker", device)
        used = [link_name(a, b) for a, b in pairwise(way)]
        assert set(used) <= links
        assert len(set(way)) == len(way)
        assert fault not in way if dead else topology.uplink(fault) not in used


def ring() -> Topology:
    """broker – gw-1 (a, b), broker – gw-2 (c); standby links gw-1 ~ gw-2 and a ~ gw-2."""
    topology = Topology()
    for gateway, vehicles in (("gw-1", ("a", "b")), ("gw-2", ("c",))):
        topology.add(gateway, Device.GATEWAY, "broker")
        for vehicle in vehicles:
            topology.add(vehicle, Device.VEHICLE, gateway)
            topology.add(f"{vehicle}/gps", Device.SENSOR, vehicle)
    topology.join("gw-1", "gw-2")
    topology.join("a", "gw-2")
    return topology


def test_links_are_counted_once_and_a_link_that_is_there_is_not_joined_again() -> None:
    topology = ring()
    assert len(topology.links()) == len(set(topology.links())) == 10
    assert not topology.join("gw-2", "gw-1")
    assert not topology.join("gw-1", "a")
    assert not topology.join("a", "a")
    topology.remove("gw-1")
    assert not topology.standby


def test_a_vehicle_that_moves_onto_its_standby_link_has_that_link_once() -> None:
    topology = ring()
    topology.add("a", Device.VEHICLE, "gw-2")
    assert topology.links().count("a~gw-2") == 1
    assert topology.standby == {"gw-1": ["gw-2"], "gw-2": ["gw-1"]}


def test_a_cut_uplink_with_a_way_around_makes_streams_late_and_a_dead_gateway_silences_some() -> None:
    topology = ring()
    cut, dead = Hypothesis(Form.CUT, "gw-1"), Hypothesis(Form.DEAD, "gw-1")
    assert expected(cut, Tool.PING, "b", topology) == "slow"
    assert expected(cut, Tool.TRACEROUTE, "b", topology) == "around:gw-1"
    assert expected(cut, Tool.INTERFACES, "gw-1", topology) == "down:gw-1"
    assert expected(dead, Tool.PING, "b", topology) == "silent"
    assert expected(dead, Tool.PING, "a", topology) == "slow"
    assert expected(dead, Tool.TRACEROUTE, "a", topology) == "around:a"
    assert expected(dead, Tool.INTERFACES, "gw-2", topology) == "idle:gw-1~gw-2"
    assert expected(dead, Tool.INTERFACES, "a", topology) == "idle:a"
    assert expected(dead, Tool.DISCOVER, "gw-2", topology) == "missing:gw-1"


@pytest.mark.parametrize(
    ("hops", "word"),
    [
        (("gw-1", "b"), "plain"), (("gw-2", "gw-1", "b"), "around:gw-1"), ((None, "gw-1", "b"), "around:gw-1"),
        ((None, "b"), "plain"),
    ],
)  # fmt: skip
def test_a_traceroute_shows_where_the_way_left_the_usual_one(hops: tuple[str | None, ...], word: str) -> None:
    plain = {"answered": 1.0, "stop": 0.0, "rtt_s": 0.03, "lost": 0.0}
    readings = {hop: {**plain, "hop": float(i)} for i, hop in enumerate(hops, 1) if hop is not None}
    assert observed(Report(Tool.TRACEROUTE, "b", readings), ring(), 0.5) == word


def test_a_way_around_tells_a_cut_link_from_a_slow_one() -> None:
    late = [Symptom(f"{v}/gps", "latency", 0.5) for v in ("a", "b")]
    case = Investigation(ring(), late)
    assert {h.form for h in case.hypotheses if h.device == "gw-1"} >= {Form.CUT, Form.LATENCY}
    port = {"carrier": 0.0, "heard": 0.0, "filtered": 0.0, "errors": 0.0, "backlog_s": 0.0}
    case.learn(Tool.INTERFACES, "gw-1", Report(Tool.INTERFACES, "gw-1", {"gw-1": {"answered": 1.0}, "broker": port}))
    found = case.diagnosis()
    assert found is not None
    assert (found.type, found.location) == ("link_failure", "broker~gw-1")


def test_a_dead_broker_is_found_where_it_is_a_suspect_and_only_there() -> None:
    silent = [Symptom(f"{v}/gps", "silence", 1.0) for v in ("a", "b", "c")]
    found = Investigation(ring(), silent, ANY_DEVICE).diagnosis()
    assert found is not None
    assert (found.type, found.location) == ("device_failure", "broker")
    other = Investigation(ring(), silent, DEFAULT_RULE)
    assert "broker" not in {h.device for h in other.hypotheses}
