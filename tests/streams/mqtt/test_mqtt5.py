"""The MQTT 5 connection against brokers that misbehave: made-up ones on a socket, and a line that hangs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import mqtt5
import pytest
from mqtt_clients import Client, cable, each_library, need_mosquitto, play, running
from waiting import PATIENCE_S, until

from watchkeeper.benchmarks.mqtt.load import publish_packet
from watchkeeper.daemon.demo.broker import EmbeddedBroker

# the library's panic on text that is not UTF-8, which is caught and said
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CONNACK = mqtt5.ConnAckPacket().write()
GRANTED = mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE


class Fake:
    """A broker that answers as a test tells it to: `greeting` to CONNECT, then `then` writes what it likes."""

    def __init__(self, greeting: bytes, then: Callable[[Fake], Awaitable[None]] | None = None) -> None:
        self.greeting = greeting
        self.heard: list[mqtt5.Packet] = []
        self.url = ""
        self.connections = 0
        self._then = then
        self._writer: asyncio.StreamWriter | None = None

    def say(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.connections += 1
        waiting = b""
        task = None
        with suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65_536):
                waiting += data
                while waiting:
                    try:
                        packet, used = mqtt5.read(memoryview(waiting))
                    except IndexError:
                        break
                    waiting = waiting[used:]
                    self.heard.append(packet)
                    if isinstance(packet, mqtt5.ConnectPacket):
                        writer.write(self.greeting)
                    elif isinstance(packet, mqtt5.SubscribePacket):
                        writer.write(mqtt5.SubAckPacket(packet.packet_id, [GRANTED]).write())
                        if self._then is not None:
                            task = asyncio.create_task(self._then(self))
        if task is not None:
            task.cancel()
        writer.close()


@asynccontextmanager
async def serving(fake: Fake) -> AsyncIterator[Fake]:
    async with await asyncio.start_server(fake.serve, "127.0.0.1", 0) as server:
        fake.url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield fake


def error_of(fake: Fake) -> str:
    """What the transport says of a broker that does not let it in, or throws it out."""
    said = []

    async def scene() -> None:
        async with serving(fake):
            client = Client(fake.url, "mqtt5", "t")
            async with running(client, connected=False):
                said.append(await until(lambda: client.transport.last_error))

    play(scene)
    return said[0]


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (
            mqtt5.ConnAckPacket(
                reason_code=mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, server_reference="b.example:1883"
            ).write(),
            "the broker refused us: use another server (b.example:1883)",
        ),
        (
            mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.BANNED, reason_str="ask Ann").write(),
            "the broker refused us: banned (ask Ann)",
        ),
        (publish_packet("t", b"early"), "the broker sent a message"),
        (mqtt5.PingRespPacket().write() + CONNACK + CONNACK, "the broker sent a ConnAckPacket that nothing asked for"),
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" + b" " * 99, "the broker sent "),
    ],
)
def test_a_greeting_that_is_none_is_said_in_words(greeting: bytes, words: str) -> None:
    assert words in error_of(Fake(greeting))


@pytest.mark.parametrize(
    ("packet", "words"),
    [
        (mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER), "session taken over"),
        (
            mqtt5.DisconnectPacket(
                reason_code=mqtt5.DisconnectReasonCode.SERVER_MOVED, server_reference="c.example", reason_str="for good"
            ),
            "server moved (for good, c.example)",
        ),
        (mqtt5.DisconnectPacket(), "normal disconnection"),
    ],
)
def test_the_reason_of_a_broker_that_closes_is_said(packet: mqtt5.DisconnectPacket, words: str) -> None:
    async def close(fake: Fake) -> None:
        fake.say(packet.write())

    assert error_of(Fake(CONNACK, close)) == f"the broker closed the connection: {words}"


def test_after_a_malformed_packet_it_says_so_to_both_sides_and_comes_back() -> None:
    async def scene() -> None:
        async def speak(fake: Fake) -> None:
            fake.say(mqtt5.PublishPacket("t", b"good", qos=mqtt5.QoS(1), packet_id=9).write() + b"\x30\x03\x00\x09a")

        async with serving(Fake(CONNACK, speak)) as fake:
            client = Client(fake.url, "mqtt5", "t")
            async with running(client):
                assert await client.next() == ("t", b"good")
                await until(lambda: fake.connections >= 3)
            codes = [int(p.reason_code) for p in fake.heard if isinstance(p, mqtt5.DisconnectPacket)]
            assert 129 in codes
            # what came before the bad packet is acknowledged all the same
            assert [p.packet_id for p in fake.heard if isinstance(p, mqtt5.PubAckPacket)][:1] == [9]

    play(scene)


def test_no_answer_of_a_broker_however_mangled_ends_the_transport() -> None:
    """Each connection gets a mangled stream; the last one a good message, which must arrive."""
    rng = random.Random(1)
    good = mqtt5.PublishPacket("t", b"good", qos=mqtt5.QoS(1), packet_id=9).write()
    stream = good + mqtt5.PubAckPacket(1, reason_str="why").write() + mqtt5.PingRespPacket().write() + good * 3
    count = 60

    async def scene() -> None:
        async def mangle(fake: Fake) -> None:
            if fake.connections > count:
                fake.say(mqtt5.PublishPacket("end", b"").write())
                return
            data = bytearray(stream)
            for _ in range(rng.randint(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            fake.say(bytes(data[: rng.randint(1, len(data))]) + b"\xe0\x00")
            # if it waits for the rest of a packet that never comes
            await asyncio.sleep(0.01)
            fake._writer.close()  # type: ignore[union-attr]

        async with serving(Fake(CONNACK, mangle)) as fake:
            client = Client(fake.url, "mqtt5", "#", reconnect_min_s=0.001, reconnect_max_s=0.002)
            async with running(client):
                while (await client.next())[0] != "end":
                    pass
                assert client.transport.connected

    play(scene)


@need_mosquitto
@each_library
def test_a_peer_that_went_silent_is_noticed_by_its_missing_sign_of_life(library: str) -> None:
    # aiomqtt takes whole seconds
    keepalive_s = 0.2 if library == "mqtt5" else 1

    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, cable(broker.port) as line:
            client = Client(line.url, library, "t", keepalive_s=keepalive_s)
            async with running(client):
                line.hang()
                await asyncio.wait_for(client.down.wait(), PATIENCE_S)
                if library == "mqtt5":
                    assert "no sign of life" in client.transport.last_error

    play(scene)


def test_an_idle_line_is_kept_alive_by_pings() -> None:
    async def scene() -> None:
        async def pong(fake: Fake) -> None:
            answered = 0
            while True:
                await asyncio.sleep(0.01)
                pings = sum(isinstance(p, mqtt5.PingReqPacket) for p in fake.heard)
                fake.say(mqtt5.PingRespPacket().write() * (pings - answered))
                answered = pings

        async with serving(Fake(CONNACK, pong)) as fake:
            client = Client(fake.url, "mqtt5", "t", keepalive_s=0.2)
            async with running(client):
                await until(lambda: sum(isinstance(p, mqtt5.PingReqPacket) for p in fake.heard) >= 5)
                assert (client.transport.reconnects, fake.connections) == (0, 1)

    play(scene)


def test_what_the_broker_can_never_take_is_refused_at_once_and_said() -> None:
    async def scene() -> None:
        async with serving(Fake(mqtt5.ConnAckPacket(max_packet_size=100).write())) as fake:
            client = Client(fake.url, "mqtt5", "t")
            async with running(client):
                assert await client.transport.publish("out/a", b"x" * 200) is False
                assert await client.transport.publish("out/#", b"x") is False
                assert client.transport.health() == [
                    "the broker refuses what we publish on out/…: topic name invalid (Invalid topic)"
                ]
                assert client.transport.refused == {"packet too large": 1, "topic name invalid": 1}
                assert client.transport.connected

    play(scene)


def test_a_broker_without_retained_messages_still_gets_the_alarm() -> None:
    async def scene() -> None:
        async with serving(Fake(mqtt5.ConnAckPacket(retain_available=False).write())) as fake:
            client = Client(fake.url, "mqtt5", "t")
            async with running(client):
                client.transport.post("alarm/a", b"raised", retain=True)
                assert await client.transport.publish("alarm/a", b"", retain=True)
                sent = await until(lambda: [p for p in fake.heard if isinstance(p, mqtt5.PublishPacket)])
                assert [(p.payload, p.retain) for p in sent] == [(b"raised", False)]

    play(scene)
