"""`watchkeeper evaluate alarms LOG…`: were the conflict alarms true, and did they come in time?

The logs go through the one Pipeline as in a replay. Afterwards their own future is the truth: truth.py finds the pairs
that really lost separation, verdicts.py holds the alarms against them, and rebounce.py works out what other rules would
have raised. This file drives them and writes the result down; it is loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.evaluation.alarms.curve import Curve, trade_off
from watchkeeper.evaluation.alarms.flights import Reports
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog
from watchkeeper.evaluation.alarms.report import curve_table, figures_table, pair_lines
from watchkeeper.evaluation.alarms.truth import losses
from watchkeeper.evaluation.alarms.verdicts import Alarm, AlarmVerdict, Figures, LossVerdict, Truth, figures, judge
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.exits import fail
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, open_log, read_logs

HELP = """\
Hold the conflict alarms of a log against what happened next: which alarms were followed by a loss of separation,
which losses were foreseen, and how long before."""
EXAMPLES = """\
examples:
  watchkeeper evaluate alarms flight.wklog
  watchkeeper evaluate alarms flight.wklog --min-alt-ft 3000 --pairs      every alarm and every loss, with its verdict
  watchkeeper evaluate alarms flight.wklog --out metrics.json --plot curve.svg

docs/evaluation/alarms.md defines every figure. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""

KIND = "conflict"
PLOT_ENDINGS = (".png", ".svg", ".pdf")


class Evaluation(msgspec.Struct, frozen=True):
    """All that is known about the alarms of one run."""

    config: Config
    min_alt_ft: float
    aircraft: int
    flight_hours: float
    t_first: float
    interval_s: float
    figures: Figures
    severity: dict[str, int]
    """How many alarms reached which severity at the worst."""
    alarms: list[AlarmVerdict]
    losses: list[LossVerdict]
    curve: Curve | None


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
    if not config.detectors.conflict.enabled:
        return fail("detectors.conflict.enabled is false: there are no alarms to evaluate")
    sources = [open_log(path) for path in args.logs]
    batches = shown(read_logs(sources), sources, "evaluating", hidden=args.quiet)
    result = evaluate(batches, config, min_alt_ft=args.min_alt_ft, curve=args.curve or args.plot is not None)
    if not args.quiet:
        _warn(sources)
    if not result.aircraft:
        above = f" at or above {args.min_alt_ft:g} ft" if args.min_alt_ft else ""
        return fail(f"no ADS-B samples{above} in {', '.join(map(str, args.logs))}")
    if args.out:
        write_json(args.out, as_json(result))
    if str(args.out) != "-":
        print(figures_table(result))
        if args.pairs:
            print("\n" + "\n".join(pair_lines(result)))
        if result.curve:
            print("\n" + curve_table(result.curve))
    if args.plot and result.curve:
        from watchkeeper.evaluation.alarms.plots import plot_trade_off  # noqa: PLC0415

        plot_trade_off(result.curve, args.plot)
    return 0


def evaluate(batches: Iterable[Batch], config: Config, *, min_alt_ft: float = 0.0, curve: bool = False) -> Evaluation:
    """Run the pipeline over all batches and judge its conflict alarms; without the reports from below min_alt_ft."""
    c = config.detectors.conflict
    reports, log = Reports(min_alt_ft), EvidenceLog(KIND, config.time.tick_s)
    pipeline = Pipeline(
        config, on_evidence=(lambda window, found: log.tick(window, found, pipeline.fleet.ids)) if curve else None
    )
    events = list(events_of(pipeline, reports.passing(batches)))
    sky = reports.sky(min_gs_kt=c.min_gs_kt)
    truth = Truth(sky, losses(sky, c.separation_nm, c.vertical_ft, c.zones), c.horizon_s)
    alarm_verdicts, loss_verdicts = judge(alarms_of(events), truth)
    worst = Counter(v.alarm.severity for v in alarm_verdicts)
    result = figures(alarm_verdicts, loss_verdicts, sky.hours)
    return Evaluation(
        config=config,
        min_alt_ft=min_alt_ft,
        aircraft=len(sky.ids),
        flight_hours=sky.hours,
        t_first=sky.t_first,
        interval_s=sky.interval_s,
        figures=result,
        severity={severity: worst[severity] for severity in SEVERITIES},
        alarms=alarm_verdicts,
        losses=loss_verdicts,
        curve=trade_off(log, c.debounce, truth, result) if curve else None,
    )


def alarms_of(events: Iterable[AlarmEvent]) -> list[Alarm]:
    """The conflict alarms in a stream of events, each from raised to cleared, in the order they were raised."""
    found: dict[str, Alarm] = {}
    for event in events:
        if event.kind != KIND:
            continue
        if event.state == RAISED:
            a, b = event.subjects
            found[event.id] = Alarm((a, b), event.t_raised, None, event.severity)
        else:
            known = found[event.id]
            worst = max(known.severity, event.severity, key=SEVERITIES.index)
            cleared = event.t_cleared if event.state == CLEARED else None
            found[event.id] = Alarm(known.pair, known.t_raised, cleared, worst)
    return sorted(found.values(), key=lambda alarm: (alarm.t_raised, alarm.pair))


def as_json(result: Evaluation) -> dict[str, Any]:
    """The evaluation, ready for JSON."""
    c = result.config.detectors.conflict
    return {
        "rule": {
            "horizon_s": c.horizon_s,
            "separation_nm": c.separation_nm,
            "vertical_ft": c.vertical_ft,
            "zones": msgspec.to_builtins(c.zones),
            "debounce": msgspec.to_builtins(c.debounce),
            "min_alt_ft": result.min_alt_ft,
        },
        "aircraft": result.aircraft,
        "flight_hours": result.flight_hours,
        "interval_s": result.interval_s,
        **msgspec.to_builtins(result.figures),
        "severity": result.severity,
        "curve": msgspec.to_builtins(result.curve),
        "loss_list": [
            msgspec.to_builtins(v.loss) | {"verdict": v.verdict, "warning_s": v.warning_s, "in_view_s": v.in_view_s}
            for v in result.losses
        ],
        "alarm_list": [
            msgspec.to_builtins(v.alarm) | {"verdict": v.verdict, "undecided": v.undecided} for v in result.alarms
        ],
    }


def _altitude(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r}: expected feet, 0 or more")
    return value


def _plot_file(word: str) -> Path:
    if not word.lower().endswith(PLOT_ENDINGS):
        raise argparse.ArgumentTypeError(f"{word!r}: expected a name that ends in {', '.join(PLOT_ENDINGS)}")
    return Path(word)


def _warn(sources: Sequence[Source]) -> None:
    for info in (source.info() for source in sources):
        for problem in info.problems:
            print(f"watchkeeper: {info.path}: {problem}", file=sys.stderr)
