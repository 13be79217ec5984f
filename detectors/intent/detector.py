"""intent: a controller that acts with no conflict ("ghost") or leaves one alone ("missed").

Listens to commands (`action`) and waypoints (`route`) beside ADS-B, and looks once per `step_s` of event time. Until
the first command or waypoint it does nothing at all. At a step (steps.py) a vehicle's nearest approach to
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
from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.intent.declaration import DECLARATION
from watchkeeper.detectors.intent.steps import MEMORY, Present
from watchkeeper.detectors.intent.tally import Tally
from watchkeeper.detectors.kernels.pairs import conflicting, look, navigation, significant, threat_m
from watchkeeper.detectors.kernels.windows import TRUTH_MARGIN_S, WindowRule, rule_for
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Kind

CAUSES = ("ghost", "missed")
_GHOST, _MISSED = 1, 2
SCORE_MAX = 1000.0
# Memory per slot: in conflict since when and until when, when a deliberate command was last given, the last cause.
_SINCE, _CONFLICT_T, _ACTED_T, _CAUSE = range(4)
_HISTORY = 4


class Intent:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._awake = False
        self._step = 0
        self._step_t = -math.inf
        self._present: Present | None = None
        self._way: F8 = np.full((fleet.capacity, MEMORY), np.nan)
        self._history: F8 = np.full((fleet.capacity, _HISTORY), np.nan)
        self._ghosts = self._missed = self._controlled = 0
        self._tally = Tally(WindowRule())
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds; the tally goes on with the new rule."""
        c = self._config = config.detectors.intent
        self._minima = config.detectors.conflict
        self._tally.rule = rule_for(
            c.step_s, n=c.alert_n, m=c.alert_m, lag_pre=c.lag_steps, lag_post=c.lag_steps, iou=c.iou
        )

    def step(self, window: Window) -> list[Evidence]:
        """Judge a step, if this tick ends one."""
        t, step_s = window.t, self._config.step_s
        k = math.floor(t / step_s + 1e-6)
        if not self._awake:
            if Kind.ACTION not in window.samples and Kind.ROUTE not in window.samples:
                return []
            self._awake = True
            # the first step is the one that the first command belongs to
            self._step = k - 1 if math.isclose(k * step_s, t) else k
            self._present = Present(self._fleet.capacity)
        if k <= self._step:
            return []
        quiet = k - self._step - 1
        self._tally.pause(quiet)
        since_t = self._step_t if quiet == 0 and self._step_t > -math.inf else t - step_s
        self._step, self._step_t = k, t
        return self._judge(t, since_t)

    def _judge(self, t: float, since_t: float) -> list[Evidence]:
        c, m, here = self._config, self._minima, self._present
        assert here is not None
        here.gather(self._fleet, t, since_t, m.max_age_s, self._way)
        n = here.n
        dcpa_m, tcpa_s, other = np.full(n, math.inf), np.full(n, math.nan), np.full(n, -1, np.int64)
        reach_m = threat_m(m.separation_nm) + 2.0 * m.horizon_s * float(here.speed_ms[:n].max(initial=0.0))
        look(
            here.flying(), here.state, here.alt_ft, here.controlled, m.horizon_s, m.vertical_ft, reach_m,
            dcpa_m, tcpa_s, other,
        )  # fmt: skip
        score, bits, lasts_s = np.zeros(n), np.zeros(n, np.int64), np.zeros(n)
        conflict, acting = _verdicts(
            t, n, here.slot, here.turn_deg, here.faster_kt, here.heading_deg, here.towards_deg, here.arrived,
            dcpa_m, other, m.separation_nm * NM_M, threat_m(m.separation_nm), c.turn_deg, c.speed_kt, c.response_s,
            c.ghost_needs_threat, self._history, score, bits, lasts_s,
        )  # fmt: skip
        self._tally.add(bool(conflict), bool(acting))
        rows = np.flatnonzero(here.controlled[:n])
        self._controlled = len(rows)
        self._ghosts, self._missed = (int(np.count_nonzero(bits[rows] & bit)) for bit in (_GHOST, _MISSED))
        return [self._evidence(t, rows, dcpa_m, tcpa_s, other, score, bits, lasts_s)]

    def _evidence(
        self, t: float, rows: I8, dcpa_m: F8, tcpa_s: F8, other: I8, score: F8, bits: I8, lasts_s: F8
    ) -> Evidence:
        here, n = self._present, len(rows)
        assert here is not None
        slot = here.slot[rows]
        details: list[dict[str, Any]] = [{}] * n
        for i in np.flatnonzero((bits[rows] > 0) & (other[rows] >= 0)).tolist():
            details[i] = {"with": self._fleet.ids[here.slot[other[rows[i]]]]}
        before = np.nan_to_num(self._history[slot, _CAUSE])
        cause = self._history[slot, _CAUSE] = np.where(bits[rows] > 0, bits[rows], before)
        return Evidence(
            "intent",
            slot,
            t=full(n, t),
            epoch=full(n, t),
            score=np.minimum(score[rows], SCORE_MAX),
            threshold=full(n, 1.0),
            severity=np.where(cause == _MISSED, 2, 1).astype(np.uint8),
            numbers={
                "heading_delta_deg": here.turn_deg[rows],
                "speed_delta_kt": here.faster_kt[rows],
                "dcpa_nm": dcpa_m[rows] / NM_M,
                "tcpa_s": tcpa_s[rows],
                "in_conflict_s": lasts_s[rows],
            },
            causes=CAUSES,
            cause_bits=bits[rows],
            details=tuple(details),
            news=(bits[rows] > 0) & (bits[rows] != before),
        )

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots; the tally is about the controller and stays."""
        self._way[slots] = np.nan
        self._history[slots] = np.nan

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
            "step_t": self._step_t,
            "way": self._way[:n],
            "history": self._history[:n],
            "tally": self._tally.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._awake, self._step, self._step_t = state["awake"], state["step"], state["step_t"]
        if self._awake:
            self._present = Present(self._fleet.capacity)
        for name, array in (("way", self._way), ("history", self._history)):
            array[: len(state[name])] = state[name]
        self._tally.restore(state["tally"])


@njit(cache=True)
def _verdicts(
    t: float, n: int, slot: I4, turn: F8, faster: F8, heading: F8, towards: F8, arrived: Bool,
    dcpa_m: F8, other: I8, separation_m: float, threat: float, min_turn: float, min_faster: float, response_s: float,
    needs_threat: bool, history: F8, score: F8, bits: I8, lasts_s: F8,
) -> tuple[bool, bool]:  # fmt: skip
    """Fill score, causes and time in conflict of each row; whether there is a conflict, and an action against one."""
    any_conflict, any_acting = False, False
    for i in range(n):
        row = history[slot[i]]
        size = max(abs(turn[i]) / min_turn, abs(faster[i]) / min_faster)
        in_conflict = conflicting(dcpa_m[i], separation_m)
        if in_conflict:
            any_conflict = True
            if not t - row[_CONFLICT_T] <= TRUTH_MARGIN_S:
                row[_SINCE] = t
            row[_CONFLICT_T] = t
            lasts_s[i] = t - row[_SINCE]
        if arrived[i] or not significant(turn[i], faster[i], min_turn, min_faster):
            continue
        if navigation(turn[i], heading[i], towards[i]):
            continue
        row[_ACTED_T] = t
        if dcpa_m[i] <= threat:
            any_acting = True
        if not t - row[_CONFLICT_T] <= TRUTH_MARGIN_S and (dcpa_m[i] <= threat or not needs_threat):
            score[i], bits[i] = size, _GHOST
    for i in range(n):
        if not conflicting(dcpa_m[i], separation_m):
            continue
        row = history[slot[i]]
        from_t = row[_SINCE] - TRUTH_MARGIN_S
        answered = row[_ACTED_T] >= from_t or history[slot[other[i]], _ACTED_T] >= from_t
        if not answered:
            score[i] = lasts_s[i] / response_s
            if score[i] >= 1.0:
                bits[i] = _MISSED
    return any_conflict, any_acting
