"""The filter's mathematics against textbook forms, written out with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.gps_imu.eskf import (
    ACC,
    ATT,
    GYR,
    POS,
    VEL,
    level,
    observe,
    settle,
    spread,
    strapdown,
)
from watchkeeper.detectors.gps_imu.state import Vehicle, Work
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.detectors.kernels.wahba import best_rotation
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit


@njit
def _fly(table, dt, turn, push):
    for k in range(len(turn)):
        strapdown(table[0], dt, turn[k], push[k])


@njit
def _spread(table, noise):
    spread(table[0], noise)


@njit
def _measure(table, work, residual, variance):
    for k in range(6):
        observe(table[0], work[0], POS + k if k < 3 else VEL + k - 3, residual[k], variance[k])
    settle(table[0], work[0])


@njit
def _level(table, fx, fy, fz):
    level(table[0], fx, fy, fz)


def rotation(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def vehicle() -> np.ndarray:
    table = blank(Vehicle, 1)
    table["quat"][0, 0] = 1.0
    return table


def random_covariance(seed: int) -> np.ndarray:
    a = np.random.default_rng(seed).normal(size=(15, 15))
    cov = np.zeros((16, 16))
    cov[:15, :15] = a @ a.T / 15
    return cov


def test_a_coordinated_turn_ends_where_it_began():
    speed, rate, dt = 20.0, 0.2, 0.02
    bank = math.atan(speed * rate / GRAVITY_MS2)
    steps = round(2 * math.pi / rate / dt)
    dt = 2 * math.pi / rate / steps
    table = vehicle()
    table["quat"][0] = [math.cos(bank / 2), math.sin(bank / 2), 0, 0]
    table["vel"][0] = [speed, 0, 0]
    turn = np.tile(np.float32([0, rate * math.sin(bank) * dt, rate * math.cos(bank) * dt]), (steps, 1))
    push = np.tile(np.float32([0, 0, -GRAVITY_MS2 / math.cos(bank) * dt]), (steps, 1))

    _fly(table, dt, turn, push)

    assert table["vel"][0] == pytest.approx([speed, 0, 0], abs=0.01)
    assert table["pos"][0] == pytest.approx([0, 0, 0], abs=0.1)


def test_gravity_alone_is_a_fall_and_its_reaction_is_rest():
    falling, resting = vehicle(), vehicle()
    still = np.zeros((50, 3), np.float32)
    _fly(falling, 0.02, still, still)
    _fly(resting, 0.02, still, np.tile(np.float32([0, 0, -GRAVITY_MS2 * 0.02]), (50, 1)))
    assert falling["pos"][0] == pytest.approx([0, 0, GRAVITY_MS2 / 2], rel=1e-6)
    assert resting["pos"][0] == pytest.approx([0, 0, 0], abs=1e-6)


def test_the_closed_form_of_the_covariance_is_that_of_many_small_steps():
    table, dt, steps = vehicle(), 0.02, 10
    rng = np.random.default_rng(5)
    turn = (rng.normal(size=(steps, 3)) * 0.3 * dt).astype(np.float32)
    push = (rng.normal((0.0, 0.0, -GRAVITY_MS2), 1.0, (steps, 3)) * dt).astype(np.float32)
    before = random_covariance(1)
    table["cov"][0] = before
    expected = before[:15, :15].copy()
    for k in range(steps):
        rot = rotation(table["quat"][0])
        _fly(table, dt, turn[k : k + 1], push[k : k + 1])
        phi = np.eye(15)
        phi[ATT : ATT + 3, GYR : GYR + 3] = -rot * dt
        phi[VEL : VEL + 3, ATT : ATT + 3] = -skew(rot @ push[k])
        phi[VEL : VEL + 3, ACC : ACC + 3] = -rot * dt
        phi[POS : POS + 3, VEL : VEL + 3] = np.eye(3) * dt
        expected = phi @ expected @ phi.T
    noise = np.arange(16) * 1e-3

    _spread(table, noise)

    expected[range(15), range(15)] += noise[:15]
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(table["cov"][0, :15, :15] - expected) / scale).max() < 0.02
    assert table["cov"][0] == pytest.approx(table["cov"][0].T, abs=1e-12)
    assert table["step_s"][0] == 0.0


def test_six_measurements_in_one_pass_are_the_textbook_update():
    table, work = vehicle(), blank(Work, 1)
    table["cov"][0] = cov = random_covariance(2)
    residual, variance = np.array([1.0, -2.0, 0.5, 0.3, 0.2, -0.4]), np.array([0.5, 0.5, 2.0, 0.1, 0.1, 0.2])
    pick = np.zeros((6, 16))
    pick[range(6), [POS, POS + 1, POS + 2, VEL, VEL + 1, VEL + 2]] = 1.0
    gain = cov @ pick.T @ np.linalg.inv(pick @ cov @ pick.T + np.diag(variance))
    error = gain @ residual

    _measure(table, work, residual, variance)

    assert table["cov"][0] == pytest.approx(cov - gain @ pick @ cov, abs=1e-12)
    for name, first in (("vel", VEL), ("pos", POS), ("gyro_bias", GYR), ("accel_bias", ACC)):
        assert table[name][0] == pytest.approx(error[first : first + 3], abs=1e-12)
    # the small rotation as a quaternion, before it was made a unit one
    assert 2.0 * table["quat"][0, 1:] / table["quat"][0, 0] == pytest.approx(error[:3], abs=1e-12)


@settings(deadline=None)
@given(
    st.floats(-3.1, 3.1).filter(lambda r: abs(abs(r) - math.pi / 2) > 0.01),
    st.floats(-1.5, 1.5),
)
def test_levelling_finds_roll_and_pitch_from_gravity(roll, pitch):
    up = -GRAVITY_MS2 * np.array([-math.sin(pitch), math.cos(pitch) * math.sin(roll), math.cos(pitch) * math.cos(roll)])
    table = vehicle()
    _level(table, *up)
    assert rotation(table["quat"][0]) @ up == pytest.approx([0, 0, -GRAVITY_MS2], abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_the_best_rotation_turns_one_set_of_vectors_onto_the_other(seed, n):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    rot = rotation(q / np.linalg.norm(q))
    source = rng.normal((0.0, 0.0, -9.8), 1.0, (n, 3)).T
    found = np.zeros(4)
    best_rotation(rot @ source @ source.T, np.zeros((4, 4)), np.zeros((4, 4)), found)
    assert rotation(found) @ source == pytest.approx(rot @ source, abs=1e-6)


def test_the_covariance_stays_one_over_a_day_of_updates():
    table, work = vehicle(), blank(Work, 1)
    table["cov"][0, range(15), range(15)] = 1.0
    rng = np.random.default_rng(3)
    still = np.zeros((10, 3), np.float32)
    noise = np.full(16, 1e-8)
    for _ in range(20_000):
        turn = (still + rng.normal(size=3) * 0.01).astype(np.float32)
        push = (still + [0.0, 0.0, -0.02 * GRAVITY_MS2] + rng.normal(size=3) * 0.05).astype(np.float32)
        _fly(table, 0.02, turn, push)
        _spread(table, noise)
        _measure(table, work, np.zeros(6), np.array([0.5, 0.5, 2.0, 0.1, 0.1, 0.2]))
    cov = table["cov"][0, :15, :15]
    assert np.abs(cov - cov.T).max() < 1e-9
    assert np.linalg.eigvalsh(0.5 * (cov + cov.T)).min() > 0.0
    assert np.linalg.norm(table["quat"][0]) == pytest.approx(1.0)
