"""Who is in conflict with whom at one step, and which commands are deliberate. Shared by `intent` and the evaluation.

Closest approach here is that of the conflict metrics' definition: in the plane that touches the ellipsoid midway
between the two aircraft, both on straight lines, TCPA clamped to [0, horizon] and DCPA taken then. It is the
first-order part of `cpa.approach`, from the same Earth-centred states (`cpa.state_of`): that one follows both geodesics
and is exact, this one costs a few multiplications for a pair, which is what tens of millions of pairs need. For two
minutes at airliner speeds the two differ by less than 2 m (tests/detectors/kernels/test_pairs.py).

Vertically a pair counts when its altitudes now differ by less than the minimum, or when one of them is unknown.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, STILL_MS, State
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import I8, Bool
from watchkeeper.streams.geo import EARTH_IUGG_M, NM_M, WGS84_E2
from watchkeeper.streams.kernels import njit

# For the distances that the metrics define by the haversine formula.
EARTH_NM = EARTH_IUGG_M / NM_M
# A turn that brings the nose nearer to the waypoint by more than this is navigation.
NAVIGATION_DEG = 1.0
# An intruder is a threat up to this distance at closest approach, or up to the separation minimum if that is larger.
THREAT_NM = 6.0
# Closer to its waypoint than this an agent has arrived.
ARRIVED_NM = 1.0

_D = 1.0 / (1.0 - WGS84_E2)
_RAD = math.pi / 180.0


@njit(cache=True)
def haversine_nm(lat1_deg: float, lon1_deg: float, lat2_deg: float, lon2_deg: float) -> float:
    """Distance on the sphere."""
    north = math.sin(0.5 * (lat2_deg - lat1_deg) * _RAD)
    east = math.sin(0.5 * (lon2_deg - lon1_deg) * _RAD)
    share = north * north + math.cos(lat1_deg * _RAD) * math.cos(lat2_deg * _RAD) * east * east
    return 2.0 * EARTH_NM * math.asin(min(1.0, math.sqrt(share)))


@njit(cache=True)
def bearing_deg(lat1_deg: float, lon1_deg: float, lat2_deg: float, lon2_deg: float) -> float:
    """Which way the great circle to the second point leaves the first, clockwise from north."""
    lat1, lat2, dlon = lat1_deg * _RAD, lat2_deg * _RAD, (lon2_deg - lon1_deg) * _RAD
    east = math.sin(dlon) * math.cos(lat2)
    return math.atan2(east, math.cos(lat1) * math.sin(lat2) - math.sin(lat1) * math.cos(lat2) * math.cos(dlon)) / _RAD


@njit(cache=True)
def drift_deg(heading_deg: float, towards_deg: float) -> float:
    """The angle between a heading and a bearing, 0 to 180."""
    return abs((towards_deg - heading_deg + 180.0) % 360.0 - 180.0)


@njit(cache=True)
def significant(turn_deg: float, speed_kt: float, min_turn_deg: float, min_speed_kt: float) -> bool:
    """Whether a command is more than trimming; a missing one (NaN) is not."""
    return abs(turn_deg) >= min_turn_deg or abs(speed_kt) >= min_speed_kt


@njit(cache=True)
def navigation(turn_deg: float, heading_deg: float, towards_deg: float) -> bool:
    """Whether a turn is plainly towards the waypoint; without a waypoint or a heading (NaN) it is not."""
    return drift_deg(heading_deg, towards_deg) - drift_deg(heading_deg + turn_deg, towards_deg) > NAVIGATION_DEG


@njit(cache=True)
def closest(a: State, b: State, horizon_s: float, share_b: float = 1.0) -> tuple[float, float]:
    """TCPA in s and DCPA in m of two states (see approach.py; position and velocity count, as of now).

    The plane touches the ellipsoid midway; with `share_b` 0 it does so at the first of the two.
    """
    x, y, z = b.x_m - a.x_m, b.y_m - a.y_m, b.z_m - a.z_m
    u, v, w = b.vx_ms - a.vx_ms, b.vy_ms - a.vy_ms, b.vz_ms - a.vz_ms
    # outward normal of the ellipsoid there; parts along it are no horizontal motion
    nx, ny, nz = a.x_m + share_b * b.x_m, a.y_m + share_b * b.y_m, _D * (a.z_m + share_b * b.z_m)
    n2 = nx * nx + ny * ny + nz * nz
    if n2 == 0.0:
        return 0.0, math.sqrt(x * x + y * y + z * z)  # on opposite sides of the Earth
    up = (x * nx + y * ny + z * nz) / n2
    x, y, z = x - up * nx, y - up * ny, z - up * nz
    up = (u * nx + v * ny + w * nz) / n2
    u, v, w = u - up * nx, v - up * ny, w - up * nz
    speed2 = u * u + v * v + w * w
    t = 0.0
    if speed2 >= STILL_MS * STILL_MS:
        t = min(max(-(x * u + y * v + z * w) / speed2, 0.0), horizon_s)
    x, y, z = x + t * u, y + t * v, z + t * w
    return t, math.sqrt(x * x + y * y + z * z)


@njit(cache=True)
def level(a_ft: float, b_ft: float, vertical_ft: float) -> bool:
    """Whether two altitudes (NaN: unknown) leave a pair to horizontal separation."""
    return not abs(a_ft - b_ft) >= vertical_ft - ON_LIMIT_FT


class Nearest:
    """The nearest approach of an aircraft to another: how near, when, and to whom (-1: to nobody).

    A conflict is between two that have both not arrived; a threat is anybody.
    """

    dcpa_m: float = math.inf
    tcpa_s: float = math.nan
    other: int = -1
    threat_dcpa_m: float = math.inf
    threat_tcpa_s: float = math.nan
    threat: int = -1


_NOBODY = blank(Nearest, 1)


class Reach(NamedTuple):
    """How far `look` looks: ahead, up or down, and along the third coordinate; and in which plane (`closest`)."""

    horizon_s: float
    vertical_ft: float
    apart_m: float
    share_b: float = 1.0


@njit(cache=True)
def look(order: I8, state: NDArray[Any], controlled: Bool, arrived: Bool, reach: Reach, nearest: NDArray[Any]) -> None:
    """For each aircraft named in `order` its nearest approach to another, and to another that has not arrived either.

    Pairs of which neither is controlled are nobody's business here. With `order` sorted by z, pairs whose z differ by
    more than `reach.apart_m` are passed over.
    """
    for k in range(order.size):
        nearest[order[k]] = _NOBODY[0]
    for k in range(order.size):
        i = order[k]
        a = state[i]
        for m in range(k + 1, order.size):
            j = order[m]
            b = state[j]
            if b.z_m - a.z_m > reach.apart_m:
                break
            if not (controlled[i] or controlled[j]) or not level(a.alt_ft, b.alt_ft, reach.vertical_ft):
                continue
            t, d = closest(a, b, reach.horizon_s, reach.share_b)
            if d < nearest[i].threat_dcpa_m:
                nearest[i].threat_dcpa_m, nearest[i].threat_tcpa_s, nearest[i].threat = d, t, j
            if d < nearest[j].threat_dcpa_m:
                nearest[j].threat_dcpa_m, nearest[j].threat_tcpa_s, nearest[j].threat = d, t, i
            if arrived[i] or arrived[j]:
                continue
            if d < nearest[i].dcpa_m:
                nearest[i].dcpa_m, nearest[i].tcpa_s, nearest[i].other = d, t, j
            if d < nearest[j].dcpa_m:
                nearest[j].dcpa_m, nearest[j].tcpa_s, nearest[j].other = d, t, i


@njit(cache=True)
def conflicting(dcpa_m: float, separation_m: float) -> bool:
    """Whether this is closer than the minimum; on the minimum is separated."""
    return dcpa_m < separation_m - ON_LIMIT_M


def threat_m(separation_nm: float) -> float:
    """Up to which DCPA an intruder is a threat."""
    return max(separation_nm, THREAT_NM) * NM_M


def in_order(n: int) -> I8:
    """Everybody, as `look` wants it where no sorting pays."""
    return np.arange(n, dtype=np.int64)
