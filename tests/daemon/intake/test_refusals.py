"""A topic of which most is refused is said once, with an example; the clock is stepped."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT, Config, FleetLimits
from watchkeeper.daemon.intake.refusals import AGAIN_S, MOST_TOPICS, WINDOW_S, Refusals
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline(Config(fleet=FleetLimits(max_vehicles=10)))


@pytest.fixture
def refusals(pipeline: Pipeline, clock: Clock) -> Refusals:
    return Refusals(DEFAULT.topics, pipeline, clock)


def fixes(pipeline: Pipeline, n: int) -> None:
    t = np.arange(100.0, 100.0 + n)
    data = {"gps_x": t, "gps_y": t}
    pipeline.feed(Batch(["q1"], {Kind.GPS: columns_of(Kind.GPS, np.zeros(n, np.int32), t, data)}))


def test_most_of_a_topic_refused_is_said_with_an_example_and_logged_at_both_ends(refusals, clock, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(24):
            refusals.refused("telemetry/imu/q1", "out_of_range", b'{"imu_ax": 1e9}')
        assert refusals.health() == []
        clock.now = WINDOW_S
        [said] = refusals.health()
        assert said.startswith("input: 100% of telemetry/imu/q1 is refused (out_of_range), such as")
        assert "imu_ax" in said
        clock.now = 2 * WINDOW_S
        assert refusals.health() == []
    assert [record.message for record in caplog.records] == [
        "a message was refused", "most input of a topic is refused", "input is taken again",
    ]  # fmt: skip


def test_the_first_of_each_reason_is_logged_at_once_in_words_and_then_once_a_minute(refusals, clock, caplog):
    payload = b'{"t":1,"lon":.0103985}'
    for _ in range(1000):
        refusals.refused("telemetry/adsb/east", "malformed", payload)
    refusals.refused("telemetry/adsb/east", "out_of_range", b'{"t":1,"lat":91,"lon":0}')
    first, other = (record.fields for record in caplog.records)
    assert first["problem"].endswith('invalid character (byte 13), at ".0103985}"')
    assert (first["topic"], first["payload"]) == ("telemetry/adsb/east", payload.decode())
    assert other["problem"].endswith("lat is 91, allowed is -90 to 90 deg")
    clock.now = AGAIN_S
    refusals.refused("telemetry/adsb/east", "malformed", payload)
    assert caplog.records[-1].fields["others_since"] == "999"
    assert len(caplog.records) == 3


def test_a_few_bad_samples_among_many_good_ones_are_counted_elsewhere(refusals, clock, pipeline):
    for _ in range(10):
        refusals.refused("telemetry/gps/q1", "out_of_range", b"")
    fixes(pipeline, 60)
    clock.now = WINDOW_S
    assert refusals.health() == []


def test_a_stranger_with_many_topics_fills_no_memory(refusals, clock):
    for i in range(3 * MOST_TOPICS):
        for _ in range(6):
            refusals.refused(f"telemetry/gps/s{i}", "bad_id", b"x")
    assert len(refusals._window) == MOST_TOPICS
    clock.now = WINDOW_S
    [said] = refusals.health()
    assert f"and {MOST_TOPICS - 3} more topics" in said
