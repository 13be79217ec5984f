"""Distances of an episode by the haversine formula, in NM: between all agents at every step, and along their ways.

Called by series.py (separation) and metrics.py (ways).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from watchkeeper.detectors.kernels.pairs import EARTH_NM, haversine_nm, level
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.kernels import njit

_RAD = math.pi / 180.0


class Minima(NamedTuple):
    """Horizontal and vertical."""

    separation_nm: float
    vertical_ft: float


class Apart(NamedTuple):
    """The columns of a Series about separation now."""

    any_nm: F8
    level_nm: F8
    nearest_nm: F8
    violations: I8


@njit(cache=True)
def separations(lat: F8, lon: F8, alt_ft: F8, controlled: Bool, minima: Minima, apart: Apart) -> None:
    """Fill `apart`, over all pairs of which at least one is controlled."""
    any_nm, level_nm, nearest_nm, violations = apart.any_nm, apart.level_nm, apart.nearest_nm, apart.violations
    steps, agents = lat.shape
    # the chord between unit vectors gives the haversine distance without a sine per pair
    unit = np.empty((agents, 3))
    for k in range(steps):
        for a in range(agents):
            flat = math.cos(lat[k, a] * _RAD)
            unit[a, 0], unit[a, 1] = flat * math.cos(lon[k, a] * _RAD), flat * math.sin(lon[k, a] * _RAD)
            unit[a, 2] = math.sin(lat[k, a] * _RAD)
        for a in range(agents):
            if math.isnan(lat[k, a]):
                continue
            for b in range(a + 1, agents):
                if math.isnan(lat[k, b]) or not (controlled[k, a] or controlled[k, b]):
                    continue
                x, y, z = unit[a, 0] - unit[b, 0], unit[a, 1] - unit[b, 1], unit[a, 2] - unit[b, 2]
                nm = 2.0 * EARTH_NM * math.asin(min(1.0, 0.5 * math.sqrt(x * x + y * y + z * z)))
                any_nm[k] = min(any_nm[k], nm)
                if level(alt_ft[k, a], alt_ft[k, b], minima.vertical_ft):
                    level_nm[k] = min(level_nm[k], nm)
                    nearest_nm[k, a], nearest_nm[k, b] = min(nearest_nm[k, a], nm), min(nearest_nm[k, b], nm)
                    if nm < minima.separation_nm:
                        violations[k, a] += 1
                        violations[k, b] += 1


@njit(cache=True)
def ways_nm(lat: F8, lon: F8, way_lat: F8, way_lon: F8) -> tuple[F8, F8]:
    """[agent]: the path over all its positions; the direct way from the first to its last waypoint (NaN: none)."""
    steps, agents = lat.shape
    path, direct = np.zeros(agents), np.full(agents, np.nan)
    for a in range(agents):
        first = before = last = -1
        for k in range(steps):
            if not math.isnan(way_lat[k, a]):
                last = k
            if math.isnan(lat[k, a]):
                continue
            if before < 0:
                first = k
            else:
                path[a] += haversine_nm(lat[before, a], lon[before, a], lat[k, a], lon[k, a])
            before = k
        if first >= 0 and last >= 0:
            direct[a] = haversine_nm(lat[first, a], lon[first, a], way_lat[last, a], way_lon[last, a])
    return path, direct
