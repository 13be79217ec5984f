"""The command `report`: one page per log, an index where there are several, and no log that stops the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from watchkeeper.config.schema import Config
from watchkeeper.daemon.report.index import Entry, entry_of, index
from watchkeeper.daemon.report.make import report, write
from watchkeeper.streams.logs.exits import FAILED, USAGE, fail
from watchkeeper.streams.logs.source import LogError, open_log

INDEX = "index.html"
# Endings that say nothing about a log besides its form.
ENDINGS = (".gz", ".csv", ".json", ".jsonl")


def make_reports(args: argparse.Namespace, config: Config) -> int:
    """Write everything that was asked for; the exit code."""
    one_file = args.out is not None and args.out.suffix.lower() in (".html", ".htm")
    if one_file and len(args.logs) > 1:
        return fail(f"{args.out}: several logs need a folder, not a file", USAGE)
    folder = args.out if args.out is not None and not one_file else args.out.parent if one_file else Path()
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    for number, (log, name) in enumerate(zip(args.logs, file_names(args.logs), strict=True), 1):
        path = args.out if one_file else folder / name
        what = f"{log.name} ({number} of {len(args.logs)})" if len(args.logs) > 1 else log.name
        entries.append(_one(log, path, config, _command(args, log), what))
    if len(args.logs) > 1:
        (folder / INDEX).write_text(index(entries), encoding="utf-8")
        print(f"{folder / INDEX}: {len(entries)} logs")
    return FAILED if any(entry.error for entry in entries) else 0


def _one(log: Path, path: Path, config: Config, command: Sequence[str], what: str) -> Entry:
    try:
        found = report([open_log(log, config.recordings)], config, command, what=what)
        write(found, path)
    except (LogError, OSError) as error:
        problem = error.problem if isinstance(error, LogError) else error.strerror or str(error)
        fail(f"{log}: {problem}")
        return Entry(log=log.name, error=problem)
    print(f"{path}: {found.verdict.headline}", flush=True)
    sys.stdout.flush()
    return entry_of(found, path.name)


def _command(args: argparse.Namespace, log: Path) -> list[str]:
    words = ["watchkeeper", "report", str(log)]
    for option, value in (("-c", args.config), ("--profile", args.profile)):
        words += [option, str(value)] if value else []
    return words


def file_names(logs: Sequence[Path]) -> Iterator[str]:
    """A name for the page of each log, none twice.

    >>> list(file_names([Path("a/x.csv.gz"), Path("b/x.ulg"), Path("index.wklog")]))
    ['x.html', 'x-2.html', 'index-2.html']
    """
    taken = {INDEX}
    for log in logs:
        stem = log.name
        while Path(stem).suffix.lower() in ENDINGS:
            stem = Path(stem).stem
        stem = Path(stem).stem or "log"
        number, name = 1, f"{stem}.html"
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}.html"
        taken.add(name.lower())
        yield name
