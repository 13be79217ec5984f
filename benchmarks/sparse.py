"""Cost of a log with long gaps: it should follow the samples, not the time that the log spans.

    watchkeeper bench sparse [--samples 10000] [--days 7] [--vehicles 1] [--rounds 3]

The same number of samples of the same aircraft through the pipeline, once a second each and spread over days at random
moments (seed 0), in turns; figures are processor time, medians over the rounds. All detectors are on. `--vehicles 10`
is harder: ten samples share a tick when they are dense, and each has a tick of its own when they are not.

Exit code 1 if the sparse log takes more than five times as long.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.batch import F8, Batch, columns_of
from watchkeeper.streams.messages import Kind

DAY_S = 86_400.0
# What was promised.
PROMISE = 5.0
# Samples in a batch, as a reader of logs gives them.
CHUNK = 1000


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench sparse", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--vehicles", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    warm_up(DEFAULT, {Kind.ADSB})
    rng = np.random.default_rng(0)
    times = {
        "dense": np.arange(args.samples) // args.vehicles + np.arange(args.samples) % args.vehicles * 1e-3,
        "sparse": np.sort(rng.uniform(0.0, args.days * DAY_S, args.samples)),
    }
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.2f}, {args.rounds} rounds")
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in times}
    for _ in range(args.rounds):
        for name, t in times.items():
            found[name].append(_judge(t, args.vehicles))
    for name, runs in found.items():
        cpu_s = sorted(cpu for cpu, _ in runs)
        print(
            f"{name:7} {args.samples:,} samples over {times[name][-1] / DAY_S:6.2f} days, {runs[0][1]:6,} ticks: "
            f"{median(cpu_s):6.2f} s ({cpu_s[0]:.2f} to {cpu_s[-1]:.2f})"
        )
    ratio = median(cpu for cpu, _ in found["sparse"]) / median(cpu for cpu, _ in found["dense"])
    print(f"ratio   {ratio:.1f} (promised: at most {PROMISE:g})")
    return int(ratio > PROMISE)


def _judge(t: F8, vehicles: int) -> tuple[float, int]:
    """Processor time of one pipeline over these samples, and how many ticks there were."""
    pipeline = Pipeline(DEFAULT)
    began_s = time.process_time()
    for batch in _batches(t, vehicles):
        pipeline.feed(batch)
    pipeline.finish()
    return time.process_time() - began_s, pipeline.ticks


def _batches(t: F8, vehicles: int) -> Iterator[Batch]:
    ids = [f"aircraft-{k}" for k in range(vehicles)]
    for first in range(0, t.size, CHUNK):
        part = np.arange(first, min(first + CHUNK, t.size))
        who = (part % vehicles).astype(np.int32)
        level = np.zeros(part.size)
        # far apart from each other, and not where they were a sample ago
        fields = {
            "lat": 5.0 * who + 1e-4 * (part // vehicles % 1000), "lon": level, "alt_ft": level + 30_000.0,
            "gs_kt": level + 20.0, "trk_deg": level, "vs_fpm": level,
        }  # fmt: skip
        yield Batch(ids, {Kind.ADSB: columns_of(Kind.ADSB, who, 1e9 + t[part], fields, seq=part)})
