"""`watchkeeper evaluate conflicts EPISODE…`: did the controller see the conflicts that were there, and only those?

api.py does the work; this file reads the arguments and writes tables, JSON and a report. `HallucinationDetector` is the
same for one trajectory. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from watchkeeper.evaluation.conflicts.api import Conflicts, conflicts, evaluate_file, findings_of
from watchkeeper.evaluation.conflicts.departures import AS_DOCUMENTED, DEPARTURES
from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.fields import EpisodeError
from watchkeeper.evaluation.conflicts.metrics import METRICS
from watchkeeper.evaluation.conflicts.playback.film import animation_file, missing
from watchkeeper.evaluation.conflicts.playback.pages import check_place, write_pages
from watchkeeper.evaluation.conflicts.safety.hotspots import CELL_NM
from watchkeeper.evaluation.conflicts.safety.risk import TARGET_PER_HOUR
from watchkeeper.evaluation.conflicts.summary import risk_table, table, went_wrong
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail

__all__ = ["METRICS", "EpisodeError", "HallucinationDetector", "evaluate_file", "main"]

HELP = """\
The 31 conflict metrics of recorded episodes: which conflicts a controller acted upon, which it missed, which it only
imagined, and what its actions cost. An episode is a trajectory as JSON or MessagePack, a CSV, or a .wklog recording
with an action stream."""
EXAMPLES = """\
examples:
  watchkeeper evaluate conflicts episode.json
  watchkeeper evaluate conflicts runs/*.csv --group-by shift --out metrics.json
  watchkeeper simulate controlled --out c.wklog && watchkeeper evaluate conflicts c.wklog --report c.html
  watchkeeper evaluate conflicts c.wklog --page c-page.html --animation c.gif
  watchkeeper evaluate conflicts runs/*.csv --report all.html --page pages/
  watchkeeper evaluate conflicts runs/*.csv --risk --target-per-hour 1e-7 --report safety.html
  watchkeeper evaluate conflicts episode.json --as-documented
  watchkeeper evaluate conflicts episode.json --detail --out - | jq .episodes[0].windows

docs/evaluation/conflicts.md defines every figure and the input. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage
"""
# Episodes with pictures of their own in a report; the tables hold all of them.
PICTURED = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    d = HallucinationDetector()
    parser.add_argument("episodes", metavar="EPISODE", nargs="+", type=Path, help=".json, .msgpack, .csv or .wklog")
    parser.add_argument("--group-by", metavar="KEY", help="a key of scenario_metadata, or a CSV column, such as shift")
    parser.add_argument("--out", type=Path, metavar="METRICS.json", help="everything as JSON")
    parser.add_argument("--detail", action="store_true", help="with --out: every step and every window as well")
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="one page with pictures (extra `plots`)")
    parser.add_argument(
        "--page", type=Path, metavar="FILE.html|DIR",
        help="a page that plays the episode: map, timeline, confusion; a folder for several, to which --report links",
    )  # fmt: skip
    parser.add_argument(
        "--animation", type=animation_file, metavar="FILE.gif",
        help="the same to watch in slides (extra `plots`): .gif, .webp or .apng, with ffmpeg also .mp4 and .webm; of "
        "several episodes the one in which most went wrong",
    )  # fmt: skip
    for name, unit, text in (
        ("horizon_s", "S", "how far ahead a conflict is predicted"),
        ("res_window_s", "S", "how long after a conflict separation must hold"),
        ("action_period_s", "S", "the step, where the input has no times; the step at which a .wklog is looked at"),
        ("los_threshold_nm", "NM", "separation minimum"),
        ("collision_nm", "NM", "closer than this is counted as a collision"),
        ("iou_threshold", "X", "overlap over union that makes an alert answer a conflict"),
    ):
        default = getattr(d, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=_above_zero, default=default, metavar=unit, help=f"{text} ({default:g})"
        )
    parser.add_argument(
        "--action-thresh", type=_above_zero, nargs=2, default=d.action_thresh, metavar=("DEG", "KT"),
        help="commands below are trimming ({:g} {:g})".format(*d.action_thresh),
    )  # fmt: skip
    parser.add_argument(
        "--risk", action="store_true",
        help="also: losses of separation and collisions per flight hour with exact Poisson intervals, the survival of "
        "the least separation, and where alerts were false or missed",
    )  # fmt: skip
    parser.add_argument(
        "--target-per-hour", type=_above_zero, default=TARGET_PER_HOUR, metavar="X",
        help=f"with --risk: the target level of safety ({TARGET_PER_HOUR:g})",
    )  # fmt: skip
    parser.add_argument(
        "--cell-nm",
        type=_above_zero,
        default=CELL_NM,
        metavar="NM",
        help=f"with --risk: cells of the map ({CELL_NM:g})",
    )
    _add_departures(parser)
    parser.add_argument(
        "--jobs", type=_whole, default=0, metavar="N", help="processes (default: the cores, if it pays)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no remarks about recordings")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    try:
        return _evaluate(args)
    except EvaluationError as error:
        return fail(str(error))


def _evaluate(args: argparse.Namespace) -> int:
    # before the work, not after it
    problem = missing_extra("--report", "matplotlib", "plots") if args.report else None
    if problem := problem or (missing(args.animation) if args.animation else None):
        return fail(problem)
    if args.page:
        check_place(args.page, len(args.episodes))
    departures = {row.setting: getattr(args, row.setting) for row in DEPARTURES if hasattr(args, row.setting)}
    result = conflicts(
        args.episodes,
        group_by=args.group_by,
        detail=args.detail,
        jobs=args.jobs,
        quiet=args.quiet,
        horizon_s=args.horizon_s,
        action_thresh=tuple(args.action_thresh),
        res_window_s=args.res_window_s,
        action_period_s=args.action_period_s,
        los_threshold_nm=args.los_threshold_nm,
        collision_nm=args.collision_nm,
        iou_threshold=min(1.0, args.iou_threshold),
        merge_overlapping=args.merge_overlapping,
        **(AS_DOCUMENTED if args.as_documented else {}) | departures,
    )
    for episode in result.episodes if not args.quiet else []:
        for problem in episode["problems"]:
            print(f"watchkeeper: {episode['file']}: {problem}", file=sys.stderr)
    safety = result.safety(args.target_per_hour, args.cell_nm) if args.risk else None
    if args.out:
        write_json(args.out, result.to_dict() | (safety or {}))
    pages = write_pages(args.page, result.detector, result.episodes, quiet=args.quiet) if args.page else None
    if args.report:
        from watchkeeper.evaluation.conflicts.report import write_report  # noqa: PLC0415

        write_report(
            args.report, result.detector, result.episodes, result.groups, most=PICTURED, safety=safety, pages=pages
        )
    if args.animation and result.episodes:
        _animate(args.animation, result, quiet=args.quiet)
    if str(args.out) != "-":
        print(table(result.groups, result.counts))
        if safety is not None:
            print("\n" + risk_table(safety["risk"]))
    return 0


def _animate(path: Path, result: Conflicts, *, quiet: bool) -> None:
    from watchkeeper.evaluation.conflicts.playback.animation import animate  # noqa: PLC0415

    row = max(result.episodes, key=went_wrong)
    frames = animate(path, findings_of(row, result.detector), row["name"], quiet=quiet)
    print(f"{path}: {row['name']}, {frames} frames", file=sys.stderr)


def _add_departures(parser: argparse.ArgumentParser) -> None:
    """One option for each departure; those that are not given leave no trace in the arguments."""
    parser.add_argument(
        "--merge-overlapping", action="store_true", help="windows whose margins overlap are one (they are separate)"
    )
    group = parser.add_argument_group("where this departs from the document that defines the metrics")
    group.add_argument("--as-documented", action="store_true", help="all of these as documented")
    for row in DEPARTURES:
        option, text = f"--{row.setting.replace('_', '-')}", f"{row.documented}, as documented: {row.help} ({row.ours})"
        if isinstance(row.ours, bool):
            group.add_argument(
                f"--no-{option[2:]}", dest=row.setting, action="store_false", default=argparse.SUPPRESS,
                help=f"as documented: {row.help}",
            )  # fmt: skip
        elif isinstance(row.ours, str):
            words = row.ours, row.documented
            group.add_argument(option, choices=words, default=argparse.SUPPRESS, help=text)
        else:
            group.add_argument(
                option, type=_above_zero_or_none, metavar="FT", default=argparse.SUPPRESS, help=text.lower()
            )


def _above_zero_or_none(word: str) -> float | None:
    return None if word == "none" else _above_zero(word)


def _whole(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r}: expected a whole number from 0")
    return int(word)


def _above_zero(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a number above 0")
    return value
