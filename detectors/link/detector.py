"""link: a vehicle's telemetry comes later, thinner or with more holes than it used to.

Each watched stream's rate over the last `window_s` is held against its own past. Too few samples are a `loss` when many
of the intervals are still as short as usual (some samples are missing), and a `rate` when none are (all come slower).
Latency, from samples of the stream `link`, is held against the vehicle's own usual latency, so that a clock which was
always off says nothing: later than usual is `latency`, earlier is `early`. Which of a slow link and a clock that was
set wrong it is cannot be told from here; the diagnosis asks. Score: the worst of them over its limit; threshold 1.

A stream without any samples is `silence`, not `link`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full, next_after
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.link.constants import HOLES, LATENCY_WINDOWS
from watchkeeper.detectors.link.declaration import DECLARATION
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.messages import Kind


class LinkDetector:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self.stats = LinkStats(config.detectors.link, config.time.tick_s, fleet)
        self._awake = False
        self._gauges = {"vehicles": 0.0, "latency_excess_max_s": 0.0, "rate_ratio_min": 1.0}
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds, streams and windows."""
        self._config = config.detectors.link
        self.stats.retune(self._config)
        words = self._config.streams
        self._causes = ("latency", "early", *(f"{w}_loss" for w in words), *(f"{w}_rate" for w in words))

    def step(self, window: Window) -> list[Evidence]:
        """Count; at the end of a bin score every link that was heard, then learn from those that are well."""
        stats = self.stats
        if not self._awake:
            # until somebody sends what is watched there is nothing to do at all
            if not any(kind in window.samples for kind in (*stats.kinds, Kind.LINK)):
                return []
            self._awake = True
        evidence = self._judge(window.t) if stats.take(window) else []
        stats.follow(window)
        return evidence

    def _judge(self, t: float) -> list[Evidence]:
        cfg, stats, n = self._config, self.stats, self._fleet.high
        # after a silence half a window must be there again
        old = (stats.known_s[:, :n] >= cfg.min_past_s) & (stats.span_s() >= 0.5 * cfg.window_s)
        ratio = np.where(old, stats.rate_ratio(), np.nan)
        missing = np.nan_to_num(1.0 - ratio) / cfg.loss
        fresh = stats.latency_t[:n] > t - LATENCY_WINDOWS * cfg.window_s
        excess_s = np.where(fresh & (stats.latency_n[:n] >= cfg.min_past_s), stats.latency_excess_s(), np.nan)
        late = np.nan_to_num(excess_s) / cfg.latency_s
        odd = missing >= 1.0
        holes = stats.on_time() >= HOLES
        evidence = self._evidence(t, ratio, missing, excess_s, late, odd & holes, odd & ~holes)
        stats.learn(cfg, odd, np.abs(late) >= 1.0, t)
        return evidence

    def _evidence(
        self, t: float, ratio: F8, missing: F8, excess_s: F8, late: F8, loss: Bool, rate: Bool
    ) -> list[Evidence]:
        stats, n, k = self.stats, self._fleet.high, len(self.stats.kinds)
        heard = (~stats.silent).any(axis=0)
        judged = np.isfinite(ratio).any(axis=0) | np.isfinite(excess_s)
        slots: I4 = np.flatnonzero(heard & judged).astype(np.int32)
        worst = missing.max(axis=0) if k else np.zeros(n)
        score = np.maximum(np.maximum(worst, np.abs(late)), 0.0)
        bits = (late >= 1.0).astype(np.int64) | (late <= -1.0).astype(np.int64) << 1
        for i in range(k):
            bits |= loss[i].astype(np.int64) << (2 + i) | rate[i].astype(np.int64) << (2 + k + i)
        self._gauges = {
            "vehicles": float((score[slots] >= 1.0).sum()),
            "latency_excess_max_s": float(np.nanmax(excess_s, initial=0.0)),
            "rate_ratio_min": float(np.nanmin(ratio, initial=1.0)),
        }
        if not len(slots):
            return []
        rows = len(slots)
        with np.errstate(all="ignore"):
            least = np.where(np.isfinite(ratio), ratio, np.inf).min(axis=0) if k else full(n, np.inf)
        return [
            Evidence(
                "link",
                slots,
                t=full(rows, t),
                epoch=full(rows, t),
                score=score[slots],
                threshold=np.ones(rows),
                severity=(score[slots] >= self._config.caution_ratio).astype(np.uint8),
                numbers={
                    "latency_excess_s": excess_s[slots],
                    "jitter_s": stats.jitter_s[slots],
                    "rate_ratio": least[slots],
                    "gap_s": stats.gap_s().max(axis=0)[slots],
                    "reordered": stats.reordered[slots],
                },
                causes=self._causes,
                cause_bits=bits[slots],
            )
        ]

    def quiet_until(self, t: float) -> float:
        """While no stream is heard nothing changes but how old the latencies are."""
        if not self._awake:
            return math.inf
        if not self.stats.silent.all() or self.stats.counting:
            return t
        return next_after(self.stats.latency_t[: self._fleet.high] + LATENCY_WINDOWS * self._config.window_s, t)

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self.stats.forget(slots)

    def gauges(self) -> dict[str, float]:
        """How many links are bad, and how bad the worst are."""
        return self._gauges

    def snapshot(self) -> dict[str, Any]:
        """What is known about every link."""
        return {"awake": self._awake, "gauges": self._gauges, **self.stats.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._awake, self._gauges = state["awake"], dict(state["gauges"])
        self.stats.restore(state)
