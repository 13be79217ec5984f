"""Where alarms go: journal first, then listeners (the terminal), then MQTT. Also our status and the dead letters.

    <output>/alarm/<kind>/<subject>  QoS 1, retained while the alarm is active
    <output>/status                  QoS 1, retained; the broker publishes our last will "offline" when we die
    <output>/deadletter              QoS 0, see deadletter.py

A cleared alarm is published as an ordinary message, so that everybody listening sees the end, and then its
retained message is removed (an empty retained payload), so that nobody who comes later sees the alarm.

After each connect the active alarms are published again, as `updated`: a broker that lost its memory has them
back, and nobody sees one `raised` twice. While there is no connection events wait in the outbox.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.daemon.deadletter import DeadLetters
from watchkeeper.daemon.journal import Journal
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outbox import Letter, Outbox
from watchkeeper.detectors.alarms import CLEARED, UPDATED, AlarmEvent, encode_event
from watchkeeper.streams.messages import subject_topic
from watchkeeper.streams.transport import Transport

log = logging.getLogger(__name__)

# Events that travel to the broker side by side; one at a time would cost a round trip each.
GROUP = 64
DEADLETTER_PERIOD_S = 0.1
RETRY_S = 1.0


def alarm_topic(config: Config, event: AlarmEvent) -> str:
    """Where an alarm is published."""
    return f"{config.topics.output}/alarm/{event.kind}/{subject_topic(event.subjects)}"


def status_topic(config: Config) -> str:
    """Where our state is published."""
    return f"{config.topics.output}/status"


def status_payload(state: str, version: str) -> bytes:
    """`online` or `offline`, and who says so when."""
    instance = f"{socket.gethostname()}:{os.getpid()}"
    return msgspec.json.encode({"state": state, "t": round(time.time(), 3), "version": version, "instance": instance})


class AlarmPublisher:
    """Takes events from the pipeline, returns at once, and delivers them in order whatever the broker does.

    `submit` from the event loop; `record` and `deliver` run as tasks. Each of `listeners` is called with each event
    once it is in the journal, and must not wait. `on_latency` gets the seconds between the arrival of the message
    that caused an event and the broker's confirmation of the event.
    """

    def __init__(
        self,
        config: Config,
        version: str,
        journal: Journal | None,
        on_latency: Callable[[float], None],
    ) -> None:
        self._config = config
        self._version = version
        self._journal = journal
        self.listeners: list[Callable[[AlarmEvent], None]] = []
        self._on_latency = on_latency
        self._encode = msgspec.msgpack.encode if config.sinks.encoding == "msgpack" else encode_event
        # journal calls may wait for the disk, and must not overlap
        self._disk = ThreadPoolExecutor(1, "journal")
        self._inbox: deque[tuple[AlarmEvent, float | None]] = deque()
        self._recording = False
        # a few waiting events per alarm that can be active at once; see outbox.py
        self.outbox = Outbox(max(50_000, 4 * config.alarms.max_active))
        self._retained: dict[str, AlarmEvent] = {}
        self._inbox_filled = asyncio.Event()
        self._outbox_ready = asyncio.Event()
        self._connected = False
        self._greet = False
        self._number = 0
        self.repeats = 0
        self.events: Counter[tuple[str, str]] = Counter()
        if journal is not None:
            self._take_over(journal)

    def _take_over(self, journal: Journal) -> None:
        """What an earlier run left: alarms that the broker shows as active, and ends that it has not heard of."""
        self._retained = {event.id: event for event in journal.past.active}
        for number, event in journal.past.unsent:
            self._retained[event.id] = event
            self.outbox.put(Letter(number, event), self._retained)

    def submit(self, events: Sequence[AlarmEvent], arrived_s: float | None) -> None:
        """Take over these events; `arrived_s` is the monotonic time of the message that caused them, if one did."""
        self._inbox.extend((event, arrived_s) for event in events)
        self._inbox_filled.set()

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._connected = self._greet = True
        self._outbox_ready.set()

    def disconnected(self) -> None:
        """Events wait until `connected`."""
        self._connected = False

    async def record(self) -> None:
        """Task: from the inbox to the journal, the terminal and the outbox."""
        while True:
            await self._inbox_filled.wait()
            self._inbox_filled.clear()
            while self._inbox:
                taken = list(self._inbox)
                self._inbox.clear()
                self._recording = True
                await self._record(taken)
                self._recording = False

    async def _record(self, taken: list[tuple[AlarmEvent, float | None]]) -> None:
        journal = self._journal
        if journal is not None:
            fresh = [pair for pair in taken if not journal.is_repeat(pair[0])]
            self.repeats += len(taken) - len(fresh)
            taken = fresh
            events = [event for event, _ in taken]
            last = await asyncio.get_running_loop().run_in_executor(self._disk, journal.append, events)
        else:
            last = self._number = self._number + len(taken)
        for number, (event, arrived_s) in enumerate(taken, last - len(taken) + 1):
            self.events[event.kind, event.state] += 1
            for listener in self.listeners:
                listener(event)
            if self._config.sinks.mqtt:
                self.outbox.put(Letter(number, event, arrived_s), self._retained)
        if not self._config.sinks.mqtt:
            self._confirm(last)
        self._outbox_ready.set()

    def _confirm(self, number: int) -> None:
        if self._journal is not None:
            self._disk.submit(self._journal.confirm, number)

    async def deliver(self, transport: Transport) -> None:
        """Task: from the outbox to the broker. `transport.publish` waits for a connection if there is none."""
        while True:
            await self._outbox_ready.wait()
            self._outbox_ready.clear()
            while self._connected and (self._greet or self.outbox):
                if self._greet:
                    self._greet = False
                    await self._announce(transport)
                await self._deliver_group(transport)

    async def _announce(self, transport: Transport) -> None:
        online = status_payload("online", self._version)
        await transport.publish(status_topic(self._config), online, qos=1, retain=True)
        active = [event for event in self._retained.values() if event.state != CLEARED and self._config.sinks.mqtt]
        for start in range(0, len(active), GROUP):
            group = [msgspec.structs.replace(event, state=UPDATED) for event in active[start : start + GROUP]]
            await asyncio.gather(*(self._publish(event, transport) for event in group))
        if active:
            log.info("active alarms published again", extra=kv(alarms=len(active)))

    async def _deliver_group(self, transport: Transport) -> None:
        group = self.outbox.head(GROUP)
        delivered = await asyncio.gather(*(self._deliver(letter, transport) for letter in group))
        # a message is only given up when the transport is overrun or closing: what is left is sent again later
        count = delivered.index(False) if False in delivered else len(group)
        if count:
            self.outbox.pop(count)
            self._confirm(group[count - 1].number)
        if count < len(group):
            log.warning("alarm not delivered, trying again", extra=kv(waiting=len(self.outbox)))
            await asyncio.sleep(RETRY_S)

    async def _deliver(self, letter: Letter, transport: Transport) -> bool:
        event = letter.event
        if not await self._publish(event, transport):
            return False
        if letter.arrived_s is not None:
            self._on_latency(time.monotonic() - letter.arrived_s)
        if event.state != CLEARED:
            self._retained[event.id] = event
            return True
        self._retained.pop(event.id, None)
        return await transport.publish(alarm_topic(self._config, event), b"", qos=1, retain=True)

    async def _publish(self, event: AlarmEvent, transport: Transport) -> bool:
        topic, retain = alarm_topic(self._config, event), event.state != CLEARED
        return await transport.publish(topic, self._encode(event), qos=1, retain=retain)

    async def flush(self) -> None:
        """Wait until everything is written, and delivered unless there is no connection."""
        while self._inbox or self._recording or (self._connected and (self._greet or self.outbox)):
            await asyncio.sleep(0.005)

    async def say_goodbye(self, transport: Transport) -> None:
        """The last message of an orderly shutdown."""
        if self._connected:
            offline = status_payload("offline", self._version)
            await transport.publish(status_topic(self._config), offline, qos=1, retain=True)

    def close(self) -> None:
        """Wait for the disk."""
        self._disk.shutdown()


async def deliver_dead_letters(letters: DeadLetters, transport: Transport, config: Config) -> None:
    """Task: publish what `letters` keeps. They are examples, not records: without a connection they are dropped."""
    while True:
        await asyncio.sleep(DEADLETTER_PERIOD_S)
        for letter in letters.take():
            transport.post(f"{config.topics.output}/deadletter", letter, qos=0)
