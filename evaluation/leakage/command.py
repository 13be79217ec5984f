"""`watchkeeper evaluate leakage`: does anything in an evaluation know what it must not know? Exit code 1 when it does.

Three checks, each by itself or all together: splits (flights.py), features (features.py) and code
(code.py). Without arguments it checks what is shipped: config/splits.json and our own code.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from watchkeeper.evaluation.attacks.flight import read_flights
from watchkeeper.evaluation.leakage.code import code_leaks
from watchkeeper.evaluation.leakage.features import feature_leaks
from watchkeeper.evaluation.leakage.flights import split_leaks
from watchkeeper.evaluation.protocol.features import PROFILES
from watchkeeper.evaluation.protocol.splits import check_recipes, read_splits, simulated

HELP = "Look for leaks: a flight in two splits, a feature that gives the label away, code that learns from test data."
EXAMPLES = """\
examples:
  watchkeeper evaluate leakage                                            the shipped splits and our own code
  watchkeeper evaluate leakage --splits splits.json --flights recordings  by name, and by what the flights contain
  watchkeeper evaluate leakage --data features.csv --correlation-threshold 0.9
  watchkeeper evaluate leakage --check-code train.py models/

exit codes: 0 no leak, 1 a leak (or a file that cannot be read), 2 usage
"""
OWN_CODE = ("evaluation", "detectors")


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
    everything = args.splits is None and args.data is None and args.check_code is None
    leaks: list[str] = []
    if args.splits is not None or everything:
        try:
            leaks += _said("splits", _splits(args.splits, args.flights))
        except msgspec.DecodeError as error:
            print(f"watchkeeper: {args.splits}: {error}", file=sys.stderr)
            return 1
    if args.data is not None:
        leaks += _said("features", feature_leaks(args.data, args.correlation_threshold, args.label, args.features))
    if args.check_code is not None or everything:
        package = Path(__file__).parents[2]
        paths = args.check_code or [package / folder for folder in OWN_CODE]
        leaks += _said("code", [str(leak) for leak in code_leaks(paths, args.features)])
    return 1 if leaks else 0


def _splits(path: Path | None, folder: Path | None) -> list[str]:
    splits = read_splits(path)
    if folder is not None:
        return split_leaks(splits, read_flights(folder))
    wrong = check_recipes(splits)
    made = [] if wrong else [simulated(name, recipe) for name, recipe in splits.flights.items()]
    return wrong + split_leaks(splits, made)


def _said(check: str, leaks: list[str]) -> list[str]:
    print(f"{check}: {'no leak' if not leaks else f'{len(leaks)} found'}")
    for leak in leaks:
        print(f"  {leak}")
    return leaks


def _share(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a correlation over 0, at most 1")
    return value
