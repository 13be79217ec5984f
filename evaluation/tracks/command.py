"""`watchkeeper evaluate tracks REAL GEN`: how like the real trajectories are the generated ones?

api.py does the work; this file reads the arguments and writes `trajectory_metrics.json` (metrics.py), which `evaluate
paired` compares across models. Loaded by daemon/commands/evaluate.py. The distances can be imported from here.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from watchkeeper.evaluation.shared.arguments import (
    STDOUT,
    html_file,
    missing_extra,
    number,
    plot_file,
    whole,
)
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.tracks import options
from watchkeeper.evaluation.tracks.api import Evaluation, evaluate
from watchkeeper.evaluation.tracks.distance import EDR_EPS_M, dtw_km, edr, hausdorff_km, haversine_km
from watchkeeper.evaluation.tracks.files import read_tracks
from watchkeeper.evaluation.tracks.metrics import FILE_NAME, OD_SOURCES
from watchkeeper.evaluation.tracks.pairs import grid_over
from watchkeeper.evaluation.tracks.report import table
from watchkeeper.evaluation.tracks.roads import read_roads
from watchkeeper.streams.logs.exits import USAGE, fail

__all__ = ["Evaluation", "dtw_km", "edr", "evaluate", "hausdorff_km", "haversine_km", "read_tracks"]

HELP = """\
Compare generated trajectories with real ones that have the same origin and destination: Hausdorff distance, exact
dynamic time warping (DTW) and edit distance (EDR), one record per comparison. And all of them together: how many begin
and end where real ones do, and how far the distributions of length, duration and radius diverge."""
EXAMPLES = """\
examples:
  watchkeeper evaluate tracks real.csv generated.csv
  watchkeeper evaluate tracks day.wklog simulated.wklog --gap-s 600 --grid-size 0.05
  watchkeeper evaluate tracks real.csv gen.csv --out 'eval/{timestamp}'      results.json and trajectory_metrics.json
  watchkeeper evaluate tracks real.geojson gen.geojson --report report.html
  watchkeeper evaluate tracks real.csv gen.csv --bounds 39.7 116.1 40.2 116.7     the same cells for every data set
  watchkeeper evaluate tracks test.csv generated.csv --roads roadmap.geo          lists of roads (rid_list)
  watchkeeper evaluate tracks real.csv gen.csv --slice time place --utc-offset 8 --centre 39.9042 116.4074 5

Files: .csv with traj_id (or id), lat, lon and perhaps t; .csv with rid_list or gene_trace_road_id, which need --roads;
GeoJSON lines; .wklog and all other logs.
docs/evaluation/tracks.md defines every figure. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage
"""
RESULTS_NAME = "results.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("real", metavar="REAL", type=Path, help="the real trajectories")
    parser.add_argument("gen", metavar="GEN", type=Path, help="the generated ones")
    options.add_grid(parser)
    parser.add_argument(
        "--edr-eps", type=number("metres", 0.0), default=EDR_EPS_M, metavar="M",
        help=f"EDR: points nearer than this match (default {EDR_EPS_M:g})",
    )  # fmt: skip
    parser.add_argument(
        "--gap-s", type=number("seconds", 0.0, open_at_lo=True), metavar="S",
        help="a silence longer than this ends one trajectory of a vehicle and begins another (default: never)",
    )  # fmt: skip
    parser.add_argument(
        "--od-source", choices=OD_SOURCES, default="test", help="where origins and destinations are from"
    )
    options.add_slices(parser)
    parser.add_argument("--jobs", type=whole(1, 1024), metavar="N", help="threads (default: one per core)")
    parser.add_argument(
        "--out", type=Path, metavar="PATH",
        help=f"{FILE_NAME} as a .json file, or a folder for it and {RESULTS_NAME}; {{timestamp}} is replaced",
    )  # fmt: skip
    parser.add_argument("--plot", type=plot_file, metavar="FILE", help="draw pairs, .png, .svg or .pdf (extra `plots`)")
    parser.add_argument(
        "--histograms",
        type=plot_file,
        metavar="FILE",
        help="draw the distributions and their divergence (extra `plots`)",
    )
    parser.add_argument("--report", type=html_file, metavar="FILE.html", help="one page with it all (extra `plots`)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no remarks about the files")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    drawn = next((name for name in ("report", "plot", "histograms") if getattr(args, name)), None)
    if drawn and (missing := missing_extra(f"--{drawn}", "matplotlib", "plots")):
        return fail(missing)
    try:
        bounds, slicing = options.bounds_in(args), options.slicing_in(args)
    except options.UsageError as error:
        return fail(str(error), USAGE)
    roads = read_roads(args.roads) if args.roads else None
    real, gen = (read_tracks(path, gap_s=args.gap_s, quiet=args.quiet, roads=roads) for path in (args.real, args.gen))
    grid = bounds or (roads.grid(args.grid_size) if roads else grid_over(real, args.grid_size))
    if not args.quiet:
        for tracks in (real, gen):
            for remark in tracks.remarks:
                print(f"watchkeeper: {tracks.path}: {remark}", file=sys.stderr)
    with _bar(hidden=args.quiet) as bar:
        task = bar.add_task("comparing", total=1.0)
        result = evaluate(
            real, gen, grid=grid, eps_m=args.edr_eps, od_source=args.od_source,
            slicing=slicing, jobs=args.jobs, done=lambda share: bar.update(task, completed=share),
        )  # fmt: skip
    if not len(result.matching.pairs):
        print(table(result.summary), file=sys.stderr)
        return fail("no origin and destination in common: nothing to compare (a larger --grid-size may help)")
    if args.out:
        _write(args.out, result)
    if args.out != STDOUT:
        print(table(result.summary))
    _draw(args, result)
    return 0


def _draw(args: argparse.Namespace, result: Evaluation) -> None:
    """The pictures and the page that were asked for."""
    if args.plot or args.histograms:
        from watchkeeper.evaluation.tracks.plots import plot_histograms, plot_overlays  # noqa: PLC0415

        if args.plot:
            plot_overlays(result.real, result.gen, result.metrics).savefig(args.plot, dpi=110)
        if args.histograms:
            plot_histograms(result.real, result.gen).savefig(args.histograms, dpi=110)
    if args.report:
        from watchkeeper.evaluation.tracks.page import write_report  # noqa: PLC0415

        write_report(args.report, result.real, result.gen, result.metrics, result.summary)


def _write(path: Path, result: Evaluation) -> None:
    """The documented files: trajectory_metrics.json alone, or in a folder with the results of all together."""
    if path == STDOUT or path.suffix == ".json":
        write_json(path, msgspec.to_builtins(result.metrics))
        return
    folder = Path(str(path).replace("{timestamp}", datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S")))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RESULTS_NAME, {"metadata": result.metrics.metadata, **msgspec.to_builtins(result.summary)})
    write_json(folder / FILE_NAME, msgspec.to_builtins(result.metrics))


def _bar(*, hidden: bool) -> Progress:
    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)
