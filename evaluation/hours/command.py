"""`watchkeeper evaluate hours`: clean hours, the share of epochs over the threshold, and false alarms per hour.

api.py does the work; this file reads the arguments and prints the tables. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.attacks.flight import read_flights
from watchkeeper.evaluation.hours.api import Hours, Result, hours
from watchkeeper.evaluation.protocol.meter import meter
from watchkeeper.evaluation.shared.arguments import number
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail

HELP = """\
Run flights without an attack: the share of epochs that gps_imu has over its threshold, and the alarms that are raised
for nothing, per hour with the exact interval. Recordings also with other streams and with worse sensors."""
EXAMPLES = """\
examples:
  watchkeeper evaluate hours --flights recordings/ --simulated 20          recordings, their copies, 20 simulated hours
  watchkeeper evaluate hours --simulated 1                                 simulated flights alone
  watchkeeper evaluate hours --flights recordings/ --without frozen,bench  leave out flights that are known to be faulty
  watchkeeper evaluate hours --flights recordings/ --each --out hours.json every flight in a line, and all of it as JSON

exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--flights", metavar="DIR", type=Path, help="a folder of logs, one flight each")
    parser.add_argument("--without", metavar="NAMES", default="", help="flights of it that are not clean, with commas")
    parser.add_argument("--simulated", metavar="H", type=number("hours", 0.0, 1000.0), default=0.0, help="hours (0)")
    parser.add_argument("--no-worse", action="store_true", help="skip the copies with worse sensors")
    parser.add_argument("--each", action="store_true", help="list every flight")
    parser.add_argument("--profile", default=None, help="whose patience counts (that of the configuration)")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--out", type=Path, metavar="RESULT.json", help="all figures as JSON; - for standard output")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.flights is None and not args.simulated:
        return fail("nothing to run: give --flights DIR or --simulated HOURS")
    flights = read_flights(args.flights) if args.flights else []
    left_out = [name for name in args.without.split(",") if name]
    if unknown := sorted(set(left_out) - {flight.id for flight in flights}):
        return fail(f"--without: no flight {', '.join(unknown)} in {args.flights}")
    flights = [flight for flight in flights if flight.id not in left_out]
    config = load(args.config, overrides={"profile": args.profile} if args.profile else None)
    print(f"evaluating: {len(flights)} recordings, {args.simulated:g} simulated hours", file=sys.stderr, flush=True)
    result = hours(
        flights, config, simulated_h=args.simulated, worse=not args.no_worse, through=meter(hidden=False)
    )  # fmt: skip
    if args.out:
        write_json(args.out, msgspec.to_builtins(result))
    if str(args.out) != "-":
        print(table(result, each=args.each))
    return 0


def table(result: Result, *, each: bool) -> str:
    """The groups, or every flight."""
    lines = [
        "| flights | hours | epochs | over the threshold | false alarms | per hour | 95 % interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for group in result.groups:
        lines.append(_line(group.group, group))
        own = [row for row in result.flights if row.group == group.group]
        # of many simulated flights only those that say something
        lines += [_line(f"- {row.flight}", row) for row in own if each and (len(own) <= 20 or row.alarms)]
        told = [row.share for row in own if row.share is not None]
        if each and len(own) > 20:
            lines.append(f"| - {len(own)} flights | | | {100 * min(told):.2f} % to {100 * max(told):.2f} % | | | |")
    return "\n".join(lines)


def _line(name: str, row: Hours) -> str:
    if row.share is None or row.per_hour is None or row.per_hour_95 is None:
        return f"| {name} | 0 | 0 | not judged | {row.alarms} | – | – |"
    low, high = row.per_hour_95
    return (
        f"| {name} | {row.hours:.2f} | {row.epochs:,} | {100 * row.share:.2f} % | {row.alarms} | "
        f"{row.per_hour:.2f} | {low:.2f} to {high:.2f} |"
    )
