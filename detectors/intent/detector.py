"""intent: a controller that acts with no conflict ("ghost") or leaves one alone ("missed").

Listens to commands (`action`) and waypoints (`route`) in addition to ADS-B, and looks once per `step_s` of event time.
Until the first command or waypoint it does nothing at all. At a step (steps.py) a vehicle's nearest approach to
another is found (kernels/pairs.py); it is in conflict when that is closer than the minimum within the horizon.
- ghost: a deliberate command (over the thresholds, no turn towards the waypoint) while the vehicle is in no conflict
  and has not been in one lately. Score: command over threshold.
- missed: a controlled vehicle has been in conflict for `response_s`, and neither it nor the other one was given a
  deliberate command since shortly before. Score: time in conflict over `response_s`.
Threshold 1 for both. Rows are controlled vehicles, epochs are steps.

Beside the alarms it keeps a tally (tally.py) of the metrics that `evaluate conflicts` computes from a recording:
the gauges are those of all steps so far, by the same windows and matching.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.intent.declaration import DECLARATION
from watchkeeper.detectors.intent.steps import Present, Waypoint
from watchkeeper.detectors.intent.tally import Tally
from watchkeeper.detectors.kernels.pairs import Nearest, Reach, conflicting, look, navigation, significant, threat_m
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.detectors.kernels.windows import TRUTH_MARGIN_S, WindowRule, rule_for
from watchkeeper.streams.batch import I4, I8
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.periods import periods_over, periods_until

CAUSES = ("ghost", "missed")
_GHOST, _MISSED = 1, 2
SCORE_MAX = 1000.0


class History:
    """What is remembered of a slot (detectors/kernels/records.py)."""

    since_t: float = math.nan
    """In conflict since when,"""
    conflict_t: float = math.nan
    """until when,"""
    acted_t: float = math.nan
    """when a deliberate command was last given,"""
    cause: int = 0
    """and the last cause."""


class Verdict:
    """What is found of a vehicle at one step."""

    score: float
    bits: int
    lasts_s: float
    """How long it has been in conflict."""


class Rules(NamedTuple):
    """Thresholds as the kernel takes them; see config/detectors/intent.py."""

    separation_m: float
    threat_m: float
    min_turn_deg: float
    min_faster_kt: float
    response_s: float
    needs_threat: bool


class Intent:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._awake = False
        self._step = 0
        self._tick_s = config.time.tick_s
        self._present: Present | None = None
        self._waypoints: NDArray[Any] = blank(Waypoint, fleet.capacity)
        self._history: NDArray[Any] = blank(History, fleet.capacity)
        self._ghosts = self._missed = self._controlled = 0
        self._tally = Tally(WindowRule())
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds; the tally goes on with the new rule."""
        c = self._config = config.detectors.intent
        m = self._minima = config.detectors.conflict
        self._rules = Rules(
            m.separation_nm * NM_M,
            threat_m(m.separation_nm),
            c.turn_deg,
            c.speed_kt,
            c.response_s,
            c.ghost_needs_threat,
        )
        self._tally.rule = rule_for(
            c.step_s, n=c.alert_n, m=c.alert_m, lag_pre=c.lag_steps, lag_post=c.lag_steps, iou=c.iou
        )

    def step(self, window: Window) -> list[Evidence]:
        """Judge a step, if this tick ends one."""
        t, step_s = window.t, self._config.step_s
        if not (self._awake or Kind.ACTION in window.samples or Kind.ROUTE in window.samples):
            return []
        k = periods_over(t, step_s)
        if not self._awake:
            self._awake = True
            # the first step is the one that the first command belongs to
            self._step = k - 1 if self._end_tick(k) == periods_until(t, self._tick_s) else k
            self._present = Present(self._fleet.capacity)
        if k <= self._step:
            return []
        if self._end_tick(k) < periods_over(t, self._tick_s):
            # the tick that ended this step was left out: nobody was there
            self._tally.pause(k - self._step)
            self._step = k
            return []
        self._tally.pause(k - self._step - 1)
        self._step = k
        return self._judge(t, self._end_t(k - 1))

    def _end_tick(self, step: int) -> int:
        """The tick that ends a step."""
        return periods_until(step * self._config.step_s, self._tick_s)

    def _end_t(self, step: int) -> float:
        """The end of that tick."""
        return self._end_tick(step) * self._tick_s

    def quiet_until(self, t: float) -> float:
        """The end of the next step, while anybody is there; after that nothing changes without samples."""
        if not self._awake:
            return math.inf
        n = self._fleet.high
        there = (self._fleet.last_t[Kind.ADSB, :n] >= t - self._minima.max_age_s).any()
        return self._end_t(self._step + 1) if there else math.inf

    def _judge(self, t: float, since_t: float) -> list[Evidence]:
        m, here = self._minima, self._present
        assert here is not None
        here.gather(self._fleet, t, since_t, m.max_age_s, self._waypoints)
        vehicles, nearest, verdicts = here.rows, blank(Nearest, here.n), blank(Verdict, here.n)
        apart_m = self._rules.threat_m + 2.0 * m.horizon_s * float(vehicles["speed_ms"].max(initial=0.0))
        controlled, arrived = (np.ascontiguousarray(vehicles[name]) for name in ("controlled", "arrived"))
        look(here.order(), here.state, controlled, arrived, Reach(m.horizon_s, m.vertical_ft, apart_m), nearest)
        conflict, acting = _verdicts(t, vehicles, nearest, self._rules, self._history, verdicts)
        self._tally.add(bool(conflict), bool(acting))
        rows = np.flatnonzero(controlled)
        self._controlled = len(rows)
        self._ghosts, self._missed = (int(np.count_nonzero(verdicts["bits"][rows] & bit)) for bit in (_GHOST, _MISSED))
        return [self._evidence(t, rows, nearest, verdicts)]

    def _evidence(self, t: float, rows: I8, nearest: NDArray[Any], verdicts: NDArray[Any]) -> Evidence:
        here, n = self._present, len(rows)
        assert here is not None
        vehicles, other = here.rows, nearest["other"]
        slot, score, bits = vehicles["slot"][rows], verdicts["score"], verdicts["bits"]
        details: list[dict[str, Any]] = [{}] * n
        for i in np.flatnonzero((bits[rows] > 0) & (other[rows] >= 0)).tolist():
            details[i] = {"with": self._fleet.ids[vehicles["slot"][other[rows[i]]]]}
        before = self._history["cause"][slot]
        cause = self._history["cause"][slot] = np.where(bits[rows] > 0, bits[rows], before)
        return Evidence(
            "intent",
            slot,
            t=full(n, t),
            epoch=full(n, t),
            score=np.minimum(score[rows], SCORE_MAX),
            threshold=full(n, 1.0),
            severity=np.where(cause == _MISSED, 2, 1).astype(np.uint8),
            numbers={
                "heading_delta_deg": vehicles["turn_deg"][rows],
                "speed_delta_kt": vehicles["faster_kt"][rows],
                "dcpa_nm": nearest["dcpa_m"][rows] / NM_M,
                "tcpa_s": nearest["tcpa_s"][rows],
                "in_conflict_s": verdicts["lasts_s"][rows],
            },
            causes=CAUSES,
            cause_bits=bits[rows],
            details=tuple(details),
            news=(bits[rows] > 0) & (bits[rows] != before),
        )

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots; the tally is about the controller and stays."""
        self._waypoints[slots] = blank(Waypoint, 1)
        self._history[slots] = blank(History, 1)

    def gauges(self) -> dict[str, float]:
        """Vehicles under control, ghosts and missed at the last step, and the tally."""
        now = {"vehicles": self._controlled, "ghosts": self._ghosts, "missed": self._missed}
        return {name: float(n) for name, n in now.items()} | self._tally.figures(self._config.step_s)

    def snapshot(self) -> dict[str, Any]:
        """Memory per slot, the tally, and the last step."""
        n = self._fleet.high
        return {
            "awake": self._awake,
            "step": self._step,
            "waypoints": self._waypoints[:n],
            "history": self._history[:n],
            "tally": self._tally.snapshot(),
            "figures": [self._ghosts, self._missed, self._controlled],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._awake, self._step = state["awake"], state["step"]
        if self._awake:
            self._present = Present(self._fleet.capacity)
        take_over(self._waypoints, state["waypoints"])
        take_over(self._history, state["history"])
        self._tally.restore(state["tally"])
        self._ghosts, self._missed, self._controlled = state["figures"]


@njit(cache=True)
def _verdicts(
    t: float, vehicles: NDArray[Any], nearest: NDArray[Any], rules: Rules, history: NDArray[Any], verdicts: NDArray[Any]
) -> tuple[bool, bool]:
    """Fill the verdict of each row; whether there is a conflict, and an action against one."""
    any_conflict, any_acting = False, False
    for i in range(vehicles.size):
        vehicle, dcpa_m, verdict = vehicles[i], nearest[i].dcpa_m, verdicts[i]
        threatened = nearest[i].threat_dcpa_m <= rules.threat_m
        past = history[vehicle.slot]
        turn_deg, faster_kt = vehicle.turn_deg, vehicle.faster_kt
        size = max(abs(turn_deg) / rules.min_turn_deg, abs(faster_kt) / rules.min_faster_kt)
        if conflicting(dcpa_m, rules.separation_m):
            any_conflict = True
            if not t - past.conflict_t <= TRUTH_MARGIN_S:
                past.since_t = t
            past.conflict_t = t
            verdict.lasts_s = t - past.since_t
        if not significant(turn_deg, faster_kt, rules.min_turn_deg, rules.min_faster_kt):
            continue
        if navigation(turn_deg, vehicle.heading_deg, vehicle.towards_deg):
            continue
        # the tally's alerts ask for a threat, not for arrivals; alarms are about those under way
        if threatened:
            any_acting = True
        if vehicle.arrived:
            continue
        past.acted_t = t
        if not t - past.conflict_t <= TRUTH_MARGIN_S and (threatened or not rules.needs_threat):
            verdict.score, verdict.bits = size, _GHOST
    for i in range(vehicles.size):
        if not conflicting(nearest[i].dcpa_m, rules.separation_m):
            continue
        past, other, verdict = history[vehicles[i].slot], history[vehicles[nearest[i].other].slot], verdicts[i]
        from_t = past.since_t - TRUTH_MARGIN_S
        if not (past.acted_t >= from_t or other.acted_t >= from_t):
            verdict.score = verdict.lasts_s / rules.response_s
            if verdict.score >= 1.0:
                verdict.bits = _MISSED
    return any_conflict, any_acting
