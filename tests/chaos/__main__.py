"""`make chaos`: many seeds, a table by kind of fault, and how to see one of them.

    make chaos ARGS="--seeds 10000"           that many seeds on all cores
    make chaos ARGS="--seed 4711"             one seed, with everything that happened
    make chaos ARGS="--faults kill,disk_full" worlds with these faults only
    make chaos ARGS="--planted"               bugs put in on purpose: each must be found

Exit code 1 when a seed breaks an invariant.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext

from chaos.campaign import Result, play_many, play_one
from chaos.faults import FAULTS
from chaos.interpose import interposed
from chaos.planted import PLANTED

CHUNK = 25
SHOWN = 20


def main() -> int:
    """The command."""
    args = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # the order of sets of names is chance, too
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "chaos", *sys.argv[1:]])
    faults = tuple(args.faults.split(",")) if args.faults else None
    if args.seed is not None:
        return _show(args.seed, faults, args.plant)
    if args.planted:
        return _planted(args.workers, args.seeds or 1000)
    return _campaign(range(args.first, args.first + (args.seeds or 10_000)), faults, args.workers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description="The daemon in a simulated world, seed by seed.")
    parser.add_argument("--seeds", type=int, help="how many (10,000; for --planted at most 1,000 each)")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--seed", type=int, help="only this one, with its trace")
    parser.add_argument("--faults", help=f"instead of the seed's own, by comma: {', '.join(FAULTS)}")
    parser.add_argument("--planted", action="store_true", help="bugs put in on purpose: each must be found")
    parser.add_argument("--plant", choices=PLANTED, help="with --seed: with this bug")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


def _show(seed: int, faults: tuple[str, ...] | None, plant: str | None) -> int:
    with interposed(), PLANTED[plant].planted() if plant else nullcontext():
        result = play_one(seed, faults or (PLANTED[plant].faults if plant else None), trace=True)
    for at_s, who, what in result.trace:
        print(f"{at_s:9.3f}  {who:8} {what}")
    print()
    for invariant, words in result.problems or [("", "nothing is wrong")]:
        print(f"{invariant or 'verdict'}: {words}")
    return bool(result.problems)


def _results(seeds: Iterable[int], faults: tuple[str, ...] | None, workers: int) -> Iterator[Result]:
    todo = list(seeds)
    chunks = [todo[i : i + CHUNK] for i in range(0, len(todo), CHUNK)]
    with ProcessPoolExecutor(workers) as pool:
        for done in as_completed([pool.submit(play_many, chunk, faults) for chunk in chunks]):
            yield from done.result()


def _campaign(seeds: range, faults: tuple[str, ...] | None, workers: int) -> int:
    began = said = time.monotonic()
    results: list[Result] = []
    for result in _results(seeds, faults, workers):
        results.append(result)
        if result.problems:
            print(_told(result), flush=True)
        if time.monotonic() - said > 5:
            said = time.monotonic()
            failed = sum(bool(r.problems) for r in results)
            print(f"{len(results):,} of {len(seeds):,} seeds, {failed} failed, {said - began:.0f} s", flush=True)
    _table(results)
    failed = sorted((r for r in results if r.problems), key=lambda r: r.seed)
    total = Counter[str]()
    for result in results:
        total.update(result.counts)
    figures = ", ".join(f"{n:,} {what}" for what, n in total.items())
    print(f"\n{len(results):,} seeds in {time.monotonic() - began:.0f} s: {figures}")
    print(f"{len(failed)} failed")
    for result in failed[:SHOWN]:
        print(_told(result))
    if failed:
        print(f'\nmake chaos ARGS="--seed {failed[0].seed}"   shows what happened there')
    return bool(failed)


def _told(result: Result) -> str:
    words = "; ".join(f"{invariant}: {words}" for invariant, words in result.problems[:3])
    return f"  seed {result.seed} ({', '.join(result.faults)}): {words}"


def _table(results: list[Result]) -> None:
    print(f"\n{'fault':16}{'seeds':>8}{'failed':>8}  broken invariants")
    for name in FAULTS:
        own = [r for r in results if name in r.faults]
        if not own:
            continue
        broken = Counter(i for r in own for i in {i for i, _ in r.problems})
        words = ", ".join(f"{i} {n}" for i, n in broken.most_common())
        failed = sum(bool(r.problems) for r in own)
        print(f"{name:16}{len(own):>8,}{failed:>8,}  {words}")


def _planted(workers: int, at_most: int) -> int:
    missed = []
    with ProcessPoolExecutor(workers) as pool:
        found = {pool.submit(bug.hunt, at_most): name for name, bug in PLANTED.items()}
        for done in as_completed(found):
            name = found[done]
            seed, tried, words = done.result()
            if seed is None:
                missed.append(name)
            where = f"seed {seed} after {tried} seeds: {words}" if seed is not None else f"NOT FOUND in {tried} seeds"
            print(f"{name:32} {where}", flush=True)
    print(f"\n{len(PLANTED) - len(missed)} of {len(PLANTED)} planted bugs found")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
