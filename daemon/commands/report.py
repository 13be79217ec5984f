"""`watchkeeper report LOG…`: a page for each log that opens without a network, and an index of several."""

from __future__ import annotations

import argparse
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.streams.logs.exits import exits

HELP = "Make a report of each log: one HTML file that opens anywhere without a network."
EXAMPLES = """\
examples:
  watchkeeper report flight.ulg                              writes flight.html next to where you are
  watchkeeper report flight.ulg --out today.html
  watchkeeper report logs/*.ulg --out reports/               a page for each log, and index.html
  watchkeeper report evening.csv.gz --profile high-sensitivity

The page has the verdict in words, what was judged and what not, a map, plots, alarms with their evidence, and the
health of the sensors. A log that cannot be read is named in the index and does not stop the others.
exit codes: 0 good, 1 a log could not be read, 2 usage, 78 bad configuration, 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="recorded logs; each gets a page of its own")
    parser.add_argument("--out", metavar="DIR|FILE", type=Path, help="a folder, or for one log a file ending in .html")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--profile", help="high-sensitivity, balanced or high-specificity, whatever the file says")


@exits
def main(args: argparse.Namespace) -> int:
    """Make the reports; the exit code."""
    config = load(args.config, overrides={"profile": args.profile} if args.profile else None)
    # here, not above: the numeric libraries take a second, which a wrong argument need not wait for
    from watchkeeper.daemon.report.batch import make_reports  # noqa: PLC0415

    return make_reports(args, config)
