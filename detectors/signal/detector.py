"""signal: a number that a vehicle sends is not what it used to be.

Each signal is forecast by its own level and trend. What the forecast misses, the noise, the slow mean and what the best
partner among the vehicle's other signals does not explain are each held against their own running 99 % quantile: over
`margin` times it they count. Known limits count at once, a number that never stands still counts when it is stuck, and
one that stops while the others go on counts as missing. Score: the worst of them over its limit; threshold 1.

Score first, learn after; values that count as anomalous teach nothing, unless they last `relearn_s`: then they are
taken as normal, and the alarm says so. After arming, disarming and a new mode only limits are judged for `settle_s`.

The alarm is about the vehicle and names the signal, with mode and arming state. It counts values in a row of one
signal (kernel.py), so that fifty signals that are each odd for a moment are no alarm.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.fleet.reasons import Code
from watchkeeper.detectors.kernels.records import room
from watchkeeper.detectors.signal.declaration import CAUSES, DECLARATION
from watchkeeper.detectors.signal.kernel import find, follow
from watchkeeper.detectors.signal.seasons import Seasons, with_residuals
from watchkeeper.detectors.signal.state import DISAGREES, RHYTHM, Finding, Settings
from watchkeeper.detectors.signal.table import Table
from watchkeeper.streams.batch import I4, U1
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.signals import label_of

# Other signals that an alarm names.
ALSO = 4
# A vehicle without a signal for so long is not judged. The same as for every stream (detectors/engine/streams.py), by
# which ticks are left out.
SILENT_S = 60.0
NOTHING: dict[str, Any] = {}
NOT_APPLICABLE = int(Code.NOT_APPLICABLE)


class SignalDetector:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self.table = Table(config.detectors.signal, fleet)
        self.seasons = Seasons(config.detectors.signal)
        self._anomalous = 0
        self._found: NDArray[Any] = room(Finding, 0)
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds; limits are those of signals that are new."""
        cfg = self._config = config.detectors.signal
        self.table.retune(cfg)
        self.seasons.retune(cfg)
        self._settings = Settings(
            cfg.level_s, cfg.fast_s, cfg.memory_s, cfg.learn_s, cfg.settle_s, cfg.relearn_s, cfg.margin, cfg.stuck_s,
            cfg.gap_s, cfg.max_per_vehicle, cfg.debounce.n,
        )  # fmt: skip

    def step(self, window: Window) -> list[Evidence]:
        """Score each value against its own past, then learn from it."""
        samples = window.samples.get(Kind.SIGNAL)
        if samples is None:
            self._anomalous = 0
            return []
        found = self._follow_seasons(samples) if self.seasons else self._follow(samples)[0]
        score = np.ascontiguousarray(found["score"])
        self._anomalous = len(np.unique(found["slot"][score >= 1.0]))
        if not len(found):
            return []
        odd = score >= 1.0
        severity = np.maximum(found["severity"], (score >= self._config.caution_ratio) & odd).astype(np.uint8)
        return [
            Evidence(
                "signal",
                np.ascontiguousarray(found["slot"]),
                t=np.ascontiguousarray(found["t"]),
                epoch=np.ascontiguousarray(found["t"]),
                score=score,
                threshold=np.ones(len(found)),
                severity=severity,
                numbers={name: np.ascontiguousarray(found[name]) for name in ("value", "expected", "usual")},
                causes=tuple(CAUSES),
                cause_bits=np.ascontiguousarray(found["bits"]),
                details=tuple(map(self._details, found, (odd | (found["row"] >= 0)).tolist())),
                news=np.ascontiguousarray(found["news"]) & odd,
                taken_as_normal=np.ascontiguousarray(found["taken"]) & ~odd,
            )
        ]

    def _follow_seasons(self, s: Samples) -> NDArray[Any]:
        """The same with what forecasts of seasons leave of signals; they learn afterwards."""
        due = self.seasons.due(s)
        more, places = with_residuals(s, due)
        found, rows = self._follow(more)
        forecast = (season for _, season, x in due if not math.isnan(x))
        for season, row in zip(forecast, rows[places].tolist(), strict=True):
            season.row = row
        self.seasons.learn(s, due, self.table.signals)
        return found

    def _follow(self, s: Samples) -> tuple[NDArray[Any], I4]:
        """What is found in a window, one row for each vehicle and time at most; and the row of each value."""
        table, n = self.table, len(s)
        rows: I4 = np.empty(n, np.int32)
        if find(s.slot, s.data, table.signals, table.vehicles, self._settings.per_vehicle, rows):
            table.add(s.slot, s.data, rows)
        if len(self._found) < 2 * n:
            self._found = room(Finding, 2 * n)
        tables = (table.signals, table.vehicles, table.counts)
        found: NDArray[Any] = self._found[: follow(s.slot, s.t, s.data, rows, tables, self._settings, self._found)]
        return found, rows

    def _details(self, found: Any, told: bool) -> dict[str, Any]:
        """What is no number; nothing of a vehicle with which all is well."""
        row = int(found["row"])
        if not told or row < 0:
            return NOTHING
        signal = self.table.signals[row]
        details: dict[str, Any] = {"signal": self.table.name(row)}
        if found["bits"] & DISAGREES:
            details["partner"] = self.table.name(int(signal["partner"]))
        if found["bits"] & RHYTHM:
            details["missing_s"] = round(float(found["t"] - signal["t"]), 3)
        if not math.isnan(found["mode"]):
            details["mode"] = label_of(float(found["mode"])) or f"{found['mode']:g}"
        if not math.isnan(found["armed"]):
            details["armed"] = bool(found["armed"] > 0.5)
        rows = np.array(self.table.rows_of(int(found["slot"])), np.int32)
        others = rows[(self.table.signals["run"][rows] >= self._settings.patience) & (rows != row)]
        if len(others):
            details["also"] = sorted(self.table.name(other) for other in others.tolist())[:ALSO]
        return details

    def coverage(self, t: float) -> U1:
        """Who is judged: a vehicle of which one signal at least is known, or has limits and nothing to be learned."""
        n = self._fleet.high
        if not self._fleet.sends(Kind.SIGNAL):
            return np.full(n, NOT_APPLICABLE, np.uint8)
        last_t, codes = self._fleet.last_t[Kind.SIGNAL, :n], np.full(n, Code.NOT_APPLICABLE, np.uint8)
        sends = last_t > -np.inf
        if sends.any():
            codes[sends] = Code.LEARNING
            rows = self.table.signals[: self.table.high]
            limited = np.isfinite(rows["low"]) | np.isfinite(rows["high"])
            known = np.where(rows["judged"], rows["learned_s"] >= self._settings.learn_s, limited)
            taken = rows["slot"] >= 0
            codes[rows["slot"][limited & taken]] = Code.LIMITS_ONLY
            codes[rows["slot"][known & taken]] = Code.WATCHED
            codes[sends & (t - last_t > SILENT_S)] = Code.SILENT
        return codes

    def explain(self, slot: int) -> str:
        """How long it takes, while nothing of a vehicle is known; known limits count from the first value on."""
        learned_s = self.table.signals["learned_s"][self.table.rows_of(slot)].max(initial=0.0)
        return f"{learned_s:.0f} of {self._settings.learn_s:.0f} s; known limits count already"

    def quiet_until(self, t: float) -> float:  # noqa: ARG002
        """Nothing changes without samples: a vehicle that sends nothing at all is another detector's business."""
        return math.inf

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self.table.forget(slots)
        self.seasons.forget(slots)

    def gauges(self) -> dict[str, float]:
        """How much is watched, what is odd in it, and what was left out."""
        counts = self.table.counts[0]
        return {
            "watched": float(len(self.table)),
            "vehicles": float(self._anomalous),
            "refused": float(counts["refused"]),
            "duplicates": float(counts["duplicates"]),
            "seasons_left_out": float(self.seasons.left_out),
        }

    def snapshot(self) -> dict[str, Any]:
        """The table; nothing before the first signal."""
        if not self.table.high:
            return {}
        state = {"anomalous": self._anomalous, **self.table.snapshot()}
        return (
            state | {"seasons": self.seasons.snapshot(), "left_out": self.seasons.left_out} if self.seasons else state
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        if state:
            self.table.restore(state)
            self._anomalous = state["anomalous"]
            if self.seasons:
                self.seasons.restore(state.get("seasons", []))
                self.seasons.left_out = state.get("left_out", 0)
