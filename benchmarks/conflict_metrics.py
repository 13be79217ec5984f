"""Speed of `evaluate conflicts`, from files to metrics: episodes of 150 steps and 10 agents; baseline: plain Python.

    watchkeeper bench conflict-metrics [--episodes 10000] [--jobs 2] [--plain 20]

Different episodes are written as MessagePack files once (not timed); then each is read and evaluated as often as it
takes, by the same function and processes as the command. The start of the processes and the loading of compiled kernels
are in the time. CPU time is printed as well: where it is well below elapsed time times processes, something else kept
the cores busy. The plain version (plain/conflicts.py) reads the same files on one core.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.benchmarks.plain.conflicts import plain_metrics
from watchkeeper.evaluation.conflicts.command import HallucinationDetector, evaluate_file
from watchkeeper.evaluation.shared.counted import counted

STEPS, AGENTS, STEP_S = 150, 10, 10.0
DIFFERENT = 200
TARGET_S, TARGET_EPISODES = 60.0, 10_000


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench conflict-metrics", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--episodes", type=int, default=TARGET_EPISODES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plain", type=int, default=20, help="episodes for the plain version")
    args = parser.parse_args(argv)
    detector = HallucinationDetector()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.msgpack" for seed in range(min(DIFFERENT, args.episodes))]
        for seed, path in enumerate(paths):
            path.write_bytes(msgspec.msgpack.encode(random_trajectory(seed)))
        work = [paths[i % len(paths)] for i in range(args.episodes)]
        size = sum(path.stat().st_size for path in paths) / len(paths)
        print(
            f"{args.episodes:,} episodes of {STEPS} steps and {AGENTS} agents ({len(paths)} different, "
            f"{size:,.0f} bytes each), {args.jobs} processes on {len(os.sched_getaffinity(0))} cores, "
            f"load before {os.getloadavg()[0]:.2f}"
        )
        evaluate_file(paths[0], detector=detector)  # compiles the kernels, if this is the first run ever
        began_s, began_cpu_s = time.perf_counter(), _cpu_s()
        counted(partial(evaluate_file, detector=detector), work, "evaluating", jobs=args.jobs)
        ours_s, ours_cpu_s = time.perf_counter() - began_s, _cpu_s() - began_cpu_s
        began_cpu_s = _cpu_s()
        for path in work[: args.plain]:
            plain_metrics(msgspec.msgpack.decode(path.read_bytes()))
        plain_cpu_s = (_cpu_s() - began_cpu_s) / max(1, args.plain)
    each_s, each_cpu_s = ours_s / args.episodes, ours_cpu_s / args.episodes
    met = "met" if each_s * TARGET_EPISODES < TARGET_S else "missed"
    print(
        f"  evaluate    {ours_s:8.1f} s, {each_s * 1e3:.2f} ms/episode; CPU {ours_cpu_s:.1f} s, {each_cpu_s * 1e3:.2f} "
        f"ms/episode\n  target      {each_s * TARGET_EPISODES:8.1f} s for {TARGET_EPISODES:,}; {TARGET_S:g} s: {met}; "
        f"on free cores about {each_cpu_s * TARGET_EPISODES / args.jobs:.0f} s"
    )
    print(f"  plain loop  {plain_cpu_s * 1e3:8.1f} ms of CPU/episode, {args.plain} episodes, 16 of the metrics")
    print(f"  ratio       {plain_cpu_s / each_cpu_s:8.1f} times the CPU of ours, start-up included")
    return 0


def _cpu_s() -> float:
    """CPU time of this process and of those it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def random_trajectory(seed: int, steps: int = STEPS, agents: int = AGENTS) -> dict[str, Any]:
    """Traffic in an area of a hundred miles: everyone has a waypoint, is turned now and then, and conflicts happen."""
    rng = np.random.default_rng(seed)
    lat, lon = 52.0 + rng.uniform(-0.8, 0.8, agents), 5.0 + rng.uniform(-1.3, 1.3, agents)
    way_lat, way_lon = 52.0 + rng.uniform(-0.8, 0.8, agents), 5.0 + rng.uniform(-1.3, 1.3, agents)
    heading, speed = rng.uniform(0.0, 360.0, agents), rng.uniform(220.0, 280.0, agents)
    names = [f"A{i + 1}" for i in range(agents)]
    positions, actions = [], []
    headings, speeds = np.empty((2, agents, steps))
    for k in range(steps):
        busy = rng.random(agents) < 0.15
        turn = np.where(busy, rng.uniform(-18.0, 18.0, agents), rng.uniform(-2.0, 2.0, agents))
        faster = np.where(busy, rng.uniform(-10.0, 10.0, agents), 0.0)
        positions.append({n: (float(a), float(b)) for n, a, b in zip(names, lat, lon, strict=True)})
        actions.append({n: [float(a), float(b)] for n, a, b in zip(names, turn, faster, strict=True)})
        headings[:, k], speeds[:, k] = heading, speed
        heading = (heading + turn) % 360.0
        moved_deg = speed * STEP_S / 3600.0 / 60.0
        lat = lat + moved_deg * np.cos(np.radians(heading))
        lon = lon + moved_deg * np.sin(np.radians(heading)) / np.cos(np.radians(lat))
    return {
        "positions": positions,
        "actions": actions,
        "timestamps": [STEP_S * k for k in range(steps)],
        "agents": {n: {"headings": headings[i].tolist(), "speeds": speeds[i].tolist()} for i, n in enumerate(names)},
        "waypoints": {n: {"lat": float(way_lat[i]), "lon": float(way_lon[i])} for i, n in enumerate(names)},
        "scenario_metadata": {"seed": seed, "shift": ("none", "wind")[seed % 2]},
    }
