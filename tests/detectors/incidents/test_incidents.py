"""Incidents: alarms with one cause are one incident, with one diagnosis that its alarms carry too."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import msgspec
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.topic import alarm_topic
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import rechunk
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

SECONDS = 75.0
T_FAULT = 45.0
VEHICLES, GATEWAYS = 6, 2


def batches(fault: tuple[str, str, float] | None, seconds: float = SECONDS) -> Iterator[Batch]:
    made = None if fault is None else NetworkFault(fault[0], fault[1], T_FAULT, fault[2])
    return network_batches(network_source(4, VEHICLES, GATEWAYS, seconds, made), seconds)


def run(fault: tuple[str, str, float] | None) -> list[AlarmEvent]:
    pipeline = Pipeline(DEFAULT)
    return [event for batch in batches(fault) for event in pipeline.feed(batch)]


@pytest.fixture(scope="module")
def dead_gateway() -> list[AlarmEvent]:
    return run(("dead", "gw-1", 1.0))


def test_one_dead_gateway_is_one_incident_with_all_its_alarms(dead_gateway: list[AlarmEvent]) -> None:
    alarms = {e.id for e in dead_gateway if e.kind == "silence"}
    incidents = [e for e in dead_gateway if e.kind == "incident"]
    assert len(alarms) == VEHICLES / GATEWAYS
    assert len({e.id for e in incidents}) == 1
    assert set(incidents[-1].evidence["alarms"]) == alarms
    found = incidents[-1].diagnosis
    assert found is not None
    assert (found["type"], found["location"]) == ("device_failure", "gw-1")
    assert found["confidence"] > 0.9
    assert found["evidence"]
    assert incidents[0].t_raised - 1.7e9 < T_FAULT + 12.0


def test_every_alarm_of_it_carries_the_diagnosis_from_then_on(dead_gateway: list[AlarmEvent]) -> None:
    last = {e.id: e for e in dead_gateway if e.kind == "silence"}
    assert all(e.diagnosis is not None and e.diagnosis["location"] == "gw-1" for e in last.values())
    raised = [e for e in dead_gateway if e.kind == "silence" and e.state == "raised"]
    assert all(e.diagnosis is None for e in raised)


def test_an_incident_has_a_topic_of_its_own(dead_gateway: list[AlarmEvent]) -> None:
    incident = next(e for e in dead_gateway if e.kind == "incident")
    assert alarm_topic("watchkeeper", incident) == f"watchkeeper/incident/{incident.id}"


def test_two_faults_behind_two_gateways_are_two_incidents() -> None:
    pipeline, events = Pipeline(DEFAULT), []
    for batch in batches(("dead", "gw-1", 1.0)):
        gone = [i for i, name in enumerate(batch.ids) if name.endswith("-2")]
        kinds = {
            kind: cols.take(~((cols.t > 1.7e9 + 50.0) & [vid in gone for vid in cols.vid.tolist()]))
            for kind, cols in batch.kinds.items()
        }
        events += pipeline.feed(Batch(batch.ids, kinds, batch.vias, batch.callsigns))
    assert len({e.id for e in events if e.kind == "incident"}) == 2


def test_chunking_changes_nothing() -> None:
    whole = run(("latency", "gw-2", 0.5))
    pipeline = Pipeline(DEFAULT)
    parts = [e for batch in rechunk(batches(("latency", "gw-2", 0.5)), 777) for e in pipeline.feed(batch)]
    assert parts == whole
    assert any(e.kind == "incident" for e in whole)


def test_without_a_fault_there_is_no_incident() -> None:
    assert run(None) == []


def test_switched_off_nothing_is_diagnosed() -> None:
    config = msgspec.structs.replace(DEFAULT, diagnosis=msgspec.structs.replace(DEFAULT.diagnosis, enabled=False))
    pipeline = Pipeline(config)
    events = [e for batch in batches(("dead", "gw-1", 1.0)) for e in pipeline.feed(batch)]
    assert {e.kind for e in events} == {"silence"}
    assert all(e.diagnosis is None for e in events)


def test_an_open_incident_survives_a_restart_with_its_id() -> None:
    pipeline, events = Pipeline(DEFAULT), []
    stream = list(batches(("cut", "gw-1", 1.0)))
    for batch in stream[:62]:
        events += pipeline.feed(batch)
    incident = next(e for e in events if e.kind == "incident")
    fresh = Pipeline(DEFAULT)
    fresh.restore(copy.deepcopy(pipeline.snapshot()))
    later = [e for batch in stream[62:] for e in fresh.feed(batch)]
    assert {e.id for e in later if e.kind == "incident"} <= {incident.id}
    assert fresh.active["incident", incident.subjects].id == incident.id
    # and from the journal alone
    empty = Pipeline(DEFAULT)
    empty.restore_alarms(pipeline.active.values())
    assert empty.active["incident", incident.subjects].id == incident.id
    empty.restore_alarms([])
    assert not empty.active


def test_gauges_count_incidents_and_their_alarms() -> None:
    pipeline = Pipeline(DEFAULT)
    for batch in batches(("dead", "gw-1", 1.0)):
        pipeline.feed(batch)
    found = pipeline.gauges()
    assert (found["incident_open"], found["incident_alarms"], found["incident_refused"]) == (1.0, 3.0, 0.0)
    assert (found["incident_device_failure"], found["incident_link_failure"]) == (1.0, 0.0)
