"""An online model over the residuals of the whole fleet: half-space trees, and running quantiles that make sigmas.

The kernel judges its channels one by one; the model sees their combination and asks how often the fleet has shown such
a one. It costs some 60 us per epoch in Python, so the detector gives it a few epochs per tick (`model_budget`).
Score first, learn after; the detector says what may be learned. Seeded, so the same epochs give the same scores.
"""

from __future__ import annotations

import pickle
from typing import Any

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


class ResidualModel:
    """Half-space trees over named residuals in sigmas."""

    def __init__(self, names: tuple[str, ...]) -> None:
        # a second of imports that only those pay who use the model
        from river import anomaly, stats  # noqa: PLC0415

        self._names = names
        # river's signatures are only partly typed
        self._trees: Any = anomaly.HalfSpaceTrees(
            n_trees=TREES, height=HEIGHT, window_size=WINDOW, limits=dict.fromkeys(names, (0.0, 1.0)), seed=SEED
        )
        self._middle: Any = stats.Quantile(0.5)
        self._high: Any = stats.Quantile(HIGH_QUANTILE)
        self.learned = 0

    def judge(self, sigmas: list[float], *, learn: bool) -> float:
        """How unusual this combination is, in sigmas (0 while the model is young); then learn it, if it may."""
        features = {name: min(1.0, s / FULL_SIGMA) for name, s in zip(self._names, sigmas, strict=True)}
        raw = self._trees.score_one(features) if self.learned >= TREES_READY else 0.0
        unusual = 0.0
        if self.learned >= READY:
            middle, high = self._middle.get(), self._high.get()
            unusual = max(0.0, HIGH_SIGMA * (raw - middle) / max(high - middle, SPREAD_MIN))
        if learn:
            if self.learned >= TREES_READY:
                self._middle.update(raw)
                self._high.update(raw)
            self._trees.learn_one(features)
            self.learned += 1
        return unusual

    def dump(self) -> bytes:
        """The whole state; river's estimators are plain Python objects."""
        return pickle.dumps((self._trees, self._middle, self._high, self.learned))

    def load(self, state: bytes) -> None:
        """Take over a dump; it comes from our own snapshot, which is as trusted as the program."""
        self._trees, self._middle, self._high, self.learned = pickle.loads(state)  # noqa: S301
