"""`watchkeeper check-config FILE`: every problem of a configuration at once, or what it comes to."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from watchkeeper.config.json_schema import json_schema
from watchkeeper.config.loader import ENV_FILE, ConfigError, load
from watchkeeper.config.masking import masked
from watchkeeper.config.reference import config_toml
from watchkeeper.config.schema import Config
from watchkeeper.daemon.commands.printing import plain_console

HELP = "check a configuration file, and what it needs of this machine, and say everything that is wrong"
EXAMPLES = """\
examples:
  watchkeeper check-config my.toml           the file; packages, files and folders that it names
  watchkeeper check-config my.toml --connect also broker, sources and receivers of alarms; no alarm is sent
  watchkeeper check-config my.toml --show    the effective configuration: defaults, profile, file and environment
  watchkeeper check-config --schema > watchkeeper.schema.json     for editors, see docs/configuration.md
  WATCHKEEPER_TIME__TICK_S=0.5 watchkeeper check-config my.toml

exit codes: 0 good, 1 the file is good but something that it names is missing or cannot be reached, 78 the file is bad
"""
FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", help=f"TOML file (default: {ENV_FILE}, or none: environment only)"
    )
    parser.add_argument("--show", action="store_true", help="print the effective configuration as TOML, with units")
    parser.add_argument("--connect", action="store_true", help="try the broker, the sources and the sinks' addresses")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of the file, for editors")


def main(args: argparse.Namespace) -> int:
    """Exit code 0; 78 (EX_CONFIG) with one block per problem; 1 for what this machine lacks."""
    if args.schema:
        print(json.dumps(json_schema(), indent=1))
        return os.EX_OK
    name = args.file or os.environ.get(ENV_FILE) or "environment"
    try:
        config = load(args.file)
    except ConfigError as error:
        count = len(error.problems)
        print(f"{error}\n\n{name}: {count} problem{'s' if count > 1 else ''}")
        return os.EX_CONFIG
    # with --show the whole output is a valid TOML file
    mark = "# " if args.show else ""
    print(f"{mark}{name}: good, profile {config.profile}, broker {masked(config.broker.url)}")
    if args.show:
        print(config_toml(config), end="")
    good = _machine(config, mark)
    if args.connect:
        good = _connect(config, mark) and good
    return os.EX_OK if good else FAILED


def _machine(config: Config, mark: str) -> bool:
    """Say what this machine lacks; whether the daemon can start without it."""
    # here, not above: the adapters and their libraries, which a bad file need not wait for
    from watchkeeper.daemon.check_config.machine import lacks  # noqa: PLC0415

    found = lacks(config, os.environ)
    for lack in found:
        then = " (the daemon starts, and waits for it)" if lack.waits else ""
        print(f"{mark}{lack.key}: {masked(lack.problem)}{then}")
    return all(lack.waits for lack in found)


def _connect(config: Config, mark: str) -> bool:
    from watchkeeper.daemon.check_config.connect import try_all  # noqa: PLC0415

    # the transport logs each attempt; here the table says it
    logging.getLogger("watchkeeper").addHandler(logging.NullHandler())
    tried = asyncio.run(try_all(config))
    table = Table("what", "where", "result", "", box=None, pad_edge=False)
    for row in tried:
        table.add_row(*map(escape, (mark + row.what, row.where, "reachable" if row.reachable else "FAILED", row.words)))
    plain_console().print(table)
    return all(row.reachable for row in tried)
