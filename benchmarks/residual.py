"""Speed of the GPS/IMU residuals: 1,000 drones at 100 Hz IMU and 5 Hz GPS, from a log on disk to alarms, on one core.

    watchkeeper bench residual [--vehicles 1000] [--seconds 60] [--rounds 3]

The whole path is measured: reading the log, decoding, event time, every registered detector with its defaults, debounce
and the alarms file. The log must outlast the warm-up of `gps_imu`, or its dearest part would not run. The speed is
given in elapsed time and in processor time: on a busy machine the second is the one that means something, and the
promise of ten times real time is held against it. The baseline is the plain way on the same samples: one MessagePack
message per sample into a dict per vehicle, nothing judged.

Exit code 1 if the promise is broken.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from watchkeeper.benchmarks.replay import Case, pinned, replay_once, write_log
from watchkeeper.config.schema import DEFAULT

IMU_HZ, GPS_HZ = 100.0, 5.0
# What was promised: times real time.
PROMISE = 10.0


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench residual", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vehicles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the log (60)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    warmup_s = DEFAULT.detectors.gps_imu.warmup_s
    if args.seconds <= warmup_s:
        parser.error(f"--seconds {args.seconds:g}: gps_imu judges nothing before {warmup_s:g} s")
    core = max(os.sched_getaffinity(0))
    print(f"one core of {os.cpu_count()} (number {core}), load before {os.getloadavg()[0]:.2f}, {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder), core, args.vehicles, args.seconds, args.rounds)


def _measure(folder: Path, core: int, vehicles: int, seconds: float, rounds: int) -> int:
    case = Case("drones", "drones", vehicles, IMU_HZ, seconds, 0)
    log = write_log(case, folder / "drones.wklog", seconds)
    replay_once(log, folder, core)  # compiles the kernels, if this is the first run after an installation
    runs = [replay_once(log, folder, core) for _ in range(rounds)]
    elapsed, cpu = (
        sorted(seconds / s for s in times) for times in zip(*((r.wall_s, r.cpu_s) for r in runs), strict=True)
    )
    baseline_us = float(pinned(core, ["-m", "watchkeeper.benchmarks.replay", str(log)])) * 1e6
    cpu_us = 1e6 * median(run.cpu_s / run.samples for run in runs)
    print(f"{vehicles:,} drones, {IMU_HZ:g} Hz IMU, {GPS_HZ:g} Hz GPS, {seconds:g} s: {runs[0].samples:,} samples")
    print(f"  detectors       {', '.join(runs[0].detectors)}")
    print(f"  elapsed         {median(elapsed):5.1f} times real time ({elapsed[0]:.1f} to {elapsed[-1]:.1f})")
    print(
        f"  processor time  {median(cpu):5.1f} times real time ({cpu[0]:.1f} to {cpu[-1]:.1f}), {cpu_us:.2f} us/sample"
    )
    print(f"  plain loop      {baseline_us:.2f} us/sample, decoding only: {baseline_us / cpu_us:.1f} times as much")
    print(f"  peak memory     {max(run.peak_mb for run in runs):,.0f} MB")
    kept = median(cpu) >= PROMISE
    print(f"  {PROMISE:g} times real time: {'kept' if kept else 'BROKEN'}")
    return 0 if kept else 1
