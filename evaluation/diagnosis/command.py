"""`watchkeeper evaluate diagnosis`: does the diagnoser name the right fault at the right place, and at what cost?

Plays seeded episodes on simulated telemetry networks with our diagnoser and with baselines beside it; with --streamed,
injects faults into simulated telemetry and lets the whole pipeline find them.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.evaluation.diagnosis import report
from watchkeeper.evaluation.diagnosis.metrics import CompetitionEvaluator
from watchkeeper.evaluation.diagnosis.streamed import StreamedTask, figures, stream
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shared.html import Table
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import fail

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
EPISODES, STREAMED_EPISODES = 1000, 200


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
    args.episodes = args.episodes or (STREAMED_EPISODES if args.streamed else EPISODES)
    if args.no_port_reports and not args.streamed:
        return fail("--no-port-reports: only with --streamed", 2)
    if args.streamed:
        return _streamed(args)
    if importlib.util.find_spec("gymnasium") is None:
        return fail('evaluate diagnosis needs gymnasium: pip install "watchkeeper[gym]"')
    from watchkeeper.evaluation.diagnosis.network import SIZE_MAX, SIZE_MIN  # noqa: PLC0415
    from watchkeeper.evaluation.diagnosis.play import AGENTS, Task, play  # noqa: PLC0415

    low, high = args.devices
    if not SIZE_MIN <= low <= high <= SIZE_MAX:
        return fail(f"--devices {low} {high}: expected {SIZE_MIN} <= MIN <= MAX <= {SIZE_MAX}", 2)
    names = [name.strip() for name in args.agents.split(",")] if args.agents else list(AGENTS)
    if unknown := [name for name in names if name not in AGENTS]:
        return fail(f"--agents: {unknown[0]!r} is none of {', '.join(AGENTS)}", 2)
    tasks = [Task(name, args.seed, i, low, high) for name in names for i in range(args.episodes)]
    played = counted(play, tasks, "diagnosing", jobs=args.jobs, hidden=args.quiet)
    _tell(args, names, played)
    return 0


def _streamed(args: argparse.Namespace) -> int:
    mute = args.no_port_reports
    tasks = [StreamedTask(args.seed, i, True, mute) for i in range(args.episodes)]
    tasks += [StreamedTask(args.seed, i, False, mute) for i in range(args.clean)]
    played = counted(stream, tasks, "streaming", jobs=args.jobs or (2 if len(tasks) > 20 else 1), hidden=args.quiet)
    summary = CompetitionEvaluator(p.metrics for p in played if p.metrics is not None).compute_summary()
    found = figures(played)
    settings = {"episodes": args.episodes, "clean": args.clean, "seed": args.seed, "port_reports": not mute}
    if args.out:
        content = {"settings": settings, "summary": summary, "streamed": msgspec.to_builtins(found)}
        content["look_alikes"] = msgspec.to_builtins(report.look_alikes(played))
        write_json(args.out, content | {"episodes": msgspec.to_builtins(played)})
    tables = [report.agents_table({"streamed": summary}), report.streamed_table(found), *_details(summary, played)]
    silent = ", no port reports" if mute else ""
    _show(args, tables, summary, f"{args.episodes:,} streamed episodes, seed {args.seed}{silent}")
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


def _tell(args: argparse.Namespace, names: list[str], played: list[Any]) -> None:
    """The agents beside each other, the first of them in detail."""
    by_agent = {name: [p for p in played if p.agent == name] for name in names}
    summaries = {n: CompetitionEvaluator(p.metrics for p in own).compute_summary() for n, own in by_agent.items()}
    first = names[0]
    if args.out:
        content = {
            "settings": {"episodes": args.episodes, "seed": args.seed, "devices": list(args.devices)},
            "agents": summaries,
            "look_alikes": {name: msgspec.to_builtins(report.look_alikes(own)) for name, own in by_agent.items()},
        }
        write_json(args.out, content | {"episodes": msgspec.to_builtins(played)})
    tables = [report.agents_table(summaries), *_details(summaries[first], by_agent[first])]
    _show(args, tables, summaries[first], f"{args.episodes:,} simulated episodes, seed {args.seed}, {first}")


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a whole number from 1")
    return int(word)
