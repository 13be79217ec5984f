"""Callsigns come into use with the samples that bring them, however those are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT, Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.logs.chunks import rechunk
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

CONFIG = Config(fleet=FleetLimits(max_vehicles=20))
SECONDS, CALLED_AFTER_S = 120, 30


def late_callers() -> Iterator[Batch]:
    """Meeting aircraft that are named only after their conflict has been raised."""
    for second, batch in enumerate(simulate("head-on", seed=1, seconds=SECONDS, vehicles=4).batches()):
        yield replace(batch, callsigns=batch.callsigns if second >= CALLED_AFTER_S else {})


def played(batches: Iterator[Batch], *, restarts: bool = False) -> list[AlarmEvent]:
    pipeline, events = Pipeline(CONFIG), []
    for batch in batches:
        if restarts:
            state = decode_state(bytes(StateEncoder().encode(pipeline.snapshot())))
            pipeline = Pipeline(CONFIG)
            pipeline.restore(state)
        events += pipeline.feed(batch)
    return events + pipeline.finish()


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    events = played(late_callers())
    # both are in it: an event that knows no callsign yet, and later ones of the same alarm that do
    unnamed, named = events[0].say, events[-1].say
    assert all(name in unnamed for name in events[0].subjects)
    assert not any(name in named for name in events[-1].subjects)
    return [encode_event(event) for event in events]


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_the_events_are_the_same_bytes_for_any_chunking(size: int, expected: list[bytes]) -> None:
    assert [encode_event(event) for event in played(rechunk(late_callers(), size))] == expected


AWAY_S = 7200.0


def test_what_the_clock_holds_back_has_its_callsign_with_it() -> None:
    """After a break the first samples wait until others confirm the time; nobody says the callsigns a second time."""
    first, second, *_ = simulate("head-on", seed=1, seconds=3, vehicles=4).batches()
    pipeline = Pipeline(CONFIG)
    pipeline.feed(replace(first, callsigns={}))
    late = [replace(batch.kinds[Kind.ADSB], t=batch.kinds[Kind.ADSB].t + AWAY_S) for batch in (first, second)]
    one = late[0].take(np.array([0]))
    pipeline.feed(replace(first, kinds={Kind.ADSB: one}))
    assert len(pipeline.clock.held) == 1
    restarted = Pipeline(CONFIG)
    restarted.restore(decode_state(bytes(StateEncoder().encode(pipeline.snapshot()))))
    for running in (pipeline, restarted):
        running.feed(replace(second, kinds={Kind.ADSB: late[1]}, callsigns={}))
        running.finish()
        assert not running.clock.held
        name = first.ids[one.vid[0]]
        assert running.fleet.callsigns == {name: first.callsigns[name]}


def test_a_decoder_that_takes_many_messages_at_once_changes_nothing(expected: list[bytes]) -> None:
    decoder = Decoder(DEFAULT.topics, DEFAULT.limits, lambda *_: None)
    for batch in late_callers():
        decoder.add_batch(batch)
    whole = decoder.take()
    assert whole is not None
    assert [encode_event(event) for event in played(iter([whole]))] == expected


def test_a_restart_at_any_moment_changes_nothing(expected: list[bytes]) -> None:
    assert [encode_event(event) for event in played(late_callers(), restarts=True)] == expected
