"""Both transports against both brokers, for real: delivery, retained messages, last will, broken connections."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from mqtt_clients import LIBRARIES, Client, each_broker, each_library, need_mosquitto, play, running
from waiting import PATIENCE_S, until

from watchkeeper.benchmarks.mqtt.load import connect_packet, publish_packet
from watchkeeper.config.schema import Broker
from watchkeeper.daemon.demo.broker import BrokerKind, EmbeddedBroker, free_port
from watchkeeper.streams.mqtt.transport import Will, make_transport


@each_broker
@each_library
def test_messages_arrive_in_order_and_are_acknowledged(kind: BrokerKind, library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker, running(Client(broker.url, library, "telemetry/#")) as client:
            sent = [client.transport.post(f"telemetry/adsb/{i}", b"%d" % i) for i in range(500)]
            assert await asyncio.gather(*sent) == [True] * 500
            assert [await client.next() for _ in sent] == [(f"telemetry/adsb/{i}", b"%d" % i) for i in range(500)]
            assert await client.transport.publish("telemetry/once", b"", qos=0)
            assert await client.next() == ("telemetry/once", b"")
            assert (client.transport.waiting, client.transport.dropped, client.transport.reconnects) == (0, 0, 0)

    play(scene)


@each_broker
@each_library
def test_a_retained_message_reaches_who_comes_later_until_it_is_removed(kind: BrokerKind, library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker:
            async with running(Client(broker.url, library, client_id="a")) as first:
                await first.transport.publish("status/a", b"online", retain=True)
                await first.transport.publish("status/b", b"online", retain=True)
                await first.transport.publish("status/b", b"", retain=True)
            async with running(Client(broker.url, library, "status/#", client_id="b")) as second:
                assert await second.next() == ("status/a", b"online")
                await second.transport.publish("status/end", b"")
                assert await second.next() == ("status/end", b"")

    play(scene)


VICTIM = """
import asyncio, sys
from watchkeeper.config.schema import Broker
from watchkeeper.streams.mqtt.transport import Will, make_transport
broker = Broker(url=sys.argv[1], transport=sys.argv[2], client_id="victim")
will = Will("status/victim", b"offline")
up = lambda: print("up", flush=True)
asyncio.run(make_transport(broker, subscribe=[], on_message=print, on_connect=up, will=will).run())
"""


@each_broker
@each_library
def test_the_last_will_speaks_for_a_process_that_was_killed(kind: BrokerKind, library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker, running(Client(broker.url, library, "status/#")) as witness:
            command = [sys.executable, "-c", VICTIM, broker.url, library]
            victim = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            assert victim.stdout is not None
            assert await victim.stdout.readline() == b"up\n"
            victim.kill()
            await victim.wait()
            assert await witness.next() == ("status/victim", b"offline")
        # retained: who comes later sees it as well, tested above for any retained message

    play(scene)


@each_broker
@each_library
def test_the_last_will_is_silent_after_a_goodbye(kind: BrokerKind, library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker, running(Client(broker.url, library, "status/#")) as witness:
            leaving = Client(broker.url, library, client_id="leaving", will=Will("status/leaving", b"offline"))
            async with running(leaving):
                pass
            await witness.transport.publish("status/end", b"")
            assert await witness.next() == ("status/end", b"")

    play(scene)


@each_broker
@each_library
def test_it_comes_back_when_the_broker_does(kind: BrokerKind, library: str) -> None:
    async def scene() -> None:
        port = free_port()
        client = Client(f"mqtt://127.0.0.1:{port}", library, "telemetry/#", "alarm/#")
        async with running(client, connected=False):
            async with EmbeddedBroker(kind=kind, port=port) as broker:
                await asyncio.wait_for(client.up.wait(), PATIENCE_S)
                assert client.transport.connected
                os.kill(broker.pid, signal.SIGKILL)
                await asyncio.wait_for(client.down.wait(), PATIENCE_S)
                assert not client.transport.connected
            client.up.clear()
            sent = [client.transport.post("alarm/a", b"%d" % i) for i in range(50)]
            async with EmbeddedBroker(kind=kind, port=port):
                await asyncio.wait_for(client.up.wait(), PATIENCE_S)
                assert client.transport.reconnects == 1
                # what waited goes out in order, and the subscription is there again
                assert await asyncio.gather(*sent) == [True] * 50
                assert [await client.next() for _ in sent] == [("alarm/a", b"%d" % i) for i in range(50)]

    play(scene)


@need_mosquitto
@each_library
def test_a_kept_session_holds_what_was_sent_while_we_were_away(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            async with running(Client(broker.url, library, "telemetry/#", session_expiry_s=300)):
                pass
            sent = [o.transport.post("telemetry/a", b"%d" % i) for i in range(2000)]
            assert all(await asyncio.gather(*sent))
            async with running(Client(broker.url, library, "telemetry/#", session_expiry_s=300)) as back:
                assert [await back.next() for _ in sent] == [("telemetry/a", b"%d" % i) for i in range(2000)]

    play(scene)


@need_mosquitto
@each_library
def test_without_a_session_nothing_is_kept(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            async with running(Client(broker.url, library, "telemetry/#", session_expiry_s=0)):
                pass
            await o.transport.publish("telemetry/a", b"missed")
            async with running(Client(broker.url, library, "telemetry/#", session_expiry_s=0)) as back:
                await o.transport.publish("telemetry/a", b"seen")
                assert await back.next() == ("telemetry/a", b"seen")

    play(scene)


@each_broker
@each_library
def test_a_burst_of_20000_messages_arrives_whole(kind: BrokerKind, library: str) -> None:
    count = 20_000
    burst = b"".join(
        publish_packet(f"telemetry/adsb/{i % 500}", b"%d" % i, qos=1, packet_id=i % 65_535 + 1) for i in range(count)
    )

    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker, running(Client(broker.url, library, "telemetry/#")) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(connect_packet("burst"))
            await reader.readexactly(4)
            writer.write(burst)
            acknowledged = asyncio.create_task(reader.readexactly(4 * count))
            got = [int((await client.next())[1]) for _ in range(count)]
            assert got == list(range(count))
            await asyncio.wait_for(acknowledged, PATIENCE_S)
            writer.close()

    play(scene)


@each_library
def test_a_handler_that_fails_does_not_stop_the_stream(library: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with EmbeddedBroker() as broker:
            got, up, done = [], asyncio.Event(), asyncio.Event()

            def handler(topic: str, payload: bytes) -> None:
                if payload == b"bad":
                    raise RuntimeError("boom")
                got.append(payload)
                done.set()

            transport = make_transport(
                Broker(url=broker.url, transport=library), subscribe=["t"], on_message=handler, on_connect=up.set
            )
            task = asyncio.create_task(transport.run())
            await asyncio.wait_for(up.wait(), PATIENCE_S)
            await transport.publish("t", b"bad")
            await transport.publish("t", b"good")
            await asyncio.wait_for(done.wait(), PATIENCE_S)
            assert got == [b"good"]
            assert transport.reconnects == 0
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    play(scene)
    assert "boom" in caplog.text


@need_mosquitto
@each_library
def test_a_login_is_needed_and_a_wrong_one_is_named(library: str, tmp_path: Path) -> None:
    program = shutil.which("mosquitto_passwd") or pytest.skip("mosquitto_passwd is not installed")
    subprocess.run([program, "-b", "-c", tmp_path / "passwords", "keeper", "secret"], check=True)
    # mosquitto gives up root's rights and must still be able to read it
    tmp_path.chmod(0o755)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    (tmp_path / "passwords").chmod(0o644)
    settings = ("allow_anonymous false", f"password_file {tmp_path}/passwords")

    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto", settings=settings) as broker:
            login = {"username": "keeper", "password": "secret"}
            async with running(Client(broker.url, library, "t", **login)) as client:
                await client.transport.publish("t", b"in")
                assert await client.next() == ("t", b"in")
            wrong = Client(broker.url, library, "t", **login | {"password": "guess"})
            async with running(wrong, connected=False):
                await until(lambda: wrong.transport.last_error)
                assert not wrong.transport.connected
            assert "not authori" in wrong.transport.last_error.lower()

    play(scene)


@need_mosquitto
@each_library
def test_tls_checks_the_broker_and_carries_a_burst(library: str, tmp_path: Path) -> None:
    openssl = shutil.which("openssl") or pytest.skip("openssl is not installed")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(tmp_path / "key.pem")]
    command = [openssl, "req", "-x509", "-days", "2", *key, *subject, "-out", str(tmp_path / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path, tmp_path / "key.pem"):
        path.chmod(0o755)
    tls_port = free_port()
    settings = (f"listener {tls_port} 127.0.0.1", f"certfile {tmp_path}/cert.pem", f"keyfile {tmp_path}/key.pem")

    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto", settings=settings):
            url = f"mqtts://localhost:{tls_port}"
            async with running(Client(url, library, "t", ca_file=str(tmp_path / "cert.pem"))) as client:
                sent = [client.transport.post("t", b"%d" % i * 100) for i in range(1000)]
                assert [await client.next() for _ in sent] == [("t", b"%d" % i * 100) for i in range(1000)]
            stranger = Client(url, library, "t")
            async with running(stranger, connected=False):
                await until(lambda: stranger.transport.last_error)
            assert "certificate" in stranger.transport.last_error.lower()

    play(scene)


@each_library
def test_a_broker_that_never_answers_is_given_up_and_left(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES:
        monkeypatch.setattr(f"watchkeeper.streams.mqtt.{name}.ANSWER_TIMEOUT_S", 0.1)
    left: asyncio.Queue[bool] = asyncio.Queue()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass
        left.put_nowait(True)
        writer.close()

    async def scene() -> None:
        async with await asyncio.start_server(swallow, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = Client(f"mqtt://127.0.0.1:{port}", library, "t")
            async with running(client, connected=False):
                for _ in range(3):
                    assert await asyncio.wait_for(left.get(), PATIENCE_S)
                assert not client.up.is_set()

    play(scene)


@need_mosquitto
@each_library
def test_the_brokers_receive_maximum_is_respected(library: str) -> None:
    async def scene() -> None:
        settings = ["max_inflight_messages 5"]
        async with (
            EmbeddedBroker(kind="mosquitto", settings=settings) as broker,
            running(Client(broker.url, library, "t")) as client,
        ):
            sent = [client.transport.post("t", b"%d" % i) for i in range(300)]
            assert await asyncio.gather(*sent) == [True] * 300
            assert [await client.next() for _ in sent] == [("t", b"%d" % i) for i in range(300)]
            assert client.transport.reconnects == 0

    play(scene)


def test_a_broker_that_knows_only_the_older_version_is_found_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="nats") as broker, running(Client(broker.url, "mqtt5", "t")) as client:
            assert await client.transport.publish("t", b"1")
            assert await client.next() == ("t", b"1")
            assert client.transport.reconnects == 0

    play(scene)
    assert [record.message for record in caplog.records].count("falling back to MQTT 3.1.1") == 1
