"""`watchkeeper evaluate paired A B`: which of two models comes nearer to the same real trajectories, and is it chance?

api.py does the work; this file reads the arguments, finds the files of `evaluate tracks` and writes the results down.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from watchkeeper.evaluation.paired.api import DEFAULT_METRICS, TOO_FEW, Settings, compare_all, left_out
from watchkeeper.evaluation.paired.discover import Found, models_below, runs_of
from watchkeeper.evaluation.paired.files import pair, read_model
from watchkeeper.evaluation.paired.models import Comparison, as_json, compare, short_names
from watchkeeper.evaluation.paired.options import add_tests
from watchkeeper.evaluation.paired.report import table
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.evaluation.paired.stats import compare_models_paired, correct
from watchkeeper.evaluation.shared.arguments import (
    STDOUT,
    html_file,
    missing_extra,
    plot_file,
)
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.tracks.metrics import METRICS
from watchkeeper.streams.logs.exits import USAGE, fail

__all__ = ["Comparison", "PairedResult", "compare", "compare_models_paired", "correct", "pair", "read_model"]

HELP = """\
Compare models on the same trajectories: paired t-test and Wilcoxon's, effect size, bootstrap interval of the mean
difference, and p-values corrected over the metrics (Holm, Benjamini-Hochberg). Needs the extra `stats`."""
EXAMPLES = """\
examples:
  watchkeeper evaluate paired eval                                           every model below this folder
  watchkeeper evaluate paired eval/vanilla eval/distilled
  watchkeeper evaluate paired a/trajectory_metrics.json b/trajectory_metrics.json --out paired_results.json
  watchkeeper evaluate paired eval/a eval/b eval/c --out paired_analysis     every two, a folder for each
  watchkeeper evaluate paired eval/a eval/b --report report.html

A model is a result folder of `evaluate tracks --out FOLDER`, or a trajectory_metrics.json. With a folder for each seed
(eval/vanilla/seed1, eval/vanilla/seed2 …) models are also compared over their seeds: mean, spread, and whether they
differ by more than seeds do. Models without metrics are left out with a note; two must remain.
docs/evaluation/paired.md says which test counts, and why. A file name of - is standard output.
exit codes: 0 good (whatever the tests say), 1 failed, 2 usage
"""
RESULTS_NAME = "paired_results.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument(
        "models", metavar="MODEL", type=Path, nargs="+",
        help="results of a model; every two are compared. A single one is a folder of models",
    )  # fmt: skip
    parser.add_argument(
        "--names", nargs="+", metavar="NAME", help="what to call the models (default: from their paths)"
    )
    parser.add_argument(
        "--metrics", nargs="+", choices=METRICS, default=DEFAULT_METRICS, metavar="METRIC",
        help=f"of {', '.join(METRICS)} (default: {' '.join(DEFAULT_METRICS)})",
    )  # fmt: skip
    add_tests(parser)
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
    option = "--report" if args.report else "--plot"
    missing = missing_extra("evaluate paired", "statsmodels", "stats")
    if missing is None and (args.plot or args.report):
        missing = missing_extra(option, "matplotlib", "plots")
    if missing:
        return fail(missing)
    if problem := _usage(args):
        return fail(problem, USAGE)
    models, notes = _models(args)
    if len(models) < 2:
        return fail("\nwatchkeeper: ".join((*notes, TOO_FEW)))
    if len(models) > 2 and (args.plot or (args.out and _is_file(args.out))):
        return fail(
            f"{len(models)} models make several comparisons: --out takes a folder, and --plot works for two", USAGE
        )
    settings = Settings(tuple(dict.fromkeys(args.metrics)), args.alpha, args.seed, args.resamples)
    try:
        result = compare_all({model.name: model for model in models}, settings, skip=len(args.models) == 1)
    except EvaluationError as error:
        return fail("\nwatchkeeper: ".join((*notes, str(error))))
    for note in (*notes, *result.notes):
        print(f"watchkeeper: {note}", file=sys.stderr)
    _write(args, result.comparisons)
    return 0


def _models(args: argparse.Namespace) -> tuple[list[Found], list[str]]:
    """The models that have metrics, given one by one or below one folder, and a note for each that has none."""
    first: Path = args.models[0]
    if len(args.models) == 1 and first.is_dir():
        found, empty = models_below(first, but=args.out)
        return found, [left_out(folder) for folder in empty]
    names = args.names or short_names(args.models)
    given = [Found(name, path, runs_of(path)) for name, path in zip(names, args.models, strict=True)]
    return [model for model in given if model.files], [left_out(model.folder) for model in given if not model.files]


def _write(args: argparse.Namespace, comparisons: list[Comparison]) -> None:
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


def _usage(args: argparse.Namespace) -> str | None:
    """What is wrong with the arguments together."""
    given = args.models
    if args.names and len(given) == 1:
        return "--names is for models that are given one by one; below a folder they are called by their folders"
    if args.names and len(set(args.names)) != len(given):
        return f"--names {' '.join(args.names)}: expected {len(given)} different names"
    if any("/" in name for name in args.names or ()):
        return f"--names {' '.join(args.names)}: a name becomes a folder's, so it has no / in it"
    if len(set(given)) != len(given):
        return "a model cannot be compared with itself"
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
