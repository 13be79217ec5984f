"""Cost of a message on its way in: CPU of each transport alone and with the decoder; baseline: aiomqtt's own loop.

Called by `watchkeeper bench live --transport-only`. The peer is what aiomqtt's documentation shows first,
`async for message in client.messages`. CPU is this process's, user and system; the load and the broker are others.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import aiomqtt

from watchkeeper.benchmarks import load
from watchkeeper.config.schema import DEFAULT, Broker
from watchkeeper.daemon.demo.broker import EmbeddedBroker
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.mqtt.transport import make_transport

Name = Literal["peer", "aiomqtt", "gmqtt"]
PEER = "aiomqtt generator"
# What is measured: through which transport, and whether with the decoder.
ROWS: tuple[tuple[Name, bool], ...] = (
    ("peer", False),
    ("aiomqtt", False),
    ("aiomqtt", True),
    ("gmqtt", False),
    ("gmqtt", True),
)
# As often as the daemon hands decoded samples on.
TAKE_S = 0.01
# Messages still on their way when the load has ended get this long.
SETTLE_S = 10.0


@dataclass(slots=True)
class Cost:
    """One measurement."""

    name: str
    rate: float
    sent: int
    received: int
    us_per_message: float

    @property
    def lost(self) -> int:
        """Messages that had not arrived when the time to settle was over."""
        return self.sent - self.received


class _Tap:
    """Counts messages; with a decoder also does what the daemon does to each."""

    def __init__(self, decode: bool) -> None:
        self.received = 0
        self.decoder = Decoder(DEFAULT.topics, DEFAULT.limits, self._bad) if decode else None

    def _bad(self, topic: str, reason: str, payload: bytes) -> None:
        raise AssertionError(f"{topic}: {reason}: {payload!r}")

    def on_message(self, topic: str, payload: bytes) -> None:
        self.received += 1
        if self.decoder is not None:
            self.decoder.add(topic, payload)

    def warm_up(self) -> None:
        """Compile what the decoder compiles."""
        if self.decoder is not None:
            self.decoder.add("telemetry/adsb/warm", b'{"t":1,"lat":1,"lon":1}')
            self.decoder.take()

    async def take(self) -> None:
        while self.decoder is not None:
            await asyncio.sleep(TAKE_S)
            self.decoder.take()


async def _generator(url_port: int, tap: _Tap, up: Callable[[], None]) -> None:
    async with aiomqtt.Client("127.0.0.1", url_port, identifier="peer") as client:
        await client.subscribe("telemetry/#", 1)
        up()
        async for message in client.messages:
            tap.on_message(message.topic.value, bytes(message.payload))


async def measure(name: Name, decode: bool, options: argparse.Namespace) -> Cost:
    """Receive one load (rate, seconds, vehicles, encoding, qos of the options) through one transport."""
    tap, up = _Tap(decode), asyncio.Event()
    tap.warm_up()
    async with EmbeddedBroker() as broker:
        if name == "peer":
            source = asyncio.create_task(_generator(broker.port, tap, up.set))
        else:
            settings = Broker(url=broker.url, transport=name, client_id="bench")
            transport = make_transport(
                settings, subscribe=["telemetry/#"], on_message=tap.on_message, on_connect=up.set
            )
            source = asyncio.create_task(transport.run())
        taker = asyncio.create_task(tap.take())
        await asyncio.wait_for(up.wait(), 10)
        before_s = time.process_time()
        report = await load.run(broker.port, options)
        waited = 0.0
        while tap.received < report["sent"] and waited < SETTLE_S:
            await asyncio.sleep(0.1)
            waited += 0.1
        cpu_s = time.process_time() - before_s
        for task in (source, taker):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    label = PEER if name == "peer" else name + (" + codec" if decode else "")
    return Cost(label, options.rate, report["sent"], tap.received, cpu_s / max(tap.received, 1) * 1e6)


async def measure_all(options: argparse.Namespace) -> list[Cost]:
    """Every row, one after the other."""
    return [await measure(name, decode, options) for name, decode in ROWS]


def table(costs: list[Cost]) -> str:
    """The measurements for people, each with the peer at the same rate."""
    lines = [f"{'transport':20} {'msg/s':>8} {'sent':>9} {'lost':>6} {'us CPU/msg':>11} {'of the peer':>12}"]
    peers = {cost.rate: cost.us_per_message for cost in costs if cost.name == PEER}
    for cost in costs:
        share = f"{cost.us_per_message / peers[cost.rate]:12.2f}" if cost.rate in peers else " " * 12
        lines.append(
            f"{cost.name:20} {cost.rate:8,.0f} {cost.sent:9,} {cost.lost:6,} {cost.us_per_message:11.1f} {share}"
        )
    return "\n".join(lines)
