"""Where on a flat map a position is: Mercator around the middle of an episode, in nautical miles east and north.

Mercator keeps angles, so that a heading is drawn as it is flown and a circle stays a circle. A mile is a mile at the
middle latitude; elsewhere it is drawn `stretch` times as long. Called by scene.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8

NM_PER_DEG = 60.0
# Mercator has no poles; nothing is drawn nearer to them.
LIMIT_DEG = 89.0


@dataclass(frozen=True, slots=True)
class Chart:
    """The middle of the map, in degrees."""

    lat_deg: float
    lon_deg: float

    @property
    def shrink(self) -> float:
        """Length of a degree of longitude at the middle, over that at the equator."""
        return float(np.cos(np.radians(self.lat_deg)))

    @property
    def middle(self) -> float:
        """Mercator's ordinate of the middle."""
        return float(_ordinate(np.array(self.lat_deg)))

    def place(self, lat_deg: F8, lon_deg: F8) -> tuple[F8, F8]:
        """East and north of the middle, NM; longitudes are taken the short way round."""
        east_deg = (lon_deg - self.lon_deg + 180.0) % 360.0 - 180.0
        north_deg = np.degrees(_ordinate(lat_deg) - self.middle)
        return east_deg * NM_PER_DEG * self.shrink, north_deg * NM_PER_DEG * self.shrink

    def stretch(self, lat_deg: F8) -> F8:
        """How much longer than at the middle a mile is drawn at these latitudes."""
        found: F8 = self.shrink / np.cos(np.radians(np.clip(lat_deg, -LIMIT_DEG, LIMIT_DEG)))
        return found


def chart_of(lat_deg: F8, lon_deg: F8) -> Chart:
    """The chart whose middle is that of these positions; NaN are left out."""
    there = np.isfinite(lat_deg) & np.isfinite(lon_deg)
    if not there.any():
        return Chart(0.0, 0.0)
    lat, lon = np.clip(lat_deg[there], -LIMIT_DEG, LIMIT_DEG), lon_deg[there]
    east = (lon - lon[0] + 180.0) % 360.0 - 180.0
    middle = float(lon[0] + (east.min() + east.max()) / 2.0)
    return Chart(float(lat.min() + lat.max()) / 2.0, (middle + 180.0) % 360.0 - 180.0)


def _ordinate(lat_deg: F8) -> F8:
    found: F8 = np.arctanh(np.sin(np.radians(np.clip(lat_deg, -LIMIT_DEG, LIMIT_DEG))))
    return found
