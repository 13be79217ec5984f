"""The history of a day: how long each question to the API takes, and what it costs in disk and memory.

    watchkeeper bench history --hours 24 --vehicles 2000 --alarms 10000

Writes a made-up day into a history by the same jobs and the same packing as the daemon, then asks over HTTP, each
question at random times and vehicles, one after the other; `CPU` is what one costs server and client together.
`--keep FILE` keeps the file, or asks one that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp
import msgspec
import numpy as np

from watchkeeper.benchmarks.history.day import BEGAN_T, PERIOD_S, make
from watchkeeper.config.history import History as Settings
from watchkeeper.config.schema import DEFAULT, Config, Http
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.history.writer import size_bytes
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.detectors.engine.pipeline import Pipeline

P99_LIMIT_MS = 100.0
# How long a disk that is busy may take to open the file of a day.
OPEN_S = 60.0


def main(argv: Sequence[str]) -> int:
    """Make, ask and print; 1 when a question took too long."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench history", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument("--alarms", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200, help="of each sort")
    parser.add_argument("--keep", type=Path, help="the history's file")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "history.sqlite"
        ids = [f"{0x400000 + i * 37:06x}" for i in range(args.vehicles)]
        if not path.exists():
            began_s = time.perf_counter()
            make(path, ids, args.hours, args.alarms)
            print(f"made in {time.perf_counter() - began_s:.0f} s", file=sys.stderr)
        samples = int(args.hours * 3600 / PERIOD_S) * args.vehicles
        size = size_bytes(path)
        print(
            f"{samples:,} samples, {args.alarms:,} alarms: {size / 2**20:,.0f} MB, {size / samples:.1f} bytes a sample"
        )
        slowest = asyncio.run(_ask(path, ids, args.hours, args.questions))
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most")
    return int(slowest > P99_LIMIT_MS)


# -- questions --------------------------------------------------------------------------------------------------


def _questions(ids: list[str], hours: float, rng: np.random.Generator) -> dict[str, Callable[[], str]]:
    t0, t1 = BEGAN_T, BEGAN_T + hours * 3600

    def when() -> float:
        return round(float(rng.uniform(t0 + 600, t1 - 600)), 3)

    def who() -> str:
        return ids[int(rng.integers(len(ids)))]

    return {
        "alarms": lambda: "/alarms",
        "alarms, by severity, 500 of them": lambda: "/alarms?sort=severity&limit=500",
        "alarms with a text": lambda: f"/alarms?text={who()}",
        "alarms about a vehicle": lambda: f"/alarms?subject={who()}",
        "alarms at a moment": lambda: f"/alarms?at={when()}&limit=1000",
        "timeline of the whole": lambda: "/timeline?steps=500",
        "everybody at a moment (picture)": lambda: f"/picture?t={when()}",
        "vehicles at a moment (table)": lambda: f"/vehicles?t={when()}",
        "track of one over everything": lambda: f"/vehicles/{who()}/track?t0={t0}&t1={t1}",
        "track of one over an hour, all samples": lambda: f"/vehicles/{who()}/track?t1={when()}&step=0",
        "scores of one over everything": lambda: f"/vehicles/{who()}/scores?t0={t0}&t1={t1}",
    }


async def _opened(session: aiohttp.ClientSession, url: str) -> None:
    """Wait until the history has been opened: before that every answer is quick, and empty."""
    async with asyncio.timeout(OPEN_S):
        while True:
            async with session.get(f"{url}/api/v1/timeline") as answer:
                if (await answer.json())["eras"]:
                    return
            await asyncio.sleep(0.1)


async def _ask(path: Path, ids: list[str], hours: float, questions: int) -> float:
    config: Config = msgspec.structs.replace(DEFAULT, http=Http(port=0))
    pipeline = Pipeline(config)
    history = History(path, Settings(hours=8760.0, max_mb=1_000_000), pipeline)
    history.start()
    live = Live(Watched(pipeline, "bench"), 4)
    site = Site(Served(live, lambda: config, history), config.http)
    await site.start()
    # as the daemon does when it has started
    gc.collect()
    gc.freeze()
    slowest = 0.0
    rng = np.random.default_rng(2)
    print(f"{'question':42} {'p50':>8} {'p99':>8} {'most':>8} {'CPU':>8}  bytes")
    async with aiohttp.ClientSession() as session:
        await _opened(session, site.url)
        for name, ask in _questions(ids, hours, rng).items():
            took_ms, size, began_cpu_s = [], 0, 0.0
            for i in range(questions + 3):
                if i == 3:
                    began_cpu_s = time.process_time()
                began_s = time.perf_counter()
                async with session.get(f"{site.url}/api/v1{ask()}") as answer:
                    body = await answer.read()
                    if answer.status != 200:
                        raise RuntimeError(f"{name}: {answer.status} {body[:200]!r}")
                if i >= 3:  # the first ones open the file
                    took_ms.append((time.perf_counter() - began_s) * 1000.0)
                    size = max(size, len(body))
            used_ms = (time.process_time() - began_cpu_s) * 1000.0 / len(took_ms)
            p50, p99 = np.percentile(took_ms, [50, 99])
            slowest = max(slowest, float(p99))
            print(
                f"{name:42} {p50:5.1f} ms {p99:5.1f} ms {max(took_ms):5.1f} ms {used_ms:5.1f} ms  {size:,}", flush=True
            )
    await site.stop()
    history.close()
    return slowest
