"""`watchkeeper init`: a commented configuration for what there is on this machine."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from watchkeeper.config.json_schema import FILE_NAME, TITLE, json_schema
from watchkeeper.daemon.init.probe import Found, is_place, look
from watchkeeper.daemon.init.variants import TITLES, VARIANTS, Plan, plan
from watchkeeper.daemon.init.written import file_text
from watchkeeper.streams.logs.exits import exits, fail

HELP = "look at what there is on this machine, and write a commented configuration for it\n\nfor:\n" + "\n".join(
    f"  {name:10} {title}" for name, title in TITLES.items()
)
EXAMPLES = """\
examples:
  watchkeeper init                          decides by what it finds: a receiver, a vehicle, a broker; and says so
  watchkeeper init --for drone --out my.toml
  watchkeeper init flight.ulg               for a log that you have
  watchkeeper init --for receiver --at 48.9,2.3   with terminal areas and airports around that place
  watchkeeper init --print
  watchkeeper init --example                the example that comes with the package, on standard output

Only this machine is looked at. Next to the file its JSON Schema is written, for editors (Taplo, Even Better TOML).
exit codes: 0 written, 1 failed, such as a file that is there already
"""
DEFAULT = Path("watchkeeper.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("log", metavar="LOG", nargs="?", type=Path, help="a log that will be replayed")
    parser.add_argument("--for", dest="variant", choices=VARIANTS, help="instead of deciding by what is found")
    parser.add_argument(
        "--at",
        metavar="LAT,LON",
        type=_place,
        help="where the receiver is, for zones around airports (south: --at=-33.9,151.2); default: its receiver.json",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, default=DEFAULT, help=f"default: {DEFAULT}")
    parser.add_argument("--print", action="store_true", help="print the file instead of writing it")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--example", action="store_true", help="print the example with the keys that are changed most often"
    )


def _place(text: str) -> tuple[float, float]:
    """Latitude and longitude in degrees, with a comma between them."""
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAT,LON in degrees, such as 36.6,-121.8") from None
    if not is_place(lat, lon):
        raise argparse.ArgumentTypeError(f"{text!r} is not on Earth: latitude -90 to 90, longitude -180 to 180")
    return lat, lon


@exits
def main(args: argparse.Namespace) -> int:
    """Look, write, and say what to do next; the exit code."""
    if args.example:
        sys.stdout.write(files("watchkeeper.config").joinpath("example.toml").read_text("utf-8"))
        return 0
    schema: Path = args.out.with_name(FILE_NAME)
    if not args.print and not args.force:
        if args.out.exists():
            return fail(
                f"{args.out}: exists; --force replaces it, --out names another, --print shows what would be written"
            )
        if schema.exists() and TITLE not in schema.read_text(errors="replace"):
            return fail(f"{schema}: exists and is not ours; --force replaces it")
    found = asyncio.run(look(args.log))
    made = plan(found, args.variant, args.at)
    text = file_text(made, found)
    if args.print:
        sys.stdout.write(text)
        return 0
    args.out.write_text(text)
    schema.write_text(json.dumps(json_schema(), indent=1) + "\n")
    _say(made, found, args.out, schema)
    return 0


def _say(made: Plan, found: Found, out: Path, schema: Path) -> None:
    for words in found.words() or ["nothing on this machine"]:
        print(f"found    {words}")
    for words in made.assumed:
        print(f"assumed  {words}")
    for source in made.sources:
        if source.off:
            print(f"off      the source {source.keys['type']} {source.keys['url']}: {source.off}")
    print(f"wrote    {out}, for {TITLES[made.variant]} ({made.why}); and {schema}, for editors")
    name = shlex.quote(str(out))
    if found.log is not None:
        log = shlex.quote(str(found.log))
        after = (f"watchkeeper replay {log} -c {name}", f"watchkeeper replay {log} -c {name} --http 9108")
    else:
        after = (f"watchkeeper run -c {name} --once", f"watchkeeper run -c {name}")
    print(f"next     {after[0]}\nthen     {after[1]}")
