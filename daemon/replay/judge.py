"""A replay of the command line: recorded logs through the pipeline, to files, to the terminal or to the live page."""

from __future__ import annotations

import argparse
import asyncio
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from rich.console import Console

from watchkeeper.config.schema import Config
from watchkeeper.daemon.compiling import prepare
from watchkeeper.daemon.outputs.terminal import line_of
from watchkeeper.daemon.replay.spread import SpreadReplay
from watchkeeper.daemon.replay.trace import Trace
from watchkeeper.detectors.alarms.events import UPDATED, AlarmEvent, encode_event
from watchkeeper.detectors.engine.replay import Replay, coverage_words, unjudged_words
from watchkeeper.engines.workers.link import WorkerError
from watchkeeper.streams.logs.exits import INTERRUPTED, fail, warn
from watchkeeper.streams.logs.pacing import Pacer, SystemClock, paced
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, read_logs


def judge(args: argparse.Namespace, config: Config, sources: Sequence[Source]) -> int:
    """Run the logs through the pipeline and write what was asked for; the exit code."""
    interrupted = False
    with ExitStack() as stack:
        on_event = stack.enter_context(_alarm_sink(args.alarms))
        replay: Replay | SpreadReplay
        replay = Replay(config, on_event) if args.workers is None else SpreadReplay(config, args.workers, on_event)
        if args.trace and isinstance(replay, Replay):
            replay.watchers.append(Trace(stack.enter_context(_output(args.trace)), replay.pipeline))
        recorder = None
        if args.report and isinstance(replay, Replay):
            # the page is only for those who ask for it
            from watchkeeper.daemon.report.make import Recorder  # noqa: PLC0415

            recorder = Recorder(replay)
        batches = read_logs(sources, chunk=args.chunk, start=args.start, stop=args.stop)
        first = next(batches, None)
        if first is not None:
            prepare(config, first.kinds)
            batches = chain([first], batches)
        if isinstance(replay, SpreadReplay):
            stack.enter_context(replay)
        batches = shown(batches, sources, "replaying", hidden=args.alarms is None and sys.stdout.isatty())
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        pacer = Pacer(args.speed, SystemClock(), max_gap_s=config.time.gap_skip_s)
        try:
            if args.http is None or isinstance(replay, SpreadReplay):
                replay.run(paced(batches, pacer))
            else:
                # the server takes a quarter of a second to load
                from watchkeeper.daemon.replay.page import show  # noqa: PLC0415

                interrupted = not asyncio.run(
                    show(replay, batches, args.speed, args.http, [str(path) for path in args.logs], args.history)
                )
        except KeyboardInterrupt:
            interrupted = True
        except WorkerError as error:
            return fail(f"{error}\nwhat was written so far is whole up to there; nothing after it was judged")
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    summary: dict[str, Any] = {"inputs": _inputs(sources)} | replay.summary()
    if interrupted:
        summary["interrupted"] = True
    total = sum(summary["samples"].values())
    if args.timing:
        summary["timing"] = {
            "wall_s": wall_s,
            "cpu_s": cpu_s,
            "samples_per_s": total / wall_s,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    if args.summary:
        with _output(args.summary) as file:
            file.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    if recorder is not None:
        from watchkeeper.daemon.report.make import write  # noqa: PLC0415

        words = _command(args)
        write(recorder.result(sources, words, interrupted=interrupted), args.report)
    warn(sources)
    dropped = sum(n for reasons in summary["drops"].values() for n in reasons.values())
    print(
        f"{total:,} samples over {summary['span']['seconds']:,.0f} s, {dropped:,} dropped; "
        f"{replay.raised.count} raised, "
        f"{summary['active']:,} active at the end; took {wall_s:.1f} s{' (interrupted)' if interrupted else ''}; "
        f"{coverage_words(replay.outcome())}",
        file=sys.stderr,
    )
    for line in unjudged_words(replay.outcome()):
        print(line, file=sys.stderr)
    return INTERRUPTED if interrupted else 0


def _command(args: argparse.Namespace) -> list[str]:
    """What makes the same report again."""
    words = ["watchkeeper", "replay", *map(str, args.logs)]
    given = {"-c": args.config, "--profile": args.profile, "--report": args.report}
    given |= {"--start": args.start, "--stop": args.stop} if (args.start, args.stop) != (-math.inf, math.inf) else {}
    return words + [word for option, value in given.items() if value is not None for word in (option, str(value))]


def _inputs(sources: Sequence[Source]) -> list[dict[str, Any]]:
    infos = [source.info() for source in sources]
    return [{"path": str(i.path), "format": i.format, "bad_rows": i.bad_rows, "problems": i.problems} for i in infos]


@contextmanager
def _output(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as file:
        yield file


@contextmanager
def _alarm_sink(path: Path | None) -> Iterator[Callable[[AlarmEvent], None]]:
    if path is None:
        # in a pipe a line is a line, however long
        console = Console(highlight=False, soft_wrap=True)
        severity: dict[str, str] = {}

        def show(event: AlarmEvent) -> None:
            # an active alarm repeats itself with fresh numbers: only a change of severity is news here
            if event.state != UPDATED or severity[event.id] != event.severity:
                console.print(line_of(event))
            severity[event.id] = event.severity

        yield show
        return
    with _output(path) as file:

        def write(event: AlarmEvent) -> None:
            file.write(encode_event(event) + b"\n")
            file.flush()  # alarms are few; a reader that follows the file sees them as they come

        yield write
