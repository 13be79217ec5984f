"""The watch over one alarm kind: evidence in, alarm events out. Debouncer, subjects and alarm book meet here.

Owned by the pipeline, one per alarm kind. Only subjects that are raised, active or cleared cost Python time;
everything else stays in arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.detectors.alarms.debounce import CLEAR, RAISE, SETTLED_S, STILL, Debouncer
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent, Finding, alarm_id
from watchkeeper.detectors.alarms.subjects import Subjects
from watchkeeper.detectors.alarms.worst import DIGITS, Worst, evidence_of, named
from watchkeeper.detectors.base import SEVERITIES, Evidence
from watchkeeper.detectors.declaration import AlarmKind, Ended
from watchkeeper.streams.batch import F8, I4, I8, U1


class Watch:
    """Debounces one alarm kind and keeps its alarms."""

    def __init__(self, kind: AlarmKind, rule: Debounce, subjects: Subjects, book: AlarmBook) -> None:
        self.kind = kind.name
        self.subjects = subjects
        self.book = book
        self.debouncer = Debouncer(rule, subjects.growing)
        self.scores: F8 = np.empty(0)
        # whether the last tick had evidence
        self._spoke = False
        # when each cell's alarm last said something, and how severe it was then: most evidence repeats what is known
        self._said_t: F8 = subjects.growing.full(-np.inf)
        self._said_severity: U1 = np.zeros(subjects.growing.capacity, np.uint8)
        self._worst = Worst(kind, subjects.growing)

    def step(self, evidence: Evidence | None, t: float) -> list[AlarmEvent]:
        """Judge this tick's evidence (None: the detector had nothing to say) and give up on alarms without any."""
        if evidence is None and not self.debouncer.may_be_active:
            self._spoke = False
            return []
        events: list[AlarmEvent | None] = []
        self._spoke = evidence is not None and len(evidence) > 0
        if evidence is not None:
            self.scores = evidence.score
            if self._spoke:
                events += self._judge(evidence, t)
            elif evidence.sparse:
                events += self._absent(evidence.a, t)
            for name, ended in evidence.ended.items():
                if (cell := self.subjects.find((name,))) >= 0:
                    events += self._end(np.array([cell], np.int32), t, ended)
        lost = self.debouncer.lost(t, self.subjects.high)
        events += [self._end_of(cell, t, "out_of_sight") for cell in lost.tolist()]
        if len(lost):
            self._worst.forget(lost)
        return [event for event in events if event is not None]

    def quiet_until(self, t: float) -> float:
        """Until when nothing happens here if the detector goes on with the evidence that it had at t, or with none."""
        n = self.subjects.high
        if not self.debouncer.may_be_active:
            if self.subjects.watches or (self._spoke and self.debouncer.counting(n)):
                return t  # cells to be given back, or epochs that may make an alarm
            return math.inf
        on, watched = self.debouncer.active(n), self.subjects.watched()
        if not len(on) and not self._spoke and not len(watched):
            return math.inf
        cells = self.debouncer.cells[:n]
        active = cells["active"]
        if not active[watched].all():
            return t  # cells to be given back
        if self._spoke:
            if self.debouncer.counts(active):
                return t
            if len(on) and cells["off_run"][on].any():
                return t
        elif not len(on):
            return math.inf
        # one with evidence at t goes on having it
        lost_t = cells["last_epoch"][on][cells["last_epoch"][on] < t] + self.debouncer.rule.lost_s
        repeats = self._spoke & self.subjects.repeats(on.astype(np.int32), cells["t_raised"][on], t)
        again_t = self._said_t[on][repeats] + self.book.update_s
        falls_t = cells["below_t"][on][~np.isnan(cells["below_t"][on])] + SETTLED_S
        rises_t = cells["above_t"][on][~np.isnan(cells["above_t"][on])] + self.debouncer.rule.rise_s
        return float(min(times.min(initial=math.inf) for times in (lost_t, again_t, falls_t, rises_t)))

    def tidy(self, t: float) -> None:
        """Give back cells that hold nothing worth keeping; until then they only cost room."""
        if not self.subjects.watches:
            return
        idle = self.debouncer.quiet(t, self.subjects.watched())
        if len(idle):
            # the next subject in these cells must not inherit their last epochs
            self.debouncer.reset(idle)
            self.subjects.release(idle)

    def _judge(self, ev: Evidence, t: float) -> list[AlarmEvent | None]:
        cell = self.subjects.cells(ev)
        action = self.debouncer.update(cell, ev.t, ev.epoch, ev.score, ev.threshold)
        (rows,) = action.nonzero()
        events: list[AlarmEvent | None] = self._tell(ev, cell, action, rows, t) if len(rows) else []
        if ev.sparse:
            events += self._absent(cell, t)
        return events

    def _tell(self, ev: Evidence, cell: I4, action: U1, rows: I8, t: float) -> list[AlarmEvent | None]:
        """What the alarms say for which the debouncer gave these actions, in the rows that have one."""
        severity = self.debouncer.shown(cell, ev.t, action, ev.severity)
        self._worst.take(ev, cell, action, rows)
        events: list[AlarmEvent | None] = []
        at, did = cell[rows], action[rows]
        repeats = self.subjects.repeats(at, self.debouncer.cells["t_raised"][at], t)
        again = repeats & (ev.t[rows] - self._said_t[at] >= self.book.update_s)
        due = (severity[rows] != self._said_severity[at]) | again | (did != STILL)
        if ev.news is not None:
            due |= ev.news[rows]
        for row in rows[due].tolist():
            told = action[row] != STILL or (ev.news is not None and ev.news[row])
            if not told and not self._is_due(int(cell[row]), float(ev.t[row]), int(severity[row])):
                continue
            further = ev.further(row) if ev.further is not None and action[row] != CLEAR else None
            finding = self._finding(ev, row, int(cell[row]), SEVERITIES[severity[row]], further)
            if action[row] == RAISE:
                event = self.book.raised(finding, float(self.debouncer.cells["t_onset"][cell[row]]))
            elif action[row] == CLEAR:
                taken = ev.taken_as_normal is not None and ev.taken_as_normal[row]
                event = self.book.cleared(finding, "taken_as_normal" if taken else "cause_gone")
            else:
                event = self.book.still(finding, settled=True)
            if event is not None:
                events.append(event)
                self._said_t[cell[row]], self._said_severity[cell[row]] = ev.t[row], severity[row]
        if (over := at[did == CLEAR]).size:
            self._worst.forget(over[~self.debouncer.cells["active"][over]])
        return events

    def _is_due(self, cell: int, t: float, severity: int) -> bool:
        """Whether an active alarm says something at t: an earlier row of the same tick may have said it."""
        return bool(severity != self._said_severity[cell] or t - self._said_t[cell] >= self.book.update_s)

    def _absent(self, present: I4, t: float) -> list[AlarmEvent | None]:
        """Watched subjects that the detector did not name are at score 0, if there is anything new about them."""
        watched = self.subjects.watched()
        if len(watched) <= np.count_nonzero(present >= 0):
            return []
        seen = np.zeros(self.subjects.high, bool)
        seen[present[present >= 0]] = True
        cells = watched[~seen[watched]]
        n = len(cells)
        action = self.debouncer.update(cells, np.full(n, t), self.subjects.heard_t(cells), np.zeros(n), np.ones(n))
        gone = cells[action == CLEAR]
        events = [self.book.cleared(self._gone(cell, t)) for cell in gone.tolist()]
        self._worst.forget(gone)
        return events

    def _gone(self, cell: int, t: float) -> Finding:
        subjects = self.subjects.names(cell)
        last = self.book.active.get((self.kind, subjects))
        evidence = last.evidence if last else {}
        severity = last.severity if last else SEVERITIES[0]
        threshold = last.threshold if last else 0.0
        return Finding(self.kind, subjects, t, 0.0, threshold, severity, evidence, self._worst.of(cell))

    def _finding(self, ev: Evidence, row: int, cell: int, severity: str, further: dict[str, Any] | None) -> Finding:
        causes = None if ev.cause_bits is None else named(ev.causes, int(ev.cause_bits[row]))
        numbers = {name: float(column[row]) for name, column in ev.numbers.items()}
        return Finding(
            ev.kind,
            self.subjects.names(cell),
            float(ev.t[row]),
            round(float(ev.score[row]), DIGITS),
            round(float(ev.threshold[row]), DIGITS),
            severity,
            evidence_of(causes, numbers, ev.details[row] if ev.details else None) | (further or {}),
            self._worst.of(cell),
        )

    def adopt(self, event: AlarmEvent) -> bool:
        """Take over an alarm that was active before a restart; False when there is no room for its subject.

        Of one that is active here already (the same onset) only what was last said about it is news.
        """
        cell = self.subjects.claim(event.subjects, event.t)
        if cell < 0:
            return False
        severity = SEVERITIES.index(event.severity)
        self._said_t[cell], self._said_severity[cell] = event.t, severity
        own = self.debouncer.cells[cell]
        if not (own["active"] and alarm_id(self.kind, event.subjects, float(own["t_onset"])) == event.id):
            self.debouncer.adopt(cell, event.t_onset, event.t_raised, event.t, severity)
            self._worst.adopt(cell, event.worst)
        return True

    def disown(self, subjects: tuple[str, ...]) -> None:
        """An alarm on this subject ended before the restart: it is not active any more."""
        if (cell := self.subjects.find(subjects)) >= 0:
            self.debouncer.reset(np.array([cell], np.int32))
            self._worst.forget(np.array([cell], np.int32))

    def forget(self, slots: I4, t: float) -> list[AlarmEvent]:
        """These vehicles are gone: end the alarms that they are part of."""
        return self._end(self.subjects.of_vehicles(slots), t, "forgotten")

    def hold(self, slots: I4 | None, t: float, why: str) -> list[AlarmEvent]:
        """Nobody judges these vehicles now (None: all of them): their alarms neither clear nor are lost, and say so.

        To be repeated with every tick while that is so; afterwards an alarm has `lost_s` to be confirmed.
        """
        cells = np.arange(self.subjects.high, dtype=np.int32) if slots is None else self.subjects.of_vehicles(slots)
        active = cells[self.debouncer.cells["active"][cells]]
        last = self.debouncer.cells["last_epoch"]
        last[active] = np.maximum(last[active], t)
        events = [self.book.unwatched(self.kind, self.subjects.names(cell), t, why) for cell in active.tolist()]
        return [event for event in events if event is not None]

    def accept(self, slot: int, t: float) -> list[AlarmEvent]:
        """A person accepted what an alarm of this vehicle is about."""
        return self._end(np.array([slot], np.int32), t, "accepted")

    def end(self, t: float, ended: Ended) -> list[AlarmEvent]:
        """Everything is over: end all alarms."""
        active = np.flatnonzero(self.debouncer.cells["active"][: self.subjects.high]).astype(np.int32)
        return self._end(active, t, ended)

    def _end(self, cells: I4, t: float, ended: Ended) -> list[AlarmEvent]:
        active = cells[self.debouncer.cells["active"][cells]]
        events = [self._end_of(cell, t, ended) for cell in active.tolist()]
        self.debouncer.reset(cells)
        self._worst.forget(cells)
        self.subjects.release(cells)
        return [event for event in events if event is not None]

    def _end_of(self, cell: int, t: float, ended: Ended) -> AlarmEvent | None:
        return self.book.end(self.kind, self.subjects.names(cell), t, ended, self._worst.of(cell))

    def snapshot(self) -> dict[str, Any]:
        """Counts and cells."""
        n = self.subjects.high
        active = np.flatnonzero(self.debouncer.cells["active"][:n]).astype(np.int32)
        said = {"t": self._said_t[:n], "severity": self._said_severity[:n]}
        subjects, debouncer = self.subjects.snapshot(), self.debouncer.snapshot(n)
        parts = {"subjects": subjects, "debouncer": debouncer, "said": said, "worst": self._worst.snapshot(active)}
        return {**parts, "scores": self.scores, "spoke": self._spoke}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.subjects.restore(state["subjects"])
        self.debouncer.restore(state["debouncer"])
        self._worst.restore(state["worst"])
        n = min(len(state["said"]["t"]), len(self._said_t))
        self._said_t[:n], self._said_severity[:n] = state["said"]["t"][:n], state["said"]["severity"][:n]
        self.scores, self._spoke = state["scores"], state["spoke"]
