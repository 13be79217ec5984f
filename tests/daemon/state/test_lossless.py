"""The whole promise on one long recording: restored after every batch, by way of the file on disk, no byte changes.

The recording is half an hour of everything: aircraft that meet, controllers, jamming, drones behind gateways that fail,
vehicles that roam from one gateway to the other and fall silent, sensors and clocks that are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden.replays import CONFIG, GOLDEN

from watchkeeper.daemon.state.snapshot import fingerprint, read_snapshot, write_snapshot
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, slice_batch
from watchkeeper.streams.foreign.states import StateEncoder
from watchkeeper.streams.simulate.scenarios import T0

# time that jumps back ends an era, which has a replay of its own
SCENES = [name for name in GOLDEN if name != "jumps"]
NETWORKS = ("loss", "latency", "cut", "spoof")
PAUSE_S = 20.0


def recording(names: list[str]) -> Iterator[Batch]:
    """One scene after the other, as one recording."""
    start_s, end_s = 0.0, 0.0
    for scene in names:
        for second, batch in enumerate(GOLDEN[scene]()):
            changed = {}
            for kind, cols in batch.kinds.items():
                end_s = max(end_s, start_s + float(cols.t.max()) - T0)
                via = cols.via
                if scene in NETWORKS and second >= 30:
                    # the first vehicle is heard through the other gateway from here on
                    via = np.where((cols.vid == 0) & (via >= 0), 1 - via, via).astype(np.int32)
                silent = scene in NETWORKS and 20 <= second < 35
                moved = replace(cols, t=cols.t + start_s, via=via)
                changed[kind] = moved.take(moved.vid != 1) if silent else moved
            yield batch.having({kind: cols for kind, cols in changed.items() if len(cols)})
        start_s = end_s + PAUSE_S if scene != "clocks" else start_s + 90.0 + PAUSE_S


def pieces(batches: Iterator[Batch], seed: int) -> Iterator[Batch]:
    """The same samples, cut anew."""
    rng = np.random.default_rng(seed)
    for batch in batches:
        cut = int(rng.integers(0, len(batch) + 1))
        # numbers have holes where samples were left out
        yield from (slice_batch(batch, 0, cut), slice_batch(batch, cut, 2**40))


def from_disk(pipeline: Pipeline, path: Path) -> Pipeline:
    mark = fingerprint(CONFIG)
    write_snapshot(path, StateEncoder().encode(pipeline.snapshot()), mark)
    found = read_snapshot(path, mark)
    assert found is not None
    fresh = Pipeline(CONFIG)
    fresh.restore(found[0])
    assert fresh.cold == {}
    return fresh


@pytest.mark.parametrize("names", [["cut"], pytest.param(SCENES, marks=pytest.mark.long)])
def test_restored_after_every_batch_no_byte_changes(names: list[str], tmp_path: Path) -> None:
    whole, pipeline = Pipeline(CONFIG), Pipeline(CONFIG)
    expected = [event for batch in recording(names) for event in whole.feed(batch)] + whole.finish()
    found = []
    for i, batch in enumerate(pieces(recording(names), seed=1)):
        found += pipeline.feed(batch)
        if names == SCENES or i % 9 == 0:
            pipeline = from_disk(pipeline, tmp_path / "snapshot.msgpack")
    found += pipeline.finish()
    assert [encode_event(event) for event in found] == [encode_event(event) for event in expected]
    assert (pipeline.drops, pipeline.samples, pipeline.ticks) == (whole.drops, whole.samples, whole.ticks)
    if names == SCENES:
        assert {event.kind for event in expected} == set(kinds())
        assert whole.t_max - T0 > 1500.0
