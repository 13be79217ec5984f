"""`watchkeeper bench signals`: how many times faster than real time the signals of a fleet are judged, on one core.

1,000 vehicles with 50 signals at 1 Hz by default, from a recorded log to alarms through the whole pipeline, next to a
plain Python loop that keeps an exponential mean and deviation of each signal and does nothing else.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.simulate.signals import SignalSource

# Values that the plain loop is timed with; the rest is in proportion.
PLAIN_VALUES = 200_000


def main(argv: Sequence[str]) -> int:
    """Write a log, judge it, print both rates."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench signals", description=__doc__)
    parser.add_argument("--vehicles", type=int, default=1000)
    parser.add_argument("--signals", type=int, default=50, help="of each vehicle")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the recording is")
    parser.add_argument("--rate", type=float, default=1.0, help="values a second of each signal")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "signals.wklog"
        _write(log, args)
        _judge(log, float("inf") if args.seconds < 2.0 else 2.0)  # compile first
        for _ in range(args.rounds):
            cpu, wall, values, alarms = _judge(log)
            print(
                f"{args.vehicles:,} vehicles x {args.signals} signals at {args.rate:g} Hz, {args.seconds:g} s, "
                f"{log.stat().st_size / max(values, 1):.1f} bytes a value: {values:,} values in {wall:.2f} s "
                f"({cpu:.2f} s CPU), {args.seconds / cpu:.1f} times real time on one core, {alarms} alarms"
            )
        plain = _plain(log)
        print(f"a plain Python loop with one mean a signal: {args.seconds / (plain * values):.1f} times real time")
    return 0


def _write(log: Path, args: argparse.Namespace) -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    source = SignalSource(
        rng, vehicles=args.vehicles, signals=args.signals, seconds=args.seconds, rate_hz=args.rate, faults=True
    )
    with LogWriter(log) as writer:
        for batch in source.batches(1_700_000_000.0):
            writer.write(batch)


def _judge(log: Path, seconds: float = math.inf) -> tuple[float, float, int, int]:
    pipeline = Pipeline(Config())
    cpu, wall, raised, values = time.process_time(), time.perf_counter(), 0, 0
    for batch in LogReader(log).batches(stop=1_700_000_000.0 + seconds):
        raised += sum(event.state == "raised" for event in pipeline.feed(batch))
        values += len(batch)
    raised += sum(event.state == "raised" for event in pipeline.finish())
    return time.process_time() - cpu, time.perf_counter() - wall, values, raised


def _plain(log: Path) -> float:
    """Seconds a value."""
    state: dict[tuple[int, float, float], list[float]] = {}
    batch = next(iter(LogReader(log).batches()))
    cols = batch.kinds[Kind.SIGNAL]
    rows = list(
        zip(
            cols.vid.tolist(),
            *cols.data[SIGNAL.name_0 : SIGNAL.name_0 + 2].tolist(),
            cols.data[0].tolist(),
            strict=True,
        )
    )
    began = time.process_time()
    n = 0
    while n < PLAIN_VALUES:
        for vid, a, b, x in rows:
            own = state.setdefault((vid, a, b), [x, 0.0])
            off = x - own[0]
            own[0] += 0.03 * off
            own[1] += 0.03 * (off * off - own[1])
        n += len(rows)
    return (time.process_time() - began) / n
