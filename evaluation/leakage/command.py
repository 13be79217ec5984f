"""`watchkeeper evaluate leakage`: does anything in an evaluation know what it must not know? Exit code 1 when it does.

api.py does the work; this file reads the arguments and says what was found. Without arguments it checks what is
shipped: config/splits.json and our own code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from watchkeeper.evaluation.leakage.api import leakage
from watchkeeper.evaluation.shared.features import PROFILES

HELP = "Look for leaks: a flight in two splits, a feature that gives the label away, code that learns from test data."
EXAMPLES = """\
examples:
  watchkeeper evaluate leakage                                            the shipped splits and our own code
  watchkeeper evaluate leakage --splits splits.json --flights recordings  by name, and by what the flights contain
  watchkeeper evaluate leakage --data features.csv --correlation-threshold 0.9
  watchkeeper evaluate leakage --check-code train.py models/

exit codes: 0 no leak, 1 a leak (or a file that cannot be read), 2 usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--splits", type=Path, metavar="FILE", help="which flight is in which split (JSON)")
    parser.add_argument(
        "--flights", type=Path, metavar="DIR", help="with --splits: the flights' logs, for their content"
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="a table of features with a label (.csv, .csv.gz)")
    parser.add_argument("--label", metavar="NAME", help="its label column (default: label, is_attack or attacked)")
    parser.add_argument(
        "--correlation-threshold", type=_share, default=0.9, metavar="R", help="more than this is a leak (default 0.9)"
    )
    parser.add_argument("--features", choices=sorted(PROFILES), default="strict", help="which names are banned")
    parser.add_argument(
        "--check-code", nargs="*", type=Path, metavar="PATH", help="Python files or folders (default: our own)"
    )


def main(args: argparse.Namespace) -> int:
    """Check; the exit code."""
    found = leakage(
        splits=args.splits, flights=args.flights, data=args.data, label=args.label,
        correlation_threshold=args.correlation_threshold, features=args.features, code=args.check_code,
    )  # fmt: skip
    for check, leaks in found.checks.items():
        _say(check, leaks)
    if found.not_followed:
        print(f"not followed: {len(found.not_followed)} lines that this check cannot judge; read them yourself")
        for line in found.not_followed:
            print(f"  {line}")
    return 1 if len(found) else 0


def _say(check: str, leaks: list[str]) -> None:
    print(f"{check}: {'no leak' if not leaks else f'{len(leaks)} found'}")
    for leak in leaks:
        print(f"  {leak}")


def _share(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a correlation over 0, at most 1")
    return value
