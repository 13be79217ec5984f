"""Life beyond one process: the pipeline comes back as the last run left it, and saves itself while it runs.

Three sources say how it was. The snapshot has everything, but is some seconds old. The input log
(intake/inputlog.py) has what went in since then, and going through it again brings the pipeline to the moment of the
end. The journal has every alarm event that was ever heard, and the last word on which alarms are active: `settle` gives
the pipeline those that it lacks. An alarm that nobody can follow any more, because its detector or its place in the
fleet is gone, is ended.

Where lines of the journal are damaged or missing, the snapshot decides, if it is younger than they were: an alarm that
it does not know has ended there. Else the alarm stays active until the input log or new evidence clears it, and an
alarm that only the snapshot knows stays active too: a doubt is told, not dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from prometheus_client.core import Metric

from watchkeeper.config.schema import Config
from watchkeeper.daemon.families import gauge
from watchkeeper.daemon.intake.inputlog import Position, pack_waiting
from watchkeeper.daemon.intake.kept import Keeper
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.snapshot import (
    SnapshotError,
    checked_snapshot,
    fingerprint,
    previous,
    read_snapshot,
    write_snapshot,
)
from watchkeeper.daemon.troubles import about_daemon
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import ended_as
from watchkeeper.engines.workers.pipeline import SpreadPipeline
from watchkeeper.streams.foreign.states import StateEncoder, size_of

log = logging.getLogger(__name__)

SNAPSHOT = "snapshot.msgpack"
# When alarms were raised, the next snapshot comes after this long; later when one holds up the loop for so long that
# its share of the time would be more than one part in STALL_SHARE.
SOON_S = 1.0
STALL_SHARE = 100
# A snapshot waits so long for a journal that the disk holds up: longer than that disk takes if it answers at all.
JOURNAL_S = 10.0


class Recovered(NamedTuple):
    """The pipeline as the snapshot has it, the edge before it, how much of the input they contain, and since when."""

    pipeline: Pipeline
    restored: bool
    edge: dict[str, Any] | None
    position: Position
    known: int
    """The number of the last event that they surely know."""
    saved_s: float
    waiting: bytes = b""
    """Input that the snapshot has besides, see `pack_waiting`."""


def empty(config: Config, workers: int = 0) -> Pipeline:
    """A pipeline that has seen nothing: in this process, or in so many others."""
    return SpreadPipeline(config, workers) if workers else Pipeline(config)


def recover(config: Config, state: StateFolder, journal: Journal, workers: int = 0) -> Recovered:
    """The state of the last snapshot, and what it knows of lost parts of the journal. At worst it starts empty."""
    found = _from_snapshot(config, state, workers)
    past = journal.past
    if found.known > past.last:
        past.lose(found.known)
        journal.skip(found.known)
    if past.holes:
        seen = {event.id for event in (*past.active, *past.ended)}
        journal.adopt([event for event in found.pipeline.active.values() if event.id not in seen])
        _ask_snapshot(past, found)
    state.notes += [f"journal: {note}" for note in past.notes]
    journal.resume(found.pipeline.watermark if found.restored else None)
    return found


def _ask_snapshot(past: Past, found: Recovered) -> None:
    """Settle what lost lines of the journal leave in doubt: `past.over` gets the alarms that have ended there."""
    saved = {event.id for event in found.pipeline.active.values()}
    doubts = 0
    for event in past.active:
        holes = past.doubts(event)
        if any(hole.before > found.known for hole in holes):
            doubts += 1
        elif holes and event.id not in saved:
            past.over.append(event)
    if doubts:
        past.notes.append(f"{doubts} active alarms may have ended in the part that is lost; new evidence decides")


def settle(pipeline: Pipeline, journal: Journal, relived: Iterable[AlarmEvent]) -> list[AlarmEvent]:
    """Give the pipeline the alarms that the journal has as active; the ends of those that cannot go on.

    `relived` are the events that the input log has brought since the snapshot.
    """
    # alarms about the daemon itself are not the pipeline's, see troubles.py
    active = {id_: event for id_, event in journal.active.items() if not about_daemon(event)}
    over = [event for event in journal.past.over if active.pop(event.id, None)]
    for event in relived:
        if journal.is_repeat(event):
            continue
        if event.state == CLEARED:
            active.pop(event.id, None)
        else:
            active[event.id] = event
    if {event.id for event in pipeline.active.values()} != set(active):
        watched = pipeline.watched
        pipeline.restore_alarms([event for event in active.values() if event.kind in watched])
    going_on = {event.id for event in pipeline.active.values()}
    # nothing follows these, or another alarm has their place because part of the input is lost
    orphans = [event for event in active.values() if event.id not in going_on]
    log.info(
        "state restored",
        extra=kv(
            vehicles=len(pipeline.fleet), alarms=len(pipeline.active), orphans=len(orphans),
            journal_events=journal.past.events, unsent=len(journal.past.unsent), ends_lost=len(over),
        ),
    )  # fmt: skip
    return [*(ended_as(event, "not_resumed") for event in orphans), *(ended_as(event, "not_known") for event in over)]


def _from_snapshot(config: Config, folder: StateFolder, workers: int) -> Recovered:
    """The pipeline of the newest snapshot that can be used, or an empty one."""
    path, mark = folder.path / SNAPSHOT, fingerprint(config, spread=workers > 0)
    for place in (path, previous(path)):
        pipeline = empty(config, workers)
        try:
            found = read_snapshot(place, mark)
            if found is None:
                continue
            state, known = found
            pipeline.restore(state)
            position = Position(*state.get("input", ()))
            if place == path:
                _check_spare(mark, folder)
            saved_s, waiting = state.get("saved_s", 0.0), state.get("waiting", b"")
            return Recovered(pipeline, True, state.get("edge"), position, known, saved_s, waiting)
        except SnapshotError as problem:
            log.warning("snapshot ignored", extra=kv(file=place.name, problem=problem))
            if problem.damaged:
                folder.notes.append(f"{place.name} is {problem}; what it had is from an earlier one, or learned again")
        except Exception:
            # whatever a state from another world does to a detector, it must not stop the start
            log.exception("snapshot ignored", extra=kv(file=place.name))
            folder.notes.append(f"{place.name} cannot be restored; what it had is learned again")
    return Recovered(empty(config, workers), False, None, Position(), 0, 0.0)


def _check_spare(mark: str, folder: StateFolder) -> None:
    """Is the older snapshot, which is not needed now, still good?"""
    spare = previous(folder.path / SNAPSHOT)
    try:
        checked_snapshot(spare, mark)
    except SnapshotError as problem:
        if problem.damaged:
            log.warning("spare snapshot damaged", extra=kv(file=spare.name, problem=problem))
            folder.notes.append(f"{spare.name} is {problem}; the newest snapshot is good")


class Snapshots:
    """Saves the pipeline: at once, after alarms were raised, now and then, and when the input log needs room.

    `stall_s` is how long the event loop stood still for the last one, `trouble` why the disk did not take it.
    """

    def __init__(
        self, pump: Pump, keeper: Keeper, folder: StateFolder, journal: Journal, mark: str, older: Position
    ) -> None:
        self._pump = pump
        self._keeper = keeper
        self._folder = folder
        self._journal = journal
        self._mark = mark
        self._encoder = StateEncoder()
        self._one_at_a_time = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._saved: tuple[Position, int] | None = None
        # what the snapshot before the newest contains
        self._older = older
        self.stall_s = 0.0
        self.bytes = 0
        self.trouble = ""

    def soon(self) -> None:
        """Save within a second or so."""
        self._wanted.set()

    def renew(self) -> None:
        """Save soon, even if nothing has happened since: the last snapshot may be gone. From any thread."""
        self._saved = None
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.soon)

    async def run(self, period_s: float) -> None:
        """Task: save at once, then every so often and when asked."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self.save()
            self._wanted.clear()
            # a large state must not take up all of our time
            least_s = min(max(SOON_S, STALL_SHARE * self.stall_s), period_s)
            await asyncio.sleep(least_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(period_s - least_s):
                    await self._wanted.wait()

    async def save(self) -> None:
        """Save, if anything happened since the last time. Only the copying holds up the loop, the disk does not."""
        async with self._one_at_a_time:
            while True:
                await self._keeper.settled()
                async with self._pump.turn:
                    # what the state contains has been told
                    await self._pump.settle(in_turn=True)
                    position = self._keeper.position
                    mark = position, self._pump.pipeline.ticks
                    if mark == self._saved:
                        return
                    began = time.monotonic()
                    state = self._state(position)
                    if (size := size_of(state)) <= self._encoder.reserved:
                        payload = self._encoder.encode(state)
                        # all events that the state has given
                        number = self._journal.number
                        self.stall_s, self.bytes = time.monotonic() - began, len(payload)
                        break
                await asyncio.to_thread(self._encoder.reserve, size + size // 2)
            # what the state contains must not be missing in the log: it would be delivered and judged again
            await self._keeper.written()
            await self._journal_has(number)
            try:
                await asyncio.to_thread(write_snapshot, self._folder.path / SNAPSHOT, payload, self._mark, number)
            except OSError as error:
                self._failed(error.strerror or str(error))
                return
            self._failed("")
            # the snapshot before this one is still there, for when this one is damaged: so must be the input since then
            self._keeper.saved(self._older)
            self._saved, self._older = mark, position

    async def _journal_has(self, number: int) -> None:
        """Wait until events up to this one are in the journal: after a crash their input would not bring them again."""
        patient_until = time.monotonic() + JOURNAL_S
        while self._journal.tried < number and time.monotonic() < patient_until:
            await asyncio.sleep(0.02)
        if self._journal.tried < number:
            log.warning("snapshot saved before its events are in the journal", extra=kv(waited_s=JOURNAL_S))

    def _failed(self, problem: str) -> None:
        """The disk did not take a snapshot, or (empty) it did; logged when it begins and when it ends."""
        if problem and problem != self.trouble:
            log.error("snapshot not saved", extra=kv(problem=problem))
        elif self.trouble and not problem:
            log.info("snapshot saved again")
        self.trouble = problem

    def _state(self, position: Position) -> dict[str, Any]:
        pump = self._pump
        more = {"edge": pump.edge.snapshot(), "input": list(position), "saved_s": time.time()}
        if self._saved is None:
            # the input log may have gone with the last snapshot, and what waits was acknowledged
            wall_s, paused = pump.edge.wall_offset_s, pump.intake.settling
            more["waiting"] = pack_waiting(position, pump.intake.waiting(), wall_s, paused=paused)
        return {**self._pump.pipeline.snapshot(), **more}


def snapshot_metrics(snapshots: Snapshots | None) -> Iterator[Metric]:
    """For Prometheus; zeros without snapshots."""
    yield gauge("snapshot_bytes", "Size of the last snapshot", snapshots.bytes if snapshots else 0)
    stall_s = snapshots.stall_s if snapshots else 0
    yield gauge("snapshot_stall_seconds", "Time that the event loop stood still for the last snapshot", stall_s)
