"""The environment: Gymnasium's own checks, the reference's usage example, and what an agent can and cannot see."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from watchkeeper.detectors.incidents.faults import Form
from watchkeeper.detectors.incidents.tools import Tool
from watchkeeper.detectors.incidents.topology import Device
from watchkeeper.evaluation.diagnosis.agents import DiagnoserAgent
from watchkeeper.evaluation.diagnosis.env import DIAGNOSE, NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.seen import Seen
from watchkeeper.evaluation.diagnosis.simulated.answers import SimulatedTools
from watchkeeper.evaluation.diagnosis.simulated.draw import draw_network
from watchkeeper.evaluation.diagnosis.simulated.network import Fault, Network

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


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="network_size is 3, expected 4 to 200"):
        draw_network(np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match="network_size is 4, expected 5 to 200 with cycles"):
        draw_network(np.random.default_rng(0), 4, cycles=True)
    with pytest.raises(ValueError, match="max_devices"):
        NetworkTroubleshootingEnv(max_devices=201)
    with pytest.raises(ValueError, match="cycles is 2, expected a share"):
        NetworkTroubleshootingEnv(cycles=2)
    with pytest.raises(ValueError, match="option 'size' is none of network_size"):
        NetworkTroubleshootingEnv().reset(options={"size": 5})


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ((Tool.PING, 199, 0, 0), "slot 199 is empty"), ((Tool.PING, 0, 199, 0), "slot 199 is empty"),
        ((Tool.PING, -1, 0, 0), "slot -1 is empty"), ((9, 0, 0, 0), "9 is no tool"), ((1, 2), "four whole numbers"),
        ((DIAGNOSE, 0, 0, 7), "7 is no fault type"), ((0.5, 0, 0, 0), "four whole numbers"),
        ((float("nan"), 0, 0, 0), "four whole numbers"), ((float("inf"), 0, 0, 0), "four whole numbers"),
        ("ping", "four whole numbers"), (None, "four whole numbers"), ({"what": 1}, "four whole numbers"),
    ],
)  # fmt: skip
def test_an_action_that_is_none_is_a_counted_error(action: Any, problem: str) -> None:
    env = NetworkTroubleshootingEnv()
    before = env.reset(seed=2)[0]
    obs, reward, terminated, truncated, info = env.step(action)
    assert problem in info["tool_error"]
    assert (reward, terminated, truncated, env.log.errors, env.log.steps) == (-0.5, False, False, 1, 0)
    assert env.observation_space.contains(obs)
    assert np.array_equal(obs["device"], before["device"])
    assert not Seen(obs).first


def test_a_source_that_is_no_use_to_a_tool_is_not_looked_at() -> None:
    env = NetworkTroubleshootingEnv()
    env.reset(seed=2)
    assert "tool_error" not in env.step(np.array([Tool.STATUS, 0, 199, 6]))[4]


def test_an_agent_sees_only_what_alarms_and_tools_have_shown() -> None:
    env = NetworkTroubleshootingEnv()
    obs, info = env.reset(seed=5, options={"network_size": 80, "fault_type": "gps_jamming"})
    assert info == {}
    seen = Seen(obs)
    whole = env.network.topology
    alarmed = {device for s in env.network.symptoms for device in whole.path(s.sensor)}
    spare = {peer for device in alarmed - {"broker"} for peer in whole.standby.get(device, ())}
    alarmed |= {peer for peer in spare if whole.kind[peer] is Device.GATEWAY}
    assert len(seen.names) == len(alarmed) < 80
    broker = np.array([Tool.DISCOVER, 0, 0, 0])
    after = Seen(env.step(broker)[0])
    gateways = len(whole.children["broker"])
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
