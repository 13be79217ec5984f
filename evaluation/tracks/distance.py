"""How far apart two trajectories are: Hausdorff, exact dynamic time warping (DTW) and edit distance (EDR).

A trajectory is an array [n, 2] of latitude and longitude in degrees, in the order it was travelled. The ground distance
is the haversine one on a sphere of the Earth's mean radius. Points become unit vectors first: the haversine of the
angle between two of them is a quarter of their squared chord, so that the kernels need no sines, Hausdorff and EDR
compare squared chords alone, and nothing happens at the antimeridian or at a pole.

Memory grows with the length, not with its square: DTW keeps one row of distances, EDR one row of counts, Hausdorff
nothing. The kernels release the interpreter lock, so threads compare pairs side by side (`compare`). They are all in
this file, because Numba's cache notices a change in a kernel's own file only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from watchkeeper.evaluation.tracks.set import wrapped
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.geo import EARTH_IUGG_M
from watchkeeper.streams.kernels import njit

# Mean radius of the Earth as the IUGG defines it, (2a + b) / 3 of GRS80.
RADIUS_KM = EARTH_IUGG_M / 1000.0
EDR_EPS_M = 100.0
# The columns that `compare` fills.
HAUSDORFF, DTW, EDR = 0, 1, 2
# Two squared chords that differ by less than this share are compared as distances: "nearer than eps" is a strict
# comparison, and its last bit must not depend on which side was converted.
_NEARLY = 1e-9


def unit_vectors(lat_deg: ArrayLike, lon_deg: ArrayLike) -> F8:
    """Points on the unit sphere, [n, 3]. Longitudes are wrapped, so 180 and -180 are exactly the same point."""
    lat = np.radians(np.asarray(lat_deg, np.float64))
    lon = np.radians(wrapped(np.asarray(lon_deg, np.float64)))
    return np.stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)), axis=-1)


def haversine_km(a: ArrayLike, b: ArrayLike) -> float:
    """Distance between two points, each (latitude, longitude)."""
    first, second = (_points(np.asarray(point, np.float64)[np.newaxis]) for point in (a, b))
    return float(_arc_km(_chord2(first[0], second[0])))


def hausdorff_km(a: ArrayLike, b: ArrayLike) -> float:
    """Symmetric Hausdorff distance: the farthest that any point of one lies from the nearest point of the other."""
    return float(_hausdorff_km(_points(a), _points(b)))


def dtw_km(a: ArrayLike, b: ArrayLike) -> float:
    """Dynamic time warping, exact: the smallest sum of distances over all monotone alignments."""
    return float(_dtw_km(_points(a), _points(b)))


def edr(a: ArrayLike, b: ArrayLike, eps_m: float = EDR_EPS_M) -> float:
    """Edit distance on real sequences over the longer length, 0 to 1: points match when nearer than eps_m."""
    if not 0.0 <= eps_m < math.inf:
        raise ValueError(f"eps_m {eps_m}: expected metres, 0 or more")
    return float(_edr(_points(a), _points(b), eps_m / 1000.0))


def _points(track: ArrayLike) -> F8:
    """A trajectory as unit vectors. Raises ValueError, saying what is wrong with it."""
    points = np.asarray(track, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"a trajectory is an array [n, 2] of latitude and longitude, not one of shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"point {int(np.argmin(np.isfinite(points).all(axis=1)))} is not finite")
    if np.abs(points[:, 0]).max() > 90.0:
        raise ValueError(f"point {int(np.argmax(np.abs(points[:, 0])))}: latitude outside -90 … 90")
    return unit_vectors(points[:, 0], points[:, 1])


@njit(cache=True, nogil=True)
def compare(a: F8, starts_a: I8, b: F8, starts_b: I8, pairs: I8, eps_km: float, out: F8) -> None:
    """All three distances of many pairs, into out[pair, HAUSDORFF … EDR].

    `a` and `b` are the unit vectors of all trajectories of each side, one after the other; trajectory i of a is
    a[starts_a[i]:starts_a[i + 1]].
    """
    for k in range(len(pairs)):
        i, j = pairs[k]
        p, q = a[starts_a[i] : starts_a[i + 1]], b[starts_b[j] : starts_b[j + 1]]
        out[k, HAUSDORFF], out[k, DTW], out[k, EDR] = _hausdorff_km(p, q), _dtw_km(p, q), _edr(p, q, eps_km)


@njit(cache=True, nogil=True)
def _chord2(p: F8, q: F8) -> float:
    """Squared chord between two unit vectors."""
    x, y, z = p[0] - q[0], p[1] - q[1], p[2] - q[2]
    squared: float = x * x + y * y + z * z
    return squared


@njit(cache=True, nogil=True)
def _arc_km(chord2: float) -> float:
    return 2.0 * RADIUS_KM * math.asin(min(0.5 * math.sqrt(chord2), 1.0))


@njit(cache=True, nogil=True)
def _hausdorff_km(a: F8, b: F8) -> float:
    return _arc_km(_directed2(b, a, _directed2(a, b, 0.0)))


@njit(cache=True, nogil=True)
def _directed2(a: F8, b: F8, farthest: float) -> float:
    """The largest squared chord from a point of a to its nearest in b, or `farthest` where that is larger.

    A point is done as soon as something lies nearer than the farthest so far. The search begins where the last one
    ended, because the next point of a trajectory is near the last: most points are done at once.
    """
    m, j = len(b), 0
    for i in range(len(a)):
        nearest = math.inf
        for _ in range(m):
            nearest = min(nearest, _chord2(a[i], b[j]))
            if nearest <= farthest:
                break
            j = j + 1 if j + 1 < m else 0
        farthest = max(farthest, nearest)
    return farthest


@njit(cache=True, nogil=True)
def _dtw_km(a: F8, b: F8) -> float:
    if len(a) < len(b):
        a, b = b, a  # the row is as long as the shorter one
    m = len(b)
    row = np.full(m, math.inf)
    corner = 0.0  # what stands left of and above row[0]: nothing before the first pair, infinity after it
    for i in range(len(a)):
        left, diagonal = math.inf, corner
        corner = math.inf
        for j in range(m):
            left = _arc_km(_chord2(a[i], b[j])) + min(left, row[j], diagonal)
            diagonal, row[j] = row[j], left
    return float(row[m - 1])


@njit(cache=True, nogil=True)
def _edr(a: F8, b: F8, eps_km: float) -> float:
    if len(a) < len(b):
        a, b = b, a
    m = len(b)
    eps2 = 4.0 * math.sin(min(0.5 * eps_km / RADIUS_KM, 0.5 * math.pi)) ** 2
    surely, surely_not = eps2 * (1.0 - _NEARLY), eps2 * (1.0 + _NEARLY)
    row = np.arange(1, m + 1)
    for i in range(len(a)):
        left, diagonal = i + 1, i
        for j in range(m):
            chord2 = _chord2(a[i], b[j])
            match = chord2 < surely or (chord2 <= surely_not and _arc_km(chord2) < eps_km)
            left = min(diagonal + (0 if match else 1), row[j] + 1, left + 1)
            diagonal, row[j] = row[j], left
    return float(row[m - 1]) / len(a)
