"""The transport without a broker: addresses, pauses, the outgoing queue, and gmqtt's packet reader."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.benchmarks.load import mqtt_packet, mqtt_string
from watchkeeper.config.schema import Broker
from watchkeeper.streams.mqtt.gmqtt import _Reader
from watchkeeper.streams.mqtt.transport import Backoff, Endpoint, Transport, make_transport, parse_url


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("mqtt://127.0.0.1:1883", Endpoint("127.0.0.1", 1883, False)),
        ("mqtt://broker", Endpoint("broker", 1883, False)),
        ("mqtts://broker", Endpoint("broker", 8883, True)),
        ("mqtts://broker:443/", Endpoint("broker", 443, True)),
    ],
)
def test_an_address_names_host_port_and_tls(url: str, endpoint: Endpoint) -> None:
    assert parse_url(url) == endpoint


@pytest.mark.parametrize("url", ["http://broker", "broker:1883", "mqtt://", "mqtt://broker:99999"])
def test_an_address_that_is_not_mqtt_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"MQTT|[Pp]ort"):
        parse_url(url)


@given(min_s=st.floats(0.05, 60), max_s=st.floats(0.1, 600), attempts=st.integers(1, 40))
def test_pauses_stay_within_their_bounds_for_ever(min_s: float, max_s: float, attempts: int) -> None:
    backoff = Backoff(min_s, max_s)
    pauses = [backoff.pause_s() for _ in range(attempts)]
    assert pauses[0] == min_s
    for i, pause in enumerate(pauses):
        assert min_s <= pause <= max(min_s, min(max_s, min_s * 2**i)) + 1e-9


def test_pauses_grow_spread_out_and_start_again_after_a_reset() -> None:
    last = []
    for _ in range(200):
        backoff = Backoff(0.5, 30.0)
        last.append([backoff.pause_s() for _ in range(12)][-1])
        backoff.reset()
        assert backoff.pause_s() == 0.5
    assert max(last) > 20.0
    assert min(last) < 10.0


def offline(**settings: Any) -> Transport:
    return Transport(Broker(), subscribe=["telemetry/#"], on_message=lambda topic, payload: None, **settings)


def test_a_full_queue_drops_the_oldest_and_counts_it() -> None:
    async def scene() -> None:
        transport = offline(max_queued=3)
        sent = [transport.post("alarm", b"%d" % i) for i in range(5)]
        assert transport.dropped == 2
        assert transport.waiting == 3
        assert [f.done() for f in sent] == [True, True, False, False, False]
        assert [f.result() for f in sent[:2]] == [False, False]

    asyncio.run(scene())


def test_a_qos_0_message_does_not_wait_for_a_connection() -> None:
    async def scene() -> None:
        transport = offline()
        assert await transport.publish("deadletter", b"x", qos=0) is False
        assert (transport.dropped, transport.waiting) == (1, 0)

    asyncio.run(scene())


def test_without_gmqtt_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "watchkeeper.streams.mqtt.gmqtt")
    monkeypatch.setitem(sys.modules, "gmqtt", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install watchkeeper\[fast\]"):
        make_transport(Broker(transport="gmqtt"), subscribe=[], on_message=lambda topic, payload: None)


class Line:
    """What the reader needs of a connection: takes other packets and acknowledgements, and can be torn down."""

    def __init__(self) -> None:
        self.others: list[tuple[int, bytes]] = []
        self.written = b""
        self.torn = False
        self._transport = self

    def put_package(self, package: Any) -> None:
        self.others.append((package.cmd, package.data))

    def send_package(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return True  # never rests

    def abort(self) -> None:
        self.torn = True


topics = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
publishes = st.tuples(topics, st.binary(max_size=300), st.sampled_from([0, 1]), st.integers(1, 65_535))


@given(st.lists(publishes, max_size=8), st.booleans(), st.binary(max_size=140), st.data())
def test_the_reader_gives_the_same_messages_however_the_bytes_arrive(
    messages: list[tuple[str, bytes, int, int]], v5: bool, properties: bytes, data: st.DataObject
) -> None:
    stream, acknowledged = b"", b""
    for topic, payload, qos, packet_id in messages:
        number = packet_id.to_bytes(2, "big") if qos else b""
        # a property block is a packet without a first byte: its length, then bytes that we skip
        block = mqtt_packet(0, properties)[1:] if v5 else b""
        stream += mqtt_packet(0x30 | qos << 1, mqtt_string(topic) + number + block + payload)
        stream += mqtt_packet(0xD0, b"")
        acknowledged += b"\x40\x02" + number if qos else b""
    line, got = Line(), []
    reader = _Reader(line, v5, lambda topic, payload: got.append((topic, payload)))
    waiting, rest = b"", stream
    while rest:
        n = data.draw(st.integers(1, len(rest)))
        waiting, rest = waiting + rest[:n], rest[n:]
        used = reader(waiting)
        waiting = waiting[used:]
    assert waiting == b""
    assert got == [(topic, payload) for topic, payload, _, _ in messages]
    assert line.written == acknowledged
    assert line.others == [(0xD0, b"")] * len(messages)
    assert not line.torn


@given(st.binary(max_size=200), st.booleans())
def test_the_reader_survives_any_bytes(garbage: bytes, v5: bool) -> None:
    line = Line()
    used = _Reader(line, v5, lambda topic, payload: None)(garbage)
    assert (used == -1) == line.torn
    assert -1 <= used <= len(garbage)


@pytest.mark.parametrize(
    "packet", [b"\x30\x01\x00", b"\x30\x03\x00\x09a", b"\x32\x03\x00\x01a", b"\x30\xff\xff\xff\xff\x01"]
)
def test_a_stream_that_makes_no_sense_is_torn_down(packet: bytes) -> None:
    line = Line()
    assert _Reader(line, False, lambda topic, payload: None)(packet) == -1
    assert line.torn
