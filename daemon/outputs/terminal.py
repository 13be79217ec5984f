"""Alarms for people at a terminal.

`AlarmLines` writes one line per event on standard output, coloured when it is a terminal; `LiveView` is the demo's
picture of the whole watch, redrawn in place.

Lines are written by a thread of their own behind a bounded queue: a pager that stands still, or a pipe that nobody
reads, must not hold up an alarm. Lines that find the queue full, or nobody to read them, are counted and left out.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from watchkeeper.config.schema import Config, Sinks
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.base import Context, Declaration, idle, settled
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.declaration import Field
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.fold import counted
from watchkeeper.detectors.sentence import said, telling

QUEUE_LINES = 10_000
# A line that takes longer than this to write has no reader.
STALL_S = 1.0
STYLE: dict[str, str] = {"advisory": "cyan", "caution": "yellow", "warning": "bold red"}
# Event times below this are seconds of a simulation, not dates (it is September 2001).
UNIX_FROM_S = 1e9
# Numbers of an alarm's evidence that fit on the line.
NUMBERS_SHOWN = 4
# In front of the sentence of an alarm that is a symptom of an incident.
INDENT = "  "
REFRESH_S = 0.25
ACTIVE_SHOWN = 10
RECENT_EVENTS = 10


def clock(t: float) -> str:
    """An event time for people: UTC for Unix times, plain seconds for a simulation's.

    >>> clock(1_700_000_000.25), clock(12.5)
    ('22:13:20.2Z', 't=12.5 s')
    """
    if t < UNIX_FROM_S:
        return f"t={t:.1f} s"
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S.%f")[:10] + "Z"


def line_of(event: AlarmEvent) -> Text:
    """One event as one line: when, what state, its sentence, and the numbers that are most responsible for it."""
    style = STYLE[event.severity] if event.state != CLEARED else "green"
    word = event.state.upper() if event.state in {RAISED, CLEARED} else event.state
    text = Text.assemble(
        (f"{clock(event.t):<11} ", "dim"),
        (f"{word:<8}{event.severity:<9}", style),
        f"{event.kind:<12} {INDENT * (event.incident is not None)}",
        (_printable(said(event)), "bold" if event.state == RAISED else ""),
    )
    # an incident is no measurement: it has no score of its own
    if event.state != CLEARED and event.kind != INCIDENT:
        numbers = [_number(field, value) for field, value in telling(event)[:NUMBERS_SHOWN]]
        text.append(f" [{', '.join([f'score {event.score:.3g} of {event.threshold:.3g}', *numbers])}]", "dim")
    text.append(f" {event.id}", "dim")
    return text


def _number(field: Field, value: float) -> str:
    """One number of the evidence; an event time as the time of day that it is."""
    if field.name.endswith("_t"):
        return f"{field.words.removesuffix(' t')} {clock(value)}"
    return f"{field.words} {value:.4g} {field.unit}".rstrip()


def folded(active: Iterable[AlarmEvent]) -> list[AlarmEvent]:
    """Active alarms, the most severe first; those with one cause below their incident."""
    by_id = {event.id: event for event in active}

    def place(event: AlarmEvent) -> tuple[int, float, str, bool, float]:
        head = by_id.get(event.incident or "", event)
        return -SEVERITIES.index(head.severity), head.t_raised, head.id, head is not event, event.t_raised

    return sorted(by_id.values(), key=place)


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)


class AlarmLines:
    """Shows events; `put` never waits."""

    name = "terminal"
    failures = 0
    refused = 0

    def __init__(self, stream: TextIO | None = None) -> None:
        self.delivered = 0
        self.dropped = 0
        # in a pipe a line is a line, however long: wrapping would break what reads it
        self._console = Console(file=stream or sys.stdout, highlight=False, soft_wrap=True)
        self._queue: queue.Queue[AlarmEvent | None] = queue.Queue(QUEUE_LINES)
        self._thread: threading.Thread | None = None
        # since when the line that is being written is (monotonic), and why no more will be
        self._since_s: float | None = None
        self._gone = ""

    @property
    def waiting(self) -> int:
        """Lines that are not written."""
        return self._queue.unfinished_tasks

    def put(self, event: AlarmEvent) -> None:
        """Queue one line."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="terminal", daemon=True)
            self._thread.start()
        try:
            if self._gone:
                raise queue.Full
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def health(self) -> list[str]:
        """Does anybody read?"""
        since_s = self._since_s
        if self._gone:
            return [f"nobody reads standard output any more: {self._gone}"]
        if since_s is not None and time.monotonic() - since_s > STALL_S:
            return [f"standard output takes no lines: {self.waiting} wait"]
        return []

    async def run(self) -> None:
        """Task: nothing, until the end; then the thread may go, whether somebody reads or not."""
        try:
            await idle()
        finally:
            with suppress(queue.Full):
                self._queue.put_nowait(None)

    async def flush(self) -> None:
        """Return when every line is written."""
        await settled(self)

    def _write(self) -> None:
        while (event := self._queue.get()) is not None:
            self._since_s = time.monotonic()
            try:
                self._console.print(line_of(event))
                self.delivered += 1
            except (OSError, ValueError, SystemExit) as error:
                # nobody reads any more (rich answers a broken pipe with SystemExit); the watch goes on
                self._gone = "broken pipe" if isinstance(error, SystemExit) else str(error)
                self.dropped += 1
            self._since_s = None
            self._queue.task_done()
            if self._gone:
                self._discard()
                return

    def _discard(self) -> None:
        with suppress(queue.Empty):
            while True:
                self.dropped += self._queue.get_nowait() is not None
                self._queue.task_done()


def _asked(config: Config) -> list[Sinks]:
    return [config.sinks] if config.sinks.terminal else []


def make(_settings: Sinks, _context: Context) -> AlarmLines:
    """Lines on standard output."""
    return AlarmLines()


TERMINAL = Declaration(
    name="terminal", help="every event as a line on standard output", settings=Sinks, make=make, asked=_asked
)


class LiveView:
    """Vehicles, rates, active alarms and the last events, redrawn four times a second by `draw`.

    `url` is where the live page is, empty when there is none.
    """

    name = "terminal"
    failures = refused = dropped = waiting = 0

    def __init__(self, watched: Watched, url: Callable[[], str] = str, console: Console | None = None) -> None:
        self.delivered = 0
        self._watched = watched
        self._url = url
        self._recent: deque[AlarmEvent] = deque(maxlen=RECENT_EVENTS)
        self._began_s = time.monotonic()
        self._rate = (self._began_s, watched.totals().messages, 0.0)
        # drawn from the event loop only: its own thread would read the pipeline while it changes
        self._live = Live(console=console or Console(), auto_refresh=False)

    def put(self, event: AlarmEvent) -> None:
        """Remember one event for the next picture."""
        self._recent.append(event)
        self.delivered += 1

    def health(self) -> list[str]:
        """A picture that stands still is seen to."""
        return []

    async def run(self) -> None:
        """Task: nothing; `draw` shows the picture."""
        await idle()

    async def flush(self) -> None:
        """`close` draws a last time."""

    async def draw(self) -> None:
        """Task: redraw until cancelled."""
        self._live.start()
        while True:
            self._live.update(self.picture(), refresh=True)
            await asyncio.sleep(REFRESH_S)

    def close(self) -> None:
        """Draw a last time and leave the picture standing."""
        if self._live.is_started:
            self._live.update(self.picture(), refresh=True)
            self._live.stop()

    def picture(self) -> Group:
        """The whole view."""
        active = folded(self._watched.active())
        more = len(active) - ACTIVE_SHOWN
        shown = [_cut(line_of(event)) for event in active[:ACTIVE_SHOWN]] or [Text("none", "dim")]
        if more > 0:
            shown.append(Text(f"and {more} more", "dim"))
        return Group(
            self._headline(),
            Panel(Group(*shown), title=f"active: {counted(active)}", title_align="left"),
            Panel(
                Group(*(_cut(line_of(event)) for event in self._recent)),
                title="last events",
                title_align="left",
            ),
        )

    def _headline(self) -> Text:
        watched, totals = self._watched, self._watched.totals()
        now = time.monotonic()
        since, before, rate = self._rate
        if now - since >= 1.0:
            rate = (totals.messages - before) / (now - since)
            self._rate = (now, totals.messages, rate)
        words = [
            f"watchkeeper {watched.version}",
            f"{now - self._began_s:.0f} s",
            f"{len(watched.pipeline.fleet)} vehicles",
            f"{rate:.0f} messages/s",
            f"{sum(watched.pipeline.samples.values())} samples",
            f"{totals.dropped} drops",
            ", ".join([*watched.not_ready(), *watched.warnings()]) or "ready",
        ]
        if url := self._url():
            words.append(url)
        return _cut(Text("  ".join(words), "bold"))


def _cut(text: Text) -> Text:
    """The same on one line of the terminal, however narrow."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
