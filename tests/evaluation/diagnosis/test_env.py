"""The environment: Gymnasium's own checks, the reference's usage example, and what an agent can and cannot see."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from watchkeeper.detectors.incidents.faults import FAULT_TYPES, Form
from watchkeeper.detectors.incidents.tools import Tool
from watchkeeper.detectors.incidents.topology import Device
from watchkeeper.evaluation.diagnosis.agents import DiagnoserAgent, Seen
from watchkeeper.evaluation.diagnosis.answers import SimulatedTools
from watchkeeper.evaluation.diagnosis.env import NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.network import Fault, Network, draw_network

from where import SHARED

SPEC = SHARED / "spec" / "diagnosis-metrics.md"
PAIRS = (
    (Form.DEAD, Form.CUT, Device.VEHICLE, {Tool.INTERFACES, Tool.TRACEROUTE}),
    (Form.LATENCY, Form.CLOCK, Device.VEHICLE, {Tool.PING, Tool.TRACEROUTE, Tool.INTERFACES, Tool.SCAN}),
    (Form.SPOOF, Form.FRAME, Device.SENSOR, {Tool.SCAN, Tool.STATUS}),
)


def test_gymnasium_finds_nothing_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # there is nothing to render
        check_env(NetworkTroubleshootingEnv(), skip_render_check=True)


def test_the_usage_example_of_the_reference_runs_with_only_its_imports_changed() -> None:
    if not SPEC.exists():
        pytest.skip(f"no metrics reference at {SPEC}")
    (example,) = re.findall(r"```python\n(from netheal.*?)```", SPEC.read_text(), re.DOTALL)
    lines = [line for line in example.splitlines() if not line.startswith("from netheal")]
    imports = "from watchkeeper.evaluation.diagnosis import MetricsCollectorWrapper, NetworkTroubleshootingEnv"
    names: dict[str, Any] = {"your_agent": DiagnoserAgent()}
    exec("\n".join((imports, *lines)), names)
    assert names["episode_metrics"].steps > 0
    assert names["summary"]["episodes"] == 1


def test_the_same_seed_gives_the_same_network_and_another_seed_another() -> None:
    def fault(seed: int) -> Fault:
        env = NetworkTroubleshootingEnv()
        env.reset(seed=seed)
        return env.network.fault

    assert fault(3) == fault(3)
    assert len({fault(seed).location for seed in range(8)}) > 4


@pytest.mark.parametrize("size", [4, 5, 6, 7, 50, 199, 200])
def test_networks_have_the_size_that_was_asked_for(size: int) -> None:
    for seed in range(20):
        network = draw_network(np.random.default_rng(seed), size)
        assert len(network.topology) == size
        kinds = set(network.topology.kind.values())
        assert kinds == set(Device)
        assert network.symptoms
        assert network.fault.device != "broker"


def test_every_fault_type_and_every_form_occurs() -> None:
    forms = {draw_network(np.random.default_rng(seed), 60).fault.form for seed in range(400)}
    assert forms == set(Form)
    assert {form.fault_type for form in forms} == set(FAULT_TYPES)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="network_size is 3, expected 4 to 200"):
        draw_network(np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match="max_devices"):
        NetworkTroubleshootingEnv(max_devices=201)


def test_an_agent_sees_only_what_alarms_and_tools_have_shown() -> None:
    env = NetworkTroubleshootingEnv()
    obs, info = env.reset(seed=5, options={"network_size": 80, "fault_type": "gps_jamming"})
    assert info == {}
    seen = Seen(obs)
    alarmed = {device for s in env.network.symptoms for device in env.network.topology.path(s.sensor)}
    assert len(seen.names) == len(alarmed) < 80
    broker = np.array([Tool.DISCOVER, 0, 0, 0])
    after = Seen(env.step(broker)[0])
    gateways = len(env.network.topology.children["broker"])
    assert len(after.topology.children["broker"]) == gateways


def vehicle_with(network: Network, kind: Device) -> str:
    return next(d for d, k in network.topology.kind.items() if k is kind and (kind is not Device.SENSOR or "gps" in d))


@pytest.mark.parametrize(("one", "other", "kind", "telling"), PAIRS)
def test_look_alikes_differ_only_for_the_tools_that_can_tell(
    one: Form, other: Form, kind: Device, telling: set[Tool]
) -> None:
    base = draw_network(np.random.default_rng(8), 40)
    device = vehicle_with(base, kind)
    differ = set()
    for tool in Tool:
        answers = []
        for form in (one, other):
            location = base.topology.uplink(device) if form.on_link else device
            network = Network(base.topology, base.rtt_s, base.lost, Fault(form, device, location, 1.0), base.symptoms)
            parent = base.topology.parent[device]
            ask = [SimulatedTools(network, np.random.default_rng(3)).ask(tool, d) for d in (device, parent)]
            answers.append(ask)
        if answers[0] != answers[1]:
            differ.add(tool)
    assert differ == telling
