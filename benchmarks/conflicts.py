"""Conflict search against BlueSky's: time and memory of both on the same traffic, from 100 to 100,000 aircraft.

    pip install 'watchkeeper[bluesky,plots]'
    watchkeeper bench conflicts [--sizes 100 1000 …] [--rounds 200] [--out RESULT.json]
    watchkeeper bench conflicts --plot docs/images/conflicts.svg --table docs/benchmarks/conflicts.md

BlueSky is bluesky-simulator from PyPI (MIT); its wheels for Linux bring the compiled detector, so pip is all it takes.
A detector that cannot be imported is named in the table and the others are measured. BlueSky is told our limits and
horizon instead of its own default of 300 s.

Each measurement is a process of its own, on one core and with one thread (conflict_run.py); traffic.py says what flies.
BlueSky compares every pair: past --compiled-max and --numpy-max, or where memory would not suffice, it is left out. A
p99 of fewer than 100 rounds is the slowest round. Times are elapsed ones, ratios those of processor time (medians):
on a busy machine short rounds slip through between two interruptions and long ones do not, which would flatter us.

Exit code 1 if a promise is broken. A promise whose sizes were not measured is neither kept nor broken.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

from watchkeeper.benchmarks import conflict_report as report
from watchkeeper.benchmarks.conflict_run import Measured, Name, Options
from watchkeeper.benchmarks.replay import ONE_THREAD
from watchkeeper.benchmarks.traffic import DENSITY_PER_10000_KM2
from watchkeeper.config.schema import DEFAULT

SIZES = (100, 1000, 2000, 5000, 10_000, 20_000, 25_000, 50_000, 100_000)
# Ours, without and with the futures of every pair.
OWN: tuple[Name, ...] = ("ours", "futures")
# Of a detector that needs seconds.
LEAST_ROUNDS = 3
# The NumPy detector's peak: some thirty matrices of float64.
NUMPY_BYTES_PER_PAIR = 240
LEFT_OUT = "its sizes were left out"
# Below this the pages of the process weigh more than the arrays.
MEMORY_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Row:
    """One detector at one size. Elapsed times, but for cpu_ms, a median too. `note` says why it was not measured."""

    n: int
    detector: Name
    note: str = ""
    rounds: int = 0
    min_ms: float = 0.0
    median_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    cpu_ms: float = 0.0
    pairs: int = 0
    bytes_per_aircraft: float = 0.0


@dataclass(frozen=True, slots=True)
class Promise:
    """What the figures must show. `value` is None where it was not measured."""

    text: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False
    note: str = LEFT_OUT

    @property
    def broken(self) -> bool:
        """Measured, and worse than promised."""
        if self.value is None:
            return False
        return self.value < self.limit if self.at_least else self.value > self.limit


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the promises hold."""
    conflict = DEFAULT.detectors.conflict
    parser = argparse.ArgumentParser(prog="watchkeeper bench conflicts", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--rounds", type=int, default=200, help="most rounds of each (200)")
    parser.add_argument(
        "--budget", type=float, default=15.0, metavar="S", help="begin no round of BlueSky's after so long (15)"
    )
    parser.add_argument(
        "--compiled-max", type=int, default=20_000, metavar="N", help="BlueSky's compiled one up to here"
    )
    parser.add_argument("--numpy-max", type=int, default=5000, metavar="N", help="BlueSky's NumPy one up to here")
    parser.add_argument("--density", type=float, default=DENSITY_PER_10000_KM2, help="aircraft per 10,000 km2 (20)")
    parser.add_argument("--horizon", type=float, default=conflict.horizon_s, metavar="S", help="look this far ahead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="everything as JSON")
    parser.add_argument("--plot", type=Path, help="time and memory over N, as .svg or .png (extra `plots`)")
    parser.add_argument("--table", type=Path, help="a Markdown page: what stands between its two markers is replaced")
    args = parser.parse_args(argv)

    core = max(os.sched_getaffinity(0))
    machine = _machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(
        f"one core (number {core}), load before {os.getloadavg()[0]:.2f}; {args.density:g} aircraft per 10,000 km2, "
        f"horizon {args.horizon:g} s, {conflict.separation_nm:g} NM, {conflict.vertical_ft:g} ft"
    )
    print(report.HEAD)
    rows: list[Row] = []
    largest_size = max(args.sizes)
    most: dict[Name, int] = {
        "ours": largest_size,
        "futures": largest_size,
        "compiled": args.compiled_max,
        "numpy": args.numpy_max,
    }
    for n in sorted(set(args.sizes)):
        for detector, largest in most.items():
            options = Options(
                detector=detector, n=n, rounds=args.rounds, budget_s=args.budget,
                least_rounds=args.rounds if detector in OWN else LEAST_ROUNDS, seed=args.seed,
                density_per_10000_km2=args.density, horizon_s=args.horizon, separation_nm=conflict.separation_nm,
                vertical_ft=conflict.vertical_ft, max_pairs=conflict.max_pairs,
            )  # fmt: skip
            rows.append(_row(options, largest, core))
            print(report.line(rows[-1], _of(rows, n, "ours")), flush=True)
    print()
    if report.disturbed(rows):
        print(report.DISTURBED)
    promises = promised(rows)
    for promise in promises:
        print(report.verdict(promise))
    if args.out:
        _write_json(args.out, machine, vars(args), rows, promises)
    if args.table:
        report.write_table(args.table, machine, rows, promises)
    if args.plot:
        report.plot(args.plot, rows)
    return int(any(promise.broken for promise in promises))


def promised(rows: Sequence[Row]) -> list[Promise]:
    """The promises of the project, with what these rows say about them."""
    ours = {row.n: row for row in rows if row.detector == "ours"}
    big = [row.bytes_per_aircraft for row in ours.values() if row.n >= MEMORY_FROM]
    peer = _of(rows, 10_000, "compiled")
    faster = peer.cpu_ms / ours[10_000].cpu_ms if peer and not peer.note else None
    why = peer.note if peer else LEFT_OUT
    judged = {row.n: row for row in rows if row.detector == "futures"}
    faster_judged = peer.cpu_ms / judged[10_000].cpu_ms if peer and not peer.note and 10_000 in judged else None
    growth = ours[100_000].cpu_ms / ours[25_000].cpu_ms if {25_000, 100_000} <= ours.keys() else None
    return [
        Promise("10,000 aircraft: speed over BlueSky's compiled detector", faster, 500.0, "x", True, why),
        Promise("50,000 aircraft: p99", ours[50_000].p99_ms if 50_000 in ours else None, 50.0, "ms"),
        Promise("100,000 aircraft: p99", ours[100_000].p99_ms if 100_000 in ours else None, 120.0, "ms"),
        Promise("25,000 to 100,000 aircraft at equal density: time", growth, 5.0, "x"),
        Promise(f"most memory an aircraft, from {MEMORY_FROM:,}", max(big, default=None), 300.0, "bytes"),
        Promise("10,000 aircraft with all futures: speed over the same", faster_judged, 500.0, "x", True, why),
        Promise(
            "50,000 aircraft with all futures: p99", judged[50_000].p99_ms if 50_000 in judged else None, 50.0, "ms"
        ),
    ]


def _of(rows: Sequence[Row], n: int, detector: Name) -> Row | None:
    return next((row for row in rows if (row.n, row.detector) == (n, detector)), None)


def _row(options: Options, most: int, core: int) -> Row:
    n, detector = options.n, options.detector
    if n > most:
        return Row(n, detector, f"left out: more than {most:,}")
    if detector == "numpy" and NUMPY_BYTES_PER_PAIR * n * n > _available_bytes():
        return Row(n, detector, f"left out: needs {NUMPY_BYTES_PER_PAIR * n * n / 1e9:.0f} GB of memory")
    done = subprocess.run(
        [sys.executable, "-m", "watchkeeper.benchmarks.conflict_run", msgspec.json.encode(options).decode()],
        env={**os.environ, **ONE_THREAD},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        last_words = done.stderr.decode().strip()[-200:]
        if detector in OWN:
            raise RuntimeError(f"exit code {done.returncode} at {n:,} aircraft: {last_words}")
        return Row(n, detector, f"failed with exit code {done.returncode} {last_words}")
    measured = msgspec.json.decode(done.stdout, type=Measured)
    if measured.missing:
        return Row(n, detector, f"not installed: {measured.missing}")
    ms = sorted(measured.ms)
    return Row(
        n, detector, "", len(ms), ms[0], median(ms), float(np.quantile(ms, 0.99, method="higher")), ms[-1],
        median(measured.cpu_ms), measured.pairs, measured.extra_bytes / n,
    )  # fmt: skip


def _available_bytes() -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def _machine() -> dict[str, str]:
    """What the figures depend on."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    cpu = model[1] if model else platform.machine()
    found = {"CPU": cpu, "Python": platform.python_version()}
    for name in ("numpy", "numba", "bluesky-simulator"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "(not installed)"
    return found


def _write_json(
    path: Path,
    machine: Mapping[str, str],
    arguments: Mapping[str, Any],
    rows: Sequence[Row],
    promises: Sequence[Promise],
) -> None:
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
    result = {"machine": machine, "arguments": settings, "rows": rows, "promises": promises}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
