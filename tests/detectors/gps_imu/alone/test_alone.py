"""Each stream by itself: a GPS without an IMU, an IMU without a GPS, and what a receiver says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import GPS, PLACE, VELOCITY
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.splits import Recipe, simulated

SECONDS = 150
ONSET_S = 90.0


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return [simulated(name, Recipe(seed, SECONDS)).from_zero() for name, seed in (("quad-3", 3), ("wing-4", 4))]


def without_imu(flight: Flight) -> Flight:
    return replace(flight, imu=Stream(np.zeros(0), np.zeros((len(flight.imu.data), 0))))


def without_gps(flight: Flight) -> Flight:
    return replace(flight, gps=Stream(np.zeros(0), np.zeros((len(flight.gps.data), 0))))


def told(flight: Flight, since_t: float, **values: float) -> Flight:
    """The flight whose receiver says this of itself from some time on."""
    data = flight.gps.data.copy()
    for name, value in values.items():
        data[GPS[name], flight.gps.t >= since_t] = value
    return replace(flight, gps=Stream(flight.gps.t, data))


def events(flights: list[Flight], kind: str = "gps_imu") -> list[AlarmEvent]:
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=32)))
    found = [
        event for batch in batches(list(map(Variant, flights)), strict=True) for event in pipeline.feed(batch)
    ] + pipeline.finish()
    return [event for event in found if event.kind == kind]


def raised_s(flights: list[Flight], since_t: float) -> list[float]:
    """How long after this time each flight had its first alarm; infinite: never."""
    found = [np.inf] * len(flights)
    for event in events(flights):
        if event.state == RAISED:
            found[int(event.subjects[0])] = min(found[int(event.subjects[0])], event.t_raised - since_t)
    return found


def blind_s(flights: list[Flight], since_t: float) -> list[float]:
    """How long after this time it was first said of each flight that its receiver has no fix."""
    found = [np.inf] * len(flights)
    for event in events(flights, "watch"):
        if "no_fix" in event.evidence.get("causes", ()):
            found[int(event.subjects[0])] = min(found[int(event.subjects[0])], event.t - since_t)
    return found


@pytest.mark.parametrize("strip", [without_imu, without_gps])
def test_one_healthy_stream_raises_nothing(flights, strip):
    assert events([strip(flight) for flight in flights]) == []


@pytest.mark.parametrize(
    "attack",
    [
        "gps_bias_10m", "gps_bias_50m", "gps_altitude_bias_20m", "gps_drift_2mps", "gps_noise_5m", "gps_replay_2s",
        "gps_replay_30s", "gps_replay_here_30s", "gps_altitude_bias_5m", "gps_freeze",
        "gps_jamming_20m", "gps_intermittent_20m",
    ],
)  # fmt: skip
def test_a_gps_that_lies_is_found_without_an_imu(flights, attack):
    lying = [
        without_imu(inject(catalogue().find(attack), flight, onset_s=ONSET_S).attacked_flight()) for flight in flights
    ]
    assert max(raised_s(lying, ONSET_S)) < 12.0


@pytest.mark.parametrize("attack", ["imu_stuck", "imu_accel_stuck", "imu_gyro_stuck", "imu_accel_saturation_5mps2"])
def test_an_imu_that_fails_is_found_without_a_gps(flights, attack):
    lying = [
        without_gps(inject(catalogue().find(attack), flight, onset_s=ONSET_S).attacked_flight()) for flight in flights
    ]
    assert max(raised_s(lying, ONSET_S)) < 8.0


def test_an_imu_that_is_shaken_is_found_without_a_gps(flights):
    data = flights[0].imu.data.copy()
    late = flights[0].imu.t >= ONSET_S
    data[:3, late] += 20.0 * np.random.default_rng(1).standard_normal((3, int(late.sum())))
    shaken = without_gps(replace(flights[0], imu=Stream(flights[0].imu.t, data)))
    assert raised_s([shaken], ONSET_S)[0] < 8.0


def test_satellites_halved_and_dilution_tripled_in_a_hover_are_found_without_an_imu():
    """The pattern of a real spoofing: 11 satellites become 5, HDOP .84 becomes 2.99, the position moves at 6 m/s."""
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 120.0, 0.2)
    data = np.full((len(GPS), len(t)), np.nan)
    away = np.clip(t - ONSET_S, 0.0, 2.2) * 6.0
    data[PLACE] = 0.3 * rng.standard_normal((3, len(t))) + np.array([[1.0], [0.0], [0.0]]) * away
    data[VELOCITY] = 0.08 * rng.standard_normal((3, len(t)))
    data[GPS["gps_vx"]] += 6.0 * ((away > 0.0) & (away < 13.2))
    data[GPS["fix"]], data[GPS["sats"]], data[GPS["hdop"]] = 3.0, 11.0, 0.84
    hover = Flight("quad-real", Stream(t, data), Stream(np.zeros(0), np.zeros((9, 0))))
    assert raised_s([told(hover, ONSET_S, sats=5.0, hdop=2.99)], ONSET_S)[0] < 5.0


@pytest.mark.parametrize("strip", [without_imu, lambda flight: flight])
@pytest.mark.parametrize(
    "words", [{"spoofing_state": 3.0}, {"spoofing_state": 2.0}, {"jamming_state": 3.0}, {"jamming": 200.0}]
)
def test_a_receiver_that_reports_interference_is_heard(flights, strip, words):
    healthy = [told(flight, 0.0, spoofing_state=1.0, jamming_state=1.0, jamming=20.0) for flight in flights]
    assert events([strip(flight) for flight in healthy]) == []
    assert max(raised_s([strip(told(flight, ONSET_S, **words)) for flight in healthy], ONSET_S)) < 5.0


def test_a_receiver_that_always_warns_is_taken_as_it_is(flights):
    assert events([without_imu(told(flight, 0.0, jamming_state=2.0, jamming=180.0)) for flight in flights]) == []


BLIND = [{"fix": 0.0}, {"sats": 0.0}, {"eph": 4e6}, {"hdop": 99.99}]


@pytest.mark.parametrize("words", BLIND)
@pytest.mark.parametrize("since_t", [0.0, ONSET_S])
@pytest.mark.parametrize("strip", [without_imu, lambda flight: flight])
def test_a_receiver_without_a_position_is_named_within_ten_seconds(flights, words, since_t, strip):
    found = blind_s([strip(told(flight, since_t, **words)) for flight in flights], since_t)
    assert 0.0 < min(found) <= max(found) <= 10.0


def test_a_receiver_without_a_position_need_not_send_one(flights):
    """Position and velocity are absent where there is no fix, as autopilots send it."""
    absent = dict.fromkeys(("gps_x", "gps_y", "gps_z", "gps_vx", "gps_vy", "gps_vz"), np.nan)
    blind = told(flights[0], ONSET_S, fix=1.0, **absent)
    assert 0.0 < blind_s([without_imu(blind)], ONSET_S)[0] <= 10.0


def test_satellites_that_are_lost_for_two_seconds_are_no_alarm(flights):
    back = told(told(flights[0], ONSET_S, sats=0.0), ONSET_S + 2.0, sats=14.0)
    assert blind_s([back], ONSET_S) == [np.inf]


def lasted_s(flight: Flight, attack: str) -> tuple[float, float]:
    """When the alarm of an attack of half a minute began after its onset, and ended after its end."""
    heard = events([inject(catalogue().find(attack), flight, onset_s=ONSET_S).attacked_flight()])
    (raised,) = (event.t for event in heard if event.state == RAISED)
    ended = [event.t for event in heard if event.state == CLEARED]
    return raised - ONSET_S, (ended[0] if ended else np.inf) - ONSET_S - 30.0


@pytest.mark.parametrize("attack", ["gps_replay_30s", "gps_bias_5m"])
def test_a_position_that_comes_back_ends_its_alarm(flights, attack):
    began_s, ended_s = lasted_s(flights[0], attack)
    assert began_s < 2.0
    assert 0.0 < ended_s < 25.0


def test_a_slow_drift_of_a_good_receiver_is_found_next_to_an_imu(flights):
    began_s, _ = lasted_s(flights[0], "gps_drift_0.5mps")
    assert began_s < 15.0


def test_velocities_that_are_rounded_come_again_by_chance(flights):
    """A hover whose velocity is told in tenths of a metre per second: a few values, again and again."""
    rng = np.random.default_rng(8)
    t = np.arange(0.0, 600.0, 0.2)
    data = np.full((len(GPS), len(t)), np.nan)
    data[PLACE] = 0.3 * rng.standard_normal((3, len(t)))
    data[VELOCITY] = np.round(0.08 * rng.standard_normal((3, len(t))), 1)
    assert events([Flight("quad-round", Stream(t, data), Stream(np.zeros(0), np.zeros((9, 0))))]) == []
