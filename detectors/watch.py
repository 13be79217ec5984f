"""The watch over one alarm kind: evidence in, alarm events out. Debouncer, pair cells and alarm book meet here.

Owned by the pipeline, one per alarm kind. Only subjects that are raised, active or cleared cost Python time;
everything else stays in arrays.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from watchkeeper.config.detectors import Debounce
from watchkeeper.detectors.alarms import AlarmBook, AlarmEvent, Finding
from watchkeeper.detectors.base import SEVERITIES, Evidence
from watchkeeper.detectors.debounce import CLEAR, RAISE, STILL, Debouncer, PairCells
from watchkeeper.streams.batch import F8, I4, U1
from watchkeeper.streams.fleet import Fleet
from watchkeeper.streams.messages import Kind

# Digits after the point in an alarm's numbers: a tenth of a millimetre, or of a millisecond.
DIGITS = 4


class Watch:
    """Debounces one alarm kind and keeps its alarms. `max_pairs` None: subjects are single vehicles."""

    def __init__(self, kind: str, rule: Debounce, fleet: Fleet, book: AlarmBook, max_pairs: int | None) -> None:
        self.kind = kind
        self.fleet = fleet
        self.book = book
        self.pairs = PairCells(max_pairs) if max_pairs is not None else None
        self.debouncer = Debouncer(rule, max_pairs if max_pairs is not None else fleet.capacity)
        self.scores: F8 = np.empty(0)
        # when each cell's alarm last said something, and how severe it was then: most evidence repeats what is known
        cells = len(self.debouncer.active)
        self._said_t: F8 = np.full(cells, -np.inf)
        self._said_severity: U1 = np.zeros(cells, np.uint8)

    @property
    def _cells(self) -> int:
        return self.pairs.high if self.pairs is not None else self.fleet.high

    def step(self, evidence: Evidence | None, t: float) -> list[AlarmEvent]:
        """Judge this tick's evidence (None: the detector had nothing to say) and give up on alarms without any."""
        events: list[AlarmEvent | None] = []
        if evidence is not None:
            self.scores = evidence.score
            events += self._judge(evidence, t)
        for cell in self.debouncer.lost(t, self._cells).tolist():
            events.append(self.book.ended(self.kind, self._subjects(cell), t, "lost"))
        if self.pairs is not None and self.pairs.cell_of:
            self.pairs.release(self.debouncer.quiet(t, self.pairs.watched()))
        return [event for event in events if event is not None]

    def _judge(self, ev: Evidence, t: float) -> list[AlarmEvent | None]:
        cell = ev.a if self.pairs is None or ev.b is None else self.pairs.cells(ev.a, ev.b)
        action = self.debouncer.update(cell, ev.t, ev.epoch, ev.score, ev.threshold)
        events: list[AlarmEvent | None] = []
        rows = np.flatnonzero(action)
        if len(rows):
            at = cell[rows]
            due = (ev.severity[rows] > self._said_severity[at]) | (ev.t[rows] - self._said_t[at] >= self.book.update_s)
            rows = rows[due | (action[rows] != STILL)]
        for row in rows.tolist():
            if action[row] == RAISE:
                event = self.book.raised(self._finding(ev, row), float(self.debouncer.t_onset[cell[row]]))
            elif action[row] == CLEAR:
                event = self.book.cleared(self._finding(ev, row))
            else:
                event = self.book.still(self._finding(ev, row))
            if event is not None:
                events.append(event)
                self._said_t[cell[row]], self._said_severity[cell[row]] = ev.t[row], ev.severity[row]
        if ev.sparse and self.pairs is not None and len(self.pairs.cell_of) > len(ev):
            events += self._absent(cell, t)
        return events

    def _absent(self, present: I4, t: float) -> list[AlarmEvent | None]:
        """Watched pairs that the detector did not name are at score 0, if there is anything new about them."""
        assert self.pairs is not None
        seen = np.zeros(self.pairs.high, bool)
        seen[present[present >= 0]] = True
        watched = self.pairs.watched()
        cells = watched[~seen[watched]]
        last_t = self.fleet.last_t[Kind.ADSB]
        epoch = np.maximum(last_t[self.pairs.a[cells]], last_t[self.pairs.b[cells]])
        n = len(cells)
        action = self.debouncer.update(cells, np.full(n, t), epoch, np.zeros(n), np.ones(n))
        return [self.book.cleared(self._gone(self._subjects(cell), t)) for cell in cells[action == CLEAR].tolist()]

    def _gone(self, subjects: tuple[str, ...], t: float) -> Finding:
        last = self.book.active.get((self.kind, subjects))
        evidence = {**last.evidence, "cleared_by": "evidence"} if last else {}
        severity = last.severity if last else SEVERITIES[0]
        return Finding(self.kind, subjects, t, 0.0, last.threshold if last else 0.0, severity, evidence)

    def _subjects(self, cell: int) -> tuple[str, ...]:
        ids = self.fleet.ids
        if self.pairs is None:
            return (ids[cell],)
        a, b = ids[self.pairs.a[cell]], ids[self.pairs.b[cell]]
        return (a, b) if a < b else (b, a)

    def _finding(self, ev: Evidence, row: int) -> Finding:
        slots = [int(ev.a[row])] + ([int(ev.b[row])] if ev.b is not None else [])
        slots.sort(key=lambda slot: self.fleet.ids[slot])
        evidence: dict[str, Any] = {}
        if ev.cause_bits is not None:
            bits = int(ev.cause_bits[row])
            evidence["causes"] = [name for i, name in enumerate(ev.causes) if bits >> i & 1]
        for name, column in ev.numbers.items():
            value = float(column[row])
            evidence[name] = round(value, DIGITS) if isfinite(value) else None
        return Finding(
            ev.kind,
            tuple(self.fleet.ids[slot] for slot in slots),
            float(ev.t[row]),
            round(float(ev.score[row]), DIGITS),
            round(float(ev.threshold[row]), DIGITS),
            SEVERITIES[ev.severity[row]],
            evidence,
        )

    def adopt(self, event: AlarmEvent, slots: list[int]) -> None:
        """Take over an alarm that was active before a restart."""
        cell = slots[0] if self.pairs is None else self.pairs.cell((slots[0], slots[1]))
        if cell >= 0:
            self._said_t[cell], self._said_severity[cell] = event.t, SEVERITIES.index(event.severity)
            self.debouncer.adopt(cell, event.t_onset, event.t_raised, event.t)

    def disown(self, slots: list[int]) -> None:
        """An alarm on exactly these slots ended before the restart: it is not active any more."""
        if self.pairs is None:
            self.debouncer.reset(np.array(slots, np.int32))
        elif (cell := self.pairs.cell_of.get((slots[0], slots[-1]))) is not None:
            self.debouncer.reset(np.array([cell], np.int32))

    def forget(self, slots: I4, t: float, why: str) -> list[AlarmEvent]:
        """These vehicles are gone: end their alarms."""
        cells = slots if self.pairs is None else self.pairs.of_slots(slots)
        active = cells[self.debouncer.active[cells] == 1]
        events = [self.book.ended(self.kind, self._subjects(cell), t, why) for cell in active.tolist()]
        self.debouncer.reset(cells)
        if self.pairs is not None:
            self.pairs.release(cells)
        return [event for event in events if event is not None]

    def snapshot(self) -> dict[str, Any]:
        """Counts and cells."""
        pairs = self.pairs.snapshot() if self.pairs is not None else None
        n = self._cells
        said = {"t": self._said_t[:n], "severity": self._said_severity[:n]}
        return {"pairs": pairs, "debouncer": self.debouncer.snapshot(n), "said": said}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        if self.pairs is not None:
            self.pairs.restore(state["pairs"])
        self.debouncer.restore(state["debouncer"])
        n = min(len(state["said"]["t"]), len(self._said_t))
        self._said_t[:n], self._said_severity[:n] = state["said"]["t"][:n], state["said"]["severity"][:n]
