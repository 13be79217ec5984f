"""Pairs that are followed for a while after their last conflict, so that their alarms see them pass each other.

The search does not find a pair any more whose prediction has become harmless, just when it is closest or has just been.
Without it an alarm would end with the figures of its last bad moment. Slots and event time; state of the detector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.detectors.conflict.constants import FOLLOW_S
from watchkeeper.streams.batch import F8, I4, I8, Bool

_BITS = 32


class Followed:
    """Pairs of slots, as keys in ascending order, each with the time until which it is followed."""

    def __init__(self) -> None:
        self.key: I8 = np.empty(0, np.int64)
        self.until_t: F8 = np.empty(0)

    def note(self, key: I8, t: float, most: int) -> None:
        """These pairs are in conflict at t. At most so many are followed: those that were in conflict last."""
        if len(self.key) and self.until_t.min() < t:
            kept = self.until_t >= t
            self.key, self.until_t = self.key[kept], self.until_t[kept]
        at, known = _places(self.key, key)
        # a copy, because a snapshot has these
        self.until_t = self.until_t.copy()
        self.until_t[at[known]] = t + FOLLOW_S
        if not known.all():
            key = np.unique(key[~known])
            at = np.searchsorted(self.key, key)
            self.key, self.until_t = np.insert(self.key, at, key), np.insert(self.until_t, at, t + FOLLOW_S)
        if len(self.key) > most:
            last = np.sort(np.lexsort((self.key, -self.until_t))[:most])
            self.key, self.until_t = self.key[last], self.until_t[last]

    def among(self, key: I8) -> Bool:
        """Which of these pairs are followed."""
        return _places(self.key, key)[1]

    def missing(self, key: I8) -> tuple[I4, I4]:
        """The followed pairs that are not among these."""
        if not len(self.key):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        key = self.key[~_places(np.sort(key), self.key)[1]]
        return (key >> _BITS).astype(np.int32), (key & (1 << _BITS) - 1).astype(np.int32)

    def forget(self, slots: I4) -> None:
        """Other aircraft will get these slots."""
        low, high = self.key >> _BITS, self.key & (1 << _BITS) - 1
        kept = ~(np.isin(low, slots) | np.isin(high, slots))
        self.key, self.until_t = self.key[kept], self.until_t[kept]

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        return {"key": self.key, "until_t": self.until_t}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.key, self.until_t = state["key"], state["until_t"]


def _places(ascending: I8, wanted: I8) -> tuple[I8, Bool]:
    """Where each of the wanted keys stands among those that ascend, and whether it is there at all."""
    if not len(ascending):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return at, ascending[at] == wanted


def keys(a: I4, b: I4) -> I8:
    """One number for each pair, whichever of the two comes first."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    return low << _BITS | high
