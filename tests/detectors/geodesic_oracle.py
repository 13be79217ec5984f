"""The slow, independent answer that the conflict tests compare with: geographiclib and bisection, pair by pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from geographiclib.geodesic import Geodesic

from watchkeeper.detectors import cpa
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import KT_MS

WGS84 = Geodesic.WGS84


@dataclass(frozen=True)
class Aircraft:
    """A report at time 0."""

    lat: float
    lon: float
    trk_deg: float
    gs_kt: float
    alt_ft: float = 30_000.0
    vs_fpm: float = 0.0

    def state(self, horizon_s: float, age_s: float = 0.0) -> F8:
        """As the kernel wants it, age_s seconds after the report."""
        out = np.zeros(cpa.STATE)
        cpa.state_of(self.lat, self.lon, self.trk_deg, self.gs_kt * KT_MS, age_s + 0.5 * horizon_s, out)
        out[6], out[7] = self.alt_ft + self.vs_fpm / 60.0 * age_s, self.vs_fpm / 60.0
        return out


def distance_and_rate(a: Aircraft, b: Aircraft, t: float) -> tuple[float, float]:
    """Geodesic distance at t, and its rate by the first variation of arc length."""
    va, vb = a.gs_kt * KT_MS, b.gs_kt * KT_MS
    pa, pb = WGS84.Direct(a.lat, a.lon, a.trk_deg, va * t), WGS84.Direct(b.lat, b.lon, b.trk_deg, vb * t)
    line = WGS84.Inverse(pa["lat2"], pa["lon2"], pb["lat2"], pb["lon2"])
    along_a = va * math.cos(math.radians(pa["azi2"] - line["azi1"]))
    along_b = vb * math.cos(math.radians(pb["azi2"] - line["azi2"]))
    return line["s12"], along_b - along_a


def relative_speed_ms(a: Aircraft, b: Aircraft) -> float:
    """Difference of the two velocities after carrying one to the other along the line between them."""
    line = WGS84.Inverse(a.lat, a.lon, b.lat, b.lon)
    ta, tb = math.radians(a.trk_deg - line["azi1"]), math.radians(b.trk_deg - line["azi2"])
    va, vb = a.gs_kt * KT_MS, b.gs_kt * KT_MS
    return math.hypot(va * math.cos(ta) - vb * math.cos(tb), va * math.sin(ta) - vb * math.sin(tb))


def closest(a: Aircraft, b: Aircraft, t0: float, t1: float, knots: int = 4) -> tuple[float, float]:
    """Time and distance of closest approach in [t0, t1]."""
    times = [t0 + (t1 - t0) * k / knots for k in range(knots + 1)]
    best_t, best_m = t0, distance_and_rate(a, b, t0)[0]
    for lo, hi in zip(times, times[1:], strict=False):
        t = hi
        if distance_and_rate(a, b, lo)[1] < 0.0 < distance_and_rate(a, b, hi)[1]:
            for _ in range(45):
                t = 0.5 * (lo + hi)
                if distance_and_rate(a, b, t)[1] < 0.0:
                    lo = t
                else:
                    hi = t
        distance_m = distance_and_rate(a, b, t)[0]
        if distance_m < best_m:
            best_t, best_m = t, distance_m
    return best_t, best_m


def loses_separation(
    a: Aircraft, b: Aircraft, horizon_s: float, separation_m: float, vertical_ft: float
) -> tuple[bool, float]:
    """Whether the pair comes inside both minima, and by how many metres that was decided."""
    far_m = separation_m + (a.gs_kt + b.gs_kt) * KT_MS * horizon_s
    now_m = WGS84.Inverse(a.lat, a.lon, b.lat, b.lon)["s12"]
    if now_m > far_m:
        return False, now_m - far_m
    dz, climb = b.alt_ft - a.alt_ft, (b.vs_fpm - a.vs_fpm) / 60.0
    if climb == 0.0:
        if abs(dz) >= vertical_ft:
            return False, math.inf
        t0, t1 = 0.0, horizon_s
    else:
        ends = sorted(((-vertical_ft - dz) / climb, (vertical_ft - dz) / climb))
        t0, t1 = max(0.0, ends[0]), min(horizon_s, ends[1])
        if t0 >= t1:
            return False, math.inf
    nearest_m = now_m if relative_speed_ms(a, b) < cpa.STILL_MS else closest(a, b, t0, t1)[1]
    limit_m = separation_m - cpa.ON_LIMIT_M
    return nearest_m < limit_m, abs(nearest_m - limit_m)


def losing_pairs(
    fleet: list[Aircraft], horizon_s: float, separation_m: float, vertical_ft: float
) -> tuple[set[tuple[int, int]], float]:
    """All pairs of indices that lose separation, every pair tried, and the narrowest decision among them."""
    pairs, narrowest_m = set(), math.inf
    for i, j in combinations(range(len(fleet)), 2):
        lost, margin_m = loses_separation(fleet[i], fleet[j], horizon_s, separation_m, vertical_ft)
        narrowest_m = min(narrowest_m, margin_m)
        if lost:
            pairs.add((i, j))
    return pairs, narrowest_m
