"""The WGS84 functions agree with geographiclib everywhere, poles and antimeridian included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import example, given, settings
from hypothesis import strategies as st

from watchkeeper.streams import geo

WGS84 = Geodesic.WGS84

LATITUDES = st.one_of(
    st.floats(-90.0, 90.0),
    st.sampled_from([-90.0, 90.0, 0.0, 90.0 - 1e-9, -90.0 + 1e-6, 1e-12]),
)
LONGITUDES = st.one_of(st.floats(-180.0, 180.0), st.sampled_from([-180.0, 180.0, 180.0 - 1e-9, -180.0 + 1e-9, 0.0]))
AZIMUTHS = st.one_of(st.floats(-360.0, 360.0), st.sampled_from([0.0, 90.0, 180.0, 270.0, -90.0]))


def turn_deg(a: float, b: float) -> float:
    """The angle between two azimuths."""
    return abs((a - b + 180.0) % 360.0 - 180.0)


@given(LATITUDES, LONGITUDES, AZIMUTHS, st.floats(-1e6, 1e6))
@example(90.0, 0.0, 90.0, 1e5)
@example(-90.0, 10.0, 200.0, 5e5)
@example(0.0, 179.9, 90.0, 1e6)
@settings(max_examples=500, deadline=None)
def test_direct_ends_within_a_micrometre_of_geographiclib(lat: float, lon: float, az: float, s_m: float) -> None:
    truth = WGS84.Direct(lat, lon, az, s_m)
    lat2, lon2, az2 = geo.direct(lat, lon, az, s_m)
    assert -180.0 <= lon2 < 180.0
    assert WGS84.Inverse(lat2, lon2, truth["lat2"], truth["lon2"])["s12"] < 1e-6
    # within 1 m of a pole the azimuth depends on longitudes that no longer mean anything
    if 90.0 - max(abs(lat), abs(lat2)) > 1e-5:
        assert turn_deg(az2, truth["azi2"]) < 1e-6


@given(LATITUDES, LONGITUDES, AZIMUTHS, st.floats(0.0, 2e6))
@settings(max_examples=500, deadline=None)
def test_inverse_measures_like_geographiclib(lat: float, lon: float, az: float, s_m: float) -> None:
    lat2, lon2, _ = geo.direct(lat, lon, az, s_m)
    truth = WGS84.Inverse(lat, lon, lat2, lon2)
    distance_m, az1, az2 = geo.inverse(lat, lon, lat2, lon2)
    assert distance_m == pytest.approx(truth["s12"], abs=1e-6)
    # azimuths as the sideways error they would cause at the far end
    if truth["s12"] > 1e-3:
        assert math.radians(turn_deg(az1, truth["azi1"])) * distance_m < 1e-6
        assert math.radians(turn_deg(az2, truth["azi2"])) * distance_m < 1e-6


@given(LATITUDES, LONGITUDES, LATITUDES, LONGITUDES)
@settings(max_examples=200, deadline=None)
def test_distance_is_the_same_both_ways_and_zero_to_itself(lat1: float, lon1: float, lat2: float, lon2: float) -> None:
    if WGS84.Inverse(lat1, lon1, lat2, lon2)["s12"] < 2e6:
        there, back = geo.inverse(lat1, lon1, lat2, lon2)[0], geo.inverse(lat2, lon2, lat1, lon1)[0]
        assert there == pytest.approx(back, abs=1e-7)
    assert geo.inverse(lat1, lon1, lat1, lon1)[0] < 1e-9


@given(LATITUDES, LONGITUDES, AZIMUTHS)
@settings(max_examples=200, deadline=None)
def test_ecef_is_on_the_ellipsoid_and_a_metre_there_is_a_metre(lat: float, lon: float, az: float) -> None:
    x, y, z = geo.ecef(lat, lon)
    a, b = geo.WGS84_A_M, geo.WGS84_B_M
    assert (x * x + y * y) / (a * a) + z * z / (b * b) == pytest.approx(1.0, abs=1e-14)
    lat2, lon2, _ = geo.direct(lat, lon, az, 10.0)
    assert math.dist((x, y, z), geo.ecef(lat2, lon2)) == pytest.approx(10.0, abs=1e-7)


def test_ecef_of_known_points() -> None:
    assert geo.ecef(0.0, 0.0) == pytest.approx((6_378_137.0, 0.0, 0.0), abs=1e-9)
    assert geo.ecef(0.0, 90.0) == pytest.approx((0.0, 6_378_137.0, 0.0), abs=1e-8)
    assert geo.ecef(90.0, 0.0) == pytest.approx((0.0, 0.0, 6_356_752.314245), abs=1e-6)


@given(st.floats(-1e4, 1e4))
@example(180.0 - 3e-14)
@example(540.0 - 1e-13)
@example(-180.0 - 3e-14)
@settings(max_examples=1000)
def test_wrapped_longitude_is_the_same_meridian(lon: float) -> None:
    wrapped = geo.wrap_lon(lon)
    assert -180.0 <= wrapped < 180.0
    assert turn_deg(wrapped, lon) < 1e-10


def test_columns_give_what_scalars_give() -> None:
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)
    az, s_m = rng.uniform(0, 360, 50), rng.uniform(0, 1e5, 50)
    lat2, lon2, az2 = geo.direct_many(lat, lon, az, s_m)
    distance_m, az_a, az_b = geo.inverse_many(lat, lon, lat2, lon2)
    xyz = geo.ecef_many(lat, lon)
    for i in range(50):
        assert (lat2[i], lon2[i], az2[i]) == geo.direct(lat[i], lon[i], az[i], s_m[i])
        assert (distance_m[i], az_a[i], az_b[i]) == geo.inverse(lat[i], lon[i], lat2[i], lon2[i])
        assert tuple(xyz[:, i]) == geo.ecef(lat[i], lon[i])
