"""Separation minima by place and altitude: which zone of the configuration holds an aircraft.

Called by the conflict detector for every aircraft of a tick. The first zone in the order of the file that holds the
aircraft gives its minima; in none, the general ones apply. Of a pair the larger minima hold, so that 3 NM are enough
only between two aircraft that both may fly them.

A zone holds what is within `radius_nm` of its centre (0: everything), from `floor_ft` on and below `ceiling_ft`. The
floor and the ceiling at the ends of their ranges, which are their defaults, are none. An unknown altitude (NaN) is in
those zones only that have neither: what may be outside a terminal area gets no terminal minima.

Distance is the chord between Earth-centred positions on WGS84, compared with the chord of the radius on the sphere
that fits best at the centre. The rim is off the geodesic circle by less than 0.001 % of the radius up to 500 NM, and by
less than 0.02 % at 2,000 NM. Chords know no poles and no antimeridian.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.section import columns
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import NM_M, WGS84_A_M, WGS84_E2, WGS84_F, ecef
from watchkeeper.streams.kernels import njit

_RANGE = {setting.key: setting for setting in columns(Zone)}
LOWEST_FT, HIGHEST_FT = _RANGE["floor_ft"].low, _RANGE["ceiling_ft"].high


class Place:
    """One zone (detectors/kernels/records.py): its centre, the squared chord of its radius, its band and its minima."""

    x_m: float
    y_m: float
    z_m: float
    chord2_m2: float
    floor_ft: float
    ceiling_ft: float
    separation_m: float
    vertical_ft: float
    tau_s: float


class Zones:
    """The zones of a configuration as a `table` for `minima_at`, one row each; without zones it has no rows."""

    def __init__(self, zones: tuple[Zone, ...]) -> None:
        self.table: NDArray[Any] = blank(Place, len(zones))
        for i, zone in enumerate(zones):
            self.table[i] = _row(zone)


def _row(zone: Zone) -> tuple[float, ...]:
    centre, chord2_m2 = (0.0, 0.0, 0.0), math.inf
    if zone.lat is not None and zone.lon is not None:
        centre, chord2_m2 = ecef(zone.lat, zone.lon), _chord_m(zone.lat, zone.radius_nm * NM_M) ** 2
    return (
        *centre,
        chord2_m2,
        -math.inf if zone.floor_ft <= LOWEST_FT else zone.floor_ft,
        math.inf if zone.ceiling_ft >= HIGHEST_FT else zone.ceiling_ft,
        zone.volume.separation_nm * NM_M,
        zone.volume.vertical_ft,
        zone.volume.tau_s,
    )


def _chord_m(lat_deg: float, radius_m: float) -> float:
    """Straight through the Earth to the rim of a circle; the sphere has the Gaussian radius of curvature."""
    earth_m = WGS84_A_M * (1.0 - WGS84_F) / (1.0 - WGS84_E2 * math.sin(math.radians(lat_deg)) ** 2)
    return 2.0 * earth_m * math.sin(0.5 * radius_m / earth_m)


@njit(cache=True)
def minima_at(lat_deg: float, lon_deg: float, alt_ft: float, table: NDArray[Any]) -> tuple[float, float, float, int]:
    """Separation in metres and in feet, the tau, and the zone of an aircraft; NaN, NaN, 0 and -1: no zone holds it."""
    if table.size == 0:
        return math.nan, math.nan, 0.0, -1
    x_m, y_m, z_m = ecef(lat_deg, lon_deg)
    for i in range(table.size):
        zone = table[i]
        everywhere = zone.floor_ft == -math.inf and zone.ceiling_ft == math.inf
        if not (zone.floor_ft <= alt_ft < zone.ceiling_ft or everywhere):
            continue
        dx_m, dy_m, dz_m = x_m - zone.x_m, y_m - zone.y_m, z_m - zone.z_m
        if dx_m * dx_m + dy_m * dy_m + dz_m * dz_m <= zone.chord2_m2:
            return zone.separation_m, zone.vertical_ft, zone.tau_s, i
    return math.nan, math.nan, 0.0, -1
