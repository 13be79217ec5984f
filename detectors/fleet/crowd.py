"""Who leaves a table that is nearly full: those of whom least is known and who have been silent longest.

Strangers can send a sample under any name. So that they cannot shut others out, a full table makes room at every tick,
long before its members are idle for good: whoever sent one sample may stay a few seconds, whoever sent many a minute.
Used for vehicles (the fleet's slots) and for gateways (engine/gateways.py). It depends on what ticks have taken in and
on names, never on how the input was cut into batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Bool

if TYPE_CHECKING:
    from watchkeeper.detectors.fleet.fleet import Fleet

# This part of a table is kept free for newcomers, so that one tick's worth of them finds room.
FREE_SHARE = 1 / 16
# A member may be silent for so long, and a second more for each sample that it has sent, up to SILENT_MOST_S.
SILENT_LEAST_S = 2.0
SILENT_MOST_S = 60.0
# Ten seconds of a flood of some thousand names a second; a name has at most 128 characters.
WAITING_NAMES = 20_000
# The last free places are for so many sources at least.
SOURCES_AT_ONCE = 8


def room_for(capacity: int) -> int:
    """How many members a table has at most after making room."""
    return capacity - max(1, int(capacity * FREE_SHARE))


class Door:
    """Lets newcomers into a table. When it is nearly full, only names that have come before, and few of one source.

    A flood of invented names would take every place that is made; they come once, others come again. Names that were
    turned away are remembered, the last WAITING_NAMES of them. A source is the gateway that a newcomer came through;
    all that came through none, or through one that found no room, are one source.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._taken: Counter[int] = Counter()

    def opens(self, name: str, free: int, capacity: int, source: int | None = None) -> bool:
        """Whether this newcomer may have one of the free places."""
        kept_free = int(capacity * FREE_SHARE)
        if free > kept_free // 2:
            return True
        # a table so small that nothing of it is kept free takes whoever comes first
        if name not in self._waiting and kept_free:
            if len(self._waiting) >= WAITING_NAMES:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[name] = None
            return False
        if not free:
            return False
        if source is not None:
            if self._taken[source] >= max(1, kept_free // SOURCES_AT_ONCE):
                return False
            self._taken[source] += 1
        self._waiting.pop(name, None)
        return True

    def tick(self, free: int, capacity: int) -> None:
        """A tick has made room, or has not: once there is some, every source may bring newcomers again."""
        if free > int(capacity * FREE_SHARE) // 2:
            self._taken.clear()

    def snapshot(self) -> dict[str, Any]:
        """All state."""
        return {"waiting": list(self._waiting), "taken": list(self._taken.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._waiting = dict.fromkeys(state["waiting"])
        self._taken = Counter(dict(state["taken"]))


def leavers(silent_s: F8, samples: I8, may_leave: Bool, names: Sequence[str], count: int) -> I4:
    """The members that leave, at most `count`: longest silent for what they have sent first."""
    patience_s = np.minimum(SILENT_MOST_S, SILENT_LEAST_S + samples)
    candidates = np.flatnonzero(may_leave & (silent_s >= patience_s))
    if len(candidates) > count:
        rank = silent_s[candidates] / patience_s[candidates]
        # equal ones by name: numbers of slots depend on who came first within a batch
        places = zip((-rank).tolist(), (names[i] for i in candidates.tolist()), range(len(rank)), strict=True)
        candidates = candidates[[place for _, _, place in sorted(places)[:count]]]
    return np.sort(candidates).astype(np.int32)


def crowded_out(fleet: Fleet, t: float, spared: Iterable[str]) -> I4:
    """The slots to forget at time t for want of room; never declared ones, nor those of `spared` names."""
    if len(fleet) <= room_for(fleet.capacity):
        return np.empty(0, np.int32)
    h = fleet.high
    heard_t = fleet.last_t[:, :h].max(axis=0)
    heard = heard_t > -np.inf
    surplus = int(heard.sum()) - room_for(fleet.capacity)
    if surplus <= 0:
        return np.empty(0, np.int32)
    may_leave = heard & ~fleet.declared.kept[:h]
    may_leave[[fleet.slot_of[name] for name in spared if name in fleet.slot_of]] = False
    return leavers(t - heard_t, fleet.count[:, :h].sum(axis=0), may_leave, fleet.ids, surplus)
