"""Distance, bearing and closest point of approach; degrees, nautical miles, knots and seconds.

A sphere for distances and bearings, a plane that touches it midway between two aircraft for their closest approach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

KM_PER_NM = 1.852
WGS84_A_KM = 6378.137
WGS84_E2 = (2.0 - 1.0 / 298.257223563) / 298.257223563


@dataclass(frozen=True, slots=True)
class State:
    """One aircraft at one step."""

    lat: float
    lon: float
    heading_deg: float
    speed_kt: float
    alt_ft: float | None = None


def haversine_nm(lat1: float, lon1: float, lat2: float, lon2: float, radius_km: float) -> float:
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    dphi, dlam = phi2 - phi1, math.radians(lon2 - lon1)
    h = math.sin(dphi / 2.0) ** 2 + math.cos(phi1) * math.cos(phi2) * math.sin(dlam / 2.0) ** 2
    return 2.0 * radius_km / KM_PER_NM * math.asin(min(1.0, math.sqrt(h)))


def bearing_deg(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """The direction in which the great circle to the second point begins, clockwise from north, in [0, 360)."""
    phi1, phi2, dlam = math.radians(lat1), math.radians(lat2), math.radians(lon2 - lon1)
    east = math.sin(dlam) * math.cos(phi2)
    north = math.cos(phi1) * math.sin(phi2) - math.sin(phi1) * math.cos(phi2) * math.cos(dlam)
    return math.degrees(math.atan2(east, north)) % 360.0


def wrapped_deg(angle_deg: float) -> float:
    """The same angle in [-180, 180)."""
    return (angle_deg + 180.0) % 360.0 - 180.0


def drift_deg(heading_deg: float, lat: float, lon: float, waypoint: tuple[float, float]) -> float:
    """How far the nose points away from the waypoint, without sign."""
    return abs(wrapped_deg(bearing_deg(lat, lon, *waypoint) - heading_deg))


def radii_km(lat_rad: float) -> tuple[float, float]:
    """The Earth's radii of curvature on WGS 84: along the meridian, and across it."""
    bent = 1.0 - WGS84_E2 * math.sin(lat_rad) ** 2
    return WGS84_A_KM * (1.0 - WGS84_E2) / bent**1.5, WGS84_A_KM / math.sqrt(bent)


def tcpa_dcpa(own: State, other: State, horizon_s: float, radius_km: float | None) -> tuple[float, float]:
    """Time (s) of the closest approach, clamped to [0, horizon], and the distance (NM) at that time.

    The Earth is a sphere with this radius or, with None, the ellipsoid of WGS 84.
    """
    middle = math.radians((own.lat + other.lat) / 2.0)
    north_km, east_km = radii_km(middle) if radius_km is None else (radius_km, radius_km)
    east = east_km / KM_PER_NM * math.radians(wrapped_deg(other.lon - own.lon)) * math.cos(middle)
    north = north_km / KM_PER_NM * math.radians(other.lat - own.lat)
    # NM per second
    v_east = (_east_kt(other) - _east_kt(own)) / 3600.0
    v_north = (_north_kt(other) - _north_kt(own)) / 3600.0
    speed2 = v_east**2 + v_north**2
    tcpa_s = 0.0
    if speed2 > 1e-12:
        tcpa_s = min(max(-(east * v_east + north * v_north) / speed2, 0.0), horizon_s)
    return tcpa_s, math.hypot(east + v_east * tcpa_s, north + v_north * tcpa_s)


def vertically_apart(own: State, other: State, vertical_ft: float) -> bool:
    """Whether both altitudes are known and differ by the vertical minimum or more."""
    if own.alt_ft is None or other.alt_ft is None:
        return False
    return abs(own.alt_ft - other.alt_ft) >= vertical_ft


def _east_kt(state: State) -> float:
    return state.speed_kt * math.sin(math.radians(state.heading_deg))


def _north_kt(state: State) -> float:
    return state.speed_kt * math.cos(math.radians(state.heading_deg))
