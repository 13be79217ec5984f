"""The fleet's model beside river, whose trees and quantiles it has to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import anomaly, stats

from watchkeeper.detectors.gps_imu import constants as c
from watchkeeper.detectors.gps_imu.model import half_space, psquare
from watchkeeper.detectors.gps_imu.model.fleet import ResidualModel
from watchkeeper.streams.batch import F8

# neither in the order of the alphabet nor against it
NAMES = ("speed", "jump", "turn", "drift", "noise")
EPOCHS = 4 * c.WINDOW + 37


def rivers(names: tuple[str, ...] = NAMES, trees: int = c.TREES, height: int = c.HEIGHT, window: int = c.WINDOW) -> Any:
    limits = dict.fromkeys(names, (0.0, 1.0))
    return anomaly.HalfSpaceTrees(n_trees=trees, height=height, window_size=window, limits=limits, seed=c.SEED)


def rivers_judge() -> Callable[[F8, bool], float]:
    """The model as it was when river did the work."""
    trees, middle, high = rivers(), stats.Quantile(0.5), stats.Quantile(c.HIGH_QUANTILE)
    learned = 0

    def judge(sigmas: F8, learn: bool) -> float:
        nonlocal learned
        features = {name: min(1.0, s / c.FULL_SIGMA) for name, s in zip(NAMES, sigmas.tolist(), strict=True)}
        raw = trees.score_one(features) if learned >= c.TREES_READY else 0.0
        unusual = 0.0
        if learned >= c.READY:
            low, top = middle.get(), high.get()
            unusual = max(0.0, c.HIGH_SIGMA * (raw - low) / max(top - low, c.SPREAD_MIN))
        if learn:
            if learned >= c.TREES_READY:
                middle.update(raw)
                high.update(raw)
            trees.learn_one(features)
            learned += 1
        return unusual

    return judge


def epochs(seed: int = 5) -> tuple[F8, np.ndarray]:
    rng = np.random.default_rng(seed)
    sigmas = np.abs(rng.standard_normal((EPOCHS, len(NAMES)))) * rng.choice([0.3, 1.0, 3.0], (EPOCHS, 1))
    # equal values, and values on the edge
    sigmas[::3] = np.round(sigmas[::3], 1)
    sigmas[::50] = 0.0
    return sigmas, rng.random(EPOCHS) < 0.8


@pytest.mark.parametrize(("trees", "height"), [(1, 1), (3, 4), (c.TREES, c.HEIGHT)])
def test_the_trees_cut_where_river_s_do(trees: int, height: int) -> None:
    on, at = half_space.grow(NAMES, trees, height, c.SEED)
    other = rivers(trees=trees, height=height)
    other.learn_one(dict.fromkeys(NAMES, 0.5))
    nodes = [node for tree in other.trees for node in tree.iter_dfs()]
    expected = [(getattr(node, "feature", ""), getattr(node, "threshold", 0.0)) for node in nodes]
    assert [(NAMES[k] if k >= 0 else "", x) for k, x in zip(on.tolist(), at.tolist(), strict=True)] == expected


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 6), st.integers(2, 40))
def test_points_score_as_with_river(seed: int, trees: int, height: int, window: int) -> None:
    on, at = half_space.grow(NAMES, trees, height, c.SEED)
    masses = np.zeros((len(on), 2), np.int64)
    other = rivers(trees=trees, height=height, window=window)
    rng = np.random.default_rng(seed)
    for i, point in enumerate(rng.random((3 * window, len(NAMES))) ** rng.choice([0.2, 1.0, 5.0]), 1):
        named = dict(zip(NAMES, point.tolist(), strict=True))
        other.learn_one(named)
        half_space.learn(point, on, at, masses, height)
        if i % window == 0:
            half_space.turn(masses)
        if i >= window:
            probe = rng.random(len(NAMES))
            theirs = other.score_one(dict(zip(NAMES, probe.tolist(), strict=True)))
            assert half_space.score(probe, on, at, masses, height, window) == theirs


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([0.01, 0.5, 0.9, c.HIGH_QUANTILE]),
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 0.5]), min_size=6, max_size=200),
)
def test_a_running_quantile_is_river_s(quantile: float, values: list[float]) -> None:
    row, other = psquare.empty(quantile), stats.Quantile(quantile)
    for seen, value in enumerate(values):
        psquare.update(row, seen, value)
        other.update(value)
        if seen >= psquare.MARKERS:
            assert psquare.estimate(row) == other.get()


def test_the_model_says_what_it_said_with_river_in_any_chunks_and_after_any_restart() -> None:
    sigmas, learn = epochs()
    judge = rivers_judge()
    expected = [judge(row, bool(may)) for row, may in zip(sigmas, learn, strict=True)]
    assert max(expected) > 2.0
    model, said = ResidualModel(NAMES), []
    at = 0
    for size in np.random.default_rng(1).integers(1, 90, EPOCHS).tolist():
        said += model.judge(sigmas[at : at + size], learn[at : at + size]).tolist()
        at += size
        state, model = model.snapshot(), ResidualModel(NAMES)
        model.restore(state)
    assert said == expected
    assert model.learned == learn.sum()


def test_a_model_with_other_residuals_or_without_sense_is_refused() -> None:
    model = ResidualModel(NAMES)
    model.judge(np.ones((3, len(NAMES))), np.ones(3, bool))
    with pytest.raises(ValueError, match="cut elsewhere"):
        ResidualModel(("other", *NAMES[1:])).restore(model.snapshot())
    for damaged in (np.zeros(psquare.WIDTH), psquare.empty(0.5) + 0j, psquare.empty(0.5)[1:]):
        state = model.snapshot()
        state["quantiles"][1]["numbers"] = damaged
        with pytest.raises(ValueError, match="other markers"):
            ResidualModel(NAMES).restore(state)
