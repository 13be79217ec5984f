"""Time that is told from outside: shards and quiet fleets notice what one busy pipeline would, at the same moments."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict, Los
from watchkeeper.config.detectors.gps_imu import GpsImu
from watchkeeper.config.schema import Config, Diagnosis, FleetLimits
from watchkeeper.config.topology import DeclaredVehicles, Topology
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.eventtime import closed_tick
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Drop, Kind
from watchkeeper.streams.simulate import simulate

# what a vehicle's own alarms depend on: not the fleet's model, whom it shares a gateway with, or whom it meets
APART = Config(
    fleet=FleetLimits(max_vehicles=40, evict_idle_s=60.0),
    diagnosis=Diagnosis(enabled=False),
    detectors=Detectors(
        gps_imu=GpsImu(model="off"), conflict=Conflict(enabled=False, max_pairs=10), los=Los(enabled=False)
    ),
)


def gps(name: str, *times: float) -> Batch:
    t = np.array(times)
    cols = columns_of(Kind.GPS, np.zeros(len(t), np.int32), t, {"lat": 0.0 * t, "lon": 0.0 * t, "alt_m": 0.0 * t})
    return Batch([name], {Kind.GPS: cols})


def told(events: Iterable[AlarmEvent]) -> list[tuple[str, str, float]]:
    return [(event.kind, event.state, event.t) for event in events if event.state != "updated"]


def test_a_vehicle_that_stops_is_missed_although_nobody_else_is_here():
    pipeline = Pipeline(APART)
    assert pipeline.feed(gps("d", *np.arange(10.0, 20.0, 0.5))) == []
    events = [event for t in range(20, 90) for event in pipeline.reach(float(t))]
    assert told(events) == [
        ("silence", "raised", 25.0),
        ("watch", "raised", 40.0),
        ("silence", "cleared", 80.0),
        ("watch", "cleared", 80.0),
    ]
    assert len(pipeline.fleet) == 0, "it is forgotten by the clock, not by the next sample"


def test_one_call_or_many_is_the_same():
    many, one = Pipeline(APART), Pipeline(APART)
    for pipeline in (many, one):
        pipeline.feed(gps("d", *np.arange(10.0, 20.0, 0.5)))
    steps = [event for t in np.arange(20.0, 300.0, 0.7) for event in many.reach(float(t))]
    assert list(map(encode_event, one.reach(300.0))) == list(map(encode_event, steps))


def test_what_is_older_is_late_and_what_is_newer_is_no_jump():
    pipeline = Pipeline(APART)
    pipeline.feed(gps("d", 10.0, 10.5))
    pipeline.reach(100.0)
    pipeline.feed(gps("d", 100.0, 99.5, 100.5))
    assert dict(pipeline.drops) == {("gps", Drop.LATE): 2}
    assert pipeline.samples["gps"] == 3


def test_who_is_declared_is_missed_although_nothing_was_ever_heard():
    declared = (DeclaredVehicles(names=("uav-7",), sensors=("gps",)),)
    pipeline = Pipeline(msgspec.structs.replace(APART, topology=Topology(vehicles=declared, wait_s=30.0)))
    events = [event for t in range(1000, 1100) for event in pipeline.reach(float(t))]
    assert [(event.subjects, event.t) for event in events if event.state == "raised"] == [(("uav-7",), 1030.0)]
    # and is not told again for ever
    assert len(pipeline.reach(1e6)) < 20


def test_time_that_is_told_ahead_for_good_differs_from_time_that_may_come_back():
    pipeline = Pipeline(APART)
    pipeline.feed(gps("d", *np.arange(10.0, 20.0, 0.5)))
    pipeline.advance(40.0)
    pipeline.feed(gps("d", *np.arange(20.0, 25.0, 0.5)))
    assert not pipeline.drops


def shards(batches: list[Batch], of: dict[str, int], *, late_start: int) -> list[AlarmEvent]:
    """Two pipelines that get the vehicles `of` them, and the time of all; one begins later."""
    both = [Pipeline(APART), Pipeline(APART)]
    clock, tick_s, lateness_s = -np.inf, APART.time.tick_s, APART.time.lateness_s
    events: list[AlarmEvent] = []
    for i, batch in enumerate(batches):
        for kind, cols in batch.kinds.items():
            clock = max(clock, float(cols.t.max()))
            for shard, pipeline in enumerate(both):
                mine = np.array([of[name] == shard for name in batch.ids], bool)[cols.vid]
                if mine.any():
                    events += pipeline.feed(Batch(batch.ids, {kind: cols.take(mine)}, batch.vias))
        for shard, pipeline in enumerate(both):
            if shard == 0 or i >= late_start:
                events += pipeline.reach(closed_tick(clock, tick_s, lateness_s) * tick_s)
    return events + [event for pipeline in both for event in pipeline.reach(np.ceil(clock))]


def by_vehicle(events: Iterable[AlarmEvent]) -> dict[tuple[str, ...], list[bytes]]:
    found: dict[tuple[str, ...], list[bytes]] = {}
    for event in sorted(events, key=lambda e: (e.t, e.kind, e.t_raised)):
        found.setdefault(event.subjects, []).append(encode_event(event))
    return found


def quiet_parts(name: str, seconds: int, gone: dict[str, tuple[int, int]]) -> list[Batch]:
    """A simulation in which some vehicles say nothing for a while."""
    batches = []
    for second, batch in enumerate(simulate(name, seed=3, seconds=float(seconds)).batches()):
        heard = [not (name in gone and gone[name][0] <= second < gone[name][1]) for name in batch.ids]
        kept = {kind: cols.take(np.array(heard, bool)[cols.vid]) for kind, cols in batch.kinds.items()}
        batches.append(Batch(batch.ids, {kind: cols for kind, cols in kept.items() if len(cols)}, batch.vias))
    return [batch for batch in batches if batch.kinds]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_shards_that_are_told_the_time_give_each_vehicle_the_same_alarms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = sorted({name for batch in quiet_parts("demo", 110, {}) for name in batch.ids})
    gone = {}
    for name in ids:
        if rng.random() < 0.6:
            start = int(rng.integers(30, 70))
            gone[name] = (start, start + int(rng.integers(5, 100)))
    batches = quiet_parts("demo", 110, gone)
    whole = Pipeline(APART)
    expected = [event for batch in batches for event in whole.feed(batch)] + whole.finish()
    # every vehicle of the second shard is first heard after that shard was told the time
    of = {name: int(rng.random() < 0.5) for name in ids}
    assert by_vehicle(shards(batches, of, late_start=0)) == by_vehicle(expected)
    assert {"silence", "gps_imu"} <= {event.kind for event in expected}


@pytest.mark.parametrize(("seed", "mean_s"), [(0, 4.0), (1, 15.0), (2, 60.0)])
def test_a_sparse_log_costs_by_its_samples_and_gives_the_same_alarms(seed: int, mean_s: float) -> None:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.exponential(mean_s, 20)) + 1000.0
    names = rng.integers(0, 3, len(t))
    runs = []
    for every_tick in (True, False):
        pipeline = Pipeline(APART, every_tick=every_tick)
        events = [event for name, at in zip(names, t, strict=True) for event in pipeline.feed(gps(f"v{name}", at))]
        runs.append([encode_event(event) for event in events + pipeline.finish()])
    assert runs[0] == runs[1]
    assert pipeline.ticks < 15 * len(t)
