"""`watchkeeper convert IN OUT`: a log in another format, from anything that the readers know."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from watchkeeper.config.loader import load
from watchkeeper.streams.adapters.catalog import targets
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Origin
from watchkeeper.streams.logs.exits import exits, fail, warn
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.target import check, write_log

_FORMATS = [(f"{target.name} ({' '.join(target.suffixes)})", target.help) for target in targets()]
HELP = (
    "Write a log in another format. IN is any log that can be read: CSV, a recording of another project, a damaged\n"
    ".wklog (what is whole is kept). The ending of OUT says the format, or --to.\n\nformats:\n"
) + "\n".join(f"  {name:22} {about}" for name, about in _FORMATS)
EXAMPLES = """\
examples:
  watchkeeper convert flight.csv.gz flight.wklog
  watchkeeper convert 00000007.BIN flight.wklog           or .ulg, .tlog, .bag, .mcap, .parquet ...: docs/logs.md
  watchkeeper convert flight.ulg flight.csv               a row per sample; .csv.gz is the same, packed
  watchkeeper convert day.wklog day.parquet               pandas.read_parquet("day.parquet")
  watchkeeper convert day.wklog day.kml --alarms alarms.jsonl       Google Earth, with the alarms of a replay
  watchkeeper convert day.wklog day.mcap --alarms alarms.jsonl      Foxglove, PlotJuggler
  watchkeeper convert day.wklog day.geojson --points      tracks as lines, and each position as a point
  watchkeeper convert drones.wklog drones.kml --origin 47.397,8.546,488       GPS samples in a local frame
  watchkeeper convert crashed.wklog whole.wklog           writes the index that the crash left out
  watchkeeper convert day.wklog hour.wklog --start 1700000000 --stop 1700003600

OUT is there when it is whole: after an error there is no new file, and an old one stays as it was.
exit codes: 0 good, 1 failed, 2 usage (an ending that is not known), 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("source", metavar="IN", type=Path, help="the log to read")
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=Path, help="TOML file whose [recordings] chooses signals (default: none)"
    )
    parser.add_argument("out", metavar="OUT", type=Path, help="the file to write; an existing file is replaced")
    parser.add_argument(
        "--to", default="", metavar="FORMAT", help="one of the formats above, whatever the ending of OUT is"
    )
    parser.add_argument("--start", type=float, default=-math.inf, metavar="T", help="leave out samples before t = T")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="T", help="leave out samples from t = T on")
    parser.add_argument(
        "--alarms", type=Path, metavar="ALARMS.jsonl", help="mcap, geojson, kml: add these alarms, from replay --alarms"
    )
    parser.add_argument(
        "--origin",
        type=_origin,
        metavar="LAT,LON[,ALT_M]",
        help="mcap, geojson, kml: where a local frame begins, for GPS samples without latitude; --origin=-33.9,151.2",
    )
    parser.add_argument("--axes", choices=("ned", "enu"), default="ned", help="of the local frame (default: ned)")
    parser.add_argument("--points", action="store_true", help="geojson: each position also as a point with all fields")


@exits
def main(args: argparse.Namespace) -> int:
    """Convert; the exit code."""
    origin = replace(args.origin, axes=args.axes) if args.origin else None
    options = {"to": args.to, "alarms": args.alarms, "points": args.points, "origin": origin}
    check(args.out, **options)
    source = open_log(args.source, load(args.config).recordings if args.config is not None else None)
    if args.out.exists() and args.out.samefile(args.source):
        return fail(f"{args.out}: cannot be read and written at once")

    def batches(what: str) -> Iterable[Batch]:
        return shown(source.batches(start=args.start, stop=args.stop), [source], what)

    written = write_log(args.out, batches, **options)
    warn([source])
    for note in written.notes:
        print(f"watchkeeper: {args.out}: {note}", file=sys.stderr)
    print(f"{args.out}: {written.samples:,} samples, {args.out.stat().st_size:,} bytes")
    return 0


def _origin(word: str) -> Origin:
    """Degrees, degrees and perhaps metres, separated by commas."""
    try:
        lat, lon, *rest = map(float, word.split(","))
        alt_m = rest[0] if rest else math.nan
        if len(rest) <= 1 and abs(lat) <= 90.0 and abs(lon) <= 180.0 and not math.isinf(alt_m):
            return Origin(lat, lon, alt_m)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{word!r}: expected LAT,LON or LAT,LON,ALT_M in degrees and metres")
