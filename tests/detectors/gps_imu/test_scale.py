"""The calibrated score: the nominal share of epochs whatever the vehicle shows, and nothing learned from an attack."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors.gps_imu import Channel
from watchkeeper.config.schema import DEFAULT, FleetLimits
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.gps_imu.channels import lasting_innovations
from watchkeeper.detectors.gps_imu.constants import LEVEL_FIRST, LEVEL_MAX, LEVEL_MIN, USUAL_FIRST, WEIGHT
from watchkeeper.detectors.gps_imu.detector import GpsImu
from watchkeeper.detectors.gps_imu.scale import calibrate, fused, learn, without_return
from watchkeeper.detectors.gps_imu.state import CHANNELS, JUMP_VELOCITY, MOVING, REST, SCALED, TRACKING, Vehicle, Work
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.kernels import njit

PAR = GpsImu(DEFAULT, Fleet(FleetLimits(max_vehicles=1)))._settings


@njit
def _judge(table, par, largest, moving, over):
    """Score each epoch by the level so far, then learn it."""
    row = table[0]
    for i in range(len(largest)):
        score = par.nominal_sigma * largest[i] / row.usual_score[1 if moving else 0]
        over[i] = score >= par.nominal_sigma
        calibrate(row, par, score, score, moving)


def judge(largest: np.ndarray, *, moving: bool = True, latched: int = 0) -> tuple[np.ndarray, np.void]:
    table = blank(Vehicle, 1)
    table["usual_score"] = LEVEL_FIRST
    table["latched"] = latched
    over = np.zeros(len(largest), bool)
    _judge(table, PAR, largest, moving, over)
    return over, table[0]


def test_the_tables_have_a_value_for_every_channel_and_the_configuration_knows_their_names():
    assert get_args(Channel) == CHANNELS
    assert len(WEIGHT) == len(CHANNELS)
    assert len(USUAL_FIRST) == SCALED


def test_the_nominal_share_is_two_sided_and_one_percent():
    assert PAR.nominal_rate == 0.01
    assert PAR.nominal_sigma == pytest.approx(2.5758, abs=1e-4)


# Largest channels of healthy vehicles: light and heavy tails, quiet and loud, all within the range of the level.
SHAPES = {
    "normal": lambda rng, n: np.abs(rng.normal(size=n)),
    "heavy": lambda rng, n: np.abs(rng.standard_t(4, size=n)),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "uniform": lambda rng, n: rng.random(n),
}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(SHAPES)), st.floats(-1.0, 0.8), st.integers(0, 2**32 - 1))
def test_whatever_the_distribution_a_healthy_vehicle_is_over_the_level_in_the_nominal_share_of_epochs(shape, log, seed):
    largest = SHAPES[shape](np.random.default_rng(seed), 6000)
    largest *= np.exp(log) / np.quantile(largest, 0.99)
    over, _ = judge(largest)
    # ten minutes after two of settling
    assert 0.005 < over[600:3600].mean() < 0.02
    assert 0.005 < over[3000:].mean() < 0.02


def test_a_vehicle_that_becomes_noisier_for_good_is_followed():
    rng = np.random.default_rng(5)
    largest = np.abs(rng.normal(size=8000)) / 2.576
    largest[4000:] *= 1.6
    over, _ = judge(largest)
    assert over[4000:4300].mean() > 0.02
    assert 0.005 < over[5000:].mean() < 0.02


def test_an_alarm_teaches_nothing():
    _, row = judge(np.full(500, 10.0), latched=1)
    assert row["usual_score"][MOVING] == LEVEL_FIRST


def test_what_stays_over_the_level_is_not_learned_before_it_ends():
    _, row = judge(np.full(500, 10.0))
    assert row["usual_score"][MOVING] == LEVEL_FIRST


def test_an_attacker_who_shows_himself_every_other_epoch_for_half_a_minute_cannot_double_the_level():
    over, row = judge(np.tile([10.0, 0.5], 75))
    assert row["usual_score"][MOVING] < 2.0 * LEVEL_FIRST
    assert over[::2].all()


def test_rest_and_motion_are_learned_apart_and_the_level_has_limits():
    _, row = judge(np.full(20_000, 0.01), moving=False)
    assert row["usual_score"][REST] == LEVEL_MIN
    assert row["usual_score"][MOVING] == LEVEL_FIRST
    # one epoch in fifty, too big for any level
    _, row = judge(np.tile(np.append(np.full(49, 0.1), 50.0), 400))
    assert 0.9 * LEVEL_MAX < row["usual_score"][MOVING] <= LEVEL_MAX


def test_what_a_channel_with_memory_shows_does_not_teach_the_level():
    table = blank(Vehicle, 1)
    table["usual_score"] = LEVEL_FIRST
    table["credit"] = 8.0
    for score, instant in ((3.0, 1.0), (3.0, 1.0), (1.0, 1.0)) * 20:
        calibrate(table[0], PAR, score, instant, True)
    assert table["usual_score"][0][MOVING] < LEVEL_FIRST
    for score, instant in ((3.0, 3.0), (3.0, 3.0), (1.0, 1.0)):
        calibrate(table[0], PAR, score, instant, True)
    assert table["usual_score"][0][MOVING] > LEVEL_FIRST


def test_an_excursion_that_dithers_about_its_level_counts_once():
    table = blank(Vehicle, 1)
    table["phase"], table["good_s"] = TRACKING, 1e3
    table["usual"] = USUAL_FIRST
    first = np.array(USUAL_FIRST)
    for _ in range(10):
        learn(table[0], PAR, 1.05 * first, 0.2)
        learn(table[0], PAR, 0.95 * first, 0.2)
    assert np.all(table["usual"][0] < 1.09 * first)
    learn(table[0], PAR, 0.1 * first, 0.2)
    learn(table[0], PAR, 1.2 * first, 0.2)
    assert np.all(table["usual"][0] > 1.1 * first)


@njit
def _jolt(table, works, par, velocity, limit, whole, left):
    """Velocities of fixes that the IMU feels nothing of: each jump, and what the score has of it."""
    row, work = table[0], works[0]
    sigma = np.zeros(len(CHANNELS))
    for i in range(len(velocity)):
        work.fix[:] = 0.0
        work.fix[3] = velocity[i]
        lasting_innovations(row, par, work, 0.2)
        sigma[JUMP_VELOCITY] = whole[i] = work.distance[JUMP_VELOCITY]
        left[i] = without_return(row, work, sigma, fused(sigma))
        row.suspect_run = row.suspect_run + 1 if left[i] >= limit else 0
        row.fix[:] = work.fix


def jolts(velocity: np.ndarray, limit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    table, work = blank(Vehicle, 1), blank(Work, 1)
    table["cov"], work["variance"], table["usual"] = np.eye(table["cov"].shape[1]), 1.0, 1.0
    whole, left = np.empty(len(velocity)), np.empty(len(velocity))
    _jolt(table, work, PAR, velocity, limit, whole, left)
    return whole, left


def test_noise_that_alternates_is_no_run_of_jumps_and_what_goes_one_way_is():
    whole, left = jolts(np.array([0.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]))
    over = left >= 1.0
    assert (whole[2:] >= 1.0).all()
    assert over.any()
    assert not (over[1:] & over[:-1]).any()
    for lies in (np.r_[np.zeros(3), np.full(5, 3.0)], np.r_[np.zeros(3), 2.0 * np.arange(8)]):
        whole, left = jolts(lies)
        assert whole.max() > 1.0
        assert left == pytest.approx(whole)


@given(st.lists(st.floats(-20.0, 20.0), min_size=3, max_size=30))
def test_what_counts_of_a_jump_is_never_more_than_the_jump_and_alone_it_is_all_of_it(velocity: list[float]):
    whole, left = jolts(np.array(velocity))
    assert (left <= whole + 1e-9).all()
    alone = np.r_[True, left[:-1] < 1.0]
    assert left[alone] == pytest.approx(whole[alone])
