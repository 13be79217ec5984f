"""`watchkeeper evaluate alarms LOG…`: were the conflict alarms true, and did they come in time?

api.py does the work; this file reads the arguments and writes the result down. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from functools import partial
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.alarms.api import alarms
from watchkeeper.evaluation.alarms.closer import airspace_table, calibration_table, difference_lines, look_ahead_table
from watchkeeper.evaluation.alarms.report import curve_table, figures_table, pair_lines
from watchkeeper.evaluation.alarms.shifted import Shift
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail, warn
from watchkeeper.streams.logs.source import open_log

HELP = """\
Hold the conflict alarms of a log against what happened next: which alarms were followed by a loss of separation,
which losses were foreseen, and how long before."""
EXAMPLES = """\
examples:
  watchkeeper evaluate alarms flight.wklog
  watchkeeper evaluate alarms flight.wklog --min-alt-ft 3000 --pairs      every alarm and every loss, with its verdict
  watchkeeper evaluate alarms flight.wklog --out metrics.json --plot curve.svg
  watchkeeper evaluate alarms flight.wklog --calibration --breakdown
  watchkeeper evaluate alarms flight.wklog --shift 6                      every flight at another time within 6 h
  watchkeeper evaluate alarms flight.wklog -c mine.toml --against other.toml

docs/evaluation/alarms.md defines every figure. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""

PLOT_ENDINGS = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="recorded logs; several are merged by time")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--profile", help="high-sensitivity, balanced or high-specificity, whatever the file says")
    parser.add_argument(
        "--min-alt-ft", type=_altitude, default=0.0, metavar="FT",
        help="take out all reports from below, such as approaches (default 0: no limit)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="METRICS.json", help="all figures, losses and alarms as JSON")
    parser.add_argument(
        "--shift", type=_hours, metavar="HOURS",
        help="fly each flight at another time, drawn within HOURS, so that nobody prevents losses",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the times that --shift draws (default 1)")
    parser.add_argument("--half", choices=("first", "second"), help="with --shift, only one half of the flights")
    parser.add_argument("--breakdown", action="store_true", help="also by look-ahead time and by airspace")
    parser.add_argument("--calibration", action="store_true", help="also whether the probabilities come true")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="a second configuration on the same log: the difference by alarm"
    )
    parser.add_argument("--curve", action="store_true", help="print the trade-off over count and threshold")
    parser.add_argument("--plot", type=_plot_file, metavar="FILE", help="draw it, .png, .svg or .pdf (extra `plots`)")
    parser.add_argument("--pairs", action="store_true", help="list every loss and every alarm with its verdict")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no remarks about the logs")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        # before the work, not after it
        return fail('--plot needs matplotlib: pip install "watchkeeper[plots]"')
    config = load(args.config, overrides={"profile": args.profile} if args.profile else None)
    second = load(args.against) if args.against else None
    sources = [open_log(path) for path in args.logs]
    shift = Shift(args.shift, args.seed, args.half) if args.shift else None
    judge = partial(alarms, min_alt_ft=args.min_alt_ft, shift=shift, quiet=args.quiet)
    try:
        result = judge(sources, config=config, curve=args.curve or args.plot is not None, calibrated=args.calibration)
        other = judge([open_log(path) for path in args.logs], config=second) if second else None
    except EvaluationError as error:
        return fail(str(error))
    finally:
        if not args.quiet:
            warn(sources)
    if args.out:
        write_json(args.out, result.to_dict())
    if str(args.out) != "-":
        print(figures_table(result))
        if args.pairs:
            print("\n" + "\n".join(pair_lines(result)))
        if args.breakdown:
            print("\n" + look_ahead_table(result.look_ahead) + "\n\n" + airspace_table(result.airspace))
        if result.calibration:
            print("\n" + calibration_table(result.calibration))
        if result.curve:
            print("\n" + curve_table(result.curve))
        if other:
            print("\n" + "\n".join(difference_lines(result, other)))
    if args.plot and result.curve:
        from watchkeeper.evaluation.alarms.plots import plot_trade_off  # noqa: PLC0415

        plot_trade_off(result.curve, args.plot)
    return 0


def _altitude(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r}: expected feet, 0 or more")
    return value


def _hours(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 1000.0:
        raise argparse.ArgumentTypeError(f"{word!r}: expected hours, 0.01 to 1000")
    return value


def _plot_file(word: str) -> Path:
    if not word.lower().endswith(PLOT_ENDINGS):
        raise argparse.ArgumentTypeError(f"{word!r}: expected a name that ends in {', '.join(PLOT_ENDINGS)}")
    return Path(word)
