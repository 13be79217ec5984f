"""Who is in the fleet, as Front counts them: the caps on vehicles mean the same however many operators there are.

A vehicle comes with its first admitted sample and goes after `evict_idle_s`, as in the fleet of each operator. When the
fleet is nearly full, the rules of detectors/fleet/crowd.py hold: names that come once are turned away, and those leave
of whom least is known. Front does not know who has an alarm; whoever does tells it (`spared`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.fleet.crowd import Door, leavers, room_for
from watchkeeper.detectors.fleet.declared import Declared
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.split import bucket_of

# From this part of its capacity on, a fleet may be full within a few batches.
FILLING = 0.75


class Roster:
    """`slot_of[name]` of each vehicle, counted from 0; what is known of it is by slot."""

    def __init__(self, config: Config) -> None:
        self.capacity, self._idle_s = config.fleet.max_vehicles, config.fleet.evict_idle_s
        self.slot_of: dict[str, int] = {}
        self.door = Door()
        self.spared: set[str] = set()
        self._kept: set[str] = set()
        self._names: list[str] = [""] * self.capacity
        self._newest_t: F8 = np.full(self.capacity, -np.inf)
        self._samples: I8 = np.zeros(self.capacity, np.int64)
        # who has sent something that is judged across vehicles, and everybody's bucket
        self.across: Bool = np.zeros(self.capacity, bool)
        self._bucket: I4 = np.zeros(self.capacity, np.int32)
        self._free: list[int] = []
        self.declare(config)

    def declare(self, config: Config) -> None:
        """Those that the configuration names are here, heard or not."""
        self._kept = set(Declared(config.topology, 1).by_name)
        for name in sorted(self._kept - set(self.slot_of)):
            self._enter(name)

    def __len__(self) -> int:
        return len(self.slot_of)

    @property
    def filling(self) -> bool:
        """Whether so many are here that somebody may have to leave soon."""
        return len(self.slot_of) > FILLING * self.capacity

    def slots(self, names: list[str], vid: I4, via: I4, t: F8) -> I4:
        """The slots of samples, by place in `names`; -1 where a vehicle finds no room."""
        slot_of_vid = np.array([*map(self.slot_of.get, names, repeat(-1))], np.int32)
        if (slot_of_vid < 0).any():
            source = np.full(len(names), -2)
            source[vid] = via
            for i in np.flatnonzero((source > -2) & (slot_of_vid < 0)).tolist():
                slot_of_vid[i] = self._newcomer(names[i], int(source[i]))
        slot: I4 = slot_of_vid[vid]
        _hear(slot, t, self._newest_t, self._samples)
        return slot

    def _newcomer(self, name: str, source: int) -> int:
        free = self.capacity - len(self.slot_of)
        if not free or not self.door.opens(name, free, self.capacity, source):
            return -1
        return self._enter(name)

    def _enter(self, name: str) -> int:
        slot = self._free.pop() if self._free else len(self.slot_of)
        self.slot_of[name], self._names[slot] = slot, name
        self._bucket[slot] = bucket_of(name)
        return slot

    def places(self, names: list[str]) -> tuple[I4, Bool]:
        """The bucket of each name, and whether it is one of those that are judged across vehicles."""
        slot = np.array([*map(self.slot_of.get, names, repeat(-1))], np.int32)
        bucket, across = self._bucket[slot], self.across[slot]
        for i in np.flatnonzero(slot < 0).tolist():
            bucket[i], across[i] = bucket_of(names[i]), False
        return bucket, across

    def evict(self, t: float) -> None:
        """Vehicles that were not heard for too long are gone; operators see that for themselves."""
        self._leave(
            [s for n, s in self.slot_of.items() if self._newest_t[s] < t - self._idle_s and n not in self._kept]
        )

    def make_room(self, t: float) -> list[str]:
        """Who has to leave at time t, for want of room."""
        self.door.tick(self.capacity - len(self), self.capacity)
        surplus = len(self) - room_for(self.capacity)
        if surplus <= 0:
            return []
        stays = self._kept | self.spared
        may_leave = np.array([bool(name) and name not in stays for name in self._names])
        gone = leavers(t - self._newest_t, self._samples, may_leave, self._names, surplus).tolist()
        names = [self._names[slot] for slot in gone]
        self._leave(gone)
        return names

    def _leave(self, slots: Iterable[int]) -> None:
        for slot in slots:
            del self.slot_of[self._names[slot]]
            self._names[slot], self._newest_t[slot], self._samples[slot] = "", -np.inf, 0
            self.across[slot] = False
            self._free.append(slot)

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        slots = list(self.slot_of.values())
        return {
            "names": list(self.slot_of), "newest_t": self._newest_t[slots], "samples": self._samples[slots],
            "across": self.across[slots], "door": self.door.snapshot(), "spared": sorted(self.spared),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot into a new one."""
        names = state["names"]
        self.slot_of = {name: slot for slot, name in enumerate(names)}
        self._names = [*names, *repeat("", self.capacity - len(names))]
        self._free = []
        self._newest_t[: len(names)], self._samples[: len(names)] = state["newest_t"], state["samples"]
        self.across[: len(names)] = state["across"]
        self._bucket[: len(names)] = [*map(bucket_of, names)]
        self.door.restore(state["door"])
        self.spared = set(state["spared"])


@njit(cache=True)
def _hear(slot: I4, t: F8, newest_t: F8, samples: I8) -> None:
    """Samples of those who found room."""
    for i in range(slot.size):
        s = slot[i]
        if s >= 0:
            newest_t[s] = max(newest_t[s], t[i])
            samples[s] += 1
