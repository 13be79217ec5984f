"""A declared network in the pipeline: missed when it was never heard, believed less than what is heard."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import msgspec
import pytest

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.config.topology import DeclaredVehicles, Topology
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import rechunk
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate.network import network_batches, network_source

T0 = 1.7e9
WAIT_S = 10.0
SECONDS = 26.0
# behind gw-1 and gw-2 by turns
HEARD = ("quad-1", "wing-2", "quad-3", "wing-4")


def batches(*, mute: bool = True, seconds: float = SECONDS) -> Iterator[Batch]:
    return network_batches(network_source(4, len(HEARD), 2, seconds, None, mute=mute), seconds)


def declaring(*tables: DeclaredVehicles, wait_s: float = WAIT_S) -> Config:
    return msgspec.structs.replace(DEFAULT, topology=Topology(vehicles=tables, wait_s=wait_s))


def run(config: Config, stream: Iterator[Batch] | None = None) -> tuple[Pipeline, list[AlarmEvent]]:
    pipeline = Pipeline(config)
    return pipeline, [event for batch in stream or batches() for event in pipeline.feed(batch)]


GHOST = declaring(DeclaredVehicles(names=(*HEARD, "ghost")[-2:], gateway="gw-2"))


def test_the_simulated_network_is_as_these_tests_say() -> None:
    source = network_source(4, len(HEARD), 2, SECONDS, None)
    assert {v: source.parent[v] for v in HEARD} == dict(zip(HEARD, ("gw-1", "gw-2") * 2, strict=True))


def test_a_vehicle_that_was_never_heard_is_missed_after_a_while_and_diagnosed() -> None:
    pipeline, events = run(GHOST)
    alarm = next(e for e in events if e.kind == "silence")
    assert alarm.subjects == ("ghost",)
    assert WAIT_S <= alarm.t - T0 <= WAIT_S + 2.0
    assert alarm.evidence["causes"] == ["gps", "imu"]
    assert alarm.evidence["never_heard"] == 2.0
    incident = [e for e in events if e.kind == "incident"][-1]
    assert incident.diagnosis is not None
    assert {"declared": "ghost", "found": "never heard"} in incident.diagnosis["evidence"]
    # its gateway has another vehicle, which is well: it is the ghost or its link, and nothing says which
    answers = {(a["type"], a["location"]) for a in (incident.diagnosis, *incident.diagnosis["alternatives"])}
    assert {("device_failure", "ghost"), ("link_failure", "ghost~gw-2"), ("misconfiguration", "ghost~gw-2")} <= answers
    assert incident.diagnosis["confidence"] < 0.6
    assert pipeline.gauges()["topology_never_heard"] == 1.0


def test_it_is_known_before_anything_is_heard_at_all() -> None:
    pipeline = Pipeline(GHOST)
    assert pipeline.gateways == ["gw-2"]  # pinged
    assert "ghost" in pipeline.fleet.slot_of
    assert pipeline.gauges()["topology_never_heard"] == 2.0


def test_it_clears_when_the_vehicle_is_heard_at_last() -> None:
    def late() -> Iterator[Batch]:
        for i, batch in enumerate(batches()):
            if i < 18:
                gone = batch.ids.index("quad-3")
                kinds = {k: c.take(c.vid != gone) for k, c in batch.kinds.items()}
                yield Batch(batch.ids, kinds, batch.vias, batch.callsigns)
            else:
                yield batch

    _, events = run(declaring(DeclaredVehicles(names=("quad-3",))), late())
    assert [e.state for e in events if e.kind == "silence"][::-1][0] == "cleared"
    assert {e.subjects for e in events if e.kind == "silence"} == {("quad-3",)}


def test_a_sensor_that_is_declared_and_never_heard_is_missed_on_a_vehicle_that_is_heard() -> None:
    def without_imu() -> Iterator[Batch]:
        for batch in batches():
            gone = batch.ids.index("wing-2")
            kinds = {k: c.take(c.vid != gone) if k is Kind.IMU else c for k, c in batch.kinds.items()}
            yield Batch(batch.ids, kinds, batch.vias, batch.callsigns)

    _, events = run(declaring(DeclaredVehicles(names=("wing-2*",))), without_imu())
    alarm = next(e for e in events if e.kind == "silence")
    assert (alarm.subjects, alarm.evidence["causes"]) == (("wing-2",), ["imu"])
    incident = [e for e in events if e.kind == "incident"][-1]
    assert incident.diagnosis is not None
    assert incident.diagnosis["location"] == "wing-2/imu"
    assert {"declared": "wing-2/imu", "found": "never heard"} in incident.diagnosis["evidence"]
    # and nobody misses a sensor that is not declared
    assert not run(declaring(DeclaredVehicles(names=("wing-2*",), sensors=("gps",))), without_imu())[1]


def test_what_is_heard_is_believed_over_what_is_declared_and_counted() -> None:
    config = declaring(DeclaredVehicles(names=("quad-1", "wing-2", "ghost"), gateway="gw-2"))
    pipeline, events = run(config)
    gauges = pipeline.gauges()
    assert gauges["topology_elsewhere"] == 1.0  # quad-1 comes by way of gw-1
    assert gauges["topology_undeclared"] == 2.0  # quad-3 and wing-4
    assert gauges["topology_declared"] == 3.0
    assert {e.subjects for e in events} == {("ghost",)}
    # and when quad-1 has an alarm its diagnosis says so, and looks behind the gateway where it was heard
    dead = [
        Batch(b.ids, {k: c.take((c.vid != b.ids.index("quad-1")) | (c.t < T0 + 15.0)) for k, c in b.kinds.items()},
              b.vias, b.callsigns)
        for b in batches()
    ]  # fmt: skip
    _, events = run(config, iter(dead))
    found = [e.diagnosis for e in events if e.kind == "incident" and e.subjects == ("quad-1",)][-1]
    assert found is not None
    assert {"declared": "quad-1 behind gw-2", "found": "behind gw-1"} in found["evidence"]
    assert {found["location"], *(a["location"] for a in found["alternatives"])} >= {"quad-1", "gw-1~quad-1"}


def test_the_summary_of_a_replay_lists_who_is_expected_and_what_became_of_them() -> None:
    replay = Replay(declaring(DeclaredVehicles(names=("quad-1", "ghost"), gateway="gw-2")), lambda _event: None)
    replay.run(batches(seconds=8.0))
    assert replay.summary()["topology"] == [
        {"vehicle": "ghost", "behind": "gw-2", "state": "never heard", "declared": "gw-2"},
        {"vehicle": "quad-1", "behind": "gw-1", "state": "heard", "declared": "gw-2"},
        {"vehicle": "quad-3", "behind": "gw-1", "state": "heard", "declared": "no"},
        *({"vehicle": v, "behind": "gw-2", "state": "heard", "declared": "no"} for v in ("wing-2", "wing-4")),
    ]
    assert "topology" not in Replay(DEFAULT, lambda _event: None).summary()


def test_zero_seconds_to_wait_means_forever() -> None:
    assert run(declaring(DeclaredVehicles(names=("ghost",)), wait_s=0.0))[1] == []


def test_chunking_changes_nothing() -> None:
    _, whole = run(GHOST)
    assert run(GHOST, rechunk(batches(), 777))[1] == whole
    assert whole


def test_a_declaration_that_the_streams_fulfil_changes_no_alarm() -> None:
    def dying() -> Iterator[Batch]:
        for b in batches(mute=False):
            yield Batch(b.ids, {k: c.take(c.t < T0 + 20.0) if k is Kind.GPS else c for k, c in b.kinds.items()}, b.vias)

    config = declaring(DeclaredVehicles(names=HEARD[::2], gateway="gw-1"), DeclaredVehicles(names=HEARD[1::2]))
    plain, declared = run(DEFAULT, dying())[1], run(config, dying())[1]
    assert plain
    assert [(e.t, e.kind, e.state, e.subjects, e.diagnosis) for e in declared] == [
        (e.t, e.kind, e.state, e.subjects, e.diagnosis) for e in plain
    ]


@pytest.mark.parametrize("cut", [5, 18])
def test_a_restart_neither_forgets_the_wait_nor_begins_it_anew(cut: int) -> None:
    stream = list(batches())
    pipeline, events = Pipeline(GHOST), []
    for batch in stream[:cut]:
        events += pipeline.feed(batch)
    fresh = Pipeline(GHOST)
    fresh.restore(copy.deepcopy(pipeline.snapshot()))
    for batch in stream[cut:]:
        events += fresh.feed(batch)
    raised = [e for e in events if e.kind == "silence" and e.state == "raised"]
    assert [e.id for e in raised] == [e.id for e in run(GHOST)[1] if e.kind == "silence" and e.state == "raised"]
    assert fresh.gateways[0] == "gw-2"


def test_a_reload_may_declare_more() -> None:
    pipeline, events = Pipeline(DEFAULT), []
    for i, batch in enumerate(batches()):
        if i == 3:
            pipeline.retune(GHOST)
        events += pipeline.feed(batch)
    assert {e.subjects for e in events if e.kind == "silence"} == {("ghost",)}
