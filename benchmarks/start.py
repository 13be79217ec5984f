"""What a first start costs: a replay with empty caches, and a second one.

    watchkeeper bench start [--rounds 3] [--compare-with SRC]

Each replay is a process of its own over half a minute of one drone, or of ten aircraft; CPU time includes that of the
processes which compile. `--compare-with` does the same in turns with another source folder of Watchkeeper (the `src/`
of a checkout), in the same environment, and prints the ratios of the medians.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LOGS = {"one drone": ("drones", 1), "ten aircraft": ("random", 10)}
SECONDS = 30.0
RUN = "import sys; from watchkeeper.daemon.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Start:
    """One process with those that it started."""

    wall_s: float
    cpu_s: float


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench start", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compare-with", type=Path, metavar="SRC", help="another source folder, measured in turns")
    args = parser.parse_args(argv)
    sources = {"here": Path(__file__).parents[1].parent}
    if args.compare_with is not None:
        sources["other"] = args.compare_with.resolve()
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.2f}, {args.rounds} rounds: median, least and most")
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: _logs(source, Path(folder), name) for name, source in sources.items()}
        found: dict[tuple[str, str], list[float]] = {}
        for number in range(args.rounds):
            for name, source in sources.items():
                for title, log in logs[name].items():
                    cache = Path(folder) / f"{name} {title} {number}"
                    for order in ("first", "second"):
                        start = _start(source, cache, RUN, "replay", str(log), "--alarms", "/dev/null")
                        for unit, value in (("wall s", start.wall_s), ("CPU s", start.cpu_s)):
                            found.setdefault((f"{order} replay of {title}, {unit}", name), []).append(value)
    _print(found, list(sources))
    return 0


def _logs(source: Path, folder: Path, name: str) -> dict[str, Path]:
    """The same flights for each source folder, in the format that it knows."""
    logs = {}
    for title, (scenario, vehicles) in LOGS.items():
        logs[title] = folder / f"{name} {scenario}.wklog"
        words = (scenario, "--vehicles", str(vehicles), "--seconds", str(SECONDS), "--out", str(logs[title]))
        _start(source, folder / f"{name} simulate", RUN, "simulate", *words)
    return logs


def _start(source: Path, cache: Path, program: str, *words: str) -> Start:
    env = os.environ | {"PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    env.pop("NUMBA_CACHE_DIR", None)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", program, *words], env=env, capture_output=True, check=True)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _print(found: dict[tuple[str, str], list[float]], names: list[str]) -> None:
    for title in dict.fromkeys(title for title, _ in found):
        parts = []
        for name in names:
            values = found[title, name]
            parts.append(f"{name} {median(values):6.1f} ({min(values):.1f} to {max(values):.1f})")
        if len(names) > 1:
            ratio = median(found[title, names[0]]) / median(found[title, names[1]])
            parts.append(f"ratio {ratio:.2f}")
        print(f"{title:40} " + "   ".join(parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
