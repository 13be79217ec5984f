"""A set of trajectories as columns: the points of all of them one after the other, and where each begins.

Readers (files.py, geojson.py) make one; pairs.py and metrics.py work on it. Angles in degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

# What counts as a position: the same for every file, and the same as on the wire.
LAT, LON = (FIELDS[Kind.ADSB][COLUMN[Kind.ADSB][name]] for name in ("lat", "lon"))


@dataclass(frozen=True, slots=True)
class Tracks:
    """Trajectories in the order of their file; number i has the points starts[i] up to starts[i + 1]."""

    path: Path
    names: list[str]
    lat: F8
    lon: F8
    starts: I8
    t: F8 | None = None
    """Seconds since 1970, or of a simulation, where the file says them."""
    remarks: tuple[str, ...] = ()
    """What a person should know about how the file was read."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> I8:
        """Number of points of each."""
        return np.diff(self.starts)

    def points(self, number: int) -> F8:
        """One trajectory, [n, 2] of latitude and longitude."""
        own = slice(self.starts[number], self.starts[number + 1])
        return np.column_stack((self.lat[own], self.lon[own]))


def tracks_of(
    path: Path,
    names: list[str],
    key: I8,
    lat: F8,
    lon: F8,
    *,
    t: F8 | None = None,
    gap_s: float | None = None,
    remarks: tuple[str, ...] = (),
) -> Tracks:
    """Trajectories from points in any order: key[k] says whose point k is, `names` has a name for each key.

    They are numbered by their first point; points are in order of time where it is known, of the file otherwise. With
    `gap_s` a silence longer than that ends one and begins another.
    """
    _, first, member = np.unique(key, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[member]
    order = np.argsort(rank, kind="stable") if t is None else np.lexsort((t, rank))
    rank, key = rank[order], key[order]
    begins: Bool = np.ones(len(order), bool)
    begins[1:] = rank[1:] != rank[:-1]
    if t is not None and gap_s is not None:
        begins[1:] |= np.diff(t[order]) > gap_s
    starts = np.append(np.flatnonzero(begins), len(order))
    whose = [names[k] for k in key[begins].tolist()]
    return Tracks(path, whose, lat[order], lon[order], starts, None if t is None else t[order], remarks)


def wrapped(lon_deg: F8) -> F8:
    """Longitudes in [-180, 180), one name for each meridian; those that are there already do not change by a bit."""
    return np.where((lon_deg >= -180.0) & (lon_deg < 180.0), lon_deg, (lon_deg + 180.0) % 360.0 - 180.0)
