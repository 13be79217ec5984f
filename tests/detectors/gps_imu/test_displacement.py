"""A position that moved away and never came back stays an alarm; what is not known at the end is not called gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from watchkeeper.config.schema import Config, Diagnosis, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import say
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import GPS
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.states import StateEncoder, decode_state

ON, OFF = 90.0, 310.0
CONFIG = Config(fleet=FleetLimits(max_vehicles=8), diagnosis=Diagnosis(enabled=False))
Change = Callable[[F8, F8], None]


@pytest.fixture(scope="module")
def clean() -> Flight:
    return simulated("quad-5", Recipe(seed=5, seconds=360)).from_zero()


def changed(flight: Flight, change: Change, on: float = ON, off: float = OFF) -> Flight:
    """The flight with the fields of its fixes from `on` to `off` changed in place: change(fields, time since on)."""
    t, data = flight.gps.t, flight.gps.data.copy()
    rows = (t >= on) & (t < off)
    part = data[:, rows]
    change(part, t[rows] - on)
    data[:, rows] = part
    return replace(flight, gps=Stream(t, data))


def played(flight: Flight, pipeline: Pipeline | None = None, *, until: float = np.inf) -> list[AlarmEvent]:
    pipeline = pipeline or Pipeline(CONFIG)
    events = []
    for batch in batches([Variant(flight)], strict=True):
        if next(iter(batch.kinds.values())).t[0] >= until:
            return events
        events += pipeline.feed(batch)
    return [event for event in events + pipeline.finish() if event.kind == "gps_imu"]


def bias(fields: F8, _: F8) -> None:
    fields[GPS["gps_x"]] += 18.0
    fields[GPS["gps_y"]] -= 24.0


def test_a_bias_is_one_alarm_that_calms_down_says_how_far_and_ends_with_it(clean: Flight) -> None:
    events = played(changed(clean, bias))
    assert [event.state for event in events if event.state != "updated"] == ["raised", "cleared"]
    assert len({event.id for event in events}) == 1
    first, last = events[0], events[-1]
    assert ON < first.t < ON + 5.0
    assert OFF < last.t < OFF + 30.0
    assert last.ended == "cause_gone"
    lasting = [event for event in events if "not_reestablished" in event.evidence["causes"] and event.t < OFF]
    severities = [event.severity for event in events if event.t < OFF]
    assert list(dict.fromkeys(severities)) == ["warning", "advisory"]
    now = lasting[-1].evidence
    assert np.allclose([now["displaced_north_m"], now["displaced_east_m"]], [18.0, -24.0], atol=4.0)
    assert ON < now["displaced_since_t"] < ON + 5.0
    assert "GPS position moved 31 m towards 307° without a reason and has not come back since " in say(lasting[-1])
    assert events[0].evidence["displaced_since_t"] is None


def test_a_position_that_never_comes_back_is_not_established_by_waiting(clean: Flight) -> None:
    events = played(changed(clean, bias, off=1e9))
    assert [event.state for event in events if event.state != "updated"] == ["raised"]
    assert (events[-1].severity, events[-1].t > 330.0) == ("advisory", True)


def test_a_person_may_accept_it(clean: Flight) -> None:
    pipeline, moved = Pipeline(CONFIG), changed(clean, bias, off=1e9)
    assert pipeline.accept("0") == []
    assert played(moved, pipeline, until=260.0) != []
    (ended,) = pipeline.accept("0")
    assert (ended.state, ended.ended, ended.t) == ("cleared", "accepted", pipeline.watermark)
    assert "a person accepted" in say(ended)
    assert pipeline.accept("0") == []
    later = replace(moved, gps=_after(moved.gps, 260.0), imu=_after(moved.imu, 260.0))
    assert played(later, pipeline) == []


def _after(stream: Stream, t: float) -> Stream:
    return Stream(stream.t[stream.t >= t], stream.data[:, stream.t >= t])


def test_a_restart_in_the_middle_changes_no_byte(clean: Flight) -> None:
    moved = changed(clean, bias)
    whole, first = played(moved), Pipeline(CONFIG)
    before = [event for event in played(moved, first, until=250.0) if event.kind == "gps_imu"]
    state = decode_state(bytes(StateEncoder().encode(first.snapshot())))
    second = Pipeline(CONFIG)
    second.restore(state)
    after = played(replace(moved, gps=_after(moved.gps, 250.0), imu=_after(moved.imu, 250.0)), second)
    assert [*before, *after] == whole


def test_a_return_during_an_outage_is_one_too(clean: Flight) -> None:
    moved = changed(clean, bias)
    t = moved.gps.t
    heard = (t < OFF - 4.0) | (t >= OFF)
    events = played(replace(moved, gps=Stream(t[heard], np.ascontiguousarray(moved.gps.data[:, heard]))))
    assert [event.ended for event in events if event.state == "cleared"] == ["cause_gone"]
    assert OFF < events[-1].t < OFF + 40.0


def test_a_few_metres_after_an_outage_are_a_receivers_own(clean: Flight) -> None:
    def converge(fields: F8, s: F8) -> None:
        fields[GPS["gps_x"]] += 5.0 * np.exp(-s / 10.0)

    t, moved = clean.gps.t, changed(clean, converge, 200.0)
    heard = (t < 192.0) | (t >= 200.0)
    events = played(replace(moved, gps=Stream(t[heard], np.ascontiguousarray(moved.gps.data[:, heard]))))
    assert all(event.evidence["displaced_since_t"] is None for event in events)


def test_a_lying_velocity_displaces_nothing_and_is_not_called_gone(clean: Flight) -> None:
    def pull(fields: F8, s: F8) -> None:
        fields[GPS["gps_x"]] += 8.0 * s
        fields[GPS["gps_vx"]] += 8.0

    events = played(changed(clean, pull, off=1e9))
    assert all(event.evidence["displaced_since_t"] is None for event in events)
    assert [event.ended for event in events if event.state == "cleared"] == ["taken_as_normal"]


@pytest.mark.parametrize("off_mps", [1.0, 2.0, 3.0, 5.0])
def test_a_velocity_that_lies_next_to_a_good_position_displaces_nothing(clean: Flight, off_mps: float) -> None:
    def lie(fields: F8, _: F8) -> None:
        fields[GPS["gps_vx"]] += 0.8 * off_mps
        fields[GPS["gps_vy"]] -= 0.6 * off_mps

    events = played(changed(clean, lie, off=ON + 60.0))
    assert [event.state for event in events if event.state != "updated"] == ["raised", "cleared"]
    assert all(event.evidence["displaced_since_t"] is None for event in events)
    assert events[-1].ended == "cause_gone"
    assert ON + 60.0 < events[-1].t < ON + 100.0


def test_a_height_that_drifts_from_its_climb_is_one_alarm_that_ends_with_its_return(clean: Flight) -> None:
    def drift(fields: F8, s: F8) -> None:
        fields[GPS["gps_z"]] -= 2.0 * s

    events = played(changed(clean, drift, off=ON + 60.0))
    assert [event.state for event in events if event.state != "updated"] == ["raised", "cleared"]
    assert (events[-1].ended, ON + 60.0 < events[-1].t < ON + 100.0) == ("cause_gone", True), events[-1].t - ON


@pytest.mark.parametrize(("field", "by_m"), [("gps_z", 4.0), ("gps_x", 3.0)])
def test_a_small_step_is_not_normal_because_the_filter_has_followed(clean: Flight, field: str, by_m: float) -> None:
    def step(fields: F8, _: F8) -> None:
        fields[GPS[field]] += by_m

    events = [event for event in played(changed(clean, step)) if event.state != "updated"]
    assert [event.state for event in events[:2]] == ["raised", "cleared"]
    assert ON < events[0].t < ON + 5.0
    # as long as a GPS has to agree with itself until it is believed, not the seconds that the filter takes
    assert 25.0 < events[1].t - events[0].t < 120.0


def test_a_frozen_gps_ends_when_the_fix_moves_and_not_before(clean: Flight) -> None:
    def freeze(fields: F8, _: F8) -> None:
        fields[:] = fields[:, [0]]

    events = played(changed(clean, freeze, off=220.0))
    assert [event.state for event in events if event.state != "updated"] == ["raised", "cleared"]
    assert ON < events[0].t < ON + 5.0
    assert 220.0 < events[-1].t < 265.0
    assert events[-1].ended == "cause_gone"
