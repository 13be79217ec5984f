"""A fence around each detector: what raises in it is counted, logged once, said, and stays there. The others go on.

When `step` raises, the vehicles that did it are looked for (suspects.py). If the detector works without their samples,
it forgets these vehicles and does not see them for a while; the tick's evidence is lost, everybody else is watched on.
If nobody can be found it starts again, cold, with the next tick. One that keeps failing pauses. All pauses are in event
time and grow: the same samples give the same bytes.

While a detector pauses, `blind` says so and the pipeline keeps its alarms as they are: they end when somebody has
looked again. `retune`, `forget` and `restore` that raise start the detector again; `gauges`, `snapshot`, `coverage` and
evidence that is worked out later are only left out. A saved state that cannot be used (parts.py) is said, and the
detector starts without it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Covering, Detector, Evidence, Resting, Window
from watchkeeper.detectors.engine.evidence import check
from watchkeeper.detectors.engine.parts import refusal
from watchkeeper.detectors.engine.suspects import find, rows_of, without
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import I4

log = logging.getLogger(__name__)

# Failures within so many seconds of event time that make a detector pause; and how many vehicles may be excluded in
# that time before it counts as a failure of the detector.
WITHIN_S = 60.0
FAILURES = 3
EXCLUSIONS = 20
# Pauses of a detector, and of one vehicle's exclusion: the first, and what doubling ends at.
PAUSE_S, PAUSE_MAX_S = 30.0, 900.0
EXCLUDE_S, EXCLUDE_MAX_S = 60.0, 3600.0
# A detector that has not failed for so long is well again.
WELL_S = 60.0
# Methods without which the detector still detects.
LEFT_OUT = frozenset({"gauges", "snapshot", "coverage", "explain", "further"})
# Distinct errors that are remembered as logged.
LOGGED = 100
NOBODY: I4 = np.empty(0, np.int32)

T = TypeVar("T")


class Fence:
    """One detector behind its fence; `make` builds it, cold."""

    def __init__(self, make: Callable[[Config, Fleet], Detector], config: Config, fleet: Fleet) -> None:
        self._make = make
        self._config = config
        self._fleet = fleet
        self._have(make(config, fleet))
        self.name = self.detector.declaration.name
        self.kinds = tuple(kind.name for kind in self.detector.declaration.kinds)
        self.failures: Counter[str] = Counter()
        """By method, for metrics."""
        self.error = ""
        """The last error in words, until the detector is well again."""
        self.remark = ""
        """The same of what is only left out: figures, a snapshot."""
        self.restarts = 0
        self.paused_until = -np.inf
        self._pause_s = PAUSE_S
        self._failed: deque[float] = deque(maxlen=FAILURES)
        self._excluding: deque[float] = deque(maxlen=EXCLUSIONS)
        self._last_failed = -np.inf
        # slot to the end of its exclusion, and how long that was; kept after it has ended, so that the next is longer
        self.excluded: dict[int, tuple[float, float]] = {}
        self._broken = False
        self._logged: set[str] = set()
        self._t = -np.inf

    def _have(self, detector: Detector) -> None:
        self.detector = detector
        # what else it can do; looked up once, because Python takes long to tell
        self.covering = detector if isinstance(detector, Covering) else None
        self._resting = detector if isinstance(detector, Resting) else None

    # -- what the pipeline asks -----------------------------------------------------------------------------

    def step(self, window: Window) -> list[Evidence]:
        """The detector's evidence; nothing from one that fails or pauses."""
        t = self._t = window.t
        if self.pauses(t):
            return []
        if self._broken and not self._restart():
            return []
        if (self.error or self.remark) and t - self._last_failed >= WELL_S:
            self.error = self.remark = ""
            self._pause_s = PAUSE_S
        seen = without(window, away) if self.excluded and len(away := self.unseen(t)) else window
        try:
            found = self.detector.step(seen)
            for evidence in found:
                check(evidence, self.detector.declaration, self._fleet.high)
        except Exception as error:
            self._fail(error, seen)
            return []
        return [self._fenced(evidence) if evidence.further is not None else evidence for evidence in found]

    def rest(self, t: float) -> None:
        """A tick in which the detector has nothing to do (`quiet_until`), and is not asked."""
        self._t = t

    def _fenced(self, evidence: Evidence) -> Evidence:
        """Evidence whose `further` is asked behind the fence: one that raises adds nothing."""
        further = evidence.further
        assert further is not None
        return replace(evidence, further=lambda row: self._safely("further", lambda: further(row)) or {})

    def quiet_until(self, t: float) -> float:
        """Until when the detector has nothing to say without samples; `t` when it does not say."""
        detector = self._resting
        if detector is None or self.error or self.remark or not self.whole(t):
            return t
        until = self._safely("quiet_until", lambda: float(detector.quiet_until(t)), restart=True)
        return t if until is None else until

    def pauses(self, t: float) -> bool:
        """Whether the detector is not asked at this time."""
        return t < self.paused_until

    @property
    def blind(self) -> bool:
        """Whether nothing is judged by it now."""
        return self._broken or self._t < self.paused_until

    def whole(self, t: float) -> bool:
        """Whether it judges, and sees the samples of everybody."""
        if self._broken or self._t < self.paused_until:
            return False
        return not self.excluded or not len(self.unseen(t))

    def unseen(self, t: float) -> I4:
        """The slots whose samples are kept from it now."""
        if not self.excluded:
            return NOBODY
        return np.array([slot for slot, (until, _) in self.excluded.items() if t < until], np.int32)

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        for slot in slots.tolist():
            self.excluded.pop(slot, None)
        self._safely("forget", lambda: self.detector.forget(slots), restart=True)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        self._config = config
        self._safely("retune", lambda: self.detector.retune(config), restart=True)

    def gauges(self) -> dict[str, float]:
        """Its figures; none when it cannot tell them."""
        found = self._safely("gauges", lambda: {str(k): float(v) for k, v in self.detector.gauges().items()})
        return found or {}

    def ask(self, method: str, question: Callable[[], T]) -> T | None:
        """What an optional method of the detector answers; None when it raises."""
        return self._safely(method, question)

    def trouble(self) -> str:
        """What is wrong with it, in words; empty when nothing is."""
        if not self.error:
            return ""
        until = f", pausing until t = {self.paused_until:.0f}" if self.pauses(self._t) else ""
        return f"detector {self.name} failed: {self.error}{until}"

    # -- when it fails --------------------------------------------------------------------------------------

    def _fail(self, error: Exception, window: Window) -> None:
        t = window.t
        suspects = find(self._copy, window, self._fleet.high)
        self._note("step", error, window, suspects)
        if len(suspects) and self._exclude(suspects, t):
            return
        self._failed.append(t)
        if len(self._failed) == FAILURES and t - self._failed[0] <= WITHIN_S:
            self.paused_until = t + self._pause_s
            self._pause_s = min(2.0 * self._pause_s, PAUSE_MAX_S)
            self._failed.clear()
        self._broken = True
        self._restart()

    def _exclude(self, slots: I4, t: float) -> bool:
        """Keep these vehicles from the detector for a while; False when that happens too often."""
        self._excluding.append(t)
        if len(self._excluding) == EXCLUSIONS and t - self._excluding[0] <= WITHIN_S:
            return False
        for slot in slots.tolist():
            _, before_s = self.excluded.get(slot, (t, 0.0))
            for_s = min(2.0 * before_s, EXCLUDE_MAX_S) if before_s else EXCLUDE_S
            self.excluded[slot] = (t + for_s, for_s)
        try:
            self.detector.forget(slots)
        except Exception as error:
            self._note("forget", error)
            return False
        return True

    def _restart(self) -> bool:
        """A new detector without any state; False when even that fails, to be tried again with the next tick."""
        try:
            self._have(self._make(self._config, self._fleet))
        except Exception as error:
            self._note("__init__", error)
            return False
        self._broken = False
        self.restarts += 1
        return True

    def _copy(self) -> Detector:
        """The detector as it is now, to try things on."""
        twin = self._make(self._config, self._fleet)
        twin.restore(_copied(self.detector.snapshot()))
        return twin

    def _safely(self, method: str, work: Callable[[], T], *, restart: bool = False) -> T | None:
        if self._broken:
            return None
        try:
            return work()
        except Exception as error:
            self._note(method, error)
            if restart:
                self._broken = True
                self._restart()
            return None

    def _note(self, method: str, error: Exception, window: Window | None = None, slots: I4 | None = None) -> None:
        """Count it, remember it, and log it with the input that did it, once for each error."""
        self.failures[method] += 1
        self._last_failed = self._t
        words = f"{method} raised {type(error).__name__}: {error}"[:300]
        vehicles = [] if slots is None else [self._fleet.ids[slot] for slot in slots.tolist()]
        if method in LEFT_OUT:
            self.remark = words
        else:
            self.error = words + (f" (vehicles {', '.join(vehicles[:5])})" if vehicles else "")
        if words in self._logged or len(self._logged) >= LOGGED:
            return
        self._logged.add(words)
        samples = "" if window is None else rows_of(window, slots, self._fleet.ids)
        log.error(
            "detector %s: %s; vehicles %s; t %s; %s", self.name, words, vehicles, self._t, samples, exc_info=error
        )

    # -- life beyond one process ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Where the fence is; the detector's own state is apart, see `detector_state`."""
        return {
            "failures": dict(self.failures),
            "error": self.error,
            "remark": self.remark,
            "paused_until": self.paused_until,
            "pause_s": self._pause_s,
            "failed": list(self._failed),
            "excluding": list(self._excluding),
            "last_failed": self._last_failed,
            "excluded": [[slot, *times] for slot, times in self.excluded.items()],
            "t": self._t,
        }

    def detector_state(self) -> dict[str, Any]:
        """The detector's snapshot and the version of its layout; if it cannot give one, it will start cold."""
        state = self._safely("snapshot", self.detector.snapshot)
        return {"version": self.detector.declaration.state_version, "state": state}

    def restore(self, state: dict[str, Any] | None, detector: Any) -> str:
        """Take over a snapshot, each part if there is one; why the detector starts without its past, or nothing."""
        if state is not None:
            self.failures = Counter(state["failures"])
            self.error, self.remark, self._t = state["error"], state["remark"], state["t"]
            self.paused_until, self._pause_s = state["paused_until"], state["pause_s"]
            self._failed.extend(state["failed"])
            self._excluding.extend(state["excluding"])
            self._last_failed = state["last_failed"]
            self.excluded = {int(slot): (until, for_s) for slot, until, for_s in state["excluded"]}
        refused = "" if detector is None else refusal(self.detector, detector, self.detector.declaration.state_version)
        if refused:
            self.remark, self._last_failed = f"starts without its past: {refused}", self._t
            # it may have taken over half of it
            self._broken = True
            self._restart()
        return refused


def _copied(state: Any) -> Any:
    """A snapshot that shares no array with the detector."""
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_copied(value) for value in state]
    return state.copy() if isinstance(state, np.ndarray) else state
