"""Positions of ADS-B from their halves (compact position reporting, DO-260B A.1.7). Used by squitter.py.

A position comes as an even and an odd message in turn, each with 17 bits of latitude and longitude within a zone. Two
halves of at most PAIR_S give a position anywhere; one half next to a position that is known gives the next. As
receivers do: the first position of an aircraft is believed when another pair agrees with it, then every half is read
next to the last position, and one that no aircraft can have reached is left out. After MISSES of those in a row two
pairs must agree again. Halves sent on the ground have zones of a quarter of the size and are read next to a known
position only.

rs1090 pairs halves within one call only. What a stream gives must not depend on how it was cut, so pairing is here.
"""

from __future__ import annotations

from bisect import bisect_right
from math import acos, cos, floor, hypot, pi, radians, sqrt

# Halves further apart belong to two places of a fast aircraft (DO-260B A.1.7.7).
PAIR_S = 10.0
# A position this old says nothing about the zone any more.
KNOWN_S = 300.0
# Faster than every aircraft; the margin is the resolution of the coarsest positions, and of arrival times.
SPEED_MPS, MARGIN_M = 1000.0, 1000.0
MISSES = 4
_METRES_PER_DEG = 111_120.0
_ONE = 131_072.0
_EVEN_ZONES = 60


def _edges() -> list[float]:
    """The latitudes at which the number of longitude zones falls by one, from 59 zones at the equator."""
    turn = 1.0 - cos(pi / (2 * 15))
    return [acos(sqrt(turn / (1.0 - cos(2.0 * pi / zones)))) * 180.0 / pi for zones in range(59, 1, -1)]


_EDGES = _edges()
_ZONES_MOST = 59


def zones_of(lat_deg: float) -> int:
    """How many longitude zones there are at a latitude, 1 to 59."""
    return _ZONES_MOST - bisect_right(_EDGES, abs(lat_deg))


class Half:
    """One half: when, where in its zone (0 to 1), odd or even, and whether it was sent on the ground."""

    __slots__ = ("lat", "lon", "odd", "surface", "t")

    def __init__(self, t: float, lat_cpr: int, lon_cpr: int, *, odd: bool, surface: bool) -> None:
        self.t, self.odd, self.surface = t, odd, surface
        self.lat, self.lon = lat_cpr / _ONE, lon_cpr / _ONE


def paired(even: Half, odd: Half, *, newest_odd: bool) -> tuple[float, float] | None:
    """Latitude and longitude at the newest of two airborne halves; None when they are of different zones."""
    j = floor(59.0 * even.lat - 60.0 * odd.lat + 0.5)
    lats = [
        _wrapped(360.0 / (_EVEN_ZONES - k) * (j % (_EVEN_ZONES - k) + half.lat)) for k, half in ((0, even), (1, odd))
    ]
    if max(map(abs, lats)) > 90.0 or zones_of(lats[0]) != zones_of(lats[1]):
        return None
    lat = lats[newest_odd]
    zones = zones_of(lat)
    m = floor(even.lon * (zones - 1) - odd.lon * zones + 0.5)
    n = max(zones - newest_odd, 1)
    return lat, _wrapped(360.0 / n * (m % n + (odd if newest_odd else even).lon))


def nearby(half: Half, lat_deg: float, lon_deg: float) -> tuple[float, float] | None:
    """The position of this half that is next to a known one."""
    span = 90.0 if half.surface else 360.0
    lat = _next_to(span / (_EVEN_ZONES - half.odd), half.lat, lat_deg)
    if abs(lat) > 90.0:
        return None
    return lat, _wrapped(_next_to(span / max(zones_of(lat) - half.odd, 1), half.lon, lon_deg))


def _next_to(size: float, share: float, known: float) -> float:
    return size * (floor(0.5 + known / size - share) + share)


def _wrapped(deg: float) -> float:
    return deg - 360.0 if deg >= 180.0 else deg + 360.0 if deg < -180.0 else deg


class Track:
    """The positions of one aircraft. `place` gives one where it is sure."""

    __slots__ = ("_halves", "_misses", "_place", "_sure", "_t")

    def __init__(self) -> None:
        self._halves: dict[bool, Half] = {}
        self._place: tuple[float, float] | None = None
        self._sure = False
        self._misses = 0
        self._t = 0.0

    def place(self, half: Half) -> tuple[float, float] | None:
        """Where the aircraft was at this half."""
        if self._place is not None and abs(half.t - self._t) > KNOWN_S:
            self._forget()
        self._halves[half.odd] = half
        if self._sure:
            return self._follow(half)
        return None if half.surface else self._begin(half)

    def _follow(self, half: Half) -> tuple[float, float] | None:
        assert self._place is not None
        found = nearby(half, *self._place)
        if found is None or not self._reached(found, half.t):
            self._misses += 1
            if self._misses >= MISSES:
                self._forget()
            return None
        self._misses = 0
        self._place, self._t = found, half.t
        return found

    def _begin(self, half: Half) -> tuple[float, float] | None:
        """A pair is a position; a second one with a new half of each kind that agrees makes both sure."""
        other = self._halves.get(not half.odd)
        if other is None or other.surface or abs(half.t - other.t) > PAIR_S:
            return None
        even, odd = (other, half) if half.odd else (half, other)
        found = paired(even, odd, newest_odd=half.odd)
        if found is None:
            return None
        if self._place is not None and self._reached(found, half.t):
            self._sure = True
        else:
            # both halves are used up, so that one wrong half cannot agree with itself
            self._halves.clear()
        self._place, self._t = found, half.t
        return found if self._sure else None

    def _reached(self, to: tuple[float, float], t: float) -> bool:
        assert self._place is not None
        lat, lon = self._place
        north_m = (to[0] - lat) * _METRES_PER_DEG
        east_m = _wrapped(to[1] - lon) * _METRES_PER_DEG * cos(radians(lat))
        return hypot(north_m, east_m) <= SPEED_MPS * abs(t - self._t) + MARGIN_M

    def _forget(self) -> None:
        self._halves.clear()
        self._place, self._sure, self._misses = None, False, 0
