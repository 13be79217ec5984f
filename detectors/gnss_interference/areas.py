"""Areas: connected affected cells, each with a name that it keeps. Used by detector.py.

A cell belongs to an area from when it is affected until `hold_s` after it last was. Cells that touch are one area.
From one moment to the next an area goes on where its cells are:
- one that splits goes on in its larger part, the part with more cells affected now; the other part is a new area;
- of several that meet, the oldest goes on and the others end as "merged";
- one whose last cell has been given up ends as "faded".
The name is that of the cell where it began, so it says where to look first.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

import h3.api.basic_int as h3
import numpy as np

from watchkeeper.detectors.base import MAX_PLACES
from watchkeeper.detectors.declaration import Ended
from watchkeeper.detectors.gnss_interference.cells import around, components
from watchkeeper.detectors.gnss_interference.constants import NEWS_SHARE, TREND_S

PREFIX = "h3-"


@dataclass(slots=True)
class Area:
    """One area. Cells that it has: since when, and when last affected. Cells that left it lately: when."""

    name: str
    t_born: float
    since_t: dict[int, float] = field(default_factory=dict)
    last_t: dict[int, float] = field(default_factory=dict)
    left_t: dict[int, float] = field(default_factory=dict)
    told: frozenset[int] = frozenset()

    @property
    def cells(self) -> list[int]:
        """The extent, in order."""
        return sorted(self.last_t)

    def is_news(self) -> bool:
        """True if the extent has changed much since this last was true."""
        changed = len(self.told.symmetric_difference(self.last_t)) > NEWS_SHARE * len(self.told)
        if changed:
            self.told = frozenset(self.last_t)
        return changed


class Areas:
    """All areas there are. `update` brings them to a new moment."""

    def __init__(self, capacity: int = MAX_PLACES) -> None:
        self._capacity = capacity
        self.areas: list[Area] = []
        # areas that would have been one too many, at the last update
        self.refused = 0

    def update(
        self, t: float, affected: dict[int, tuple[float, int]], hold_s: float, away: tuple[float, float] = (0.0, 0.0)
    ) -> dict[str, Ended]:
        """Go on with the cells that are affected now (each with its rank); returns the names that end, and how.

        `away` is a time in which we were not running: it takes nothing from what is held.
        """
        left_t, back_t = away
        old = sorted(self.areas, key=lambda area: (area.t_born, area.name))
        last_t: dict[int, float] = {}
        for area in old:
            for cell, last in area.last_t.items():
                if t - last - max(0.0, back_t - max(last, left_t)) <= hold_s:
                    last_t[cell] = max(last, last_t.get(cell, last))
        last_t.update(dict.fromkeys(affected, t))
        parts = components(last_t)
        part_of = {cell: i for i, part in enumerate(parts) for cell in part}
        live = [sum(cell in affected for cell in part) for part in parts]
        taken: set[int] = set()
        ended: dict[str, Ended] = {}
        self.areas = []
        for area in old:
            overlap: dict[int, int] = {}
            for cell in area.last_t:
                if (i := part_of.get(cell)) is not None:
                    overlap[i] = overlap.get(i, 0) + 1
            free = [i for i in overlap if i not in taken]
            if free:
                best = max(free, key=lambda i: (live[i], overlap[i], -i))
                taken.add(best)
                self.areas.append(_moved(area, t, parts[best], last_t))
            else:
                ended[area.name] = "merged" if overlap else "faded"
        self.refused = 0
        for i, part in enumerate(parts):
            if i not in taken and live[i]:
                self._found(t, part, affected, last_t, ended.keys())
        self.areas.sort(key=lambda area: area.name)
        return ended

    def _found(
        self,
        t: float,
        part: list[int],
        affected: dict[int, tuple[float, int]],
        last_t: dict[int, float],
        ended: Set[str],
    ) -> None:
        """A new area, named after its worst cell; a name that ends at this moment is not given to another."""
        if len(self.areas) >= self._capacity:
            self.refused += 1
            return
        used = {area.name for area in self.areas} | ended
        seeds = sorted((cell for cell in part if cell in affected), key=lambda cell: (affected[cell], -cell))
        # a part that broke off may lie where the rest of its old area was named: then a neighbour gives the name
        names = map(name_of, [*reversed(seeds), *sorted(around(seeds[-1]))])
        name = next((name for name in names if name not in used), None)
        if name is None:
            self.refused += 1
        else:
            self.areas.append(_moved(Area(name, t), t, part, last_t))

    def adopt(self, name: str, t_born: float, t: float, cells: Iterable[int]) -> None:
        """An area that existed at t, before a restart; one that is known already stays as it is."""
        if all(area.name != name for area in self.areas) and len(self.areas) < self._capacity:
            held = dict.fromkeys(cells, t)
            self.areas.append(Area(name, t_born, dict(held), held, {}, frozenset(held)))
            self.areas.sort(key=lambda area: area.name)

    def snapshot(self) -> list[dict[str, Any]]:
        """All areas."""
        return [
            {
                "name": area.name, "t_born": area.t_born, "told": _array(sorted(area.told)),
                "cells": _array(area.cells), "left": _array(list(area.left_t)),
                "since_t": np.array([area.since_t[c] for c in area.cells], np.float64),
                "last_t": np.array([area.last_t[c] for c in area.cells], np.float64),
                "left_t": np.array(list(area.left_t.values()), np.float64),
            }
            for area in self.areas
        ]  # fmt: skip

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Take over a snapshot."""
        self.areas = [
            Area(
                str(a["name"]), float(a["t_born"]),
                _times(a["cells"], a["since_t"]),
                _times(a["cells"], a["last_t"]),
                _times(a["left"], a["left_t"]),
                frozenset(_times(a["told"], np.zeros(len(a["told"])))),
            )
            for a in state
        ]  # fmt: skip


def name_of(cell: int) -> str:
    """The name of an area that began in this cell; one MQTT topic level as it stands.

    >>> name_of(595032474359169023)
    'h3-841fae1ffffffff'
    """
    return PREFIX + str(h3.int_to_str(cell))


def _moved(area: Area, t: float, part: list[int], last_t: dict[int, float]) -> Area:
    """An area that has these cells now."""
    since_t = {cell: area.since_t.get(cell, t) for cell in part}
    left_t = {cell: at for cell, at in area.left_t.items() if t - at <= TREND_S} | dict.fromkeys(area.last_t, t)
    return Area(
        area.name,
        area.t_born,
        since_t,
        {cell: last_t[cell] for cell in part},
        {cell: at for cell, at in left_t.items() if cell not in since_t},
        area.told,
    )


def _times(cells: Any, t: Any) -> dict[int, float]:
    if (cells.dtype, t.dtype) != (np.int64, np.float64):
        raise ValueError("areas whose cells and times are of other types")
    return dict(zip(cells.tolist(), t.tolist(), strict=True))


def _array(cells: list[int]) -> Any:
    return np.array(cells, np.int64)
