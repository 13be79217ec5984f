"""Forty seeds of `make chaos`, and that a seed is a world: the same one, step by step, each time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos import scenes
from chaos.campaign import play_one
from chaos.interpose import interposed

# ten scenes, four plans of faults for each
SEEDS = [scene + scenes.SCENES * plan for scene in range(10) for plan in range(4)]


@pytest.fixture(scope="module", autouse=True)
def _model() -> Iterator[None]:
    with interposed():
        yield


def test_forty_worlds_break_no_promise() -> None:
    results = [play_one(seed) for seed in SEEDS]
    failed = {result.seed: result.problems for result in results if result.problems}
    assert not failed, 'make chaos ARGS="--seed N" shows what happened in each'


@pytest.mark.parametrize("seed", [3, 17])
def test_a_seed_is_the_same_world_each_time(seed: int) -> None:
    assert play_one(seed, trace=True) == play_one(seed, trace=True)


def test_an_undisturbed_world_hears_exactly_the_alarms_of_a_replay() -> None:
    assert [play_one(seed, ("none",)).problems for seed in range(10)] == [[]] * 10
