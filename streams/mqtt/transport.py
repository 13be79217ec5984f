"""MQTT as the rest of the house sees it: messages in through one callback, messages out through `publish`.

    transport = make_transport(config.broker, subscribe=["telemetry/#"], on_message=decoder.add, will=will)
    task_group.create_task(transport.run())
    await transport.publish("watchkeeper/status", b"online", retain=True)

`Transport` keeps a connection up for ever and owns what must outlive one: the queue of outgoing messages, the
counters and the pauses between attempts. A `Connection` is one client library (mqtt5.py, and aiomqtt.py for brokers
that know MQTT 3.1.1 only). Everything runs on the event loop's thread.

Acknowledgement. Delivered messages are numbered over the life of the object: the one that `on_message` is called with
is number `received`. An acknowledgement goes to the broker after `on_message` has returned; with `manual_ack` only
after `acknowledge(number)`, which releases that message and all before it. What is not acknowledged when the
connection breaks is delivered again, under new numbers, if the broker keeps our session.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from watchkeeper.config.schema import Broker
from watchkeeper.streams.mqtt.refusals import Refusals
from watchkeeper.streams.mqtt.wiring import (
    MAX_IN_FLIGHT,
    MAX_PACKET_BYTES,
    Connection,
    OnMessage,
    RefusedError,
    Will,
    Wiring,
    parse_url,
)

__all__ = ["MAX_IN_FLIGHT", "Transport", "Will", "make_transport"]

log = logging.getLogger(__name__)

# QoS 1 messages that wait for a connection, about ten seconds of a very bad day of alarms.
MAX_QUEUED = 10_000


class Backoff:
    """Pauses between attempts: the limit doubles from min_s to max_s, the pause is anywhere from min_s to the limit.

    The jitter keeps a fleet of watchkeepers from storming a broker that has just come back.
    """

    def __init__(self, min_s: float, max_s: float) -> None:
        self.min_s = min_s
        self.max_s = max(min_s, max_s)
        self._limit_s = min_s

    def pause_s(self) -> float:
        """The next pause."""
        pause = random.uniform(self.min_s, self._limit_s)
        self._limit_s = min(self.max_s, 2 * self._limit_s)
        return pause

    def reset(self) -> None:
        """Start again from min_s."""
        self._limit_s = self.min_s


@dataclass(frozen=True, slots=True)
class _Outgoing:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    done: asyncio.Future[bool]


class Transport:
    """A connection that comes back.

    `subscribe` is what we are here for; `own` are topics of ours that we listen to in order to know what others hear.

    `connected`, `session_kept` (the broker has kept what was sent to us while we were away), `received` (messages
    delivered), `reconnects` (connections after the first), `dropped` (messages
    given up) and `last_error` may be read at any time. QoS 1 messages wait in a bounded queue while there is no
    connection, and those that were on the line when it broke go first on the next one, so the order is kept; when the
    queue is full the oldest is dropped. QoS 0 messages are dropped when they cannot go at once.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        subscribe: Sequence[str],
        own: Sequence[str] = (),
        on_message: OnMessage,
        on_connect: Callable[[], None] | None = None,
        on_disconnect: Callable[[], None] | None = None,
        will: Will | None = None,
        max_queued: int = MAX_QUEUED,
        manual_ack: bool = False,
        max_payload_bytes: int = MAX_PACKET_BYTES,
    ) -> None:
        self.connected = False
        self.session_kept = False
        self.received = 0
        self.reconnects = 0
        self.dropped = 0
        self.last_error = ""
        self._url = broker.url
        self._handler = on_message
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._max_queued = max_queued
        self._backoff = Backoff(broker.reconnect_min_s, broker.reconnect_max_s)
        self._queue: deque[_Outgoing] = deque()
        self._in_flight: dict[int, _Outgoing] = {}
        self._connections = 0
        # the connection as a task, and whether it is cancelled only to be made again
        self._holding: asyncio.Future[None] | None = None
        self._renewing = False
        # the newest message that needs no acknowledgement any more: it had one, or its connection is gone
        self._settled = 0
        endpoint = parse_url(broker.url)
        tls = ssl.create_default_context(cafile=broker.ca_file or None) if endpoint.tls else None
        self._refusals = Refusals(time.monotonic, frozenset(own))
        self._connection = _connection(
            Wiring(
                broker=broker,
                endpoint=endpoint,
                tls=tls,
                filters=(*subscribe, *own),
                will=will,
                on_message=self._deliver,
                on_sent=self._sent,
                on_subscribed=self._subscribed,
                on_session=self._greeted,
                manual_ack=manual_ack,
                max_payload_bytes=max_payload_bytes,
            )
        )

    @property
    def refused(self) -> Mapping[str, int]:
        """Subscriptions and messages that the broker refused, by its reason."""
        return self._refusals.counts

    @property
    def deaf(self) -> bool:
        """Whether the broker refuses a subscription."""
        return self._refusals.deaf

    @property
    def half_blind(self) -> bool:
        """Whether the broker refuses a subscription to our own topics."""
        return self._refusals.half_blind

    def health(self, *below: str) -> list[str]:
        """What the broker refuses now: subscriptions, and publications on topics that begin with one of `below`."""
        return self._refusals.sentences(*below)

    @property
    def waiting(self) -> int:
        """Messages queued or not yet acknowledged."""
        return len(self._queue) + len(self._in_flight)

    async def run(self) -> None:
        """Connect, and reconnect after each loss, until cancelled; then disconnect so that no last will is sent."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                began = clock()
                self._renewing = False
                self._holding = asyncio.ensure_future(self._connection.hold(self._up))
                try:
                    await self._holding
                except OSError as error:
                    self.last_error = str(error) or type(error).__name__
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    if not self._renewing or (task is not None and task.cancelling()):
                        raise
                    self.last_error = "renewed by us"
                self._down()
                # a link that breaks as soon as it is up (say, two clients with one id) is not a reason to hurry
                if clock() - began > self._backoff.max_s:
                    self._backoff.reset()
                pause_s = self._backoff.pause_s()
                fields = {"url": self._url, "problem": self.last_error, "next_attempt_s": round(pause_s, 2)}
                log.warning("no connection to the broker", extra={"fields": fields})
                await asyncio.sleep(pause_s)
        finally:
            self._down()
            while self._queue:
                self._drop(self._queue.popleft())

    async def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send one message; True once it is acknowledged, False when it was dropped or the broker refused it."""
        return await self.post(topic, payload, qos=qos, retain=retain)

    def post(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> asyncio.Future[bool]:
        """Like `publish` without a coroutine: the result may be ignored."""
        message = _Outgoing(topic, payload, qos, retain, asyncio.get_running_loop().create_future())
        if qos == 0:
            if not self.connected or len(self._in_flight) >= MAX_IN_FLIGHT or not self._send(message):
                self._drop(message)
            return message.done
        if len(self._queue) >= self._max_queued:
            self._drop(self._queue.popleft())
        self._queue.append(message)
        self._pump()
        return message.done

    @property
    def unacknowledged(self) -> int:
        """Messages that have arrived and that the broker may not forget yet; it may hold others back for them."""
        return self.received - self._settled

    def acknowledge(self, number: int) -> None:
        """Let the broker forget all messages up to `number`; those of an earlier connection are not ours to release."""
        count = min(number, self.received) - self._settled
        if count > 0:
            self._settled += count
            self._connection.acknowledge(count)

    def renew(self) -> None:
        """Take leave of the broker and connect again, as after a loss."""
        if self.connected and self._holding is not None:
            self._renewing = True
            self._holding.cancel()

    def stop_reading(self) -> None:
        """Deliver no further message, and acknowledge none that arrives, while we go on publishing: before an end."""
        self._connection.stop_reading()

    def _pump(self) -> None:
        while self.connected and self._queue and len(self._in_flight) < MAX_IN_FLIGHT:
            message = self._queue.popleft()
            if not message.done.cancelled() and not self._send(message):
                self._queue.appendleft(message)
                return

    def _send(self, message: _Outgoing) -> bool:
        try:
            packet_id = self._connection.send(message.topic, message.payload, message.qos, message.retain)
        except RefusedError as error:
            self._answered(message, str(error))
            return True
        if packet_id is None:
            return False
        if packet_id:
            self._in_flight[packet_id] = message
        elif not message.done.done():
            message.done.set_result(True)
        return True

    def _sent(self, packet_id: int, refusal: str) -> None:
        message = self._in_flight.pop(packet_id, None)
        if message is not None:
            self._answered(message, refusal)
        self._pump()

    def _answered(self, message: _Outgoing, refusal: str) -> None:
        if refusal:
            self._refusals.refused(message.topic, refusal)
        else:
            self._refusals.taken(message.topic)
        if not message.done.done():
            message.done.set_result(not refusal)

    def _subscribed(self, refused: Mapping[str, str]) -> None:
        if self._refusals.subscribed(refused) and self.connected and self._on_connect is not None:
            # as good as a new connection: now we hear what we asked for
            self._on_connect()

    def _drop(self, message: _Outgoing) -> None:
        self.dropped += 1
        if not message.done.done():
            message.done.set_result(False)

    def _deliver(self, topic: str, payload: bytes) -> None:
        self.received += 1
        try:
            self._handler(topic, payload)
        except Exception:
            # an exception here would tear down the client library in the middle of a packet
            log.exception("message handler failed", extra={"fields": {"topic": topic}})

    def _greeted(self, session_kept: bool) -> None:
        self.session_kept = session_kept

    def _up(self) -> None:
        self.connected = True
        self.last_error = ""
        self.reconnects = self._connections
        self._connections += 1
        log.info("connected to the broker", extra={"fields": {"url": self._url, "reconnects": self.reconnects}})
        if self._on_connect is not None:
            self._on_connect()
        self._pump()

    def _down(self) -> None:
        was_connected, self.connected = self.connected, False
        self._settled = self.received
        unsent, self._in_flight = list(self._in_flight.values()), {}
        for message in reversed(unsent):
            if message.qos == 0:
                self._drop(message)
            else:
                self._queue.appendleft(message)
        if was_connected and self._on_disconnect is not None:
            self._on_disconnect()


def _connection(wiring: Wiring) -> Connection:
    # imported on demand: either library costs start-up time
    if wiring.broker.transport == "aiomqtt":
        from watchkeeper.streams.mqtt.aiomqtt import AiomqttConnection  # noqa: PLC0415

        return AiomqttConnection(wiring)
    from watchkeeper.streams.mqtt.versions import NewestConnection  # noqa: PLC0415

    return NewestConnection(wiring)


def make_transport(
    broker: Broker,
    *,
    subscribe: Sequence[str],
    own: Sequence[str] = (),
    on_message: OnMessage,
    on_connect: Callable[[], None] | None = None,
    on_disconnect: Callable[[], None] | None = None,
    will: Will | None = None,
    manual_ack: bool = False,
    max_payload_bytes: int = MAX_PACKET_BYTES,
) -> Transport:
    """The transport that the configuration names. Nothing happens until its `run` is awaited."""
    return Transport(
        broker,
        subscribe=subscribe,
        own=own,
        on_message=on_message,
        on_connect=on_connect,
        on_disconnect=on_disconnect,
        will=will,
        manual_ack=manual_ack,
        max_payload_bytes=max_payload_bytes,
    )
