"""What outlives a run: snapshot, input log and journal, brought together around one pump.

    memory = Memory(config, folder, journal)         restores the snapshot: `memory.pipeline`
    memory.attach(pump, transport)                   from now on what arrives is kept, and acknowledged when it is
    ended = await memory.relive(stopping)            the input log goes through the pump, the journal has the last word
    await memory.run()                               task: snapshots

Without a state directory nothing is kept: a message is acknowledged when the pipeline has it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.inputlog import InputLog
from watchkeeper.daemon.intake.kept import BUNCH, Keeper
from watchkeeper.daemon.intake.pump import SETTLE_S, Pump
from watchkeeper.daemon.intake.relive import relive
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.recovery import Snapshots, empty, recover, settle, snapshot_metrics
from watchkeeper.daemon.state.snapshot import fingerprint
from watchkeeper.detectors.alarms.events import RAISED, AlarmEvent
from watchkeeper.streams.mqtt.transport import Transport


class Memory:
    """See the module's docstring. `journal` and `folder` are both there or both None."""

    def __init__(self, config: Config, folder: StateFolder | None, journal: Journal | None, workers: int = 0) -> None:
        self._config = config
        self._mark = fingerprint(config, spread=workers > 0)
        self._folder = folder
        self._journal = journal
        self._found = recover(config, folder, journal, workers) if folder is not None and journal is not None else None
        self.pipeline = self._found.pipeline if self._found is not None else empty(config, workers)
        sinks = config.sinks
        self._log = (
            InputLog(folder.path, max_bytes=sinks.input_log_mb * 1_000_000, fsync=sinks.input_fsync, folder=folder)
            if folder is not None
            else None
        )
        self.snapshots: Snapshots | None = None
        # whether the pipeline has all that earlier runs took in; until then, the events that this brings
        self.complete = False
        self._relived: list[AlarmEvent] = []
        # since when nobody hears what is said on the broker, in monotonic time: the wall clock may be set meanwhile
        self._left_s: float | None = None
        # whether there was no run before this one, as far as we know
        self._first_run = True

    def attach(self, pump: Pump, transport: Transport) -> None:
        """Keep what goes through this pump."""
        self._pump = pump
        self.keeper = Keeper(
            pump.intake,
            self._log,
            received=lambda: transport.received,
            acknowledge=transport.acknowledge,
            wall_s=pump.edge.wall_offset_s,
            bunch=min(BUNCH, self._config.broker.receive_maximum),
        )
        self.keeper.on_stall, pump.is_late = pump.stalled, lambda: self.keeper.stalled
        if self._folder is not None and self._found is not None and self._journal is not None:
            self.snapshots = Snapshots(pump, self.keeper, self._folder, self._journal, self._mark, self._found.position)
            self.keeper.on_pressure = self.snapshots.soon
            self._folder.on_return.append(self.snapshots.renew)

    async def relive(self, stopping: Callable[[], bool]) -> list[AlarmEvent]:
        """Bring the pipeline to where the last run ended; the ends of alarms that cannot go on.

        When `stopping` says so meanwhile, it returns early and everything on disk is as it was.
        """
        found, ended = self._found, []
        if found is not None and self._log is not None and self._journal is not None:
            if found.edge is not None:
                self._pump.edge.restore(found.edge)
            heard_s = await relive(self._pump, self.keeper, self._log, found.position, stopping, found.waiting)
            if heard_s is None:
                return []
            if self._folder is not None:
                self._folder.notes += [f"input log: {note}" for note in self._log.notes()]
            # the broker says, when it greets us, what it has kept; receivers next to it have kept nothing
            if ended_s := max(heard_s, found.saved_s):
                away_s = max(time.time() - ended_s, 0.0)
                self._left_s = time.monotonic() - away_s
                self._first_run = False
                self._pump.follows(away_s)
                if self._config.sources:
                    self._pump.returned(away_s, kept=False)
            ended = settle(self.pipeline, self._journal, self._relived)
        self._found, self._relived = None, []
        self.complete = True
        self._pump.on_step, self._pump.kept = self.keeper.step, self.keeper.written
        if self._left_s is not None:
            self._pause()
        elif not self._config.sources:
            self._pump.hold()
        return ended

    def connected(self, *, session_kept: bool) -> None:
        """There is a connection: did we miss anything?"""
        kept = session_kept and self._config.broker.qos > 0
        if self._left_s is not None and not (self._config.sources and kept):
            self._pump.returned(time.monotonic() - self._left_s, kept=kept)
        elif self._first_run:
            # a broker that knows us though we know nothing: our state was lost, and it has kept what came meanwhile
            if kept:
                self._pause()
            self._pump.returned(SETTLE_S if kept else 0.0, kept=kept)
        self._left_s, self._first_run = None, False

    def disconnected(self) -> None:
        """There is none any more."""
        self._left_s = time.monotonic()
        self._pause()
        # what we have not acknowledged comes again, and more if the broker comes back with an older state
        self._pump.intake.recent.look()

    def _pause(self) -> None:
        """What comes next may be a backlog; receivers next to the broker go on and are not held up for that."""
        if not self._config.sources:
            self._pump.left()

    def note(self, events: list[AlarmEvent]) -> None:
        """The pipeline has given these events: a snapshot soon, if there are new alarms."""
        if not self.complete:
            self._relived += events
        elif self.snapshots is not None and any(event.state == RAISED for event in events):
            self.snapshots.soon()

    async def run(self) -> None:
        """Task: save snapshots."""
        if self.snapshots is not None:
            await self.snapshots.run(self._config.sinks.snapshot_s)

    async def stop(self, pump: asyncio.Task[None]) -> None:
        """Let the pump end with everything that was delivered; what waits for stragglers goes on in the next run."""
        self._pump.stop(finish=self.snapshots is None)
        await asyncio.wait([pump])

    async def save(self) -> None:
        """The last snapshot and the last acknowledgement."""
        if self.snapshots is not None:
            await self.snapshots.save()
        await self.keeper.flush()

    def close(self) -> None:
        """Give the files back."""
        self.keeper.close()

    def health(self) -> list[str]:
        """Why alarms or input would not survive, in words."""
        said = [] if self.complete else ["reading the input of the run before"]
        if self.snapshots is not None and self.snapshots.trouble:
            said.append(f"snapshot not saved: {self.snapshots.trouble}")
        return said + [f"input log {reason}" for reason in self.keeper.health()]

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield from self.keeper.metrics()
        yield from snapshot_metrics(self.snapshots)
