"""The pump: from the network's callback over the edge into the pipeline, without ever holding up the event loop.

    Intake (queue) → streams.edge.Edge (decode, check) → Pipeline.feed → submit

`Intake.put` is all that happens when a message arrives, `put_batch` when an adapter has samples: they join a bounded
queue, and when that is full the oldest leaves. `Pump.run` empties the queue in slices of about SLICE_S, with a turn for
everybody else in between. At low rates it gathers for GATHER_S first, because a batch costs the same for one sample as
for fifty.

When nothing has arrived for `time.idle_timeout_s`, event time goes on by the wall clock, so that silence itself is
noticed; but only while we are connected. Cut off, we are the ones who are deaf.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf, isfinite

from prometheus_client.core import Metric

from watchkeeper.config.schema import Config
from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.intake.deadletter import NO_STREAM, DeadLetters
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.edge import Arrival, Edge
from watchkeeper.streams.messages import Drop

SLICE_S = 0.02
GATHER_S = 0.005
# Messages between two looks at the clock, and samples between two turns of the event loop.
DECODE_GROUP = 64
FEED_SAMPLES = 20_000
# The queue is bounded by number (limits.queue_messages) and, because frames and batches may be large, by their size.
QUEUE_BYTES = 256 * 1024 * 1024
# How often the pump looks up when nothing happens; a turn that takes much longer is a hang.
BEAT_S = 0.25
STUCK_S = 10.0

Submit = Callable[[list[AlarmEvent], float | None], None]


class Intake:
    """Bounded queue between the network and the pump: messages and adapters' batches, with their arrival times."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.arrived = asyncio.Event()
        self.received = 0
        self.dropped = 0
        self._limit = limit
        self._bytes = 0
        self._now = now
        self._queue: deque[Arrival] = deque()

    def put(self, topic: str, payload: bytes) -> None:
        """The transport's callback for each message: it must cost next to nothing."""
        self._join(topic, payload, len(payload))

    def put_batch(self, batch: Batch) -> None:
        """An adapter's samples, as one message: no detour by way of bytes."""
        self._join("", batch, batch.nbytes)

    def _join(self, topic: str, payload: bytes | Batch, size: int) -> None:
        self._queue.append((topic, payload, self._now()))
        self.received += 1
        self._bytes += size
        if len(self._queue) > self._limit or self._bytes > QUEUE_BYTES:
            self._shed()
        self.arrived.set()

    def _shed(self) -> None:
        while len(self._queue) > self._limit or (self._bytes > QUEUE_BYTES and len(self._queue) > 1):
            self.take(1)
            self.dropped += 1

    def __len__(self) -> int:
        return len(self._queue)

    def take(self, n: int) -> list[Arrival]:
        """The n oldest."""
        taken = [self._queue.popleft() for _ in range(n)]
        self._bytes -= sum(p.nbytes if isinstance(p, Batch) else len(p) for _, p, _ in taken)
        return taken

    @property
    def head(self) -> int:
        """The number of the oldest message in the queue, counted from 0."""
        return self.received - len(self._queue)

    @property
    def drops(self) -> dict[tuple[str, str], int]:
        """What left the queue unread, as (stream, reason): nobody knows what it was."""
        return {(NO_STREAM, Drop.QUEUE_FULL): self.dropped}

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield total("messages", "Messages from the broker, and batches from sources next to it", self.received)
        yield gauge("queue_depth", "Messages waiting for the pipeline", len(self))
        yield total("queue_dropped", "Messages dropped unread because the queue was full", self.dropped)


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
        self._edge = Edge(config.topics, config.limits, letters.refused, wall_offset_s=time.time() - now())
        self._now = now
        self._heard_s = now()
        self._online = False
        self._until = inf
        # it runs and has not been asked to stop
        self.running = False
        self.beat_s = now()
        self.slowest_slice_s = 0.0
        # time spent in turns so far, and the longest since somebody last looked
        self.busy_s = self.recent_slice_s = 0.0

    def online(self, connected: bool) -> None:
        """The link came up or went down; silence counts from now at the earliest."""
        self._online = connected
        self._heard_s = self._now()

    def stop(self) -> None:
        """Let `run` return once everything that has arrived by now is judged."""
        self.running = False
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

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield gauge("pump_slice_max_seconds", "Longest turn of the pump so far", self.slowest_slice_s)

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
        await self._drain()
        if events := self.pipeline.finish():
            self._submit(events, None)

    async def _drain(self) -> None:
        """Put what is queued through the pipeline."""
        while self.intake and self.intake.head < self._until:
            self.beat_s = start = self._now()
            arrived_s = self._decode_slice(start + SLICE_S)
            await self._feed(arrived_s)
            spent_s = self._now() - start
            self.busy_s += spent_s
            self.recent_slice_s = max(self.recent_slice_s, spent_s)
            self.slowest_slice_s = max(self.slowest_slice_s, spent_s)
            await asyncio.sleep(0)

    def _decode_slice(self, until_s: float) -> float:
        """Decode messages until the queue is empty, the time is up or there is enough; the newest arrival time."""
        intake = self.intake
        arrived_s = 0.0
        while (waiting := min(len(intake), self._until - intake.head)) > 0:
            group = intake.take(min(DECODE_GROUP, int(waiting)))
            arrived_s = group[-1][2]
            if self._edge.add(group) >= FEED_SAMPLES or self._now() >= until_s:
                break
        return arrived_s

    async def _feed(self, arrived_s: float) -> None:
        for i, batch in enumerate(self._edge.take(FEED_SAMPLES)):
            if i:
                await asyncio.sleep(0)
            else:
                self._heard_s = self._now()
            if events := self.pipeline.feed(batch):
                self._submit(events, arrived_s)

    def _idle(self) -> None:
        elapsed_s = self._now() - self._heard_s
        if not self._online or self._until < inf or not isfinite(self.pipeline.t_max):
            return
        if elapsed_s < self.config.time.idle_timeout_s:
            return
        if events := self.pipeline.advance(self.pipeline.t_max + elapsed_s):
            self._submit(events, None)
