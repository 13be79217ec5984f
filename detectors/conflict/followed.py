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

    def note(self, a: I4, b: I4, t: float, most: int) -> None:
        """These pairs are in conflict at t. At most so many are followed: those that were in conflict last."""
        key = np.concatenate((self.key[self.until_t >= t], keys(a, b)))
        until_t = np.concatenate((self.until_t[self.until_t >= t], np.full(len(a), t + FOLLOW_S)))
        order = np.lexsort((-until_t, key))
        key, until_t = key[order], until_t[order]
        first = np.append(True, np.diff(key) != 0)[: len(key)]
        self.key, self.until_t = key[first], until_t[first]
        if len(self.key) > most:
            last = np.sort(np.lexsort((self.key, -self.until_t))[:most])
            self.key, self.until_t = self.key[last], self.until_t[last]

    def among(self, a: I4, b: I4) -> Bool:
        """Which of these pairs are followed."""
        if not len(self.key):
            return np.zeros(len(a), np.bool_)
        key = keys(a, b)
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        same: Bool = self.key[at] == key
        return same

    def missing(self, a: I4, b: I4) -> tuple[I4, I4]:
        """The followed pairs that are not among these."""
        if not len(self.key):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        key = np.setdiff1d(self.key, keys(a, b), assume_unique=True)
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


def keys(a: I4, b: I4) -> I8:
    """One number for each pair, whichever of the two comes first."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    return low << _BITS | high
