"""Acknowledgement by hand, against a real broker: what is not acknowledged comes again, what is does not."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys

import pytest
from mqtt_clients import Client, cable, each_library, need_mosquitto, play, running
from waiting import PATIENCE_S, until

from watchkeeper.daemon.demo.broker import EmbeddedBroker


async def numbers(client: Client, count: int) -> list[int]:
    return [int((await client.next())[1]) for _ in range(count)]


@need_mosquitto
@each_library
def test_what_was_not_acknowledged_is_delivered_to_the_next_connection(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            keeper = Client(broker.url, library, "t", manual_ack=True)
            async with running(keeper):
                assert all([await o.transport.publish("t", b"%d" % i) for i in range(20)])
                assert await numbers(keeper, 20) == list(range(20))
                assert keeper.transport.received == 20
                # in any way that comes to mind: twice, backwards, beyond the end of what came
                for number in (5, 12, 12, 3, 0, -1):
                    keeper.transport.acknowledge(number)
                assert await keeper.transport.publish("elsewhere", b"")
            again = Client(broker.url, library, "t", manual_ack=True)
            async with running(again):
                assert await numbers(again, 8) == list(range(12, 20))
                again.transport.acknowledge(1000)
                assert await again.transport.publish("elsewhere", b"")
            async with running(Client(broker.url, library, "t", manual_ack=True)) as last:
                await o.transport.publish("t", b"99")
                assert await numbers(last, 1) == [99]

    play(scene)


@need_mosquitto
@each_library
def test_messages_without_an_acknowledgement_keep_their_place_in_the_count(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            async with running(Client(broker.url, library, "t", manual_ack=True)) as keeper:
                for i in range(10):
                    await o.transport.publish("t", b"%d" % i, qos=i % 2)
                assert await numbers(keeper, 10) == list(range(10))
                keeper.transport.acknowledge(6)
                assert await keeper.transport.publish("elsewhere", b"")
            async with running(Client(broker.url, library, "t", manual_ack=True)) as again:
                assert await numbers(again, 2) == [7, 9]

    play(scene)


@need_mosquitto
@each_library
def test_a_number_of_an_earlier_connection_acknowledges_nothing_on_this_one(library: str) -> None:
    async def scene() -> None:
        async with (
            EmbeddedBroker(kind="mosquitto") as broker,
            cable(broker.port) as line,
            running(Client(broker.url, library, client_id="o")) as o,
        ):
            keeper = Client(line.url, library, "t", manual_ack=True)
            async with running(keeper):
                for i in range(10):
                    await o.transport.publish("t", b"%d" % i)
                assert await numbers(keeper, 10) == list(range(10))
                keeper.up.clear()
                line.cut()
                await asyncio.wait_for(keeper.up.wait(), PATIENCE_S)
                # delivered again, as numbers 11 to 20
                assert await numbers(keeper, 10) == list(range(10))
                keeper.transport.acknowledge(10)
                assert await keeper.transport.publish("elsewhere", b"")
                keeper.up.clear()
                line.cut()
                await asyncio.wait_for(keeper.up.wait(), PATIENCE_S)
                assert await numbers(keeper, 10) == list(range(10))
                keeper.transport.acknowledge(29)
                assert await keeper.transport.publish("elsewhere", b"")
            async with running(Client(broker.url, library, "t")) as again:
                assert await numbers(again, 1) == [9]

    play(scene)


@need_mosquitto
@each_library
def test_after_stop_reading_nothing_is_delivered_or_lost_and_publishing_goes_on(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            async with running(Client(broker.url, library, "t")) as keeper:
                await o.transport.publish("t", b"0")
                assert await numbers(keeper, 1) == [0]
                keeper.transport.stop_reading()
                sent = [o.transport.post("t", b"%d" % i) for i in range(1, 500)]
                assert all(await asyncio.gather(*sent))
                # behind all of them on the same line
                assert await keeper.transport.publish("elsewhere", b"")
                await until(lambda: keeper.transport.waiting == 0)
                assert keeper.transport.received == 1
            async with running(Client(broker.url, library, "t")) as again:
                assert await numbers(again, 499) == list(range(1, 500))

    play(scene)


@need_mosquitto
def test_the_broker_sends_no_more_than_may_be_unacknowledged() -> None:
    """Up to the first acknowledgement: after it mosquitto 2.0 no longer counts."""

    async def scene() -> None:
        async with (
            EmbeddedBroker(kind="mosquitto") as broker,
            running(Client(broker.url, "mqtt5", client_id="o")) as o,
            running(Client(broker.url, "mqtt5", "t", manual_ack=True, receive_maximum=10)) as keeper,
        ):
            assert all(await asyncio.gather(*(o.transport.post("t", b"%d" % i) for i in range(35))))
            assert await numbers(keeper, 10) == list(range(10))
            # behind what it may have sent on the same line
            assert await keeper.transport.publish("elsewhere", b"")
            assert keeper.transport.received == 10
            keeper.transport.acknowledge(10)
            assert await numbers(keeper, 25) == list(range(10, 35))

    play(scene)


VICTIM = """
import asyncio, sys
from watchkeeper.config.schema import Broker
from watchkeeper.streams.mqtt.transport import make_transport
broker = Broker(url=sys.argv[1], transport=sys.argv[2], client_id="client")
def take(topic, payload):
    if transport.received <= 7:
        transport.acknowledge(transport.received)
    if transport.received == 20:
        # after the acknowledgements, which are written in the same turn
        asyncio.get_running_loop().call_later(0.05, lambda: print("taken", flush=True))
async def main():
    global transport
    transport = make_transport(broker, subscribe=["t"], on_message=take, manual_ack=True,
                               on_connect=lambda: print("up", flush=True))
    await transport.run()
asyncio.run(main())
"""


@need_mosquitto
@each_library
def test_what_a_killed_process_had_not_acknowledged_is_delivered_again(library: str) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind="mosquitto") as broker, running(Client(broker.url, library, client_id="o")) as o:
            command = [sys.executable, "-c", VICTIM, broker.url, library]
            victim = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            assert victim.stdout is not None
            assert await victim.stdout.readline() == b"up\n"
            assert all(await asyncio.gather(*(o.transport.post("t", b"%d" % i) for i in range(20))))
            assert await victim.stdout.readline() == b"taken\n"
            victim.kill()
            await victim.wait()
            async with running(Client(broker.url, library, "t")) as back:
                assert await numbers(back, 13) == list(range(7, 20))

    play(scene)


@need_mosquitto
@each_library
def test_cut_again_and_again_every_message_arrives_and_first_arrivals_are_in_order(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # aiomqtt waits for an answer to its SUBSCRIBE on a line that is gone
    monkeypatch.setattr("watchkeeper.streams.mqtt.aiomqtt.ANSWER_TIMEOUT_S", 0.5)
    count, rng = 3000, random.Random(3)

    async def scene() -> None:
        async with (
            EmbeddedBroker(kind="mosquitto") as broker,
            cable(broker.port) as line,
            running(Client(broker.url, library, client_id="o")) as o,
        ):
            keeper = Client(line.url, library, "t", manual_ack=True, reconnect_min_s=0.005, reconnect_max_s=0.02)
            first: dict[int, None] = {}
            async with running(keeper):
                sent = [o.transport.post("t", b"%d" % i) for i in range(count)]
                cuts = sorted(rng.sample(range(count), 8))
                while len(first) < count:
                    try:
                        first[int((await asyncio.wait_for(keeper.next(), 0.05))[1])] = None
                    except TimeoutError:
                        # the broker waits for acknowledgements
                        keeper.transport.acknowledge(keeper.transport.received)
                        continue
                    if cuts and len(first) > cuts[0]:
                        cuts.pop(0)
                        line.cut()
                    # now and then, and not all of them: as a daemon does that writes them down first
                    if rng.random() < 0.02:
                        keeper.transport.acknowledge(keeper.transport.received - rng.randint(0, 50))
                assert all(await asyncio.gather(*sent))
                assert list(first) == list(range(count))
                assert keeper.transport.reconnects >= 1

    play(scene)
