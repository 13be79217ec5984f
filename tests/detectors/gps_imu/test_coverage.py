"""Whom gps_imu says that it watches: plainly only once axes and units were seen to be right; nobody falsely doubted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import FORCE, GPS, PLACE, RATE, VELOCITY
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.splits import Recipe, simulated

SECONDS = 120


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return [simulated(name, Recipe(seed, SECONDS)).from_zero() for name, seed in (("quad-3", 3), ("wing-4", 4))]


def reasons(pipeline: Pipeline, flights: list[Flight]) -> list[list[str]]:
    """The reasons that each flight went through, in order, with the alarms `watch` in capitals."""
    table = pipeline.guard.coverage
    found: list[list[str]] = [[] for _ in flights]
    events = []
    for batch in batches(list(map(Variant, flights)), strict=True):
        events += pipeline.feed(batch)
        for name, slot in pipeline.fleet.slot_of.items():
            reason = table.of(slot)["gps_imu"]["reason"]
            if found[int(name)][-1:] != [reason]:
                found[int(name)].append(reason)
    for event in events + pipeline.finish():
        if event.kind == "watch" and event.state == "raised":
            found[int(event.subjects[0])] += [cause.upper() for cause in event.evidence["causes"]]
    return found


def watched(flights: list[Flight]) -> list[list[str]]:
    return reasons(Pipeline(Config(fleet=FleetLimits(max_vehicles=32))), flights)


def other_frame(flight: Flight) -> Flight:
    data = flight.gps.data.copy()
    for first, second, third in (("gps_x", "gps_y", "gps_z"), ("gps_vx", "gps_vy", "gps_vz")):
        data[[GPS[first], GPS[second], GPS[third]]] = data[[GPS[second], GPS[first], GPS[third]]]
        data[GPS[third]] *= -1.0
    return replace(flight, gps=Stream(flight.gps.t, data))


def at_rest(flight: Flight, seconds: float) -> Flight:
    """The vehicle before it moves, for as long as this: sensors with their noise and biases."""
    rng = np.random.default_rng(1)
    t_imu, t_gps = np.arange(0.0, seconds, 0.02), np.arange(0.0, seconds, 0.2)
    imu = np.repeat(flight.imu.data[:, :1], len(t_imu), axis=1)
    imu[FORCE] = np.array([[0.1], [-0.1], [-9.8]]) + 0.05 * rng.standard_normal((3, len(t_imu)))
    imu[RATE] = 0.005 + 0.002 * rng.standard_normal((3, len(t_imu)))
    gps = np.repeat(flight.gps.data[:, :1], len(t_gps), axis=1)
    gps[PLACE] += 0.3 * rng.standard_normal((3, len(t_gps)))
    gps[VELOCITY] = 0.05 * rng.standard_normal((3, len(t_gps)))
    return replace(flight, imu=Stream(t_imu, imu), gps=Stream(t_gps, gps))


def test_a_vehicle_in_the_right_axes_is_plainly_watched_once_it_has_turned(flights: list[Flight]) -> None:
    for found in watched(flights):
        assert found[-1] == "watched"
        assert not [word for word in found if word.isupper()]


def test_a_vehicle_in_the_wrong_axes_is_never_plainly_watched(flights: list[Flight]) -> None:
    for found in watched([other_frame(flight) for flight in flights]):
        assert "watched" not in found
        assert found[-2:] == ["wrong_frame", "WRONG_FRAME"]


def test_a_vehicle_that_stands_still_for_minutes_is_watched_in_part_and_says_so(flights: list[Flight]) -> None:
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=32)))
    [found] = reasons(pipeline, [at_rest(flights[0], 300.0)])
    assert found[-1] == "unaligned"
    assert "watched" not in found
    tally = pipeline.guard.coverage.tallies()["gps_imu"]
    assert (tally.judged, tally.partly) == (1, {"unaligned": 1})
    assert tally.words() == "1 of 1, 1 of them partly (unaligned 1: 0)"


def test_a_vehicle_that_only_goes_straight_is_watched_in_part_and_says_so(flights: list[Flight]) -> None:
    """East for north and up for down would fit as well."""
    car = at_rest(flights[0], 90.0)
    imu, gps = car.imu.data.copy(), car.gps.data.copy()
    imu[FORCE.start] += 1.5 * np.cos(0.5 * car.imu.t)
    gps[GPS["gps_vx"]] += 10.0 + 3.0 * np.sin(0.5 * car.gps.t)
    gps[GPS["gps_x"]] += 10.0 * car.gps.t - 6.0 * np.cos(0.5 * car.gps.t)
    [found] = watched([replace(car, imu=Stream(car.imu.t, imu), gps=Stream(car.gps.t, gps))])
    assert found[-1] == "unconfirmed"
    assert "watched" not in found


def test_degrees_are_seen_at_rest_too(flights: list[Flight]) -> None:
    still = at_rest(flights[0], 60.0)
    data = still.imu.data.copy()
    data[RATE] *= 180.0 / np.pi
    [found] = watched([replace(still, imu=Stream(still.imu.t, data))])
    assert found[-2:] == ["units_rate", "UNITS_RATE"]
