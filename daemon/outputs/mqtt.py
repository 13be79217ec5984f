"""Where alarms go: journal first, then listeners (the terminal), then MQTT. Also our status and the dead letters.

    <output>/alarm/<kind>/<subject>  QoS 1, retained while the alarm is active
    <output>/incident/<id>           the same for incidents, see detectors/incidents/incidents.py
    <output>/status                  QoS 1, retained; the broker publishes our last will "offline" when we die
    <output>/deadletter              QoS 0, see intake/deadletter.py

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
from functools import partial

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.detectors.alarms.events import CLEARED, UPDATED, AlarmEvent, encode_event
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.streams.messages import subject_topic
from watchkeeper.streams.mqtt.transport import MAX_IN_FLIGHT, Transport

log = logging.getLogger(__name__)

DEADLETTER_PERIOD_S = 0.1

# An event, and when the message that caused it arrived (monotonic), if one did.
Arrived = tuple[AlarmEvent, float | None]


def alarm_topic(config: Config, event: AlarmEvent) -> str:
    """Where an alarm is published; incidents have no subject of their own and go by their id."""
    if event.kind == INCIDENT:
        return f"{config.topics.output}/{INCIDENT}/{event.id}"
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

    `submit` from the event loop while `run` is a task there. Each step calls the next one instead of waking a task:
    behind a backlog every turn of the event loop is long, and an alarm must not wait for three of them. Each of
    `listeners` is called with each event once it is in the journal, and must not wait. `on_latency` gets the seconds
    between the arrival of the message that caused an event and the broker's confirmation of the event.
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
        self._inbox: deque[Arrived] = deque()
        self._recording = False
        # set while `run` is on: where to send, and what ends it
        self._transport: Transport | None = None
        self._failure: asyncio.Future[None] | None = None
        # a few waiting events per alarm that can be active at once; see outbox.py
        self.outbox = Outbox(max(50_000, 4 * config.alarms.max_active))
        # on the line, in order, with the future that says whether the broker has taken it
        self._in_flight: deque[tuple[Letter, asyncio.Future[bool]]] = deque()
        self._retained: dict[str, AlarmEvent] = {}
        self._connected = False
        self._greet = False
        self._given_up = False
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
            self.outbox.put(Letter(event, number), self._retained)

    def submit(self, events: Sequence[AlarmEvent], arrived_s: float | None) -> None:
        """Take over these events; `arrived_s` is the monotonic time of the message that caused them, if one did."""
        self._inbox.extend((event, arrived_s) for event in events)
        self._record()

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._connected = self._greet = True
        self._send()

    def disconnected(self) -> None:
        """Events wait until `connected`."""
        self._connected = False

    @property
    def waiting(self) -> int:
        """Events that the broker has not confirmed."""
        return len(self.outbox) + len(self._in_flight)

    async def run(self, transport: Transport) -> None:
        """Task: record and deliver through this transport."""
        self._transport, self._failure = transport, asyncio.get_running_loop().create_future()
        self._record()
        self._send()
        await self._failure

    def _record(self) -> None:
        """Have the journal take what is in the inbox, unless it is still busy."""
        if self._failure is None or self._recording or not self._inbox:
            return
        taken = list(self._inbox)
        self._inbox.clear()
        journal = self._journal
        if journal is None:
            self._number += len(taken)
            self._recorded(taken, self._number)
            return
        fresh = [pair for pair in taken if not journal.is_repeat(pair[0])]
        self.repeats += len(taken) - len(fresh)
        self._recording = True
        written = asyncio.get_running_loop().run_in_executor(self._disk, journal.append, [event for event, _ in fresh])
        written.add_done_callback(partial(self._written, fresh))

    def _written(self, taken: list[Arrived], written: asyncio.Future[int]) -> None:
        self._recording = False
        if written.cancelled():
            return
        try:
            self._recorded(taken, written.result())
            self._record()
        except Exception as error:  # nobody awaits a callback: `run` must end with what went wrong here
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)

    def _recorded(self, taken: list[Arrived], last: int) -> None:
        """From the journal to the listeners and the outbox."""
        for number, (event, arrived_s) in enumerate(taken, last - len(taken) + 1):
            self.events[event.kind, event.state] += 1
            for listener in self.listeners:
                listener(event)
            if self._config.sinks.mqtt:
                self.outbox.put(Letter(event, number, arrived_s), self._retained)
        if not self._config.sinks.mqtt:
            self._confirm(last)
        self._send()

    def _confirm(self, number: int) -> None:
        if self._journal is not None:
            self._disk.submit(self._journal.confirm, number)

    def _send(self) -> None:
        """From the outbox to the broker. The transport keeps the order, so nothing waits for a round trip."""
        transport = self._transport
        if transport is None or not self._connected:
            return
        if self._greet:
            self._greet = False
            self._announce(transport)
        while self._connected and self.outbox and len(self._in_flight) < MAX_IN_FLIGHT:
            letter = self.outbox.take()
            self._in_flight.append((letter, self._post(letter, transport)))

    def _announce(self, transport: Transport) -> None:
        transport.post(status_topic(self._config), status_payload("online", self._version), retain=True)
        active = [event for event in self._retained.values() if event.state != CLEARED and self._config.sinks.mqtt]
        self.outbox.repeat(Letter(msgspec.structs.replace(event, state=UPDATED)) for event in active)
        if active:
            log.info("active alarms published again", extra=kv(alarms=len(active)))

    def _post(self, letter: Letter, transport: Transport) -> asyncio.Future[bool]:
        event = letter.event
        topic = alarm_topic(self._config, event)
        over = event.state == CLEARED
        done = transport.post(topic, self._encode(event), retain=not over)
        if letter.arrived_s is not None:
            done.add_done_callback(partial(self._measure, letter.arrived_s))
        if over:
            self._retained.pop(event.id, None)
            done = transport.post(topic, b"", retain=True)
        elif letter.number is not None:
            self._retained[event.id] = event
        done.add_done_callback(self._settle)
        return done

    def _measure(self, arrived_s: float, done: asyncio.Future[bool]) -> None:
        if not done.cancelled() and done.result():
            self._on_latency(time.monotonic() - arrived_s)

    def _settle(self, _done: asyncio.Future[bool]) -> None:
        """Note in the journal what the broker has confirmed, in order, and make room for more."""
        last: int | None = None
        while self._in_flight and self._in_flight[0][1].done():
            letter, done = self._in_flight.popleft()
            # the transport gives a message up only when it ends; then the journal keeps this event and all that follow
            self._given_up |= done.cancelled() or not done.result()
            last = letter.number if letter.number is not None else last
        if last is not None and not self._given_up:
            self._confirm(last)
        self._send()

    async def flush(self) -> None:
        """Wait until everything is written, and delivered unless there is no connection."""
        while self._inbox or self._recording or (self._connected and (self._greet or self.waiting)):
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
