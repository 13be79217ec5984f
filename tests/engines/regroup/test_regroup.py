"""The number of shards changes in the middle of a run: what follows is the same to the byte."""

from __future__ import annotations

import random
from hashlib import blake2b

import msgspec
import pytest

from tests.engines.test_sharded import behind_gateways
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.part import of_vehicles
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.regroup import by_bucket, join, regroup
from watchkeeper.engines.sharded import Sharded
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.split import BUCKETS

SMALL = msgspec.structs.replace(Config(), fleet=FleetLimits(max_vehicles=200))


@pytest.fixture(scope="module")
def world() -> list[Batch]:
    return list(behind_gateways(simulate("mixed", seed=5, vehicles=33, seconds=100).batches(), 4, roam_s=17.0))


@pytest.fixture(scope="module")
def single(world: list[Batch]) -> list[bytes]:
    pipeline = Pipeline(SMALL)
    return [encode_event(e) for batch in world for e in pipeline.feed(batch)] + [
        encode_event(e) for e in pipeline.finish()
    ]


def run(world: list[Batch], cuts: list[int], shards: list[int]) -> list[bytes]:
    """`shards[0]` until batch `cuts[0]`, then `shards[1]`, and so on."""
    sharded, found, left = Sharded(SMALL, shards[0]), [], list(zip(cuts, shards[1:], strict=True))
    for number, batch in enumerate(world):
        while left and number == left[0][0]:
            moved = Sharded(SMALL, left.pop(0)[1])
            moved.load(sharded.dump())
            sharded = moved
        found += sharded.feed(batch)
    return [encode_event(event) for event in found + sharded.finish()]


def digest(lines: list[bytes]) -> list[str]:
    return [blake2b(line).hexdigest()[:8] for line in lines]


@pytest.mark.parametrize("shards", [[2, 4, 2], [1, 16], [16, 3, 1]])
def test_rescaling_changes_no_byte(world: list[Batch], single: list[bytes], shards: list[int]) -> None:
    cuts = sorted(random.Random(str(shards)).sample(range(len(world) // 2, len(world)), len(shards) - 1))
    assert digest(run(world, cuts, shards)) == digest(single)


@pytest.mark.parametrize("seed", range(2))
def test_random_cuts(world: list[Batch], single: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.choices(range(len(world) + 1), k=chance.randint(1, 4)))
    shards = chance.choices(range(1, 9), k=len(cuts) + 1)
    assert digest(run(world, cuts, shards)) == digest(single)


def test_dumps_by_bucket_are_those_of_operators_of_one_bucket(world: list[Batch]) -> None:
    sharded = Sharded(SMALL, 3)
    for batch in world[: len(world) // 2]:
        sharded.feed(batch)
    dumps = [operator.dump() for operator in sharded.operators[:3]]
    buckets: dict[int, bytes] = {}
    for i, dump in enumerate(dumps):
        buckets |= by_bucket(dump, range(i, BUCKETS, 3))
    assert sorted(buckets) == list(range(BUCKETS))
    assert len(regroup(dumps, BUCKETS)) == BUCKETS
    one = Operator(SMALL, of_vehicles(1, 2))
    one.load(join([buckets[b] for b in range(1, BUCKETS, 2)]))
    assert not one.pipeline.cold
    assert sorted(one.pipeline.fleet.slot_of) == sorted(
        name for o in sharded.operators[:3] for name in o.pipeline.fleet.slot_of if one.pipeline.part.has(name)
    )


def test_more_operators_than_buckets_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 64"):
        regroup([], BUCKETS + 1)
