"""`watchkeeper evaluate paired A B`: which of two models comes nearer to the same real trajectories, and is it chance?

api.py does the work; this file reads the arguments, finds the files of `evaluate tracks` and writes the results down.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from watchkeeper.evaluation.paired.api import DEFAULT_METRICS, paired
from watchkeeper.evaluation.paired.files import find_file, pair, read_model
from watchkeeper.evaluation.paired.models import Comparison, as_json, compare, short_names
from watchkeeper.evaluation.paired.report import table
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.stats import ALPHA, RESAMPLES, SEED, compare_models_paired, correct
from watchkeeper.evaluation.shared.arguments import (
    STDOUT,
    html_file,
    missing_extra,
    number,
    plot_file,
    whole,
)
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.tracks.metrics import FILE_NAME, METRICS
from watchkeeper.streams.logs.exits import USAGE, fail

__all__ = ["Comparison", "PairedResult", "compare", "compare_models_paired", "correct", "pair", "read_model"]

HELP = """\
Compare models on the same trajectories: paired t-test and Wilcoxon's, effect size, bootstrap interval of the mean
difference, and p-values corrected over the metrics (Holm, Benjamini-Hochberg). Needs the extra `stats`."""
EXAMPLES = """\
examples:
  watchkeeper evaluate paired eval/vanilla eval/distilled
  watchkeeper evaluate paired a/trajectory_metrics.json b/trajectory_metrics.json --out paired_results.json
  watchkeeper evaluate paired eval/a eval/b eval/c --out paired_analysis     every two, a folder for each
  watchkeeper evaluate paired eval/a eval/b --report report.html

A model is a result folder of `evaluate tracks --out FOLDER`, or a trajectory_metrics.json.
docs/evaluation/paired.md says which test counts, and why. A file name of - is standard output.
exit codes: 0 good (whatever the tests say), 1 failed, 2 usage
"""
RESULTS_NAME = "paired_results.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("first", metavar="A", type=Path, help="results of the first model")
    parser.add_argument("second", metavar="B", type=Path, help="results of the second one")
    parser.add_argument("more", metavar="MORE", type=Path, nargs="*", help="further models: every two are compared")
    parser.add_argument(
        "--names", nargs="+", metavar="NAME", help="what to call the models (default: from their paths)"
    )
    parser.add_argument(
        "--metrics", nargs="+", choices=METRICS, default=DEFAULT_METRICS, metavar="METRIC",
        help=f"of {', '.join(METRICS)} (default: {' '.join(DEFAULT_METRICS)})",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=number("a level", 0.0, 0.5, open_at_lo=True), default=ALPHA,
        help=f"level of the tests, and 1 minus that of the interval (default {ALPHA:g})",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole(0), default=SEED, help=f"of the bootstrap (default {SEED})")
    parser.add_argument("--resamples", type=whole(100), default=RESAMPLES, help=f"(default {RESAMPLES})")
    parser.add_argument(
        "--out", type=Path, metavar="PATH",
        help=f"results as a .json file, or a folder: FOLDER/{{od_source}}/{{a}}_vs_{{b}}/{RESULTS_NAME}",
    )  # fmt: skip
    parser.add_argument(
        "--plot", type=plot_file, metavar="FILE", help="the differences, .png, .svg or .pdf (extra `plots`)"
    )
    parser.add_argument("--report", type=html_file, metavar="FILE.html", help="one page with it all (extra `plots`)")


def main(args: argparse.Namespace) -> int:
    """Compare; the exit code."""
    given = [args.first, args.second, *args.more]
    option = "--report" if args.report else "--plot"
    missing = missing_extra("evaluate paired", "statsmodels", "stats")
    if missing is None and (args.plot or args.report):
        missing = missing_extra(option, "matplotlib", "plots")
    if missing:
        return fail(missing)
    if problem := _usage(args, given):
        return fail(problem, USAGE)
    found = [(path, file) for path in given if (file := find_file(path)) is not None]
    for path in given:
        if path not in dict(found):
            print(f"watchkeeper: {path}: no {FILE_NAME} in this folder, left out", file=sys.stderr)
    if len(found) < 2:
        return fail("fewer than two models to compare: run `watchkeeper evaluate tracks … --out FOLDER` for each")
    metrics = list(dict.fromkeys(args.metrics))
    called = dict(zip(given, args.names or short_names(given), strict=True))
    models = {called[path]: file for path, file in found}
    comparisons = paired(
        models, metrics=metrics, alpha=args.alpha, seed=args.seed, resamples=args.resamples
    ).comparisons
    for comparison in comparisons:
        if args.out:
            write_json(_target(args.out, comparison), as_json(comparison, seed=args.seed, resamples=args.resamples))
    if args.out != STDOUT:
        print("\n\n".join(map(table, comparisons)))
    if args.plot:
        from watchkeeper.evaluation.paired.plots import plot_differences  # noqa: PLC0415

        plot_differences(comparisons[0]).savefig(args.plot, dpi=110)
    if args.report:
        from watchkeeper.evaluation.paired.page import write_report  # noqa: PLC0415

        write_report(args.report, comparisons)
    return 0


def _usage(args: argparse.Namespace, given: list[Path]) -> str | None:
    """What is wrong with the arguments together."""
    if args.names and len(set(args.names)) != len(given):
        return f"--names {' '.join(args.names)}: expected {len(given)} different names"
    if any("/" in name for name in args.names or ()):
        return f"--names {' '.join(args.names)}: a name becomes a folder's, so it has no / in it"
    if len(set(given)) != len(given):
        return "a model cannot be compared with itself"
    if len(given) > 2 and (args.plot or (args.out and _is_file(args.out))):
        return f"{len(given)} models make several comparisons: --out takes a folder, and --plot works for two"
    return None


def _target(out: Path, comparison: Comparison) -> Path:
    first, second = comparison.names
    od_source = str(comparison.first.metadata["od_source"])
    if _is_file(out):
        return out
    folder = out / od_source / f"{first}_vs_{second}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / RESULTS_NAME


def _is_file(out: Path) -> bool:
    return out == STDOUT or out.suffix == ".json"
