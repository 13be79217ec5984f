"""silence: a stream that used to speak has stopped.

Each watched stream (kind and vehicle) has a usual interval between samples, learned as an exponential average
while it speaks. At each tick, silence lasts since the last sample; it is anomalous when it exceeds both
`min_silence_s` and `factor` usual intervals. Score = silence / limit, threshold 1; causes name the streams.

A stream that is declared (`[topology]`) need not have spoken: unheard since the start, its limit is `topology.wait_s`.
Where anything is declared the evidence says how many of the streams named were never heard at all.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full, next_after
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.silence.declaration import DECLARATION
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import KIND_OF_WORD, Kind

# Weight of the newest interval in the average: some twenty samples to settle, as stable as a median on real links.
ALPHA = 0.05


class Silence:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._interval_s: F8 = np.full((len(Kind), fleet.capacity), np.nan)
        self._previous_t: F8 = np.full((len(Kind), fleet.capacity), np.nan)
        self._silent = 0
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        self._config = config.detectors.silence
        self._kinds = [KIND_OF_WORD[word] for word in self._config.streams]

    def step(self, window: Window) -> list[Evidence]:
        """Score the silence of every watched stream now, then learn the intervals."""
        evidence = self._score(window.t)
        for kind in self._kinds:
            if kind in window.samples:
                s = window.samples[kind]
                _learn(s.slot, s.t, self._interval_s[kind], self._previous_t[kind])
        return evidence

    def _score(self, t: float) -> list[Evidence]:
        fleet = self._fleet
        n = fleet.high
        declared = fleet.declared
        kinds = [(i, kind) for i, kind in enumerate(self._kinds) if self._can_be_missed(kind)]
        if not kinds:
            self._silent = 0
            return []
        score = np.zeros(n)
        silence_s = np.zeros(n)
        bits = np.zeros(n, np.int64)
        watched = np.zeros(n, bool)
        never = np.zeros(n)
        for i, kind in kinds:
            known, since, limit = self._silence(kind, t)
            ratio = np.where(known, since / limit, 0.0)
            silence_s = np.where(ratio > score, since, silence_s)
            score = np.maximum(score, ratio)
            bits |= (ratio >= 1.0).astype(np.int64) << i
            never += (ratio >= 1.0) & (fleet.count[kind, :n] == 0)
            watched |= known
        slots = np.flatnonzero(watched).astype(np.int32)
        self._silent = int((bits > 0).sum())
        if not len(slots):
            return []
        rows = len(slots)
        return [
            Evidence(
                "silence",
                slots,
                t=full(rows, t),
                epoch=full(rows, t),
                score=score[slots],
                threshold=np.ones(rows),
                severity=np.ones(rows, np.uint8),
                numbers={"silence_s": silence_s[slots], **({"never_heard": never[slots]} if declared.any else {})},
                causes=tuple(kind.word for kind in self._kinds),
                cause_bits=bits[slots],
            )
        ]

    def _can_be_missed(self, kind: Kind) -> bool:
        """Whether anybody sends this stream, or is declared to."""
        fleet = self._fleet
        return fleet.sends(kind) or (fleet.declared.any and bool(fleet.declared.streams[kind, : fleet.high].any()))

    def _silence(self, kind: Kind, t: float) -> tuple[Bool, F8, F8]:
        """Of each vehicle whether this stream can be missed, how long it has been silent, and its limit."""
        cfg, fleet, declared = self._config, self._fleet, self._fleet.declared
        n = fleet.high
        left_t, back_t = fleet.away
        spoke = fleet.count[kind, :n] >= cfg.min_samples
        awaited = declared.streams[kind, :n] & ~spoke
        last_t = fleet.last_t[kind, :n]
        last_t = np.where(awaited, np.fmax(last_t, declared.since_t[:n]), last_t)
        since = t - last_t - np.maximum(0.0, back_t - np.maximum(last_t, left_t))
        limit = np.maximum(cfg.min_silence_s, cfg.factor * np.nan_to_num(self._interval_s[kind, :n]))
        return spoke | awaited, since, np.where(awaited, declared.wait_s, limit)

    def quiet_until(self, t: float) -> float:
        """The next moment at which a stream has been silent for its limit."""
        until = math.inf
        for kind in filter(self._can_be_missed, self._kinds):
            known, since, limit = self._silence(kind, t)
            until = min(until, next_after(t + (limit - since)[known & (since < limit)], t))
        return until

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._interval_s[:, slots] = np.nan
        self._previous_t[:, slots] = np.nan

    def gauges(self) -> dict[str, float]:
        """How many vehicles are silent now."""
        return {"vehicles": float(self._silent)}

    def snapshot(self) -> dict[str, Any]:
        """Intervals learned, and the figure of the last step."""
        n = self._fleet.high
        learned = {"interval_s": self._interval_s[:, :n], "previous_t": self._previous_t[:, :n]}
        return {**learned, "silent": self._silent}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        # a version that knew fewer streams has fewer rows
        k, n = state["interval_s"].shape
        self._interval_s[:k, :n] = state["interval_s"]
        self._previous_t[:k, :n] = state["previous_t"]
        self._silent = state["silent"]


@njit(cache=True)
def _learn(slot: I4, t: F8, interval_s: F8, previous_t: F8) -> None:
    for i in range(slot.size):
        s = slot[i]
        # of signals many have one time
        if not np.isnan(previous_t[s]) and t[i] > previous_t[s]:
            dt = t[i] - previous_t[s]
            if np.isnan(interval_s[s]):
                interval_s[s] = dt
            else:
                # an outage is not a habit: one interval counts for at most three usual ones
                interval_s[s] += ALPHA * (min(dt, 3.0 * interval_s[s]) - interval_s[s])
        previous_t[s] = t[i]
