"""The guard over a pipeline's detectors: each behind its fence, what each judges, and the alarm `watch` where not.

    step(window) -> evidence        of all detectors that work, and have something to do
    settle(t, watches) -> events    after the tick's evidence: keep the alarms that nobody can judge now; about once a
                                    second of event time see who is watched, and raise `watch` where somebody is not
    troubles, warnings              what is wrong with detectors and incidents, in words, for /readyz

Owned by the pipeline. Everything here follows from samples and event time, and is in the snapshot.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import Detector, Evidence, Window, next_after
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.coverage.alarms import WatchAlarms
from watchkeeper.detectors.coverage.declaration import DETECTOR
from watchkeeper.detectors.coverage.table import Table
from watchkeeper.detectors.engine.fence import WELL_S, Fence
from watchkeeper.detectors.engine.part import WHOLE, Part
from watchkeeper.detectors.engine.streams import FRESH_S, covered, needs_of
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import Code
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.streams.batch import F8, I4, U1, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.periods import reaches

log = logging.getLogger(__name__)

# How often it is seen who is watched, in seconds of event time.
LOOK_S = 1.0
# Codes as arrays compare them: a member of an enumeration takes longer to find than a column to compare.
NOT_APPLICABLE, CLOCK_OFF, REFUSED = int(Code.NOT_APPLICABLE), int(Code.CLOCK_OFF), int(Code.REFUSED)
ALIGNING, LEARNING, FAILED = int(Code.ALIGNING), int(Code.LEARNING), int(Code.FAILED)


class Guard:
    """See the module's docstring."""

    def __init__(self, config: Config, fleet: Fleet, book: AlarmBook, part: Part = WHOLE) -> None:
        self._fleet = fleet
        self._covers = part.covers
        enabled = [
            make
            for make in REGISTRY.values()
            if any(section_of(config, "detectors", kind.name).enabled for kind in make.declaration.kinds)
        ]
        self.fences = [Fence(make, config, fleet) for make in enabled if part.runs(make.declaration)]
        # whom detectors judge that run elsewhere follows from their declarations
        running = {fence.name: fence for fence in self.fences}
        self._covered = [(make.declaration, running.get(make.declaration.name)) for make in enabled]
        self._needs = needs_of([declaration for declaration, _ in self._covered])
        self.coverage = Table([declaration.name for declaration, _ in self._covered], fleet)
        self.alarms = WatchAlarms(config.detectors.watch, self.coverage, fleet, book)
        self._settings = config.detectors.watch
        self._tick_s = config.time.tick_s
        self._restarts = 0
        self._looked_t = -np.inf
        # vehicles whose clock is off, or whose input is refused, by slot; set by those who know
        self.clock_off: Bool = np.zeros(fleet.capacity, bool)
        self.refused: Bool = np.zeros(fleet.capacity, bool)
        # what went wrong with incidents: how often, when last, in words
        self.incident_failures = 0
        self._incident_t, self._incident_error = -np.inf, ""
        self._t = -np.inf
        # until when each detector with its alarms has nothing to do without samples, and until when it stays who is
        # watched, as far as they were asked since something happened to them
        self._rests: list[float] = []
        self._looks_t = -np.inf
        self.worked = True
        """Whether a detector had something to do in the last step; those that rest have no alarm that is active."""
        self.wake()

    def wake(self) -> None:
        """Something happened besides samples: nobody rests before it is asked again."""
        self._rests = [-math.inf] * len(self.fences)
        self._looks_t = -math.inf

    @property
    def detectors(self) -> list[Detector]:
        """All of them, as they are now: one that failed may have been made again."""
        return [fence.detector for fence in self.fences]

    # -- each tick ------------------------------------------------------------------------------------------

    def step(self, window: Window, *, everybody: bool) -> list[Evidence]:
        """The evidence of all detectors; of those that rest there is none, unless `everybody` is to be asked.

        With samples nobody rests. A tick that runs without any runs for the sake of somebody else.
        """
        t = self._t = window.t
        if everybody or window.samples:
            self.wake()
        evidence: list[Evidence] = []
        self.worked = False
        for i, fence in enumerate(self.fences):
            if self._rests[i] > t + 0.5 * self._tick_s:
                fence.rest(t)
            else:
                self.worked = True
                self._rests[i] = self._looks_t = -math.inf
                evidence += fence.step(window)
        return evidence

    @property
    def restarted(self) -> bool:
        """Whether a detector was made again since this was last asked."""
        before, self._restarts = self._restarts, sum(fence.restarts for fence in self.fences)
        return self._restarts != before

    def settle(self, t: float, watches: Mapping[str, Watch]) -> list[AlarmEvent]:
        """Events of this tick beyond those of its evidence."""
        events: list[AlarmEvent] = []
        for fence in self.fences if self.worked else ():
            if not fence.whole(t):
                unseen = None if fence.blind else fence.unseen(t)
                for kind in fence.kinds:
                    if kind in watches:
                        events += watches[kind].hold(unseen, t, f"the detector {fence.name} failed")
        if reaches(t, self._tick_s, LOOK_S):
            if self._covers and self._looks_t <= t + 0.5 * self._tick_s:
                self._looks_t = -math.inf
                self._look(t)
                whole = np.array([fence is not None and fence.blind for _, fence in self._covered], bool)
                events += self.alarms.step(t, whole, self._explain)
            events += self.alarms.parts(t, self._parts())
        return events

    def mark_clocks(self, notes: Iterable[ClockNote]) -> None:
        """Vehicles whose samples are refused because of their clocks are not watched."""
        for note in notes:
            self._looks_t = -math.inf
            if (slot := self._fleet.slot_of.get(note.name)) is not None:
                self.clock_off[slot] = note.unsteady or note.late

    def _look(self, t: float) -> None:
        step_s = t - self._looked_t if np.isfinite(self._looked_t) else 0.0
        self._looked_t = t
        n = self._fleet.high
        clock_off, refused = self.clock_off[:n], self.refused[:n]
        marked = bool(clock_off.any() or refused.any())
        codes = covered(self._needs, self._fleet, t)
        for (_, fence), own in zip(self._covered, codes, strict=True):
            if fence is not None:
                self._ask(fence, t, own)
            blind = fence is not None and fence.blind
            if marked or blind:
                applies = own != NOT_APPLICABLE
                own[applies & clock_off] = CLOCK_OFF
                own[applies & refused] = REFUSED
                if blind:
                    own[applies] = FAILED
            if fence is not None and fence.excluded:
                own[fence.unseen(t)] = FAILED
        self.coverage.update(codes, t, step_s, self._settings.never_s)

    @staticmethod
    def _ask(fence: Fence, t: float, codes: U1) -> None:
        """Put the codes of a detector that says itself whom it judges in place of those that its streams give."""
        detector = fence.covering
        if detector is not None and not fence.blind:
            found = fence.ask("coverage", lambda: np.asarray(detector.coverage(t), np.uint8).reshape(len(codes)))
            if found is not None:
                codes[:] = found

    def _explain(self, d: int, slot: int) -> str:
        fence = self._covered[d][1]
        if fence is None:
            return ""
        if self.coverage.code[d, slot] == FAILED:
            return fence.error
        detector = fence.covering
        return "" if detector is None else fence.ask("explain", lambda: str(detector.explain(slot))) or ""

    def _parts(self) -> dict[tuple[str, str], str]:
        found = {(DETECTOR, fence.name): fence.trouble() for fence in self.fences if fence.error}
        if self._incident_error and self._t - self._incident_t < WELL_S:
            found[DETECTOR, INCIDENT] = self._incident_error
        return found

    @property
    def t(self) -> float:
        """The time of the last tick; -inf before the first."""
        return self._t

    def quiet_until(self, t: float, watches: Mapping[str, Watch]) -> float:
        """Until when nothing happens without samples: no detector and no alarm of its kinds has anything to do.

        And it stays who is watched and who is not.
        """
        until = math.inf
        for i, fence in enumerate(self.fences):
            if self._rests[i] > t:
                until = min(until, self._rests[i])
                continue
            rests = fence.quiet_until(t)
            alarms = min((watches[kind].quiet_until(t) for kind in fence.kinds if kind in watches), default=math.inf)
            until = min(until, rests, alarms)
            if until <= t:
                return t
            # with an alarm that is active it sees every tick that runs for whatever reason
            if math.isinf(alarms):
                self._rests[i] = rests
        if self._incident_error:
            until = min(until, next_after(np.array([self._incident_t + WELL_S]), t))
        if not self._covers:
            return until
        same = self._looks_t if self._looks_t > t else self._same_until(t)
        if self._looked_t == t:
            self._looks_t = same
        return min(until, same)

    def _same_until(self, t: float) -> float:
        """Until when it stays who is watched, if nothing is heard."""
        table, patience = self.coverage, Patience(self.alarms.first_s, self.alarms.lost_s)
        told = Told(table.code, table.since_t, table.judged)
        marks = Marks(self.refused, self.clock_off)
        return _same_until(t, self._fleet.high, self._fleet.last_t, told, marks, patience)

    # -- what else happens ----------------------------------------------------------------------------------

    def incident_failed(self, subjects: str, error: Exception) -> None:
        """An incident could not be followed: counted, logged once for each error, said."""
        words = f"the incident of {subjects} raised {type(error).__name__}: {error}"[:300]
        if words != self._incident_error:
            log.error("%s; t %s", words, self._t, exc_info=error)
        self.incident_failures += 1
        self._incident_t, self._incident_error = self._t, words

    def forget(self, slots: I4, t: float) -> list[AlarmEvent]:
        """These vehicles are gone."""
        self.wake()
        events = self.alarms.forget(slots, t, "forgotten")
        self.coverage.forget(slots)
        self.clock_off[slots] = self.refused[slots] = False
        for fence in self.fences:
            fence.forget(slots)
        return events

    def retune(self, config: Config) -> None:
        """Take new settings."""
        self.wake()
        self._settings = config.detectors.watch
        self.alarms.retune(self._settings)
        for fence in self.fences:
            fence.retune(config)

    def gauges(self) -> dict[str, float]:
        """Figures of every detector, `<detector>_<figure>`."""
        return {f"{fence.name}_{key}": value for fence in self.fences for key, value in fence.gauges().items()}

    def failures(self) -> Counter[tuple[str, str]]:
        """How often what raised, by detector and method."""
        found = Counter({(fence.name, method): n for fence in self.fences for method, n in fence.failures.items()})
        found[INCIDENT, "step"] = self.incident_failures
        return found

    def troubles(self) -> list[str]:
        """Why the alarms of some detector cannot be relied on now."""
        return list(self._parts().values())

    def warnings(self) -> list[str]:
        """What else is wrong with detectors."""
        return [f"detector {fence.name}: {fence.remark}" for fence in self.fences if fence.remark]

    # -- life beyond one process ----------------------------------------------------------------------------

    def fence_states(self) -> dict[str, dict[str, Any]]:
        """The snapshots of the fences."""
        return {fence.name: fence.snapshot() for fence in self.fences}

    def detector_states(self) -> dict[str, dict[str, Any]]:
        """The snapshots of the detectors."""
        return {fence.name: fence.detector_state() for fence in self.fences}

    def snapshot(self) -> dict[str, Any]:
        """Everything but the fences and the detectors' own states."""
        n = self._fleet.high
        return {
            "coverage": self.coverage.snapshot(),
            "alarms": self.alarms.snapshot(),
            "looked_t": self._looked_t,
            "clock_off": self.clock_off[:n].copy(),
            "refused": self.refused[:n].copy(),
            "incidents": [self.incident_failures, self._incident_t, self._incident_error],
            "t": self._t,
        }

    def restore_detectors(self, fences: Mapping[str, Any], detectors: Mapping[str, Any]) -> dict[str, str]:
        """Take over what there is of fences and detectors; who starts without its past, and why."""
        found = {fence.name: fence.restore(fences.get(fence.name), detectors.get(fence.name)) for fence in self.fences}
        return {name: why for name, why in found.items() if why}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot; fences and detectors have theirs."""
        saved = state["coverage"]
        self.wake()
        self.coverage.restore(saved)
        self.alarms.restore(state["alarms"], saved["detectors"], saved["reasons"])
        self._looked_t, self._t = state["looked_t"], state["t"]
        for column, name in ((self.clock_off, "clock_off"), (self.refused, "refused")):
            column[: len(state[name])] = state[name]
        self.incident_failures, self._incident_t, self._incident_error = state["incidents"]


class Told(NamedTuple):
    """What the coverage says by now, [detector, slot]: code, since when, and whether it was ever judged."""

    code: U1
    since_t: F8
    judged: Bool


class Marks(NamedTuple):
    """Who is not watched for reasons outside the detectors, by slot."""

    refused: Bool
    clock_off: Bool


class Patience(NamedTuple):
    """How long a reason lasts before it is an alarm, by code: of those never judged so far, and of the others."""

    first_s: F8
    lost_s: F8


@njit(cache=True)
def _same_until(t: float, slots: int, last_t: F8, told: Told, marks: Marks, patience: Patience) -> float:
    """From the columns of a coverage: when the next reason changes or has lasted for long enough; `t`: at once."""
    until = np.inf
    for s in range(slots):
        for stream in range(last_t.shape[0]):
            due_t = last_t[stream, s] + FRESH_S
            if due_t >= t:
                until = min(until, due_t)
        marked = REFUSED if marks.refused[s] else CLOCK_OFF if marks.clock_off[s] else 0
        for d in range(told.code.shape[0]):
            c = told.code[d, s]
            if c in (ALIGNING, LEARNING):
                return t  # how long they try is counted
            said = c if c in (REFUSED, CLOCK_OFF) else 0
            if said != marked and c != NOT_APPLICABLE:
                return t  # the next look will see it
            due_t = told.since_t[d, s] + (patience.lost_s[c] if told.judged[d, s] else patience.first_s[c])
            if due_t >= t:
                until = min(until, due_t)
    return until
