"""One aircraft under two addresses: recognised, and taken out of the pairs before anything is predicted of them.

Ground stations send what their radar sees, and what other data links carry (TIS-B, ADS-R), under addresses that are
not the aircraft's own; receivers write these with a `~`. An aircraft that is heard itself too is there twice, a few
hundred feet from itself, and that looks like the worst loss of separation there is.

A pair is one aircraft when one of its ids is not an aircraft's own and, as far back as both are known (up to
LOOK_BACK_S), they were never further apart than an old report and the error of a radar explain. Velocities say nothing:
those of a radar follow a turn seconds later. A real neighbour came from somewhere: it was seen at a distance first, and
then the pair is not joined; nor is a pair that has been in conflict (the detector's `followed`). With altitudes that
disagree it takes a long and close common way. Called by the detector with the pairs of a tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import AROUND, ONE_FT, ONE_LONG_S, ONE_M, ONE_NEAR_M
from watchkeeper.detectors.conflict.hindsight import Hindsight
from watchkeeper.streams.batch import I4, I8, U1, Bool

# Receivers write an address that is not the aircraft's own with this in front.
NOT_OWN = "~"
_UNKNOWN, _OWN, _NOT = 0, 1, 2


class Ghosts:
    """Which slots have an id that is not an aircraft's own: worked out once for each."""

    def __init__(self, capacity: int, hindsight: Hindsight) -> None:
        self._whose: U1 = np.zeros(capacity, np.uint8)
        self._hindsight = hindsight

    def forget(self, slots: I4 | slice) -> None:
        """Other aircraft will get these slots."""
        self._whose[slots] = _UNKNOWN

    def among(self, pairs: NDArray[Any], state: NDArray[Any], row_of: I4, ids: Sequence[str], t: float) -> I8:
        """The rows of these pairs that are one aircraft each."""
        # a turn takes the predicted places apart, so those count only where nothing else is known
        rows = np.flatnonzero(pairs["now_m"] < AROUND * ONE_M)
        if not len(rows):
            return rows
        rows = rows[self._not_own(pairs["a"][rows], ids) | self._not_own(pairs["b"][rows], ids)]
        if not len(rows):
            return rows
        a, b = pairs["a"][rows], pairs["b"][rows]
        far_m, common_s = self._hindsight.farthest(a, b, t)
        far_m = np.where(common_s > 0.0, far_m, pairs["now_m"][rows])
        level = ~(np.abs(state["alt_ft"][row_of[a]] - state["alt_ft"][row_of[b]]) > ONE_FT)
        close = (far_m <= ONE_NEAR_M) & (common_s >= ONE_LONG_S)
        one_aircraft: I8 = rows[(level & (far_m <= ONE_M)) | close]
        return one_aircraft

    def _not_own(self, slots: I4, ids: Sequence[str]) -> Bool:
        for slot in slots[self._whose[slots] == _UNKNOWN].tolist():
            self._whose[slot] = _NOT if ids[slot].startswith(NOT_OWN) else _OWN
        found: Bool = self._whose[slots] == _NOT
        return found
