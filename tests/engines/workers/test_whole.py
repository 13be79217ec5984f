"""What a worker takes out of a whole turn is what Front would have cut out for it."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engines.test_wire import assert_same, steps
from watchkeeper.engines.steps import Spread, Step, Turn
from watchkeeper.engines.workers.memory import Blocks, Views
from watchkeeper.engines.workers.whole import laid_out_turn, own_steps


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps(), max_size=2), st.integers(1, 5), st.integers(0, 1 << 30))
def test_as_if_it_was_cut(given: list[Step], shards: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    names = [0 if step.samples is None else len(step.samples.ids) for step in given]
    parts = [chance.integers(0, shards, n) for n in names]
    across = [chance.random(n) < 0.5 for n in names]
    turn = Turn(
        1,
        shards,
        [
            Spread(step.samples, part.astype(np.int32), to_fleet, step.moved, step.clock)
            for step, part, to_fleet in zip(given, parts, across, strict=True)
        ],
    )
    heads, arrays = laid_out_turn(turn)
    blocks, views = Blocks(2), Views()
    memory = views.of(blocks.write(arrays))
    try:
        for operator, head in enumerate(heads):
            for cut, own in zip(turn.split(), own_steps(head, memory), strict=True):
                assert_same(_heard(cut[operator]), own)
    finally:
        blocks.close()


def _heard(step: Step) -> Step:
    """Without the vehicles and gateways that no sample names, and without a batch that has no samples."""
    batch = step.samples
    if batch is None or not batch.kinds:
        return Step(None, step.moved, step.clock)
    used = np.unique(np.concatenate([cols.vid for cols in batch.kinds.values()]))
    part = np.isin(np.arange(len(batch.ids)), used, invert=True)
    return Spread(batch, part.astype(np.int32), np.zeros_like(part), step.moved, step.clock).split(2)[0]


def test_memory_that_grows() -> None:
    blocks, views = Blocks(1), Views()
    for length in (10, 5 << 20, 3, 12 << 20):
        place = blocks.write([bytes([length % 251]) * length, b"end"])
        found = views.of(place)
        assert (len(found), bytes(found[:2]), bytes(found[-3:])) == (length + 3, bytes([length % 251]) * 2, b"end")
        del found
    blocks.close()
