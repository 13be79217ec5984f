"""Which row of a report's tables a fleet slot belongs to: one row per vehicle that was ever heard.

Slots are given to other vehicles when one is forgotten; rows never are. Beyond `most` vehicles nobody gets a row any
more, and `without` counts them.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import I4, I8


class Rows:
    """Vehicles by row."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self._most = most
        self._row_of: dict[str, int] = {}
        self._row: I8 = np.empty(0, np.int64)
        self._key = np.empty(0, np.uint64)
        self._left_out: set[str] = set()

    @property
    def without(self) -> int:
        """Vehicles that found no row."""
        return len(self._left_out)

    def of(self, fleet: Fleet, slot: I4) -> I8:
        """The rows of these slots, -1 for a vehicle without one."""
        if len(self._row) < fleet.high:
            more = fleet.high - len(self._row)
            self._row = np.concatenate((self._row, np.full(more, -1)))
            self._key = np.concatenate((self._key, np.zeros(more, np.uint64)))
        # names longer than their key are looked at each time, the others when their key is another one
        doubtful = (self._key[slot] != fleet.id_key[slot]) | fleet.id_cut[slot]
        for s in np.unique(slot[doubtful]).tolist():
            self._row[s], self._key[s] = self._find(fleet.ids[s]), fleet.id_key[s]
        return self._row[slot]

    def get(self, name: str) -> int:
        """The row of a vehicle by name, -1 when it has none."""
        return self._row_of.get(name, -1)

    def _find(self, name: str) -> int:
        row = self._row_of.get(name)
        if row is None:
            if len(self.names) >= self._most:
                self._left_out.add(name)
                return -1
            row = self._row_of[name] = len(self.names)
            self.names.append(name)
        return row
