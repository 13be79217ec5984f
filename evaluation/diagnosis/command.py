"""`watchkeeper evaluate diagnosis`: does the diagnoser name the right fault at the right place, and at what cost?

api.py does the work; this file reads the arguments and writes tables, JSON and a report.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.diagnosis import report
from watchkeeper.evaluation.diagnosis.api import Diagnosis, diagnosis
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.html import Table
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import USAGE, fail

HELP = """\
Play troubleshooting episodes on simulated telemetry networks (4 to 200 devices, one fault each) with our diagnoser and
with baselines, and measure how often fault type and location are right, and what it cost to find out."""
EXAMPLES = """\
examples:
  watchkeeper evaluate diagnosis --episodes 100
  watchkeeper evaluate diagnosis --episodes 1000 --seed 2026 --out metrics.json --report diagnosis.html
  watchkeeper evaluate diagnosis --devices 4 20 --agents watchkeeper,random
  watchkeeper evaluate diagnosis --streamed --episodes 200 --clean 50     through the whole pipeline
  watchkeeper evaluate diagnosis --streamed --no-port-reports             gateways that say nothing of their ports

docs/evaluation/diagnosis.md defines every figure. A file name of - is standard output. Needs the extra `gym`.
exit codes: 0 good, 1 failed, 2 usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--episodes", type=_whole, metavar="N", help="episodes per agent (1000; streamed 200)")
    parser.add_argument("--seed", type=int, default=2026, metavar="S", help="all agents play the same networks (2026)")
    parser.add_argument(
        "--devices", type=int, nargs=2, default=(4, 200), metavar=("MIN", "MAX"), help="sizes of the networks (4 200)"
    )
    parser.add_argument("--streamed", action="store_true", help="faults in telemetry that runs through the pipeline")
    parser.add_argument(
        "--no-port-reports", action="store_true", help="streamed: nobody reports on ports or itself or answers pings"
    )
    parser.add_argument("--clean", type=int, default=50, metavar="N", help="streamed episodes without a fault (50)")
    parser.add_argument("--agents", metavar="A,B", help="some of: watchkeeper, scan everything, nearest alarm, random")
    parser.add_argument("--out", type=Path, metavar="METRICS.json", help="summaries and every episode as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the confusion matrix, .png, .svg or .pdf (`plots`)")
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="one page with the picture (extra `plots`)")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: the cores, if it pays)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def main(args: argparse.Namespace) -> int:
    """Play; the exit code."""
    if (args.plot or args.report) and importlib.util.find_spec("matplotlib") is None:
        return fail('--plot and --report need matplotlib: pip install "watchkeeper[plots]"')
    if args.no_port_reports and not args.streamed:
        return fail("--no-port-reports: only with --streamed", USAGE)
    try:
        result = diagnosis(
            episodes=args.episodes, seed=args.seed, devices=tuple(args.devices), streamed=args.streamed,
            agents=[name.strip() for name in args.agents.split(",")] if args.agents else None,
            port_reports=not args.no_port_reports, clean=args.clean, jobs=args.jobs, quiet=args.quiet,
        )  # fmt: skip
    except ImportError as error:
        return fail(str(error))
    except EvaluationError as error:
        return fail(f"--{error}", USAGE)
    if args.out:
        write_json(args.out, result.to_dict())
    _tell(args, result)
    return 0


def _details(summary: dict[str, Any], played: list[Any]) -> list[Table]:
    alike = report.look_alike_table(report.look_alikes(played))
    return [report.types_table(summary), report.confusion_table(summary), alike]


def _show(args: argparse.Namespace, tables: list[Table], summary: dict[str, Any], title: str) -> None:
    """Tables to the terminal; picture and page to where they were asked for."""
    if str(args.out) != "-":
        print("\n\n".join(report.as_text(table) for table in tables))
    if args.plot:
        from watchkeeper.evaluation.diagnosis.plots import confusion_figure  # noqa: PLC0415 - needs the extra

        confusion_figure(summary["confusion_matrix"], title).savefig(args.plot, dpi=110)
    if args.report:
        report.write_report(args.report, title, tables, summary)


def _tell(args: argparse.Namespace, result: Diagnosis) -> None:
    """The agents compared, the first of them in detail."""
    first, summary = next(iter(result.summaries.items()))
    tables = [report.agents_table(result.summaries)]
    tables += [] if result.streamed is None else [report.streamed_table(result.streamed)]
    played = result.played if result.streamed is not None else result.of(first)
    count = f"{result.settings['episodes']:,}"
    if result.streamed is None:
        title = f"{count} simulated episodes, seed {args.seed}, {first}"
    else:
        title = f"{count} streamed episodes, seed {args.seed}{', no port reports' if args.no_port_reports else ''}"
    _show(args, [*tables, *_details(summary, played)], summary, title)


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a whole number from 1")
    return int(word)
