"""The bound: that of a matched filter in white and in walking noise, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import PLACE, VELOCITY
from watchkeeper.evaluation.protocol.bound import smallest
from watchkeeper.streams.messages import FIELDS, Kind

Z = norm.isf(0.02 * 10.0 / 3600.0) + norm.ppf(0.95)


def flight(gaps: np.ndarray, *, velocity: bool = True) -> Flight:
    """A vehicle at rest whose position strays by these gaps from fix to fix."""
    n = gaps.shape[1] + 1
    data = np.full((len(FIELDS[Kind.GPS]), n), np.nan)
    data[PLACE] = np.concatenate((np.zeros((3, 1)), np.cumsum(gaps, axis=1)), axis=1)
    if velocity:
        data[VELOCITY] = 0.0
    t = 0.2 * np.arange(n)
    return Flight("quad", Stream(t, data), Stream(t, np.zeros((len(FIELDS[Kind.IMU]), n))))


def test_a_drift_in_walking_noise_and_a_step_have_the_bounds_of_a_textbook():
    gaps = np.random.default_rng(1).normal(size=(3, 50_000)) * 0.3
    walking = flight(gaps)
    # fifty independent gaps of 0.2 s: the drift adds the same to each
    assert smallest(walking, False, False) == pytest.approx(Z * 0.3 / (0.2 * np.sqrt(50)), rel=0.05)
    assert smallest(walking, True, True) == pytest.approx(Z * 0.3, rel=0.05)


def test_white_positions_show_a_drift_far_better_and_no_velocity_no_bound():
    place = np.random.default_rng(2).normal(size=(3, 50_001)) * 0.3
    white = flight(np.diff(place, axis=1))
    # a straight line through fifty positions, whose start is as noisy
    assert smallest(white, False, False) < 0.5 * Z * 0.3 / (0.2 * np.sqrt(50))
    assert np.isnan(smallest(flight(np.zeros((3, 100)), velocity=False), False, True))


def test_a_frozen_receiver_has_no_bound():
    assert np.isnan(smallest(flight(np.zeros((3, 200))), False, False))
