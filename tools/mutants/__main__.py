"""`make mutants`: how many small changes to the source no test notices, and which.

    make mutants                               a sample of every room
    make mutants ARGS="debounce journal"       these rooms
    make mutants ARGS="--each 0 debounce"      every mutant, no sample

Mutants that no test can notice are left out and printed with the reason (equivalent.toml). Exit code 1 when the share
of mutants that are noticed is below --least in a room, or when the list of those left out does not fit the source.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import groupby

from hypothesis import Phase, settings

from tools.mutants.equivalent import LIST, reasons
from tools.mutants.mutate import Mutant, mutants
from tools.mutants.process import SURVIVED
from tools.mutants.rooms import ROOMS
from tools.mutants.task import Task
from tools.mutants.trial import tried
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
    # The same examples each time, none of an earlier run, and no search for the smallest one that fails.
    settings.register_profile("mutants", database=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")
    rooms = {room: {m: mutants((ROOT / m).read_text()) for m in ROOMS[room].modules} for room in args.rooms or ROOMS}
    every = {module: found for modules in rooms.values() for module, found in modules.items()}
    equivalent, wrong = reasons(LIST.read_text(), every)
    chosen = [task for room in rooms for task in _tasks(room, rooms[room], args.each, args.seed)]
    left_out = [task for task in chosen if (task.module, task.mutant) in equivalent]
    for task in left_out:
        print(f"  left out: {task.module}:{task.mutant}\n    {equivalent[task.module, task.mutant]}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        tasks = [task for task in chosen if (task.module, task.mutant) not in equivalent]
        low = _scores(tasks, Counter(task.room for task in left_out), args.workers, args.least)
    for line in wrong:
        print(f"{LIST.name}: {line}")
    return int(low or bool(wrong))


def _scores(tasks: list[Task], left_out: Mapping[str, int], workers: int, least: float) -> bool:
    """Try them and print the table; whether a room's score is too low."""
    rows = []
    done = not_noticed = 0
    for room, of_room in groupby(tasks, key=lambda task: task.room):
        count = seen = 0
        for task, found in tried(list(of_room), workers):
            count, done = count + 1, done + 1
            seen += found != SURVIVED
            not_noticed += found == SURVIVED
            if found == SURVIVED:
                print(f"  {task.module}:{task.mutant}", flush=True)
            if done % PROGRESS == 0:
                print(f"{done} of {len(tasks)} tried, {not_noticed} not noticed", file=sys.stderr, flush=True)
        rows.append((room, count, seen, left_out[room]))
        print(f"{room}: {seen} of {count} noticed", flush=True)
    print(f"\n{'room':<12}{'mutants':>8}{'noticed':>9}{'score':>7}{'left out':>10}")
    for room, n, seen, out in (*rows, ("all", done, done - not_noticed, sum(left_out.values()))):
        print(f"{room:<12}{n:>8}{seen:>9}{seen / max(1, n):>7.2f}{out:>10}")
    return any(seen < least * n for _, n, seen, _ in rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants", description="Change the source in one place at a time; a test should notice.",
        epilog='example: make mutants ARGS="--each 0 debounce"',
    )  # fmt: skip
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (all)")
    parser.add_argument("--each", type=int, default=60, help="mutants of each module, a sample; 0: all (60)")
    parser.add_argument("--seed", type=int, default=0, help="of that choice (0)")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be noticed in each room (0.9)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    args = parser.parse_args()
    if unknown := set(args.rooms) - set(ROOMS):
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    return args


def _tasks(room: str, modules: Mapping[str, list[Mutant]], each: int, seed: int) -> list[Task]:
    """The sample of each module; a line that is written or moved elsewhere in it changes nothing about the others."""
    found = []
    for module, every in modules.items():
        chosen = sorted(every, key=lambda m: _draw(seed, module, m))[: each or None]
        found += [Task(room, module, mutant) for mutant in sorted(chosen, key=lambda mutant: mutant.line)]
    return found


def _draw(seed: int, module: str, mutant: Mutant) -> str:
    words = (str(seed), module, *mutant.under, mutant.before, mutant.after)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
