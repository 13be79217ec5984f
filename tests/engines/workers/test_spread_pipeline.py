"""A Pipeline whose operators are processes, as a daemon drives it: same bytes, same to see, loud when one dies."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import numpy as np
import pytest
from waiting import wait_for

from tests.engines.test_sharded import behind_gateways
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.base import Evidence
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.workers.link import WorkerError
from watchkeeper.engines.workers.pipeline import SpreadPipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate


def quieter(config: Config) -> Config:
    """Other thresholds, as a reload brings them."""
    found = msgspec.structs.replace(config.detectors.gps_imu, threshold=config.detectors.gps_imu.threshold * 1.5)
    return msgspec.structs.replace(config, detectors=msgspec.structs.replace(config.detectors, gps_imu=found))


def driven(pipeline: Pipeline, world: list[Batch], events: list[AlarmEvent]) -> None:
    """As the daemon does: samples, time that goes on by itself and comes back, a reload."""
    for number, batch in enumerate(world):
        events += pipeline.feed(batch)
        if number % 40 == 39:
            events += pipeline.advance(batch.t_max + 3.0)
        if number == 60:
            events += pipeline.settle()
            pipeline.retune(quieter(pipeline.config))
    events += pipeline.settle()


def test_a_daemon_s_pipeline_in_processes() -> None:
    world = list(behind_gateways(simulate("mixed", seed=5, vehicles=33, seconds=100).batches(), 4, roam_s=17.0))
    half = len(world) // 2
    single = Pipeline(Config())
    expected: list[AlarmEvent] = []
    driven(single, world[:half], expected)
    driven(single, world[half:], expected)
    expected += single.finish()

    events: list[AlarmEvent] = []
    seen: list[Evidence] = []
    two = SpreadPipeline(Config(), 2)
    two.start()
    try:
        driven(two, world[:half], events)
        saved = decode_state(bytes(StateEncoder().encode(two.snapshot())))
    finally:
        two.close()
    three = SpreadPipeline(two.config, 3)
    three.on_evidence = lambda _window, evidence: seen.extend(evidence)
    three.restore(saved)
    assert three.t_max == two.t_max
    assert three.active == two.active
    three.start()
    try:
        driven(three, world[half:], events)
        events += three.finish()
        time.sleep(1.0)  # how often there is something to see
        three.reach(three.watermark + 1.0)
        three.settle()
        single.reach(single.watermark + 1.0)
        assert [encode_event(event) for event in events] == [encode_event(event) for event in expected]
        same_to_see(single, three)
        assert {found.kind for found in seen} >= {"gps_imu", "link"}
        assert three.gauges().keys() >= {"gps_imu_fixes", "gps_imu_score_p99"}
        os.kill(three.workers.links[1].pid, signal.SIGKILL)
        wait_for(lambda: three.workers.failed)
        with pytest.raises(WorkerError, match="vehicles 2 of 3 ended"):
            three.check()
    finally:
        three.close()


def same_to_see(single: Pipeline, spread: SpreadPipeline) -> None:
    assert spread.fleet.slot_of.keys() == single.fleet.slot_of.keys()
    assert spread.samples == single.samples
    assert spread.drops == single.drops
    assert spread.watermark == single.watermark
    assert spread.guard.coverage.detectors == single.guard.coverage.detectors
    for name, here in spread.fleet.slot_of.items():
        there = single.fleet.slot_of[name]
        assert np.array_equal(spread.fleet.count[:, here], single.fleet.count[:, there])
        assert np.array_equal(
            spread.fleet.value[Kind.GPS][:, here], single.fleet.value[Kind.GPS][:, there], equal_nan=True
        )
        assert spread.guard.coverage.of(here) == single.guard.coverage.of(there)
    assert spread.fleet.callsigns == single.fleet.callsigns


def test_nothing_is_judged_in_the_parent() -> None:
    spread = SpreadPipeline(Config(), 1)
    assert not spread.detectors
    assert spread.watched == Pipeline(Config()).watched
