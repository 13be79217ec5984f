"""Slow faults: innovations are whitened by what a vehicle shows, their sums keep to a budget, faults are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from watchkeeper.detectors.gps_imu.slow.constants import (
    BLOCK_S,
    FIRST_SQ,
    FREEDOM,
    LOG_CHANCE,
    TAIL,
    WINDOWS,
    WINDOWS_S,
)
from watchkeeper.detectors.gps_imu.slow.kernel import look_for_slow
from watchkeeper.detectors.gps_imu.slow.levels import rare
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.state import TRACKING, Vehicle, Work
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.kernels import njit

DT = 0.2


@njit
def _run(rows, slow, work, residual, latched, ratio, white):
    row = rows[0]
    for i in range(len(residual)):
        row.latched = latched[i]
        for k in range(6):
            work[0].residual[k] = residual[i, k]
        look_for_slow(slow[0], row, work[0], DT)
        ratio[i] = work[0].slow
        white[i] = work[0].white


class Watched:
    """A vehicle whose innovations are given, in the filter's own standard deviations."""

    def __init__(self) -> None:
        self.rows, self.slow, self.work = blank(Vehicle, 1), blank(Slow, 1), blank(Work, 1)
        self.rows["phase"], self.slow["settled_s"] = TRACKING, 1000.0
        self.work["variance"] = 1.0

    def see(self, residual, latched=0):
        ratio, white = np.zeros((len(residual), 2)), np.zeros((len(residual), 3, 2))
        _run(self.rows, self.slow, self.work, residual, np.broadcast_to(latched, len(residual)).copy(), ratio, white)
        return ratio, white


def healthy(seconds, seed=1, scale=1.0, memory_s=5.0, slow=0.3, white=0.1):
    """White noise on a first-order Gauss-Markov process, in every innovation."""
    rng = np.random.default_rng(seed)
    n = round(seconds / DT)
    keep = math.exp(-DT / memory_s)
    wander = np.zeros((n, 6))
    step = rng.standard_normal((n, 6)) * slow * math.sqrt(1.0 - keep * keep)
    for i in range(1, n):
        wander[i] = keep * wander[i - 1] + step[i]
    return scale * (wander + white * rng.standard_normal((n, 6)))


def correlation(values):
    return float(np.mean(values[1:] * values[:-1]) / np.mean(values**2))


@pytest.mark.parametrize(("memory_s", "slow", "white"), [(5.0, 0.3, 0.1), (2.0, 0.2, 0.2), (10.0, 0.5, 0.05)])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_what_is_new_is_white_and_of_unit_size_after_minutes(memory_s, slow, white, scale):
    noise = healthy(400.0, scale=scale, memory_s=memory_s, slow=slow, white=white)
    assert correlation(noise[:, 0]) > 0.4
    _, found = Watched().see(noise)
    settled = found[len(found) // 2 :]
    for k in range(3):
        for c in range(2):
            assert abs(correlation(settled[:, k, c])) < 0.1
            assert np.std(settled[:, k, c]) == pytest.approx(1.0, abs=0.15)


def test_a_healthy_vehicle_stays_below_its_limits_for_hours():
    worst = [Watched().see(healthy(1800.0, seed=seed))[0].max() for seed in range(4)]
    assert 0.3 < max(worst) < 1.0


@pytest.mark.parametrize("column", [0, 3])
def test_a_shift_that_is_small_next_to_the_noise_is_found_within_its_memory(column):
    watched = Watched()
    noise = healthy(300.0, memory_s=0.5, slow=0.1, white=0.2)
    watched.see(noise[:-100])
    faulty = noise[-100:].copy()
    faulty[:, column] += 0.45
    ratio, _ = watched.see(faulty)
    assert 1.0 < DT * (1 + np.argmax(ratio[:, 0] >= 1.0)) < 12.0
    assert ratio[:, 1].max() < 1.0


def test_a_shift_of_the_altitude_is_vertical():
    watched = Watched()
    noise = healthy(300.0, memory_s=0.5, slow=0.1, white=0.2)
    watched.see(noise[:-100])
    faulty = noise[-100:].copy()
    faulty[:, 5] += 0.6
    ratio, _ = watched.see(faulty)
    assert ratio[:, 1].max() >= 1.0 > ratio[:, 0].max()


def test_what_is_over_the_limit_teaches_nothing_nor_does_the_block_before_it():
    watched = Watched()
    watched.see(healthy(200.0))
    # up to the end of a block, so that the one before waits
    while watched.slow[0]["block_all_s"] > 0.0:
        watched.see(healthy(DT, seed=9))
    before = watched.slow[0].copy()
    faulty = healthy(BLOCK_S, seed=2)
    faulty[:, 3:5] += 4.0
    ratio, _ = watched.see(faulty)
    assert ratio.max() > 1.0
    for name in ("gram", "cross", "power", "coefficients", "limit_sq", "known"):
        assert np.array_equal(watched.slow[0][name], before[name])


def test_a_latched_vehicle_teaches_nothing():
    watched = Watched()
    watched.see(healthy(200.0))
    known = float(watched.slow[0]["known"])
    watched.see(healthy(5.0 * BLOCK_S, seed=2), latched=1)
    # the block that waited when the verdict came was followed by one that did not end well
    assert watched.slow[0]["known"] == known
    watched.see(healthy(5.0 * BLOCK_S, seed=3))
    assert watched.slow[0]["known"] > known


def test_a_filter_that_goes_on_from_another_state_has_time_to_settle():
    watched = Watched()
    watched.see(healthy(300.0))
    watched.slow["settled_s"] = -20.0
    ratio, _ = watched.see(healthy(60.0, seed=3))
    assert not ratio[:98].any()
    assert ratio[102:].any(axis=1).all()
    before, again = watched.slow.copy(), {}
    for settled_s in (0.0, 1000.0):
        watched.slow[:] = before
        watched.slow["settled_s"] = settled_s
        again[settled_s] = watched.see(healthy(DT, seed=4))[0][0, 0]
    assert again[0.0] < 0.7 * again[1000.0]


def test_nothing_is_known_without_a_velocity_nor_before_the_attitude():
    watched, noise = Watched(), healthy(20.0)
    silent = noise.copy()
    silent[:, 3] = np.nan
    assert not watched.see(silent)[0].any()
    watched.rows["phase"] = TRACKING - 1
    assert not watched.see(noise)[0].any()


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("looked", [8.0, 60.0, 4000.0])
@pytest.mark.parametrize("chance", LOG_CHANCE)
def test_limits_are_those_of_fishers_f(freedom, looked, chance):
    exact = freedom * stats.f.isf(math.exp(chance), freedom, looked)
    assert rare(freedom, looked, chance) == pytest.approx(exact, rel=1e-3)


def test_the_first_limits_are_wider_than_those_of_a_known_vehicle():
    watched = Watched()
    watched.see(healthy(1.0))
    first = watched.slow[0]["limit_sq"].copy()
    watched.see(healthy(600.0))
    assert (watched.slow[0]["limit_sq"][:, 0] < first[:, 0]).all()
    for kind in range(2):
        for w in range(WINDOWS):
            white = stats.chi2.isf(math.exp(LOG_CHANCE[w]), FREEDOM[kind]) / FREEDOM[kind]
            assert first[kind, 0, w] > TAIL**2 * FIRST_SQ[kind][0] * white
    assert list(WINDOWS_S) == sorted(WINDOWS_S)
