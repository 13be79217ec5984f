"""Which zone holds an aircraft: against WGS84 geodesics, at the edges of a band, and in the order of the file."""

import math

import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.detectors.conflict.zones import Zones, minima_at
from watchkeeper.streams.geo import NM_M

LAT = st.floats(-90, 90)
LON = st.floats(-180, 180)
NONE = (math.nan, math.nan)


def minima(zones: list[Zone], lat: float = 0.0, lon: float = 0.0, alt_ft: float = 10_000.0) -> tuple[float, float]:
    separation_m, vertical_ft, tau_s, _ = minima_at(lat, lon, alt_ft, Zones(tuple(zones)).table)
    assert tau_s == 0.0
    return separation_m, vertical_ft


def holds(zone: Zone, lat: float = 0.0, lon: float = 0.0, alt_ft: float = 10_000.0) -> bool:
    separation_m, vertical_ft = minima([zone], lat, lon, alt_ft)
    assert math.isnan(separation_m) == math.isnan(vertical_ft)
    return not math.isnan(separation_m)


def circle(lat: float, lon: float, radius_nm: float) -> Zone:
    return Zone(name="circle", lat=lat, lon=lon, radius_nm=radius_nm, separation_nm=3.0)


# What the module promises: 0.001 % of the radius up to 500 NM, 0.02 % up to 2,000.
@settings(max_examples=2000, deadline=None)
@given(LAT, LON, st.floats(0.1, 2000), st.floats(0, 360))
@example(90.0, 0.0, 40.0, 123.0)
@example(-90.0, 77.0, 2000.0, 0.0)
@example(89.9, 10.0, 100.0, 5.0)
@example(0.0, 180.0, 40.0, 90.0)
@example(10.0, -179.9, 500.0, 270.0)
@example(45.0, 0.0, 2000.0, 0.0)
def test_rim_of_a_zone_lies_on_the_geodesic_circle(lat: float, lon: float, radius_nm: float, az_deg: float) -> None:
    zone = circle(lat, lon, radius_nm)
    slack = 1e-5 if radius_nm <= 500 else 2e-4
    for share, inside in ((1.0 - slack, True), (1.0 + slack, False)):
        rim = Geodesic.WGS84.Direct(lat, lon, az_deg, radius_nm * NM_M * share)
        assert holds(zone, rim["lat2"], rim["lon2"]) is inside


@settings(max_examples=1000, deadline=None)
@given(LAT, LON, st.floats(0, 2000), LAT, LON)
def test_membership_is_geodesic_distance_anywhere_on_earth(
    lat: float, lon: float, radius_nm: float, other_lat: float, other_lon: float
) -> None:
    assume(radius_nm > 0)
    distance_nm = Geodesic.WGS84.Inverse(lat, lon, other_lat, other_lon)["s12"] / NM_M
    assume(abs(distance_nm - radius_nm) > 2e-4 * radius_nm + 1e-6)
    assert holds(circle(lat, lon, radius_nm), other_lat, other_lon) == (distance_nm < radius_nm)


@given(LAT, LON)
def test_longitude_may_be_written_either_way_round(lat: float, lon: float) -> None:
    # east of the antimeridian or west of it, and beyond 180 as some feeds have it
    assert holds(circle(lat, lon, 1.0), lat, lon + 360.0)
    assert holds(circle(lat, 180.0, 1.0), lat, -180.0)


@pytest.mark.parametrize(
    ("alt_ft", "inside"),
    [(2999.0, False), (3000.0, True), (11_999.0, True), (12_000.0, False), (math.nan, False), (-5000.0, False)],
)
def test_a_band_goes_from_its_floor_to_below_its_ceiling(alt_ft: float, inside: bool) -> None:
    band = Zone(name="band", floor_ft=3000.0, ceiling_ft=12_000.0, separation_nm=3.0)
    assert holds(band, 12.0, 34.0, alt_ft) is inside


@pytest.mark.parametrize("alt_ft", [-9000.0, -2000.0, 0.0, 100_000.0, 126_700.0, math.nan])
def test_a_zone_without_floor_and_ceiling_holds_every_altitude_known_or_not(alt_ft: float) -> None:
    assert holds(Zone(name="all", separation_nm=3.0), alt_ft=alt_ft)
    assert holds(circle(1.0, 2.0, 30.0), 1.0, 2.0, alt_ft)
    assert not holds(circle(1.0, 2.0, 30.0), 2.0, 2.0, alt_ft)


@pytest.mark.parametrize("half", [{"floor_ft": 0.0}, {"ceiling_ft": 12_000.0}])
def test_half_a_band_is_open_on_the_other_side_but_not_to_an_unknown_altitude(half: dict[str, float]) -> None:
    zone = Zone(name="half", separation_nm=3.0, **half)
    assert holds(zone, alt_ft=5000.0)
    assert holds(zone, alt_ft=126_700.0 if "floor_ft" in half else -9000.0)
    assert not holds(zone, alt_ft=math.nan)


def test_the_first_zone_in_the_file_decides() -> None:
    inner = Zone(name="inner", lat=49.0, lon=2.5, radius_nm=10.0, separation_nm=2.5, vertical_ft=500.0)
    outer = Zone(name="outer", lat=49.0, lon=2.5, radius_nm=40.0, separation_nm=3.0)
    above = Zone(name="above", floor_ft=41_100.0, separation_nm=5.0, vertical_ft=2000.0)
    zones = [inner, outer, above]
    assert minima(zones, 49.0, 2.5) == (2.5 * NM_M, 500.0)
    assert minima(zones, 49.5, 2.5) == (3.0 * NM_M, 1000.0)
    assert minima(zones[::-1], 49.0, 2.5, 45_000.0) == (5.0 * NM_M, 2000.0)
    assert minima([outer, inner], 49.0, 2.5) == (3.0 * NM_M, 1000.0)
    assert minima(zones, 52.0, 2.5) == pytest.approx(NONE, nan_ok=True)


def test_without_zones_the_table_has_no_rows_and_nothing_applies() -> None:
    assert len(Zones(()).table) == 0
    assert minima([]) == pytest.approx(NONE, nan_ok=True)


def test_an_aircraft_without_a_position_is_in_no_zone() -> None:
    assert not holds(Zone(name="all", separation_nm=3.0), lat=math.nan)
    assert not holds(circle(0.0, 0.0, 40.0), lon=math.nan)
