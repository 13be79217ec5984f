"""A replay by several workers against the same replay by one Pipeline: wall time, and processor time of each process.

    watchkeeper bench workers [--workers 2] [--vehicles 1000] [--seconds 60] [--rounds 3]

Drones with IMU at 100 Hz and GPS at 5 Hz, from a log on disk to the alarms file, in turns: one Pipeline on one core,
then the workers on as many cores as there are workers (`--cores` for another number). The alarms must be the same
bytes. On a busy machine wall time says what the neighbours did; the processor time of the slowest process against that
of the single Pipeline says how far the split itself goes. Starting the processes is in neither.

As a control as many replays as there are cores run at once, each on a core of its own and with nothing to do with each
other: what they are faster than one by is what these cores can give, because they share memory and caches.

Exit code 1 if the bytes differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from watchkeeper.benchmarks.replay import ONE_THREAD, Case, write_log

IMU_HZ = 100.0


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench workers", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, help="cores that the workers may use (default: as many as workers)")
    parser.add_argument("--vehicles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the log (60)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    here = sorted(os.sched_getaffinity(0))
    cores = here[-(args.cores or args.workers) :]
    print(f"{len(cores)} of {len(here)} cores, load before {os.getloadavg()[0]:.2f}, {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case = Case("drones", "drones", args.vehicles, IMU_HZ, args.seconds, 0)
        log = write_log(case, folder / "drones.wklog", args.seconds)
        _replay(log, folder, cores[:1], None)  # compiles what is not compiled yet
        rounds = []
        for _ in range(args.rounds):
            at_once = _at_once(log, folder, cores)
            rounds.append((_replay(log, folder, cores[:1], None), _replay(log, folder, cores, args.workers), at_once))
    same = all(alone["bytes"] == shared["bytes"] for alone, shared, _ in rounds)
    samples = sum(rounds[0][0]["samples"].values())
    events = rounds[0][0]["bytes"].count(b"\n")
    print(f"{args.vehicles:,} drones, {args.seconds:g} s: {samples:,} samples, {events:,} events")
    for number, (alone, shared, at_once) in enumerate(rounds, 1):
        one, many = alone["timing"], shared["timing"]
        used = {"here": many["cpu_s"]} | {name: w["cpu_s"] for name, w in shared["workers"].items()}
        slowest = max(used.values())
        processes = ", ".join(f"{name} {cpu_s:.1f}" for name, cpu_s in used.items())
        print(
            f"round {number}: one Pipeline {one['wall_s']:.1f} s wall, {one['cpu_s']:.1f} s CPU; "
            f"{args.workers} workers {many['wall_s']:.1f} s wall, {processes} s CPU: "
            f"{one['wall_s'] / many['wall_s']:.2f} times by wall, {one['cpu_s'] / slowest:.2f} by the slowest process, "
            f"{sum(used.values()) / one['cpu_s']:.2f} of the CPU; "
            f"{len(cores)} replays at once {max(at_once):.1f} s: {len(cores) * one['wall_s'] / max(at_once):.2f} times"
        )
    by_wall = median(alone["timing"]["wall_s"] / shared["timing"]["wall_s"] for alone, shared, _ in rounds)
    control = median(len(cores) * alone["timing"]["wall_s"] / max(at_once) for alone, _, at_once in rounds)
    words = "same bytes" if same else "OTHER BYTES"
    print(f"median {by_wall:.2f} times by wall, {control:.2f} for replays at once; {words}")
    return 0 if same else 1


def _at_once(log: Path, folder: Path, cores: Sequence[int]) -> list[float]:
    """The wall times of one replay on each core, all at the same time."""
    places = [folder / str(core) for core in cores]
    for place in places:
        place.mkdir(exist_ok=True)
    with ThreadPoolExecutor(len(cores)) as pool:
        done = pool.map(lambda at: _replay(log, at[0], [at[1]], None), zip(places, cores, strict=True))
        return [float(summary["timing"]["wall_s"]) for summary in done]


def _replay(log: Path, folder: Path, cores: Sequence[int], workers: int | None) -> dict[str, Any]:
    alarms = folder / "alarms.jsonl"
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", str(log), "--alarms", str(alarms)]
    command += ["--summary", "-", "--timing", *([] if workers is None else ["--workers", str(workers)])]
    done = subprocess.run(
        command,
        env={**os.environ, **ONE_THREAD},
        preexec_fn=lambda: os.sched_setaffinity(0, set(cores)),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    summary: dict[str, Any] = msgspec.json.decode(done.stdout)
    return summary | {"bytes": alarms.read_bytes()}
