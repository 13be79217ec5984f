"""`watchkeeper evaluate shift_matrix RESULT…`: how good are models on scenarios that they were not trained on?

api.py does the work; this file reads the arguments and writes tables, JSON, heat maps and a report. Loaded by
daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from watchkeeper.evaluation.conflicts.api import conflicts
from watchkeeper.evaluation.paired.options import add_tests
from watchkeeper.evaluation.shared.arguments import (
    STDOUT,
    html_file,
    missing_extra,
    plot_file,
    whole,
)
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.shift_matrix import simulated
from watchkeeper.evaluation.shift_matrix.api import ShiftMatrix, judged
from watchkeeper.evaluation.shift_matrix.matrix import Draws
from watchkeeper.evaluation.shift_matrix.outcomes import NAMES, Outcome, outcomes_in
from watchkeeper.evaluation.shift_matrix.report import table
from watchkeeper.streams.logs.exits import USAGE, fail

HELP = """\
Models trained on one scenario and judged on others: for each metric a matrix (rows: trained on, columns: judged on)
with mean, standard deviation and number of episodes, difference and ratio to the diagonal with an interval, and the
generalisation gap of every row."""
EXAMPLES = """\
examples:
  watchkeeper evaluate shift_matrix --simulate 30                            small models, trained and judged at once
  watchkeeper evaluate conflicts runs/*.json --out metrics.json && watchkeeper evaluate shift_matrix metrics.json
  watchkeeper evaluate shift_matrix episodes.csv --plot matrix.png --report matrix.html
  watchkeeper evaluate shift_matrix episodes.csv --metrics f1_score reward_total --seed-key episode_id
  watchkeeper evaluate shift_matrix --cell merge merge a.json --cell merge cross b.json --out matrix.json

A file is the JSON of `evaluate conflicts --out`, whose episodes have trained_on and judged_on in their metadata, or a
.csv with a row per episode and these columns. docs/evaluation/shifts.md defines every figure. A file name of - is
standard output.
exit codes: 0 good (whatever the figures say), 1 failed, 2 usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument(
        "results", metavar="RESULT", nargs="*", type=Path, help=".json of `evaluate conflicts`, or .csv"
    )
    parser.add_argument(
        "--cell", nargs=3, action="append", default=[], metavar=("TRAINED", "JUDGED", "RESULT"),
        help="a file whose episodes are all of models trained on TRAINED and judged on JUDGED; several times",
    )  # fmt: skip
    parser.add_argument(
        "--simulate", type=whole(1, 10_000), metavar="N",
        help="train three small models on encounters of two aircraft, and judge each on N episodes of every kind",
    )  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --simulate: write its episodes as JSON")
    for name, others in NAMES.items():
        word = name.partition("_")[0]
        known = ", ".join(others)
        parser.add_argument(f"--{word}-key", metavar="KEY", help=f"column or metadata key (default: {known})")
    parser.add_argument(
        "--metrics", nargs="+", metavar="METRIC",
        help="default: the headlines of `evaluate conflicts`, or all numbers where there are none of these",
    )  # fmt: skip
    add_tests(parser)
    parser.add_argument("--out", type=Path, metavar="MATRIX.json", help="everything as JSON")
    parser.add_argument("--plot", type=plot_file, metavar="FILE", help="heat maps, .png, .svg or .pdf (extra `plots`)")
    parser.add_argument("--report", type=html_file, metavar="FILE.html", help="one page with it all (extra `plots`)")
    parser.add_argument("--quiet", action="store_true", help="no notes")


def main(args: argparse.Namespace) -> int:
    """Judge; the exit code."""
    if args.plot or args.report:
        missing = missing_extra("--report" if args.report else "--plot", "matplotlib", "plots")
        if missing:
            return fail(missing)
    if not args.results and not args.cell and not args.simulate:
        return fail("expected a RESULT, --cell TRAINED JUDGED RESULT, or --simulate N", USAGE)
    if args.keep and not args.simulate:
        return fail("--keep is about simulated episodes: it needs --simulate", USAGE)
    try:
        result = judged(_outcomes(args), args.metrics, Draws(args.alpha, args.seed, args.resamples))
    except EvaluationError as error:
        return fail(str(error))
    for note in result.notes if not args.quiet else ():
        print(f"watchkeeper: {note}", file=sys.stderr)
    _write(args, result)
    return 0


def _outcomes(args: argparse.Namespace) -> list[Outcome]:
    words = {name: getattr(args, f"{name.partition('_')[0]}_key") for name in NAMES}
    keys = {name: word for name, word in words.items() if word}
    found = [outcome for path in args.results for outcome in outcomes_in(path, keys)]
    for trained, to, path in args.cell:
        found += outcomes_in(Path(path), keys, (trained, to))
    if args.simulate:
        made = list(simulated.episodes(args.simulate))
        if args.keep:
            simulated.write(args.keep, made)
        found += outcomes_in(conflicts(made), {})
    return found


def _write(args: argparse.Namespace, result: ShiftMatrix) -> None:
    if args.out:
        write_json(args.out, result.to_dict())
    if args.out != STDOUT:
        print(table(result))
    if args.plot:
        from watchkeeper.evaluation.shift_matrix.plots import heat_maps  # noqa: PLC0415

        heat_maps(result).savefig(args.plot, dpi=110)
    if args.report:
        from watchkeeper.evaluation.shift_matrix.page import write_report  # noqa: PLC0415

        write_report(args.report, result)
