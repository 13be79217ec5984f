"""A leaderboard that grows: one line of JSON per agent and run, appended and never changed.

    {"agent": "watchkeeper", "set": "sha256:…", "version": "0.2.0", "summary": {"episodes": 1000, …}}

Several processes may append at once. A line that was cut off or damaged is left where it is, counted when the file is
read, and the next line begins on its own. Used by command.py.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.evaluation.diagnosis.report import ROWS, figure
from watchkeeper.evaluation.shared.html import Table
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder
from watchkeeper.streams.foreign.files import read_document

# The main metric, of which more is better; ties go to the agent with fewer steps per device.
MAIN, TIE = "diagnosis_success_rate", "avg_steps_per_device"
SHOWN = (
    "episodes", MAIN, "fault_type_macro_f1", TIE, "cost_efficiency", "location_accuracy", "tool_error_rate",
)  # fmt: skip
# Of a fingerprint, as many characters as tell sets apart.
SHORT = len("sha256:") + 12


class Entry(msgspec.Struct, frozen=True):
    """One run of one agent on one set of episodes."""

    agent: str
    set: str
    version: str
    summary: dict[str, float | int | None]


def entry_of(agent: str, fingerprint: str, version: str, summary: Mapping[str, Any]) -> Entry:
    """The entry of a run: all figures of its summary, without its tables."""
    figures = {name: value for name, value in summary.items() if value is None or isinstance(value, int | float)}
    return Entry(agent, fingerprint, version, figures)


def append(path: Path, entries: Iterable[Entry]) -> None:
    """Add lines at the end, all of them on disk when this returns."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        # a process that was killed while it wrote has left half a line
        if size and os.pread(handle, 1, size - 1) != b"\n":
            lines = b"\n" + lines
        while lines:
            lines = lines[os.write(handle, lines) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> tuple[list[Entry], list[str]]:
    """All entries in the order in which they were added, and what was wrong with lines that are none."""
    decode = json_decoder(Entry)
    entries, problems = [], []
    for number, line in enumerate(read_document(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            entries.append(decode(line))
        except ForeignError as error:
            problems.append(f"line {number} is left out: {error}")
    return entries, problems


def ranked(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """By set, the latest entry of each agent, the best first. Sets in the order of their first entry."""
    latest: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        latest.setdefault(entry.set, {})[entry.agent] = entry
    return {name: sorted(agents.values(), key=_rank) for name, agents in latest.items()}


def _rank(entry: Entry) -> tuple[float, float, str]:
    main, tie = entry.summary.get(MAIN), entry.summary.get(TIE)
    # an agent without the main metric comes last
    return -1.0 * main if main is not None else 1.0, tie if tie is not None else 0.0, entry.agent


def tables(entries: Iterable[Entry]) -> list[Table]:
    """One table per set of episodes, for figures on different sets cannot be compared."""
    labels = dict(ROWS)
    head = ["", *(labels[name] for name in SHOWN), "version"]
    return [
        Table(
            f"set {name[:SHORT]}, best {labels[MAIN]} first",
            head,
            [[e.agent, *(figure(e.summary.get(metric)) for metric in SHOWN), e.version] for e in best],
        )
        for name, best in ranked(entries).items()
    ]
