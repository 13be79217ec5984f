"""Tables with a row for each of many slots, of which few are ever used: memory is taken when a slot is first given out.

Room for 20,000 vehicles and 200,000 pairs would be a hundred megabytes of NaN in a daemon that watches ten drones. The
arrays are as large as they can become, but a page of memory counts only once something was written to it, and what
unused slots are to hold is written when `reach` says that they come into use. Nothing may be read of slots beyond it.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import DTypeLike, NDArray

from watchkeeper.detectors.fleet.tables import zeros

# As many slots are made ready at a time.
CHUNK = 256


class Growing:
    """The tables of one kind of slot. Whoever holds a table keeps it; this only fills it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.ready = 0
        # a table, the place of its slots among its axes, and what a slot of it holds
        self._tables: list[tuple[ref[NDArray[Any]], bool, Any]] = []

    @classmethod
    def whole(cls, slots: int | Growing) -> Growing:
        """Where a number of slots is given: all of them are in use."""
        if isinstance(slots, Growing):
            return slots
        made = cls(slots)
        made.reach(slots)
        return made

    def full(self, value: float, *rows: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of this value; slots are its last axis."""
        table = zeros((*rows, self.capacity), dtype)
        self._tables.append((ref(table), False, value))
        table[..., : self.ready] = value
        return table

    def rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """An array of records, in each slot this one (the array that `records.blank` makes of one)."""
        # a record array is a view, and the view is what is kept
        table = zeros(self.capacity, row.dtype).view(type(row))
        self._tables.append((ref(table), True, row[0]))
        table[: self.ready] = row[0]
        return table

    def reach(self, high: int) -> None:
        """Slots below `high` come into use."""
        if high <= self.ready:
            return
        new = slice(self.ready, min(-(-high // CHUNK) * CHUNK, self.capacity))
        self._tables = [entry for entry in self._tables if entry[0]() is not None]
        for made, first, value in self._tables:
            if (table := made()) is not None:
                table[new if first else (..., new)] = value
        self.ready = new.stop
