"""The history of a day: how long each question to the API takes, and what it costs in disk and memory.

    watchkeeper bench history --hours 24 --vehicles 2000 --alarms 10000

Writes a made-up day into a history by the same jobs and the same packing as the daemon, then asks over HTTP, each
question at random times and vehicles, one after the other; `CPU` is what one costs server and client together.
`--keep FILE` keeps the file, or asks one that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp
import msgspec
import numpy as np

from watchkeeper.config.history import History as Settings
from watchkeeper.config.schema import DEFAULT, Config, Http
from watchkeeper.daemon.history import keeping, writing
from watchkeeper.daemon.history.blocks import BUCKET_S, Rows, by_vehicle, joined, pack_blocks
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.history.layers import Layer, ratios, track, whole
from watchkeeper.daemon.history.tables import code_of, open_for_writing
from watchkeeper.daemon.history.writer import size_bytes
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.scores import vehicle_kinds
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, alarm_id
from watchkeeper.detectors.engine.pipeline import Pipeline

# A day in November 2023, from a whole bucket on.
BEGAN_T = 1_700_000_100.0
ERA = 1
PERIOD_S = 5.0
SEVERITIES = ("advisory", "caution", "warning")
P99_LIMIT_MS = 100.0
# A receiver writes a place with so much noise, in 1e-7 degrees.
NOISE = 300.0


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


# -- a day ------------------------------------------------------------------------------------------------------


def make(path: Path, ids: list[str], hours: float, alarms: int) -> None:
    """Write a day's history."""
    rng = np.random.default_rng(1)
    db = open_for_writing(path, 1 << 40)
    db.execute("BEGIN")
    writing.names({name: f"WKP{i:04d}" for i, name in enumerate(ids)}, BEGAN_T + hours * 3600)(db)
    codes = np.array([code_of(name) for name in ids], np.int64)
    kinds = vehicle_kinds()
    layers = track(kinds), ratios("scores", kinds)
    lat, lon = rng.uniform(45, 50, len(ids)), rng.uniform(5, 15, len(ids))
    course, speed = rng.uniform(0, 360, len(ids)), rng.uniform(150, 250, len(ids))
    first, last = int(BEGAN_T // BUCKET_S), int((BEGAN_T + hours * 3600) // BUCKET_S)
    for bucket in range(first, last):
        course += rng.normal(0, 20, len(ids))
        for layer in layers:
            rows = _samples(rng, layer, codes, lat, lon, course, speed)
            number = writing.layer_number(db, layer)
            carried = keeping.carry(db, ERA, bucket, number, len(layer.columns))
            vehicles, packed = pack_blocks(by_vehicle(joined([*([carried] if carried is not None else []), rows])))
            listed = [(ERA, bucket, number, code, data) for code, data in zip(vehicles, packed, strict=True)]
            db.executemany("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", listed)
        lat += speed * BUCKET_S * np.cos(np.radians(course)) / 111_000
        lon += speed * BUCKET_S * np.sin(np.radians(course)) / 75_000
        lat, lon = 45 + (lat - 45) % 5, 5 + (lon - 5) % 10
    for n in range(alarms):
        _alarm(db, rng, ids, n, BEGAN_T + hours * 3600 * n / alarms)
    for t in (BEGAN_T, BEGAN_T + hours * 3600):
        writing.reached(db, ERA, t)
    db.execute("COMMIT")
    db.close()


def _samples(
    rng: np.random.Generator, layer: Layer, codes: np.ndarray, lat: np.ndarray, lon: np.ndarray, course: np.ndarray,
    speed: np.ndarray,
) -> Rows:  # fmt: skip
    """One bucket of everybody: a straight line with noise, or scores well below their thresholds."""
    n, v = int(BUCKET_S / PERIOD_S), len(codes)
    s = (np.arange(n) * PERIOD_S)[None, :] + rng.uniform(0, 1, (v, 1))
    shape = v, n
    if layer.name == "scores":
        values = [rng.gamma(2.0, 0.05, shape) if i == 0 else np.full(shape, np.nan) for i in range(len(layer.columns))]
    else:
        north, east = np.cos(np.radians(course))[:, None], np.sin(np.radians(course))[:, None]
        y = (lat[:, None] + speed[:, None] * s * north / 111_000) * 1e7 + rng.normal(0, NOISE, shape)
        x = (lon[:, None] + speed[:, None] * s * east / 75_000) * 1e7 + rng.normal(0, NOISE, shape)
        values = [
            y, x, np.full(shape, 10_668.0), speed[:, None] + rng.normal(0, 0.3, shape),
            (course[:, None] + rng.normal(0, 0.2, shape)) % 360, rng.choice([0.0, 0.325, -0.325], shape),
            rng.gamma(2.0, 0.05, shape), np.zeros(shape), np.zeros(shape), np.zeros(shape),
        ]  # fmt: skip
    data = np.stack([whole(value.ravel(), c.quantum) for value, c in zip(values, layer.columns, strict=True)])
    return Rows(np.repeat(codes, n), (s * 1000).astype(np.int32).ravel(), data)


def _alarm(db: sqlite3.Connection, rng: np.random.Generator, ids: list[str], n: int, t: float) -> None:
    """One alarm: raised, updated three times, ended."""
    a, b = sorted(rng.choice(ids, 2, replace=False).tolist())
    severity = SEVERITIES[n % 3]
    for step, state in enumerate((RAISED, UPDATED, UPDATED, UPDATED, CLEARED)):
        at = round(t + 10.0 * step, 3)
        event = AlarmEvent(
            id=alarm_id("conflict", (a, b), t), kind="conflict", state=state, severity=severity, subjects=(a, b), t=at,
            t_onset=t, t_raised=t, t_cleared=at if state == CLEARED else None, score=1.5, threshold=1.0,
            evidence={"tcpa_s": 80.0 - step, "dcpa_nm": 2.31, "vsep_ft": 400.0, "sep_nm": 9.7, "probability": 0.93},
            ended="cause_gone" if state == CLEARED else None,
        )  # fmt: skip
        said = f"{a} and {b} come closer than they may: 2.3 NM in {80 - step} s."
        writing.event(ERA, event, said, f"{said} conflict {a} {b}")(db)


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


async def _ask(path: Path, ids: list[str], hours: float, questions: int) -> float:
    config: Config = msgspec.structs.replace(DEFAULT, http=Http(port=0))
    pipeline = Pipeline(config)
    history = History(path, Settings(hours=8760.0, max_mb=1_000_000), pipeline)
    history.start()
    live = Live(Watched(pipeline, "bench"), 4)
    site = Site(Served(live, lambda: config, history), config.http)
    await site.start()
    slowest = 0.0
    rng = np.random.default_rng(2)
    print(f"{'question':42} {'p50':>8} {'p99':>8} {'most':>8} {'CPU':>8}  bytes")
    async with aiohttp.ClientSession() as session:
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
