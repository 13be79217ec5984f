"""Distance, bearing and closest point of approach; degrees, nautical miles, knots and seconds.

A sphere for distances and bearings, a plane that touches WGS 84 midway between two aircraft for their closest approach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

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


def tcpa_dcpa(own: State, other: State, horizon_s: float, radius_km: float | None) -> tuple[float, float]:
    """Time (s) of the closest approach, clamped to [0, horizon], and the distance (NM) at that time.

    In the plane that touches WGS 84 midway between the two; with a radius, on a sphere so small a part of which is flat
    that its miles are those of a map.
    """
    place, speed = _on_a_map(own, other, radius_km) if radius_km is not None else _on_the_tangent_plane(own, other)
    speed2 = float(speed @ speed)
    tcpa_s = min(max(-float(place @ speed) / speed2, 0.0), horizon_s) if speed2 > 1e-12 else 0.0
    return tcpa_s, math.hypot(*(place + tcpa_s * speed))


def _on_a_map(own: State, other: State, radius_km: float) -> tuple[Vector, Vector]:
    """Place (NM) and velocity (NM/s) of the other as seen from its own: east and north."""
    nm_per_deg = math.radians(radius_km / KM_PER_NM)
    middle = math.radians((own.lat + other.lat) / 2.0)
    east = nm_per_deg * wrapped_deg(other.lon - own.lon) * math.cos(middle)
    return np.array([east, nm_per_deg * (other.lat - own.lat)]), _course(other) - _course(own)


def _on_the_tangent_plane(own: State, other: State) -> tuple[Vector, Vector]:
    """The same in space, without what is up or down midway between the two."""
    here, there = _place_nm(own), _place_nm(other)
    up = (here + there) / [1.0, 1.0, 1.0 - WGS84_E2]
    up /= math.hypot(*up)
    place, speed = there - here, _axes(other) @ _course(other) - _axes(own) @ _course(own)
    return place - (place @ up) * up, speed - (speed @ up) * up


def _place_nm(state: State) -> Vector:
    """From the centre of the Earth: towards 0 N 0 E, 0 N 90 E, and the pole."""
    lat, lon = math.radians(state.lat), math.radians(state.lon)
    across = WGS84_A_KM / KM_PER_NM / math.sqrt(1.0 - WGS84_E2 * math.sin(lat) ** 2)
    out = across * math.cos(lat)
    return np.array([out * math.cos(lon), out * math.sin(lon), across * (1.0 - WGS84_E2) * math.sin(lat)])


def _axes(state: State) -> Vector:
    """East and north at a place, as columns of the same three axes."""
    lat, lon = math.radians(state.lat), math.radians(state.lon)
    east = [-math.sin(lon), math.cos(lon), 0.0]
    north = [-math.sin(lat) * math.cos(lon), -math.sin(lat) * math.sin(lon), math.cos(lat)]
    return np.array([east, north]).T


def _course(state: State) -> Vector:
    """Velocity in NM/s: east and north."""
    heading = math.radians(state.heading_deg)
    return state.speed_kt / 3600.0 * np.array([math.sin(heading), math.cos(heading)])


def vertically_apart(own: State, other: State, vertical_ft: float) -> bool:
    """Whether both altitudes are known and differ by the vertical minimum or more."""
    if own.alt_ft is None or other.alt_ft is None:
        return False
    return abs(own.alt_ft - other.alt_ft) >= vertical_ft
