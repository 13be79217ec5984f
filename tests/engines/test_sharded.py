"""Any number of shards gives the bytes of one Pipeline, incidents and diagnoses included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.sharded import Sharded
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate


class Judges(Protocol):
    def feed(self, batch: Batch) -> list[AlarmEvent]: ...

    def finish(self) -> list[AlarmEvent]: ...


def through(pipeline: Judges, batches: Iterable[Batch]) -> list[bytes]:
    events = [event for batch in batches for event in pipeline.feed(batch)]
    return [encode_event(event) for event in events + pipeline.finish()]


def behind_gateways(batches: Iterable[Batch], gateways: int, *, roam_s: float = 40.0) -> Iterator[Batch]:
    """Everybody behind a gateway, every third vehicle behind another one every `roam_s`; one gateway dies for a while,
    a vehicle falls silent, another's samples come late."""
    start_t = None
    for batch in batches:
        start_t = batch.t_min if start_t is None else start_t
        numbers = np.arange(len(batch.ids))
        kinds: dict[Kind, Columns] = {}
        for kind, cols in batch.kinds.items():
            age_s = cols.t - start_t
            moved = np.where(cols.vid % 3 == 0, (age_s / roam_s).astype(int), 0)
            via = ((numbers[cols.vid] + moved) % gateways).astype(np.int32)
            dead = (via == 1) & (age_s > 50.0) & (age_s < 75.0)
            silent = (cols.vid == 2) & (age_s > 60.0) & (age_s < 90.0)
            kept = ~dead & ~silent
            if kept.any():
                kinds[kind] = replace(cols, via=via).take(kept)
        yield Batch(batch.ids, kinds, [f"gw-{i}" for i in range(gateways)], batch.callsigns, batch.called_t)


@pytest.fixture(scope="module")
def world() -> list[Batch]:
    """Conflicts and drones behind four gateways, with roaming, silences and spoofed GPS."""
    return list(behind_gateways(simulate("mixed", seed=5, vehicles=44, seconds=120).batches(), 4))


@pytest.fixture(scope="module")
def single(world: list[Batch]) -> list[bytes]:
    return through(Pipeline(Config()), world)


def test_shards_give_the_bytes_of_one_pipeline(world: list[Batch], single: list[bytes]) -> None:
    found = through(Sharded(Config(), 2, through_bytes=True), world)
    assert found == single
    kinds = {line.split(b'"kind":"')[1].split(b'"')[0] for line in single}
    assert {b"incident", b"silence", b"conflict"} <= kinds
    assert any(b'"diagnosis":{' in line for line in single)


@pytest.mark.parametrize("scenario", ["jamming", "controlled", "demo", "signals"])
def test_areas_intent_and_signals_too(scenario: str) -> None:
    batches = list(simulate(scenario, seed=2, seconds=150).batches())
    alone = through(Pipeline(Config()), batches)
    assert alone
    assert through(Sharded(Config(), 4), batches) == alone


def test_a_shard_without_samples_notices_silence() -> None:
    batches = list(simulate("drones", seed=1, vehicles=2, seconds=40).batches())
    t = max(batch.t_max for batch in batches)
    alone, sharded = Pipeline(Config()), Sharded(Config(), 16)
    found: list[list[AlarmEvent]] = []
    for one in (alone, sharded):
        events = [event for batch in batches for event in one.feed(batch)]
        found.append(events + one.reach(t + 60.0))
    assert found[0] == found[1]
    assert {"silence"} & {event.kind for event in found[0] if event.t > t}


@given(
    vehicles=st.integers(1, 2), seed=st.integers(0, 99), gateways=st.integers(1, 3), shards=st.integers(2, 7),
    roam_s=st.sampled_from([7.0, 20.0]), back=st.booleans(),
)  # fmt: skip
@settings(max_examples=4, deadline=None)
def test_random_small_fleets(
    vehicles: int, seed: int, gateways: int, shards: int, roam_s: float, *, back: bool
) -> None:
    made = simulate("mixed", seed=seed, vehicles=10 * vehicles, seconds=35).batches()
    batches = list(behind_gateways(made, gateways, roam_s=roam_s))
    if back:
        # a simulation that was started again: time goes back for good
        batches += list(simulate("mixed", seed=seed, vehicles=10 * vehicles, seconds=15).batches())
    found, expected = (through(judge, batches) for judge in (Sharded(Config(), shards), Pipeline(Config())))
    if back:
        # samples that are held while time may have gone back bring no callsigns to the single Pipeline
        found, expected = ([without_sentence(line) for line in lines] for lines in (found, expected))
    assert found == expected


def without_sentence(line: bytes) -> bytes:
    return encode_event(msgspec.structs.replace(AlarmEvent.of(line), say=""))
