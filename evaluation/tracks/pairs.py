"""Which generated trajectory is held against which real one: those that begin and end in the same cells of a grid.

The grid covers the real data alone, so that a cell has the same number in the evaluation of every model. Ends of
generated trajectories outside of it count as in the nearest cell; how many were is said. A cell has the number
x * height + y. Within an origin and destination the first real one goes with the first generated one, and so on.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from watchkeeper.evaluation.tracks.set import Tracks, wrapped
from watchkeeper.streams.batch import F8, I8, Bool

GRID_SIZE_DEG = 0.001
# The number of each trajectory of enough points, with its cells of origin and destination.
Ends: TypeAlias = list[tuple[int, tuple[int, int]]]
# With fewer points there is no way from an origin to a destination.
LEAST_POINTS = 2


@dataclass(frozen=True, slots=True)
class Grid:
    """Square cells in degrees from a south-western corner."""

    lat_min: float
    lon_min: float
    lat_max: float
    lon_max: float
    """More than 180 where the area reaches across the antimeridian."""
    size_deg: float

    @property
    def height(self) -> int:
        """Cells from south to north."""
        return math.ceil((self.lat_max - self.lat_min) / self.size_deg) + 1

    @property
    def width(self) -> int:
        """Cells from west to east."""
        return math.ceil((self.lon_max - self.lon_min) / self.size_deg) + 1

    def cells(self, lat: F8, lon: F8) -> I8:
        """The number of the cell that each point is in, or is nearest to."""
        x = np.floor((self._near(lon) - self.lon_min) / self.size_deg).clip(0, self.width - 1)
        y = np.floor((lat - self.lat_min) / self.size_deg).clip(0, self.height - 1)
        numbers: I8 = x.astype(np.int64) * self.height + y.astype(np.int64)
        return numbers

    def outside(self, lat: F8, lon: F8) -> Bool:
        """Which points are not in the area."""
        lon = self._near(lon)
        within: Bool = (self.lat_min <= lat) & (lat <= self.lat_max) & (self.lon_min <= lon) & (lon <= self.lon_max)
        return ~within

    def _near(self, lon: F8) -> F8:
        """Longitudes counted so that they are at most half a turn from the middle of the area."""
        lon, middle = wrapped(lon), 0.5 * (self.lon_min + self.lon_max)
        return np.where(lon - middle < -180.0, lon + 360.0, np.where(lon - middle >= 180.0, lon - 360.0, lon))


@dataclass(frozen=True, slots=True)
class Matching:
    """Pairs of (real, generated) in the order of the real ones, with the cells of origin and destination of each."""

    grid: Grid
    pairs: I8
    od: I8
    dropped_real: int
    dropped_gen: int
    """Trajectories with fewer than LEAST_POINTS points."""
    clamped_gen: int
    """Generated trajectories with an end outside of the grid."""
    ends_real: Ends
    ends_gen: Ends
    """Where the trajectories of each side begin and end."""


def grid_within(bounds: Sequence[float], size_deg: float = GRID_SIZE_DEG) -> Grid:
    """The grid over an area: south, west, north, east. Raises ValueError."""
    south, west, north, east = bounds
    if not (-90.0 <= south < north <= 90.0 and -180.0 <= west < east <= west + 360.0):
        raise ValueError(f"bounds {south:g} {west:g} {north:g} {east:g}: expected SOUTH < NORTH and WEST < EAST")
    return Grid(south, west, north, east, size_deg)


def grid_over(tracks: Tracks, size_deg: float = GRID_SIZE_DEG) -> Grid:
    """The grid over all points of these trajectories; across the antimeridian if one of them crosses it."""
    used = np.repeat(tracks.lengths >= LEAST_POINTS, tracks.lengths)
    lat, lon = tracks.lat[used], wrapped(tracks.lon[used])
    whose = np.repeat(np.arange(len(tracks)), tracks.lengths)[used]
    if ((np.abs(np.diff(lon)) > 180.0) & (np.diff(whose) == 0)).any():
        lon = np.where(lon < 0.0, lon + 360.0, lon)
    if not len(lat):
        return Grid(0.0, 0.0, 0.0, 0.0, size_deg)
    return Grid(float(lat.min()), float(lon.min()), float(lat.max()), float(lon.max()), size_deg)


def match(real: Tracks, gen: Tracks, grid: Grid) -> Matching:
    """Pair the trajectories of both sides."""
    waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
    ends_real, ends_gen = _ends(real, grid), _ends(gen, grid)
    for number, od in ends_gen:
        waiting[od].append(number)
    pairs: list[tuple[int, int]] = []
    ods: list[tuple[int, int]] = []
    for number, od in ends_real:
        if waiting[od]:
            pairs.append((number, waiting[od].popleft()))
            ods.append(od)
    long = gen.lengths >= LEAST_POINTS
    ends = np.concatenate((gen.starts[:-1][long], gen.starts[1:][long] - 1))
    outside = grid.outside(gen.lat[ends], gen.lon[ends]).reshape(2, -1).any(axis=0)
    return Matching(
        grid=grid,
        pairs=np.array(pairs, np.int64).reshape(-1, 2),
        od=np.array(ods, np.int64).reshape(-1, 2),
        dropped_real=int((real.lengths < LEAST_POINTS).sum()),
        dropped_gen=int((~long).sum()),
        clamped_gen=int(outside.sum()),
        ends_real=ends_real,
        ends_gen=ends_gen,
    )


def _ends(tracks: Tracks, grid: Grid) -> Ends:
    numbers = np.flatnonzero(tracks.lengths >= LEAST_POINTS)
    first, last = tracks.starts[numbers], tracks.starts[numbers + 1] - 1
    origins = grid.cells(tracks.lat[first], tracks.lon[first]).tolist()
    destinations = grid.cells(tracks.lat[last], tracks.lon[last]).tolist()
    return list(zip(numbers.tolist(), zip(origins, destinations, strict=True), strict=True))
