"""`watchkeeper evaluate diagnosis`: does the diagnoser name the right fault at the right place, and at what cost?

api.py does the work; this file reads the arguments and writes tables, JSON, a report, sets of episodes and the
leaderboard.
Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.diagnosis import report
from watchkeeper.evaluation.diagnosis.api import Diagnosis, diagnosis, draw_episodes
from watchkeeper.evaluation.diagnosis.episodes import EpisodeSet, write_set
from watchkeeper.evaluation.diagnosis.leaderboard import append, entry_of, read, tables
from watchkeeper.evaluation.diagnosis.simulated.draw import CYCLES
from watchkeeper.evaluation.shared.arguments import number, whole
from watchkeeper.evaluation.shared.errors import AgentError, EvaluationError
from watchkeeper.evaluation.shared.html import Table
from watchkeeper.evaluation.shared.output import write_json
from watchkeeper.streams.logs.exits import USAGE, fail

HELP = """\
Play troubleshooting episodes on simulated telemetry networks (4 to 200 devices, one fault each) with our diagnoser,
with baselines and with agents of your own, and measure how often fault type and location are right, and what it cost
to find out."""
EXAMPLES = """\
examples:
  watchkeeper evaluate diagnosis --episodes 100
  watchkeeper evaluate diagnosis --episodes 1000 --seed 2026 --out metrics.json --report diagnosis.html
  watchkeeper evaluate diagnosis --devices 4 20 --agents watchkeeper,random
  watchkeeper evaluate diagnosis --cycles 1                               every network with standby links
  watchkeeper evaluate diagnosis --episodes 500 --freeze set.json.gz      keep a set of episodes, play nothing
  watchkeeper evaluate diagnosis --set set.json.gz --leaderboard runs.jsonl
  watchkeeper evaluate diagnosis --set set.json.gz --agents watchkeeper --agent mine=my_module:MyAgent
  watchkeeper evaluate diagnosis --show-leaderboard runs.jsonl            the table, play nothing
  watchkeeper evaluate diagnosis --streamed --episodes 200 --clean 50     through the whole pipeline
  watchkeeper evaluate diagnosis --streamed --no-port-reports             gateways that say nothing of their ports

docs/evaluation/diagnosis.md defines every figure. A file name of - is standard output. Needs the extra `gym`.
exit codes: 0 good, 1 failed, 2 usage
"""
SEED, DEVICES = 2026, (4, 200)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--episodes", type=whole(1), metavar="N", help="episodes per agent (1000; streamed 200)")
    parser.add_argument("--seed", type=whole(0), metavar="S", help=f"all agents play the same networks ({SEED})")
    parser.add_argument("--devices", type=int, nargs=2, metavar=("MIN", "MAX"), help="sizes of the networks (4 200)")
    parser.add_argument(
        "--cycles", type=number("a share", 0.0, 1.0), metavar="SHARE", help=f"networks with standby links ({CYCLES})"
    )
    parser.add_argument(
        "--freeze", type=Path, metavar="SET.json", help="write the set of episodes and stop (or .json.gz)"
    )
    parser.add_argument("--set", type=Path, metavar="SET.json", help="play the episodes that --freeze wrote")
    parser.add_argument("--leaderboard", type=Path, metavar="FILE.jsonl", help="add a line per agent to this file")
    parser.add_argument("--show-leaderboard", type=Path, metavar="FILE.jsonl", help="print the leaderboard and stop")
    parser.add_argument("--agents", metavar="A,B", help="some of: watchkeeper, scan everything, nearest alarm, random")
    parser.add_argument(
        "--agent", action="append", default=[], metavar="NAME=MODULE:MAKER",
        help="an agent of your own: MAKER(action_space) gives an object with act(obs); may be repeated",
    )  # fmt: skip
    parser.add_argument("--streamed", action="store_true", help="faults in telemetry that runs through the pipeline")
    parser.add_argument(
        "--no-port-reports", action="store_true", help="streamed: nobody reports on ports or itself or answers pings"
    )
    parser.add_argument(
        "--clean", type=whole(0), default=50, metavar="N", help="streamed episodes without a fault (50)"
    )
    parser.add_argument("--out", type=Path, metavar="METRICS.json", help="summaries and every episode as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the confusion matrix, .png, .svg or .pdf (`plots`)")
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="one page with the picture (extra `plots`)")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: the cores, if it pays)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def main(args: argparse.Namespace) -> int:
    """Play; the exit code."""
    if (args.plot or args.report) and importlib.util.find_spec("matplotlib") is None:
        return fail('--plot and --report need matplotlib: pip install "watchkeeper[plots]"')
    if problem := _contradiction(args):
        return fail(problem, USAGE)
    if args.show_leaderboard:
        return _show_leaderboard(args.show_leaderboard)
    seed = SEED if args.seed is None else args.seed
    cycles = CYCLES if args.cycles is None else args.cycles
    devices = tuple(args.devices or DEVICES)
    try:
        if args.freeze:
            return _freeze(args.freeze, draw_episodes(args.episodes, seed, devices, cycles))
        result = diagnosis(
            episodes=args.episodes, seed=seed, devices=devices, cycles=cycles, frozen=args.set, streamed=args.streamed,
            agents=[name.strip() for name in args.agents.split(",")] if args.agents else None,
            outside=_outside(args.agent), port_reports=not args.no_port_reports, clean=args.clean, jobs=args.jobs,
            quiet=args.quiet,
        )  # fmt: skip
    except (ImportError, AgentError) as error:
        return fail(str(error))
    except EvaluationError as error:
        return fail(f"--{error}", USAGE)
    if args.out:
        write_json(args.out, result.to_dict())
    _tell(args, result)
    if args.leaderboard:
        assert result.fingerprint is not None
        runs = [entry_of(name, result.fingerprint, version("watchkeeper"), s) for name, s in result.summaries.items()]
        append(args.leaderboard, runs)
    return 0


def _contradiction(args: argparse.Namespace) -> str | None:
    """Two arguments that say different things."""
    if args.no_port_reports and not args.streamed:
        return "--no-port-reports: only with --streamed"
    drawn = [name for name in ("episodes", "seed", "devices", "cycles") if getattr(args, name) is not None]
    if args.set and drawn:
        return f"--{drawn[0]} with --set: the file says which episodes are played"
    if args.set and args.freeze:
        return "--freeze with --set: the set is in a file already"
    if args.streamed:
        simulated = ("set", "freeze", "leaderboard", "agents", "agent", "cycles", "devices")
        other = next((name for name in simulated if getattr(args, name)), None)
        return f"--{other} with --streamed: only for simulated episodes" if other else None
    return None


def _outside(words: list[str]) -> dict[str, str]:
    """Agents of others by name. Raises EvaluationError."""
    found = {}
    for word in words:
        name, _, where = word.partition("=")
        if not name or ":" not in where:
            raise EvaluationError(f"agent {word!r}: expected NAME=MODULE:MAKER")
        found[name] = where
    if found and (here := str(Path.cwd())) not in sys.path:
        # a module next to where the command is called, as with python -m
        sys.path.insert(0, here)
    return found


def _freeze(path: Path, episodes: EpisodeSet) -> int:
    write_set(path, episodes)
    print(f"{path}: {len(episodes.episodes):,} episodes, {episodes.fingerprint}")
    return 0


def _show_leaderboard(path: Path) -> int:
    entries, problems = read(path)
    for problem in problems:
        print(f"watchkeeper: {path}: {problem}", file=sys.stderr)
    if not entries:
        return fail(f"{path}: no entries")
    print("\n\n".join(report.as_text(table) for table in tables(entries)))
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
    count, seed = f"{result.settings['episodes']:,}", result.settings["seed"]
    if result.streamed is None:
        title = f"{count} simulated episodes, seed {seed}, {first}"
    else:
        title = f"{count} streamed episodes, seed {seed}{', no port reports' if args.no_port_reports else ''}"
    _show(args, [*tables, *_details(summary, played)], summary, title)
