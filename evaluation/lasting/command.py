"""`watchkeeper evaluate lasting`: is a bias that lasts for minutes one alarm, there until the bias ends?

api.py does the work; this file reads the arguments and writes the result down. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.attacks.flight import Flight, read_flights
from watchkeeper.evaluation.lasting.api import CLEAR_S, CleanFlight, Result, lasting
from watchkeeper.evaluation.protocol.meter import meter
from watchkeeper.evaluation.protocol.splits import read_splits, simulated
from watchkeeper.evaluation.shared.arguments import whole
from watchkeeper.evaluation.shared.output import write_json

HELP = """\
Put biases of several minutes into flights and ask of the gps_imu alarms: is there one, is it there until the bias ends,
and does it end then? Every flight is run clean as well."""
EXAMPLES = """\
examples:
  watchkeeper evaluate lasting                              simulated flights
  watchkeeper evaluate lasting --flights recordings/        your own, a log each
  watchkeeper evaluate lasting --out lasting.json --cases   every case, and all of it as JSON

exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--flights", metavar="DIR", type=Path, help="a folder of logs (default: simulated flights)")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--repeats", type=whole(1, 100), default=2, metavar="N", help="onsets per flight (default 2)")
    parser.add_argument("--cases", action="store_true", help="list every case")
    parser.add_argument("--out", type=Path, metavar="RESULT.json", help="all outcomes as JSON; - for standard output")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    flights = read_flights(args.flights) if args.flights else _simulated()
    print(f"evaluating: biases of minutes in {len(flights)} flights", file=sys.stderr, flush=True)
    result = lasting(flights, load(args.config), repeats=args.repeats, through=meter(hidden=False))
    if args.out:
        write_json(args.out, msgspec.to_builtins(result))
    if str(args.out) != "-":
        print(table(result))
        if args.cases:
            print("\n" + "\n".join(lines(result)))
    return 0


def _simulated() -> list[Flight]:
    """The flights that the GPS/IMU evaluation tests on, too."""
    splits = read_splits()
    return [simulated(name, splits.flights[name]) for name in splits.splits["test"]]


def table(result: Result) -> str:
    """Shapes and how their alarms did; then the clean flights."""
    rows = [
        f"| bias | cases | found | one alarm until it ends | gone within {CLEAR_S:.0f} s |",
        "|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(outcome.shape for outcome in result.outcomes):
        own = [outcome for outcome in result.outcomes if outcome.shape == name]
        counts = (len(own), sum(o.found for o in own), sum(o.lasted for o in own), sum(o.ended for o in own))
        rows.append(f"| {name} | " + " | ".join(map(str, counts)) + " |")
    as_they_are = [c for c in result.clean if "," not in c.flight]
    others = [c for c in result.clean if "," in c.flight]
    return "\n".join([*rows, "", _clean("as they are", as_they_are), _clean("with other sensors", others)])


def _clean(what: str, flights: Sequence[CleanFlight]) -> str:
    hours, alarms, on_s = (sum(getattr(c, name) for c in flights) for name in ("hours", "alarms", "alarm_s"))
    return f"clean flights {what}: {alarms} alarms in {hours:.2f} h, {on_s:.0f} s of alarm"


def lines(result: Result) -> list[str]:
    """Every case in a line."""
    found = [f"{c.flight} clean: {c.alarms} alarms, {c.alarm_s:.0f} s" for c in result.clean if c.alarms]
    for o in result.outcomes:
        alarms = ", ".join(f"{a:.0f} to {'the end' if b is None else f'{b:.0f}'} s" for a, b in o.alarms) or "no alarm"
        word = "good" if o.ended else "not gone" if o.lasted else "not one" if o.found else "missed"
        found.append(f"{o.flight} {o.shape} from {o.onset_s:.0f} to {o.end_s:.0f} s: {word} ({alarms})")
    return found
