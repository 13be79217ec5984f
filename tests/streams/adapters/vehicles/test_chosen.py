"""Signals of recordings chosen by pattern: `[recordings]` on a PX4 log, an ArduPilot log and bags of ROS."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.loader import load
from watchkeeper.config.recordings import Recordings
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.vehicles.chosen import Chosen, numbers_in
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.signals import names_in

from . import test_dataflash, test_rosbag

PX4 = "pyulog_sample_px4_events.ulg"


def signals(path: Path, recordings: Recordings | None = None) -> tuple[dict[str, list[float]], str]:
    """Values by name, and the problems of the file."""
    log = open_log(path, recordings)
    cols = join(list(log.batches())).kinds.get(Kind.SIGNAL)
    found: dict[str, list[float]] = {}
    if cols is not None:
        for name, value in zip(names_in(cols.data[SIGNAL.name_0 :]), cols.data[SIGNAL.value].tolist(), strict=True):
            found.setdefault(name, []).append(value)
    return found, str(log.info().problems)


def test_topics_of_a_px4_log_are_those_of_the_reference_reader(px4_logs: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    usual, _ = signals(px4_logs / PX4)
    patterns = Recordings(
        signals=("esc_status.esc[[]?].*errorcount", "battery_status.disch*"), without=("cpu.*", "gps.*")
    )
    found, problems = signals(px4_logs / PX4, patterns)
    assert problems == "()"
    log = pyulog.ULog(str(px4_logs / PX4), ["esc_status", "battery_status"])
    topics = {data.name: data.data for data in log.data_list if data.multi_id == 0}
    counts = {f"esc_status.esc[{k}].esc_errorcount" for k in range(8)}
    assert found.keys() - usual.keys() == counts | {"battery_status.discharged_mah"}
    for name in found.keys() - usual.keys():
        topic, _, field = name.partition(".")
        assert found[name] == topics[topic][field].astype(float).tolist()
    assert {name.partition(".")[0] for name in usual.keys() - found.keys()} == {"cpu", "gps"}


def test_a_chosen_number_is_alarmed_with_the_mode_in_words(px4_logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyulog")
    file = tmp_path / "signals.toml"
    file.write_text(
        '[recordings]\nsignals = ["actuator_motors.control[0]"]\n'
        '[[detectors.signal.limits]]\nnames = ["actuator_motors.*"]\nhigh = 0.1\narmed = true\n'
    )
    config = load(file)
    pipeline = Pipeline(config)
    events = [
        event
        for batch in open_log(px4_logs / PX4, config.recordings).batches()
        for event in pipeline.feed(batch)
    ]  # fmt: skip
    events += pipeline.finish()
    (said,) = {e.say for e in events if e.kind == "signal" and e.state == "raised"}
    assert re.search(r"actuator_motors\.control\[0\] is out of range .* in mode [A-Z]+, armed", said)


def test_messages_of_an_ardupilot_log_have_their_values_and_instances(tmp_path: Path) -> None:
    pytest.importorskip("pymavlink")
    path = tmp_path / "flight.bin"
    path.write_bytes(test_dataflash.flight())
    assert signals(path)[0] == {}
    found, problems = signals(path, Recordings(signals=("ATT.*", "IMU*.T")))
    assert problems == "()"
    assert set(found) == {
        "ATT.DesRoll",
        "ATT.Roll",
        "ATT.DesPitch",
        "ATT.Pitch",
        "IMU.T",
        "IMU[1].T",
        "gps.fix",
        "gps.sats",
    }
    assert set(found["ATT.Roll"]) == {1.5}
    assert set(found["IMU.T"]) == {35.0}
    # the sensors themselves are what they were
    before, after = (join(list(open_log(path, r).batches())) for r in (None, Recordings(signals=("ATT.*",))))
    for kind in (Kind.GPS, Kind.IMU):
        np.testing.assert_array_equal(before.kinds[kind].data, after.kinds[kind].data)


@pytest.mark.parametrize("form", test_rosbag.FORMS)
def test_numbers_in_any_message_of_a_bag_are_signals_if_chosen(tmp_path: Path, form: str) -> None:
    path = test_rosbag.write(tmp_path, form, test_rosbag.flight(form, ("/uav1",), 1.0))
    before = join(list(open_log(path).batches()))
    found, problems = signals(path, Recordings(signals=("gps.cmd_vel.twist.linear.*",)))
    assert problems == "()"
    assert set(found) == {f"gps.cmd_vel.twist.linear.{axis}" for axis in "xyz"}
    assert {len(values) for values in found.values()} == {50}
    after = join(list(open_log(path, Recordings(signals=("*",))).batches()))
    for kind in (Kind.GPS, Kind.IMU):
        np.testing.assert_array_equal(before.kinds[kind].data, after.kinds[kind].data)


def test_a_pattern_that_nothing_fits_and_names_that_are_too_long_are_said(px4_logs: Path) -> None:
    pytest.importorskip("pyulog")
    _, problems = signals(px4_logs / PX4, Recordings(signals=("sensor_barro.*", "battery_statos.*")))
    assert "nothing in it is called sensor_barro.* or battery_statos.*" in problems
    chosen = Chosen(Recordings(signals=("esc*",)))
    long = "esc_status." + "x" * 40
    assert not chosen.more(long)
    assert chosen.more("esc_status.esc_count")
    assert chosen.problems() == [f"1 numbers with names of more than 48 characters left out: {long}"]


TOPICS = st.from_regex(r"[a-c]{1,3}(_[a-c]{1,2})?", fullmatch=True)


@given(TOPICS, TOPICS, st.integers(0, 2), st.lists(st.sampled_from(["*", "?", "[0]", "a", "b.", ".", "_"]), max_size=5))
def test_a_topic_that_has_a_chosen_number_is_never_passed_over(
    topic: str, field: str, instance: int, parts: list[str]
) -> None:
    name = f"{topic}[{instance}].{field}" if instance else f"{topic}.{field}"
    for pattern in {"".join(parts), topic[:1] + "".join(parts), name, name.replace("a", "?"), name[:3] + "*"} - {""}:
        chosen = Chosen(Recordings(signals=(pattern,)))
        assert chosen.might(topic) or not chosen.more(name)


def test_arrays_that_are_pictures_and_endless_nesting_are_left_out() -> None:
    assert list(numbers_in(np.zeros(33), "scan")) == []
    nested: list[object] = [1.0]
    for _ in range(10):
        nested = [nested]
    assert list(numbers_in(nested, "deep")) == []
    assert [name for name, _ in numbers_in(np.zeros(2, np.float32), "esc.rpm")] == ["esc.rpm[0]", "esc.rpm[1]"]
