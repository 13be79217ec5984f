"""Hausdorff, DTW and EDR of two long trajectories: time compared with plain Python in the same run, and memory.

    watchkeeper bench tracks [--points 2000] [--memory-points 20000] [--rounds 5] [--out RESULT.json]

Plain Python is the textbook on lists (plain/tracks.py). It runs once, because it needs seconds, and must give the same
figures. Each side is one thread; times are processor time, because others may share the machine. Ours is the median of
the rounds, with degrees to unit vectors counted and the compilation left out.

Memory is how far the resident set's peak rises above what the process held before, while ours compares two trajectories
of --memory-points in a process of its own, and what the whole matrix of distances would take.

Exit code 1 if a ratio is below 20, a figure differs, or memory is more than a hundredth of the matrix.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from watchkeeper.benchmarks.conflict_run import settle, status_bytes
from watchkeeper.benchmarks.plain import tracks as plain
from watchkeeper.benchmarks.replay import ONE_THREAD
from watchkeeper.evaluation.tracks.command import dtw_km, edr, hausdorff_km
from watchkeeper.streams.batch import F8

LEAST_RATIO = 20.0
MOST_MEMORY_SHARE = 0.01
# The two add up millions of terms in another order of rounding.
SAME = 1e-9
HEAD = (
    f"{'metric':11}{'points':>8}{'ours ms':>10}{'plain ms':>11}{'ratio':>8}{'memory at':>12}{'extra':>10}{'matrix':>12}"
)
OURS: dict[str, Callable[[F8, F8], float]] = {"hausdorff": hausdorff_km, "dtw": dtw_km, "edr": edr}
PLAIN: dict[str, Callable[[plain.Line, plain.Line], float]] = {
    "hausdorff": plain.hausdorff_km,
    "dtw": plain.dtw_km,
    "edr": plain.edr,
}


class Row(msgspec.Struct, frozen=True):
    """One metric: processor time of both, and the memory of ours."""

    metric: str
    points: int
    ours_ms: float
    plain_ms: float
    memory_points: int
    extra_bytes: int
    value: float
    plain_value: float

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.plain_ms / self.ours_ms

    @property
    def matrix_bytes(self) -> int:
        """What all distances at once would take."""
        return 8 * self.memory_points**2

    @property
    def problems(self) -> list[str]:
        """Promises that this row breaks."""
        broken = []
        if self.ratio < LEAST_RATIO:
            broken.append(f"{self.ratio:.1f} times as fast, {LEAST_RATIO:g} promised")
        if abs(self.value - self.plain_value) > SAME * abs(self.plain_value):
            broken.append(f"{self.value!r} is not plain Python's {self.plain_value!r}")
        if self.extra_bytes > MOST_MEMORY_SHARE * self.matrix_bytes:
            broken.append(f"{self.extra_bytes:,} bytes are more than a hundredth of the matrix")
        return broken


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the promises hold."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench tracks", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--points", type=int, default=2000, metavar="N", help="of each trajectory (2000)")
    parser.add_argument("--memory-points", type=int, default=20_000, metavar="N", help="for the memory (20000)")
    parser.add_argument("--rounds", type=int, default=5, help="of ours (5)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="everything as JSON")
    args = parser.parse_args(argv)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.2f}")
    print(HEAD)
    rows = []
    for metric in OURS:
        rows.append(_measure(metric, args.points, args.memory_points, args.rounds, args.seed))
        row = rows[-1]
        print(
            f"{metric:11}{row.points:>8,}{row.ours_ms:>10.2f}{row.plain_ms:>11,.0f}{row.ratio:>7,.0f}x"
            f"{row.memory_points:>12,}{row.extra_bytes / 1e6:>7.2f} MB{row.matrix_bytes / 1e6:>9,.0f} MB",
            flush=True,
        )
    problems = [f"{row.metric}: {problem}" for row in rows for problem in row.problems]
    print(
        "\n".join(f"MISS {problem}" for problem in problems)
        or "ok   same figures, all ratios 20 or more, memory linear"
    )
    if args.out:
        args.out.write_bytes(msgspec.json.encode([msgspec.to_builtins(row) | {"ratio": row.ratio} for row in rows]))
    return int(bool(problems))


def walks(points: int, seed: int) -> tuple[F8, F8]:
    """Two vehicles that wander from Paris in steps of some 100 m, and meet now and then."""
    steps = np.random.default_rng(seed).normal(0.0, 0.001, (2, points, 2))
    a, b = np.array((48.85, 2.35)) + np.cumsum(steps, axis=1)
    return a, b


def _measure(metric: str, points: int, memory_points: int, rounds: int, seed: int) -> Row:
    a, b = walks(points, seed)
    ours = OURS[metric]
    ours(a[:2], b[:2])  # compiles
    times_ms, value = [], 0.0
    for _ in range(rounds):
        value, took_ms = _timed(lambda: ours(a, b))
        times_ms.append(took_ms)
    lines: list[plain.Line] = [[(lat, lon) for lat, lon in track.tolist()] for track in (a, b)]
    plain_value, plain_ms = _timed(lambda: PLAIN[metric](*lines))
    command = [sys.executable, "-m", "watchkeeper.benchmarks.tracks", metric, str(memory_points), str(seed)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, check=True)
    return Row(metric, points, median(times_ms), plain_ms, memory_points, int(done.stdout), value, plain_value)


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    began_ns = time.process_time_ns()
    value = work()
    return value, (time.process_time_ns() - began_ns) / 1e6


def memory(metric: str, points: int, seed: int) -> int:
    """Bytes by which the peak of this process rises during one comparison."""
    a, b = walks(points, seed)
    OURS[metric](a[:2], b[:2])
    before_bytes = settle()
    OURS[metric](a, b)
    return status_bytes("VmHWM") - before_bytes


if __name__ == "__main__":
    print(memory(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
