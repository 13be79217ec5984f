"""The pump: from the network's callback through decoder and pipeline, without ever holding up the event loop.

`Intake.put` is all that happens when a message arrives: it joins a bounded queue, and when that is full the oldest
message leaves. `Pump.run` empties the queue in slices of about SLICE_S, with a turn for everybody else in between.
At low rates it gathers messages for GATHER_S first, because a batch costs the same for one sample as for fifty.

When nothing has arrived for `time.idle_timeout_s`, event time goes on by the wall clock, so that silence itself is
noticed; but only while we are connected. Cut off, we are the ones who are deaf.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf, isfinite

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import F8, Batch, slice_batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.linkmeter import LinkMeter

SLICE_S = 0.02
GATHER_S = 0.005
# Messages between two looks at the clock, and samples between two turns of the event loop.
DECODE_GROUP = 64
FEED_SAMPLES = 20_000
# The queue is bounded by number (limits.queue_messages) and, because frames may be large, by their payloads' size.
QUEUE_BYTES = 256 * 1024 * 1024
# How often the pump looks up when nothing happens.
BEAT_S = 0.25

Submit = Callable[[list[AlarmEvent], float | None], None]


class Intake:
    """Bounded queue of (topic, payload, monotonic arrival time) between the network and the pump."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.arrived = asyncio.Event()
        self.received = 0
        self.dropped = 0
        self._limit = limit
        self._bytes = 0
        self._now = now
        self._queue: deque[tuple[str, bytes, float]] = deque()

    def put(self, topic: str, payload: bytes) -> None:
        """The transport's callback for each message: it must cost next to nothing."""
        self._queue.append((topic, payload, self._now()))
        self.received += 1
        self._bytes += len(payload)
        if len(self._queue) > self._limit or self._bytes > QUEUE_BYTES:
            self._shed()
        self.arrived.set()

    def _shed(self) -> None:
        while len(self._queue) > self._limit or (self._bytes > QUEUE_BYTES and len(self._queue) > 1):
            self.take()
            self.dropped += 1

    def __len__(self) -> int:
        return len(self._queue)

    def take(self) -> tuple[str, bytes, float]:
        """The oldest message."""
        message = self._queue.popleft()
        self._bytes -= len(message[1])
        return message

    @property
    def head(self) -> int:
        """The number of the oldest message in the queue, counted from 0."""
        return self.received - len(self._queue)


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
        self._decoder = Decoder(config.topics, config.limits, letters.refused)
        self._now = now
        self._heard_s = now()
        # samples decoded and the newest arrival time (monotonic), after each group of messages
        self._arrivals: list[tuple[int, float]] = []
        self._meter = LinkMeter()
        self._wall_offset_s = time.time() - now()
        self._online = False
        self._until = inf
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
        self._until = self.intake.received
        self.intake.arrived.set()

    async def run(self) -> None:
        """Task: until `stop`."""
        intake = self.intake
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
        intake, decoder = self.intake, self._decoder
        arrived_s = 0.0
        self._arrivals.clear()
        while (waiting := min(len(intake), self._until - intake.head)) > 0:
            for _ in range(min(DECODE_GROUP, int(waiting))):
                topic, payload, arrived_s = intake.take()
                decoder.add(topic, payload)
            self._arrivals.append((decoder.pending, arrived_s))
            if self._now() >= until_s or decoder.pending >= FEED_SAMPLES:
                break
        return arrived_s

    async def _feed(self, arrived_s: float) -> None:
        batch = self._decoder.take()
        if batch is None:
            return
        self._heard_s = self._now()
        batch = self._meter.add(batch, self._wall_s(batch))
        total = int(max(c.seq[-1] for c in batch.kinds.values())) + 1
        for start in range(0, total, FEED_SAMPLES):
            part = batch if total <= FEED_SAMPLES else slice_batch(batch, start, start + FEED_SAMPLES)
            if events := self.pipeline.feed(part):
                self._submit(events, arrived_s)
            if start + FEED_SAMPLES < total:
                await asyncio.sleep(0)

    def _wall_s(self, batch: Batch) -> F8:
        """When each sample arrived, by the wall clock, to within a group of messages."""
        ends = np.array([end for end, _ in self._arrivals])
        at = np.array([arrived_s for _, arrived_s in self._arrivals]) + self._wall_offset_s
        total = 1 + max(int(c.seq[-1]) for c in batch.kinds.values())
        arrived: F8 = at[np.searchsorted(ends, np.arange(total), side="right").clip(max=len(at) - 1)]
        return arrived

    def _idle(self) -> None:
        elapsed_s = self._now() - self._heard_s
        if not self._online or self._until < inf or not isfinite(self.pipeline.t_max):
            return
        if elapsed_s < self.config.time.idle_timeout_s:
            return
        if events := self.pipeline.advance(self.pipeline.t_max + elapsed_s):
            self._submit(events, None)
