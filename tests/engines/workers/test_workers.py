"""Operators in processes: the bytes of one Pipeline, over a restart with another number, and loud when one dies."""

from __future__ import annotations

import os
import signal

import pytest

from tests.engines.test_sharded import behind_gateways, through
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.workers.link import WorkerError
from watchkeeper.engines.workers.workers import Workers
from watchkeeper.streams.simulate import simulate


def test_workers_give_the_bytes_of_one_pipeline_and_a_dead_one_is_not_ignored() -> None:
    world = list(behind_gateways(simulate("mixed", seed=5, vehicles=33, seconds=90).batches(), 4, roam_s=17.0))
    expected = through(Pipeline(Config()), world)
    half = len(world) // 2
    with Workers(Config(), 2) as two:
        events = [event for batch in world[:half] for event in two.feed(batch)]
        events += two.settle()
        dump = two.dump()
        os.kill(two.links[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="vehicles 1 of 2 ended"):
            list(map(two.feed, world[half:]))
    with Workers(Config(), 1) as one:
        one.load(dump)
        events += [event for batch in world[half:] for event in one.feed(batch)]
        events += one.finish()
        figures = one.figures()
    assert [encode_event(event) for event in events] == expected
    assert {name for figure in figures for name in figure.detectors} >= {"gps_imu", "conflict"}
    assert figures[0].tallies["gps_imu"]["judged"] > 0
