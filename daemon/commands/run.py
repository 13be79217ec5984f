"""`watchkeeper run -c FILE`: the daemon, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, ConfigError, load
from watchkeeper.daemon import logs
from watchkeeper.daemon.background import leave
from watchkeeper.daemon.footprint import spare_tables
from watchkeeper.daemon.outputs.base import SinkError

HELP = "watch the broker of the configuration and raise alarms, until SIGTERM or Ctrl-C"
EXAMPLES = """\
examples:
  watchkeeper run -c watchkeeper.toml
  WATCHKEEPER_BROKER__URL=mqtt://broker:1883 watchkeeper run
  kill -HUP PID      take new thresholds from the file, losing nothing
  kill -TERM PID     publish everything, save the state, exit 0

exit codes: 0 stopped in order, 1 failed, 78 bad configuration
"""

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none: environment only)"
    )


def main(args: argparse.Namespace) -> int:
    """Run the daemon; its exit code."""
    try:
        config = load(args.config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return os.EX_CONFIG
    logs.set_up(config.log)
    spare_tables()
    # here, not above: the numeric libraries take a second, which a bad configuration need not wait for
    from watchkeeper.daemon.app import App  # noqa: PLC0415
    from watchkeeper.daemon.state.folder import StateError, StateRefusedError  # noqa: PLC0415

    try:
        app = App(config, reload=lambda: load(args.config))
        asyncio.run(app.run())
    except StateRefusedError as problem:
        print(problem, file=sys.stderr)
        return os.EX_CONFIG
    except (StateError, SinkError, ModuleNotFoundError) as problem:
        log.error("cannot start", extra=logs.kv(problem=problem))
        return 1
    except OSError as problem:
        log.error("failed", extra=logs.kv(problem=problem))
        return 1
    except ExceptionGroup:
        log.exception("failed")
        return 1
    return leave(0)
