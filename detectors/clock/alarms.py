"""From notes about senders' clocks to the alarm `clock`: one per vehicle, or per gateway with all its vehicles.

The engine's clock has confirmed each note (detectors/engine/senders/), so there is nothing to debounce: the first
note raises. Called by the pipeline at every tick; pure, event time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from watchkeeper.config.detectors.clock import Clock
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent, Finding
from watchkeeper.detectors.clock.declaration import AHEAD, BEHIND, CLOCK, LATE, UNSTEADY
from watchkeeper.detectors.declaration import Ended
from watchkeeper.detectors.fleet.clocks import ClockNote

# Digits after the point of an offset.
DIGITS = 1


class ClockAlarms:
    """The alarms `clock` of one pipeline."""

    def __init__(self, settings: Clock, book: AlarmBook) -> None:
        self._book = book
        # subject of each active alarm: when its clock was last off, and when it was last heard of
        self._off_t: dict[str, float] = {}
        self._noted_t: dict[str, float] = {}
        self.retune(settings)

    def retune(self, settings: Clock) -> None:
        """Take new settings."""
        self._settings = settings

    def step(self, t: float, notes: Sequence[ClockNote], gateways: Sequence[str]) -> list[AlarmEvent]:
        """Take in the notes up to t; `gateways` are named by number."""
        if not self._settings.enabled:
            return []
        events: list[AlarmEvent | None] = []
        for note in notes:
            name = gateways[note.via] if note.vehicles else note.name
            self._noted_t[name] = t
            if note.offset_s or note.unsteady or note.late:
                events.append(self._off(name, note, t))
            elif name not in self._off_t:
                del self._noted_t[name]
        for name, off_t in list(self._off_t.items()):
            if t - self._noted_t[name] > self._settings.lost_s:
                events.append(self._end(name, t, "out_of_sight"))
            elif t - off_t > self._settings.clear_s and self._noted_t[name] > off_t:
                events.append(self._end(name, t, "cause_gone"))
        return [event for event in events if event is not None]

    @property
    def waits(self) -> bool:
        """Whether an alarm is active, which ends by itself some time."""
        return bool(self._off_t)

    def _off(self, name: str, note: ClockNote, t: float) -> AlarmEvent | None:
        refused = UNSTEADY if note.unsteady else LATE if note.late else ""
        cause = refused or (AHEAD if note.offset_s > 0.0 else BEHIND)
        offset_s = round(note.offset_s, DIGITS)
        evidence: dict[str, Any] = {"causes": [cause], "offset_s": offset_s, "vehicles": note.vehicles}
        severity = "warning" if refused else "caution"
        finding = Finding(CLOCK, (name,), t, abs(offset_s), note.tolerance_s, severity, evidence)
        self._off_t[name] = t
        last = self._book.active.get((CLOCK, (name,)))
        if last is None:
            return self._book.raised(finding, note.t)
        news = last.evidence["causes"] != [cause]
        return self._book.still(finding, news=news)

    def _end(self, name: str, t: float, ended: Ended) -> AlarmEvent | None:
        del self._off_t[name], self._noted_t[name]
        return self._book.end(CLOCK, (name,), t, ended)

    def end(self, t: float, ended: Ended) -> list[AlarmEvent]:
        """Everything is over: end all alarms."""
        events = [self._end(name, t, ended) for name in list(self._off_t)]
        return [event for event in events if event is not None]

    def adopt(self, event: AlarmEvent) -> bool:
        """Take over an alarm that was active before a restart."""
        self._off_t[event.subjects[0]] = self._noted_t[event.subjects[0]] = event.t
        return True

    def disown(self, subjects: tuple[str, ...]) -> None:
        """An alarm on this subject ended before the restart: it is not active any more."""
        self._off_t.pop(subjects[0], None)
        self._noted_t.pop(subjects[0], None)

    def snapshot(self) -> dict[str, Any]:
        """Who is off, since when."""
        return {"off_t": self._off_t, "noted_t": self._noted_t}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._off_t, self._noted_t = dict(state["off_t"]), dict(state["noted_t"])
