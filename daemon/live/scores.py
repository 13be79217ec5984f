"""The newest scores, for people: what each detector last said about each vehicle, over its threshold.

Fed with each tick's evidence (the pipeline's `on_evidence`) while somebody is watching, and not otherwise. Nothing here
decides anything: alarms come from the pipeline alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.streams.batch import F8, I8, U1

NO_KIND = 255
# A score that was not repeated for so long says nothing about now.
FRESH_S = 5.0

F4 = NDArray[np.float32]


def vehicle_kinds() -> tuple[str, ...]:
    """Alarm kinds whose subject is a vehicle, in the order of the picture's column `worst`."""
    declared = [detector.declaration for detector in REGISTRY.values()]
    return tuple(kind.name for d in declared if d.subjects == "vehicle" for kind in d.kinds)


class Scores:
    """`ratio[kind, slot]` is the newest score over its threshold, `t` when that was; `latest` each kind's evidence."""

    def __init__(self, capacity: int) -> None:
        self.kinds = vehicle_kinds()
        self.latest: dict[str, Evidence] = {}
        self.ratio: F4 = np.full((len(self.kinds), capacity), np.nan, np.float32)
        self.t: F8 = np.full((len(self.kinds), capacity), -np.inf)

    def take(self, _window: Window, evidence: list[Evidence]) -> None:
        """One tick's evidence, sorted by subject and epoch: of several rows about a vehicle the newest stays."""
        for found in evidence:
            self.latest[found.kind] = found
            if found.kind in self.kinds:
                row = self.kinds.index(found.kind)
                self.ratio[row, found.a] = found.score / found.threshold
                self.t[row, found.a] = found.t

    def worst(self, slot: I8, t: float) -> tuple[F4, U1]:
        """The highest fresh ratio of each of these vehicles (NaN: none), and its kind."""
        fresh = np.where(t - self.t[:, slot] <= FRESH_S, self.ratio[:, slot], np.nan)
        filled = np.where(np.isnan(fresh), -np.inf, fresh)
        kind = filled.argmax(axis=0)
        highest = filled.max(axis=0)
        known = highest > -np.inf
        return np.where(known, highest, np.nan).astype(np.float32), np.where(known, kind, NO_KIND).astype(np.uint8)
