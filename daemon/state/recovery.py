"""Life beyond one process: the pipeline comes back as the last run left it, and saves itself while it runs.

Two sources say how it was. The snapshot has everything, but is some seconds old. The journal has only the alarms,
but every one of them. So the snapshot is restored first and the journal corrects its alarms. An alarm that nobody
can follow any more, because its detector or its place in the fleet is gone, is ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from prometheus_client.core import Metric

from watchkeeper.config.schema import Config
from watchkeeper.daemon.families import gauge
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.state.snapshot import (
    SnapshotError,
    StateEncoder,
    fingerprint,
    read_snapshot,
    size_of,
    write_snapshot,
)
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline

log = logging.getLogger(__name__)

SNAPSHOT = "snapshot.msgpack"


def recover(config: Config, state_dir: Path, journal: Journal) -> tuple[Pipeline, list[AlarmEvent]]:
    """The pipeline as it was, and the ends of alarms that cannot go on. Never fails: at worst it starts empty."""
    pipeline, restored = _from_snapshot(config, state_dir / SNAPSHOT)
    journal.resume(pipeline.watermark if restored else None)
    past = journal.past
    watched = pipeline.watched
    pipeline.restore_alarms([event for event in past.active if event.kind in watched])
    orphans = [event for event in past.active if (event.kind, event.subjects) not in pipeline.active]
    log.info(
        "state restored",
        extra=kv(
            snapshot=restored, vehicles=len(pipeline.fleet), alarms=len(pipeline.active), orphans=len(orphans),
            journal_events=past.events, unsent=len(past.unsent),
        ),
    )  # fmt: skip
    return pipeline, [_ended(event) for event in orphans]


def _from_snapshot(config: Config, path: Path) -> tuple[Pipeline, bool]:
    pipeline = Pipeline(config)
    try:
        state = read_snapshot(path, fingerprint(config))
        if state is None:
            return pipeline, False
        state["alarms"] = msgspec.convert(state["alarms"], list[AlarmEvent])
        pipeline.restore(state)
    except SnapshotError as problem:
        log.warning("snapshot ignored", extra=kv(problem=problem))
        return pipeline, False
    except Exception:
        # whatever a state from another world does to a detector, it must not stop the start
        log.exception("snapshot ignored")
        return Pipeline(config), False
    return pipeline, True


def _ended(event: AlarmEvent) -> AlarmEvent:
    evidence = {**event.evidence, "cleared_by": "restart"}
    return msgspec.structs.replace(event, state=CLEARED, t_cleared=event.t, evidence=evidence)


class Snapshots:
    """Saves the pipeline now and then. `stall_s` is how long the event loop stood still for the last one."""

    def __init__(self, pipeline: Pipeline, path: Path, mark: str) -> None:
        self._pipeline = pipeline
        self._path = path
        self._mark = mark
        self._encoder = StateEncoder()
        self._one_at_a_time = asyncio.Lock()
        self._saved_ticks = pipeline.ticks
        self.stall_s = 0.0
        self.bytes = 0

    async def run(self, period_s: float) -> None:
        """Task: save every so often."""
        while True:
            await asyncio.sleep(period_s)
            await self.save()

    async def save(self) -> None:
        """Save, if anything happened since the last time. Only the copying holds up the loop, the disk does not."""
        async with self._one_at_a_time:
            if self._pipeline.ticks == self._saved_ticks:
                return
            began = time.monotonic()
            state = self._pipeline.snapshot()
            if (size := size_of(state)) > self._encoder.reserved:
                await asyncio.to_thread(self._encoder.reserve, size + size // 2)
                began = time.monotonic()
                state = self._pipeline.snapshot()  # it went on meanwhile
            payload = self._encoder.encode(state)
            self.stall_s, self.bytes = time.monotonic() - began, len(payload)
            self._saved_ticks = self._pipeline.ticks
            try:
                await asyncio.to_thread(write_snapshot, self._path, payload, self._mark)
            except OSError as error:
                log.warning("snapshot not saved", extra=kv(problem=error.strerror))


def snapshot_metrics(snapshots: Snapshots | None) -> Iterator[Metric]:
    """For Prometheus; zeros without snapshots."""
    yield gauge("snapshot_bytes", "Size of the last snapshot", snapshots.bytes if snapshots else 0)
    stall_s = snapshots.stall_s if snapshots else 0
    yield gauge("snapshot_stall_seconds", "Time that the event loop stood still for the last snapshot", stall_s)
