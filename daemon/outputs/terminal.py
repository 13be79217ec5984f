"""Alarms for people at a terminal.

`AlarmLines` writes one line per event on standard output, coloured when it is a terminal; `LiveView` is the demo's
picture of the whole watch, redrawn in place.

Lines are written by a thread of their own behind a bounded queue: a pager that stands still, or a pipe that nobody
reads, must not hold up an alarm. Lines that find the queue full are counted and left out.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES

if TYPE_CHECKING:
    from watchkeeper.daemon.app import App

NO_CALLSIGNS: Mapping[str, str] = {}
QUEUE_LINES = 10_000
STYLE: dict[str, str] = {"advisory": "cyan", "caution": "yellow", "warning": "bold red"}
# Event times below this are seconds of a simulation, not dates (it is September 2001).
UNIX_FROM_S = 1e9
# Numbers of an alarm's evidence that fit on the line.
NUMBERS_SHOWN = 4
REFRESH_S = 0.25
ACTIVE_SHOWN = 10
RECENT_EVENTS = 10


def clock(t: float) -> str:
    """An event time for people: UTC for Unix times, plain seconds for a simulation's.

    >>> clock(1_700_000_000.25), clock(12.5)
    ('22:13:20.2Z', 't=12.5s')
    """
    if t < UNIX_FROM_S:
        return f"t={t:.1f}s"
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S.%f")[:10] + "Z"


def line_of(event: AlarmEvent, callsigns: Mapping[str, str] = NO_CALLSIGNS) -> Text:
    """One event as one line, without control characters whatever a vehicle calls itself."""
    subjects = _printable("~".join(event.subjects))
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
    if event.diagnosis is not None:
        found = event.diagnosis
        text.append(_printable(f" {found['type']} at {found['location']} ({found['confidence']:.0%})"), "bold")
    numbers = [(k, v) for k, v in event.evidence.items() if isinstance(v, float)][:NUMBERS_SHOWN]
    text.append("".join(f" {name}={value:.4g}" for name, value in numbers))
    called = [callsigns[name] for name in event.subjects if name in callsigns]
    if called:
        text.append(f" {_printable(' '.join(called))}", "bold")
    text.append(f" {event.id}", "dim")
    return text


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)


class AlarmLines:
    """Shows events; `show` never waits."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.dropped = 0
        # gives the callsigns known now; set by whoever has a fleet
        self.callsigns: Callable[[], Mapping[str, str]] = lambda: NO_CALLSIGNS
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
                self._console.print(line_of(event, self.callsigns()))
            except (OSError, ValueError, SystemExit):
                # nobody reads any more (rich answers a broken pipe with SystemExit); the watch goes on
                return


class LiveView:
    """Vehicles, rates, active alarms and the last events, redrawn four times a second by `run`."""

    def __init__(self, app: App, console: Console | None = None) -> None:
        self._app = app
        self._recent: deque[AlarmEvent] = deque(maxlen=RECENT_EVENTS)
        self._began_s = time.monotonic()
        self._rate = (self._began_s, app.intake.received, 0.0)
        # drawn from the event loop only: its own thread would read the pipeline while it changes
        self._live = Live(console=console or Console(), auto_refresh=False)

    def show(self, event: AlarmEvent) -> None:
        """Remember one event for the next picture."""
        self._recent.append(event)

    async def run(self) -> None:
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
        app = self._app
        active = sorted(app.pipeline.active.values(), key=lambda e: (-SEVERITIES.index(e.severity), e.t_raised))
        more = len(active) - ACTIVE_SHOWN
        called = app.pipeline.fleet.callsigns
        shown = [_cut(line_of(event, called)) for event in active[:ACTIVE_SHOWN]] or [Text("none", "dim")]
        if more > 0:
            shown.append(Text(f"and {more} more", "dim"))
        return Group(
            self._headline(),
            Panel(Group(*shown), title=f"active alarms ({len(active)})", title_align="left"),
            Panel(
                Group(*(_cut(line_of(event, called)) for event in self._recent)),
                title="last events",
                title_align="left",
            ),
        )

    def _headline(self) -> Text:
        app = self._app
        now, received = time.monotonic(), app.intake.received
        since, before, rate = self._rate
        if now - since >= 1.0:
            rate = (received - before) / (now - since)
            self._rate = (now, received, rate)
        words = [
            f"watchkeeper {app.version}",
            f"{now - self._began_s:.0f} s",
            f"{len(app.pipeline.fleet)} vehicles",
            f"{rate:.0f} messages/s",
            f"{sum(app.pipeline.samples.values())} samples",
            f"{sum(app.pipeline.drops.values()) + sum(app.letters.counts.values())} drops",
            "ready" if not app.not_ready() else ", ".join(app.not_ready()),
        ]
        if app.http is not None:
            words.append(app.http.url)
        return _cut(Text("  ".join(words), "bold"))


def _cut(text: Text) -> Text:
    """The same on one line of the terminal, however narrow."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
