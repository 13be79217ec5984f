"""`watchkeeper detectors`: every detector with its parameters and the evidence of its alarms."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rich.markup import escape
from rich.table import Table

from watchkeeper.config.guests import default
from watchkeeper.config.reference import toml_value
from watchkeeper.config.section import Section, Setting, settings
from watchkeeper.daemon.commands.printing import plain_console
from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.declaration import AlarmKind, fields_of

HELP = "List the detectors: parameters with ranges, units and defaults, and the evidence that their alarms carry."
EXAMPLES = """\
examples:
  watchkeeper detectors
  watchkeeper detectors conflict los
  watchkeeper detectors --json | jq '.conflict.parameters[].key'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    names = default().detectors.sections()
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"only these; there are: {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="JSON for machines")


def main(args: argparse.Namespace) -> int:
    """Exit code 0, or 2 for a detector that does not exist."""
    sections = default().detectors.sections()
    unknown = [name for name in args.names if name not in sections]
    if unknown:
        print(f"no such detector: {', '.join(unknown)} (there are: {', '.join(sections)})", file=sys.stderr)
        return 2
    chosen = {name: section for name, section in sections.items() if not args.names or name in args.names}
    if args.json:
        json.dump({name: _record(name, type(section)) for name, section in chosen.items()}, sys.stdout, indent=2)
        print()
        return 0
    console = plain_console()
    for name, section in chosen.items():
        console.print(_table(name, type(section)))
        if (kind := detector_kinds().get(name)) is not None:
            console.print(_evidence(kind), "")
    return 0


def _table(name: str, section: type[Section]) -> Table:
    table = Table(title=f"[bold]{name}[/]  {escape(_about(section))}", title_justify="left", title_style="")
    for column, fixed in (("key", True), ("default", True), ("range", False), ("unit", True), ("reason", False)):
        table.add_column(column, no_wrap=fixed)
    for s in settings(section):
        table.add_row(*map(escape, (s.key, toml_value(s.default), s.span, s.unit, s.reason)))
    return table


def _evidence(kind: AlarmKind) -> Table:
    table = Table(title=f"alarms of the kind {kind.name}: {escape(kind.help)}", title_justify="left", title_style="")
    for column in ("evidence", "unit", "meaning"):
        table.add_column(column)
    for field in fields_of(kind.facts):
        table.add_row(*map(escape, (field.name, field.unit, field.meaning)))
    for cause, meaning in kind.causes.items():
        table.add_row(*map(escape, (f"cause {cause}", "", meaning)))
    return table


def _record(name: str, section: type[Section]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "about": _about(section),
        "parameters": [_parameter(s) for s in settings(section, ("detectors", name))],
    }
    if (kind := detector_kinds().get(name)) is not None:
        evidence = [{"name": f.name, "unit": f.unit, "meaning": f.meaning} for f in fields_of(kind.facts)]
        record |= {"alarm": kind.help, "evidence": evidence, "causes": kind.causes}
    return record


def _parameter(s: Setting) -> dict[str, Any]:
    numeric = s.kind in (int, float)
    return {
        "key": s.key,
        "default": s.default,
        "min": s.low if numeric else None,
        "max": s.high if numeric else None,
        "choices": s.choices or None,
        "unit": s.unit,
        "reason": s.reason,
        "live": s.live,
    }


def _about(section: type[Section]) -> str:
    return (section.__doc__ or "").strip()
