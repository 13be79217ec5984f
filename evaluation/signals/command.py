"""`watchkeeper evaluate signals`: how many injected faults are found at the same share of false positives.

api.py does the work; this file reads the arguments and writes the result down. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.shared.arguments import whole
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.signals.api import Result, evaluate
from watchkeeper.evaluation.signals.faults import FAULTS
from watchkeeper.evaluation.signals.parts import PARTS, fleets_of, recordings_of
from watchkeeper.evaluation.signals.seasonal import seasonal, settings_of
from watchkeeper.evaluation.signals.series import Vehicle, recorded, simulated

# Of signals with a season: the configuration names it.
NAMED = "seasonal, seasons named"
HELP = """\
Put faults (stuck, jump, drift, noise, decoupling) into signals of recorded and simulated vehicles and ask which method
finds them, each with the threshold that gives 1 % of false positives on the clean series of the same signal."""
EXAMPLES = """\
examples:
  watchkeeper evaluate signals                            a simulated fleet
  watchkeeper evaluate signals --part development --logs DIR    what constants may be tuned on (parts.py)
  watchkeeper evaluate signals --part held-out --logs DIR       what they may not
  watchkeeper evaluate signals --logs recordings/         every GPS, IMU and signal column of recordings
  watchkeeper evaluate signals --seasonal                 what river's forecast of a season adds
  watchkeeper evaluate signals --no-river                 without river's models, which take most of the time

exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--logs", metavar="DIR", type=Path, help="a folder of logs (default: a simulated fleet)")
    parser.add_argument(
        "--part", choices=PARTS, help="the fleets, and below --logs the recordings, of this part (parts.py)"
    )
    parser.add_argument(
        "--seasonal", action="store_true", help="signals with a season, without and with river's forecast of it"
    )
    parser.add_argument("--vehicles", type=whole(1, 1000), default=3, metavar="N", help="simulated ones (default 3)")
    parser.add_argument("--seconds", type=whole(200, 100_000), default=900, metavar="S", help="simulated (default 900)")
    parser.add_argument(
        "--rate", type=whole(1, 50), default=2, metavar="HZ", help="logs are thinned to this (default 2)"
    )
    parser.add_argument("--seed", type=whole(0, 2**31), default=1, metavar="N", help="of onsets and sizes (default 1)")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--no-river", action="store_true", help="leave river's models out")
    parser.add_argument("--out", type=Path, metavar="RESULT.json", help="all outcomes as JSON; - for standard output")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    river = not args.no_river and find_spec("river") is not None
    groups = {
        title: vehicles for title, found in _groups(args) if (vehicles := list(found)) or not title.startswith("record")
    }
    if not any(groups.values()) or (args.logs and len(groups) == 1 and args.part):
        print(f"{args.logs}: no log with signals in it", file=sys.stderr)
        return 1
    config, results = load(args.config), {}
    for title, vehicles in groups.items():
        results[title] = evaluate(
            vehicles,
            settings_of(config) if title == NAMED else config,
            seed=args.seed,
            river=river,
            told=lambda line: print(line, file=sys.stderr, flush=True),
        )
        if str(args.out) != "-":
            head = [f"{args.part}, {title}", ""] if args.part else [title, ""] if args.seasonal else []
            print("\n".join([*head, table(results[title]), ""]))
    if args.out:
        plain = msgspec.to_builtins(results)
        write_json(args.out, plain if args.part or args.seasonal else next(iter(plain.values())))
    return 0


def _groups(args: argparse.Namespace) -> Iterator[tuple[str, Iterable[Vehicle]]]:
    """What is judged and printed together."""
    if args.seasonal:
        yield "seasonal", seasonal(args.vehicles, args.seed)
        yield NAMED, seasonal(args.vehicles, args.seed)
    elif args.part:
        part = PARTS[args.part]
        yield "simulated", fleets_of(part)
        if args.logs:
            yield "recorded, never tuned on", recordings_of(part, args.logs, seen=False)
            yield "recorded", recordings_of(part, args.logs, seen=True)
    elif args.logs:
        yield "recorded", recorded(args.logs, float(args.rate))
    else:
        yield "simulated", simulated(args.vehicles, float(args.seconds), args.seed)


def table(result: Result) -> str:
    """Methods by fault: recall and median latency; then false alarms."""
    known = list(result.outcomes[0].latency_s) if result.outcomes else []
    rows = ["| method | " + " | ".join(FAULTS) + " | all | median latency | false alarms/h |", "|---" * 9 + "|"]
    hours = sum(clean.hours for clean in result.clean)
    for name in known:
        cells = []
        for fault in [*FAULTS, ""]:
            own = [o.latency_s[name] for o in result.outcomes if o.fault == fault or not fault]
            cells.append(f"{np.mean([x is not None for x in own]):.0%}" if own else "-")
        times = [x for o in result.outcomes if (x := o.latency_s[name]) is not None]
        false = (
            sum(vehicle.alarms for vehicle in result.quiet)
            if "shipped" in name
            else sum(c.false_alarms[name] for c in result.clean)
        )
        latency = f"{np.median(times):.1f} s" if times else "-"
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {latency} | {false / hours:.2f} |")
    alarms, flown = sum(vehicle.alarms for vehicle in result.quiet), sum(vehicle.hours for vehicle in result.quiet)
    shares = {name: np.mean([c.share[name] for c in result.clean]) for name in result.clean[0].share}
    said = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
    return "\n".join(
        [*rows, "", f"{len(result.outcomes)} faults in {len(result.clean)} signals, {hours:.1f} signal hours clean",
         f"as shipped: {alarms} false alarms in {flown:.1f} vehicle hours, {alarms / flown:.2f} an hour of a vehicle",
         *margins(result), f"realised share of values over the threshold: {said}"]
    )  # fmt: skip


def margins(result: Result) -> list[str]:
    """By how much ours finds more than the plain methods, at the same share of false positives; and as shipped."""

    def recall(name: str) -> float:
        return 100.0 * float(np.mean([o.latency_s[name] is not None for o in result.outcomes]))

    return [
        f"{name}: ours {recall('ours') - recall(name):+.0f} points, as shipped "
        f"{recall('ours, as shipped') - recall(name):+.0f}"
        for name in ("ewma", "river: half-space trees")
        if name in result.outcomes[0].latency_s
    ]
