"""Listens as the daemon would, for some seconds, and publishes nothing: broker and sources into a pipeline of its own.

At the broker we have another name and no session, so a daemon that runs is not disturbed, and no state directory is
touched. The pipeline raises its alarms to nobody; they are only counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from watchkeeper.config.schema import Config
from watchkeeper.daemon.background import end
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.daemon.replay.publish import guest
from watchkeeper.detectors.alarms.events import RAISED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.edge import Arrival, Edge
from watchkeeper.streams.mqtt.transport import make_transport

ROUND_S = 0.1
# Topics, and refused topics with their reasons, that are counted one by one; the others are counted together.
MOST_TOPICS = 1000
# Alarms that are kept; further ones are counted.
MOST_ALARMS = 1000
# How long the broker is asked what else it carries when there was no telemetry.
OTHERS_S = 2.0


@dataclass(slots=True)
class Refused:
    """Messages of one topic that were refused for one reason: how many, and the first of them."""

    count: int
    payload: bytes


@dataclass(slots=True)
class Heard:
    """What was heard. `raised` has the newest event of each alarm that would have been raised, by id."""

    messages: Counter[str] = field(default_factory=Counter)
    refused: dict[tuple[str, str], Refused] = field(default_factory=dict)
    raised: dict[str, AlarmEvent] = field(default_factory=dict)
    unkept: int = 0
    """Alarms beyond the first thousand, which are only counted."""
    others: Counter[str] = field(default_factory=Counter)
    """First levels of topics that the broker carries besides, asked only if there was no telemetry."""
    connected: bool = False

    def message(self, topic: str) -> None:
        """One message of telemetry."""
        self.messages[topic if topic in self.messages or len(self.messages) < MOST_TOPICS else ""] += 1

    def bad(self, topic: str, reason: str, payload: bytes) -> None:
        """One that was refused."""
        seen = self.refused.get((topic, reason))
        if seen is not None:
            seen.count += 1
        elif len(self.refused) < MOST_TOPICS:
            self.refused[topic, reason] = Refused(1, payload)


class Listening:
    """One time of listening; afterwards `heard`, `pipeline`, `sources` and `transport` say what there was."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.heard = Heard()
        self.pipeline = Pipeline(config)
        self.sources = [LiveSource(source, config, self._batch) for source in config.sources]
        self.transport = make_transport(
            guest(config.broker, None),
            subscribe=[f"{config.topics.telemetry}/#"],
            on_message=self._message,
            on_connect=self._connected,
            max_payload_bytes=config.limits.max_payload_bytes + 1,
        )
        self._arrivals: list[Arrival] = []
        self._edge = Edge(config.topics, config.limits, self.heard.bad)

    def _connected(self) -> None:
        self.heard.connected = True

    def _message(self, topic: str, payload: bytes) -> None:
        self.heard.message(topic)
        self._arrivals.append((topic, payload, time.time()))

    def _batch(self, batch: Batch) -> None:
        self._arrivals.append(("", batch, time.time()))

    async def run(self, seconds: float) -> None:
        """Listen for so long, then look at the ticks that are left."""
        tasks = [asyncio.create_task(self.transport.run())]
        tasks += [asyncio.create_task(source.run()) for source in self.sources]
        ends_s = time.monotonic() + seconds
        try:
            while (left_s := ends_s - time.monotonic()) > 0:
                await asyncio.sleep(min(ROUND_S, left_s))
                self._judge()
        finally:
            await end(*tasks)
        self._judge()
        self._count(self.pipeline.finish())
        if self.heard.connected and not self.heard.messages and not self.transport.deaf:
            await self._listen_for_others()

    def _judge(self) -> None:
        arrivals, self._arrivals = self._arrivals, []
        if arrivals:
            self._edge.add(arrivals)
            for batch in self._edge.take():
                self._count(self.pipeline.feed(batch))

    def _count(self, events: list[AlarmEvent]) -> None:
        raised = self.heard.raised
        for event in events:
            if event.id in raised or len(raised) < MOST_ALARMS:
                raised[event.id] = event
            elif event.state == RAISED:
                self.heard.unkept += 1

    async def _listen_for_others(self) -> None:
        """Is there anything at all on this broker?"""
        found = self.heard.others
        other = make_transport(
            guest(self.config.broker, None),
            subscribe=["#"],
            on_message=lambda topic, _payload: found.update([topic.partition("/")[0]]),
        )
        running = asyncio.create_task(other.run())
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running), OTHERS_S)
        await end(running)
