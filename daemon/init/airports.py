"""Airports with their place, elevation and size, for the zones that `init` proposes (airspace.py).

airports.csv.gz is an extract of OurAirports (https://ourairports.com/data), which its authors dedicated to the public
domain; tools/airports.py makes it. It has the large and medium airports of the world, and the small ones with a hard
runway of 2,500 ft or more: one line each, `ident,lat,lon,elevation_ft,size` with l, m or s, after lines that begin
with # and say where it is from.
"""

from __future__ import annotations

import math
from importlib.resources import as_file, files
from typing import Literal, NamedTuple, cast

from watchkeeper.streams.foreign.files import read_document
from watchkeeper.streams.geo import NM_M

Size = Literal["l", "m", "s"]
FILE = "airports.csv.gz"
_RADIUS_M = 6_371_000.0


class Airport(NamedTuple):
    """One airport. An elevation that is not known is 0."""

    ident: str
    lat: float
    lon: float
    elevation_ft: float
    size: Size


def airports() -> list[Airport]:
    """All of the extract."""
    with as_file(files(__package__).joinpath(FILE)) as path:
        lines = read_document(path).decode("ascii").splitlines()
    found = []
    for line in lines:
        if not line.startswith("#"):
            ident, lat, lon, elevation_ft, size = line.split(",")
            found.append(Airport(ident, float(lat), float(lon), float(elevation_ft or 0.0), cast(Size, size)))
    return found


def distance_nm(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Between two places, on a sphere: good to half a per cent.

    >>> round(distance_nm((49.0128, 2.55), (48.7233, 2.3794)), 1)
    18.6
    """
    (lat1, lon1), (lat2, lon2) = ((math.radians(lat), math.radians(lon)) for lat, lon in (one, other))
    half = math.sin(0.5 * (lat2 - lat1)) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(0.5 * (lon2 - lon1)) ** 2
    return 2.0 * _RADIUS_M * math.asin(math.sqrt(min(1.0, half))) / NM_M
