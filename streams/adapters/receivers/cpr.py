"""Positions of ADS-B from their halves (compact position reporting, DO-260B A.1.7). Used by heard.py.

A position comes as an even and an odd message in turn, each with 17 bits of latitude and longitude within a zone. Two
halves of at most PAIR_S give a position anywhere; one half next to a position that is known gives the next. As
receivers do: the first position of an aircraft is believed when another pair agrees with it, then every half is read
next to the last position, and one that no aircraft can have reached is left out. After MISSES of those in a row two
pairs must agree again. Halves sent on the ground have zones of a quarter of the size and are read next to a known
position only.

rs1090 pairs halves within one call only. What a stream gives must not depend on how it was cut, so pairing is here.
"""

from __future__ import annotations

from math import acos, cos, floor, hypot, nan, pi, radians, sqrt
from typing import Any

import numpy as np

from watchkeeper.streams.kernels import njit

# Halves further apart belong to two places of a fast aircraft (DO-260B A.1.7.7).
PAIR_S = 10.0
# A position this old says nothing about the zone any more.
KNOWN_S = 300.0
# Faster than every aircraft; the margin is the resolution of the coarsest positions, and of arrival times.
SPEED_MPS, MARGIN_M = 1000.0, 1000.0
MISSES = 4
# A half in the track of an aircraft: there is none, one sent in the air, one sent on the ground.
NONE, AIR, GROUND = 0, 1, 2
_METRES_PER_DEG = 111_120.0
_ONE = 131_072.0
_EVEN_ZONES = 60
_ZONES_MOST = 59
_TURN = 1.0 - cos(pi / (2 * 15))
# The latitudes at which the number of longitude zones falls by one, from 59 zones at the equator.
_EDGES = np.array(
    [acos(sqrt(_TURN / (1.0 - cos(2.0 * pi / zones)))) * 180.0 / pi for zones in range(_ZONES_MOST, 1, -1)]
)

# What is kept of the positions of one aircraft; [even, odd] of the halves.
TRACK: list[tuple[Any, ...]] = [
    ("half_t", np.float64, (2,)),
    ("half_lat", np.float64, (2,)),
    ("half_lon", np.float64, (2,)),
    ("half_from", np.int64, (2,)),
    ("lat", np.float64),
    ("lon", np.float64),
    ("place_t", np.float64),
    ("known", np.bool_),
    ("sure", np.bool_),
    ("misses", np.int64),
]


@njit(cache=True)
def zones_of(lat_deg: float) -> int:
    """How many longitude zones there are at a latitude, 1 to 59."""
    return int(_ZONES_MOST - np.searchsorted(_EDGES, abs(lat_deg), side="right"))


@njit(cache=True)
def place(track: Any, t: float, half: tuple[bool, bool, int, int]) -> tuple[float, float]:
    """Where the aircraft was at this half (odd, on the ground, latitude, longitude); NaN where that is not sure."""
    if track.known and abs(t - track.place_t) > KNOWN_S:
        forget(track)
    is_odd, surface, lat_cpr, lon_cpr = half
    odd = int(is_odd)
    track.half_t[odd] = t
    track.half_lat[odd], track.half_lon[odd] = lat_cpr / _ONE, lon_cpr / _ONE
    track.half_from[odd] = GROUND if surface else AIR
    if track.sure:
        return _follow(track, t, odd)
    return (nan, nan) if surface else _begin(track, t, odd)


@njit(cache=True)
def _follow(track: Any, t: float, odd: int) -> tuple[float, float]:
    lat, lon = _nearby(track, odd)
    if np.isnan(lat) or not _reached(track, t, lat, lon):
        track.misses += 1
        if track.misses >= MISSES:
            forget(track)
        return nan, nan
    track.misses = 0
    track.lat, track.lon, track.place_t = lat, lon, t
    return lat, lon


@njit(cache=True)
def _begin(track: Any, t: float, odd: int) -> tuple[float, float]:
    """A pair is a position; a second one with a new half of each kind that agrees makes both sure."""
    if track.half_from[1 - odd] != AIR or abs(t - track.half_t[1 - odd]) > PAIR_S:
        return nan, nan
    lat, lon = _paired(track, odd)
    if np.isnan(lat):
        return nan, nan
    if track.known and _reached(track, t, lat, lon):
        track.sure = True
    else:
        # both halves are used up, so that one wrong half cannot agree with itself
        track.half_from[0], track.half_from[1] = NONE, NONE
    track.lat, track.lon, track.place_t, track.known = lat, lon, t, True
    return (lat, lon) if track.sure else (nan, nan)


@njit(cache=True)
def _paired(track: Any, odd: int) -> tuple[float, float]:
    """Latitude and longitude at the newest of two airborne halves; NaN when they are of different zones."""
    j = floor(59.0 * track.half_lat[0] - 60.0 * track.half_lat[1] + 0.5)
    even_lat = _wrapped(360.0 / _EVEN_ZONES * (j % _EVEN_ZONES + track.half_lat[0]))
    odd_lat = _wrapped(360.0 / (_EVEN_ZONES - 1) * (j % (_EVEN_ZONES - 1) + track.half_lat[1]))
    if max(abs(even_lat), abs(odd_lat)) > 90.0 or zones_of(even_lat) != zones_of(odd_lat):
        return nan, nan
    lat = odd_lat if odd else even_lat
    zones = zones_of(lat)
    m = floor(track.half_lon[0] * (zones - 1) - track.half_lon[1] * zones + 0.5)
    n = max(zones - odd, 1)
    return lat, _wrapped(360.0 / n * (m % n + track.half_lon[odd]))


@njit(cache=True)
def _nearby(track: Any, odd: int) -> tuple[float, float]:
    """The position of a half that is next to the known one; NaN when there is none."""
    span = 90.0 if track.half_from[odd] == GROUND else 360.0
    lat = _next_to(span / (_EVEN_ZONES - odd), track.half_lat[odd], track.lat)
    if abs(lat) > 90.0:
        return nan, nan
    return lat, _wrapped(_next_to(span / max(zones_of(lat) - odd, 1), track.half_lon[odd], track.lon))


@njit(cache=True)
def _next_to(size: float, share: float, known: float) -> float:
    return float(size * (floor(0.5 + known / size - share) + share))


@njit(cache=True)
def _wrapped(deg: float) -> float:
    return deg - 360.0 if deg >= 180.0 else deg + 360.0 if deg < -180.0 else deg


@njit(cache=True)
def _reached(track: Any, t: float, lat: float, lon: float) -> bool:
    north_m = (lat - track.lat) * _METRES_PER_DEG
    east_m = _wrapped(lon - track.lon) * _METRES_PER_DEG * cos(radians(track.lat))
    return bool(hypot(north_m, east_m) <= SPEED_MPS * abs(t - track.place_t) + MARGIN_M)


@njit(cache=True)
def forget(track: Any) -> None:
    """As if nothing had been heard."""
    track.half_from[0], track.half_from[1] = NONE, NONE
    track.known, track.sure, track.misses = False, False, 0
