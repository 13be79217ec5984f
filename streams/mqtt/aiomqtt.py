"""Connection through aiomqtt: MQTT 3.1.1, for brokers that know nothing newer.

aiomqtt connects, keeps alive, subscribes and disconnects. Three things are taken past it, to the paho client that
it wraps, because they cost most of the time per message: incoming messages come from paho's `on_message` callback
instead of aiomqtt's queue and generator; one wake-up of the event loop reads all that has arrived instead of one
packet; and paho, which asks the socket three times per packet, gets its bytes from a buffer. MQTT 5 would cost paho
another 30 us per message for properties that nobody reads. Acknowledgements are always ours, not paho's: paho's own
would also go out for messages that arrive after `stop_reading`.

3.1.1 knows no session expiry: with `session_expiry_s` > 0 the broker keeps our session as long as its own settings
say, with 0 it keeps none.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import aiomqtt
from paho.mqtt.client import Client as Paho
from paho.mqtt.client import ConnectFlags, MQTTMessage
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from watchkeeper.streams.mqtt.wiring import (
    ANSWER_TIMEOUT_S,
    GATHER_S,
    MAX_IN_FLIGHT,
    RESUBSCRIBE_S,
    RefusedError,
    Wiring,
)

# Packets read in one go before other tasks get their turn: some 7 ms.
PACKETS_PER_TURN = 100
# Asked of the socket at once.
READ_BYTES = 64 * 1024


class _Buffer:
    """Stands in for paho's `_sock_recv`: what one call of that brought serves many small ones."""

    def __init__(self, recv: Callable[[int], bytes]) -> None:
        self._recv = recv
        self._data = b""
        self._at = 0

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes; like a socket, nothing when the other side has closed, and an error when it must wait."""
        if not self:
            self._data, self._at = self._recv(max(size, READ_BYTES)), 0
        start = self._at
        self._at = min(start + size, len(self._data))
        return self._data[start : self._at]

    def __bool__(self) -> bool:
        return self._at < len(self._data)


class AiomqttConnection:
    """See transport.Connection."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._paho: Paho | None = None
        self._received = 0
        # packet ids of the delivered messages that are not acknowledged, oldest first; 0: nothing to acknowledge
        self._delivered: deque[int] = deque()
        self._reading = True

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up`, and stay until the connection is lost."""
        client = self._client()
        # from now on: a kept session delivers before `up`
        self._paho = client._client
        self._delivered.clear()
        try:
            async with client:
                self._read_in_batches(self._paho)
                refused = await self._subscribe(client, self._wiring.filters)
                self._wiring.on_subscribed(refused)
                up()
                while refused:
                    await self._stay(client, RESUBSCRIBE_S)
                    refused = await self._subscribe(client, list(refused))
                    self._wiring.on_subscribed(refused)
                await self._stay(client, None)
        except aiomqtt.MqttError as error:
            # aiomqtt leaves the socket open when the broker did not answer its CONNECT
            self._paho.disconnect()
            raise ConnectionError(str(error)) from error
        finally:
            if client._disconnected.done() and not client._disconnected.cancelled():
                # looked at, or asyncio complains of it on standard error
                client._disconnected.exception()
            self._paho = None

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Queue the message in paho; `on_publish` follows for QoS 0 as well, once it is written."""
        if self._paho is None:
            return None
        try:
            return self._paho.publish(topic, payload, qos, retain).mid
        except ValueError as error:
            raise RefusedError(str(error)) from error

    def acknowledge(self, count: int) -> None:
        """One PUBACK for each; in 3.1.1, as in 5, in the order of delivery."""
        for _ in range(min(count, len(self._delivered))):
            packet_id = self._delivered.popleft()
            if packet_id and self._paho is not None:
                self._paho.ack(packet_id, 1)

    def stop_reading(self) -> None:
        """Messages that arrive from now on are thrown away unacknowledged."""
        self._reading = False

    def _client(self) -> aiomqtt.Client:
        broker, will = self._wiring.broker, self._wiring.will
        client = aiomqtt.Client(
            self._wiring.endpoint.host,
            self._wiring.endpoint.port,
            username=broker.username or None,
            password=broker.password or None,
            identifier=broker.client_id,
            protocol=aiomqtt.ProtocolVersion.V311,
            will=aiomqtt.Will(will.topic, will.payload, will.qos, will.retain) if will else None,
            clean_session=broker.session_expiry_s == 0,
            timeout=ANSWER_TIMEOUT_S,
            keepalive=broker.keepalive_s,
            max_inflight_messages=MAX_IN_FLIGHT,
            tls_context=self._wiring.tls,
            # an alarm must not wait for Nagle's algorithm
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )
        # before connecting: a kept session delivers right behind the CONNACK
        client._client.on_connect = self._greeted(client._on_connect)
        client._client.on_message = self._on_message
        client._client.on_publish = self._on_publish
        client._client.disable_logger()
        client._client.manual_ack_set(True)
        return client

    def _greeted(self, inner: Callable[..., None]) -> Callable[..., None]:
        """Hear from paho whether the broker has kept our session: aiomqtt does not say."""

        def greeted(client: Paho, data: Any, flags: ConnectFlags, *rest: Any) -> None:
            self._wiring.on_session(flags.session_present)
            inner(client, data, flags, *rest)

        return greeted

    async def _stay(self, client: aiomqtt.Client, seconds: float | None) -> None:
        """Until the connection is lost (MqttError) or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # nothing is ever queued here; the iterator raises when the connection is lost
                async for _ in client.messages:
                    pass

    async def _subscribe(self, client: aiomqtt.Client, filters: Sequence[str]) -> dict[str, str]:
        """Subscribe; the filters that the broker refuses. MQTT 3.1.1 has one code for all reasons."""
        if not filters:
            return {}
        granted = await client.subscribe([(name, self._wiring.broker.qos) for name in filters])
        failed = [code >= 0x80 if isinstance(code, int) else code.is_failure for code in granted]
        return {name: "refused" for name, refused in zip(filters, failed, strict=True) if refused}

    def _read_in_batches(self, paho: Paho) -> None:
        loop = asyncio.get_running_loop()
        line = paho.socket()
        if line is None:
            raise ConnectionError("connection lost")

        buffer = _Buffer(paho._sock_recv)
        paho._sock_recv = buffer.recv  # type: ignore[assignment, method-assign]

        def taken() -> bool:
            # bytes that we or TLS have already taken off the socket do not wake the event loop
            return bool(buffer) or (isinstance(line, ssl.SSLSocket) and line.pending() > 0)

        def listen() -> None:
            if paho.socket() is line:
                loop.add_reader(line.fileno(), read)
                if taken():
                    read()

        def read() -> None:
            rest_s = 0.0
            for _ in range(PACKETS_PER_TURN):
                before = self._received
                if paho.loop_read():
                    return  # lost: paho has told aiomqtt
                if self._received == before and not taken():
                    rest_s = GATHER_S
                    break
            loop.remove_reader(line.fileno())
            loop.call_later(rest_s, listen)

        listen()

    def _on_message(self, _client: Paho, _userdata: object, message: MQTTMessage) -> None:
        self._received += 1
        if not self._reading:
            return
        self._delivered.append(message.mid if message.qos else 0)
        # not `message.topic`, which raises on a topic that is not UTF-8: the decoder refuses that, the line stays
        self._wiring.on_message(message._topic.decode(errors="replace"), bytes(message.payload))
        if not self._wiring.manual_ack:
            self.acknowledge(1)

    def _on_publish(
        self, _client: Paho, _userdata: object, packet_id: int, _reason: ReasonCode, _properties: Properties
    ) -> None:
        self._wiring.on_sent(packet_id, "")
