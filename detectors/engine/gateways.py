"""Gateways by number: those that are declared first, then those that samples name as their `via`, as they come.

A gateway keeps its number as long as it is known. At most `limit` are: when the table is nearly full, those leave that
were heard least and longest ago, and only names get in that have come before (fleet/crowd.py): names that strangers
invent cannot shut others out. Declared ones stay.
Samples through a gateway that found no room count as having come through none, and are counted.

Whoever keeps state by number is told of numbers that are given up (`Pipeline._evict`): LinkStats.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np

from watchkeeper.detectors.fleet.crowd import Door, leavers, room_for
from watchkeeper.streams.batch import F8, I4, I8, Bool


class Gateways:
    """`number[name]` of each, counted from 0; `names[number]` the other way, empty where a number is free."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.names: list[str] = []
        self.refused = 0
        """Names in batches that found no room."""
        self._free: list[int] = []
        self._declared: set[str] = set()
        self.door = Door()
        # by number: the last tick with a sample, the newest sample that is on its way, and samples so far
        self._heard_t: F8 = np.empty(0)
        self._expected_t: F8 = np.empty(0)
        self._samples: I8 = np.empty(0, np.int64)

    def declare(self, names: Iterable[str], limit: int) -> None:
        """These are declared now: they have a number, heard or not, and keep it."""
        self._declared = set(names)
        self.know(names, limit)

    def know(self, names: Iterable[str], limit: int) -> None:
        """Number those that have no number yet."""
        for name in names:
            if name in self.number:
                continue
            if name not in self._declared and not self.door.opens(name, limit - len(self.number), limit):
                self.refused += 1
                continue
            if self._free:
                number = heapq.heappop(self._free)
                self.names[number] = name
            else:
                number = len(self.names)
                self.names.append(name)
            self.number[name] = number

    def translate(self, vias: list[str], via: I4) -> I4:
        """Our numbers for indices into a batch's names; -1 is none."""
        if not vias:
            return via
        numbers = np.array([self.number.get(name, -1) for name in vias] + [-1], np.int32)
        mapped: I4 = numbers[via]  # -1 picks the last entry: none
        return mapped

    def expect(self, vias: list[str], via: I4, t: F8) -> I4:
        """The same for samples that are on their way here, so that their numbers are not given away meanwhile."""
        numbers = self.translate(vias, via)
        if vias:
            self._grow()
            named = numbers >= 0
            np.maximum.at(self._expected_t, numbers[named], t[named])
        return numbers

    def _grow(self) -> None:
        new = len(self.names) - len(self._heard_t)
        if new > 0:
            self._heard_t = np.concatenate((self._heard_t, np.full(new, -np.inf)))
            self._expected_t = np.concatenate((self._expected_t, np.full(new, -np.inf)))
            self._samples = np.concatenate((self._samples, np.zeros(new, np.int64)))

    # -- at each tick ---------------------------------------------------------------------------------------

    def hear(self, via: I4, t: float) -> None:
        """Samples of the tick that ends at t came through these."""
        self._grow()
        n = len(self.names)
        if n and len(via):
            counts = np.bincount(via[via >= 0], minlength=n)[:n]
            self._heard_t[:n][counts > 0] = t
            self._samples[:n] += counts

    def crowded_out(self, t: float, limit: int) -> I4:
        """The numbers that are to be given up at time t for want of room."""
        if len(self.number) <= room_for(limit):
            return np.empty(0, np.int32)
        self._grow()
        n = len(self.names)
        heard: Bool = self._samples[:n] > 0
        may_leave = heard & np.array([name != "" and name not in self._declared for name in self.names[:n]])
        surplus = int(heard.sum()) - room_for(limit)
        gone = leavers(t - self._heard_t[:n], self._samples[:n], may_leave, self.names, max(0, surplus))
        # names that came with samples that were all refused have left nothing behind
        unheard = [i for i in range(n) if not heard[i] and self.names[i] and self.names[i] not in self._declared]
        return np.union1d(gone, unheard).astype(np.int32)

    def forget(self, numbers: I4, t: float) -> None:
        """Nothing is known of these any more; a number becomes free unless something newer than t is on its way."""
        self._samples[numbers] = 0
        self._heard_t[numbers] = -np.inf
        for number in numbers[self._expected_t[numbers] <= t].tolist():
            self._expected_t[number] = -np.inf
            del self.number[self.names[number]]
            self.names[number] = ""
            heapq.heappush(self._free, number)

    # -- life beyond one process ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All state."""
        return {
            "names": self.names, "heard_t": self._heard_t, "expected_t": self._expected_t, "samples": self._samples,
            "refused": self.refused, "door": self.door.snapshot(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. `number` stays the same object: others hold it."""
        self.names = list(state["names"])
        self.number.clear()
        self.number.update((name, i) for i, name in enumerate(self.names) if name)
        self._free = [i for i, name in enumerate(self.names) if not name]
        self._heard_t, self._samples = np.array(state["heard_t"]), np.array(state["samples"], np.int64)
        self._expected_t, self.refused = np.array(state["expected_t"]), state["refused"]
        self.door.restore(state["door"])
