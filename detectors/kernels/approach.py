"""Closest approach of two aircraft, exact on WGS84: when, how near, and from when to when separation is lost.

Called by the scan (detectors/conflict/search.py) for the few pairs that pass its coarse test.

Horizontal motion is a constant ground speed along the geodesic, at height 0, in Earth-centred coordinates [m].
A geodesic there obeys r'' = -(V.DV / r.DDr) D r with D = diag(1, 1, a2/b2), so its power series in time follows
from position and velocity by multiplications alone: no angle is ever computed and there is nothing special about
poles or the antimeridian. Up to REACH_M from its centre the series is good to a micrometre; longer predictions are
cut into pieces. Horizontal distance is the geodesic one. Vertical motion is linear up to a level-off, and stays in
feet.

All of an aircraft is in a State.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from watchkeeper.detectors.kernels.records import Int4
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import WGS84_A_M, WGS84_E2
from watchkeeper.streams.kernels import njit

# Coefficients of the series: position, velocity, and the powers two to five of time.
TERMS = 6

# A distance this close to the limit is on the limit, and on the limit is separated. The millimetre is far above the
# rounding of a geodesic computed in any way and far below what a position report can resolve. The same in feet.
ON_LIMIT_M = 1e-3
ON_LIMIT_FT = 1e-6
# Slower than this relative to each other two aircraft keep their distance: reports resolve 0.1 kt at best.
STILL_MS = 0.01

REACH_M = 64_000.0
_D = 1.0 / (1.0 - WGS84_E2)
_DD = _D * (_D - 1.0)
_A2 = WGS84_A_M * WGS84_A_M
_3RD, _6TH, _12TH, _20TH = 1.0 / 3.0, 1.0 / 6.0, 1.0 / 12.0, 1.0 / 20.0
# Pieces of a prediction that goes half around the Earth.
_AROUND = int(math.pi * WGS84_A_M / (2.0 * REACH_M)) + 1
_NEWTON = 40  # three or four are enough; more only guards against a loop that never ends


class State:
    """One aircraft (kernels/records.py): position and velocity at the middle of the horizon, and its altitudes."""

    x_m: float = math.nan
    y_m: float = math.nan
    z_m: float = math.nan
    vx_ms: float = math.nan
    vy_ms: float = math.nan
    vz_ms: float = math.nan
    alt_ft: float = math.nan
    """At the start of the horizon; NaN: unknown, which separates from nobody."""
    climb_fts: float = math.nan
    level_s: float = math.inf
    """Seconds until it levels off; inf: never."""
    separation_m: float = math.nan
    """The minima that hold where the aircraft is; NaN: those of the scan."""
    vertical_ft: float = math.nan
    tau_s: float = 0.0
    """Modified tau that must remain while closing in; 0: distance alone counts."""
    kind: Int4 = 0
    zone: Int4 = -1
    """What it is (detectors/conflict/minima.py), and the row of the zone that it is in; -1: in none."""


class Approach(NamedTuple):
    """How two aircraft pass each other."""

    tcpa_s: float
    dcpa_m: float
    t_in_s: float
    t_out_s: float
    now_m: float


@njit(cache=True, inline="always")
def _series(
    x: float, y: float, z: float, vx: float, vy: float, vz: float
) -> tuple[float, float, float, float, float, float, float, float, float, float, float, float]:
    """Coefficients of t^2 … t^5 of a geodesic: four for x, four for y, four for z."""
    # g = r.DDr, which on the surface depends on z only; q = the factor in r'' = -q D r, with q g g constant
    per_g = 1.0 / (_A2 + _DD * z * z)  # one division: the compiler may not turn them into products by itself
    q0 = (vx * vx + vy * vy + _D * vz * vz) * per_g
    g1 = 2.0 * _DD * z * vz
    x2, y2, z2 = -0.5 * q0 * x, -0.5 * q0 * y, -0.5 * _D * q0 * z
    q1 = -2.0 * g1 * q0 * per_g
    x3, y3, z3 = -_6TH * (q0 * vx + q1 * x), -_6TH * (q0 * vy + q1 * y), -_D * _6TH * (q0 * vz + q1 * z)
    g2 = _DD * (2.0 * z * z2 + vz * vz)
    q2 = -0.5 * (3.0 * g1 * q1 + 4.0 * g2 * q0) * per_g
    x4 = -_12TH * (q0 * x2 + q1 * vx + q2 * x)
    y4 = -_12TH * (q0 * y2 + q1 * vy + q2 * y)
    z4 = -_D * _12TH * (q0 * z2 + q1 * vz + q2 * z)
    g3 = 2.0 * _DD * (z * z3 + vz * z2)
    q3 = -_3RD * (4.0 * g1 * q2 + 5.0 * g2 * q1 + 6.0 * g3 * q0) * per_g
    x5 = -_20TH * (q0 * x3 + q1 * x2 + q2 * vx + q3 * x)
    y5 = -_20TH * (q0 * y3 + q1 * y2 + q2 * vy + q3 * y)
    z5 = -_D * _20TH * (q0 * z3 + q1 * z2 + q2 * vz + q3 * z)
    return x2, x3, x4, x5, y2, y3, y4, y5, z2, z3, z4, z5


@njit(cache=True)
def travel(
    x: float, y: float, z: float, vx: float, vy: float, vz: float, dt_s: float
) -> tuple[float, float, float, float, float, float]:
    """Position and velocity after dt_s seconds along the geodesic (negative: before)."""
    speed_ms = math.sqrt(vx * vx + vy * vy + vz * vz)
    steps = 1 + int(abs(dt_s) * speed_ms / REACH_M)
    t = dt_s / steps
    for _ in range(steps):
        x2, x3, x4, x5, y2, y3, y4, y5, z2, z3, z4, z5 = _series(x, y, z, vx, vy, vz)
        x += t * (vx + t * (x2 + t * (x3 + t * (x4 + t * x5))))
        y += t * (vy + t * (y2 + t * (y3 + t * (y4 + t * y5))))
        z += t * (vz + t * (z2 + t * (z3 + t * (z4 + t * z5))))
        vx += t * (2.0 * x2 + t * (3.0 * x3 + t * (4.0 * x4 + t * 5.0 * x5)))
        vy += t * (2.0 * y2 + t * (3.0 * y3 + t * (4.0 * y4 + t * 5.0 * y5)))
        vz += t * (2.0 * z2 + t * (3.0 * z3 + t * (4.0 * z4 + t * 5.0 * z5)))
    return x, y, z, vx, vy, vz


@njit(cache=True)
def _piece(a: State, b: State, dt_s: float, half_s: float, gap: F8) -> tuple[float, float]:
    """Lay the series of a - b around dt_s after mid-horizon into gap[term, axis].

    Returns r.DDr at the pair's midpoint, and the relative ground speed half_s before the centre.
    """
    ax, ay, az, avx, avy, avz = a.x_m, a.y_m, a.z_m, a.vx_ms, a.vy_ms, a.vz_ms
    bx, by, bz, bvx, bvy, bvz = b.x_m, b.y_m, b.z_m, b.vx_ms, b.vy_ms, b.vz_ms
    if dt_s != 0.0:
        ax, ay, az, avx, avy, avz = travel(ax, ay, az, avx, avy, avz, dt_s)
        bx, by, bz, bvx, bvy, bvz = travel(bx, by, bz, bvx, bvy, bvz, dt_s)
    p = _series(ax, ay, az, avx, avy, avz)
    q = _series(bx, by, bz, bvx, bvy, bvz)
    gap[0, 0], gap[0, 1], gap[0, 2] = ax - bx, ay - by, az - bz
    gap[1, 0], gap[1, 1], gap[1, 2] = avx - bvx, avy - bvy, avz - bvz
    for k in range(4):
        gap[k + 2, 0], gap[k + 2, 1], gap[k + 2, 2] = p[k] - q[k], p[4 + k] - q[4 + k], p[8 + k] - q[8 + k]

    # Relative velocity in the tangent plane midway between the two: one behind the other at one speed is then still.
    nx, ny, nz = ax + bx - half_s * (avx + bvx), ay + by - half_s * (avy + bvy), az + bz - half_s * (avz + bvz)
    nz *= _D
    _, _, _, ux, uy, uz = _at(gap, -half_s)
    up = (ux * nx + uy * ny + uz * nz) / (nx * nx + ny * ny + nz * nz)
    ux, uy, uz = ux - up * nx, uy - up * ny, uz - up * nz
    mid_z = 0.5 * (az + bz)
    return _A2 + _DD * mid_z * mid_z, math.sqrt(ux * ux + uy * uy + uz * uz)


@njit(cache=True, inline="always")
def _at(gap: F8, t: float) -> tuple[float, float, float, float, float, float]:
    """Relative position and velocity at t seconds from the centre of the piece."""
    x, y, z = gap[5, 0], gap[5, 1], gap[5, 2]
    u, v, w = 0.0, 0.0, 0.0
    for k in range(4, -1, -1):
        u, v, w = u * t + x, v * t + y, w * t + z
        x, y, z = x * t + gap[k, 0], y * t + gap[k, 1], z * t + gap[k, 2]
    return x, y, z, u, v, w


@njit(cache=True)
def _distance(gap: F8, g: float, t: float) -> tuple[float, float]:
    """Geodesic distance at t, and how fast it changes."""
    x, y, z, u, v, w = _at(gap, t)
    chord2 = x * x + y * y + z * z
    if chord2 == 0.0:
        return 0.0, 0.0
    # (chord / radius of curvature along it) squared; the arc over a chord is an arcsine
    n = x * x + y * y + _D * z * z
    bend = n * n / (chord2 * g)
    chord = math.sqrt(chord2)
    return chord * (1.0 + bend * (1.0 / 24.0 + bend * 3.0 / 640.0)), (x * u + y * v + z * w) / chord


@njit(cache=True)
def _nearest(gap: F8, t0: float, t1: float) -> float:
    """When in [t0, t1] the two are nearest."""
    x, y, z, u, v, w = _at(gap, t0)
    slope0, chord0 = x * u + y * v + z * w, x * x + y * y + z * z
    x, y, z, u, v, w = _at(gap, t1)
    slope1, chord1 = x * u + y * v + z * w, x * x + y * y + z * z
    if not slope0 < 0.0 < slope1:
        return t0 if chord0 <= chord1 else t1
    lo, hi = t0, t1
    t = t0 - slope0 * (t1 - t0) / (slope1 - slope0)
    for _ in range(_NEWTON):
        x, y, z, u, v, w = _at(gap, t)
        slope = x * u + y * v + z * w
        if slope < 0.0:
            lo = t
        else:
            hi = t
        # second derivative: u.u + r.r''
        bx = 2.0 * gap[2, 0] + t * (6.0 * gap[3, 0] + t * (12.0 * gap[4, 0] + t * 20.0 * gap[5, 0]))
        by = 2.0 * gap[2, 1] + t * (6.0 * gap[3, 1] + t * (12.0 * gap[4, 1] + t * 20.0 * gap[5, 1]))
        bz = 2.0 * gap[2, 2] + t * (6.0 * gap[3, 2] + t * (12.0 * gap[4, 2] + t * 20.0 * gap[5, 2]))
        curve = u * u + v * v + w * w + x * bx + y * by + z * bz
        better = t - slope / curve if curve > 0.0 else lo
        if not lo <= better <= hi:
            better = 0.5 * (lo + hi)
        if abs(better - t) < 1e-9:
            return better
        t = better
    return t


@njit(cache=True)
def _crossing(gap: F8, g: float, limit_m: float, outside: float, inside: float) -> float:
    """When the distance passes the limit, between a time outside it and a time inside it."""
    t = inside
    for _ in range(2 * _NEWTON):
        distance_m, rate = _distance(gap, g, t)
        if distance_m < limit_m:
            inside = t
        else:
            outside = t
        better = t - (distance_m - limit_m) / rate if rate != 0.0 else math.inf
        if not min(inside, outside) < better < max(inside, outside):
            better = 0.5 * (inside + outside)
        if abs(better - t) < 1e-9:
            return better
        t = better
    return t


@njit(cache=True, inline="always")
def altitude_gap(a: State, b: State, t_s: float) -> float:
    """How much higher a is than b after t_s seconds, in feet."""
    return float(a.alt_ft - b.alt_ft + a.climb_fts * min(t_s, a.level_s) - b.climb_fts * min(t_s, b.level_s))


@njit(cache=True)
def _while_linear(dz_ft: float, climb_fts: float, limit_ft: float, t0: float, t1: float) -> tuple[float, float]:
    """When in [t0, t1] a gap of dz_ft at t0 that changes steadily is under the limit."""
    if climb_fts == 0.0 or math.isnan(dz_ft):
        return (t1, t0) if abs(dz_ft) >= limit_ft else (t0, t1)
    early, late = t0 + (-limit_ft - dz_ft) / climb_fts, t0 + (limit_ft - dz_ft) / climb_fts
    return max(t0, min(early, late)), min(t1, max(early, late))


@njit(cache=True)
def vertical_window(a: State, b: State, limit_ft: float, horizon_s: float) -> tuple[float, float]:
    """From when to when in [0, horizon] two aircraft are vertically too close; empty if the first is not smaller.

    If they part and meet again, because one levels off before the other, the time between counts as too close.
    """
    limit_ft -= ON_LIMIT_FT
    dz_ft = a.alt_ft - b.alt_ft
    turn1, turn2 = min(a.level_s, b.level_s), max(a.level_s, b.level_s)
    if turn1 >= horizon_s or math.isnan(dz_ft):
        return _while_linear(dz_ft, a.climb_fts - b.climb_fts, limit_ft, 0.0, horizon_s)
    first, last = horizon_s, 0.0
    t0 = 0.0
    for k in range(3):
        t1 = min(turn1 if k == 0 else turn2 if k == 1 else horizon_s, horizon_s)
        if t1 > t0:
            climb_fts = (a.climb_fts if t0 < a.level_s else 0.0) - (b.climb_fts if t0 < b.level_s else 0.0)
            w0, w1 = _while_linear(altitude_gap(a, b, t0), climb_fts, limit_ft, t0, t1)
            if w0 < w1:
                first, last = min(first, w0), w1
            t0 = t1
    return first, last


@njit(cache=True)
def approach(a: State, b: State, horizon_s: float, separation_m: float, vertical_ft: float, gap: F8) -> Approach:
    """How two aircraft pass each other. `gap` is scratch [6, 3].

    TCPA is the time of least horizontal distance in [0, horizon], DCPA that distance. t_in_s to t_out_s is the first
    time inside both minima within the horizon; both are NaN if there is none. It is symmetric in a and b.
    """
    limit_m = separation_m - ON_LIMIT_M
    w0, w1 = vertical_window(a, b, vertical_ft, horizon_s)
    v2a = a.vx_ms * a.vx_ms + a.vy_ms * a.vy_ms + a.vz_ms * a.vz_ms
    v2b = b.vx_ms * b.vx_ms + b.vy_ms * b.vy_ms + b.vz_ms * b.vz_ms
    pieces = 1 + int(math.sqrt(max(v2a, v2b)) * horizon_s / (2.0 * REACH_M))
    half = 0.5 * horizon_s / pieces
    tcpa_s, dcpa_m, now_m = 0.0, math.inf, 0.0
    t_in, t_out, left = math.nan, math.nan, False
    for k in range(pieces):
        centre = (2 * k + 1) * half
        g, speed_ms = _piece(a, b, centre - 0.5 * horizon_s, half, gap)
        if k == 0:
            now_m, _ = _distance(gap, g, -half)
            if speed_ms < STILL_MS:
                lost = now_m < limit_m and w0 < w1
                return Approach(0.0, now_m, w0 if lost else math.nan, w1 if lost else math.nan, now_m)
        t = _nearest(gap, -half, half)
        distance_m, _ = _distance(gap, g, t)
        if distance_m < dcpa_m:
            tcpa_s, dcpa_m = max(0.0, centre + t), distance_m

        t0, t1 = max(w0 - centre, -half), min(w1 - centre, half)
        if left or not t0 < t1:
            continue
        t = t if t0 <= t <= t1 else _nearest(gap, t0, t1)
        first_m, near_m, last_m = _distance(gap, g, t0)[0], _distance(gap, g, t)[0], _distance(gap, g, t1)[0]
        if near_m >= limit_m:
            left = not math.isnan(t_in)
            continue
        if math.isnan(t_in):
            t_in = centre + (t0 if first_m < limit_m else _crossing(gap, g, limit_m, t0, t))
        left = last_m >= limit_m
        t_out = centre + (_crossing(gap, g, limit_m, t1, t) if left else t1)
    return Approach(tcpa_s, dcpa_m, t_in, t_out, now_m)


@njit(cache=True)
def reach(a: State, b: State, horizon_s: float, separation_m: float, tau_s: float) -> float:
    """The horizontal distance from which on two aircraft are too close, as they fly now.

    Without a tau it is the minimum D. With one, aircraft that close in and would pass within D are too close from where
    the modified tau, (r^2 - D^2) / -(r . v), has fallen to it: well clear of RTCA DO-365B, with D for DMOD and HMD.
    Along a straight line with the miss distance h and the way s to it, that is s^2 - tau V s + h^2 - D^2 = 0.
    """
    if not tau_s > 0.0:
        return separation_m
    x, y, z = a.x_m - b.x_m, a.y_m - b.y_m, a.z_m - b.z_m
    u, v, w = a.vx_ms - b.vx_ms, a.vy_ms - b.vy_ms, a.vz_ms - b.vz_ms
    xu, uu = x * u + y * v + z * w, u * u + v * v + w * w
    # positions are those of the middle of the horizon
    if uu <= STILL_MS * STILL_MS or xu - 0.5 * horizon_s * uu >= 0.0:
        return separation_m
    miss2_m2 = max(0.0, x * x + y * y + z * z - xu * xu / uu)
    limit2_m2 = separation_m * separation_m
    if miss2_m2 >= limit2_m2:
        return separation_m
    way_m = tau_s * math.sqrt(uu)
    way_m = 0.5 * (way_m + math.sqrt(way_m * way_m + 4.0 * (limit2_m2 - miss2_m2)))
    return math.sqrt(miss2_m2 + way_m * way_m)


@njit(cache=True)
def passing(
    a: State, b: State, horizon_s: float, separation_m: float, vertical_ft: float, reach_m: float, gap: F8
) -> Approach:
    """`approach` with `reach`: until the closest approach they are too close within reach_m, after it within D."""
    way = approach(a, b, horizon_s, reach_m, vertical_ft, gap)
    if reach_m <= separation_m or math.isnan(way.t_in_s):
        return way
    near = approach(a, b, horizon_s, separation_m, vertical_ft, gap)
    if way.t_in_s >= way.tcpa_s:
        return near
    t_out_s = min(way.t_out_s, way.tcpa_s) if math.isnan(near.t_out_s) else near.t_out_s
    return Approach(way.tcpa_s, way.dcpa_m, way.t_in_s, t_out_s, way.now_m)


@njit(cache=True)
def later(a: State, b: State, horizon_s: float, gap: F8) -> tuple[float, float]:
    """When and how near two aircraft are nearest that are still closing in at the end of the horizon.

    As for `approach`, but without an end; NaN and NaN if they close in over half the way around the Earth.
    """
    v2a = a.vx_ms * a.vx_ms + a.vy_ms * a.vy_ms + a.vz_ms * a.vz_ms
    v2b = b.vx_ms * b.vx_ms + b.vy_ms * b.vy_ms + b.vz_ms * b.vz_ms
    half = REACH_M / max(math.sqrt(max(v2a, v2b)), STILL_MS)
    for k in range(_AROUND):
        centre = horizon_s + (2 * k + 1) * half
        g, _ = _piece(a, b, centre - 0.5 * horizon_s, half, gap)
        t = _nearest(gap, -half, half)
        if t < half:
            return centre + t, _distance(gap, g, t)[0]
    return math.nan, math.nan


@njit(cache=True)
def state_of(lat_deg: float, lon_deg: float, trk_deg: float, gs_ms: float, ahead_s: float, out: State) -> None:
    """Fill position and velocity of a state: the report's position and velocity, ahead_s seconds later."""
    rad = math.pi / 180.0
    sin_lat, cos_lat = math.sin(lat_deg * rad), math.cos(lat_deg * rad)
    sin_lon, cos_lon = math.sin(lon_deg * rad), math.cos(lon_deg * rad)
    north, east = gs_ms * math.cos(trk_deg * rad), gs_ms * math.sin(trk_deg * rad)
    n_m = WGS84_A_M / math.sqrt(1.0 - WGS84_E2 * sin_lat * sin_lat)
    outward = -north * sin_lat  # along the meridian's radius, away from the axis
    out.x_m, out.y_m, out.z_m, out.vx_ms, out.vy_ms, out.vz_ms = travel(
        n_m * cos_lat * cos_lon, n_m * cos_lat * sin_lon, n_m * (1.0 - WGS84_E2) * sin_lat,
        outward * cos_lon - east * sin_lon, outward * sin_lon + east * cos_lon, north * cos_lat,
        ahead_s,
    )  # fmt: skip


def scratch() -> F8:
    """The scratch array that `approach` wants."""
    return np.empty((TERMS, 3))
