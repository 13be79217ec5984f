"""`make mutants`: how many small changes to the source no test notices, and which.

    make mutants                               a sample of every room
    make mutants ARGS="debounce journal"       these rooms
    make mutants ARGS="--each 0 debounce"      every mutant, no sample

Exit code 1 when the share of mutants that are noticed is below --least.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator

from tools.mutants.mutate import mutants
from tools.mutants.rooms import ROOMS
from tools.mutants.trial import SURVIVED, Task, tried
from tools.rooms import ROOT

# Loaded once, before the first fork; nothing of our own, because that may be what is mutated.
LIBRARIES = ("numpy", "numba", "msgspec", "hypothesis", "prometheus_client", "aiohttp")
PROGRESS = 50


def main() -> int:
    """The command."""
    args = _arguments()
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "tools.mutants", *sys.argv[1:]])  # noqa: S606 - ourselves
    for name in LIBRARIES:
        importlib.import_module(name)
    tasks = list(_tasks(args.rooms or list(ROOMS), args.each, args.seed))
    count, noticed = Counter[str](), Counter[str]()
    for task, found in tried(tasks, args.workers):
        count[task.room] += 1
        if found == SURVIVED:
            print(f"  {task.module}:{task.mutant}", flush=True)
        else:
            noticed[task.room] += 1
        if count.total() % PROGRESS == 0:
            not_noticed = count.total() - noticed.total()
            print(f"{count.total()} of {len(tasks)} tried, {not_noticed} not noticed", file=sys.stderr, flush=True)
    print(f"\n{'room':<12}{'mutants':>8}{'noticed':>9}{'score':>7}")
    for room in count:
        print(f"{room:<12}{count[room]:>8}{noticed[room]:>9}{noticed[room] / count[room]:>7.2f}")
    print(f"{'all':<12}{count.total():>8}{noticed.total():>9}{noticed.total() / count.total():>7.2f}")
    return int(noticed.total() < args.least * count.total())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants", description="Change the source in one place at a time; a test should notice.",
        epilog='example: make mutants ARGS="--each 0 debounce"',
    )  # fmt: skip
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (all)")
    parser.add_argument("--each", type=int, default=40, help="mutants of each module, chosen at random; 0: all (40)")
    parser.add_argument("--seed", type=int, default=0, help="of that choice (0)")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be noticed (0.9)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    args = parser.parse_args()
    if unknown := set(args.rooms) - set(ROOMS):
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    return args


def _tasks(rooms: list[str], each: int, seed: int) -> Iterator[Task]:
    for room in rooms:
        for module in ROOMS[room].modules:
            found = mutants((ROOT / module).read_text())
            if each and len(found) > each:
                found = random.Random(f"{seed} {module}").sample(found, each)
            yield from (Task(room, module, mutant) for mutant in sorted(found, key=lambda mutant: mutant.line))


if __name__ == "__main__":
    sys.exit(main())
