"""`watchkeeper check-config FILE`: every problem of a configuration at once, or what it comes to."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, ConfigError, load
from watchkeeper.config.masking import masked
from watchkeeper.config.reference import config_toml

HELP = "check a configuration file and say everything that is wrong with it"
EXAMPLES = """\
examples:
  watchkeeper check-config my.toml           exit 0 good, 78 bad
  watchkeeper check-config my.toml --show    the effective configuration: defaults, profile, file and environment
  WATCHKEEPER_TIME__TICK_S=0.5 watchkeeper check-config my.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", help=f"TOML file (default: {ENV_FILE}, or none: environment only)"
    )
    parser.add_argument("--show", action="store_true", help="print the effective configuration as TOML, with units")


def main(args: argparse.Namespace) -> int:
    """Exit code 0, or 78 (EX_CONFIG) with one block per problem."""
    name = args.file or os.environ.get(ENV_FILE) or "environment"
    try:
        config = load(args.file)
    except ConfigError as error:
        count = len(error.problems)
        print(f"{error}\n\n{name}: {count} problem{'s' if count > 1 else ''}")
        return os.EX_CONFIG
    # with --show the whole output is a valid TOML file
    print(f"{'# ' if args.show else ''}{name}: good, profile {config.profile}, broker {masked(config.broker.url)}")
    if args.show:
        print(config_toml(config), end="")
    return os.EX_OK
