"""What a contradiction has looked like since it began: when a pattern begins and ends, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.detectors.gps_imu.naming.coefficients import COEFFICIENTS
from watchkeeper.detectors.gps_imu.naming.pattern import (
    AGAIN_S,
    CALM_S,
    CAP,
    NAMES,
    SAID_S,
    WIDTH,
    Pattern,
    features,
    follow,
)
from watchkeeper.detectors.gps_imu.state import CHANNELS, DRIFT, FREEZE, JUMP
from watchkeeper.detectors.kernels.records import blank

TABLE = np.array(COEFFICIENTS)


def told(levels: dict[int, np.ndarray], over: np.ndarray, table: np.ndarray = TABLE, dt: float = 0.2):
    """Probabilities and news of one vehicle's epochs, and its pattern after the last."""
    n = len(over)
    level = np.zeros((n, len(CHANNELS)))
    for channel, values in levels.items():
        level[:, channel] = values
    patterns, out, news = blank(Pattern, 1), np.empty((n, len(NAMES))), np.zeros(n, bool)
    follow(patterns, np.zeros(n, np.int32), 100.0 + dt * np.arange(n), over, level, table, out, news)
    return out, news, patterns[0]


def test_the_frozen_table_has_a_row_for_every_feature_and_a_constant():
    assert TABLE.shape == (WIDTH + 1, len(NAMES))
    assert np.isfinite(TABLE).all()
    assert np.abs(TABLE).max() > 0.0


def test_there_is_a_pattern_from_the_first_epoch_over_the_threshold_until_it_has_been_calm():
    over = np.zeros(60, bool)
    over[10:20] = True
    out, _, _ = told({JUMP: np.where(over, 2.0, 0.1)}, over)
    known = np.isfinite(out).all(axis=1)
    calm = int(CALM_S / 0.2)
    assert not known[:10].any()
    assert known[10 : 20 + calm - 1].all()
    assert not known[20 + calm + 1 :].any()
    assert out[known].sum(axis=1) == pytest.approx(1.0)


def test_a_pattern_remembers_how_it_began_and_its_worst_and_its_mean():
    over = np.ones(10, bool)
    _, _, row = told({JUMP: np.r_[100.0, np.zeros(9)], DRIFT: np.linspace(0.0, 3.0, 10)}, over)
    seen = np.empty(WIDTH)
    features(row, seen)
    n = len(CHANNELS)
    assert seen[JUMP] == pytest.approx(CAP / 10.0)
    assert (seen[n + JUMP], seen[2 * n + JUMP]) == (CAP, CAP)
    assert seen[DRIFT] == pytest.approx(1.5)
    assert (seen[n + DRIFT], seen[2 * n + DRIFT]) == (3.0, 0.0)
    # one epoch of ten; and those of 0, 1/3, 2/3 … that are at least 1
    assert (seen[3 * n + JUMP], seen[3 * n + DRIFT]) == pytest.approx((0.1, 0.7))


def test_a_name_is_said_when_it_is_old_enough_and_another_one_not_at_once():
    # the first name by the mean of one channel, the second by that of another
    table = np.zeros((WIDTH + 1, len(NAMES)))
    table[JUMP, 0] = table[DRIFT, 1] = 5.0
    over = np.ones(100, bool)
    early = np.arange(100) < 15
    out, news, _ = told({JUMP: np.where(early, 2.0, 0.0), DRIFT: np.where(early, 0.0, 4.0)}, over, table)
    said = np.flatnonzero(news)
    assert len(said) == 2
    assert 0.2 * (said[0] + 1) == pytest.approx(SAID_S, abs=0.21)
    assert 0.2 * (said[1] - said[0]) >= AGAIN_S - 1e-9
    assert [int(out[k].argmax()) for k in said] == [0, 1]


def test_a_channel_that_says_nothing_counts_as_none():
    over = np.ones(5, bool)
    nothing, _, _ = told({JUMP: np.full(5, 2.0), FREEZE: np.full(5, np.nan)}, over)
    zero, _, _ = told({JUMP: np.full(5, 2.0)}, over)
    assert (nothing == zero).all()
