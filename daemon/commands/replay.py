"""`watchkeeper replay LOG…`: recorded logs through the same pipeline as the live daemon."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.commands.arguments import mqtt_url, port, positive, speed, workers
from watchkeeper.streams.logs.exits import exits, fail, warn
from watchkeeper.streams.logs.pacing import Pacer, SystemClock
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, open_log, read_logs

HELP = "Run recorded logs (.wklog, .csv, .csv.gz) through the pipeline, or publish their samples to a broker."
EXAMPLES = """\
examples:
  watchkeeper replay flight.wklog                                   alarms as lines, without repeats
  watchkeeper replay flight.wklog --alarms alarms.jsonl --summary summary.json
  watchkeeper replay flight.ulg --report flight.html               what happened, as a page that opens offline
  watchkeeper replay north.wklog south.csv.gz --speed 50            several logs, merged by time
  watchkeeper replay flight.wklog --http 9108 --speed 5             look at it: http://127.0.0.1:9108
  watchkeeper replay fleet.wklog --alarms alarms.jsonl --workers 8  on eight cores, the same bytes
  watchkeeper replay flight.wklog --to-mqtt mqtt://127.0.0.1:1883 --speed 1

The alarms are the same bytes at every --speed and --chunk. A file name of - is standard output.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration, 130 interrupted (what was written so far is whole)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="recorded logs; several are merged by time")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--profile", help="high-sensitivity, balanced or high-specificity, whatever the file says")
    parser.add_argument("--speed", type=speed, help="1 is real time, 50 fifty times that; default max, with --http 1")
    parser.add_argument(
        "--http", type=port, metavar="PORT", help="serve the live page here (0: any port), until Ctrl-C"
    )
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help="with --http: keep the history in this new file, to open it again"
    )
    parser.add_argument("--chunk", type=positive, metavar="N", help="feed N samples at a time (default: as recorded)")
    parser.add_argument("--start", type=float, default=-math.inf, metavar="T", help="leave out samples before t = T")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="T", help="leave out samples from t = T on")
    parser.add_argument("--alarms", type=Path, metavar="OUT.jsonl", help="alarm events, one JSON object per line")
    parser.add_argument("--trace", type=Path, metavar="OUT.jsonl", help="conflicting pairs at every tick, undebounced")
    parser.add_argument("--summary", type=Path, metavar="OUT.json", help="counts of samples, drops and alarms")
    parser.add_argument(
        "--report", type=Path, metavar="OUT.html", help="one page that opens offline: map, plots, alarms"
    )
    parser.add_argument(
        "--workers", type=workers, metavar="N", help="judge vehicles in N processes (1 to 64), for more than one core"
    )
    parser.add_argument("--timing", action="store_true", help="add speed and memory to the summary")
    parser.add_argument("--to-mqtt", type=mqtt_url, metavar="URL", help="publish the samples instead of judging them")
    parser.add_argument("--samples", action="store_true", help="with --to-mqtt: one message per sample, not frames")


@exits
def main(args: argparse.Namespace) -> int:
    """Replay; the exit code."""
    outputs = [name for name in ("alarms", "trace", "summary", "report") if getattr(args, name) is not None]
    if args.to_mqtt and outputs:
        print(
            f"watchkeeper: --to-mqtt publishes samples and judges nothing: no --{outputs[0]} with it", file=sys.stderr
        )
        return 2
    if args.to_mqtt and args.http is not None:
        print("watchkeeper: --to-mqtt judges nothing: no --http with it", file=sys.stderr)
        return 2
    if args.history is not None and (args.http is None or args.history.exists()):
        problem = "--history goes with --http" if args.http is None else f"--history {args.history} exists already"
        print(f"watchkeeper: {problem}", file=sys.stderr)
        return 2
    if args.workers is not None and (
        refused := next(
            (name for name in ("trace", "report", "http", "to_mqtt") if getattr(args, name) is not None), None
        )
    ):
        problem = f"--{refused.replace('_', '-')} looks into one pipeline: not with --workers"
        print(f"watchkeeper: {problem}", file=sys.stderr)
        return 2
    if args.speed is None:
        args.speed = math.inf if args.http is None else 1.0
    config = load(args.config, overrides={"profile": args.profile} if args.profile else None)
    sources = [open_log(path, config.recordings) for path in args.logs]
    return _publish(args, config, sources) if args.to_mqtt else _judge(args, config, sources)


def _publish(args: argparse.Namespace, config: Config, sources: Sequence[Source]) -> int:
    from watchkeeper.daemon.replay.publish import publish  # noqa: PLC0415

    batches = shown(read_logs(sources, chunk=args.chunk, start=args.start, stop=args.stop), sources, "publishing")
    pacer = Pacer(args.speed, SystemClock(), max_gap_s=config.time.gap_skip_s)
    try:
        done = asyncio.run(publish(batches, config, args.to_mqtt, pacer, by_sample=args.samples))
    except ConnectionError as error:
        return fail(f"{args.to_mqtt}: {error}")
    warn(sources)
    print(f"{done.samples:,} samples in {done.messages:,} messages to {args.to_mqtt}", file=sys.stderr)
    return 0


def _judge(args: argparse.Namespace, config: Config, sources: Sequence[Source]) -> int:
    # here, not above: the numeric libraries take a second, which a wrong argument need not wait for
    from watchkeeper.daemon.replay.judge import judge  # noqa: PLC0415

    return judge(args, config, sources)
