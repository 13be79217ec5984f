"""What it costs to be watched: the pipeline's ticks with and without an open live page, and the picture it is sent.

    watchkeeper bench page [--vehicles 2000] [--seconds 60]

One pipeline on simulated traffic; in every other second somebody watches, so both are measured on the same traffic and
the same machine. Processor time, medians. What goes on after the picture is made, writing it to a socket, is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from statistics import median

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.simulate import simulate

# Seconds before anything is measured: by then everybody has reported.
SETTLE = 8


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench page", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of traffic (60)")
    args = parser.parse_args(argv)
    if args.seconds < SETTLE + 4:
        parser.error(f"--seconds {args.seconds:g}: at least {SETTLE + 4}")
    warm_up(DEFAULT)
    asyncio.run(_measure(args.vehicles, args.seconds))
    return 0


async def _measure(vehicles: int, seconds: float) -> None:
    pipeline = Pipeline(DEFAULT)
    live = Live(Watched(pipeline, "bench"), viewers=1)
    alone_ms: list[float] = []
    watched_ms: list[float] = []
    picture_ms: list[float] = []
    size = 0
    for i, batch in enumerate(simulate("random", vehicles=vehicles, seconds=seconds).batches()):
        viewer = live.join() if i % 2 else None
        began_s = time.process_time()
        pipeline.feed(batch)
        fed_s = time.process_time()
        if viewer is not None:
            live.draw()
            drawn_s = time.process_time()
            size = len(live.picture.data) if live.picture else 0
            live.leave(viewer)
        if i < SETTLE:
            continue
        (watched_ms if viewer else alone_ms).append(1e3 * (fed_s - began_s))
        if viewer is not None:
            picture_ms.append(1e3 * (drawn_s - fed_s))
    print(f"{vehicles:,} vehicles at 1 Hz for {seconds:g} s, processor time per second of traffic")
    print(f"  judged, nobody watches   {median(alone_ms):7.2f} ms")
    print(f"  judged, somebody does    {median(watched_ms):7.2f} ms")
    print(f"  one picture              {median(picture_ms):7.2f} ms, {size / 1000:,.0f} kB")
