"""Alarms to the broker, in order whatever it does. Also the dead letters.

    <output>/alarm/<kind>/<subject>  QoS 1, retained while the alarm is active
    <output>/incident/<id>           the same for incidents, see detectors/incidents/incidents.py
    <output>/deadletter              QoS 0, see intake/deadletter.py

A cleared alarm is published as an ordinary message, so that everybody listening sees the end, and then its
retained message is removed (an empty retained payload), so that nobody who comes later sees the alarm.

After each connect the active alarms are published again, as `updated`: a broker that lost its memory has them
back, and nobody sees one `raised` twice. While there is no connection events wait in the outbox.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from functools import partial

import msgspec

from watchkeeper.config.schema import Config, Sinks
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration, idle
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.detectors.alarms.events import CLEARED, UPDATED, AlarmEvent, encode_event
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.streams.messages import subject_topic
from watchkeeper.streams.mqtt.transport import MAX_IN_FLIGHT, Transport

log = logging.getLogger(__name__)

DEADLETTER_PERIOD_S = 0.1


def alarm_topic(output: str, event: AlarmEvent) -> str:
    """Where an alarm is published; incidents have no subject of their own and go by their id."""
    if event.kind == INCIDENT:
        return f"{output}/{INCIDENT}/{event.id}"
    return f"{output}/alarm/{event.kind}/{subject_topic(event.subjects)}"


class MqttSink:
    """Publishes events, and confirms to the journal what the broker has. All in callbacks: `run` has nothing to do."""

    name = "mqtt"
    refused = 0

    def __init__(self, settings: Sinks, context: Context) -> None:
        self._context = context
        self._encode = msgspec.msgpack.encode if settings.encoding == "msgpack" else encode_event
        # a few waiting events per alarm that can be active at once; see outbox.py
        self._outbox = Outbox(max(50_000, 4 * context.max_active))
        # on the line, in order, with the future that says whether the broker has taken it
        self._in_flight: deque[tuple[Letter, asyncio.Future[bool]]] = deque()
        self._connected = False
        self._given_up = False
        self._number = 0
        self.delivered = 0
        self.failures = 0
        # what an earlier run left: alarms that the broker shows as active, and ends that it has not heard of
        self._retained = {event.id: event for event in context.past.active}
        for number, event in context.past.unsent:
            self._retained[event.id] = event
            self._outbox.put(Letter(event, number), self._retained)

    @property
    def waiting(self) -> int:
        """Events that the broker has not confirmed."""
        return len(self._outbox) + len(self._in_flight)

    @property
    def dropped(self) -> int:
        """Events that left the full outbox because later ones replaced them."""
        return self._outbox.dropped

    def health(self) -> list[str]:
        """Is there a broker?"""
        transport = self._context.transport
        return [] if transport.connected else [f"not connected to the broker {transport.last_error}".rstrip()]

    def put(self, event: AlarmEvent) -> None:
        """One event of which there is no journal."""
        self.put_recorded(event, self._number + 1, None)

    def put_recorded(self, event: AlarmEvent, number: int, arrived_s: float | None) -> None:
        """Take over one event; returns at once."""
        self._number = number
        self._outbox.put(Letter(event, number, arrived_s), self._retained)
        self._send()

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._connected = True
        active = [event for event in self._retained.values() if event.state != CLEARED]
        self._outbox.repeat(Letter(msgspec.structs.replace(event, state=UPDATED)) for event in active)
        if active:
            log.info("active alarms published again", extra=kv(alarms=len(active)))
        self._send()

    def disconnected(self) -> None:
        """Events wait until `connected`."""
        self._connected = False

    async def run(self) -> None:
        """Task: nothing; the transport calls back."""
        await idle()

    async def flush(self) -> None:
        """Wait until everything is delivered, unless there is no connection."""
        while self._connected and self.waiting:
            await asyncio.sleep(0.005)

    def _send(self) -> None:
        """From the outbox to the broker. The transport keeps the order, so nothing waits for a round trip."""
        while self._connected and self._outbox and len(self._in_flight) < MAX_IN_FLIGHT:
            letter = self._outbox.take()
            self._in_flight.append((letter, self._post(letter)))

    def _post(self, letter: Letter) -> asyncio.Future[bool]:
        event, transport = letter.event, self._context.transport
        topic = alarm_topic(self._context.output, event)
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
            self._context.on_latency(time.monotonic() - arrived_s)

    def _settle(self, _done: asyncio.Future[bool]) -> None:
        """Note in the journal what the broker has confirmed, in order, and make room for more."""
        last: int | None = None
        while self._in_flight and self._in_flight[0][1].done():
            letter, done = self._in_flight.popleft()
            taken = not done.cancelled() and done.result()
            # the transport gives a message up only when it ends; then the journal keeps this event and all that follow
            self._given_up |= not taken
            if letter.number is not None:
                last = letter.number
                self.delivered += taken
                self.failures += not taken
        if last is not None and not self._given_up:
            self._context.confirm(last)
        self._send()


def _asked(config: Config) -> list[Sinks]:
    return [config.sinks] if config.sinks.mqtt else []


MQTT = Declaration(
    name="mqtt",
    help="every event on a topic of its own at the broker, retained while the alarm is active",
    settings=Sinks,
    make=MqttSink,
    asked=_asked,
)


async def deliver_dead_letters(letters: DeadLetters, transport: Transport, config: Config) -> None:
    """Task: publish what `letters` keeps. They are examples, not records: without a connection they are dropped."""
    while True:
        await asyncio.sleep(DEADLETTER_PERIOD_S)
        for letter in letters.take():
            transport.post(f"{config.topics.output}/deadletter", letter, qos=0)
