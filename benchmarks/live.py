"""The daemon under load, end to end: loss, CPU, and the time from a published sample to the published alarm.

    watchkeeper bench live --rate 20000 --seconds 60
    watchkeeper bench live --transport-only
    watchkeeper bench live --compare-with ../before/src        see compare.py

Three processes next to this one: a broker, the daemon as `watchkeeper run`, and the load (load.py), which every
PROBE_S puts a fresh pair of aircraft on collision course. The alarm of that pair, as a subscriber sees it, ends the
measurement that the pair's last sample began. Debouncing is off (one epoch raises); what remains is the wait
for the tick and for stragglers (`--tick`, `--lateness`), and the machinery.

The subscriber also sends itself a message every PROBE_S through the same broker. What that takes is the machine's
and the broker's share; on a shared machine its worst is as bad as ours, and says how far to trust a run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec
import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from watchkeeper.benchmarks import compare
from watchkeeper.benchmarks.mqtt import load, transport
from watchkeeper.benchmarks.mqtt.drains import PEERS
from watchkeeper.config.schema import Broker
from watchkeeper.daemon.background import end
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.detectors.alarms.events import RAISED, AlarmEvent
from watchkeeper.streams.messages import Drop
from watchkeeper.streams.mqtt.transport import Transport, make_transport

# Not in step with the ticks, so that the wait for a tick takes every length.
PROBE_S = 0.0937
ECHO_TOPIC = "bench/echo"
# A first start compiles every kernel.
READY_TIMEOUT_S = 180.0
# After the load has ended: for what is still on its way.
SETTLE_S = 5.0
# Percent of a core from which the broker's one thread is the bottleneck, and what is said of that.
BROKER_END = 97.0
ENDED = ": it is at its end, so the latencies are the broker's"
# The promise: publish to alarm, 99 of 100 times.
P99_LIMIT_MS = 100.0

CONFIG = """\
[broker]
url = "{url}"
{transport_line}
[time]
tick_s = {tick}
lateness_s = {lateness}
[detectors.conflict.debounce]
n = 1
m = 1
[sinks]
state_dir = "{state_dir}"
terminal = false
[http]
port = {http_port}
[log]
level = "warning"
"""


@dataclass(slots=True)
class Result:
    """What one run showed."""

    sent: int
    accepted: int
    drops: dict[str, int]
    seconds: float
    cpu_percent: float
    broker_cpu_percent: float
    """One thread: near 100, messages wait in its sockets, and the latencies are the broker's."""
    load_cpu_percent: float
    probes: int
    latencies_ms: list[float]
    machinery_ms: list[float]
    """The same without the wait for the tick and for stragglers."""
    echoes_ms: list[float]
    """Round trips through the broker alone, in the same seconds."""

    @property
    def lost(self) -> int:
        """Messages that the broker took and the daemon never counted."""
        return self.sent - self.accepted - sum(self.drops.values())

    @property
    def good(self) -> bool:
        """Whether the promises hold: nothing lost or dropped, every probe alarmed, in time."""
        whole = self.accepted == self.sent and len(self.latencies_ms) == self.probes > 0
        return whole and float(np.percentile(self.latencies_ms, 99)) < P99_LIMIT_MS


class Collector:
    """Subscribes to the alarms and notes when each conflict was raised; and to echoes of its own messages."""

    def __init__(self) -> None:
        self.raised: dict[str, tuple[float, float]] = {}
        """Pair to the time of the tick that raised it, and the time at which we saw it."""
        self.echoes_s: list[float] = []

    async def call(self, line: Transport) -> None:
        """Task: one message to ourselves every PROBE_S."""
        while True:
            await asyncio.sleep(PROBE_S)
            line.post(ECHO_TOPIC, str(time.time()).encode())

    def on_message(self, topic: str, payload: bytes) -> None:
        """An echo, an alarm event, or the empty message that ends a retained one."""
        now = time.time()
        if topic == ECHO_TOPIC:
            self.echoes_s.append(now - float(payload))
        elif payload:
            event = msgspec.json.decode(payload, type=AlarmEvent)
            if event.kind == "conflict" and event.state == RAISED:
                self.raised.setdefault("~".join(event.subjects), (event.t_raised, now))


@asynccontextmanager
async def _subscribed(url: str, collector: Collector) -> AsyncIterator[None]:
    up = asyncio.Event()
    line = make_transport(
        Broker(url=url, client_id="bench-collector", session_expiry_s=0),
        subscribe=["watchkeeper/alarm/#", ECHO_TOPIC],
        on_message=collector.on_message,
        on_connect=up.set,
    )
    tasks = [asyncio.create_task(line.run())]
    try:
        await asyncio.wait_for(up.wait(), 10)
        tasks.append(asyncio.create_task(collector.call(line)))
        yield
    finally:
        await end(*tasks)


@asynccontextmanager
async def daemon(options: argparse.Namespace, url: str, http_port: int) -> AsyncIterator[int]:
    """`watchkeeper run` in a process of its own; gives its pid once it is ready."""
    with tempfile.TemporaryDirectory(prefix="watchkeeper-bench-") as folder:
        path = Path(folder) / "bench.toml"
        # a daemon of another checkout may not know the name of our transport
        line = f'transport = "{options.transport}"' if options.transport else ""
        state_dir = f"{folder}/state" if options.state else ""
        text = CONFIG.format(url=url, transport_line=line, state_dir=state_dir, http_port=http_port, **vars(options))
        path.write_text(text)
        code = "import sys; from watchkeeper.daemon.cli import main; sys.exit(main())"
        env = {**os.environ, "PYTHONPATH": options.src} if options.src else None
        process = await asyncio.create_subprocess_exec(
            *options.prefix, sys.executable, "-c", code, "run", "-c", str(path), env=env
        )
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while not await get(http_port, "/readyz"):
                    if process.returncode is not None:
                        raise RuntimeError(f"the daemon ended with exit code {process.returncode}")
                    await asyncio.sleep(0.1)
            yield process.pid
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def get(port: int, page: str) -> str:
    """The page, or nothing when the answer is not 200."""
    try:
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}{page}") as answer:
            return await answer.text() if answer.status == 200 else ""
    except aiohttp.ClientError:
        return ""


async def _counts(port: int) -> tuple[int, dict[str, int]]:
    """Samples accepted, and samples refused by reason, of the ADS-B stream and of unreadable topics."""
    accepted, drops = 0, Counter[str]()
    for family in text_string_to_metric_families(await get(port, "/metrics")):
        for sample in family.samples:
            if sample.name == "watchkeeper_samples_total" and sample.labels["stream"] == "adsb":
                accepted = int(sample.value)
            if sample.name == "watchkeeper_drops_total" and sample.value:
                drops[sample.labels["reason"]] += int(sample.value)
    return accepted, dict(drops)


def used_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run(options: argparse.Namespace) -> Result:
    """One load through one daemon."""
    http_port, collector = free_port(), Collector()
    async with (
        load.broker() as (broker, line),
        _subscribed(broker.url, collector),
        daemon(options, broker.url, http_port) as pid,
    ):
        before_s, broker_before_s = used_s(pid), used_s(broker.pid)
        collector.echoes_s.clear()
        report = await load.run(line, options, probe_s=PROBE_S)
        cpu_s, broker_cpu_s = used_s(pid) - before_s, used_s(broker.pid) - broker_before_s
        deadline = time.monotonic() + SETTLE_S
        while True:
            accepted, drops = await _counts(http_port)
            arrived = accepted + sum(drops.values()) >= report["sent"] and len(collector.raised) >= len(
                report["probes"]
            )
            if arrived or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
    seconds = report["seconds"]
    seen = [
        (sent_at, *collector.raised[pair]) for pair, sent_at in report["probes"].items() if pair in collector.raised
    ]
    return Result(
        sent=report["sent"],
        accepted=accepted,
        drops=drops,
        seconds=seconds,
        cpu_percent=100 * cpu_s / seconds,
        broker_cpu_percent=100 * broker_cpu_s / seconds,
        load_cpu_percent=100 * report["cpu_s"] / seconds,
        probes=len(report["probes"]),
        latencies_ms=[1000 * (seen_at - sent_at) for sent_at, _, seen_at in seen],
        machinery_ms=[1000 * (seen_at - tick - options.lateness) for _, tick, seen_at in seen],
        echoes_ms=[1000 * echo_s for echo_s in collector.echoes_s],
    )


def _spread(values_ms: list[float]) -> str:
    p50, p99, worst = np.percentile(values_ms or [np.nan], (50, 99, 100))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {worst:.1f} ms"


def show(options: argparse.Namespace, result: Result) -> str:
    """The result as a table."""
    others = {reason: count for reason, count in result.drops.items() if reason != Drop.LATE}
    rows = {
        "transport, encoding, QoS": f"{options.transport}, {options.encoding}, {options.qos}",
        "rate": f"{result.sent / result.seconds:,.0f} msg/s for {result.seconds:.1f} s, {options.vehicles:,} aircraft",
        "sent": f"{result.sent:,}",
        "accepted": f"{result.accepted:,}",
        "lost": f"{result.lost:,}",
        "late": f"{result.drops.get(Drop.LATE, 0):,}",
        "dropped otherwise": ", ".join(f"{reason} {count:,}" for reason, count in others.items()) or "0",
        "daemon CPU": f"{result.cpu_percent:.0f} % of a core",
        "broker CPU": f"{result.broker_cpu_percent:.0f} % of a core" + ENDED * (result.broker_cpu_percent > BROKER_END),
        "load generator CPU": f"{result.load_cpu_percent:.0f} % of a core",
        "alarms seen": f"{len(result.latencies_ms):,} of {result.probes:,} pairs",
        "publish to alarm": _spread(result.latencies_ms),
        "of it after the tick": _spread(result.machinery_ms),
        "broker alone": _spread(result.echoes_ms),
        "tick, lateness": f"{1000 * options.tick:.0f} ms, {1000 * options.lateness:.0f} ms",
    }
    return "\n".join(f"{name:26} {value}" for name, value in rows.items())


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when nothing was lost and the alarms came in time."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transport", choices=("mqtt5", "aiomqtt"), default="mqtt5")
    parser.add_argument("--rate", type=float, default=5000.0, help="messages per second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--vehicles", type=int, default=2000, help="aircraft that take turns")
    parser.add_argument("--encoding", choices=("json", "msgpack"), default="msgpack")
    parser.add_argument("--qos", type=int, choices=(0, 1), default=1)
    parser.add_argument("--tick", type=float, default=0.02, help="time.tick_s of the daemon")
    parser.add_argument("--lateness", type=float, default=0.02, help="time.lateness_s of the daemon")
    parser.add_argument("--transport-only", action="store_true", help="CPU per message of the transports, no daemon")
    parser.add_argument("--compare-with", metavar="SRC", default="", help="src folder of another checkout, in turns")
    parser.add_argument("--compare-without-state", action="store_true", help="the same without a state directory")
    parser.add_argument(
        "--rounds", type=int, default=3, help="--transport-only, --compare-…: each row so often; the median counts"
    )
    parser.add_argument("--rows", nargs="+", default=[], help="--transport-only: these rows only")
    parser.set_defaults(src="", state=True, prefix=[])
    options = parser.parse_args(argv)
    if options.compare_with or options.compare_without_state:
        rounds = asyncio.run(compare.measure(options, run))
        print(compare.table(options, rounds))
        return 0 if compare.good(rounds) else 1
    if options.transport_only:
        costs = asyncio.run(transport.measure_all(options))
        print(transport.table(costs, options.rate))
        return 0 if all(cost.lost == 0 for cost in costs if cost.name not in PEERS) else 1
    result = asyncio.run(run(options))
    print(show(options, result))
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
