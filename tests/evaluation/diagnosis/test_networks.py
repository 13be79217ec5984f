"""Networks that are drawn: connected, with cycles when asked for, with faults of the root; SciPy counts components."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from watchkeeper.detectors.incidents.faults import FAULT_TYPES, STOPPING, Form
from watchkeeper.detectors.incidents.tools import Tool
from watchkeeper.detectors.incidents.topology import Device, Topology
from watchkeeper.evaluation.diagnosis.collector import MetricsCollectorWrapper
from watchkeeper.evaluation.diagnosis.env import NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.episodes import Snapshot
from watchkeeper.evaluation.diagnosis.play import OURS, Task, play
from watchkeeper.evaluation.diagnosis.simulated.answers import SimulatedTools
from watchkeeper.evaluation.diagnosis.simulated.draw import draw_network
from watchkeeper.evaluation.diagnosis.simulated.network import Network

SEEDS = st.integers(0, 2**32 - 1)


def components(topology: Topology) -> int:
    number = {name: i for i, name in enumerate(topology.kind)}
    ends = np.array([[number[end] for end in link.split("~")] for link in topology.links()])
    shape = (len(number), len(number))
    return int(connected_components(csr_array((np.ones(len(ends)), ends.T), shape), directed=False)[0])


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(5, 200), st.booleans(), st.booleans())
def test_networks_are_connected_and_have_cycles_exactly_when_asked(
    seed: int, size: int, cycles: bool, at_root: bool
) -> None:
    network = draw_network(np.random.default_rng(seed), size, cycles=cycles, at_root=at_root)
    topology = network.topology
    assert len(topology) == size
    assert set(topology.kind.values()) == set(Device)
    assert components(topology) == 1
    # a connected graph has a cycle exactly when it has at least as many links as devices
    assert (len(topology.links()) >= size) is cycles
    assert set(network.rtt_s) == set(network.lost) == set(topology.links())
    assert network.symptoms
    assert (network.fault.device == "broker") or not at_root


@pytest.mark.parametrize("size", [4, 5, 6, 7, 50, 199, 200])
def test_networks_have_the_size_that_was_asked_for(size: int) -> None:
    for seed in range(20):
        network = draw_network(np.random.default_rng(seed), size)
        assert len(network.topology) == size
        assert set(network.topology.kind.values()) == set(Device)


def test_every_fault_type_every_form_and_the_root_occur() -> None:
    faults = [draw_network(np.random.default_rng(seed), 20, cycles=seed % 2 == 0).fault for seed in range(600)]
    assert {fault.form for fault in faults} == set(Form)
    assert {fault.type for fault in faults} == set(FAULT_TYPES)
    assert {fault.form for fault in faults if fault.device == "broker"} == {Form.DEAD, Form.RATE}


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(5, 60))
def test_alarms_follow_the_ways_that_are_left(seed: int, size: int) -> None:
    network = draw_network(np.random.default_rng(seed), size, cycles=True)
    fault = network.fault
    if fault.form not in STOPPING:
        return
    own = [s for s in network.symptoms if fault.device in network.topology.path(s.sensor)]
    assert own
    for symptom in own:
        # one false alarm in a thousand may be about a stream whose own alarm is missing
        if symptom.size != 0.5:
            assert (symptom.word == "silence") is (network.way(symptom.sensor) is None)
            assert symptom.word in ("silence", "latency")


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("form", [Form.DEAD, Form.RATE])
def test_our_diagnoser_finds_a_root_that_fails(form: Form, cycles: bool) -> None:
    found = []
    for seed in range(60):
        rng = np.random.default_rng((7, seed))
        network = draw_network(rng, int(rng.integers(5, 80)), cycles=cycles, at_root=True)
        if network.fault.form is form:
            found.append(play(Task(OURS, Snapshot.of(network, seed))).metrics.diagnosis_success)
    assert len(found) > 15
    assert np.mean(found) >= 0.95


def test_our_diagnoser_finds_faults_that_traffic_goes_around() -> None:
    found = []
    for seed in range(600):
        rng = np.random.default_rng((8, seed))
        network = draw_network(rng, int(rng.integers(8, 80)), cycles=True)
        if any(s.word == "latency" for s in network.symptoms) and network.fault.form in STOPPING:
            found.append(play(Task(OURS, Snapshot.of(network, seed))).metrics.diagnosis_success)
    assert len(found) > 15
    assert np.mean(found) >= 0.9


def healthy_but_for_a_sensor(cycles: bool) -> Network:
    """A network in which every device answers."""
    return draw_network(np.random.default_rng(3), 60, "gps_jamming", cycles=cycles)


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("tool", [Tool.SCAN, Tool.DISCOVER, Tool.INTERFACES])
def test_a_full_scan_covers_everything(tool: Tool, cycles: bool) -> None:
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv(max_episode_steps=400))
    env.reset(seed=1, options={"network": healthy_but_for_a_sensor(cycles)})
    inner = env.unwrapped
    assert isinstance(inner, NetworkTroubleshootingEnv)
    slot = 0
    while slot < len(inner.slots):
        # now and then a device does not answer: ask again
        report = env.step(np.array([tool, slot, 0, 0]))[4]["report"]
        slot += report.answered
    env.step(np.array([6, 0, 0, 0]))
    assert env.last_metrics is not None
    assert (env.last_metrics.node_coverage, env.last_metrics.edge_coverage) == (1.0, 1.0)
    assert env.last_metrics.topology_coverage == 1.0


def test_packets_go_from_the_source_and_a_source_that_is_cut_off_sends_none() -> None:
    network = healthy_but_for_a_sensor(cycles=True)
    tools = SimulatedTools(network, np.random.default_rng(0))
    a, b = [d for d, kind in network.topology.kind.items() if kind is Device.VEHICLE][:2]
    hops = tools.ask(Tool.TRACEROUTE, b, a).readings
    assert a not in hops
    assert hops[b]["hop"] == max(own["hop"] for own in hops.values())
    assert tools.ask(Tool.PING, a, a).answered
    dead = draw_network(np.random.default_rng(3), 60, at_root=True, fault_type="device_failure")
    assert not SimulatedTools(dead, np.random.default_rng(0)).ask(Tool.PING, a, b).answered
