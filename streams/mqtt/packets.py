"""MQTT 5 packets out of a stream of bytes, however the bytes are cut. No I/O.

Messages (PUBLISH) are split here, all other packets by the library `mqtt5`, whose packets come from the broker itself.
A message comes from a stranger, and must not be able to cut us off: a broker that keeps our session delivers it again
after every reconnect. So nothing in it that the broker let pass ends the connection:

- A topic that is not UTF-8 (the library panics on it) is delivered with U+FFFD in place of what cannot be read, and the
  decoder refuses it like any other unknown topic. Properties are skipped unread.
- A payload beyond `max_payload_bytes` is cut there while it arrives, not kept; the decoder refuses it as too large.
"""

from __future__ import annotations

from collections.abc import Callable

import mqtt5

from watchkeeper.streams.mqtt.wiring import MAX_PACKET_BYTES

OnPublish = Callable[[str, bytes, int], None]
OnPacket = Callable[[mqtt5.Packet], None]

PUBLISH = 0x30
# A message of QoS 1 that is neither retained nor a repetition.
SIMPLE = 0x32
# What a packet may have before its payload: fixed header, topic, packet id, and a fair amount of properties.
HEAD_BYTES = 5 + 2 + 65_535 + 2 + 65_536


class MalformedError(ConnectionError):
    """Bytes that are no MQTT packet: nothing after them can be read."""


class Splitter:
    """`feed` calls `on_publish(topic, payload, packet_id)`, 0 for QoS 0, and `on_packet` for packets of other types."""

    def __init__(self, on_publish: OnPublish, on_packet: OnPacket, max_payload_bytes: int = MAX_PACKET_BYTES) -> None:
        self._on_publish = on_publish
        self._on_packet = on_packet
        self._max_payload_bytes = max_payload_bytes
        self._limit = max_payload_bytes + HEAD_BYTES
        # the start of a packet that is not complete, how much of it is missing, and how much of it to throw away
        self._parts: list[bytes] = []
        self._missing = 0
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises MalformedError, after everything before the bad packet was handed over."""
        if self._skip:
            used = min(self._skip, len(data))
            self._skip -= used
            data = data[used:]
        if self._parts:
            self._parts.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._parts)
            self._parts = []
        try:
            at = self._split(data)
            if at < len(data):
                self._keep(data[at:])
        except IndexError as error:
            raise MalformedError("a packet that ends before its content does") from error

    def _split(self, data: bytes) -> int:
        """Hand over every complete packet; the position behind the last one."""
        at, size = 0, len(data)
        most, on_publish = self._max_payload_bytes, self._on_publish
        while size - at >= 2:
            head, length, start = data[at], data[at + 1], at + 2
            if length & 0x80:
                length, start = _variable_int(data, at + 1)
            end = start + length
            if start == 0 or end > size:
                break
            if head == SIMPLE:
                # as _message, for the most frequent sort of message: QoS 1, no properties
                here = start + 2
                there = here + (data[start] << 8 | data[start + 1])
                packet_id = data[there] << 8 | data[there + 1]
                body = there + 3
                if data[there + 2] == 0 and here < there and packet_id and body <= end and length <= most:
                    on_publish(str(data[here:there], "utf-8", "replace"), data[body:end], packet_id)
                    at = end
                    continue
            if head & 0xF0 == PUBLISH:
                topic, start, packet_id = _message(data, start, end, head)
                if start > end:
                    raise MalformedError("a message that is shorter than its properties")
                on_publish(topic, data[start : min(end, start + most)], packet_id)
            else:
                self._on_packet(_packet(data[at:end]))
            at = end
        return at

    def _keep(self, rest: bytes) -> None:
        """The beginning of a packet: note how much of it we wait for."""
        length, start = _variable_int(rest, 1)
        # at least one more byte, when even the length has not arrived
        wanted = start + length if start else len(rest) + 1
        if wanted > self._limit:
            if rest[0] & 0xF0 != PUBLISH:
                raise MalformedError(f"a packet of {wanted:,} bytes that is not a message")
            if len(rest) >= self._limit:
                topic, start, packet_id = _message(rest, start, len(rest), rest[0])
                self._on_publish(topic, rest[start : start + self._max_payload_bytes], packet_id)
                self._skip = wanted - len(rest)
                return
            wanted = self._limit
        self._parts = [rest]
        self._missing = wanted - len(rest)


def _message(data: bytes, at: int, end: int, head: int) -> tuple[str, int, int]:
    """Topic, position of the payload, and packet id of the PUBLISH whose content is data[at:end]."""
    start = at + 2
    at = start + (data[at] << 8 | data[at + 1])
    topic = str(data[start:at], "utf-8", "replace")
    packet_id = 0
    if head & 0x06:
        packet_id = data[at] << 8 | data[at + 1]
        at += 2
        if head & 0x04 or not packet_id:
            raise MalformedError("a message with a QoS that we did not ask for, or without a packet id")
    properties = data[at]
    at += 1
    if properties & 0x80:
        properties, at = _variable_int(data, at - 1)
    if not topic or not at or at > end:
        raise MalformedError("a message without a topic, or one that ends before its content does")
    return topic, at + properties, packet_id


def _packet(data: bytes) -> mqtt5.Packet:
    """One packet of any other type."""
    try:
        packet, used = mqtt5.read(memoryview(data))
    except (IndexError, ValueError) as error:
        raise MalformedError(f"a packet that cannot be read: {error}") from error
    except BaseException as error:
        # text that is not UTF-8 ends in PyO3's panic, which cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        raise MalformedError("a packet with text that cannot be read") from error
    if used != len(data):
        raise MalformedError("a packet that is longer than its content")
    return packet


def _variable_int(data: bytes, at: int) -> tuple[int, int]:
    """MQTT's variable byte integer and the position behind it; position 0 when it has not arrived in full."""
    value = 0
    for i in range(4):
        if at + i >= len(data):
            return 0, 0
        byte = data[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    raise MalformedError("a length of more than four bytes")
