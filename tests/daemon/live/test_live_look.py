"""What the live page is told about one vehicle and about the network: against what the simulation put into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.live.network import MAX_LISTED, network
from watchkeeper.daemon.live.scores import Scores
from watchkeeper.daemon.live.vehicle import POINTS, describe
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.gps_imu.state import CHANNELS
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

SECONDS, FAULT_S = 75.0, 55.0


class Looked:
    """A pipeline with somebody looking on."""

    def __init__(self) -> None:
        self.scores = Scores(DEFAULT.fleet.max_vehicles)
        self.pipeline = Pipeline(DEFAULT, on_evidence=self.scores.take)

    def vehicle(self, name: str) -> dict[str, Any]:
        # as the page gets it: whatever JSON cannot say would show here
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(describe(self.pipeline, self.scores, name)))
        return found

    def network(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(network(self.pipeline)))
        return found


@pytest.fixture(scope="module")
def looked() -> Iterator[Looked]:
    """Six drones behind two gateways, of which the second becomes 0.6 s slower."""
    made = Looked()
    source = network_source(4, 6, 2, SECONDS, NetworkFault("latency", "gw-2", FAULT_S, 0.6))
    for batch in network_batches(source, SECONDS):
        made.pipeline.feed(batch)
    return made


def test_a_vehicle_is_told_with_its_streams_series_scores_and_link(looked: Looked) -> None:
    name = next(n for n in looked.pipeline.fleet.slot_of if n.startswith("quad"))
    found = looked.vehicle(name)
    streams = {s["kind"]: s for s in found["streams"]}
    assert streams["imu"]["rate_hz"] == pytest.approx(50.0, rel=0.05)
    assert streams["gps"]["rate_hz"] == pytest.approx(5.0, rel=0.3)
    assert {value[0] for value in streams["gps"]["values"]} >= {"gps_x", "gps_y", "gps_z"}
    assert all(
        0 < len(series["v"]) <= POINTS and series["t"] == sorted(series["t"]) for series in found["series"].values()
    )
    # a drone that hovers or flies gently carries its own weight
    assert np.median(found["series"]["specific force"]["v"]) == pytest.approx(9.8, abs=1.5)
    judged = next(s for s in found["scores"] if s["kind"] == "gps_imu")
    assert judged["ratio"] == pytest.approx(judged["score"] / judged["threshold"], rel=1e-2)
    assert {f"{channel}_sigma" for channel in CHANNELS} <= judged["numbers"].keys()
    assert found["link"]["via"] in ("gw-1", "gw-2")
    assert [s["kind"] for s in found["link"]["streams"]] == ["gps", "imu"]


def test_a_vehicle_that_is_not_there_is_said_to_be_unknown(looked: Looked) -> None:
    assert looked.vehicle("nobody") == {"type": "vehicle", "id": "nobody", "known": False}


def test_the_network_shows_where_it_is_slow(looked: Looked) -> None:
    found = looked.network()
    gateways = {g["name"]: g for g in found["gateways"]}
    assert {name: g["vehicles"] for name, g in gateways.items()} == {"gw-1": 3, "gw-2": 3}
    assert abs(gateways["gw-1"]["latency_excess_s"]) < 0.1
    assert gateways["gw-2"]["latency_excess_s"] == pytest.approx(0.6, abs=0.1)
    # the worst first: those behind the slow one
    names = [g["name"] for g in found["gateways"]]
    assert [names[v["gateway"]] for v in found["vehicles"]] == ["gw-2"] * 3 + ["gw-1"] * 3
    assert found["unlisted"] == 0


def test_of_a_large_fleet_the_worst_links_are_listed() -> None:
    looked = Looked()
    names = [f"uav-{i:04}" for i in range(MAX_LISTED + 100)]
    vid = np.arange(len(names), dtype=np.int32)
    zero = dict.fromkeys(("gps_x", "gps_y", "gps_z"), np.zeros(len(names)))
    for t in range(100, 110):
        cols = columns_of(Kind.GPS, vid, np.full(len(names), float(t)), zero)
        looked.pipeline.feed(Batch(names, {Kind.GPS: cols}))
    found = looked.network()
    assert [(g["name"], g["vehicles"]) for g in found["gateways"]] == [("", len(names))]
    assert (len(found["vehicles"]), found["unlisted"]) == (MAX_LISTED, 100)


def test_without_link_statistics_there_is_less_to_say() -> None:
    config = load(None, env={}, overrides={"detectors": {"link": {"enabled": False}}, "diagnosis": {"enabled": False}})
    found = network(Pipeline(config))
    assert (found["gateways"], found["vehicles"], found["aircraft"]) == ([], [], 0)
