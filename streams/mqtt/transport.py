"""MQTT as the rest of the house sees it: messages in through one callback, messages out through `publish`.

    transport = make_transport(config.broker, subscribe=["telemetry/#"], on_message=decoder.add, will=will)
    task_group.create_task(transport.run())
    await transport.publish("watchkeeper/status", b"online", retain=True)

`Transport` keeps a connection up for ever and owns what must outlive one: the queue of outgoing messages, the
counters and the pauses between attempts. A `Connection` is one client library (aiomqtt.py, gmqtt.py).
Everything runs on the event loop's thread. An acknowledgement goes to the broker after `on_message` has returned.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from watchkeeper.config.schema import Broker

log = logging.getLogger(__name__)

OnMessage = Callable[[str, bytes], None]

# Unacknowledged QoS 1 messages on the line: enough to hide a round trip, few enough to send again after a break.
MAX_IN_FLIGHT = 100
# QoS 1 messages that wait for a connection, about ten seconds of a very bad day of alarms.
MAX_QUEUED = 10_000
# After each read the socket rests this long, so that the next read brings many messages instead of one: at 20,000
# msg/s that is 7 us of CPU per message instead of 17.
GATHER_S = 0.002
# A broker that takes longer than this to answer CONNECT or SUBSCRIBE is treated as not there.
ANSWER_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes for us when we vanish without a goodbye."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the broker listens."""

    host: str
    port: int
    tls: bool


def parse_url(url: str) -> Endpoint:
    """The endpoint of `mqtt://host[:port]` or `mqtts://host[:port]`.

    >>> parse_url("mqtts://broker.example")
    Endpoint(host='broker.example', port=8883, tls=True)
    """
    parts = urlsplit(url)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
        raise ValueError(f"not an MQTT address: {url!r} (expected mqtt://host:port or mqtts://host:port)")
    tls = parts.scheme == "mqtts"
    return Endpoint(parts.hostname, parts.port or (8883 if tls else 1883), tls)


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
class Wiring:
    """What a connection needs to know, the same for each attempt."""

    broker: Broker
    endpoint: Endpoint
    tls: ssl.SSLContext | None
    filters: tuple[str, ...]
    will: Will | None
    on_message: OnMessage
    on_sent: Callable[[int], None]
    """To be called with the packet id when a message is acknowledged (QoS 1) or written out (QoS 0)."""


class Connection(Protocol):
    """One connection after another through one client library; never two at once."""

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up` and stay. Raises OSError when refused or lost; says goodbye when cancelled."""
        ...

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Hand over one message. Its packet id, 0 when there is nothing to wait for, None when the line is full."""
        ...


@dataclass(frozen=True, slots=True)
class _Outgoing:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    done: asyncio.Future[bool]


class Transport:
    """A connection that comes back.

    `connected`, `reconnects` (connections after the first), `dropped` (messages given up) and `last_error` may be
    read at any time. QoS 1 messages wait in a bounded queue while there is no connection, and those that were on
    the line when it broke go first on the next one, so the order is kept; when the queue is full the oldest is
    dropped. QoS 0 messages are dropped when they cannot go at once.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        subscribe: Sequence[str],
        on_message: OnMessage,
        on_connect: Callable[[], None] | None = None,
        on_disconnect: Callable[[], None] | None = None,
        will: Will | None = None,
        max_queued: int = MAX_QUEUED,
    ) -> None:
        self.connected = False
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
        endpoint = parse_url(broker.url)
        tls = ssl.create_default_context(cafile=broker.ca_file or None) if endpoint.tls else None
        wiring = Wiring(broker, endpoint, tls, tuple(subscribe), will, self._deliver, self._sent)
        self._connection = _connection(broker.transport, wiring)

    @property
    def waiting(self) -> int:
        """Messages queued or not yet acknowledged."""
        return len(self._queue) + len(self._in_flight)

    async def run(self) -> None:
        """Connect, and reconnect after each loss, until cancelled; then disconnect so that no last will is sent."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                try:
                    began = clock()
                    await self._connection.hold(self._up)
                except OSError as error:
                    self.last_error = str(error) or type(error).__name__
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
        """Send one message; True once it is acknowledged, False when it was dropped."""
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

    def _pump(self) -> None:
        while self.connected and self._queue and len(self._in_flight) < MAX_IN_FLIGHT:
            message = self._queue.popleft()
            if not message.done.cancelled() and not self._send(message):
                self._queue.appendleft(message)
                return

    def _send(self, message: _Outgoing) -> bool:
        packet_id = self._connection.send(message.topic, message.payload, message.qos, message.retain)
        if packet_id is None:
            return False
        if packet_id:
            self._in_flight[packet_id] = message
        elif not message.done.done():
            message.done.set_result(True)
        return True

    def _sent(self, packet_id: int) -> None:
        message = self._in_flight.pop(packet_id, None)
        if message is not None and not message.done.done():
            message.done.set_result(True)
        self._pump()

    def _drop(self, message: _Outgoing) -> None:
        self.dropped += 1
        if not message.done.done():
            message.done.set_result(False)

    def _deliver(self, topic: str, payload: bytes) -> None:
        try:
            self._handler(topic, payload)
        except Exception:
            # an exception here would tear down the client library in the middle of a packet
            log.exception("message handler failed", extra={"fields": {"topic": topic}})

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
        unsent, self._in_flight = list(self._in_flight.values()), {}
        for message in reversed(unsent):
            if message.qos == 0:
                self._drop(message)
            else:
                self._queue.appendleft(message)
        if was_connected and self._on_disconnect is not None:
            self._on_disconnect()


def _connection(name: str, wiring: Wiring) -> Connection:
    # imported on demand: gmqtt is optional, and either library costs start-up time
    if name == "gmqtt":
        try:
            from watchkeeper.streams.mqtt.gmqtt import GmqttConnection  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("transport 'gmqtt' is not installed: pip install watchkeeper[fast]") from error
        return GmqttConnection(wiring)
    from watchkeeper.streams.mqtt.aiomqtt import AiomqttConnection  # noqa: PLC0415

    return AiomqttConnection(wiring)


def make_transport(
    broker: Broker,
    *,
    subscribe: Sequence[str],
    on_message: OnMessage,
    on_connect: Callable[[], None] | None = None,
    on_disconnect: Callable[[], None] | None = None,
    will: Will | None = None,
) -> Transport:
    """The transport that the configuration names. Nothing happens until its `run` is awaited."""
    return Transport(
        broker,
        subscribe=subscribe,
        on_message=on_message,
        on_connect=on_connect,
        on_disconnect=on_disconnect,
        will=will,
    )
