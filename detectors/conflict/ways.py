"""Ways out of a conflict: the tracks, speeds, levels and climbs that keep two aircraft apart for the horizon.

For each of the two, while the other goes on as it is: every candidate of a grid is flown from now on, in place of what
the aircraft does, and judged by the same closest approach and the same minima that found the conflict. A change of
track, speed or climb is instantaneous, as in the instantaneous bands of DAIDALUS; a change of level takes its time.
Neighbouring candidates that keep the minima are one range. It is about this pair alone: no other traffic, no ground, no
weather, and not what the aircraft can fly. It is information, not an instruction.

Straight lines decide about most candidates, with a margin for the curvature of the Earth; only those near the limit are
computed exactly. Asked by the conflict detector for pairs whose alarms say something, never for all pairs of a tick.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.conflict.constants import (
    CLIMB_MOST_FPM,
    CLIMB_STEP_FPM,
    LEVEL_FPM,
    LEVEL_REACH_FT,
    LEVEL_STEP_FT,
    SPEED_SHARE,
    SPEED_STEP_KT,
    TRACK_STEP_DEG,
)
from watchkeeper.detectors.conflict.minima import Minima, minima_of
from watchkeeper.detectors.kernels.approach import (
    STILL_MS,
    State,
    passing,
    reach,
    scratch,
    state_of,
    travel,
    vertical_window,
)
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.geo import KT_MS, WGS84_A_M, WGS84_B_M, WGS84_E2
from watchkeeper.streams.kernels import njit

# What is varied, in this order; the names are those of the telemetry.
NAMES = ("trk_deg", "gs_kt", "alt_ft", "vs_fpm")
TRACK, SPEED, LEVEL, CLIMB = range(4)
# Candidates of one band at most: speeds beyond them (of an aircraft at more than 1,200 kt) are left out.
MOST = 128
NOT_KNOWN = -1.0
DIGITS = 2
_D = 1.0 / (1.0 - WGS84_E2)
# By how much a straight line leaves the Earth, per square of the way: no normal section is bent more than this.
_BEND = 0.5 * WGS84_A_M / (WGS84_B_M * WGS84_B_M)
# What the bend leaves out: the arc over a chord, and the pair that moves so slowly that it is taken to stand still.
_SLACK_M, _SLACK_SHARE = 5.0, 1e-3
# Parts of a step that rounding makes.
_ROUND = 1e-6
_TRACKS = round(360.0 / TRACK_STEP_DEG)
_NORTH = np.cos(np.radians(TRACK_STEP_DEG * np.arange(_TRACKS)))
_EAST = np.sin(np.radians(TRACK_STEP_DEG * np.arange(_TRACKS)))


class Work(NamedTuple):
    """What is found, and what it takes: see `look`."""

    found: F8
    free: Bool
    tried: NDArray[Any]
    gap: F8


class Limits(NamedTuple):
    """What is needed of a pair: its minima, and the tau that must remain while it closes in (kernels/approach.py)."""

    separation_m: float
    vertical_ft: float
    tau_s: float
    horizon_s: float


class Place(NamedTuple):
    """A vector, Earth-centred."""

    x: float
    y: float
    z: float


class Meeting(NamedTuple):
    """Two aircraft now: where the first is, also as seen from the other (m), and the other's velocity (m/s).

    They are vertically too close between `from_s` and `to_s`.
    """

    here: Place
    apart: Place
    other_ms: Place
    from_s: float
    to_s: float
    limits: Limits


class Ways:
    """Work arrays for one pair."""

    def __init__(self) -> None:
        self._work = Work(np.empty(8 * (2 + MOST)), np.zeros(MOST, np.bool_), blank(State, 1), scratch())

    def compile(self) -> None:
        """Have the kernel compiled, on two aircraft of unknown altitude."""
        state = blank(State, 2)
        for row in state:
            state_of(0.0, 0.0, 0.0, 1.0, 0.0, row)
        look(0, 1, state, Minima(1.0, 1.0, 1.0), self._work)

    def of(self, i: int, j: int, ids: tuple[str, str], state: NDArray[Any], minima: Minima) -> list[dict[str, Any]]:
        """The ways out of the two aircraft in these rows of `state`, as the evidence has them (declaration.Way)."""
        found = self._work.found[: look(i, j, state, minima, self._work)].tolist()
        ways: list[dict[str, Any]] = []
        at = 0
        for name in ids:
            way: dict[str, Any] = {"id": name}
            for band in NAMES:
                now, n = found[at], found[at + 1]
                at += 2
                free = None
                if n != NOT_KNOWN:
                    end = at + 2 * int(n)
                    free = [[found[k], found[k + 1]] for k in range(at, end, 2)]
                    at = end
                way[band] = {"now": None if math.isnan(now) else round(now, DIGITS), "free": free}
            ways.append(way)
        return ways


@njit(cache=True)
def look(i: int, j: int, state: NDArray[Any], minima: Minima, work: Work) -> int:
    """Fill `work.found` with the bands of both aircraft; returns how much of it is used.

    For each aircraft and band: the value now, the number of ranges (-1: not known), and each range, from and to.
    """
    at = 0
    for k in range(2):
        one, other = state[i if k == 0 else j], state[j if k == 0 else i]
        separation_m, vertical_ft, tau_s = minima_of(one, other, minima)
        limits = Limits(separation_m, vertical_ft, tau_s, minima.horizon_s)
        at = _across(at, one, other, limits, work)
        at = _up_and_down(at, one, other, limits, work)
    return at


@njit(cache=True)
def _across(at: int, one: State, other: State, limits: Limits, work: Work) -> int:
    """Tracks and speeds, from where the aircraft is now."""
    half = 0.5 * limits.horizon_s
    x, y, z, vx, vy, vz = travel(one.x_m, one.y_m, one.z_m, one.vx_ms, one.vy_ms, one.vz_ms, -half)
    ox, oy, oz, ovx, ovy, ovz = travel(other.x_m, other.y_m, other.z_m, other.vx_ms, other.vy_ms, other.vz_ms, -half)
    # unit vectors to the east and to the north; at a pole any direction will do for east
    flat, up = math.sqrt(x * x + y * y), math.sqrt(x * x + y * y + _D * _D * z * z)
    ex, ey = (-y / flat, x / flat) if flat > 0.0 else (0.0, 1.0)
    nx, ny, nz = -ey * _D * z / up, ex * _D * z / up, (x * ey - y * ex) / up
    gs_ms = math.sqrt(vx * vx + vy * vy + vz * vz)
    trk_deg = math.degrees(math.atan2(vx * ex + vy * ey, vx * nx + vy * ny + vz * nz)) % 360.0
    if gs_ms < STILL_MS:
        # it hovers: it has no track, and which way it would go faster is not known
        return _unknown(_unknown(at, math.nan, work), 0.0, work)
    tried = work.tried[0]
    tried.alt_ft, tried.climb_fts, tried.level_s = one.alt_ft, one.climb_fts, one.level_s
    from_s, to_s = vertical_window(one, other, limits.vertical_ft, limits.horizon_s)
    here, apart, other_ms = Place(x, y, z), Place(x - ox, y - oy, z - oz), Place(ovx, ovy, ovz)
    meeting = Meeting(here, apart, other_ms, from_s, to_s, limits)

    for c in range(_TRACKS):
        north, east = gs_ms * _NORTH[c], gs_ms * _EAST[c]
        ux, uy, uz = north * nx + east * ex, north * ny + east * ey, north * nz
        work.free[c] = _kept(Place(ux, uy, uz), meeting, other, work)
    at = _gather(at, TRACK, trk_deg, 0, _TRACKS, TRACK_STEP_DEG, work)

    gs_kt = gs_ms / KT_MS
    # the speed comes back from a velocity in space, so a round number is not quite one
    first = math.ceil(gs_kt * (1.0 - SPEED_SHARE) / SPEED_STEP_KT - _ROUND)
    count = min(math.floor(gs_kt * (1.0 + SPEED_SHARE) / SPEED_STEP_KT + _ROUND) - first + 1, MOST)
    for c in range(count):
        share = (first + c) * SPEED_STEP_KT / gs_kt
        work.free[c] = _kept(Place(share * vx, share * vy, share * vz), meeting, other, work)
    return _gather(at, SPEED, gs_kt, first, count, SPEED_STEP_KT, work)


@njit(cache=True)
def _kept(own_ms: Place, meeting: Meeting, other: State, work: Work) -> bool:
    """Whether the first aircraft, with this velocity, keeps the minima for the whole horizon."""
    if meeting.from_s >= meeting.to_s:
        return True
    (vx, vy, vz), (ovx, ovy, ovz), (rx, ry, rz) = own_ms, meeting.other_ms, meeting.apart
    ux, uy, uz = vx - ovx, vy - ovy, vz - ovz
    xu, uu = rx * ux + ry * uy + rz * uz, ux * ux + uy * uy + uz * uz
    t = min(max(-xu / (uu + 1e-9), meeting.from_s), meeting.to_s)
    near_m = math.sqrt(max(0.0, rx * rx + ry * ry + rz * rz + t * (2.0 * xu + t * uu)))
    bend_m = _BEND * t * t * (vx * vx + vy * vy + vz * vz + ovx * ovx + ovy * ovy + ovz * ovz)
    limits = meeting.limits
    limit_m, horizon_s = limits.separation_m, limits.horizon_s
    slack_m = bend_m + STILL_MS * horizon_s + _SLACK_M + _SLACK_SHARE * limit_m
    # a tau makes the limit larger for some candidates than for others
    if near_m - slack_m >= limit_m and not limits.tau_s > 0.0:
        return True
    if near_m + slack_m < limit_m:
        return False
    tried = work.tried[0]
    here = meeting.here
    tried.x_m, tried.y_m, tried.z_m, tried.vx_ms, tried.vy_ms, tried.vz_ms = travel(
        here.x, here.y, here.z, vx, vy, vz, 0.5 * horizon_s
    )
    reach_m = reach(tried, other, horizon_s, limit_m, limits.tau_s)
    return math.isnan(passing(tried, other, horizon_s, limit_m, limits.vertical_ft, reach_m, work.gap).t_in_s)


@njit(cache=True)
def _up_and_down(at: int, one: State, other: State, limits: Limits, work: Work) -> int:
    """Levels, reached at the present rate of climb or a usual one, and rates of climb that go on."""
    climb_fts = one.climb_fts if one.level_s > 0.0 else 0.0
    if math.isnan(one.alt_ft) or math.isnan(other.alt_ft):
        return _unknown(_unknown(at, one.alt_ft, work), climb_fts * 60.0, work)
    # across they go on as they are: when they are too close there is the same for every candidate
    horizon_s, reach_m = limits.horizon_s, reach(one, other, limits.horizon_s, limits.separation_m, limits.tau_s)
    across = passing(one, other, horizon_s, limits.separation_m, math.inf, reach_m, work.gap)
    tried = work.tried[0]
    tried.alt_ft = one.alt_ft

    # below zero there is no level to fly at
    first = max(0, math.ceil((one.alt_ft - LEVEL_REACH_FT) / LEVEL_STEP_FT - _ROUND))
    count = max(0, math.floor((one.alt_ft + LEVEL_REACH_FT) / LEVEL_STEP_FT + _ROUND) - first + 1)
    for c in range(count):
        way_ft = (first + c) * LEVEL_STEP_FT - one.alt_ft
        rate_fts = max(LEVEL_FPM / 60.0, climb_fts if way_ft > 0.0 else -climb_fts)
        tried.climb_fts, tried.level_s = math.copysign(rate_fts, way_ft), abs(way_ft) / rate_fts
        work.free[c] = _above(tried, other, limits.vertical_ft, horizon_s, across.t_in_s, across.t_out_s)
    at = _gather(at, LEVEL, one.alt_ft, first, count, LEVEL_STEP_FT, work)

    tried.level_s = math.inf
    most = round(CLIMB_MOST_FPM / CLIMB_STEP_FPM)
    for c in range(2 * most + 1):
        tried.climb_fts = (c - most) * CLIMB_STEP_FPM / 60.0
        work.free[c] = _above(tried, other, limits.vertical_ft, horizon_s, across.t_in_s, across.t_out_s)
    return _gather(at, CLIMB, climb_fts * 60.0, -most, 2 * most + 1, CLIMB_STEP_FPM, work)


@njit(cache=True, inline="always")
def _above(one: State, other: State, vertical_ft: float, horizon_s: float, in_s: float, out_s: float) -> bool:
    """Whether two aircraft keep the vertical minimum while they are too close across, if they ever are."""
    from_s, to_s = vertical_window(one, other, vertical_ft, horizon_s)
    return math.isnan(in_s) or max(from_s, in_s) >= min(to_s, out_s)


@njit(cache=True)
def _gather(at: int, band: int, now: float, first: int, count: int, step: float, work: Work) -> int:
    """Write a band: the free ones of `count` candidates as ranges; of tracks clockwise, so that one may go through 0.

    Returns where the next band begins.
    """
    free, found = work.free, work.found
    n = 0
    begin = at + 2
    for c in range(count):
        if not free[c]:
            continue
        if c == 0 or not free[c - 1]:
            found[begin + 2 * n] = (first + c) * step
            n += 1
        found[begin + 2 * n - 1] = (first + c) * step
    if band == TRACK and n > 0 and free[0] and free[count - 1]:
        if n == 1:
            found[begin + 1] = 360.0
        else:
            n -= 1
            found[begin] = found[begin + 2 * n]
    found[at], found[at + 1] = now, n
    return begin + 2 * n


@njit(cache=True, inline="always")
def _unknown(at: int, now: float, work: Work) -> int:
    """Write a band of which nothing can be said."""
    work.found[at], work.found[at + 1] = now, NOT_KNOWN
    return at + 2
