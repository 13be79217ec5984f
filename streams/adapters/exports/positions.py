"""Where samples are on the globe: for every kind that has `lat` and `lon`, longitude, latitude and altitude in metres.

ADS-B's altitude is the pressure altitude, which is not the height above the sea; it is converted to metres and nothing
else. A GPS sample in a local frame has a place on the globe only when somebody says where the frame begins (Origin):
gps_x and gps_y are then distance and direction from there, along the ellipsoid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, I4, Columns
from watchkeeper.streams.geo import FT_M, direct_many
from watchkeeper.streams.logs.base import Origin
from watchkeeper.streams.messages import COLUMN, GPS, Kind

PLACED: tuple[Kind, ...] = tuple(kind for kind in Kind if {"lat", "lon"} <= COLUMN[kind].keys())
# Feet become metres with so many digits: a tenth of a millimetre, and no noise behind it.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Positions:
    """Samples with a place, in order of arrival: rows of the columns that they were made from, and t, lon, lat, alt_m.

    `where[i]` is (t, lon, lat, alt_m) of one sample; alt_m is NaN where there is none.
    """

    rows: I4
    vid: I4
    via: I4
    where: F8


def positions(kind: Kind, cols: Columns, origin: Origin | None = None) -> Positions | None:
    """The samples of a kind that have a place on the globe; None when the kind has none, or no sample has."""
    if kind not in PLACED:
        return None
    lat, lon, alt_m = _geodetic(kind, cols)
    if origin is not None and kind is Kind.GPS:
        local = np.isnan(lat) | np.isnan(lon)
        there = np.stack((lat, lon, alt_m))
        there[:, local] = _from_local(cols.data[:, local], origin)
        lat, lon, alt_m = there
    rows = np.flatnonzero(np.isfinite(lat) & np.isfinite(lon)).astype(np.int32)
    if not len(rows):
        return None
    where = np.stack((cols.t, lon, lat, alt_m), axis=1)[rows]
    return Positions(rows, cols.vid[rows], cols.via[rows], where)


def _geodetic(kind: Kind, cols: Columns) -> tuple[F8, F8, F8]:
    """Latitude, longitude and altitude as the samples say them."""
    column = COLUMN[kind]
    alt_m = np.full(len(cols), np.nan)
    if "alt_m" in column:
        alt_m = cols.data[column["alt_m"]]
    elif "alt_ft" in column:
        alt_m = np.round(cols.data[column["alt_ft"]] * FT_M, _DIGITS)
    return cols.data[column["lat"]], cols.data[column["lon"]], alt_m


def _from_local(data: F8, origin: Origin) -> F8:
    """Latitude, longitude and altitude of positions in a local frame, as rows."""
    x, y, z = data[GPS.gps_x], data[GPS.gps_y], data[GPS.gps_z]
    north, east, up = (x, y, -z) if origin.axes == "ned" else (y, x, z)
    start = np.ones(len(x))
    azimuth = np.degrees(np.arctan2(east, north))
    lat, lon, _ = direct_many(origin.lat * start, origin.lon * start, azimuth, np.hypot(north, east))
    return np.stack((lat, lon, origin.alt_m + up))
