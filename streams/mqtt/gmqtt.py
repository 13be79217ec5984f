"""Connection through gmqtt (extra `fast`). MQTT 5, or 3.1.1 where the broker refuses 5.

gmqtt does the handshake, keep-alive, subscriptions and outgoing messages. Incoming PUBLISH packets of QoS 0 and 1
take a short way through `_Reader`, which replaces gmqtt's packet splitter: no objects per packet, and one write
for the acknowledgements of everything that one read brought. Reconnecting is the Transport's business, so gmqtt's
own is turned off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311
from gmqtt.mqtt.handler import MQTTError
from gmqtt.mqtt.package import Package

from watchkeeper.streams.mqtt.transport import ANSWER_TIMEOUT_S, GATHER_S, OnMessage, Wiring

# It warns, with a traceback, about each lost connection, which the Transport reports in one line.
logging.getLogger("gmqtt").setLevel(logging.CRITICAL)

# The range of packet ids; in MQTT 5 also the number of messages that the broker may have on the line to us.
RECEIVE_MAXIMUM = 65_535
# A QoS 0 message is refused while this much waits to be written: the broker has stopped reading.
WRITE_BUFFER_BYTES = 1_048_576
# How long a goodbye may take when the other side does not answer.
GOODBYE_S = 2.0

T = TypeVar("T")


class GmqttConnection:
    """See transport.Connection."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._client: _Client | None = None

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up`, and stay until the connection is lost."""
        try:
            client = await self._connect(MQTTv50)
        except (MQTTError, ConnectionResetError):
            client = await self._connect(MQTTv311)
        try:
            await client.subscribe_all()
            self._client = client
            up()
            await client.lost
            raise ConnectionError("connection lost")
        finally:
            self._client = None
            await client.leave()

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Write the message; None while the broker's receive maximum or the write buffer is used up."""
        if self._client is None or (qos == 0 and self._client.write_buffer_bytes > WRITE_BUFFER_BYTES):
            return None
        self._client.unacknowledged.newest = 0
        try:
            self._client.publish(topic, payload, qos=qos, retain=retain)
        except OverflowError:
            return None
        return self._client.unacknowledged.newest

    async def _connect(self, version: int) -> _Client:
        client = _Client(self._wiring, version)
        try:
            await client.open()
        except BaseException as error:
            await client.leave()
            if isinstance(error, MQTTError) and version == MQTTv311:
                raise ConnectionError(str(error)) from error
            raise
        return client


class _Client(gmqtt.Client):  # type: ignore[misc]
    """A gmqtt client for one connection."""

    def __init__(self, wiring: Wiring, version: int) -> None:
        broker, will = wiring.broker, wiring.will
        self.unacknowledged = _Unacknowledged(wiring.on_sent)
        properties = {"session_expiry_interval": broker.session_expiry_s, "receive_maximum": RECEIVE_MAXIMUM}
        super().__init__(
            broker.client_id,
            clean_session=broker.session_expiry_s == 0,
            will_message=gmqtt.Message(will.topic, will.payload, qos=will.qos, retain=will.retain) if will else None,
            persistent_storage=self.unacknowledged,
            **properties,
        )
        self._wiring = wiring
        self._version = version
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._granted: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        self.on_subscribe = _Client._on_suback
        if broker.username:
            self.set_auth_credentials(broker.username, broker.password or None)

    async def open(self) -> None:
        """Connect. MQTTError or ConnectionResetError: not wanted, perhaps because of the protocol version."""
        endpoint = self._wiring.endpoint
        await self._before_lost(
            self.connect(
                endpoint.host,
                endpoint.port,
                ssl=self._wiring.tls or False,
                keepalive=self._wiring.broker.keepalive_s,
                version=self._version,
            )
        )

    async def subscribe_all(self) -> None:
        """Subscribe and wait until the broker has granted everything."""
        filters = self._wiring.filters
        if not filters:
            return
        self.subscribe([gmqtt.Subscription(name, qos=self._wiring.broker.qos) for name in filters])
        granted = await self._before_lost(self._granted)
        refused = [name for name, code in zip(filters, granted, strict=True) if code >= 128]
        if refused:
            raise ConnectionError(f"subscription refused: {', '.join(refused)}")

    async def leave(self) -> None:
        """Say goodbye if anybody is there, and close."""
        connection = self._connection
        if connection is None or connection.is_closing():
            return
        with contextlib.suppress(OSError):
            async with asyncio.timeout(GOODBYE_S):
                await self.disconnect()
        connection._transport.abort()

    @property
    def write_buffer_bytes(self) -> int:
        """Bytes that the socket has not taken yet."""
        size: int = self._connection._transport.get_write_buffer_size()
        return size

    async def reconnect(self, delay: bool = False) -> None:  # noqa: ARG002
        """Called by gmqtt when the connection is lost or refused: the Transport decides when to try again."""
        if not self.lost.done():
            self.lost.set_result(None)

    async def _create_connection(self, *args: Any, **kwargs: Any) -> Any:
        connection = await super()._create_connection(*args, **kwargs)
        connection._protocol._read_packet = _Reader(connection, self._version == MQTTv50, self._wiring.on_message)
        return connection

    def _on_suback(self, _packet_id: int, granted: tuple[int, ...], _properties: dict[str, Any]) -> None:
        if not self._granted.done():
            self._granted.set_result(granted)

    async def _before_lost(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        try:
            either: set[asyncio.Future[Any]] = {task, self.lost}
            await asyncio.wait(either, timeout=ANSWER_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self.lost.done():
                raise ConnectionResetError("the broker closed the connection")
            raise TimeoutError(f"the broker did not answer within {ANSWER_TIMEOUT_S:g} s")
        finally:
            task.cancel()


class _Unacknowledged:
    """In place of gmqtt's store of sent messages: the Transport keeps those, here only their ids pass through."""

    is_empty = True

    def __init__(self, on_sent: Callable[[int], None]) -> None:
        self.newest = 0
        self.remove_message_by_mid = on_sent

    def push_message(self, packet_id: int, _packet: bytes) -> None:
        """Called by `publish` for QoS 1, the only way to learn the packet id."""
        self.newest = packet_id

    async def wait_empty(self) -> None:
        """Nothing is sent again by gmqtt, so there is nothing to wait for."""

    def clear(self) -> None:
        """Nothing is kept."""


class _Reader:
    """Splits what arrived into packets; returns the bytes used, -1 for a stream that makes no sense."""

    def __init__(self, connection: Any, v5: bool, on_message: OnMessage) -> None:
        self._connection = connection
        self._v5 = v5
        self._on_message = on_message

    def __call__(self, data: bytes) -> int:
        at, size = 0, len(data)
        acknowledgements = bytearray()
        try:
            while size - at >= 2:
                head = data[at]
                length, start = data[at + 1], at + 2
                if length & 0x80:
                    length, start = _variable_int(data, at + 1)
                if start == 0 or start + length > size:
                    break
                end = start + length
                if head & 0xF4 == 0x30:
                    body = start + 2 + (data[start] << 8 | data[start + 1])
                    topic = data[start + 2 : body].decode(errors="replace")
                    if head & 0x02:
                        acknowledgements += b"\x40\x02" + data[body : body + 2]
                        body += 2
                    if self._v5:
                        skip, body = _variable_int(data, body)
                        body += skip
                    if not start < body <= end:
                        raise ValueError
                    self._on_message(topic, data[body:end])
                else:
                    self._connection.put_package(Package(head, data[start:end]))
                at = end
        except (IndexError, ValueError):
            self._connection._transport.abort()
            return -1
        self._connection._last_data_in = time.monotonic()
        if acknowledgements:
            self._connection.send_package(acknowledgements)
        self._rest()
        return at

    def _rest(self) -> None:
        line = self._connection._transport
        if not line.is_closing():
            line.pause_reading()
            asyncio.get_running_loop().call_later(GATHER_S, line.resume_reading)


def _variable_int(data: bytes, at: int) -> tuple[int, int]:
    """MQTT's variable byte integer and the position behind it; position 0 when it has not arrived in full."""
    value = 0
    for i in range(4):
        if at + i >= len(data):
            return 0, 0
        value |= (data[at + i] & 0x7F) << (7 * i)
        if data[at + i] < 0x80:
            return value, at + i + 1
    raise ValueError("a length of more than four bytes")
