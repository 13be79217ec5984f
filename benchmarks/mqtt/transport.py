"""Cost of a message on its way in: CPU of our transports alone, with the decoder and with detection, next to peers.

Called by `watchkeeper bench live --transport-only`. All rows get the same load in one run, in rounds that take turns,
so that a busy machine is unfair to all alike; the figure is the median, with the range. CPU is this process's, user
and system; the load and the broker are other processes. The peers are used as their documentation shows first. The
floor is a plain socket that is read every GATHER_S, as our transport does, and knows where each packet begins.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from watchkeeper.benchmarks.mqtt import load
from watchkeeper.benchmarks.mqtt.drains import PEERS, Drain, OnMessage
from watchkeeper.config.schema import DEFAULT, Broker
from watchkeeper.daemon.background import end
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.pump import DECODE_GROUP, Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.codec import decode
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.mqtt.transport import make_transport

# As often as the daemon hands decoded samples on.
TAKE_S = 0.01
# Messages still on their way when the load has ended get this long.
SETTLE_S = 10.0


@dataclass(slots=True)
class Cost:
    """One row: CPU per message of each round."""

    name: str
    sent: int = 0
    received: int = 0
    us_per_message: list[float] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Messages that had not arrived when the time to settle was over."""
        return self.sent - self.received


class _Counter:
    """Counts messages and does nothing else."""

    def __init__(self) -> None:
        self.received = 0

    def on_message(self, _topic: str, _payload: bytes) -> None:
        self.received += 1

    async def work(self) -> None:
        """Task: nothing."""


class _Decoding(_Counter):
    """Decodes like the daemon."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder = Decoder(DEFAULT.topics, DEFAULT.limits, _bad)
        decode.warm_up()
        self._messages: list[tuple[str, bytes]] = []

    def on_message(self, topic: str, payload: bytes) -> None:
        self.received += 1
        self._messages.append((topic, payload))

    async def work(self) -> None:
        """Task: hand decoded samples on."""
        while True:
            await asyncio.sleep(TAKE_S)
            for first in range(0, len(self._messages), DECODE_GROUP):
                self._decoder.add_all(self._messages[first : first + DECODE_GROUP])
            self._messages.clear()
            self._decoder.take()


class _Detecting(_Counter):
    """The daemon's queue, pump and pipeline, with the default settings."""

    def __init__(self) -> None:
        super().__init__()
        warm_up(DEFAULT)
        self._intake = Intake(DEFAULT.limits.queue_messages)
        letters = DeadLetters(DEFAULT.topics)
        self._pump = Pump(DEFAULT, Pipeline(DEFAULT), self._intake, letters, lambda _events, _arrived: None)
        self.work = self._pump.run  # type: ignore[method-assign]

    def on_message(self, topic: str, payload: bytes) -> None:
        self.received += 1
        self._intake.put(topic, payload)


def _bad(topic: str, reason: str, payload: bytes) -> None:
    raise AssertionError(f"{topic}: {reason}: {payload!r}")


# What happens to a message of ours, by the name behind the transport's.
WORK: dict[str, Callable[[], _Counter]] = {"": _Counter, " + codec": _Decoding, " + detection": _Detecting}


def _ours(name: Literal["mqtt5", "aiomqtt"]) -> Drain:
    async def drain(port: int, on_message: OnMessage, up: Callable[[], None]) -> None:
        settings = Broker(url=f"mqtt://127.0.0.1:{port}", transport=name, client_id="bench", session_expiry_s=0)
        await make_transport(settings, subscribe=["telemetry/#"], on_message=on_message, on_connect=up).run()

    return drain


def rows() -> dict[str, tuple[Drain, Callable[[], _Counter]]]:
    """What is measured: the peers, and our transports with more and more of the daemon behind them."""
    peers = {name: (drain, _Counter) for name, drain in PEERS.items()}
    names: tuple[Literal["mqtt5", "aiomqtt"], ...] = ("aiomqtt", "mqtt5")
    return peers | {name + more: (_ours(name), work) for name in names for more, work in WORK.items()}


async def _measure(cost: Cost, drain: Drain, work: _Counter, options: argparse.Namespace) -> None:
    """One round of one row."""
    loop, up = asyncio.get_running_loop(), asyncio.Event()

    def ready() -> None:
        # paho calls from a thread of its own
        loop.call_soon_threadsafe(up.set)

    async with load.broker() as (broker, line):
        source = asyncio.create_task(drain(broker.port, work.on_message, ready))
        working = asyncio.create_task(work.work())
        try:
            await asyncio.wait_for(up.wait(), 10)
            before_s = time.process_time()
            report = await load.run(line, options)
            waited = 0.0
            while work.received < report["sent"] and waited < SETTLE_S:
                await asyncio.sleep(0.1)
                waited += 0.1
            cpu_s = time.process_time() - before_s
        finally:
            await end(source, working)
    cost.sent += report["sent"]
    cost.received += work.received
    cost.us_per_message.append(1e6 * cpu_s / max(work.received, 1))


async def measure_all(options: argparse.Namespace) -> list[Cost]:
    """Every row in every round (rate, seconds, vehicles, encoding, qos, rounds and rows of the options)."""
    chosen = {name: row for name, row in rows().items() if not options.rows or name in options.rows}
    costs = {name: Cost(name) for name in chosen}
    for number in range(1, options.rounds + 1):
        for name, (drain, work) in chosen.items():
            print(f"round {number} of {options.rounds}: {name}", file=sys.stderr, flush=True)
            await _measure(costs[name], drain, work(), options)
    return list(costs.values())


def table(costs: list[Cost], rate: float) -> str:
    """The measurements for people."""
    columns = f"{'sent':>9} {'lost':>8} {'us CPU/msg':>11} {'range':>15} {'msg per CPU s':>14}"
    lines = [f"{f'at {rate:,.0f} msg/s':24} {columns}"]
    for cost in costs:
        us = median(cost.us_per_message)
        spread = f"{min(cost.us_per_message):.1f} to {max(cost.us_per_message):.1f}"
        lines.append(f"{cost.name:24} {cost.sent:9,} {cost.lost:8,} {us:11.1f} {spread:>15} {1e6 / us:14,.0f}")
    return "\n".join(lines)
