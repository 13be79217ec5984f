"""The baseline of `bench tracks`: Hausdorff, DTW and EDR as anybody would write them in plain Python."""

from __future__ import annotations

from math import asin, cos, inf, radians, sin, sqrt

RADIUS_KM = 6371.0088
EPS_KM = 0.1
Line = list[tuple[float, float]]


def haversine_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Distance of two points in degrees."""
    lat1, lon1, lat2, lon2 = radians(a[0]), radians(a[1]), radians(b[0]), radians(b[1])
    h = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    return 2 * RADIUS_KM * asin(min(1.0, sqrt(h)))


def hausdorff_km(a: Line, b: Line) -> float:
    """Symmetric; a point is done when something lies nearer than the farthest so far, as in SciPy."""
    farthest = 0.0
    for one, other in ((a, b), (b, a)):
        for p in one:
            nearest = inf
            for q in other:
                nearest = min(nearest, haversine_km(p, q))
                if nearest <= farthest:
                    break
            farthest = max(farthest, nearest)
    return farthest


def dtw_km(a: Line, b: Line) -> float:
    """Exact, two rows."""
    above = [0.0] + [inf] * len(b)
    for p in a:
        row = [inf]
        for j, q in enumerate(b):
            row.append(haversine_km(p, q) + min(above[j], above[j + 1], row[j]))
        above = row
    return above[-1]


def edr(a: Line, b: Line) -> float:
    """Over the longer length, two rows."""
    above = list(range(len(b) + 1))
    for i, p in enumerate(a, 1):
        row = [i]
        for j, q in enumerate(b):
            row.append(min(above[j] + (haversine_km(p, q) >= EPS_KM), above[j + 1] + 1, row[j] + 1))
        above = row
    return above[-1] / max(len(a), len(b))
