"""How close two aircraft really came: from their reports themselves, between which both flew straight on.

A tick is once a second and carries reports along, so the least of its distances is neither at the closest moment nor
exact. Here two aircraft are compared along the lines between their reports of the last LOOK_BACK_S, up to the newest
that both have sent: the closest moment of each stretch in which both keep their direction is in closed form. Called by
the conflict detector for the pairs that it names; the reports are those of the fleet's ring.

Moments in which the vertical minimum is kept count only for a pair that always keeps it: crossing 5,000 ft above one
another is not the closest that two aircraft were in a conflict at one level.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import FASTEST_MS, GAP_S, HOVER_MS, LOOK_BACK_S
from watchkeeper.detectors.fleet.fleet import Ring
from watchkeeper.detectors.fleet.tables import zeros
from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.geo import KT_MS, NM_M, ecef
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB

# Further than two aircraft can be apart: behind every moment at one level.
KEPT_NM = 1e5
# More than rounding moves a place on the Earth.
ROUND_M = 1e-3


class Least:
    """The closest that a pair was of late (detectors/kernels/records.py); `t` is NaN where that cannot be said."""

    t: float = math.nan
    sep_m: float = math.nan
    vsep_ft: float = math.nan
    level: bool = False
    """Whether the vertical minimum was broken at that moment."""


class Fix:
    """One report of an aircraft: when, where (Earth-centred) and how high."""

    t: float
    x_m: float
    y_m: float
    z_m: float
    alt_ft: float


class Reports(NamedTuple):
    """The fleet's ring of reports, as the kernel takes it, and where they were.

    `place[slot, i]` is the position of a report of the ring, Earth-centred in m. Those of the first `placed[slot]`
    reports of a vehicle are there, as far as the ring still has them: a report is looked at again with every tick.
    """

    t: F8
    data: F8
    heard: I8
    place: F8
    placed: I8


class Hindsight:
    """Work arrays for the reports of two aircraft."""

    def __init__(self, ring: Ring) -> None:
        capacity = len(ring.count)
        place, placed = zeros((capacity, ring.depth, 3)), np.zeros(capacity, np.int64)
        self._reports = Reports(ring.t, ring.data, ring.count, place, placed)
        self._work = blank(Fix, (2, ring.depth))

    def forget(self, slots: I4 | slice) -> None:
        """Other aircraft will get these slots, or the ring has other reports."""
        self._reports.placed[slots] = 0

    def least(self, a: I4, b: I4, vertical_ft: F8, wanted: Bool, t: float) -> NDArray[Any]:
        """For each pair of slots the closest that they were in the LOOK_BACK_S before t, as `Least` records.

        Blank where it is not wanted: most pairs that are named have no alarm that could ask for it.
        """
        found = blank(Least, len(a))
        _all(a, b, vertical_ft, wanted, t, self._reports, self._work, found)
        return found

    def farthest(self, a: I4, b: I4, t: float) -> tuple[F8, F8]:
        """For each pair of slots how far apart they were at most (m) in that time, and how long (s) both are known.

        0 for both without a moment in which both are.
        """
        far_m, common_s = np.zeros(len(a)), np.zeros(len(a))
        _farthest(a, b, t, self._reports, self._work, far_m, common_s)
        return far_m, common_s


@njit(cache=True)
def _all(
    a: I4, b: I4, vertical_ft: F8, wanted: Bool, t: float, reports: Reports, work: NDArray[Any], found: NDArray[Any]
) -> None:
    for k in range(a.size):
        if not wanted[k]:
            continue
        n_a = _unroll(a[k], t - LOOK_BACK_S, reports, work[0])
        n_b = _unroll(b[k], t - LOOK_BACK_S, reports, work[1])
        _along(work[0], n_a, work[1], n_b, vertical_ft[k], found[k])


@njit(cache=True)
def _farthest(a: I4, b: I4, t: float, reports: Reports, work: NDArray[Any], far_m: F8, common_s: F8) -> None:
    for k in range(a.size):
        n_a = _unroll(a[k], t - LOOK_BACK_S, reports, work[0])
        n_b = _unroll(b[k], t - LOOK_BACK_S, reports, work[1])
        i, j = 1, 1
        while i < n_a and j < n_b:
            a0, a1, b0, b1 = work[0][i - 1], work[0][i], work[1][j - 1], work[1][j]
            t0, t1 = max(a0.t, b0.t), min(a1.t, b1.t)
            if t0 <= t1 and a1.t - a0.t <= GAP_S and b1.t - b0.t <= GAP_S:
                # along two lines the distance is largest at an end
                for s in (t0, t1):
                    x, y, z, _ = _apart(a0, a1, b0, b1, s)
                    far_m[k] = max(far_m[k], math.sqrt(x * x + y * y + z * z))
                common_s[k] += t1 - t0
            if a1.t <= b1.t:
                i += 1
            else:
                j += 1


@njit(cache=True)
def _unroll(slot: int, oldest_t: float, reports: Reports, out: NDArray[Any]) -> int:
    """The reports of one aircraft since then, oldest first; returns how many.

    A position that is repeated in flight is no measurement, and one that no aircraft can have reached in the time is
    left out. The altitude of a report without one is that of the report before.
    """
    depth = out.size
    count = reports.heard[slot]
    _place(slot, count, depth, reports)
    n, alt_ft = 0, math.nan
    lat_deg, lon_deg = math.nan, math.nan
    at = (count - min(count, depth)) % depth - 1
    for _ in range(min(count, depth)):
        # a division for each report would take as long as the rest
        at = at + 1 if at + 1 < depth else 0
        if not math.isnan(reports.data[ADSB.alt_ft, slot, at]):
            alt_ft = reports.data[ADSB.alt_ft, slot, at]
        t, lat, lon = reports.t[slot, at], reports.data[ADSB.lat, slot, at], reports.data[ADSB.lon, slot, at]
        held = lat == lat_deg and lon == lon_deg and not reports.data[ADSB.gs_kt, slot, at] * KT_MS < HOVER_MS
        if math.isnan(lat) or math.isnan(lon) or held or t < oldest_t:
            continue
        lat_deg, lon_deg = lat, lon
        x_m, y_m, z_m = reports.place[slot, at, 0], reports.place[slot, at, 1], reports.place[slot, at, 2]
        if n > 0:
            last = out[n - 1]
            dx, dy, dz, dt_s = x_m - last.x_m, y_m - last.y_m, z_m - last.z_m, t - last.t
            if dx * dx + dy * dy + dz * dz > (FASTEST_MS * dt_s) ** 2:
                continue
        fix = out[n]
        fix.t, fix.x_m, fix.y_m, fix.z_m, fix.alt_ft = t, x_m, y_m, z_m, alt_ft
        n += 1
    return n


@njit(cache=True)
def _place(slot: int, count: int, depth: int, reports: Reports) -> None:
    """Work out where the reports were that have come since this was last asked."""
    for k in range(max(reports.placed[slot], count - depth), count):
        at = k % depth
        place = reports.place[slot, at]
        place[0], place[1], place[2] = ecef(reports.data[ADSB.lat, slot, at], reports.data[ADSB.lon, slot, at])
    reports.placed[slot] = count


@njit(cache=True)
def _along(a: NDArray[Any], n_a: int, b: NDArray[Any], n_b: int, vertical_ft: float, best: Least) -> None:
    """Walk along both lines at the same time, stretch by stretch."""
    i, j = 1, 1
    while i < n_a and j < n_b:
        a0, a1, b0, b1 = a[i - 1], a[i], b[j - 1], b[j]
        t0, t1 = max(a0.t, b0.t), min(a1.t, b1.t)
        if t0 <= t1 and a1.t - a0.t <= GAP_S and b1.t - b0.t <= GAP_S:
            _stretch(a0, a1, b0, b1, t0, t1, vertical_ft, best)
        if a1.t <= b1.t:
            i += 1
        else:
            j += 1


@njit(cache=True)
def _stretch(a0: Fix, a1: Fix, b0: Fix, b1: Fix, t0: float, t1: float, vertical_ft: float, best: Least) -> None:
    """The closest moment in [t0, t1], in which both fly along one line, if it is closer than the best so far."""
    x0, y0, z0, alt0 = _apart(a0, a1, b0, b1, t0)
    x1, y1, z1, alt1 = _apart(a0, a1, b0, b1, t1)
    if best.level and (_beyond(x0, x1, best.sep_m) or _beyond(y0, y1, best.sep_m) or _beyond(z0, z1, best.sep_m)):
        return
    span_s = t1 - t0
    rate_fts = (alt1 - alt0) / span_s if span_s > 0.0 else 0.0
    # when the vertical minimum is broken; an unknown altitude separates from nobody
    s0, s1 = 0.0, span_s
    level = True
    limit_ft = vertical_ft - ON_LIMIT_FT
    if rate_fts != 0.0 and not math.isnan(rate_fts):
        in_s, out_s = (-limit_ft - alt0) / rate_fts, (limit_ft - alt0) / rate_fts
        s0, s1 = max(0.0, min(in_s, out_s)), min(span_s, max(in_s, out_s))
        level = s0 <= s1
    elif abs(alt0) >= limit_ft:
        level = False
    if not level:
        if best.level:
            return
        s0, s1 = 0.0, span_s
    u, v, w = 0.0, 0.0, 0.0
    if span_s > 0.0:
        u, v, w = (x1 - x0) / span_s, (y1 - y0) / span_s, (z1 - z0) / span_s
    uu = u * u + v * v + w * w
    s = min(max(-(x0 * u + y0 * v + z0 * w) / uu, s0), s1) if uu > 0.0 else s0
    x, y, z = x0 + s * u, y0 + s * v, z0 + s * w
    sep_m = math.sqrt(x * x + y * y + z * z)
    if math.isnan(best.t) or (level and not best.level) or sep_m < best.sep_m:
        best.t, best.sep_m, best.vsep_ft, best.level = t0 + s, sep_m, abs(alt0 + s * rate_fts), level


@njit(cache=True, inline="always")
def _beyond(from_m: float, to_m: float, limit_m: float) -> bool:
    """Whether all of the way from one place to another, along one axis, is farther than this."""
    far_m = limit_m + ROUND_M
    return (from_m > far_m and to_m > far_m) or (from_m < -far_m and to_m < -far_m)


@njit(cache=True, inline="always")
def _apart(a0: Fix, a1: Fix, b0: Fix, b1: Fix, t: float) -> tuple[float, float, float, float]:
    """Position and altitude of the first relative to the second at t."""
    p, q = (t - a0.t) / (a1.t - a0.t), (t - b0.t) / (b1.t - b0.t)
    return (
        a0.x_m + p * (a1.x_m - a0.x_m) - b0.x_m - q * (b1.x_m - b0.x_m),
        a0.y_m + p * (a1.y_m - a0.y_m) - b0.y_m - q * (b1.y_m - b0.y_m),
        a0.z_m + p * (a1.z_m - a0.z_m) - b0.z_m - q * (b1.z_m - b0.z_m),
        a0.alt_ft + p * (a1.alt_ft - a0.alt_ft) - b0.alt_ft - q * (b1.alt_ft - b0.alt_ft),
    )


@njit(cache=True, inline="always")
def rank(t: float, sep_m: float, level: bool) -> float:
    """What the worst moment is chosen by: the nearest that was at one level, else the nearest; -inf if unknown."""
    if math.isnan(t):
        return -math.inf
    return -sep_m / NM_M - (0.0 if level else KEPT_NM)
