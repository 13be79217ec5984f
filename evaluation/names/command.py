"""`watchkeeper evaluate names`: is each fault called by its right name, and is the confidence what it says?

api.py runs the attacks, fit.py fits the coefficients again (`--fit`); this file reads the arguments and prints tables.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.gps_imu.naming.coefficients import FITTED
from watchkeeper.evaluation.attacks.catalogue import Attack, catalogue
from watchkeeper.evaluation.attacks.flight import Flight, read_flights
from watchkeeper.evaluation.names.api import Named, Result, bins, names, roomy
from watchkeeper.evaluation.names.fit import balanced, examples, fit, power, source
from watchkeeper.evaluation.names.truth import NAME_OF
from watchkeeper.evaluation.protocol.meter import meter
from watchkeeper.evaluation.protocol.splits import read_splits, simulated
from watchkeeper.evaluation.shared.arguments import whole
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail

HELP = """\
Put attacks and sensor faults into flights and compare what their incidents are called with what they are. With --fit
the model behind the names is fitted again, to simulated training flights and to the recordings that are named."""
EXAMPLES = """\
examples:
  watchkeeper evaluate names                                    simulated test flights
  watchkeeper evaluate names --flights recordings/              recordings; those of the fit are counted apart
  watchkeeper evaluate names --flights recordings/ --only quad-1,wing-2 --fit coefficients.py    fit to these as well

exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument(
        "--flights", metavar="DIR", type=Path, help="a folder of logs (default: simulated test flights)"
    )
    parser.add_argument("--only", metavar="NAMES", default="", help="these flights of it, with commas (all)")
    parser.add_argument(
        "--repeats", type=whole(1, 100), default=1, metavar="N", help="onsets per attack and flight (1)"
    )
    parser.add_argument("--fit", metavar="MODULE.py", type=Path, help="fit the coefficients and write them there")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--out", type=Path, metavar="RESULT.json", help="every attack as JSON; - for standard output")


def main(args: argparse.Namespace) -> int:
    """Evaluate or fit; the exit code."""
    config, attacks = load(args.config), [a for a in catalogue().attacks if a.family in NAME_OF]
    only = [name for name in args.only.split(",") if name]
    found = read_flights(args.flights) if args.flights else [] if args.fit else _simulated("test")
    if unknown := sorted(set(only) - {flight.id for flight in found}):
        return fail(f"--only: no flight {', '.join(unknown)}")
    flights = [flight for flight in found if not only or flight.id in only]
    if args.fit:
        return _fit(roomy(flights, attacks), attacks, config, args)
    result = names(flights, attacks, config, repeats=args.repeats, fitted=FITTED, through=meter(hidden=False))
    if args.out:
        write_json(args.out, result.to_dict())
    if str(args.out) != "-":
        print(table(result))
    return 0


def _simulated(*splits: str) -> list[Flight]:
    known = read_splits()
    return [simulated(name, known.flights[name]) for split in splits for name in known.splits[split]]


def _fit(recorded: Sequence[Flight], attacks: Sequence[Attack], config: Config, args: argparse.Namespace) -> int:
    """Fit to simulated flights and to recordings, which count alike."""
    made = roomy(_simulated("train", "validation"), attacks)
    groups = [
        examples(flights, attacks, config, args.repeats, meter(hidden=False)) for flights in (made, recorded) if flights
    ]
    train = [row for group in groups for row in group]
    weight = np.concatenate([balanced(group) for group in groups]) / len(groups)
    coefficients = fit(np.array([r.seen for r in train]), np.array([r.name for r in train]), weight)
    sure = power(train, weight)
    coefficients = np.round(sure * coefficients, 4) + 0.0
    ids = sorted({row.flight for row in train})
    args.fit.write_text(source(coefficients, ids, len(train)))
    print(
        f"{len(train):,} patterns of {len(ids)} flights, probabilities to the power of {sure:.2f}: {args.fit}",
        file=sys.stderr,
    )
    return 0


def table(result: Result) -> str:
    """By flight, by family and by confidence; flights of the fit apart."""
    parts = []
    for what, own in (
        ("held out", [n for n in result.named if n.flight not in result.fitted]),
        ("in the fit", [n for n in result.named if n.flight in result.fitted]),
    ):
        if own:
            parts.append(_part(what, own))
    return "\n\n".join([*parts, f"alarms without a name: {result.unnamed}"])


def _part(what: str, named: Sequence[Named]) -> str:
    families = list(dict.fromkeys(n.family for n in named))
    share = {family: _mean(n.right for n in named if n.family == family) for family in families}
    imu = [n for n in named if n.truth == "imu_fault"]
    by_family = np.mean([np.mean([n.right for n in named if n.family == f]) for f in families])
    figures = [
        f"right {_mean(n.right for n in named)} of {len(named)}",
        f"mean over families {100 * by_family:.1f} %",
        f"IMU faults on the IMU's side {_mean(n.last == 'imu_fault' for n in imu)}",
        f"right at first {_mean(n.first == n.truth for n in named)}",
        f"one name throughout {_mean(n.names == 1 for n in named)}",
    ]
    lines = [
        f"{what}: {', '.join(dict.fromkeys(n.flight for n in named))}",
        "; ".join(figures),
        "",
        "| family | cases | right | called |",
        "|---|---|---|---|",
    ]
    for family in families:
        own = [n for n in named if n.family == family]
        called = {word: sum(n.last == word for n in own) for word in dict.fromkeys(n.last for n in own)}
        said = ", ".join(f"{word} {count}" for word, count in sorted(called.items(), key=lambda e: -e[1]))
        lines.append(f"| {family} | {len(own)} | {share[family]} | {said} |")
    lines += ["", "| confidence | cases | mean | right |", "|---|---|---|---|"]
    for b in bins(named):
        if b.right is not None and b.confidence is not None:
            row = (
                f"{b.low:.1f} to {b.high:.1f}",
                f"{b.cases}",
                f"{100 * b.confidence:.0f} %",
                f"{100 * b.right:.0f} %",
            )
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _mean(true: Iterable[bool]) -> str:
    values = list(true)
    return f"{100 * sum(values) / len(values):.1f} %" if values else "–"
