"""`watchkeeper compile`: every kernel, before anything needs it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.daemon.compiling import prepare
from watchkeeper.streams.kernelcache import folder
from watchkeeper.streams.logs.exits import exits
from watchkeeper.streams.messages import KIND_OF_WORD

HELP = "Compile every kernel that a configuration needs, and keep it: the next start is quick."
EXAMPLES = """\
examples:
  watchkeeper compile                                      all of them, for the processor of this machine
  watchkeeper compile --kinds gps,imu                      what drones need
  NUMBA_CACHE_DIR=/opt/kernels watchkeeper compile         for an image; set the same at run time
  NUMBA_CPU_NAME=generic watchkeeper compile               for any processor of this architecture; set it at run time

exit codes: 0 good, 1 nothing can be kept there, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument(
        "--kinds", type=_kinds, default=sorted(KIND_OF_WORD), help="streams, by comma (default: all of them)"
    )


def _kinds(text: str) -> list[str]:
    words = text.split(",")
    if unknown := [word for word in words if word not in KIND_OF_WORD]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(sorted(KIND_OF_WORD))}")
    return words


@exits
def main(args: argparse.Namespace) -> int:
    """Compile; the exit code."""
    began = time.monotonic()
    path = folder()
    if path is None or not os.access(path, os.W_OK):
        print(f"watchkeeper: compiled kernels cannot be kept in {path or 'the cache directory'}", file=sys.stderr)
        return 1
    prepare(load(args.config), [KIND_OF_WORD[word] for word in args.kinds])
    size = sum(file.stat().st_size for file in path.iterdir())
    print(f"kernels are ready in {path} ({size / 1e6:.0f} MB); took {time.monotonic() - began:.1f} s")
    return 0
