"""Closest approach against WGS84 geodesics in every latitude band: 10,000 random pairs each, none excepted.

The oracle is GeographicLib's own code, as PROJ carries it (pyproj), because it takes whole arrays. Positions are
carried along their geodesics and the closest approach is where the rate of the distance changes sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyproj import Geod

from watchkeeper.detectors.kernels import approach as cpa
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8

WGS84 = Geod(ellps="WGS84")
HORIZON_S, SEPARATION_M, VERTICAL_FT = 120.0, 9260.0, 1000.0
KT_MS = 1852.0 / 3600.0
DCPA_M, TCPA_S = 2.0, 0.02


def pairs(low_deg: float, high_deg: float, n: int) -> tuple[F8, F8]:
    """Random aircraft in a band and another one near each: columns lat, lon, track, speed."""
    rng = np.random.default_rng(abs(int(low_deg)) * 2 + (low_deg < 0))
    lat, lon = rng.uniform(low_deg, high_deg, n), rng.uniform(-180.0, 180.0, n)
    lon[: n // 10] = 180.0 + rng.uniform(-0.3, 0.3, n // 10)  # a tenth of them at the antimeridian
    lon = (lon + 180.0) % 360.0 - 180.0
    lon2, lat2, _ = WGS84.fwd(lon, lat, rng.uniform(0.0, 360.0, n), rng.uniform(0.0, 40.0 * 1852.0, n))
    tracks, speeds = rng.uniform(0.0, 360.0, (2, n)), rng.uniform(100.0, 600.0, (2, n)) * KT_MS
    return np.array([lat, lon, tracks[0], speeds[0]]), np.array([lat2, lon2, tracks[1], speeds[1]])


def distance_and_rate(a: F8, b: F8, t: F8) -> tuple[F8, F8]:
    lon_a, lat_a, back_a = WGS84.fwd(a[1], a[0], a[2], a[3] * t)
    lon_b, lat_b, back_b = WGS84.fwd(b[1], b[0], b[2], b[3] * t)
    azimuth, back, distance_m = WGS84.inv(lon_a, lat_a, lon_b, lat_b)
    along_a = a[3] * np.cos(np.radians(back_a + 180.0 - azimuth))
    along_b = b[3] * np.cos(np.radians(back_b + 180.0 - (back + 180.0)))
    return distance_m, along_b - along_a


def closest(a: F8, b: F8) -> tuple[F8, F8]:
    """When in [0, horizon] the two are closest, and how close."""
    n = a.shape[1]
    low, high = np.zeros(n), np.full(n, HORIZON_S)
    (_, first), (_, last) = distance_and_rate(a, b, low), distance_and_rate(a, b, high)
    high[first >= 0.0] = 0.0
    low[last <= 0.0] = HORIZON_S
    for _ in range(45):
        t = 0.5 * (low + high)
        closing = distance_and_rate(a, b, t)[1] < 0.0
        low, high = np.where(closing, t, low), np.where(closing, high, t)
    t = 0.5 * (low + high)
    # who flies apart and then together has no single minimum in between
    ends = [np.zeros(n), np.full(n, HORIZON_S), t]
    distances = np.array([distance_and_rate(a, b, end)[0] for end in ends])
    best = distances.argmin(axis=0)
    return np.choose(best, ends), distances.min(axis=0)


def states(aircraft: F8) -> Any:
    out = blank(cpa.State, aircraft.shape[1])
    for row, (lat, lon, trk, gs) in zip(out, aircraft.T, strict=True):
        cpa.state_of(lat, lon, trk, gs, 0.5 * HORIZON_S, row)
        row["alt_ft"], row["climb_fts"] = 30_000.0, 0.0
    return out


def errors(low_deg: float, n: int) -> tuple[float, float]:
    """The worst error of DCPA and of TCPA in a band of ten degrees."""
    a, b = pairs(low_deg, low_deg + 10.0, n)
    t, distance_m = closest(a, b)
    gap = cpa.scratch()
    found = np.array(
        [
            cpa.approach(x, y, HORIZON_S, SEPARATION_M, VERTICAL_FT, gap)[:2]
            for x, y in zip(states(a), states(b), strict=True)
        ]
    )
    return float(np.abs(found[:, 1] - distance_m).max()), float(np.abs(found[:, 0] - t).max())


@pytest.mark.parametrize("low_deg", range(-90, 90, 10))
def test_every_latitude_band(low_deg: int) -> None:
    dcpa_m, tcpa_s = errors(low_deg, 300)
    assert dcpa_m < DCPA_M
    assert tcpa_s < TCPA_S


@pytest.mark.long
@pytest.mark.parametrize("low_deg", range(-90, 90, 10))
def test_ten_thousand_pairs_in_every_latitude_band(low_deg: int) -> None:
    dcpa_m, tcpa_s = errors(low_deg, 10_000)
    print(f"{low_deg} to {low_deg + 10} deg: DCPA {dcpa_m:.2e} m, TCPA {tcpa_s:.2e} s")
    assert dcpa_m < DCPA_M
    assert tcpa_s < TCPA_S
