"""`watchkeeper info LOG`: what a log contains. Reads all of it, so it also finds every damaged frame and bad row."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Column, Table

from watchkeeper.config.loader import load
from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.streams.batch import Columns
from watchkeeper.streams.logs.exits import exits
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import Source, open_log
from watchkeeper.streams.messages import FIELDS, SIGNAL, Kind
from watchkeeper.streams.signals import names_in

HELP = "Show what a log contains: streams, vehicles, samples, span, rates, and whether it is whole."
EXAMPLES = """\
examples:
  watchkeeper info flight.wklog
  watchkeeper info flight.ulg -c signals.toml
  watchkeeper info flight.csv.gz --json | jq .streams.imu.rate_hz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("log", metavar="LOG", type=Path, help="the log to read")
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=Path, help="TOML file whose [recordings] chooses signals (default: none)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


@dataclass(slots=True)
class _Stream:
    """What was seen of one kind."""

    samples: int = 0
    t_first: float = math.inf
    t_last: float = -math.inf
    vehicles: set[str] = field(default_factory=set)
    columns: set[int] = field(default_factory=set)
    names: set[tuple[float, ...]] = field(default_factory=set)
    """Of signals, as the numbers that stand for them."""

    def add(self, kind: Kind, cols: Columns, ids: list[str]) -> None:
        self.samples += len(cols)
        self.t_first = min(self.t_first, float(cols.t.min()))
        self.t_last = max(self.t_last, float(cols.t.max()))
        self.vehicles.update(ids[v] for v in set(cols.vid.tolist()))
        absent = (c for c in range(len(cols.data)) if c not in self.columns)
        self.columns.update([c for c in absent if not np.isnan(cols.data[c]).all()])
        if kind is Kind.SIGNAL:
            self.names.update(map(tuple, np.unique(cols.data[SIGNAL.name_0 :], axis=1).T.tolist()))

    def figures(self, kind: Kind) -> dict[str, Any]:
        span_s = self.t_last - self.t_first
        rate_hz = self.samples / len(self.vehicles) / span_s if span_s > 0 else None
        return {
            "samples": self.samples,
            "vehicles": len(self.vehicles),
            "t_first": self.t_first,
            "t_last": self.t_last,
            "seconds": span_s,
            "rate_hz": round(rate_hz, 3) if rate_hz is not None else None,
            "fields": [FIELDS[kind][c].name for c in sorted(self.columns)] if kind is not Kind.SIGNAL else ["value"],
            **({"names": sorted(names_in(np.array(sorted(self.names)).T))} if kind is Kind.SIGNAL else {}),
        }


def survey(source: Source) -> dict[str, Any]:
    """Everything `info` tells, ready for JSON. `rate_hz` is the mean per vehicle over the whole span."""
    streams: dict[Kind, _Stream] = {}
    for batch in shown(source.batches(), [source], "reading"):
        for kind, cols in batch.kinds.items():
            streams.setdefault(kind, _Stream()).add(kind, cols, batch.ids)
    info = source.info()
    return {
        "path": str(info.path),
        "format": info.format,
        "size_bytes": info.size_bytes,
        "samples": sum(stream.samples for stream in streams.values()),
        "vehicles": len(set[str]().union(*(stream.vehicles for stream in streams.values()))),
        "streams": {kind.word: streams[kind].figures(kind) for kind in sorted(streams)},
        "truncated_at": info.truncated_at,
        "bad_rows": info.bad_rows,
        "problems": info.problems,
    }


@exits
def main(args: argparse.Namespace) -> int:
    """Show it; the exit code."""
    recordings = load(args.config).recordings if args.config is not None else None
    found = survey(open_log(args.log, recordings))
    if args.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
        return 0
    title = (
        f"{found['path']}: {found['format']}, {found['size_bytes']:,} bytes, "
        f"{found['samples']:,} samples of {found['vehicles']:,} vehicles"
    )
    headings = ("stream", "vehicles", "samples", "from", "to", "seconds", "Hz each")
    table = Table(*(Column(name, no_wrap=True) for name in headings), box=None, pad_edge=False)
    for word, stream in found["streams"].items():
        table.add_row(
            word,
            f"{stream['vehicles']:,}",
            f"{stream['samples']:,}",
            clock(stream["t_first"]),
            clock(stream["t_last"]),
            f"{stream['seconds']:,.1f}",
            "" if stream["rate_hz"] is None else f"{stream['rate_hz']:g}",
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(title, markup=False)
    console.print(table)
    for word, stream in found["streams"].items():
        console.print(f"{word} fields: {' '.join(stream['fields'])}", markup=False)
        if "names" in stream:
            console.print(f"signals: {' '.join(stream['names'])}", markup=False)
    # whether units and axes are right only a replay finds out
    console.print(f"problems of the file: {'; '.join(found['problems']) or 'none'} (nothing was judged)", markup=False)
    return 0
