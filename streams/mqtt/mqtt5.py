"""Connection over MQTT 5 (the default): the packets are the library `mqtt5`'s, the socket is ours.

The cost of a message is that of waking up, not of reading it. So the socket rests for GATHER_S after each read, one
wake-up reads all packets that have come, and their acknowledgements go out in one write. No task, future or queue
entry exists per incoming message; outgoing packets of one turn of the event loop share a write as well.

Keep-alive goes both ways. Every half keep-alive we look: if nothing came or nothing went since, PINGREQ asks for a sign
of life; when nothing has come for three looks in a row the line is dead. Looks are counted, not seconds, so that a
process that was stopped or busy does not blame the broker.

Both receive maxima are kept: `broker.receive_maximum` bounds what the broker sends without acknowledgement, and its own
bounds what we send. We offer no topic aliases. A redirection (use another server, server moved) is said, not followed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mqtt5

from watchkeeper.streams.mqtt.packets import MalformedError, Splitter
from watchkeeper.streams.mqtt.wiring import (
    ANSWER_TIMEOUT_S,
    GATHER_S,
    MAX_PACKET_BYTES,
    RESUBSCRIBE_S,
    RefusedError,
    UnsupportedVersionError,
    Wiring,
)

log = logging.getLogger(__name__)

# Looks without a sign of life, half a keep-alive apart, after which the other side counts as dead.
DEAD_LOOKS = 3
# asyncio reads at most this much at once; more is waiting then, and the socket need not rest.
FULL_READ_BYTES = 256 * 1024
# A QoS 0 message is refused while this much waits to be written: the broker has stopped reading.
WRITE_BUFFER_BYTES = 1_048_576
# Outgoing packets of one turn of the event loop are written together, at most this many.
PACKETS_PER_WRITE = 256
# How long a goodbye may take when the other side does not answer.
GOODBYE_S = 2.0
# A PUBACK of success: type and length, then the packet id.
PUBACK = 0x40020000
# CONNACK of MQTT 3.1.1, which is shorter than one of MQTT 5 can be.
OLD_CONNACK = b"\x20\x02"
PINGREQ = mqtt5.PingReqPacket().write()

T = TypeVar("T")
# Enumerations of the library, not of `enum` whatever its stub says: they have `name` and `value`, and no order.
Reason = mqtt5.ConnAckReasonCode | mqtt5.DisconnectReasonCode | mqtt5.PubAckReasonCode | mqtt5.SubAckReasonCode


def words(reason: Reason, text: str | None = None, reference: str | None = None) -> str:
    """A reason code for a person, with the broker's own text.

    >>> words(mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, None, "b.example:1883")
    'use another server (b.example:1883)'
    """
    more = ", ".join(part for part in (text, reference) if part)
    return reason.name.lower().replace("_", " ") + (f" ({more})" if more else "")


class Mqtt5Connection:
    """See wiring.Connection."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._line: _Line | None = None
        self._reading = True
        self._known = False

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up`, and stay until the connection is lost."""
        filters = self._wiring.filters
        self._line = line = _Line(self._wiring, self._reading)
        try:
            await line.in_time(self._connect(line))
            terms = await line.in_time(line.greeted)
            if self._known and not terms.session_present and self._wiring.broker.session_expiry_s:
                log.warning("the broker did not keep our session: what was sent while we were away may be lost")
            self._known = True
            self._wiring.on_session(terms.session_present)
            refused = await line.subscribe(filters)
            self._wiring.on_subscribed(refused)
            up()
            while refused:
                await asyncio.wait([line.lost], timeout=RESUBSCRIBE_S)
                refused = await line.subscribe(list(refused))
                self._wiring.on_subscribed(refused)
            # not `await line.lost`: a cancelled task cancels the future that it awaits
            await asyncio.wait([line.lost])
            raise line.lost.result()
        finally:
            self._line = None
            await line.leave()

    async def _connect(self, line: _Line) -> None:
        endpoint, loop = self._wiring.endpoint, asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: line, endpoint.host, endpoint.port, ssl=self._wiring.tls)
        except ConnectionError as error:
            # asyncio says "Connect call failed" instead of the reason
            if error.errno is None:
                raise
            raise ConnectionError(os.strerror(error.errno).lower()) from error

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Write the message; None while the broker's receive maximum or the write buffer is used up."""
        return None if self._line is None else self._line.publish(topic, payload, qos, retain)

    def acknowledge(self, count: int) -> None:
        """One write for all."""
        if self._line is not None:
            self._line.acknowledge(count)

    def stop_reading(self) -> None:
        """Messages that arrive from now on are thrown away unacknowledged."""
        self._reading = False
        if self._line is not None:
            self._line.reading = False


class _Line(asyncio.Protocol):
    """One TCP connection."""

    def __init__(self, wiring: Wiring, reading: bool) -> None:
        self._wiring = wiring
        self.reading = reading
        self._loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[mqtt5.ConnAckPacket] = self._loop.create_future()
        self.lost: asyncio.Future[Exception] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._splitter = Splitter(self._on_publish, self._on_packet, wiring.max_payload_bytes)
        self._socket: asyncio.Transport | None = None
        self._first = b""
        self._open = False
        # PUBACKs of the delivered messages that are not acknowledged, oldest first; 0: nothing to acknowledge
        self._delivered: deque[int] = deque()
        self._unanswered: set[int] = set()
        self._subscribing: dict[int, asyncio.Future[mqtt5.SubAckPacket]] = {}
        self._last_id = 0
        self._out: list[bytes] = []
        self._looking: asyncio.TimerHandle | None = None
        self._look_s = wiring.broker.keepalive_s / 2
        self._looks = 0
        self._quiet = True

    # -- what the Connection asks ---------------------------------------------------------------------------

    async def in_time(self, work: Awaitable[T]) -> T:
        """The result of `work`, unless the connection is lost first or the broker takes too long to answer."""
        task = asyncio.ensure_future(work)
        try:
            either: set[asyncio.Future[Any]] = {task, self.lost}
            await asyncio.wait(either, timeout=ANSWER_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if self.lost.done():
                raise self.lost.result()
            raise TimeoutError(f"the broker did not answer within {ANSWER_TIMEOUT_S:g} s")
        finally:
            task.cancel()

    async def subscribe(self, filters: Sequence[str]) -> dict[str, str]:
        """Subscribe; the filters that the broker refuses, with its reasons."""
        if not filters:
            return {}
        qos = mqtt5.QoS(self._wiring.broker.qos)
        packet_id = self._next_id()
        self._subscribing[packet_id] = answer = self._loop.create_future()
        wanted = [mqtt5.TopicFilter(name, max_qos=qos) for name in filters]
        self._write(mqtt5.SubscribePacket(packet_id, wanted).write())
        granted = await self.in_time(answer)
        if len(granted.reason_codes) != len(filters):
            raise ConnectionError("the broker answered another number of subscriptions than we asked for")
        answers = dict(zip(filters, granted.reason_codes, strict=True))
        for name, code in answers.items():
            if code.value < self._wiring.broker.qos:
                fields = {"filter": name, "qos": code.value}
                log.warning("the broker grants a lower QoS than we asked for", extra={"fields": fields})
        return {name: words(code, granted.reason_str) for name, code in answers.items() if code.value >= 0x80}

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """See wiring.Connection.send."""
        terms = self.greeted.result()
        if qos > terms.max_qos.value:
            raise RefusedError("the broker offers no QoS 1")
        if not terms.retain_available:
            if retain and not payload:
                return 0
            retain = False
        if len(self._unanswered) >= terms.receive_max if qos else self._waiting_bytes > WRITE_BUFFER_BYTES:
            return None
        if len(payload) > MAX_PACKET_BYTES - 2 * 65_535:
            raise RefusedError("packet too large")
        packet_id = self._next_id() if qos else 0
        try:
            packet = mqtt5.PublishPacket(
                topic, payload, qos=mqtt5.QoS(qos), retain=retain, packet_id=packet_id or None
            ).write()
        except ValueError as error:
            raise RefusedError(f"topic name invalid ({error})") from error
        if terms.max_packet_size is not None and len(packet) > terms.max_packet_size:
            raise RefusedError("packet too large")
        if qos:
            self._unanswered.add(packet_id)
        self._write(packet)
        return packet_id

    def acknowledge(self, count: int) -> None:
        """Acknowledge the `count` oldest messages."""
        delivered = self._delivered
        if count >= len(delivered):
            pubacks = [puback for puback in delivered if puback]
            delivered.clear()
        else:
            oldest = [delivered.popleft() for _ in range(count)]
            pubacks = [puback for puback in oldest if puback]
        if pubacks:
            self._write(struct.pack(f">{len(pubacks)}I", *pubacks))

    async def leave(self) -> None:
        """Say goodbye if anybody is there, and close."""
        if self._looking is not None:
            self._looking.cancel()
        if self._socket is None:
            return
        if not self.lost.done():
            self._end(ConnectionError("closed by us"), mqtt5.DisconnectReasonCode.NORMAL_DISCONNECTION)
        await asyncio.wait([self._closed], timeout=GOODBYE_S)
        self._socket.abort()

    # -- what asyncio calls ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        broker, will = self._wiring.broker, self._wiring.will
        last_will = (
            mqtt5.Will(will.topic, payload=will.payload, qos=mqtt5.QoS(will.qos), retain=will.retain) if will else None
        )
        transport.write(
            mqtt5.ConnectPacket(
                broker.client_id,
                username=broker.username or None,
                password=broker.password.encode() or None,
                clean_start=broker.session_expiry_s == 0,
                will=last_will,
                keep_alive=math.ceil(broker.keepalive_s),
                session_expiry_interval=broker.session_expiry_s,
                receive_max=broker.receive_maximum,
            ).write()
        )

    def data_received(self, data: bytes) -> None:
        """All that has arrived."""
        self._looks = 0
        problem: ConnectionError | None = None
        try:
            if not self._open:
                self._first += data[:4]
                if self._first.startswith(OLD_CONNACK):
                    raise UnsupportedVersionError("the broker speaks MQTT 3.1.1 only")
            self._splitter.feed(data)
        except ConnectionError as error:
            problem = error
        if not self._wiring.manual_ack:
            self.acknowledge(len(self._delivered))
        if isinstance(problem, MalformedError):
            reason = mqtt5.DisconnectReasonCode.MALFORMED_PACKET
            self._end(ConnectionError(f"the broker sent {problem}"), reason)
        elif problem is not None:
            self._end(problem)
        elif len(data) < FULL_READ_BYTES and self._socket is not None and not self._socket.is_closing():
            self._socket.pause_reading()
            self._loop.call_later(GATHER_S, self._resume)

    def connection_lost(self, error: Exception | None) -> None:
        """Both sides are gone."""
        if not self.lost.done():
            self.lost.set_result(ConnectionError(str(error) if error else "the broker closed the connection"))
        if not self._closed.done():
            self._closed.set_result(None)

    # -- packets --------------------------------------------------------------------------------------------

    def _on_publish(self, topic: str, payload: bytes, packet_id: int) -> None:
        if not self.reading:
            return
        if not self._open:
            raise MalformedError("a message before its greeting")
        self._delivered.append(packet_id and PUBACK | packet_id)
        self._wiring.on_message(topic, payload)

    def _on_packet(self, packet: mqtt5.Packet) -> None:
        if isinstance(packet, mqtt5.PubAckPacket) and packet.packet_id in self._unanswered:
            self._unanswered.discard(packet.packet_id)
            code = packet.reason_code
            self._wiring.on_sent(packet.packet_id, words(code, packet.reason_str) if code.value >= 0x80 else "")
        elif isinstance(packet, mqtt5.PingRespPacket):
            pass
        elif isinstance(packet, mqtt5.SubAckPacket) and packet.packet_id in self._subscribing:
            answer = self._subscribing.pop(packet.packet_id)
            if not answer.done():
                answer.set_result(packet)
        elif isinstance(packet, mqtt5.ConnAckPacket) and not self.greeted.done():
            self._greet(packet)
        elif isinstance(packet, mqtt5.DisconnectPacket):
            reason = words(packet.reason_code, packet.reason_str, packet.server_reference)
            raise ConnectionError(f"the broker closed the connection: {reason}")
        else:
            raise MalformedError(f"a {type(packet).__name__} that nothing asked for")

    def _greet(self, terms: mqtt5.ConnAckPacket) -> None:
        code = terms.reason_code
        if code is mqtt5.ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION:
            raise UnsupportedVersionError("the broker does not speak MQTT 5")
        if code.value >= 0x80:
            raise ConnectionError(f"the broker refused us: {words(code, terms.reason_str, terms.server_reference)}")
        if not terms.retain_available:
            log.warning("the broker keeps no retained messages: a client that comes later will not see active alarms")
        asked_s, given_s = self._wiring.broker.session_expiry_s, terms.session_expiry_interval
        if given_s is not None and given_s < asked_s:
            fields = {"asked_s": asked_s, "given_s": given_s}
            log.warning("the broker keeps our session for a shorter time", extra={"fields": fields})
        if terms.server_keep_alive:
            self._look_s = min(self._look_s, terms.server_keep_alive / 2)
        self._looking = self._loop.call_later(self._look_s, self._look)
        self._open = True
        self.greeted.set_result(terms)

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % 65_535 + 1
            if self._last_id not in self._unanswered and self._last_id not in self._subscribing:
                return self._last_id

    # -- the line itself ------------------------------------------------------------------------------------

    @property
    def _waiting_bytes(self) -> int:
        return self._socket.get_write_buffer_size() if self._socket is not None else 0

    def _write(self, packet: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(packet)
        if len(self._out) >= PACKETS_PER_WRITE:
            self._flush()

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and self._socket is not None and not self._socket.is_closing():
            self._quiet = False
            self._socket.write(b"".join(out))

    def _resume(self) -> None:
        if self._socket is not None and not self._socket.is_closing():
            self._socket.resume_reading()

    def _look(self) -> None:
        """Keep-alive, see above."""
        self._looking = self._loop.call_later(self._look_s, self._look)
        self._looks += 1
        if self._looks >= DEAD_LOOKS:
            self._end(ConnectionError(f"no sign of life from the broker for {self._looks * self._look_s:g} s"))
        elif self._quiet or self._looks > 1:
            self._write(PINGREQ)
        self._quiet = True

    def _end(self, error: Exception, reason: mqtt5.DisconnectReasonCode | None = None) -> None:
        """Close the connection, with a reason if the other side is to hear one."""
        if not self.lost.done():
            self.lost.set_result(error)
        if self._looking is not None:
            self._looking.cancel()
        if self._socket is None or self._socket.is_closing():
            return
        if reason is None:
            self._socket.abort()
            return
        self._out.append(mqtt5.DisconnectPacket(reason_code=reason).write())
        self._flush()
        self._socket.close()
