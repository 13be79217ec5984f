"""From bytes to packets: what is read equals what was sent for any chunks, and no message of a stranger stops it."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.benchmarks.mqtt.load import mqtt_packet, mqtt_string
from watchkeeper.streams.mqtt.packets import HEAD_BYTES, MalformedError, Splitter
from watchkeeper.streams.mqtt.wiring import MAX_PACKET_BYTES

Message = tuple[str, bytes, int]

# the library's panic on text that is not UTF-8, which is caught and said
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Taken:
    """A splitter and all that came out of it."""

    def __init__(self, max_payload_bytes: int = MAX_PACKET_BYTES) -> None:
        self.messages: list[Message] = []
        self.others: list[str] = []
        self._splitter = Splitter(
            lambda topic, payload, packet_id: self.messages.append((topic, payload, packet_id)),
            lambda packet: self.others.append(repr(packet)),
            max_payload_bytes,
        )
        self.feed = self._splitter.feed


def publish(topic: bytes, payload: bytes, packet_id: int = 0, properties: bytes = b"") -> bytes:
    """A PUBLISH by hand, so that it may be wrong."""
    number = packet_id.to_bytes(2, "big") if packet_id else b""
    # a property block is a packet without its first byte
    block = mqtt_packet(0, properties)[1:]
    head = len(topic).to_bytes(2, "big") + topic + number
    return mqtt_packet(0x32 if packet_id else 0x30, head + block + payload)


topics = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="+#"), min_size=1, max_size=200)
properties = st.fixed_dictionaries(
    {},
    optional={
        "content_type": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "message_expiry_interval": st.integers(0, 2**32 - 1),
        "correlation_data": st.binary(max_size=200),
        "user_properties": st.lists(st.tuples(st.text("ab\u00e4", max_size=5), st.text("ab", max_size=90)), max_size=3),
    },
)
messages = st.tuples(topics, st.binary(max_size=300), st.integers(0, 65_535), properties)
others = st.sampled_from(
    [
        mqtt5.PingRespPacket(),
        mqtt5.PubAckPacket(7, reason_code=mqtt5.PubAckReasonCode.NOT_AUTHORIZED, reason_str="no" * 80),
        mqtt5.SubAckPacket(3, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]),
        mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode.SERVER_MOVED, server_reference="b:1883"),
    ]
)


@given(st.lists(messages | others, max_size=8), st.data())
def test_what_is_read_equals_what_was_sent_for_any_chunks(sent: list, data: st.DataObject) -> None:
    stream, wanted, wanted_others = b"", [], []
    for packet in sent:
        if isinstance(packet, tuple):
            topic, payload, packet_id, more = packet
            qos = mqtt5.QoS(min(packet_id, 1))
            stream += mqtt5.PublishPacket(topic, payload, qos=qos, packet_id=packet_id or None, **more).write()
            wanted.append((topic, payload, packet_id))
        else:
            stream += packet.write()
            wanted_others.append(repr(packet))
    taken = Taken()
    while stream:
        n = data.draw(st.integers(1, min(len(stream), 400)))
        taken.feed(stream[:n])
        stream = stream[n:]
    assert taken.messages == wanted
    assert taken.others == wanted_others


def test_a_long_packet_in_many_pieces_is_put_together_once() -> None:
    payload = bytes(range(256)) * 40_000
    stream = publish(b"t", payload, 1) + publish(b"t", b"next")
    taken = Taken()
    for at in range(0, len(stream), 1000):
        taken.feed(stream[at : at + 1000])
    assert taken.messages == [("t", payload, 1), ("t", b"next", 0)]


@pytest.mark.parametrize(
    "bad",
    [
        publish(b"telemetry/\xff\xfe", b"payload", 5),
        # a user property that is not UTF-8
        publish(b"telemetry/\xed\xa0\x80", b"payload", 5, b"\x26\x00\x01\xff\x00\x00"),
    ],
)
def test_a_topic_that_is_not_utf8_is_delivered_and_the_stream_goes_on(bad: bytes) -> None:
    taken = Taken()
    for _ in range(2):
        taken.feed(bad + publish(b"good", b"1", 6))
    topics = [topic for topic, _, _ in taken.messages]
    assert [topic.startswith("telemetry/\ufffd") for topic in topics] == [True, False] * 2
    assert [(payload, packet_id) for _, payload, packet_id in taken.messages] == [(b"payload", 5), (b"1", 6)] * 2


def test_a_payload_that_is_too_long_is_cut_while_it_arrives_and_what_follows_is_read() -> None:
    taken = Taken(max_payload_bytes=1000)
    stream = publish(b"t", b"x" * 300_000, 3) + publish(b"t", b"next", 4)
    most = 0
    for at in range(0, len(stream), 700):
        taken.feed(stream[at : at + 700])
        most = max(most, sum(map(len, taken._splitter._parts)))
    assert taken.messages == [("t", b"x" * 1000, 3), ("t", b"next", 4)]
    assert most <= 1000 + HEAD_BYTES


def test_long_properties_do_not_hide_a_message() -> None:
    taken = Taken(max_payload_bytes=1000)
    more = b"\x26" + mqtt_string("k") + mqtt_string("v" * 60_000)
    taken.feed(publish(b"t", b"payload", 3, more * 10) + publish(b"t", b"next", 4))
    assert [packet_id for _, _, packet_id in taken.messages] == [3, 4]


@pytest.mark.parametrize(
    "packet",
    [
        b"\x30\x01\x00",
        b"\x30\x03\x00\x09a",
        b"\x32\x03\x00\x01a",
        b"\x30\xff\xff\xff\xff\x01",
        b"\x40\xff\xff\xff\x7f",
        b"\x00\x00",
        b"\x40\x00",
        publish(b"", b"no topic"),
        b"\x32\x06\x00\x01a\x00\x00\x00",
        # QoS 2, which we never subscribe with
        b"\x34\x06\x00\x01a\x00\x01\x00",
    ],
)
def test_a_stream_that_makes_no_sense_is_given_up_after_what_came_before(packet: bytes) -> None:
    taken = Taken(max_payload_bytes=1000)
    with pytest.raises(MalformedError):
        taken.feed(publish(b"t", b"before") + packet + b"\x00" * 300)
    assert taken.messages == [("t", b"before", 0)]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_waited_for_or_refused(garbage: bytes) -> None:
    taken = Taken(max_payload_bytes=1000)
    try:
        taken.feed(garbage)
    except MalformedError:
        return
    assert sum(map(len, taken._splitter._parts)) <= len(garbage)
