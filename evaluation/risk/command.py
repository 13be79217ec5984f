"""`watchkeeper evaluate risk LOG…`: how close aircraft come, and how often separation is lost, where and when.

api.py does the work; this file reads the arguments and writes the result down. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.evaluation.risk.api import risk
from watchkeeper.evaluation.risk.report import plot, table
from watchkeeper.evaluation.shared.arguments import number
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail, warn
from watchkeeper.streams.logs.source import open_log

HELP = """\
Separation risk of a log: of all encounters the share that came closer than so many times the minima, and losses of
separation per flight hour by altitude, area and hour of the day, each with its 95 % interval. No detector is asked."""
EXAMPLES = """\
examples:
  watchkeeper evaluate risk flight.wklog
  watchkeeper evaluate risk monday.wklog tuesday.wklog -c mine.toml        with the minima and zones of a configuration
  watchkeeper evaluate risk flight.wklog --cell-deg 0.25 --out risk.json --plot risk.svg

docs/evaluation/risk.md defines every figure. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="recorded logs; several are merged by time")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument(
        "--cell-deg", metavar="DEG", type=number("degrees", 0.01, 90.0), default=1.0, help="size of an area (1)"
    )
    parser.add_argument("--out", type=Path, metavar="RISK.json", help="all figures as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them, .png, .svg or .pdf (extra `plots`)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no remarks about the logs")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.plot and args.plot.suffix not in PLOT_ENDINGS:
        return fail(f"--plot {args.plot}: a name that ends in {', '.join(PLOT_ENDINGS)}")
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        return fail('--plot needs matplotlib: pip install "watchkeeper[plots]"')
    config = load(args.config)
    sources = [open_log(path) for path in args.logs]
    try:
        result = risk(sources, config=config, cell_deg=args.cell_deg, quiet=args.quiet)
    except EvaluationError as error:
        return fail(str(error))
    finally:
        if not args.quiet:
            warn(sources)
    if args.out:
        write_json(args.out, result.to_dict())
    if str(args.out) != "-":
        print(table(result))
    if args.plot:
        plot(result, args.plot)
    return 0
