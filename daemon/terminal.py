"""Alarms for people at a terminal: one line per event on standard output, coloured when it is a terminal.

Lines are written by a thread of their own behind a bounded queue: a pager that stands still, or a pipe that nobody
reads, must not hold up an alarm. Lines that find the queue full are counted and left out.
"""

from __future__ import annotations

import queue
import sys
import threading
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console
from rich.text import Text

from watchkeeper.detectors.alarms import CLEARED, RAISED, AlarmEvent

QUEUE_LINES = 10_000
STYLE: dict[str, str] = {"advisory": "cyan", "caution": "yellow", "warning": "bold red"}
# Event times below this are seconds of a simulation, not dates (it is September 2001).
UNIX_FROM_S = 1e9
# Numbers of an alarm's evidence that fit on the line.
NUMBERS_SHOWN = 4


def clock(t: float) -> str:
    """An event time for people: UTC for Unix times, plain seconds for a simulation's.

    >>> clock(1_700_000_000.25), clock(12.5)
    ('22:13:20.2Z', 't=12.5s')
    """
    if t < UNIX_FROM_S:
        return f"t={t:.1f}s"
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S.%f")[:10] + "Z"


def line_of(event: AlarmEvent) -> Text:
    """One event as one line, without control characters whatever a vehicle calls itself."""
    subjects = "~".join("".join(c if c.isprintable() else "?" for c in s) for s in event.subjects)
    style = STYLE[event.severity] if event.state != CLEARED else "green"
    word = event.state.upper() if event.state in {RAISED, CLEARED} else event.state
    text = Text.assemble(
        (f"{clock(event.t):<11} ", "dim"),
        (f"{word:<8}{event.severity:<9}", style),
        f"{event.kind:<12}",
        (f"{subjects:<20}", "bold"),
        f" score {event.score:.3g}/{event.threshold:.3g}",
    )
    causes = event.evidence.get("causes")
    if isinstance(causes, list) and causes:
        text.append(f" {','.join(map(str, causes))}")
    numbers = [(k, v) for k, v in event.evidence.items() if isinstance(v, float)][:NUMBERS_SHOWN]
    text.append("".join(f" {name}={value:.4g}" for name, value in numbers))
    text.append(f" {event.id}", "dim")
    return text


class AlarmLines:
    """Shows events; `show` never waits."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.dropped = 0
        # in a pipe a line is a line, however long: wrapping would break what reads it
        self._console = Console(file=stream or sys.stdout, highlight=False, soft_wrap=True)
        self._queue: queue.Queue[AlarmEvent | None] = queue.Queue(QUEUE_LINES)
        self._thread = threading.Thread(target=self._write, name="terminal", daemon=True)
        self._thread.start()

    def show(self, event: AlarmEvent) -> None:
        """Queue one line."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued, but do not wait for a reader who has stopped reading."""
        try:
            self._queue.put(None, timeout=0.1)
        except queue.Full:
            return
        self._thread.join(timeout=1.0)

    def _write(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._console.print(line_of(event))
            except (OSError, ValueError):  # nobody reads any more
                return
