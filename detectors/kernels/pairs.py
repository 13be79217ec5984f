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

import numpy as np

from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, STILL_MS
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.geo import NM_M, WGS84_E2
from watchkeeper.streams.kernels import njit

# Mean radius of the Earth in nautical miles, for the distances that the metrics define by the haversine formula.
EARTH_NM = 6_371_008.8 / NM_M
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
def closest(a: F8, b: F8, horizon_s: float) -> tuple[float, float]:
    """TCPA in s and DCPA in m of two states (see approach.py; the first six numbers count, as of now)."""
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    u, v, w = b[3] - a[3], b[4] - a[4], b[5] - a[5]
    # outward normal of the ellipsoid midway; parts along it are no horizontal motion
    nx, ny, nz = a[0] + b[0], a[1] + b[1], _D * (a[2] + b[2])
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


@njit(cache=True)
def look(
    order: I8, state: F8, alt_ft: F8, controlled: Bool, horizon_s: float, vertical_ft: float, reach_m: float,
    dcpa_m: F8, tcpa_s: F8, other: I8,
) -> None:  # fmt: skip
    """For each aircraft named in `order` its nearest approach to another: how near, when, and to whom (-1: to nobody).

    Pairs of which neither is controlled are nobody's business here. With `order` sorted by the third number of the
    state, pairs whose that number differs by more than reach_m are passed over.
    """
    for k in range(order.size):
        dcpa_m[order[k]], tcpa_s[order[k]], other[order[k]] = math.inf, math.nan, -1
    for k in range(order.size):
        i = order[k]
        for m in range(k + 1, order.size):
            j = order[m]
            if state[j, 2] - state[i, 2] > reach_m:
                break
            if not (controlled[i] or controlled[j]) or not level(alt_ft[i], alt_ft[j], vertical_ft):
                continue
            t, d = closest(state[i], state[j], horizon_s)
            if d < dcpa_m[i]:
                dcpa_m[i], tcpa_s[i], other[i] = d, t, j
            if d < dcpa_m[j]:
                dcpa_m[j], tcpa_s[j], other[j] = d, t, i


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
