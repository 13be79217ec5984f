"""Over 1,000 s with gateways, roaming, silences, conflicts across tile borders, areas and intent: the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import msgspec
import pytest

from tests.engines.test_sharded import behind_gateways, through
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.sharded import Sharded
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.simulate import simulate

SECONDS = 1010
# sixteen operators with room for twenty thousand vehicles each would take gigabytes
SMALL = msgspec.structs.replace(Config(), fleet=FleetLimits(max_vehicles=200))


def named(batch: Batch, prefix: str) -> Batch:
    signs = {prefix + name: sign for name, sign in batch.callsigns.items()}
    called_t = {prefix + name: t for name, t in batch.called_t.items()}
    return Batch([prefix + name for name in batch.ids], batch.kinds, batch.vias, signs, called_t)


def everything() -> Iterator[Batch]:
    """Drones with spoofed GPS behind gateways, aircraft around a jammer, aircraft with controllers; sparse."""
    drones = simulate("mixed", seed=9, vehicles=11, seconds=SECONDS, rate_hz=10.0).batches()
    jammed = simulate("jamming", seed=3, vehicles=60, seconds=SECONDS).batches()
    led = simulate("controlled", seed=3, seconds=SECONDS).batches()
    for parts in zip_longest(behind_gateways(drones, 4, roam_s=70.0), jammed, led):
        yield join([named(part, prefix) for part, prefix in zip(parts, "djc", strict=True) if part is not None])


@pytest.fixture(scope="module")
def world() -> list[Batch]:
    return list(everything())


@pytest.fixture(scope="module")
def single(world: list[Batch]) -> list[bytes]:
    return through(Pipeline(SMALL), world)


@pytest.mark.parametrize("shards", [1, 2, 4, 16])
def test_any_number_of_shards_gives_the_bytes_of_one_pipeline(
    world: list[Batch], single: list[bytes], shards: int
) -> None:
    assert max(batch.t_max for batch in world) - min(batch.t_min for batch in world) >= 1000.0
    kinds = {line.split(b'"kind":"')[1].split(b'"')[0].decode() for line in single}
    assert kinds >= {"incident", "silence", "conflict", "los", "gps_imu", "gnss_interference", "intent"}
    assert any(b'"diagnosis":{' in line for line in single)
    assert sorted(through(Sharded(SMALL, shards), world)) == sorted(single)
