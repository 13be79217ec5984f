"""Random traffic as dense as the busiest airspace, for benchmarks: N aircraft in one disc around Paris.

Density: in the three hours of the recording `quickstart` (`make data`; Paris, 2021-10-07) the busiest disc of 30 NM
held 19 aircraft above 3,000 ft, 20 per 10,000 km2; all of the disc of 60 NM around Paris held at most 7 per
10,000 km2, and Switzerland's busiest disc of 30 NM (recording `switzerland`, 2018-08-01) 17. The area grows with N, so
that the density stays equal: 100,000 aircraft fill a disc of 4,100 km radius. On the real Earth they would stand in
many small hot spots with emptier sky between, which is less work: here everybody is in the middle of one.

Levels: half of the aircraft cruise on multiples of 1,000 ft between 28,000 and 41,000 ft, a tenth of those a step of
25 ft off; the other half climb or descend at 500 to 3,000 ft/min anywhere between 3,000 and 41,000 ft, in steps of
25 ft. (Over Paris 80 % climb or descend, over Switzerland 5 %.) Speeds are 250 to 500 kt and tracks random, while real
streams have common ones, so there are more conflicts than controllers would allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import EARTH_M

DENSITY_PER_10000_KM2 = 20.0
_CENTRE_DEG = (48.86, 2.35)
_STEP_FT = 25


@dataclass(frozen=True, slots=True)
class Traffic:
    """One moment, a value per aircraft in each column."""

    lat_deg: F8
    lon_deg: F8
    trk_deg: F8
    gs_kt: F8
    alt_ft: F8
    vs_fpm: F8

    def __len__(self) -> int:
        return len(self.lat_deg)


def hot_spot(n: int, seed: int, density_per_10000_km2: float = DENSITY_PER_10000_KM2) -> Traffic:
    """N aircraft; the same for the same seed and density."""
    rng = np.random.default_rng(seed)
    lat_deg, lon_deg = _disc(rng, n, 1e4 * n / density_per_10000_km2)
    cruises = rng.random(n) < 0.5
    off_ft = _STEP_FT * rng.choice([-1, 1], n) * (rng.random(n) < 0.1)
    cruise_ft = 1000 * rng.integers(28, 42, n) + off_ft
    other_ft = _STEP_FT * rng.integers(3000 // _STEP_FT, 41_000 // _STEP_FT, n)
    return Traffic(
        lat_deg=lat_deg,
        lon_deg=lon_deg,
        trk_deg=rng.uniform(0.0, 360.0, n),
        gs_kt=rng.uniform(250.0, 500.0, n),
        alt_ft=np.where(cruises, cruise_ft, other_ft).astype(np.float64),
        vs_fpm=np.where(cruises, 0.0, rng.choice([-1.0, 1.0], n) * rng.uniform(500.0, 3000.0, n)),
    )


def _disc(rng: np.random.Generator, n: int, area_km2: float) -> tuple[F8, F8]:
    """Evenly spread points of a spherical cap of this area: latitudes and longitudes."""
    height = area_km2 / (2.0 * np.pi * (EARTH_M / 1000.0) ** 2)  # in Earth radii; a cap's area is proportional to it
    if height > 2.0:
        raise ValueError(f"{n:,} aircraft at this density need more than the whole Earth")
    cos_away = 1.0 - height * rng.random(n)
    sin_away = np.sqrt(1.0 - cos_away**2)
    bearing = rng.uniform(0.0, 2.0 * np.pi, n)
    lat0, lon0 = np.radians(_CENTRE_DEG)
    sin_lat = np.sin(lat0) * cos_away + np.cos(lat0) * sin_away * np.cos(bearing)
    east = np.sin(bearing) * sin_away * np.cos(lat0)
    lon = lon0 + np.arctan2(east, cos_away - np.sin(lat0) * sin_lat)
    return np.degrees(np.arcsin(sin_lat)), (np.degrees(lon) + 180.0) % 360.0 - 180.0
