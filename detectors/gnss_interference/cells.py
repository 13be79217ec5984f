"""Cells of the Earth's surface (H3), for detector.py: who is where, and which cells are affected.

A cell agrees when at least `share` of the aircraft in it that could tell have collapsed. It is affected when the
collapsed aircraft in agreeing cells, it and its neighbours, are at least `min_aircraft` and at least `share` of all
that could tell there, and it agrees itself or is empty. Agreeing cells next to an affected one are affected too, and
so are empty ones between two. So cells with few or no aircraft belong to the interference around them, cells with
healthy ones do not, and wherever there is an affected cell there are `min_aircraft` collapsed aircraft in such cells.

An H3 cell costs a Python call, so only collapsed aircraft are put into cells at once, and then those that a coarse
grid says are near a cell of interest. Everything here depends on the moment alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import h3.api.basic_int as h3
import numpy as np

from watchkeeper.streams.batch import F8, I8, Bool

_EARTH_KM_PER_DEG = 111.2
# The farthest corner of any cell is 1.1 average edges from its centre.
_REACH_EDGES = 1.3
# Cells whose neighbours and shape are remembered: more than have traffic at resolution 4.
_REMEMBERED = 131_072


@lru_cache(_REMEMBERED)
def around(cell: int) -> tuple[int, ...]:
    """The cell and its five or six neighbours."""
    return tuple(h3.grid_disk(cell, 1))


@lru_cache(_REMEMBERED)
def shape(cell: int) -> tuple[float, float, float, float]:
    """Area in km2, and the centre as a unit vector."""
    lat, lon = (math.radians(x) for x in h3.cell_to_latlng(cell))
    area_km2 = float(h3.cell_area(cell, unit="km^2"))
    return area_km2, math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


@dataclass(frozen=True, slots=True)
class Census:
    """Per cell of interest: aircraft that could tell, those of them that collapsed, and the newest report."""

    aircraft: dict[int, int]
    collapsed: dict[int, int]
    newest_t: dict[int, float]
    # affected cells, each with share and number of the collapsed in it and around it; share 0: only next to one
    affected: dict[int, tuple[float, int]]


def _spread(numbers: dict[int, int]) -> dict[int, int]:
    """For each cell the sum over it and its neighbours."""
    near: dict[int, int] = {}
    for cell, n in numbers.items():
        for other in around(cell):
            near[other] = near.get(other, 0) + n
    return near


def _gaps(affected: Iterable[int], empty: set[int]) -> list[int]:
    """Empty cells between affected cells that do not touch each other there."""
    beside: dict[int, list[int]] = {}
    for cell in affected:
        for other in around(cell):
            if other in empty:
                beside.setdefault(other, []).append(cell)
    return [cell for cell, sides in beside.items() if len(components(sides)) > 1]


def components(cells: Iterable[int]) -> list[list[int]]:
    """The cells in groups that hang together, each sorted, in the order of their lowest cells."""
    left = set(cells)
    groups = []
    for start in sorted(left):
        if start not in left:
            continue
        left.remove(start)
        group = [start]
        for cell in group:  # grows while we go
            found = left.intersection(around(cell))
            left -= found
            group += found
        groups.append(sorted(group))
    return groups


class Cells:
    """The cells of one resolution."""

    def __init__(self, resolution: int) -> None:
        self.resolution = resolution
        self.edge_km = float(h3.average_hexagon_edge_length(resolution, unit="km"))
        # a grid whose boxes are at least as high and wide as a cell's radius, at every latitude
        self._box_deg = _REACH_EDGES * self.edge_km / _EARTH_KM_PER_DEG
        rows = math.ceil(180.0 / self._box_deg)
        edges = np.radians(np.minimum(np.arange(rows + 1) * self._box_deg - 90.0, 90.0))
        narrowest = np.minimum(np.cos(edges[:-1]), np.cos(edges[1:]))
        self._boxes: I8 = np.maximum(np.floor(360.0 / self._box_deg * narrowest), 1.0).astype(np.int64)
        self._first: I8 = np.cumsum(self._boxes) - self._boxes
        self._marked: Bool = np.zeros(int(self._boxes.sum()), bool)

    def named(self, names: Iterable[object]) -> set[int]:
        """Those of the names that are cells of this resolution."""
        cells = (int(name, 16) for name in names if isinstance(name, str) and re.fullmatch("[0-9a-f]{15}", name))
        return {c for c in cells if h3.is_valid_cell(c) and h3.get_resolution(c) == self.resolution}

    def census(
        self, lat: F8, lon: F8, t: F8, collapsed: Bool, extents: Iterable[int], min_aircraft: int, share: float
    ) -> Census:
        """Count who is in and around the collapse; `extents` are further cells to count in."""
        cell_of = np.zeros(len(lat), np.int64)
        cell_of[collapsed] = self._cells(lat[collapsed], lon[collapsed])
        low = dict(zip(*(x.tolist() for x in np.unique(cell_of[collapsed], return_counts=True)), strict=True))
        possible = sorted(cell for cell, n in _spread(low).items() if n >= min_aircraft)
        interest = {other for cell in possible for other in around(cell)}
        interest.update(extents)
        aircraft, collapses, newest_t = self._count(lat, lon, t, collapsed, cell_of, interest)
        agree = {cell: n for cell, n in collapses.items() if n and n >= share * aircraft[cell]}
        near = _spread(agree)
        affected: dict[int, tuple[float, int]] = {}
        for cell in possible:
            n = near.get(cell, 0)
            if n >= min_aircraft and (cell in agree or cell not in aircraft):
                ratio = n / sum([aircraft.get(other, 0) for other in around(cell)])
                if ratio >= share:
                    affected[cell] = ratio, n
        beside = {other for cell in affected for other in around(cell)} & agree.keys() - affected.keys()
        affected |= {cell: (0.0, agree[cell]) for cell in beside}
        empty = interest - aircraft.keys() - affected.keys()
        return Census(aircraft, collapses, newest_t, affected | dict.fromkeys(_gaps(affected, empty), (0.0, 0)))

    def _cells(self, lat: F8, lon: F8) -> list[int]:
        return list(map(h3.latlng_to_cell, lat.tolist(), lon.tolist(), repeat(self.resolution)))

    def _count(
        self, lat: F8, lon: F8, t: F8, collapsed: Bool, cell_of: I8, interest: set[int]
    ) -> tuple[dict[int, int], dict[int, int], dict[int, float]]:
        """Aircraft, collapsed ones and newest report in each of these cells where there is anybody."""
        rows = self._near(lat, lon, interest)
        healthy = rows[~collapsed[rows]]
        cell_of[healthy] = self._cells(lat[healthy], lon[healthy])
        cells, at = np.unique(cell_of[rows], return_inverse=True)
        aircraft, collapses = np.bincount(at), np.bincount(at[collapsed[rows]], minlength=len(cells))
        newest = np.full(len(cells), -np.inf)
        np.maximum.at(newest, at, t[rows])
        keys = cells.tolist()
        keep = [i for i, cell in enumerate(keys) if cell in interest]
        return (
            {keys[i]: int(aircraft[i]) for i in keep},
            {keys[i]: int(collapses[i]) for i in keep},
            {keys[i]: float(newest[i]) for i in keep},
        )

    def _near(self, lat: F8, lon: F8, interest: set[int]) -> I8:
        """Rows that may lie in one of these cells: all that do, and some around."""
        if not interest:
            return np.empty(0, np.int64)
        _, x, y, z = np.array([shape(cell) for cell in interest]).T
        home, centre_lon = self._row(np.degrees(np.arcsin(z))), np.degrees(np.arctan2(y, x))
        for up in (-1, 0, 1):
            row = np.clip(home + up, 0, len(self._boxes) - 1)
            column = self._column(row, centre_lon)
            for side in (-1, 0, 1):
                self._marked[self._first[row] + (column + side) % self._boxes[row]] = True
        row = self._row(lat)
        found = np.flatnonzero(self._marked[self._first[row] + self._column(row, lon)])
        self._marked[:] = False
        return found

    def _row(self, lat: F8) -> I8:
        return np.minimum(((lat + 90.0) / self._box_deg).astype(np.int64), len(self._boxes) - 1)

    def _column(self, row: I8, lon: F8) -> I8:
        boxes = self._boxes[row]
        return np.minimum(((lon + 180.0) / 360.0 * boxes).astype(np.int64), boxes - 1)
