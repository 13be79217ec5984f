"""Alarms next to the samples: reads the file that `watchkeeper replay --alarms` and the journal write.

    events(path)       every line, as it is and as an Event
    alarms(path)       one Alarm for each id: its lines joined

One JSON object per line (docs/alarms.md). Only what a map or a list shows is decoded; the line itself is kept for
formats that have room for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from watchkeeper.streams.adapters.base import READ_BYTES, Lines
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder
from watchkeeper.streams.foreign.files import open_file, unpacked
from watchkeeper.streams.logs.base import LogError

# An event has some 2 kB; an incident of a whole fleet a hundred times that.
LINE_MAX_BYTES = 1 << 20
SEVERITIES = ("advisory", "caution", "warning")


class Event(msgspec.Struct, frozen=True, gc=False):
    """One step in an alarm's life: the part of it that is shown."""

    id: str
    kind: str
    state: str
    severity: str
    subjects: tuple[str, ...]
    t: float
    t_onset: float
    t_raised: float
    t_cleared: float | None = None
    score: float | None = None
    threshold: float | None = None
    say: str = ""
    ended: str | None = None

    @property
    def words(self) -> str:
        """The event as one line for a person."""
        return self.say or f"{self.kind}: {' and '.join(self.subjects)}"


@dataclass(slots=True)
class Alarm:
    """An alarm from its first to its last line: the last of its events, and the highest severity of all."""

    last: Event
    severity: str

    def add(self, event: Event) -> None:
        """A further line of it."""
        self.last = event
        self.severity = max(self.severity, event.severity, key=_rank)


def events(path: Path) -> Iterator[tuple[Event, bytes]]:
    """Every event of a file with its line. Raises LogError for a line that is none."""
    read = json_decoder(Event)
    for number, line in enumerate(_lines(path), 1):
        if line is None:
            raise LogError(path, f"event {number:,} has more than {LINE_MAX_BYTES:,} bytes")
        try:
            yield read(line), line
        except ForeignError as error:
            raise LogError(path, f"event {number:,} is no alarm event: {error}") from error


def _lines(path: Path) -> Iterator[bytes | None]:
    lines = Lines(LINE_MAX_BYTES)
    try:
        with open_file(path) as raw:
            file = unpacked(raw)
            while data := file.read(READ_BYTES):
                yield from lines.push(data)
        yield from lines.close()
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error


def alarms(path: Path) -> list[Alarm]:
    """Every alarm of a file, in order of its first event."""
    found: dict[str, Alarm] = {}
    for event, _ in events(path):
        if event.id in found:
            found[event.id].add(event)
        else:
            found[event.id] = Alarm(event, event.severity)
    return list(found.values())


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1
