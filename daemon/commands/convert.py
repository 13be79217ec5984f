"""`watchkeeper convert IN OUT.wklog`: a .wklog from anything that the readers know."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from watchkeeper.streams.logs.exits import exits, fail
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wklog import LogWriter

HELP = (
    "Make a .wklog from another log: CSV, a recording of another project, or a damaged .wklog (what is whole is kept)."
)
EXAMPLES = """\
examples:
  watchkeeper convert flight.csv.gz flight.wklog
  watchkeeper convert 00000007.BIN flight.wklog           or .ulg, .tlog, .bag, .mcap, .parquet ...: docs/logs.md
  watchkeeper convert crashed.wklog whole.wklog           writes the index that the crash left out
  watchkeeper convert day.wklog hour.wklog --start 1700000000 --stop 1700003600
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("source", metavar="IN", type=Path, help="the log to read")
    parser.add_argument("out", metavar="OUT.wklog", type=Path, help="the log to write; an existing file is replaced")
    parser.add_argument("--start", type=float, default=-math.inf, metavar="T", help="leave out samples before t = T")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="T", help="leave out samples from t = T on")


@exits
def main(args: argparse.Namespace) -> int:
    """Convert; the exit code."""
    source = open_log(args.source)
    if args.out.exists() and args.out.samefile(args.source):
        return fail(f"{args.out}: cannot be read and written at once")
    with LogWriter(args.out) as writer:
        for batch in shown(source.batches(start=args.start, stop=args.stop), [source], "converting"):
            writer.write(batch)
    info = source.info()
    for problem in info.problems:
        print(f"watchkeeper: {info.path}: {problem}", file=sys.stderr)
    print(f"{args.out}: {writer.samples:,} samples, {writer.size_bytes:,} bytes")
    return 0
