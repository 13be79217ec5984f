"""The last stage: what the operators have to say of one turn becomes one stream of events, as of one whole Pipeline.

    take(clocks, answers) -> events     `clocks[i]` and `answers[i]` (one of each operator) belong to one step of a turn
    dump() -> bytes, load(bytes)

Events of a tick are put in one order. The alarms `clock` and `incident` are made here, diagnoses looked for and put on
the alarms that they explain. `alarms.max_active` counts the alarms of all operators.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmBook, AlarmEvent
from watchkeeper.detectors.clock.alarms import ClockAlarms
from watchkeeper.detectors.coverage.declaration import WATCH
from watchkeeper.detectors.engine.pipeline import NEVER, in_order
from watchkeeper.detectors.engine.quiet import wakes
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.detectors.incidents.incidents import Incidents
from watchkeeper.detectors.sentence import spoken
from watchkeeper.engines.seen import Scene
from watchkeeper.engines.steps import Answer, Clock, Told
from watchkeeper.streams.foreign.states import StateEncoder, decode_state

log = logging.getLogger(__name__)


class Merge:
    """See the module's docstring."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.book = AlarmBook(config.alarms, spoken)
        self._tick_s = config.time.tick_s
        self._era = 0
        self.incident_failures = 0
        self._begin()

    def _begin(self) -> None:
        config = self.config
        self.scene = Scene(config)
        self.book.called = self.scene.fleet.callsigns
        self.clock_alarms = ClockAlarms(config.detectors.clock, self.book)
        self.incidents: Incidents | None = None
        if config.diagnosis.enabled and config.detectors.link.enabled:
            self.incidents = Incidents(config, self.scene.fleet, self.scene.links, self.book, self.scene.gateways)
            self.incidents.on_error = self._failed
        # alarms about a detector, which runs in several operators: which of them have trouble with it
        self._failing: dict[tuple[str, ...], set[int]] = {}
        self._notes: list[ClockNote] = []
        self._gateways: tuple[str, ...] = ()
        self._done = self._stream_done = NEVER

    def _failed(self, subjects: str, error: Exception) -> None:
        self.incident_failures += 1
        log.error("the incident of %s raised", subjects, exc_info=error)

    # -- turns ----------------------------------------------------------------------------------------------

    def take(self, clocks: Sequence[Clock], answers: Sequence[Sequence[Answer]]) -> list[AlarmEvent]:
        """The events of one turn."""
        found: list[AlarmEvent] = []
        for clock, of_step in zip(clocks, answers, strict=True):
            found += self._step(clock, of_step)
        return found

    def _step(self, clock: Clock, answers: Sequence[Answer]) -> list[AlarmEvent]:
        self._notes += clock.notes
        self._gateways = clock.gateways or self._gateways
        if clock.away is not None:
            self.scene.fleet.away = clock.away
        if clock.first is not None:
            self._done = self._stream_done = clock.first - 1
        by_tick: dict[int, list[Told]] = {}
        for number, answer in enumerate(answers):
            for told in answer.ticks:
                told.events = [one for event in told.events if (one := self._one_alarm(event, number)) is not None]
                by_tick.setdefault(told.tick, []).append(told)
        found: list[AlarmEvent] = []
        if clock.tick is not None:
            if not clock.provisional:
                self._done = self._stream_done
            found += self._ticks(clock.tick, by_tick)
            if not clock.provisional:
                self._stream_done = self._done
        if clock.accept:
            found += self._accepted(answers)
        if clock.end_t is not None:
            found += self._end(clock.end_t, answers)
        return found

    def _accepted(self, answers: Sequence[Answer]) -> list[AlarmEvent]:
        """A person has accepted what these alarms were about."""
        ended = [self._known(event) for answer in answers for event in answer.ended]
        events = [event for event in ended if event is not None]
        if events and self.incidents is not None:
            events += self.incidents.step(self.watermark, events)
        return events

    def _ticks(self, tick: int, by_tick: dict[int, list[Told]]) -> list[AlarmEvent]:
        """Every tick of which an operator has something to say, and those at which something happens here."""
        found: list[AlarmEvent] = []
        busy = sorted(by_tick)
        k = self._done + 1
        while True:
            told_k = busy[0] if busy else tick + 1
            k = min(told_k, max(k, wakes(self._nothing_until(), self._tick_s)))
            if k > tick:
                break
            if busy and busy[0] == k:
                busy.pop(0)
            found += self._tick(k, by_tick.get(k, []))
            k += 1
        self._done = tick
        return found

    def _nothing_until(self) -> float:
        """When something happens here without the operators."""
        if self.clock_alarms.waits:
            return -math.inf
        due_t = math.inf if self.incidents is None else self.incidents.quiet_until()
        return min(due_t, min((note.t for note in self._notes if note.era == self._era), default=math.inf))

    def _tick(self, tick: int, told: list[Told]) -> list[AlarmEvent]:
        t = tick * self._tick_s
        events: list[AlarmEvent] = []
        for one in told:
            if one.seen is not None:
                self.scene.put(one.seen)
            self.scene.call(one.called)
            self.scene.forget(one.gone)
            events += one.events
        kept = [event for event in map(self._known, in_order(events)) if event is not None]
        due = [note for note in self._notes if note.era == self._era and note.t <= t]
        self._notes = [note for note in self._notes if note.era > self._era or (note.era == self._era and note.t > t)]
        kept = in_order(kept + self.clock_alarms.step(t, due, self._gateways))
        if self.incidents is not None:
            kept = in_order(kept + self.incidents.step(t, kept))
        return kept

    def _one_alarm(self, event: AlarmEvent, operator: int) -> AlarmEvent | None:
        """An event about a detector as if it ran in one place: raised by the first that fails, ended by the last."""
        if event.kind != WATCH or len(event.subjects) < 2:
            return event
        failing = self._failing.setdefault(event.subjects, set())
        known = bool(failing)
        if event.state == CLEARED:
            # after a restart with another number of operators nobody knows who it was
            failing -= {operator} if operator in failing else {min(failing, default=operator)}
            if failing:
                return None
            del self._failing[event.subjects]
        else:
            failing.add(operator)
        last = self.book.active.get((event.kind, event.subjects))
        if last is None:
            return event
        state = UPDATED if known and event.state == RAISED else event.state
        same = {"id": last.id, "t_onset": last.t_onset, "t_raised": last.t_raised, "state": state}
        return spoken(msgspec.structs.replace(event, **same), self.book.called)

    def _known(self, event: AlarmEvent) -> AlarmEvent | None:
        """An operator's event with what is known here of its alarm; None if the alarm found no room."""
        key = (event.kind, event.subjects)
        last = self.book.active.get(key)
        if event.state == RAISED:
            if last is None and len(self.book.active) >= self.config.alarms.max_active:
                self.book.refused += 1
                return None
        elif last is None:
            return None
        elif last.diagnosis is not None or last.incident is not None:
            event = msgspec.structs.replace(event, diagnosis=last.diagnosis, incident=last.incident)
            event = spoken(event, self.book.called)
        if event.state == CLEARED:
            del self.book.active[key]
        else:
            self.book.active[key] = event
        return event

    def _end(self, t: float, answers: Sequence[Answer]) -> list[AlarmEvent]:
        """Time went back for good: everything ends, and begins again."""
        ended = [self._known(event) for answer in answers for event in answer.ended]
        events = [event for event in ended if event is not None]
        events += self.clock_alarms.end(t, "clock_reset")
        if self.incidents is not None:
            events += self.incidents.end(t, "clock_reset")
        self._era += 1
        gateways, notes = self.scene.gateways, self._notes
        self._begin()
        self.scene.gateways.update(gateways)
        self._notes = [note for note in notes if note.era >= self._era]
        return in_order(events)

    def retune(self, config: Config) -> None:
        """See Pipeline."""
        self.config = config
        self.scene.declare(config)
        self.book.retune(config.alarms)
        self.clock_alarms.retune(config.detectors.clock)
        if self.incidents is not None:
            self.incidents.retune(config)

    @property
    def done(self) -> int:
        """The last tick that is told."""
        return self._done

    @property
    def watermark(self) -> float:
        """See Pipeline."""
        return self._done * self._tick_s if self._done != NEVER else -math.inf

    @property
    def alarmed(self) -> set[str]:
        """The names in active alarms: nobody makes room who has one."""
        return {name for kind, subjects in self.book.active if kind != "watch" for name in subjects}

    # -- life beyond one process ----------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The whole state."""
        fleet, links = self.scene.fleet, self.scene.links
        n = fleet.high
        state: dict[str, Any] = {
            "book": self.book.snapshot(), "era": self._era, "clock_alarms": self.clock_alarms.snapshot(),
            "incidents": None if self.incidents is None else self.incidents.snapshot(),
            "notes": [list(astuple(note)) for note in self._notes], "names": list(self._gateways),
            "ticks": [self._done, self._stream_done], "fleet": fleet.snapshot(), "gateways": self.scene.gateways,
            "via": links.via[:n], "ratio": links.ratio[:, :n], "share": links.share[:, :n],
            "failing": [[list(subjects), sorted(who)] for subjects, who in self._failing.items()],
            "excess_s": links.excess_s[:n], "seams_s": links.seam[:n],
        }  # fmt: skip
        return bytes(StateEncoder().encode(state))

    def load(self, dump: bytes) -> None:
        """Take over a dump."""
        self._begin()
        state = decode_state(dump)
        self.book.restore(state["book"])
        self._era = state["era"]
        self.clock_alarms.restore(state["clock_alarms"])
        self._notes = [ClockNote(*note) for note in state["notes"]]
        self._gateways = tuple(state["names"])
        self._failing = {tuple(subjects): set(who) for subjects, who in state["failing"]}
        self._done, self._stream_done = state["ticks"]
        scene = self.scene
        scene.fleet.restore(state["fleet"])
        scene.gateways.update(state["gateways"])
        scene.declare(self.config)
        links, n = scene.links, scene.fleet.high
        links.via[:n], links.ratio[:, :n], links.share[:, :n] = state["via"], state["ratio"], state["share"]
        links.excess_s[:n], links.seam[:n] = state["excess_s"], state["seams_s"]
        self.book.called = scene.fleet.callsigns
        if self.incidents is not None and state["incidents"] is not None:
            self.incidents.restore(state["incidents"])
