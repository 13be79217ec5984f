"""Who an alarm is about: one vehicle, a pair of them, or a named place. Each subject being watched has a cell.

The debouncer counts per cell and knows nothing else. A vehicle's cell is its slot in the fleet. Pairs and places get
a cell when evidence first names them and give it back when nothing is left to watch. A Watch owns one of these.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from watchkeeper.detectors.base import MAX_PLACES, Evidence
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.growing import Growing
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.messages import Kind

NO_CELLS: I4 = np.empty(0, np.int32)

K = TypeVar("K")


class Subjects(Protocol):
    """The cells of one alarm kind. Cells below `high` have been used at some time; -1 is no cell."""

    growing: Growing
    """Tables with a row for each cell."""

    @property
    def high(self) -> int:
        """One more than the highest cell in use."""
        ...

    def cells(self, evidence: Evidence) -> I4:
        """The cell of each row; -1 where there is no room."""
        ...

    def names(self, cell: int) -> tuple[str, ...]:
        """Whose cell this is, as alarms name it."""
        ...

    def find(self, names: tuple[str, ...]) -> int:
        """The cell of a subject that is being watched, or -1."""
        ...

    def claim(self, names: tuple[str, ...], t: float) -> int:
        """A cell for the subject of an alarm that was active at t, before a restart; -1 when there is no room."""
        ...

    @property
    def watches(self) -> bool:
        """Whether there are cells that can be given back."""
        ...

    def watched(self) -> I4:
        """Cells that can be given back with `release`."""
        ...

    def release(self, cells: I4) -> None:
        """Nothing is left to watch here."""
        ...

    def of_vehicles(self, slots: I4) -> I4:
        """Cells of all subjects that one of these vehicles is part of."""
        ...

    def heard_t(self, cells: I4) -> F8:
        """When each subject was last heard; -inf if that cannot be said."""
        ...

    def repeats(self, cells: I4, since_t: F8, t: float) -> Bool:
        """Whether an active alarm, raised at `since_t`, is worth repeating at t."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Whose cell is whose."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        ...


class Vehicles:
    """Single vehicles: the fleet's slots are the cells, and the fleet says who comes and goes."""

    def __init__(self, fleet: Fleet) -> None:
        self.growing = fleet.growing
        self._fleet = fleet

    @property
    def high(self) -> int:
        """See Subjects."""
        return self._fleet.high

    def cells(self, evidence: Evidence) -> I4:
        """See Subjects."""
        return evidence.a

    def names(self, cell: int) -> tuple[str, ...]:
        """See Subjects."""
        return (self._fleet.ids[cell],)

    def find(self, names: tuple[str, ...]) -> int:
        """See Subjects."""
        return self._fleet.slot_of.get(names[0], -1)

    def claim(self, names: tuple[str, ...], t: float) -> int:
        """See Subjects."""
        return _slot(self._fleet, names[0], t)

    @property
    def watches(self) -> bool:
        """Never: a slot belongs to the fleet."""
        return False

    def watched(self) -> I4:
        """None: a slot belongs to the fleet."""
        return NO_CELLS

    def release(self, cells: I4) -> None:
        """Nothing to give back."""

    def of_vehicles(self, slots: I4) -> I4:
        """See Subjects."""
        return slots

    def heard_t(self, cells: I4) -> F8:
        """See Subjects."""
        heard: F8 = self._fleet.last_t[:, cells].max(axis=0)
        return heard

    def repeats(self, cells: I4, since_t: F8, t: float) -> Bool:
        """Not of a vehicle unheard for so long that any but a declared one would be forgotten: there is no news."""
        return t - np.maximum(self.heard_t(cells), since_t) <= self._fleet.evict_idle_s

    def snapshot(self) -> dict[str, Any]:
        """Nothing that the fleet does not save."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing that the fleet does not restore."""


class _Given(Generic[K]):
    """Cells given out by key, lowest first, and taken back; `refused` counts keys that found the table full."""

    def __init__(self, capacity: int) -> None:
        self.growing = Growing(capacity)
        self.cell_of: dict[K, int] = {}
        self.high = 0
        self.refused = 0
        self._free: list[int] = []

    def cell(self, key: K) -> int:
        """A key's cell, given out on first sight; -1 (counted) when the table is full."""
        cell = self.cell_of.get(key)
        if cell is not None:
            return cell
        if self._free:
            cell = self._free.pop()
        elif self.high < self.growing.capacity:
            cell = self.high
            self.high += 1
            self.growing.reach(self.high)
        else:
            self.refused += 1
            return -1
        self.cell_of[key] = cell
        self._enter(cell, key)
        return cell

    def _enter(self, cell: int, key: K) -> None:
        raise NotImplementedError

    def repeats(self, cells: I4, since_t: F8, t: float) -> Bool:  # noqa: ARG002
        """Always: evidence about these comes with reports."""
        return np.ones(len(cells), bool)

    @property
    def watches(self) -> bool:
        """See Subjects."""
        return bool(self.cell_of)

    def watched(self) -> I4:
        """All cells in use."""
        return np.fromiter(self.cell_of.values(), np.int32, len(self.cell_of))

    def _given(self) -> dict[str, Any]:
        """Which cells are in use and which are free, in the order in which they were given out and came back."""
        cells = {"high": self.high, "used": self.watched(), "free": np.array(self._free, np.int32)}
        return {**cells, "refused": self.refused}

    def _give(self, state: dict[str, Any], keys: list[K]) -> None:
        """Take over a snapshot; with less room than then the cells that there are no more are left out."""
        used, capacity = zip(keys, state["used"].tolist(), strict=True), self.growing.capacity
        self.high, self.refused = min(state["high"], capacity), state["refused"]
        self.growing.reach(self.high)
        self._free = [cell for cell in state["free"].tolist() if cell < capacity]
        self.cell_of = {key: cell for key, cell in used if cell < capacity}
        for key, cell in self.cell_of.items():
            self._enter(cell, key)


class Pairs(_Given[tuple[int, int]]):
    """Pairs of vehicles, by their slots in the order that the evidence has them."""

    def __init__(self, fleet: Fleet, capacity: int) -> None:
        super().__init__(capacity)
        self._fleet = fleet
        self.a: I4 = self.growing.full(-1, dtype=np.int32)
        self.b: I4 = self.growing.full(-1, dtype=np.int32)

    def _enter(self, cell: int, key: tuple[int, int]) -> None:
        self.a[cell], self.b[cell] = key

    def cells(self, evidence: Evidence) -> I4:
        """See Subjects."""
        assert evidence.b is not None
        pairs = list(zip(evidence.a.tolist(), evidence.b.tolist(), strict=True))
        cells = np.array(list(map(self.cell_of.get, pairs, repeat(-1))), np.int32)
        # under the threshold there is nothing to begin to watch
        for row in np.flatnonzero((cells < 0) & (evidence.score >= evidence.threshold)).tolist():
            cells[row] = self.cell(pairs[row])
        return cells

    def names(self, cell: int) -> tuple[str, ...]:
        """See Subjects."""
        a, b = self._fleet.ids[self.a[cell]], self._fleet.ids[self.b[cell]]
        return (a, b) if a < b else (b, a)

    def find(self, names: tuple[str, ...]) -> int:
        """See Subjects."""
        slot_of = self._fleet.slot_of
        return self.cell_of.get((slot_of.get(names[0], -1), slot_of.get(names[1], -1)), -1)

    def claim(self, names: tuple[str, ...], t: float) -> int:
        """See Subjects."""
        a, b = (_slot(self._fleet, name, t) for name in names)
        return self.cell((a, b)) if min(a, b) >= 0 else -1

    def release(self, cells: I4) -> None:
        """See Subjects."""
        if not len(cells):
            return
        for cell in cells.tolist():
            del self.cell_of[int(self.a[cell]), int(self.b[cell])]
            self._free.append(cell)
        self.a[cells] = self.b[cells] = -1

    def of_vehicles(self, slots: I4) -> I4:
        """See Subjects."""
        h = self.high
        return np.flatnonzero(np.isin(self.a[:h], slots) | np.isin(self.b[:h], slots)).astype(np.int32)

    def heard_t(self, cells: I4) -> F8:
        """See Subjects: the newest ADS-B report of either aircraft."""
        last_t = self._fleet.last_t[Kind.ADSB]
        newest: F8 = np.maximum(last_t[self.a[cells]], last_t[self.b[cells]])
        return newest

    def snapshot(self) -> dict[str, Any]:
        """See Subjects."""
        used = self.watched()
        return {**self._given(), "a": self.a[used], "b": self.b[used]}

    def restore(self, state: dict[str, Any]) -> None:
        """See Subjects."""
        self._give(state, list(zip(state["a"].tolist(), state["b"].tolist(), strict=True)))


class Places(_Given[str]):
    """Places on the map, by the names that their detector gives them. No vehicle is part of one."""

    def __init__(self, capacity: int = MAX_PLACES) -> None:
        super().__init__(capacity)
        self._names: list[str] = [""] * capacity

    def _enter(self, cell: int, key: str) -> None:
        self._names[cell] = key

    def cells(self, evidence: Evidence) -> I4:
        """See Subjects."""
        return np.array([self.cell(evidence.places[i]) for i in evidence.a.tolist()], np.int32)

    def names(self, cell: int) -> tuple[str, ...]:
        """See Subjects."""
        return (self._names[cell],)

    def find(self, names: tuple[str, ...]) -> int:
        """See Subjects."""
        return self.cell_of.get(names[0], -1)

    def claim(self, names: tuple[str, ...], t: float) -> int:  # noqa: ARG002  a place is not heard, so t says nothing
        """See Subjects."""
        return self.cell(names[0])

    def release(self, cells: I4) -> None:
        """See Subjects."""
        for cell in cells.tolist():
            del self.cell_of[self._names[cell]]
            self._names[cell] = ""
            self._free.append(cell)

    def of_vehicles(self, slots: I4) -> I4:  # noqa: ARG002
        """None: vehicles leave, the place stays where it is."""
        return NO_CELLS

    def heard_t(self, cells: I4) -> F8:
        """Not known: only the evidence says whom it heard there."""
        return np.full(len(cells), -np.inf)

    def snapshot(self) -> dict[str, Any]:
        """See Subjects."""
        return {**self._given(), "names": list(self.cell_of)}

    def restore(self, state: dict[str, Any]) -> None:
        """See Subjects."""
        self._give(state, state["names"])


def _slot(fleet: Fleet, name: str, t: float) -> int:
    """The slot of a vehicle that had an alarm at t; kept for it until it has been unheard for long."""
    slot = fleet.slot_for(name)
    if slot >= 0:
        fleet.expected_t[slot] = max(fleet.expected_t[slot], t)
    return slot
