"""Every metric of the diagnosis reference, by hand: one episode, and a summary of three."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as sklearn_matrix
from sklearn.metrics import f1_score

from watchkeeper.detectors.incidents.faults import FAULT_TYPES, Form
from watchkeeper.detectors.incidents.tools import Symptom, Tool
from watchkeeper.detectors.incidents.topology import Device, Topology
from watchkeeper.evaluation.diagnosis import CompetitionEvaluator, EpisodeMetrics
from watchkeeper.evaluation.diagnosis.collector import MetricsCollectorWrapper
from watchkeeper.evaluation.diagnosis.env import DIAGNOSE, NetworkTroubleshootingEnv
from watchkeeper.evaluation.diagnosis.metrics import Call, EpisodeLog, episode_metrics
from watchkeeper.evaluation.diagnosis.simulated.network import Fault, Network
from watchkeeper.evaluation.diagnosis.summary import confusion_matrix, f1_scores

from where import SHARED

SPEC = SHARED / "spec" / "diagnosis-metrics.md"


def small_network(form: Form = Form.CUT, device: str = "uav-1") -> Network:
    """broker – gw-1 – uav-1 (gps, imu) and uav-2 (gps): seven devices, six uplinks; uav-2 ~ broker stands by."""
    topology = Topology()
    topology.add("gw-1", Device.GATEWAY, "broker")
    for vehicle, sensors in (("uav-1", ("gps", "imu")), ("uav-2", ("gps",))):
        topology.add(vehicle, Device.VEHICLE, "gw-1")
        for sensor in sensors:
            topology.add(f"{vehicle}/{sensor}", Device.SENSOR, vehicle)
    topology.join("uav-2", "broker")
    location = topology.uplink(device) if form.on_link else device
    links = topology.links()
    return Network(
        topology,
        dict.fromkeys(links, 0.01),
        dict.fromkeys(links, 0.0),
        Fault(form, device, location, 1.0),
        (Symptom("uav-1/gps", "silence", 1.0),),
    )


def played(actions: Iterable[tuple[int, int, int, int]]) -> EpisodeMetrics:
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv())
    env.reset(seed=1, options={"network": small_network()})
    for action in actions:
        env.step(np.array(action))
    assert env.last_metrics is not None
    return env.last_metrics


# slots: 0 broker, 1 gw-1, 2 uav-1, 3 uav-1/gps; the others are not known yet
LINK_FAILURE = FAULT_TYPES.index("link_failure")
SCRIPT = (
    (Tool.STATUS, 2, 0, 0),  # 0.5, one end of the cut link
    (Tool.STATUS, 2, 5, 3),  # 0.5, the same again: status has no source
    (Tool.PING, 3, 0, 0),  # 1.0, from the broker to a sensor: neither is an end of the link
    (Tool.PING, 3, 1, 0),  # 1.0, from gw-1, an end of the link
    (Tool.PING, 1, 0, 0),  # 1.0, to gw-1
    (Tool.SCAN, 150, 0, 0),  # nobody there: an error, not a call
    (Tool.DISCOVER, 1, 0, 0),  # 1.0, uav-2 becomes known
    (Tool.DISCOVER, 1, 0, 0),  # 1.0, discovery may be repeated
    (DIAGNOSE, 2, 1, LINK_FAILURE),
)


def test_every_metric_of_an_episode_by_hand() -> None:
    m = played(SCRIPT)
    assert m.diagnosis_success is True
    # the error is no step
    assert (m.network_size, m.steps, m.normalized_steps) == (7, 8, 8 / 34)
    # tools 6 * -0.1, the error -0.5, the right answer 10
    assert m.total_reward == pytest.approx(8.9)
    assert m.composite_episode_score == m.total_reward
    assert (m.tool_cost, m.tool_cost_normalized) == (6.0, pytest.approx(6.0 / 40.0))
    assert (m.tool_error_count, m.tool_error_rate) == (1, pytest.approx(1 / 9))
    # uav-2 is known, its sensor and its standby link are not
    assert (m.node_coverage, m.edge_coverage) == (5 / 7, 4 / 7)
    assert m.topology_coverage == pytest.approx((5 / 7 + 4 / 7) / 2)
    # of two statuses and three pings, all but one ping; discovery is no diagnostic action
    assert m.evidence_sufficiency == 4 / 5
    assert (m.redundancy_count, m.redundancy_rate) == (1, 1 / 5)
    assert m.location_correct is True
    assert m.steps_per_device == 8 / 7
    assert m.cost_efficiency == pytest.approx(1 / 1.15)
    assert 0.0 < m.wall_time_seconds < 5.0
    assert (m.ground_truth_type, m.ground_truth_location) == ("link_failure", "gw-1~uav-1")
    assert (m.predicted_type, m.predicted_location) == ("link_failure", "gw-1~uav-1")


def test_the_right_place_with_the_wrong_type_is_no_success() -> None:
    m = played([(DIAGNOSE, 2, 1, FAULT_TYPES.index("misconfiguration"))])
    assert (m.diagnosis_success, m.location_correct, m.cost_efficiency) == (False, True, 0.0)
    assert (m.evidence_sufficiency, m.redundancy_rate, m.total_reward) == (0.0, 0.0, 2.0)


def test_the_device_at_the_end_is_not_the_link() -> None:
    m = played([(DIAGNOSE, 2, 2, LINK_FAILURE)])
    assert (m.diagnosis_success, m.location_correct, m.predicted_location) == (False, False, "uav-1")


def test_an_episode_of_errors_alone_has_an_error_rate_of_one() -> None:
    m = played([(Tool.SCAN, 150, 0, 0)] * 34)
    assert (m.steps, m.tool_error_count, m.tool_error_rate) == (0, 34, 1.0)
    assert (m.tool_cost, m.tool_cost_normalized, m.normalized_steps, m.predicted_type) == (0.0, 0.0, 0.0, "none")


NAMES = st.sampled_from(("a", "b", "c", "d"))
CALLS = st.builds(Call.of, st.sampled_from(Tool), NAMES, NAMES)


@given(st.lists(CALLS, max_size=12), st.sets(NAMES, min_size=1, max_size=2), st.integers(0, 5))
def test_discovery_costs_and_counts_for_nothing_else(calls: list[Call], ends: set[str], errors: int) -> None:
    def measured(made: list[Call]) -> EpisodeMetrics:
        log = EpisodeLog(4, 3, 50, ("link_failure", "x"), tuple(ends), calls=made, steps=len(made) + 1, errors=errors)
        return episode_metrics(log)

    m, without = measured(calls), measured([c for c in calls if c.tool not in (Tool.DISCOVER, Tool.SCAN)])
    assert m.evidence_sufficiency == without.evidence_sufficiency
    assert (m.redundancy_count, m.redundancy_rate) == (without.redundancy_count, without.redundancy_rate)
    more = [c for c in calls if c.tool in (Tool.DISCOVER, Tool.SCAN)]
    assert m.tool_cost == without.tool_cost + sum(1.0 if c.tool is Tool.DISCOVER else 2.0 for c in more)
    assert m.tool_error_rate == errors / (errors + m.steps)


@pytest.mark.parametrize(
    ("call", "relevant"),
    [
        (Call(Tool.STATUS, target="gw-1"), True), (Call(Tool.STATUS, target="uav-1"), False),
        (Call(Tool.PING, source="broker", destination="uav-1"), True),
        (Call(Tool.TRACEROUTE, source="uav-1", destination="gw-1"), True),
        (Call(Tool.PING, source="uav-2", destination="uav-1"), False),
    ],
)  # fmt: skip
def test_target_source_and_destination_count_for_relevance(call: Call, relevant: bool) -> None:
    log = EpisodeLog(4, 3, 28, ("link_failure", "broker~gw-1"), ("gw-1", "broker"), calls=[call], steps=1)
    assert episode_metrics(log).evidence_sufficiency == float(relevant)


def test_an_episode_that_runs_out_of_steps_has_no_answer() -> None:
    env = MetricsCollectorWrapper(NetworkTroubleshootingEnv(max_episode_steps=2))
    env.reset(seed=4)
    assert env.step(np.array([0, 0, 0, 0]))[2:4] == (False, False)
    assert env.step(np.array([0, 0, 0, 0]))[2:4] == (False, True)
    m = env.last_metrics
    assert m is not None
    assert (m.predicted_type, m.predicted_location, m.normalized_steps) == ("none", "none", 1.0)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(np.array([0, 0, 0, 0]))


def episode(size: int, truth: str, predicted: str, *, location: bool, steps: int, wall_s: float) -> EpisodeMetrics:
    log = EpisodeLog(size, size - 1, 100, (truth, "x"), ("x",), steps=steps, wall_time_seconds=wall_s)
    log.predicted = (predicted, "x" if location else "y")
    log.discovered_nodes, log.discovered_edges = size, size - 1
    return episode_metrics(log)


THREE = (
    episode(10, "gps_jamming", "gps_jamming", location=True, steps=2, wall_s=0.1),
    episode(30, "device_failure", "link_failure", location=True, steps=4, wall_s=0.2),
    episode(60, "device_failure", "device_failure", location=True, steps=8, wall_s=0.6),
)


def test_every_metric_of_a_summary_by_hand() -> None:
    s = CompetitionEvaluator(THREE).compute_summary()
    assert s["episodes"] == 3
    # weights 10, 30 and 60
    assert s["diagnosis_success_rate"] == pytest.approx(0.7)
    assert s["location_accuracy"] == 1.0
    assert s["avg_steps"] == pytest.approx((20 + 120 + 480) / 100)
    assert s["avg_steps_per_device"] == pytest.approx((2 + 4 + 8) / 100)
    assert s["normalized_steps"] == pytest.approx(0.062)
    assert s["cost_efficiency"] == pytest.approx(0.7)
    assert s["tool_cost_index"] == s["tool_error_rate"] == s["evidence_sufficiency"] == s["redundancy_rate"] == 0.0
    assert s["topology_coverage"] == 1.0
    assert s["avg_total_reward"] == s["composite_episode_score"] == 0.0
    # not weighted
    assert s["avg_wall_time_seconds"] == pytest.approx(0.3)
    # device_failure: one of two found, nothing else taken for it: 2/3. link_failure: never right: 0. gps_jamming: 1
    assert s["fault_type_macro_f1"] == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert s["fault_type_macro_f1_over"] == ["device_failure", "link_failure", "gps_jamming"]
    assert s["fault_type_macro_f1_base"] == pytest.approx((2 / 3) / 4)
    assert s["confusion_matrix"] == {
        "device_failure": {"device_failure": 1, "link_failure": 1, "gps_jamming": 0},
        "gps_jamming": {"device_failure": 0, "link_failure": 0, "gps_jamming": 1},
    }
    assert s["per_fault_type"] == {
        "device_failure": {"episodes": 2, "success_rate": 0.5, "avg_steps": 6.0, "location_accuracy": 1.0},
        "gps_jamming": {"episodes": 1, "success_rate": 1.0, "avg_steps": 2.0, "location_accuracy": 1.0},
    }


def test_a_summary_of_nothing_says_so() -> None:
    s = CompetitionEvaluator().compute_summary()
    assert (s["episodes"], s["diagnosis_success_rate"], s["fault_type_macro_f1"]) == (0, None, None)


@given(st.lists(st.tuples(st.sampled_from(FAULT_TYPES), st.sampled_from((*FAULT_TYPES, "none"))), min_size=1))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(answers: list[tuple[str, str]]) -> None:
    for fault_type, f1 in f1_scores(answers).items():
        hits = answers.count((fault_type, fault_type))
        predicted = sum(p == fault_type for _, p in answers)
        true = sum(t == fault_type for t, _ in answers)
        if hits == 0:
            assert f1 == 0.0
        else:
            precision, recall = hits / predicted, hits / true
            assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


@given(st.lists(st.tuples(st.sampled_from(FAULT_TYPES), st.sampled_from((*FAULT_TYPES, "none"))), min_size=1))
def test_scikit_learn_agrees_on_f1_and_confusion(answers: list[tuple[str, str]]) -> None:
    truths, predictions = [t for t, _ in answers], [p for _, p in answers]
    found = f1_scores(answers)
    assert list(found.values()) == pytest.approx(f1_score(truths, predictions, labels=list(found), average=None))
    labels = [*FAULT_TYPES, "none"]
    matrix = sklearn_matrix(truths, predictions, labels=labels)
    for truth, row in confusion_matrix(answers).items():
        assert row == {p: matrix[labels.index(truth), labels.index(p)] for p in row}
        assert sum(row.values()) == truths.count(truth)


def test_every_name_in_the_reference_is_there() -> None:
    if not SPEC.exists():
        pytest.skip(f"no metrics reference at {SPEC}")
    single, summary = SPEC.read_text().split("## Aggregate Metrics")
    names = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
    assert set(names.findall(single)) <= set(EpisodeMetrics.__struct_fields__)
    assert set(names.findall(summary)) <= CompetitionEvaluator(THREE).compute_summary().keys()
    assert len(names.findall(single)) == 24
