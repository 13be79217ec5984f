"""An online model over the residuals of the whole fleet: half-space trees, and running quantiles that make sigmas.

The kernel judges its channels one by one; the model sees their combination and asks how often the fleet has shown such
a one. It costs some 60 us per epoch in Python, so the detector gives it a few epochs per tick (`model_budget`).
Score first, learn after; the detector says what may be learned. Seeded, so the same epochs give the same scores.
"""

from __future__ import annotations

import struct
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

# river's quantile says its state as 21 numbers, how many of its five markers are set, and whether these are sorted.
_QUANTILE = struct.Struct("<21dBB")


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
        # the nodes of all trees and a digest of where they cut, once there are trees
        self._nodes: list[Any] = []
        self._cuts = ""
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

    def snapshot(self) -> dict[str, Any]:
        """The masses of the trees' nodes, the quantiles' markers, and counts. Where the trees cut follows from SEED."""
        self._list_nodes()
        return {
            "learned": self.learned,
            "counter": self._trees.counter,
            "masses": np.array([(node.l_mass, node.r_mass) for node in self._nodes], np.int64).reshape(-1, 2),
            "cuts": self._cuts,
            "quantiles": [_markers(quantile) for quantile in (self._middle, self._high)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError when the trees are not those that this version of river makes."""
        self.learned = state["learned"]
        if self.learned:
            # the first epoch makes the trees; what it adds to them is overwritten
            self._trees.learn_one(dict.fromkeys(self._names, 0.0))
            self._list_nodes()
            if self._cuts != state["cuts"]:
                raise ValueError("half-space trees that cut elsewhere")
            for node, (l_mass, r_mass) in zip(self._nodes, state["masses"].tolist(), strict=True):
                node.l_mass, node.r_mass = l_mass, r_mass
            self._trees.counter = state["counter"]
            self._trees._first_window = self.learned < WINDOW
        for quantile, markers in zip((self._middle, self._high), state["quantiles"], strict=True):
            _set_markers(quantile, markers, updated=self.learned > TREES_READY)

    def _list_nodes(self) -> None:
        if self._trees.trees and not self._nodes:
            self._nodes = [node for tree in self._trees.trees for node in tree.iter_dfs()]
            # what a node asks for and at which value it parts; leaves ask for nothing
            cuts = [(getattr(node, "feature", ""), getattr(node, "threshold", 0.0)) for node in self._nodes]
            self._cuts = blake2b(repr(cuts).encode(), digest_size=8).hexdigest()


def _markers(quantile: Any) -> dict[str, Any]:
    *numbers, count, is_sorted = _QUANTILE.unpack(quantile._quantile.__getstate__())
    return {"numbers": np.array(numbers), "count": count, "sorted": is_sorted}


def _set_markers(quantile: Any, state: dict[str, Any], *, updated: bool) -> None:
    count, is_sorted = state["count"], state["sorted"]
    if not (0 <= count <= 5 and is_sorted in (0, 1)):
        raise ValueError("a quantile with other markers")
    quantile._quantile.__setstate__(_QUANTILE.pack(*state["numbers"].tolist(), count, is_sorted))
    quantile._is_updated = updated
