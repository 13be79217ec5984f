"""Streamed episodes: faults in telemetry, found by the pipeline itself."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.topology import Device
from watchkeeper.evaluation.diagnosis.streamed import (
    ANSWER_S,
    Streamed,
    StreamedTask,
    draw_fault,
    figures,
    judge,
    stream,
    topology_of,
)
from watchkeeper.evaluation.diagnosis.summary import CompetitionEvaluator
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate.network import network_batches, network_source

TRUTH = ("device_failure", "uav-1")


def said(t: float, fault_type: str, location: str, *, incident: str = "one", state: str = "updated") -> AlarmEvent:
    diagnosis = {"type": fault_type, "location": location, "confidence": 0.9, "evidence": [], "alternatives": []}
    return AlarmEvent(
        id=incident, kind="incident", state=state, severity="caution", subjects=("uav-1",), t=t, t_onset=t, t_raised=t,
        t_cleared=None, score=1.0, threshold=1.0, evidence={}, diagnosis=diagnosis,
    )  # fmt: skip


def test_the_answer_is_what_stands_at_the_end_and_its_time_when_it_became_right_for_good() -> None:
    right, wrong = TRUTH, ("link_failure", "gw-1~uav-1")
    assert judge([said(105.0, *right)], TRUTH, 100.0)[1] == 5.0
    # right, wrong, right again: the second time counts, and repeating it changes nothing
    events = [said(105.0, *right), said(106.0, *wrong), said(109.0, *right), said(112.0, *right)]
    standing, found_s = judge(events, TRUTH, 100.0)
    assert standing is not None
    assert (standing["type"], found_s) == ("device_failure", 9.0)
    assert judge([said(105.0, *right), said(106.0, *wrong)], TRUTH, 100.0)[1] is None
    # a second incident does not count, and the end of an incident says nothing new
    more = [said(105.0, *right), said(107.0, *wrong, incident="two"), said(120.0, *wrong, state="cleared")]
    assert judge(more, TRUTH, 100.0)[1] == 5.0
    assert judge([], TRUTH, 100.0) == (None, None)


def test_figures_by_hand() -> None:
    made = stream(StreamedTask(5, 0, True))
    clean = [Streamed("streamed", "none", None, n, None, None) for n in (0, 2)]
    f = figures([made, *clean])
    assert f.named_share == float(made.named) == 1.0
    assert (f.episodes, f.clean_episodes, f.clean_incidents, f.no_incident) == (1, 2, 2, 0)
    assert f.found_median_s == f.found_p95_s == made.found_s
    assert figures(clean).found_median_s is None


def test_faults_of_every_type_are_drawn_and_sit_where_they_can() -> None:
    topology = topology_of(network_source(1, 6, 2, 30.0, None))
    assert (
        sorted(topology.kind.values())
        == [Device.BROKER] + [Device.GATEWAY] * 2 + [Device.VEHICLE] * 6 + [Device.SENSOR] * 12
    )
    rng = np.random.default_rng(2)
    drawn = [draw_fault(rng, topology, 50.0) for _ in range(300)]
    assert {form.fault_type for form, _ in drawn} == set(FAULT_TYPES)
    for form, fault in drawn:
        assert fault.device in topology
        if form.word in ("spoof", "jam", "frame"):
            assert fault.device.endswith("/gps")


def test_a_few_episodes_are_solved_in_time_and_clean_ones_stay_quiet() -> None:
    played = [stream(StreamedTask(21, i, True)) for i in range(8)]
    s = CompetitionEvaluator(p.metrics for p in played if p.metrics is not None).compute_summary()
    assert s["diagnosis_success_rate"] >= 0.7
    assert s["redundancy_rate"] == 0.0
    assert all(p.found_s is None or 0.0 < p.found_s <= ANSWER_S for p in played)
    assert sum(stream(StreamedTask(21, i, False)).incidents for i in range(3)) == 0


def test_without_port_reports_the_truth_is_still_among_the_answers() -> None:
    played = [stream(StreamedTask(21, i, True, mute=True)) for i in range(6)]
    f = figures(played)
    assert f.named_share is not None
    assert f.named_share >= 5 / 6
    assert stream(StreamedTask(21, 0, False, mute=True)).incidents == 0


def test_a_mute_network_sends_nothing_but_its_streams_and_our_own_latencies() -> None:
    carrier = COLUMN[Kind.LINK]["carrier"]
    for mute in (False, True):
        batches = list(network_batches(network_source(1, 3, 1, 9.0, None, mute=mute), 9.0))
        links = [batch.kinds[Kind.LINK].data for batch in batches if Kind.LINK in batch.kinds]
        assert links
        assert any(np.isfinite(data[carrier]).any() for data in links) is not mute


@pytest.mark.long
def test_two_hundred_streamed_episodes_meet_the_target() -> None:
    played = [stream(StreamedTask(2027, i, True)) for i in range(200)]
    s = CompetitionEvaluator(p.metrics for p in played if p.metrics is not None).compute_summary()
    assert s["diagnosis_success_rate"] >= 0.85
    assert sum(stream(StreamedTask(2027, i, False)).incidents for i in range(50)) == 0
