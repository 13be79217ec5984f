"""Who is in which slot, for the live page: ids and callsigns are told once, then only where something changed.

Each slot carries the number of the change that it last had, so everybody watching gets exactly what is new to them,
whenever they are ready for it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import I8


class Roster:
    """The names of one fleet. `version` counts the changes; 0 is before the first."""

    def __init__(self) -> None:
        self.version = 0
        self._ids: list[str] = []
        self._callsigns: list[str] = []
        self._changed: I8 = np.zeros(0, np.int64)

    def update(self, fleet: Fleet) -> None:
        """See who came, went or is called otherwise since the last time."""
        ids = fleet.ids[: fleet.high]
        callsigns = [name or "" for name in map(fleet.callsigns.get, ids)]
        if ids == self._ids and callsigns == self._callsigns:
            return
        self.version += 1
        before = len(self._ids)
        changed = np.full(len(ids), self.version, np.int64)
        changed[:before] = self._changed
        for new, old in ((ids, self._ids), (callsigns, self._callsigns)):
            differs = np.fromiter(map(operator.ne, new, old), np.bool_, before)
            changed[:before][differs] = self.version
        self._ids, self._callsigns, self._changed = ids, callsigns, changed

    def since(self, version: int) -> dict[str, Any]:
        """What somebody who knows `version` has to be told; an empty id: that slot is free."""
        slots = np.flatnonzero(self._changed > version).tolist()
        return {
            "slots": slots,
            "ids": [self._ids[slot] for slot in slots],
            "callsigns": [self._callsigns[slot] for slot in slots],
        }
