"""The pump: from the network's callback over the edge into the pipeline, without ever holding up the event loop.

    Intake (queue) → streams.edge.Edge (decode, check) → Pipeline.feed → submit

`Pump.run` empties the queue in slices of about SLICE_S, with a turn for everybody else in between. At low rates it
gathers for GATHER_S first, because a batch costs the same for one sample as for fifty.

After an outage senders come back one by one, each with what it has saved up. What arrives waits in the queue until we
have been connected for SETTLE_S, or for as long as the outage was; then it goes in together, in the order of its own
time, so that the first to come back does not make all others late.

When nothing has arrived for `time.idle_timeout_s`, event time goes on by the wall clock, so that silence itself is
noticed; but only while we are connected, and while the broker does not wait for our disk. Cut off, we are the ones who
are deaf.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import NamedTuple, Protocol

from prometheus_client.core import Metric

from watchkeeper.config.schema import Config
from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.inputlog import ACCEPTED, ADVANCED, AWAY, FED, PAUSED, SETTLED, STALLED
from watchkeeper.daemon.intake.queue import PAUSE_S, Intake
from watchkeeper.daemon.intake.wallclock import WallClock
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.backlog import in_order
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.edge import Arrival, Edge
from watchkeeper.streams.logs.chunks import pieces

SLICE_S = 0.02
GATHER_S = 0.005
# Messages between two looks at the clock, and samples between two turns of the event loop.
DECODE_GROUP = 256
FEED_SAMPLES = 20_000
# A broker that kept our session has kept QoS 1 messages only. When the stream goes on from after at least half of an
# outage that was longer than this, what was sent meanwhile was not kept, and nobody was silent.
OUTAGE_S = 3.0
# After an outage: alarms wait this long for senders that come back later than others.
SETTLE_S = 2.0
# Where the line breaks in the middle of a backlog, or waits for our disk, the rest is waited for; but no message waits
# longer than this to be judged.
CUT_OFF_S = 30.0
# What was saved up during an outage ends now, give or take what clocks and lines differ by.
PACE_S = 5.0
# So long an alarm waits for the input log; a disk that does not answer must not keep it back.
DISK_S = 2.0
# How often the pump looks up when nothing happens; a turn that takes much longer is a hang.
BEAT_S = 0.25
STUCK_S = 10.0

Submit = Callable[[list[AlarmEvent], float | None], None]


class OnStep(Protocol):
    """Gets what was done to the pipeline, up to which time, and for which vehicle."""

    def __call__(self, what: str, t: float, vehicle: str = "", /) -> None:
        """One step."""


async def _nothing_to_keep() -> None:
    pass


class Absence(NamedTuple):
    """We were not listening before the item with this number arrived."""

    item: int
    outage_s: float
    kept: bool


class Pump:
    """Drives one pipeline from one intake. `submit` gets the events and the arrival time that they belong to."""

    def __init__(
        self,
        config: Config,
        pipeline: Pipeline,
        intake: Intake,
        letters: DeadLetters,
        submit: Submit,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.pipeline = pipeline
        self.intake = intake
        self._submit = submit
        self._wall_offset_s = time.time() - now()
        self.edge = Edge(config.topics, config.limits, letters.refused, wall_offset_s=self._wall_offset_s)
        self.wall = WallClock()
        self._now = now
        self._heard_s = self._fed_s = now()
        self._online = False
        self._until = inf
        self._finish = True
        # when the newest that was fed had arrived, until all of it is judged
        self._arrived_s: float | None = None
        # what is known of a time in which we were not listening, until the first sample after it
        self._absence: Absence | None = None
        # what arrives from this item on waits until then for the senders that are not back yet; when that began
        self._settle_from, self._settle_until_s, self._left_s = inf, 0.0, 0.0
        # how many had arrived when we left
        self._left_item = 0
        # the broker had to wait for us: when what comes next arrives says nothing about links
        self._stalled = False
        # whether the broker waits for us at present
        self.is_late: Callable[[], bool] = lambda: False
        # held while a slice goes through the pipeline: between slices its state is whole
        self.turn = asyncio.Lock()
        # returns when all that was taken from the queue is on disk
        self.kept: Callable[[], Awaitable[None]] = _nothing_to_keep
        # told of everything that is done to the pipeline, when it is done
        self.on_step: OnStep = lambda _what, _t, _vehicle="": None
        # it runs and has not been asked to stop
        self.running = False
        self.beat_s = now()
        self.slowest_slice_s = 0.0
        # how often alarms went out though the disk had not answered in time
        self.unwaited = 0
        # time spent in turns so far, and the longest since somebody last looked
        self.busy_s = self.recent_slice_s = 0.0

    def online(self, connected: bool) -> None:
        """The link came up or went down; silence counts from now at the earliest."""
        self._online = connected
        self._heard_s = self._now()

    def left(self) -> None:
        """We do not listen, or did not until now: what arrives next waits until some time after `returned`."""
        self.hold()
        self.on_step(PAUSED, 0.0)

    def hold(self) -> None:
        """Nobody knows yet whether we did not listen until now: the same, but no run after this one needs to know."""
        self._wait_from(self.intake.received)
        self._settle_until_s, self._left_s, self._left_item = inf, self._now(), self.intake.received

    def _wait_from(self, item: float) -> None:
        self._settle_from = min(self._settle_from, item)
        self.intake.settling = self._settle_from < inf

    def follows(self, outage_s: float) -> None:
        """The run before this one fed its last samples so long ago."""
        self._fed_s = self._now() - outage_s

    def put_back(self, arrivals: Sequence[Arrival]) -> None:
        """What waited in the run before waits again."""
        self.intake.put_back(arrivals)
        self._wait_from(0)

    def returned(self, outage_s: float, *, kept: bool) -> None:
        """We listen again, after so long; 0: for the first time.

        `kept`: somebody says that they have kept what was sent meanwhile.
        """
        self._absence = Absence(self.intake.received, outage_s, kept)
        if outage_s == 0.0 and not self.intake:
            self._settle_from = inf
            self.intake.settling = False
        if self._settle_from < inf:
            self._left_s = self._now()
            self._settle_until_s = self._left_s + min(max(outage_s, 0.0), SETTLE_S)

    def stalled(self) -> None:
        """We did not acknowledge for a while: the broker may have kept back what comes next."""
        self._stalled = True
        if self._settle_from < inf and self._settle_until_s < inf:
            # the rest of a backlog too
            self._left_s = self._now()
            self._settle_until_s = self._left_s + SETTLE_S

    def stop(self, *, finish: bool = True) -> None:
        """Let `run` return once everything that has arrived by now is in the pipeline.

        `finish`: without waiting for stragglers or for senders that are not back. Not when another run goes on from
        here: it will wait for them.
        """
        self.running = False
        self._finish = finish
        self._until = self.intake.received
        self.intake.arrived.set()

    @property
    def age_s(self) -> float:
        """Seconds since it last looked up."""
        return self._now() - self.beat_s

    @property
    def alive(self) -> bool:
        """False when it should look up and does not."""
        return self.age_s < STUCK_S or not self.running

    def health(self) -> list[str]:
        """What is not judged yet, in words."""
        if self.intake and self.intake.head >= self._settle_from and self._now() < self._waits_until_s():
            return [f"{len(self.intake)} messages wait for senders that come back after an outage"]
        return []

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield gauge("pump_slice_max_seconds", "Longest turn of the pump so far", self.slowest_slice_s)
        yield total(
            "input_unwaited",
            f"Slices judged though the input log took longer than {DISK_S:g} s to be written",
            self.unwaited,
        )
        yield from self.wall.metrics()

    async def run(self) -> None:
        """Task: until `stop`."""
        intake = self.intake
        self.running = self._until == inf
        while self._until == inf:
            self.beat_s = self._now()
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await intake.arrived.wait()
            intake.arrived.clear()
            if intake:
                await asyncio.sleep(GATHER_S)
                await self._drain()
            self._idle()
            await self.settle()
        if self._finish:
            self._settle_until_s = 0.0
        await self._drain()
        await self.settle()
        if self._finish and (events := self.pipeline.finish()):
            self._submit(events, None)

    async def _drain(self) -> None:
        """Put what is queued through the pipeline."""
        while self.intake and self.intake.head < self._until:
            self.beat_s = start = self._now()
            settled = self.intake.head >= self._settle_from
            if settled and start < self._waits_until_s() and not self.intake.full:
                return
            async with self.turn:
                if self._stalled:
                    self._stalled = False
                    self.edge.resume()
                    self.on_step(STALLED, 0.0)
                if settled:
                    away, until = self._settle_until_s == inf, self.intake.received
                    if away and not self.intake.full:
                        # we may be back without knowing it yet, and then the newest is the first of a backlog
                        until = self.intake.arrived_by(start - SETTLE_S)
                    arrived_s = await self._decode_backlog(until, away=away)
                    fed_t = self.pipeline.t_max
                    newest_t = fed_t + self._now() - self._fed_s + PACE_S if isfinite(fed_t) else inf
                    # known on disk before anybody hears of what it brings: after a crash it must not wait again
                    self.on_step(SETTLED, newest_t)
                    await self._wait_for_disk()
                    await self._feed(arrived_s, settled_t=newest_t)
                    if away:
                        # what comes next is a backlog again, also if we came back meanwhile
                        self._left_s = self._now()
                        self.on_step(PAUSED, 0.0)
                else:
                    arrived_s = self._decode_slice(start + SLICE_S)
                    await self._feed(arrived_s)
                    self.on_step(FED, 0.0)
            spent_s = self._now() - start
            self.busy_s += spent_s
            self.recent_slice_s = max(self.recent_slice_s, spent_s)
            self.slowest_slice_s = max(self.slowest_slice_s, spent_s)
            await asyncio.sleep(0)

    def _waits_until_s(self) -> float:
        """So long the oldest in the queue waits for senders that are not back yet."""
        intake = self.intake
        longest_s = intake.oldest_s + CUT_OFF_S
        if self.is_late():
            return longest_s
        until_s = min(self._settle_until_s, longest_s)
        first_s = intake.arrived_s(self._left_item)
        if self._settle_until_s == inf and (first_s is None or self._now() - intake.newest_s > PAUSE_S):
            return until_s
        # a connection that goes on bringing samples and is never complete must not make us deaf
        return min(until_s, max(first_s or 0.0, intake.resumed_s, self._left_s) + 2.0 * SETTLE_S)

    def _decode_slice(self, until_s: float) -> float:
        """Decode messages until the queue is empty, the time is up or there is enough; the newest arrival time."""
        intake = self.intake
        arrived_s = 0.0
        until = min(self._until, self._settle_from)
        if self._absence is not None and intake.head < self._absence.item:
            until = min(until, self._absence.item)
        while (waiting := min(len(intake), until - intake.head)) > 0:
            group = intake.take(min(DECODE_GROUP, int(waiting)))
            arrived_s = group[-1][2]
            if self.edge.add(group) >= FEED_SAMPLES or self._now() >= until_s:
                break
        return arrived_s

    async def _decode_backlog(self, until: float, *, away: bool) -> float:
        """Decode what waited for senders to come back; the newest arrival time. `away`: the rest goes on waiting."""
        until = min(self._until, until)
        self._settle_from, self.intake.settling = (until if away else inf), away
        arrived_s = 0.0
        while self.intake.head < until:
            arrived_s = self._decode_slice(self._now() + SLICE_S)
            await asyncio.sleep(0)
        return arrived_s

    async def repeat(self, arrivals: Sequence[Arrival], *, settled_t: float | None = None) -> None:
        """Feed these as one slice, as `_drain` did in an earlier run."""
        self.beat_s = self._now()
        for start in range(0, len(arrivals), DECODE_GROUP):
            self.edge.add(arrivals[start : start + DECODE_GROUP])
        await self._feed(None, settled_t=settled_t)

    async def _feed(self, arrived_s: float | None, *, settled_t: float | None = None) -> None:
        """What is decoded; `settled_t`: it waited for others, and is not newer than this if its clocks are right."""
        self._fed_s, self._arrived_s = self._now(), arrived_s
        if settled_t is None:
            batches = self.edge.take(FEED_SAMPLES)
        else:
            self.edge.resume()
            whole = [in_order(batch, self.pipeline.clock, settled_t) for batch in self.edge.take(sys.maxsize)]
            batches = [piece for batch in whole for piece in pieces(batch, FEED_SAMPLES)]
        for i, batch in enumerate(batches):
            if i:
                await asyncio.sleep(0)
            else:
                self._heard_s = self._now()
                self._come_back(batch)
            if events := self.pipeline.feed(batch):
                if arrived_s is not None:
                    await self._wait_for_disk()
                self._submit(events, arrived_s)
            if arrived_s is not None and isfinite(self.pipeline.t_max):
                self.wall.note(self.pipeline.t_max, arrived_s + self._wall_offset_s, arrived_s)

    async def settle(self, *, in_turn: bool = False) -> None:
        """Everything that was fed is judged: what several processes still had to say goes out.

        `in_turn`: the caller has the pump's turn.
        """
        if not self.pipeline.under_way:
            return
        if not in_turn:
            async with self.turn:
                await self.settle(in_turn=True)
            return
        if events := self.pipeline.settle():
            if self.running:
                await self._wait_for_disk()
            self._submit(events, self._arrived_s)
        self._arrived_s = None

    async def _wait_for_disk(self) -> None:
        """The input log first, alarms after: else a restart would not know why they were raised."""
        try:
            async with asyncio.timeout(DISK_S):
                await self.kept()
        except TimeoutError:
            self.unwaited += 1

    def _come_back(self, batch: Batch) -> None:
        """Before the first samples after an absence: was it one, or is everything here that was said meanwhile?"""
        absence = self._absence
        if absence is None or self.intake.head <= absence.item:
            return
        self._absence = None
        if not isfinite(self.pipeline.t_max):
            return
        skipped_s = batch.t_min - self.pipeline.t_max
        if not absence.kept or (absence.outage_s >= OUTAGE_S and skipped_s >= absence.outage_s / 2):
            self.pipeline.away()
            self.on_step(AWAY, 0.0)

    def _idle(self) -> None:
        if self.is_late():
            # nobody is silent: what they say waits at the broker
            self._heard_s = self._now()
        elapsed_s = self._now() - self._heard_s
        if not self._online or self._until < inf or not isfinite(self.pipeline.t_max):
            return
        if elapsed_s < self.config.time.idle_timeout_s or self.intake:
            return
        self.advance(self.pipeline.t_max + elapsed_s)

    def advance(self, t: float) -> None:
        """Let event time go on to t without samples."""
        ticks = self.pipeline.ticks
        if events := self.pipeline.advance(t):
            self._submit(events, None)
        if self.pipeline.ticks != ticks:
            self.on_step(ADVANCED, t)

    def accept(self, vehicle: str) -> list[AlarmEvent]:
        """A person accepts a lasting state of this vehicle; the ends of alarms. Not while a slice goes through."""
        if events := self.pipeline.accept(vehicle):
            self._submit(events, None)
        self.on_step(ACCEPTED, 0.0, vehicle)
        return events
