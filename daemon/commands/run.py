"""`watchkeeper run -c FILE`: the daemon, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, ConfigError, load
from watchkeeper.config.schema import Config
from watchkeeper.daemon import logs
from watchkeeper.daemon.background import leave
from watchkeeper.daemon.commands.arguments import seconds, workers
from watchkeeper.daemon.footprint import map_large_blocks
from watchkeeper.daemon.outputs.base import SinkError

HELP = "watch the broker of the configuration and raise alarms, until SIGTERM or Ctrl-C"
EXAMPLES = """\
examples:
  watchkeeper run -c watchkeeper.toml
  watchkeeper run -c watchkeeper.toml --once              what is heard in 10 s, who would be judged, what is refused
  watchkeeper run -c watchkeeper.toml --workers 4         vehicles are judged by four processes, with the same alarms
  WATCHKEEPER_BROKER__URL=mqtt://broker:1883 watchkeeper run
  kill -HUP PID      take new thresholds from the file, losing nothing
  kill -TERM PID     publish everything, save the state, exit 0

exit codes: 0 stopped in order, 1 failed (with --once also: nothing was heard), 2 usage, 78 bad configuration
"""

log = logging.getLogger(__name__)

ONCE_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none: environment only)"
    )
    parser.add_argument("--once", action="store_true", help="listen for a while, say what is heard, send nothing, exit")
    parser.add_argument(
        "--seconds", type=seconds, metavar="N", help=f"with --once: how long to listen (default: {ONCE_S:g})"
    )
    parser.add_argument(
        "--workers",
        type=workers,
        default=0,
        metavar="N",
        help="judge the vehicles in N processes (docs/beyond-one-machine.md); default: in this one",
    )


def main(args: argparse.Namespace) -> int:
    """Run the daemon; its exit code."""
    if args.seconds is not None and not args.once:
        print(
            "watchkeeper: --seconds needs --once: without it the daemon runs until SIGTERM or Ctrl-C", file=sys.stderr
        )
        return 2
    try:
        config = load(args.config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return os.EX_CONFIG
    logs.set_up(config.log)
    if args.once:
        return _once(config, ONCE_S if args.seconds is None else args.seconds)
    map_large_blocks()
    # here, not above: the numeric libraries take a second, which a bad configuration need not wait for
    from watchkeeper.daemon.app import App  # noqa: PLC0415
    from watchkeeper.daemon.state.folder import StateError, StateRefusedError  # noqa: PLC0415
    from watchkeeper.engines.workers.link import WorkerError  # noqa: PLC0415

    try:
        app = App(config, reload=lambda: load(args.config), workers=args.workers)
        asyncio.run(app.run())
    except StateRefusedError as problem:
        print(problem, file=sys.stderr)
        return os.EX_CONFIG
    except (StateError, SinkError, ModuleNotFoundError, WorkerError) as problem:
        log.error("cannot start", extra=logs.kv(problem=problem))
        return 1
    except OSError as problem:
        log.error("failed", extra=logs.kv(problem=problem))
        return 1
    except ExceptionGroup:
        log.exception("failed")
        return 1
    return leave(0)


def _once(config: Config, seconds: float) -> int:
    from watchkeeper.daemon.commands.printing import plain_console  # noqa: PLC0415
    from watchkeeper.daemon.compiling import prepare  # noqa: PLC0415
    from watchkeeper.daemon.run.listening import Listening  # noqa: PLC0415
    from watchkeeper.daemon.run.words import say  # noqa: PLC0415

    # what the parts log is said in the summary
    logging.getLogger(logs.ROOT).setLevel(logging.ERROR)
    try:
        listening = Listening(config)
    except (ModuleNotFoundError, OSError, ValueError) as problem:
        print(f"watchkeeper: {problem}", file=sys.stderr)
        return 1
    prepare(config)
    asyncio.run(listening.run(seconds))
    return 0 if say(listening, seconds, plain_console()) else 1
