"""`python -m tools.fuzz [--count N] [--seed S] [--only WORD]`: every target, a table, and exit code 1 for any failure.

A case is run again by its number: `--only "log ulog" --start 1234 --count 1`.
"""

from __future__ import annotations

import argparse
import sys
import time

from tools.fuzz import payloads
from tools.fuzz.run import Outcome, run_target
from tools.fuzz.targets import EVERY

COLUMNS = ("cases", "read", "part", "refused", "failed")


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="cases per target (20,000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases (1)")
    parser.add_argument("--start", type=int, default=0, help="the first case (0)")
    parser.add_argument("--only", default="", help="the target of this name, or all whose names contain it")
    args = parser.parse_args()
    print(f"{'target':28} " + " ".join(f"{name:>8}" for name in COLUMNS) + f" {'slowest':>8} {'took':>7}")
    failed = 0
    for name, target in EVERY.items():
        if name == args.only or (args.only in name and args.only not in EVERY):
            began_s = time.monotonic()
            # a case of messages has 200 of them: 20,000 files and a million messages
            count = max(1, args.count // 4) if name in payloads.TARGETS else args.count
            found = run_target(name, target, args.seed, range(args.start, args.start + count))
            print(_row(found, time.monotonic() - began_s), flush=True)
            failed += len(found.failures)
    print(f"{failed} failures, seed {args.seed}")
    return 1 if failed else 0


def _row(found: Outcome, took_s: float) -> str:
    counts = found.counts
    cells = [sum(counts.values()), *(counts[name] for name in COLUMNS[1:])]
    row = f"{found.name:28} " + " ".join(f"{n:8,}" for n in cells) + f" {1e3 * found.slowest_s:6,.0f}ms {took_s:6,.0f}s"
    # one line for each kind of failure, with the first case that shows it
    kinds: dict[str, list[tuple[int, str]]] = {}
    for number, problem in found.failures:
        kinds.setdefault(problem.partition(":")[0], []).append((number, problem))
    told = [f"    {len(cases)} x, case {cases[0][0]}: {cases[0][1]}" for cases in kinds.values()]
    return "\n".join([row, *told])


if __name__ == "__main__":
    sys.exit(main())
