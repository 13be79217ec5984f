"""`watchkeeper evaluate conflicts EPISODE…`: did the controller see the conflicts that were there, and only those?

Reads the episodes, works out the metrics of each, and writes tables, JSON and a report. `HallucinationDetector` is the
same from Python. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.conflicts.detector import Findings, HallucinationDetector, details
from watchkeeper.evaluation.conflicts.fields import EpisodeError
from watchkeeper.evaluation.conflicts.load import read_episodes
from watchkeeper.evaluation.conflicts.metrics import METRICS
from watchkeeper.evaluation.conflicts.summary import aggregate, grouped, table
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shared.output import write_json

__all__ = ["METRICS", "EpisodeError", "HallucinationDetector", "main"]

HELP = """\
The 31 conflict metrics of recorded episodes: which conflicts a controller acted upon, which it missed, which it only
imagined, and what its actions cost. An episode is a trajectory as JSON or MessagePack, a CSV, or a .wklog recording
with an action stream."""
EXAMPLES = """\
examples:
  watchkeeper evaluate conflicts episode.json
  watchkeeper evaluate conflicts runs/*.csv --group-by shift --out metrics.json
  watchkeeper simulate controlled --out c.wklog && watchkeeper evaluate conflicts c.wklog --report c.html
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
    for name, unit, text in (
        ("horizon_s", "S", "how far ahead a conflict is predicted"),
        ("res_window_s", "S", "how long after a conflict separation must hold"),
        ("action_period_s", "S", "the step, where the input has no times; the step at which a .wklog is looked at"),
        ("los_threshold_nm", "NM", "separation minimum"),
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
        "--jobs", type=_whole, default=0, metavar="N", help="processes (default: the cores, if it pays)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no remarks about recordings")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.report and importlib.util.find_spec("matplotlib") is None:
        # before the work, not after it
        print('watchkeeper: --report needs matplotlib: pip install "watchkeeper[plots]"', file=sys.stderr)
        return 1
    detector = HallucinationDetector(
        horizon_s=args.horizon_s,
        action_thresh=tuple(args.action_thresh),
        res_window_s=args.res_window_s,
        action_period_s=args.action_period_s,
        los_threshold_nm=args.los_threshold_nm,
        iou_threshold=min(1.0, args.iou_threshold),
    )
    work = partial(evaluate_file, detector=detector, detail=args.detail)
    files = counted(work, args.episodes, "evaluating", jobs=args.jobs, hidden=args.quiet)
    episodes = [episode for file in files for episode in file]
    for episode in episodes if not args.quiet else []:
        for problem in episode["problems"]:
            print(f"watchkeeper: {episode['file']}: {problem}", file=sys.stderr)
    groups = grouped(episodes, args.group_by)
    figures = {name: aggregate(rows) for name, rows in groups.items()}
    if args.out:
        write_json(args.out, {"settings": detector_settings(detector), "groups": figures, "episodes": episodes})
    if args.report:
        from watchkeeper.evaluation.conflicts.report import write_report  # noqa: PLC0415

        write_report(args.report, detector, episodes, figures, most=PICTURED)
    if str(args.out) != "-":
        print(table(figures, {name: len(rows) for name, rows in groups.items()}))
    return 0


def evaluate_file(path: Path, *, detector: HallucinationDetector, detail: bool = False) -> list[dict[str, Any]]:
    """Name, metadata, metrics and settings of each episode in a file. Raises LogError."""
    return [
        _as_row(path, name, detector.examine(episode), detector.los_threshold_nm if detail else None)
        for name, episode in read_episodes(path, detector.action_period_s)
    ]


def detector_settings(detector: HallucinationDetector) -> dict[str, Any]:
    """The settings that all episodes share."""
    return {name: getattr(detector, name) for name in detector.__dataclass_fields__} | {"overlapping_windows": "merged"}


def _as_row(path: Path, name: str, found: Findings, separation_nm: float | None) -> dict[str, Any]:
    row = {
        "file": str(path),
        "name": name,
        "meta": found.episode.meta,
        "agents": len(found.episode.ids),
        "steps_total": len(found.episode.t),
        "problems": list(found.episode.problems),
        "metrics": found.metrics,
        "settings": found.settings,
    }
    return row if separation_nm is None else row | details(found, separation_nm)


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
