"""Live discover and traceroute: what they say about a network that is declared, heard, and reported on or not."""

from __future__ import annotations

import gc
import weakref
from functools import cache

import msgspec
import pytest

from watchkeeper.config.schema import DEFAULT, Frames
from watchkeeper.config.topology import DeclaredVehicles, Topology
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.clock import Memory, Situation
from watchkeeper.detectors.incidents.expect import observed
from watchkeeper.detectors.incidents.live_tools import LiveTools
from watchkeeper.detectors.incidents.network import LiveNetwork
from watchkeeper.detectors.incidents.tools import Report, Tool
from watchkeeper.detectors.link.detector import LinkDetector
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

T_FAULT, SECONDS = 32.0, 41.0
# quad-1, quad-3, quad-5 behind gw-1, the others behind gw-2
VEHICLES, GATEWAYS = 6, 2
CONFIG = msgspec.structs.replace(
    DEFAULT, topology=Topology(vehicles=(DeclaredVehicles(names=("ghost",), gateway="gw-1"),), wait_s=0.0)
)


@cache
def ran(form: str, device: str, size: float, mute: bool, vehicles: int = VEHICLES) -> tuple[Pipeline, list[AlarmEvent]]:
    source = network_source(4, vehicles, GATEWAYS, SECONDS, NetworkFault(form, device, T_FAULT, size), mute=mute)
    pipeline = Pipeline(CONFIG)
    return pipeline, [e for batch in network_batches(source, SECONDS) for e in pipeline.feed(batch)]


def tools_of(pipeline: Pipeline, *vehicles: str, late: bool = False, lossy: bool = False) -> LiveTools:
    stats = next(d.stats for d in pipeline.detectors if isinstance(d, LinkDetector))
    network = LiveNetwork(pipeline.fleet, stats, {name: i for i, name in enumerate(pipeline.gateways)})
    t = pipeline.watermark
    now = Situation(t, late_t=dict.fromkeys(vehicles, t - 5.0) if late else {}, lossy=lossy)
    return LiveTools(pipeline.fleet, stats, network, network.around(vehicles), Frames(), now, Memory())


def asked(tools: LiveTools, tool: Tool, target: str) -> Report:
    report = tools.ask(tool, target)
    assert report is not None
    return report


def tools_in(events: list[AlarmEvent]) -> list[tuple[str, str, str]]:
    diagnosis = [e for e in events if e.kind == "incident"][-1].diagnosis
    assert diagnosis is not None
    return [(line["tool"], line["target"], line["found"]) for line in diagnosis["evidence"] if "tool" in line]


@pytest.mark.parametrize(("form", "stop"), [("cut", 1.0), ("dead", 2.0)])
def test_traceroute_ends_where_the_port_before_says_why(form: str, stop: float) -> None:
    tools = tools_of(ran(form, "quad-1", 1.0, False)[0], "quad-1")
    way = asked(tools, Tool.TRACEROUTE, "quad-1").readings
    assert list(way) == ["gw-1", "quad-1"]
    assert way["gw-1"]["answered"] == 1.0
    assert 0.005 < way["gw-1"]["rtt_s"] < 0.1
    assert (way["quad-1"]["answered"], way["quad-1"]["stop"]) == (0.0, stop)
    # last heard when it died; the tick that asks is a second behind the stream
    assert way["quad-1"]["age_s"] == pytest.approx(SECONDS - 1.0 - T_FAULT, abs=1.0)


def test_where_nobody_reports_on_the_port_a_traceroute_to_the_end_is_pointless() -> None:
    tools = tools_of(ran("dead", "quad-1", 1.0, True)[0], "quad-1")
    assert not tools.can(Tool.TRACEROUTE, "quad-1")
    assert tools.ask(Tool.TRACEROUTE, "quad-1") is None


def test_a_lamp_that_was_told_once_is_not_told_again() -> None:
    tools = tools_of(ran("cut", "quad-1", 1.0, False)[0], "quad-1")
    assert asked(tools, Tool.INTERFACES, "gw-1").readings["quad-1"]["carrier"] == 0.0
    assert tools.can(Tool.TRACEROUTE, "quad-1")
    assert tools.ask(Tool.TRACEROUTE, "quad-1") is None


def test_discover_lists_who_is_heard_who_is_missing_and_who_never_was() -> None:
    tools = tools_of(ran("dead", "quad-1", 1.0, True)[0], "quad-1")
    report = asked(tools, Tool.DISCOVER, "gw-1")
    assert {v: own["heard"] for v, own in report.readings.items() if v != "gw-1"} == {
        "quad-1": 0.0, "quad-3": 1.0, "quad-5": 1.0, "ghost": 0.0,
    }  # fmt: skip
    assert "age_s" not in report.readings["ghost"]
    assert report.readings["quad-3"]["age_s"] < 1.0
    # the one that has just gone is the news, not the one that never came
    assert observed(report, tools._topology, 0.0) == "missing:quad-1"


def test_of_a_mute_gateway_with_one_vehicle_nothing_is_known_apart() -> None:
    tools = tools_of(ran("dead", "wing-2", 1.0, True, 3)[0], "wing-2")
    assert not tools.can(Tool.DISCOVER, "gw-2")
    assert not tools.can(Tool.STATUS, "gw-2")
    # with two vehicles, that both are silent speaks against it
    both = tools_of(ran("dead", "gw-2", 1.0, True)[0], "wing-2", "quad-4", "quad-6")
    assert not asked(both, Tool.DISCOVER, "gw-2").answered


@pytest.mark.parametrize(("device", "word"), [("gw-1", "slow:gw-1"), ("quad-1", "slow:quad-1")])
def test_traceroute_finds_the_slow_hop_by_what_vehicles_have_in_common(device: str, word: str) -> None:
    late = ("quad-1", "quad-3", "quad-5") if device == "gw-1" else ("quad-1",)
    tools = tools_of(ran("latency", device, 0.5, True)[0], *late, late=True)
    report = asked(tools, Tool.TRACEROUTE, "quad-1")
    assert observed(report, tools._topology, 0.5) == word
    assert report.readings["quad-1"]["rtt_s"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("form", "clock_s"), [("clock", 0.5), ("latency", 0.0)])
def test_without_a_ping_the_seam_in_the_time_stamps_tells_a_clock_from_a_slow_link(form: str, clock_s: float) -> None:
    pipeline, events = ran(form, "quad-1", 0.5, True)
    scan = asked(tools_of(pipeline, "quad-1", late=True), Tool.SCAN, "quad-1")
    assert scan.readings["quad-1"]["clock_s"] == pytest.approx(clock_s, abs=0.06)
    found = [e for e in events if e.kind == "incident"][-1].diagnosis
    assert found is not None
    expected = ("misconfiguration", "quad-1") if form == "clock" else ("performance_degradation", "gw-1~quad-1")
    assert (found["type"], found["location"]) == expected


def test_the_diagnoser_chooses_discover_where_a_gateway_says_nothing_of_itself() -> None:
    assert ("discover", "gw-1", "missing:quad-1") in tools_in(ran("dead", "quad-1", 1.0, True)[1])
    # where it does, its own word is cheaper
    assert all(tool != "discover" for tool, _, _ in tools_in(ran("dead", "quad-1", 1.0, False)[1]))


def test_the_diagnoser_chooses_traceroute_where_nobody_answers_a_ping() -> None:
    assert ("traceroute", "quad-1", "slow:quad-1") in tools_in(ran("latency", "quad-1", 0.5, True)[1])


def test_a_pipeline_that_is_done_is_freed_at_once_and_not_when_the_collector_comes() -> None:
    # cycles through a fleet of preallocated arrays would pile up by hundreds of megabytes
    pipeline, _ = ran.__wrapped__("dead", "quad-1", 1.0, False)
    fleet = weakref.ref(pipeline.fleet)
    gc.disable()
    try:
        del pipeline
        assert fleet() is None
    finally:
        gc.enable()
