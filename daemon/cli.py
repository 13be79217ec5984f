"""The command line: finds the command, parses its arguments, returns its exit code.

Each command is a module in daemon/commands/ with HELP, EXAMPLES, add_arguments(parser) and main(args) -> int. Only
the one that runs is imported, so that `watchkeeper --help` answers at once. Exit codes: 0 good, 1 failed, 2 usage,
78 bad configuration, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

from watchkeeper.config.guests import discover
from watchkeeper.config.installed import GuestError
from watchkeeper.daemon.collector import paused

# Command to its module in daemon/commands/ and its line in the overview.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "broker, simulator, daemon and live alarms, in one command"),
    "init": ("init", "a commented configuration for what there is on this machine"),
    "run": ("run", "the daemon"),
    "check-config": ("check_config", "every error of a configuration file at once"),
    "flink": ("flink", "the same pipeline on a cluster of Apache Flink"),
    "replay": ("replay", "run recorded logs through the same pipeline"),
    "report": ("report", "a page of each log that opens offline: verdict, map, plots, alarms"),
    "record": ("record", "write what the broker carries to a .wklog"),
    "convert": ("convert", "a log in another format: .wklog, CSV, Parquet, MCAP, GeoJSON, KML"),
    "info": ("info", "what a log contains"),
    "limits": ("limits", "limits of signals, learned from flights that went well"),
    "simulate": ("simulate", "simulated traffic and drones, with the truth in a second file"),
    "inject": ("inject", "put an attack of the catalogue into a log"),
    "evaluate": ("evaluate", "how good alarms, controllers, trajectories and detectors are"),
    "detectors": ("detectors", "every detector with its parameters"),
    "adapters": ("adapters", "every live source, and every file format that is read or written"),
    "compile": ("compile", "compile every kernel now: for images and packages, or before the first start"),
    "bench": ("bench", "measure speed and memory on this machine"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    if command in COMMANDS:
        try:
            discover()
        except GuestError as error:
            print(f"watchkeeper: {error}", file=sys.stderr)
            return os.EX_CONFIG
    parser = argparse.ArgumentParser(
        prog="watchkeeper",
        description="Keeps watch over moving things: conflicts, lying sensors and silence, from MQTT telemetry.",
        epilog="Start with: watchkeeper demo",
    )
    parser.add_argument("--version", action="version", version=f"watchkeeper {version('watchkeeper')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, line) in COMMANDS.items():
        with paused():
            module = import_module(f"watchkeeper.daemon.commands.{module_name}") if name == command else None
        _add(commands, name, line, module)
    if not words:
        # somebody who looks what this is
        parser.print_help(sys.stderr)
        return 2
    args = parser.parse_args(words)
    try:
        return int(args.main(args))
    except BrokenPipeError:
        # the reader of our output went away (`| head`): not our failure, but standard output is gone
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        return 130


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, line: str, module: ModuleType | None
) -> None:
    if module is None:
        commands.add_parser(name, help=line)
        return
    parser = commands.add_parser(
        name,
        help=line,
        description=module.HELP,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    parser.set_defaults(main=module.main)


if __name__ == "__main__":
    sys.exit(main())
