"""`watchkeeper evaluate signals`: how many injected faults are found at the same share of false positives.

api.py does the work; this file reads the arguments and writes the result down. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.shared.arguments import whole
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.signals.api import Result, evaluate
from watchkeeper.evaluation.signals.faults import FAULTS
from watchkeeper.evaluation.signals.series import recorded, simulated

HELP = """\
Put faults (stuck, jump, drift, noise, decoupling) into signals of recorded and simulated vehicles and ask which method
finds them, each with the threshold that gives 1 % of false positives on the clean series of the same signal."""
EXAMPLES = """\
examples:
  watchkeeper evaluate signals                            a simulated fleet
  watchkeeper evaluate signals --logs recordings/         every GPS, IMU and signal column of recordings
  watchkeeper evaluate signals --no-river                 without river's models, which take most of the time

exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--logs", metavar="DIR", type=Path, help="a folder of logs (default: a simulated fleet)")
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
    if args.logs:
        vehicles = list(recorded(args.logs, float(args.rate)))
    else:
        vehicles = simulated(args.vehicles, float(args.seconds), args.seed)
    if not vehicles:
        print(f"{args.logs}: no log with signals in it", file=sys.stderr)
        return 1
    config = load(args.config)
    result = evaluate(
        vehicles, config, seed=args.seed, river=river, told=lambda line: print(line, file=sys.stderr, flush=True)
    )
    if args.out:
        write_json(args.out, msgspec.to_builtins(result))
    if str(args.out) != "-":
        print(table(result))
    return 0


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
        false = sum(c.alarms if "shipped" in name else c.false_alarms[name] for c in result.clean)
        latency = f"{np.median(times):.1f} s" if times else "-"
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {latency} | {false / hours:.2f} |")
    shares = {name: np.mean([c.share[name] for c in result.clean]) for name in result.clean[0].share}
    said = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
    return "\n".join(
        [*rows, "", f"{len(result.outcomes)} faults in {len(result.clean)} signals, {hours:.1f} signal hours clean",
         f"realised share of values over the threshold: {said}"]
    )  # fmt: skip
