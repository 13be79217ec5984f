"""From coverage to the alarm `watch`: raised where a reason of `[detectors.watch]` lasts, ended when it has gone.

One alarm per vehicle, whatever detectors do not judge it, and one per part that is in trouble. Called by the engine
about once a second of event time. Only vehicles of which something changes cost Python time.

`said[detector, slot]` is the code that the vehicle's alarm has of a detector, 0 for none. A vehicle that is on the way
to being judged again (or is silent) keeps its alarm until it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from watchkeeper.config.detectors.watch import Watch
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent, Finding
from watchkeeper.detectors.coverage.declaration import DETECTOR, PART_FAILED, WATCH
from watchkeeper.detectors.coverage.table import Table
from watchkeeper.detectors.declaration import Ended
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import CODE_OF, NAMES, NOT_YET, Code
from watchkeeper.streams.batch import F8, I4, U1, Bool
from watchkeeper.streams.kernels import njit

# Reasons that do not stop a vehicle from being judged by anybody's mistake: advisories.
ADVISORY = frozenset({"no_gps", "no_imu", "no_fix"})
NEVER = np.inf
# Codes as the kernel takes them; on the way to being judged what was said stays.
FAILED, NO_STREAM = int(Code.FAILED), int(Code.NO_STREAM)
IS_NOT_YET: Bool = np.isin(np.arange(len(NAMES)), (*NOT_YET, Code.UNALIGNED, Code.LIMITS_ONLY))
Explain = Callable[[int, int], str]
Parts = Mapping[tuple[str, str], str]


class WatchAlarms:
    """The alarms `watch` of one pipeline."""

    def __init__(self, settings: Watch, table: Table, fleet: Fleet, book: AlarmBook) -> None:
        self._table, self._fleet, self._book = table, fleet, book
        self.said: U1 = np.zeros_like(table.code)
        self.refused = 0
        self._active = 0
        self._parts: set[tuple[str, str]] = set()
        self.retune(settings)

    def retune(self, settings: Watch) -> None:
        """Take new settings."""
        self._settings = settings
        on = set(settings.reasons) if settings.enabled else set()
        # after how many seconds each code is an alarm, of vehicles that were never judged and that were
        self.first_s: F8 = np.full(len(NAMES), NEVER)
        self.lost_s: F8 = np.full(len(NAMES), NEVER)
        for name in on:
            at_once = name not in ADVISORY
            self.first_s[CODE_OF[name]] = 0.0 if at_once else settings.missing_s
            self.lost_s[CODE_OF[name]] = 0.0 if at_once else settings.lost_s
        if "no_fix" in on:
            self.first_s[Code.NO_FIX] = self.lost_s[Code.NO_FIX] = settings.no_fix_s
        if "never_aligns" in on:
            for code in (Code.WAITING, Code.ALIGNING, Code.LEARNING):
                self.lost_s[code] = settings.lost_s

    @property
    def vehicles(self) -> int:
        """How many vehicles are not watched as they should be, those beyond max_alarms included."""
        return self._active + self.refused

    # -- vehicles -------------------------------------------------------------------------------------------

    def step(self, t: float, whole: Bool, explain: Explain) -> list[AlarmEvent]:
        """Raise, update and end. `whole[d]`: detector d failed altogether, which is no vehicle's alarm."""
        n = self._fleet.high
        table, said = self._table, self.said[:, :n]
        now, changed = _due(
            table.code[:, :n], table.since_t[:, :n], table.judged[:, :n], said, t, whole, self.first_s, self.lost_s
        )
        if not changed.any():
            self.refused = 0
            return []
        fresh = changed & ~said.any(axis=0)
        room = max(self._settings.max_alarms - self._active, 0)
        self.refused = max(int(fresh.sum()) - room, 0)
        changed[np.flatnonzero(fresh)[room:]] = False
        events = [self._say(slot, now[:, slot], t, explain) for slot in np.flatnonzero(changed).tolist()]
        return [event for event in events if event is not None]

    def _say(self, slot: int, now: U1, t: float, explain: Explain) -> AlarmEvent | None:
        subjects, known = (self._fleet.ids[slot],), bool(self.said[:, slot].any())
        if not now.any():
            self._drop(slot)
            return self._book.end(WATCH, subjects, t, "cause_gone")
        rows = np.flatnonzero(now).tolist()
        since_t = min(float(self._table.since_t[d, slot]) for d in rows)
        causes = list(dict.fromkeys(NAMES[now[d]] for d in rows))
        evidence = {
            "causes": causes,
            "detectors": [self._table.detectors[d] for d in rows],
            "since_t": round(since_t, 3),
            "detail": "; ".join(filter(None, dict.fromkeys(explain(d, slot) for d in rows))),
        }
        severity = "advisory" if ADVISORY.issuperset(causes) else "caution"
        finding = Finding(WATCH, subjects, t, 1.0, 1.0, severity, evidence)
        self._active += not known
        self.said[:, slot] = now
        return self._book.still(finding, news=True) if known else self._book.raised(finding, since_t)

    def _drop(self, slot: int) -> None:
        self._active -= bool(self.said[:, slot].any())
        self.said[:, slot] = 0

    def forget(self, slots: I4, t: float, ended: Ended) -> list[AlarmEvent]:
        """These vehicles are gone: end their alarms."""
        events = []
        for slot in slots[self.said[:, slots].any(axis=0)].tolist():
            self._drop(slot)
            events.append(self._book.end(WATCH, (self._fleet.ids[slot],), t, ended))
        return [event for event in events if event is not None]

    # -- parts ----------------------------------------------------------------------------------------------

    def parts(self, t: float, troubles: Parts) -> list[AlarmEvent]:
        """Raise and end the alarms about parts: subjects to what is wrong with each now, in words."""
        events: list[AlarmEvent | None] = []
        for subjects in sorted(self._parts - troubles.keys()):
            self._parts.discard(subjects)
            events.append(self._book.end(WATCH, subjects, t, "cause_gone"))
        for subjects, detail in troubles.items() if self._settings.enabled else ():
            evidence: dict[str, Any] = {"causes": [PART_FAILED], "since_t": round(t, 3), "detail": detail}
            known = self._book.active.get((WATCH, subjects))
            if known is not None:
                evidence["since_t"] = known.evidence.get("since_t")
            finding = Finding(WATCH, subjects, t, 1.0, 1.0, "warning", evidence)
            if known is None:
                self._parts.add(subjects)
                events.append(self._book.raised(finding, t))
            elif known.evidence.get("detail") != detail:
                events.append(self._book.still(finding, news=True))
        return [event for event in events if event is not None]

    # -- life beyond one process ----------------------------------------------------------------------------

    def end(self, t: float, ended: Ended) -> list[AlarmEvent]:
        """Everything is over."""
        used = np.flatnonzero(self.said.any(axis=0)).astype(np.int32)
        events = self.forget(used, t, ended)
        parts = [self._book.end(WATCH, subjects, t, ended) for subjects in sorted(self._parts)]
        self._parts.clear()
        return events + [event for event in parts if event is not None]

    def adopt(self, event: AlarmEvent) -> bool:
        """Take over an alarm that was active before a restart; False when nobody can follow it."""
        if len(event.subjects) == 2:
            if event.subjects[0] != DETECTOR:
                return False
            self._parts.add((event.subjects[0], event.subjects[1]))
            return True
        slot = self._fleet.slot_for(event.subjects[0])
        if slot < 0:
            return False
        self._fleet.expected_t[slot] = max(self._fleet.expected_t[slot], event.t)
        codes = [CODE_OF[cause] for cause in event.evidence.get("causes", ()) if cause in CODE_OF]
        rows = [
            self._table.detectors.index(d) for d in event.evidence.get("detectors", ()) if d in self._table.detectors
        ]
        if not codes or not rows:
            return False
        self._active += not self.said[:, slot].any()
        self.said[rows, slot] = codes[0]
        return True

    def disown(self, subjects: tuple[str, ...]) -> None:
        """An alarm about this subject ended before the restart."""
        if len(subjects) == 2:
            self._parts.discard((subjects[0], subjects[1]))
        elif (slot := self._fleet.slot_of.get(subjects[0], -1)) >= 0:
            self._drop(slot)

    def snapshot(self) -> dict[str, Any]:
        """What was said of whom."""
        return {
            "said": self.said[:, : self._fleet.high].copy(),
            "parts": [list(subjects) for subjects in sorted(self._parts)],
        }

    def restore(self, state: dict[str, Any], detectors: list[str], reasons: list[str]) -> None:
        """Take over a snapshot, whose rows and codes had these names."""
        known = np.array([CODE_OF.get(name, 0) for name in reasons], np.uint8)
        for row, name in enumerate(detectors):
            if name in self._table.detectors:
                saved = known[state["said"][row]]
                self.said[self._table.detectors.index(name), : len(saved)] = saved
        self._active = int(self.said.any(axis=0).sum())
        self._parts = {(first, second) for first, second in state["parts"]}


@njit(cache=True)
def _due(
    code: U1, since_t: F8, judged: Bool, said: U1, t: float, whole: Bool, first_s: F8, lost_s: F8
) -> tuple[U1, Bool]:
    """What the alarm of each vehicle has to say of each detector, and whose alarm that changes."""
    now = np.zeros(code.shape, np.uint8)
    changed = np.zeros(code.shape[1], np.bool_)
    for d in range(code.shape[0]):
        for s in range(code.shape[1]):
            c = code[d, s]
            if said[d, s] == 0 and first_s[c] == NEVER and lost_s[c] == NEVER:
                # nothing is said of it, however long it lasts
                continue
            failed = whole[d] and c == FAILED
            if not failed and t - since_t[d, s] >= (lost_s[c] if judged[d, s] else first_s[c]):
                now[d, s] = c
            elif said[d, s] > 0 and (failed or (IS_NOT_YET[c] and said[d, s] < NO_STREAM)):
                now[d, s] = said[d, s]
            if now[d, s] != said[d, s]:
                changed[s] = True
    return now, changed
