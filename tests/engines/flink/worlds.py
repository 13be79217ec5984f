"""Telemetry that has everything in it which a cluster could get wrong, as a log, and what one Pipeline says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.engines.test_sharded import behind_gateways
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import merge_by_time
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.simulate import simulate


def everything(seconds: float, vehicles: int) -> Iterator[Batch]:
    """Conflicts and drones behind gateways, with roaming, silences and spoofed GPS; jammed areas; intent."""
    mixed = behind_gateways(simulate("mixed", seed=9, vehicles=vehicles, seconds=seconds).batches(), 6)
    others = [simulate(name, seed=2, seconds=min(seconds, 300.0)).batches() for name in ("jamming", "controlled")]
    return merge_by_time([mixed, *(_named(batches, f"{i}-") for i, batches in enumerate(others))])


def written(path: Path, batches: Iterable[Batch], frame_samples: int = 2048) -> Path:
    """The batches as a log."""
    with LogWriter(path, frame_samples=frame_samples) as writer:
        for batch in batches:
            writer.write(batch)
    return path


def of_one_pipeline(log: Path) -> list[bytes]:
    """The events, in order."""
    pipeline = Pipeline(Config())
    events = [event for batch in LogReader(log).batches() for event in pipeline.feed(batch)]
    return [encode_event(event) for event in events + pipeline.finish()]


def _named(batches: Iterable[Batch], prefix: str) -> Iterator[Batch]:
    for batch in batches:
        signs = {prefix + name: sign for name, sign in batch.callsigns.items()}
        since_t = {prefix + name: t for name, t in batch.called_t.items()}
        yield Batch([prefix + name for name in batch.ids], batch.kinds, batch.vias, signs, since_t)
