"""The guard over a pipeline's detectors: each behind its fence, what each judges, and the alarm `watch` where not.

    step(window) -> evidence        of all detectors that work
    settle(t, watches) -> events    after the tick's evidence: keep the alarms that nobody can judge now; about once a
                                    second of event time see who is watched, and raise `watch` where somebody is not
    troubles, warnings              what is wrong with detectors and incidents, in words, for /readyz

Owned by the pipeline. Everything here follows from samples and event time, and is in the snapshot.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

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
from watchkeeper.streams.batch import I4, U1, Bool
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

    @property
    def detectors(self) -> list[Detector]:
        """All of them, as they are now: one that failed may have been made again."""
        return [fence.detector for fence in self.fences]

    # -- each tick ------------------------------------------------------------------------------------------

    def step(self, window: Window) -> list[Evidence]:
        """The evidence of all detectors."""
        self._t = window.t
        return [found for fence in self.fences for found in fence.step(window)]

    @property
    def restarted(self) -> bool:
        """Whether a detector was made again since this was last asked."""
        before, self._restarts = self._restarts, sum(fence.restarts for fence in self.fences)
        return self._restarts != before

    def settle(self, t: float, watches: Mapping[str, Watch]) -> list[AlarmEvent]:
        """Events of this tick beyond those of its evidence."""
        events: list[AlarmEvent] = []
        for fence in self.fences:
            unseen = None if fence.blind else fence.unseen(t)
            if unseen is None or len(unseen):
                for kind in fence.detector.declaration.kinds:
                    if kind.name in watches:
                        events += watches[kind.name].hold(unseen, t, f"the detector {fence.name} failed")
        if reaches(t, self._tick_s, LOOK_S):
            if self._covers:
                self._look(t)
                whole = np.array([fence is not None and fence.blind for _, fence in self._covered], bool)
                events += self.alarms.step(t, whole, self._explain)
            events += self.alarms.parts(t, self._parts())
        return events

    def mark_clocks(self, notes: Iterable[ClockNote]) -> None:
        """Vehicles whose samples are refused because of their clocks are not watched."""
        for note in notes:
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
            if fence is not None and len(unseen := fence.unseen(t)):
                own[unseen] = FAILED
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
        found = {(DETECTOR, fence.name): trouble for fence in self.fences if (trouble := fence.trouble())}
        if self._incident_error and self._t - self._incident_t < WELL_S:
            found[DETECTOR, INCIDENT] = self._incident_error
        return found

    @property
    def t(self) -> float:
        """The time of the last tick; -inf before the first."""
        return self._t

    def quiet_until(self, t: float) -> float:
        """Until when no detector has anything to say without samples, and it stays who is watched and who is not."""
        until = np.inf
        for fence in self.fences:
            until = min(until, fence.quiet_until(t))
            if until <= t:
                return t
        if self._incident_error:
            until = min(until, next_after(np.array([self._incident_t + WELL_S]), t))
        if not self._covers:
            return until
        n = self._fleet.high
        code = self.coverage.code[:, :n]
        if ((code == ALIGNING) | (code == LEARNING)).any():
            return t  # how long they try is counted
        marked = np.where(self.refused[:n], REFUSED, np.where(self.clock_off[:n], CLOCK_OFF, 0))
        said = np.where((code == REFUSED) | (code == CLOCK_OFF), code, 0)
        if ((said != marked) & (code != NOT_APPLICABLE)).any():
            return t  # the next look will see it
        seen = min(next_after(self._fleet.last_t[:, :n] + FRESH_S, t), self.alarms.quiet_until(t))
        return min(until, seen)

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
        events = self.alarms.forget(slots, t, "forgotten")
        self.coverage.forget(slots)
        self.clock_off[slots] = self.refused[slots] = False
        for fence in self.fences:
            fence.forget(slots)
        return events

    def retune(self, config: Config) -> None:
        """Take new settings."""
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
        self.coverage.restore(saved)
        self.alarms.restore(state["alarms"], saved["detectors"], saved["reasons"])
        self._looked_t, self._t = state["looked_t"], state["t"]
        for column, name in ((self.clock_off, "clock_off"), (self.refused, "refused")):
            column[: len(state[name])] = state[name]
        self.incident_failures, self._incident_t, self._incident_error = state["incidents"]
