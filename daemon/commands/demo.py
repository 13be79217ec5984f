"""`watchkeeper demo`: broker, simulator, daemon and live page, in one command."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from pathlib import Path

from watchkeeper.config.loader import ConfigError
from watchkeeper.daemon.background import leave
from watchkeeper.daemon.commands.arguments import port

HELP = """\
start a broker, a simulator and the daemon, and show the alarms live: here, and in a browser

Eleven vehicles fly: a pair of aircraft on collision course that turns away in time, and drones whose GPS is
spoofed, whose IMU drifts or that fall silent. With --seconds 60 or more the exit code says whether alarms of kinds
conflict, gps_imu and silence were all raised and cleared."""
EXAMPLES = """\
examples:
  watchkeeper demo                  until Ctrl-C
  watchkeeper demo --seconds 60     a proof: exit 1 if an alarm is missing
  watchkeeper demo --seed 7         other encounters and faults
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("--seconds", type=_seconds, metavar="N", help="stop after N seconds (default: at Ctrl-C)")
    parser.add_argument(
        "--port", type=port, default=9108, metavar="P", help="HTTP port; another if it is taken (default: 9108)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, another story (default: 0)")
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="keep journal and snapshot here (default: nowhere)"
    )


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    if not 1.0 <= seconds <= 7 * 86_400:
        raise argparse.ArgumentTypeError(f"{word!r}: expected seconds, 1 to 604800")
    return seconds


def main(args: argparse.Namespace) -> int:
    """Run the demo; its exit code."""
    # here, not above: the numeric libraries take a second, which --help need not wait for
    from watchkeeper.daemon.demo import demo  # noqa: PLC0415
    from watchkeeper.daemon.demo.broker import BrokerError  # noqa: PLC0415
    from watchkeeper.daemon.state.folder import StateError  # noqa: PLC0415

    options = demo.Options(seconds=args.seconds, port=args.port, seed=args.seed, state_dir=args.state_dir)
    try:
        return leave(asyncio.run(demo.run(options)))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return os.EX_CONFIG
    except (BrokerError, StateError) as error:
        print(error, file=sys.stderr)
        return 1
