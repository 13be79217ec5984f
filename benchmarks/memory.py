"""Where memory goes: by part of a start, and of a real daemon that waits or has a fleet to watch.

    watchkeeper bench memory [--drones 100] [--seconds 120] [--compare-with SRC]

Resident is all that the system counts as ours; of it, private is what is nobody else's and not on disk: libraries are
read from files, and shared with every other process that has them. The parts are those of a process that does what a
start does, one after the other. The daemon is `watchkeeper run` with a real broker; the fleet is simulated and
published at SPEED times its own pace, because memory goes with what is remembered and not with the time of day.
`--compare-with` measures the daemon of another source folder (the `src/` of a checkout) beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import run

from watchkeeper.benchmarks import live
from watchkeeper.benchmarks.conflict_run import status_bytes
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port

SPEED = 4.0
# Between two looks at the daemon's memory.
LOOK_S = 0.5
# After it is ready: until the connection and the first snapshot are made.
CALM_S = 3.0
PARTS = {
    "Python": "from watchkeeper.daemon.footprint import map_large_blocks; map_large_blocks()",
    "NumPy": "import numpy",
    "LLVM": "import llvmlite.binding",
    "Numba": "import numba",
    "ours, with aiohttp, msgspec and the Prometheus client": "from watchkeeper.daemon import app",
    "kernels": """
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.warmup import warm_up
warm_up(DEFAULT)""",
    "given back": "import gc; gc.collect(); from watchkeeper.daemon.footprint import give_back; give_back()",
    "an empty pipeline": "from watchkeeper.detectors.engine.pipeline import Pipeline; pipeline = Pipeline(DEFAULT)",
}
FIELDS = ("VmRSS", "RssAnon")


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drones", type=int, default=100, help="with GPS and an IMU at 50 Hz; ten aircraft for each")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the fleet's own time")
    parser.add_argument("--compare-with", type=Path, metavar="SRC", help="another source folder's daemon beside ours")
    args = parser.parse_args(argv)
    print(f"{'a start, part by part':56} {'resident':>12} {'private':>12}")
    before = (0.0, 0.0)
    for part, sizes in _parts():
        print(f"  {part:54} {sizes[0] - before[0]:+9.1f} MB {sizes[1] - before[1]:+9.1f} MB")
        before = sizes
    print(f"  {'together':54} {before[0]:9.1f} MB {before[1]:9.1f} MB\n")
    sources = {"": "a daemon"}
    if args.compare_with is not None:
        sources[str(args.compare_with.resolve())] = f"a daemon of {args.compare_with}"
    for source, title in sources.items():
        idle, watching = asyncio.run(_daemon(args, source))
        fleet = f"{title} with {10 * args.drones:,} aircraft, {args.drones:,} drones"
        for name, sizes in ((f"{title} that waits", idle), (fleet, watching)):
            print(f"{name:56} {sizes[0]:9.1f} MB {sizes[1]:9.1f} MB", flush=True)
    return 0


def _parts() -> list[tuple[str, tuple[float, float]]]:
    """Resident and private MB after each part."""
    # our own way to look would bring half of the parts with it
    look = f'print(*[l.split()[1] for l in open("/proc/self/status") if l.split(":")[0] in {FIELDS}])\n'
    program = "".join(f"{code}\n{look}" for code in PARTS.values())
    # the first time compiles, which is not what every other start costs
    for _ in range(2):
        done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rows = [[int(word) / 1024 for word in line.split()] for line in done.stdout.splitlines()]
    return [(part, (row[0], row[1])) for part, row in zip(PARTS, rows, strict=True)]


def _sizes(pid: int) -> tuple[float, float]:
    resident, private = (status_bytes(field, pid) / 2**20 for field in FIELDS)
    return resident, private


async def _daemon(args: argparse.Namespace, source: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """MB of a daemon that waits, and the most that it has while it watches a fleet."""
    options = argparse.Namespace(transport="", src=source, state=True, tick=1.0, lateness=2.0, prefix=[])
    async with EmbeddedBroker() as broker, live.daemon(options, broker.url, free_port()) as pid:
        await asyncio.sleep(CALM_S)
        idle = _sizes(pid)
        words = ["mixed", "--vehicles", str(11 * args.drones), "--seconds", str(args.seconds)]
        most = idle
        code = "import sys; from watchkeeper.daemon.cli import main; sys.exit(main())"
        load = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, "simulate", *words, "--to-mqtt", broker.url, "--speed", str(SPEED)
        )
        while load.returncode is None:
            await asyncio.sleep(LOOK_S)
            most = max(most, _sizes(pid))
    if load.returncode:
        raise RuntimeError(f"the fleet was not published: exit code {load.returncode}")
    return idle, most


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
