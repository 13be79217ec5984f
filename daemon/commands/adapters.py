"""`watchkeeper adapters`: every live source and file format, those of other installed packages included."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rich.markup import escape
from rich.table import Table

from watchkeeper.config.section import columns
from watchkeeper.daemon.commands.printing import plain_console
from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.catalog import discover

HELP = "list the adapters: live sources with their keys, and the files that can be read and written"
EXAMPLES = """\
examples:
  watchkeeper adapters
  watchkeeper adapters sbs can
  watchkeeper adapters --json | jq '.sbs.settings[].key'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"only these; there are: {', '.join(discover())}")
    parser.add_argument("--json", action="store_true", help="JSON for machines")


def main(args: argparse.Namespace) -> int:
    """Exit code 0, or 2 for an adapter that does not exist."""
    known = discover()
    if unknown := [name for name in args.names if name not in known]:
        print(f"no such adapter: {', '.join(unknown)} (there are: {', '.join(known)})", file=sys.stderr)
        return 2
    records = {name: _record(adapter) for name, adapter in known.items() if not args.names or name in args.names}
    if args.json:
        json.dump(records, sys.stdout, indent=2)
        print()
        return 0
    console = plain_console()
    table = Table(
        "name", "what", "keys of a source", "reads", "writes", "pip install", "page", box=None, pad_edge=False
    )
    for name, record in records.items():
        keys = " ".join(setting["key"] for setting in record["settings"])
        endings = " ".join(dict.fromkeys(ending for known in record["formats"] for ending in known["endings"]))
        writes = " ".join(ending for target in record["targets"] for ending in target["endings"])
        table.add_row(*map(escape, (name, record["help"], keys, endings, writes, record["extra"], record["docs"])))
    console.print(table)
    return 0


def _record(adapter: AdapterDeclaration) -> dict[str, Any]:
    keys = columns(adapter.settings) if adapter.settings is not None else ()
    return {
        "help": adapter.help,
        "docs": adapter.docs,
        "extra": adapter.extra,
        "ways": list(adapter.ways),
        "settings": [{"key": s.key, "allowed": s.span, "unit": s.unit, "reason": s.reason} for s in keys],
        "formats": [{"name": known.name, "endings": list(known.suffixes)} for known in adapter.formats],
        "targets": [{"name": t.name, "help": t.help, "endings": list(t.suffixes)} for t in adapter.targets],
    }
