"""An online model over the residuals of the whole fleet: half-space trees, and running quantiles that make sigmas.

The kernel judges its channels one by one; the model sees their combination and asks how often the fleet has shown such
a one. The detector gives it a few epochs per tick (`model_budget`). Score first, learn after; the detector says what
may be learned. Seeded, so the same epochs give the same scores.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np

from watchkeeper.detectors.gps_imu.constants import (
    FULL_SIGMA,
    HEIGHT,
    HIGH_QUANTILE,
    HIGH_SIGMA,
    READY,
    SEED,
    SPREAD_MIN,
    TREES,
    TREES_READY,
    WINDOW,
)
from watchkeeper.detectors.gps_imu.model import half_space, psquare
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.kernels import njit


class ResidualModel:
    """Half-space trees over named residuals in sigmas."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._on, self._at = half_space.grow(names, TREES, HEIGHT, SEED)
        self._cuts = _cuts_of(names)
        self._masses = np.zeros((len(self._on), 2), np.int64)
        self._quantiles = np.array([psquare.empty(0.5), psquare.empty(HIGH_QUANTILE)])
        self.learned = 0

    def judge(self, sigmas: F8, learn: Bool) -> F8:
        """How unusual each combination (row) is, in sigmas (0 while the model is young).

        One after the other: each is judged, then learned if it may be.
        """
        unusual = np.empty(len(sigmas))
        parts = self._on, self._at, self._masses, self._quantiles
        self.learned = int(_judge(sigmas, learn, *parts, self.learned, unusual))
        return unusual

    def snapshot(self) -> dict[str, Any]:
        """The masses of the trees' nodes, the quantiles' markers, and counts. Where the trees cut follows from SEED."""
        return {
            "learned": self.learned,
            "cuts": self._cuts,
            "masses": self._masses.copy(),
            "quantiles": [{"numbers": row.copy()} for row in self._quantiles],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError when the trees are not those that this version makes."""
        rows = [quantile["numbers"] for quantile in state["quantiles"]]
        if not state["learned"]:
            return
        masses = state["masses"]
        if state["cuts"] != self._cuts or (masses.dtype, masses.shape) != (self._masses.dtype, self._masses.shape):
            raise ValueError("half-space trees that cut elsewhere")
        if len(rows) != len(self._quantiles) or not all(map(psquare.is_sound, rows)):
            raise ValueError("quantiles with other markers")
        self.learned = state["learned"]
        self._masses[:] = masses
        self._quantiles[:] = rows


@cache
def _cuts_of(names: tuple[str, ...]) -> str:
    """A digest of which residual each node asks for and at which value: trees that cut elsewhere are other trees."""
    on, at = half_space.grow(names, TREES, HEIGHT, SEED)
    asked = [(names[k] if k >= 0 else "", where) for k, where in zip(on.tolist(), at.tolist(), strict=True)]
    return blake2b(repr(asked).encode(), digest_size=8).hexdigest()


@njit(cache=True)
def _judge(sigmas: F8, learn: Bool, on: I4, at: F8, masses: I8, quantiles: F8, learned: int, unusual: F8) -> int:
    for row in range(len(sigmas)):
        point = np.minimum(1.0, sigmas[row] / FULL_SIGMA)
        raw = half_space.score(point, on, at, masses, HEIGHT, WINDOW) if learned >= TREES_READY else 0.0
        unusual[row] = 0.0
        if learned >= READY:
            middle, high = psquare.estimate(quantiles[0]), psquare.estimate(quantiles[1])
            unusual[row] = max(0.0, HIGH_SIGMA * (raw - middle) / max(high - middle, SPREAD_MIN))
        if learn[row]:
            if learned >= TREES_READY:
                for k in range(2):
                    psquare.update(quantiles[k], learned - TREES_READY, raw)
            half_space.learn(point, on, at, masses, HEIGHT)
            learned += 1
            if learned % WINDOW == 0:
                half_space.turn(masses)
    return learned
