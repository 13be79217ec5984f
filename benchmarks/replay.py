"""Speed and memory of a replay: `.wklog` → pipeline with every registered detector → alarms file, pinned to one core.

    watchkeeper bench replay [--rounds 5] [--aircraft 1000] [--drones 200] [--seconds 600 120] [--compare-with SRC]

Two logs are simulated, ADS-B at 1 Hz and IMU at 100 Hz with GPS at 5 Hz, each in two lengths. The speed is that of
the replay command itself; starting Python and loading compiled kernels is printed as well. Where CPU time is well
below elapsed time, something else kept the core busy and the speed is too low. Peak memory of the short and of the
four times longer log says whether it grows with length. The baseline is the plain way: decode each sample from
MessagePack into a dict and keep the latest of each vehicle, on the same samples and core. `--compare-with` replays
the same samples in turns with another source folder of Watchkeeper (the `src/` of a checkout), each from a log as it
writes it, and prints the ratios of each round: two runs that follow each other see the same machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from watchkeeper.streams.codec.encode import encode_sample
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import FIELDS
from watchkeeper.streams.simulate import simulate

# The short IMU log, 30 s by default, must outlast the 20 s that gps_imu learns before it judges anything.
LONGER = 4
BASELINE_SAMPLES = 100_000
# One core means one thread in every library that would take more.
ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of log to measure."""

    title: str
    scenario: str
    vehicles: int
    rate_hz: float
    seconds: float
    target_per_s: int


@dataclass(frozen=True, slots=True)
class Run:
    """One replay in a process of its own."""

    detectors: tuple[str, ...]
    samples: int
    wall_s: float
    cpu_s: float
    total_s: float
    peak_mb: float


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench replay", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--aircraft", type=int, default=1000)
    parser.add_argument("--drones", type=int, default=200)
    parser.add_argument("--seconds", type=float, nargs=2, default=(600.0, 120.0), metavar=("ADSB", "IMU"))
    parser.add_argument("--compare-with", type=Path, metavar="SRC", help="another source folder, measured in turns")
    args = parser.parse_args(argv)
    cases = [
        Case("ADS-B 1 Hz", "random", args.aircraft, 1.0, args.seconds[0], 500_000),
        Case("IMU 100 Hz + GPS 5 Hz", "drones", args.drones, 100.0, args.seconds[1], 1_000_000),
    ]
    core = max(os.sched_getaffinity(0))
    print(f"one core of {os.cpu_count()} (number {core}), load before {os.getloadavg()[0]:.2f}, {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if args.compare_with is None:
                _measure(case, Path(folder), core, args.rounds)
            else:
                _compare(case, args.compare_with.resolve(), Path(folder), core, args.rounds)
    return 0


def _compare(case: Case, other: Path, folder: Path, core: int, rounds: int) -> None:
    """The same samples with this source folder and another one, in turns."""
    theirs, ours = folder / f"{case.scenario}-other.wklog", folder / f"{case.scenario}-here.wklog"
    scenario = (case.scenario, "--vehicles", str(case.vehicles), "--rate", str(case.rate_hz), "--seed", "1")
    words = ("simulate", *scenario, "--seconds", str(case.seconds), "--out", str(theirs))
    pinned(core, ["-m", "watchkeeper.daemon.cli", *words], other)
    with LogWriter(ours) as writer:
        for batch in open_log(theirs).batches():
            writer.write(batch)
    for log, source in ((ours, None), (theirs, other)):
        replay_once(log, folder, core, source)  # compiles the kernels
    pairs = []
    for number in range(rounds):
        order = [(ours, None), (theirs, other)]
        runs = {source: replay_once(log, folder, core, source) for log, source in order[:: 1 if number % 2 else -1]}
        pairs.append((runs[None], runs[other]))
    print(f"\n{case.title}, {case.vehicles:,} vehicles: {pairs[0][0].samples:,} samples, compared with {other}")
    for title, seconds in (("samples/s", "wall_s"), ("samples per CPU s", "cpu_s")):
        here, there = ([run.samples / getattr(run, seconds) for run in runs] for runs in zip(*pairs, strict=True))
        ratios = sorted(ours / theirs for ours, theirs in zip(here, there, strict=True))
        print(
            f"  {title:18} here {median(here):>10,.0f}, other {median(there):>10,.0f}, "
            f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


def _measure(case: Case, folder: Path, core: int, rounds: int) -> None:
    short = write_log(case, folder / f"{case.scenario}-short.wklog", case.seconds / LONGER)
    long = write_log(case, folder / f"{case.scenario}-long.wklog", case.seconds)
    replay_once(short, folder, core)  # compiles the kernels, if this is the first run after an installation
    short_run = replay_once(short, folder, core)
    runs = [replay_once(long, folder, core) for _ in range(rounds)]
    rates = sorted(run.samples / run.wall_s for run in runs)
    rate = median(rates)
    start_s = median(run.total_s - run.wall_s for run in runs)
    baseline_us = float(pinned(core, [__file__, str(long)])) * 1e6
    peak_mb = max(run.peak_mb for run in runs)
    print(f"\n{case.title}, {case.vehicles:,} vehicles: {runs[0].samples:,} samples, {long.stat().st_size:,} bytes")
    print(f"  detectors   {', '.join(runs[0].detectors)}")
    cpu_us = median(run.cpu_s / run.samples for run in runs) * 1e6
    print(
        f"  replay      {rate:>12,.0f} samples/s  ({rates[0]:,.0f} to {rates[-1]:,.0f}), {1e6 / rate:.2f} us/sample, "
        f"of which CPU {cpu_us:.2f}; target {case.target_per_s:,}: {'met' if rate >= case.target_per_s else 'missed'}; "
        f"start-up {start_s:.1f} s"
    )
    print(
        f"  plain loop  {1e6 / baseline_us:>12,.0f} samples/s, {baseline_us:.2f} us/sample, decoding only: "
        f"the replay is {baseline_us * rate / 1e6:.1f} times as fast"
    )
    print(
        f"  peak memory {short_run.peak_mb:,.0f} MB for {short_run.samples:,} samples, {peak_mb:,.0f} MB for "
        f"{LONGER} times as many: {peak_mb - short_run.peak_mb:+.0f} MB"
    )


def write_log(case: Case, path: Path, seconds: float) -> Path:
    """Simulate a case for so long into a log."""
    simulation = simulate(case.scenario, seed=1, vehicles=case.vehicles, seconds=seconds, rate_hz=case.rate_hz)
    with LogWriter(path) as writer:
        for batch in simulation.batches():
            writer.write(batch)
    return path


def replay_once(log: Path, folder: Path, core: int, source: Path | None = None) -> Run:
    """Replay a log in a process of its own on this core, by this source folder or another one."""
    command = ["-m", "watchkeeper.daemon.cli", "replay", str(log), "--alarms", str(folder / "alarms.jsonl")]
    began_s = time.perf_counter()
    summary: dict[str, Any] = msgspec.json.decode(pinned(core, [*command, "--summary", "-", "--timing"], source))
    total_s = time.perf_counter() - began_s
    timing = summary["timing"]
    samples = sum(summary["samples"].values())
    return Run(tuple(summary["detectors"]), samples, timing["wall_s"], timing["cpu_s"], total_s, timing["peak_rss_mb"])


def pinned(core: int, arguments: Sequence[str], source: Path | None = None) -> bytes:
    """What a Python process on this one core prints. `source`: the folder that it imports Watchkeeper from."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **ONE_THREAD, **({} if source is None else {"PYTHONPATH": str(source)})},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr.decode()}")
    return done.stdout


def baseline(log: Path) -> float:
    """Seconds per sample of the plain way: one MessagePack message per sample into a dict per vehicle."""
    messages: list[tuple[str, bytes]] = []
    for batch in open_log(log).batches():
        for kind, cols in batch.kinds.items():
            names = [field.name for field in FIELDS[kind]]
            for vid, t, row in zip(cols.vid.tolist(), cols.t.tolist(), cols.data.T.tolist(), strict=True):
                values = dict(zip(names, row, strict=True))
                messages.append((batch.ids[vid], encode_sample(kind, t, values, encoding="msgpack")))
        if len(messages) >= BASELINE_SAMPLES:
            break
    latest: dict[str, dict[str, Any]] = {}
    began_s = time.perf_counter()
    for name, payload in messages:
        latest.setdefault(name, {}).update(msgspec.msgpack.decode(payload))
    return (time.perf_counter() - began_s) / len(messages)


if __name__ == "__main__":
    print(baseline(Path(sys.argv[1])))
