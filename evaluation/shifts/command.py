"""`watchkeeper evaluate shifts EPISODE…`: what does it change when one aircraft begins otherwise, and is that chance?

api.py does the work; this file reads the arguments, simulates episodes if asked to (make.py), and writes tables, JSON,
pictures and a report. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.direction import HEADLINES
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS
from watchkeeper.evaluation.paired.options import add_tests
from watchkeeper.evaluation.shared.arguments import (
    STDOUT,
    html_file,
    missing_extra,
    number,
    plot_file,
    whole,
)
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.evaluation.shifts import make
from watchkeeper.evaluation.shifts.api import Shifts, compared
from watchkeeper.evaluation.shifts.flown import Flown, examined, read
from watchkeeper.evaluation.shifts.report import table
from watchkeeper.streams.logs.exits import USAGE, fail
from watchkeeper.streams.simulate import SHIFT_KINDS, Shift

HELP = """\
One aircraft of an episode is shifted (speed, heading, position, waypoint), everything else and the seed stay the same.
Each shifted episode is compared with its own baseline: conflict metrics by paired tests, tracks by dynamic time
warping (DTW) and Hausdorff distance, per shifted aircraft, kind and size. Needs the extra `stats`."""
EXAMPLES = """\
examples:
  watchkeeper evaluate shifts --simulate 20                                  simulated episodes of 20 seeds, at once
  watchkeeper evaluate shifts --simulate 20 --report shifts.html --keep episodes/
  watchkeeper evaluate shifts --simulate 10 --shift answered-2 speed 20 --shift answered-2 speed -20
  watchkeeper evaluate shifts episodes/*.json --metrics f1_score min_separation_nm --out shifts.json
  watchkeeper evaluate shifts runs/*.csv --plot effects.png --plot-tracks dtw.png

An episode's scenario_metadata (or columns of its CSV) says seed, target_agent, shift_type and shift_value; a baseline
has the shift_type baseline. docs/evaluation/shifts.md defines every figure. A file name of - is standard output.
exit codes: 0 good (whatever the tests say), 1 failed, 2 usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    d = HallucinationDetector()
    parser.add_argument("episodes", metavar="EPISODE", nargs="*", type=Path, help="as `evaluate conflicts` takes them")
    group = parser.add_argument_group("simulated episodes")
    group.add_argument(
        "--simulate", type=whole(1, 10_000), metavar="N", help="scenario `controlled` with the seeds 0 to N - 1"
    )
    group.add_argument(
        "--shift", nargs=3, action="append", metavar=("AIRCRAFT", "KIND", "SIZE"),
        help="instead of the default shifts; kinds: "
        + ", ".join(f"{name} ({kind.unit}, at most {kind.most:g})" for name, kind in SHIFT_KINDS.items()),
    )  # fmt: skip
    group.add_argument("--keep", type=Path, metavar="FOLDER", help="write the simulated episodes as JSON")
    parser.add_argument(
        "--metrics", nargs="+", choices=METRICS + BESIDE, default=HEADLINES, metavar="METRIC",
        help=f"of those of `evaluate conflicts` (default: {' '.join(HEADLINES)})",
    )  # fmt: skip
    parser.add_argument(
        "--los-threshold-nm", type=number("NM", 0.0, open_at_lo=True), default=d.los_threshold_nm, metavar="NM",
        help=f"separation minimum ({d.los_threshold_nm:g})",
    )  # fmt: skip
    add_tests(parser)
    parser.add_argument("--out", type=Path, metavar="SHIFTS.json", help="everything as JSON")
    parser.add_argument("--plot", type=plot_file, metavar="FILE", help="the differences (extra `plots`)")
    parser.add_argument("--plot-tracks", type=plot_file, metavar="FILE", help="the DTW of the tracks (extra `plots`)")
    parser.add_argument("--report", type=html_file, metavar="FILE.html", help="one page with it all (extra `plots`)")
    parser.add_argument(
        "--jobs", type=whole(0), default=0, metavar="N", help="processes (default: the cores, if it pays)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no notes")


def main(args: argparse.Namespace) -> int:
    """Compare; the exit code."""
    missing = missing_extra("evaluate shifts", "statsmodels", "stats")
    drawn = next((name for name in ("report", "plot", "plot_tracks") if getattr(args, name)), None)
    if missing is None and drawn:
        missing = missing_extra(f"--{drawn.replace('_', '-')}", "matplotlib", "plots")
    if missing:
        return fail(missing)
    if problem := _usage(args):
        return fail(problem, USAGE)
    detector = HallucinationDetector(los_threshold_nm=args.los_threshold_nm)
    try:
        flown = _simulated(args, detector) if args.simulate else read(
            args.episodes, detector, jobs=args.jobs, quiet=args.quiet
        )  # fmt: skip
        how = {"alpha": args.alpha, "seed": args.seed, "resamples": args.resamples}
        result = compared(flown, detector, tuple(dict.fromkeys(args.metrics)), **how)
    except EvaluationError as error:
        return fail(str(error))
    for note in result.notes if not args.quiet else ():
        print(f"watchkeeper: {note}", file=sys.stderr)
    _write(args, result)
    return 0


def _usage(args: argparse.Namespace) -> str | None:
    """What is wrong with the arguments together; turns --shift into shifts."""
    if bool(args.episodes) == bool(args.simulate):
        return "expected episodes, or --simulate N (and not both)"
    if not args.simulate and (args.shift or args.keep):
        return "--shift and --keep are about simulated episodes: they need --simulate"
    try:
        args.shift = [_shift(words) for words in args.shift or ()] or list(make.SHIFTS)
    except ValueError as error:
        return f"--{error}"
    if len(set(args.shift)) < len(args.shift):
        return "--shift: the same shift twice"
    return None


def _shift(words: list[str]) -> Shift:
    aircraft, kind, size = words
    try:
        shift = Shift(aircraft, kind, float(size))
    except ValueError:
        raise ValueError(f"shift: size {size!r} is not a number") from None
    make.check(shift)
    return shift


def _simulated(args: argparse.Namespace, detector: HallucinationDetector) -> list[Flown]:
    made = make.episodes(range(args.simulate), args.shift, jobs=args.jobs, quiet=args.quiet)
    if args.keep:
        return read(make.write(args.keep, made), detector, jobs=args.jobs, quiet=args.quiet)
    return [flown for one in made for flown in examined(one, detector=detector)]


def _write(args: argparse.Namespace, result: Shifts) -> None:
    if args.out:
        write_json(args.out, result.to_dict())
    if args.out != STDOUT:
        print(table(result))
    if args.plot or args.plot_tracks:
        from watchkeeper.evaluation.shifts.plots import effects_figure, tracks_figure  # noqa: PLC0415

        if args.plot:
            effects_figure(result).savefig(args.plot, dpi=110)
        if args.plot_tracks:
            tracks_figure(result).savefig(args.plot_tracks, dpi=110)
    if args.report:
        from watchkeeper.evaluation.shifts.page import write_report  # noqa: PLC0415

        write_report(args.report, result)
