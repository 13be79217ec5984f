"""Closest approach, part by part: the series against GeographicLib, the limits at exactly their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.detectors.kernels.approach import (
    REACH_M,
    State,
    altitude_gap,
    approach,
    scratch,
    state_of,
    travel,
    vertical_window,
)  # fmt: skip
from watchkeeper.detectors.kernels.records import blank

WGS84 = Geodesic.WGS84
A_M, E2 = 6_378_137.0, 0.0066943799901413165
HORIZON_S, SEPARATION_M, VERTICAL_FT = 120.0, 9260.0, 1000.0
SPEED_MS = 250.0
TRAIL_M = 200_000.0


def on_earth(lat_deg: float, lon_deg: float, trk_deg: float, gs_ms: float) -> np.ndarray:
    """Position and velocity in Earth-centred coordinates, as textbooks have them."""
    lat, lon, trk = np.radians([lat_deg, lon_deg, trk_deg])
    n = A_M / math.sqrt(1.0 - E2 * math.sin(lat) ** 2)
    position = [n * math.cos(lat) * math.cos(lon), n * math.cos(lat) * math.sin(lon), n * (1.0 - E2) * math.sin(lat)]
    north = np.array([-math.sin(lat) * math.cos(lon), -math.sin(lat) * math.sin(lon), math.cos(lat)])
    east = np.array([-math.sin(lon), math.cos(lon), 0.0])
    return np.concatenate((position, gs_ms * (math.cos(trk) * north + math.sin(trk) * east)))


def carried(lat: float, lon: float, trk: float, distance_m: float, gs_ms: float) -> np.ndarray:
    """Position and velocity after a distance along the geodesic."""
    there = WGS84.Direct(lat, lon, trk, distance_m)
    return on_earth(there["lat2"], there["lon2"], there["azi2"], gs_ms)


def places(n: int) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(n)
    return [(math.degrees(math.asin(u)), lon, trk) for u, lon, trk in rng.uniform((-1, -180, 0), (1, 180, 360), (n, 3))]


@pytest.mark.parametrize(
    ("distance_m", "position_m", "velocity_ms"), [(0.99 * REACH_M, 3e-8, 1e-9), (2_000_000.0, 6e-5, 2e-8)]
)
def test_a_journey_ends_where_the_geodesic_does(distance_m, position_m, velocity_ms):
    for lat, lon, trk in places(60):
        start = on_earth(lat, lon, trk, SPEED_MS)
        for way_m in (distance_m, -distance_m):
            found = travel(*start, way_m / SPEED_MS)
            expected = carried(lat, lon, trk, way_m, SPEED_MS)
            assert found[:3] == pytest.approx(expected[:3], abs=position_m)
            assert found[3:] == pytest.approx(expected[3:], abs=velocity_ms)


def test_a_report_becomes_a_state_at_the_middle_of_the_horizon():
    for lat, lon, trk in [*places(20), (90.0, 30.0, 10.0), (-90.0, 0.0, 0.0), (0.0, 180.0, 90.0)]:
        for ahead_s in (0.0, 60.0):
            row = blank(State, 1)[0]
            state_of(lat, lon, trk, SPEED_MS, ahead_s, row)
            found = [row[name] for name in ("x_m", "y_m", "z_m", "vx_ms", "vy_ms", "vz_ms")]
            assert found == pytest.approx(carried(lat, lon, trk, ahead_s * SPEED_MS, SPEED_MS), abs=1e-6)


def aircraft(
    lat: float, lon: float, trk: float, gs_ms: float, alt_ft: float = 30_000.0, climb_fts: float = 0.0,
    level_s: float = math.inf, *, horizon_s: float = HORIZON_S,
) -> Any:  # fmt: skip
    row = blank(State, 1)[0]
    state_of(lat, lon, trk, gs_ms, 0.5 * horizon_s, row)
    row["alt_ft"], row["climb_fts"], row["level_s"] = alt_ft, climb_fts, level_s
    return row


def behind(distance_m: float, gs_ms: float = SPEED_MS, lat: float = 40.0, trk: float = 70.0, **more: Any) -> Any:
    """One that follows `aircraft(lat, 8, trk, ...)` on its geodesic."""
    there = WGS84.Direct(lat, 8.0, trk, -distance_m)
    return aircraft(there["lat2"], there["lon2"], there["azi2"], gs_ms, **more)


def met(a: Any, b: Any, horizon_s: float = HORIZON_S, separation_m: float = SEPARATION_M) -> Any:
    both = [approach(*pair, horizon_s, separation_m, VERTICAL_FT, scratch()) for pair in ((a, b), (b, a))]
    assert np.array_equal(*both, equal_nan=True)
    return both[0]


@pytest.mark.parametrize(("less_m", "lost"), [(0.0, False), (0.9e-3, False), (1.2e-3, True)])
@pytest.mark.parametrize("slower_ms", [0.0, 0.02])
def test_a_millimetre_less_than_the_limit_is_on_the_limit(less_m, lost, slower_ms):
    # with and without motion; the slower one falls back from there
    found = met(aircraft(40.0, 8.0, 70.0, SPEED_MS), behind(SEPARATION_M - less_m, SPEED_MS - slower_ms))
    assert math.isnan(found.t_in_s) is not lost
    assert math.isnan(found.t_out_s) is not lost
    assert found.now_m == pytest.approx(SEPARATION_M - less_m, abs=1e-5)


@pytest.mark.parametrize(("faster_ms", "tcpa_s"), [(0.0, 0.0), (0.0095, 0.0), (0.0125, HORIZON_S)])
def test_two_that_hardly_move_relative_to_each_other_keep_their_distance(faster_ms, tcpa_s):
    found = met(aircraft(40.0, 8.0, 70.0, SPEED_MS), behind(5000.0, SPEED_MS + faster_ms))
    assert found.tcpa_s == tcpa_s
    assert found.dcpa_m == pytest.approx(5000.0 - (faster_ms * tcpa_s), abs=1e-5)
    assert (found.t_in_s, found.t_out_s) == (0.0, HORIZON_S)


@pytest.mark.parametrize(("far_m", "error_m"), [(5000.0, 1e-7), (60_000.0, 5e-6), (200_000.0, 2e-4)])
def test_the_distance_now_is_that_of_the_geodesic(far_m, error_m):
    for lat, lon, trk in places(30):
        there = WGS84.Direct(lat, lon, trk + 50.0, far_m)
        a, b = aircraft(lat, lon, trk, SPEED_MS), aircraft(there["lat2"], there["lon2"], trk, 150.0)
        assert met(a, b).now_m == pytest.approx(far_m, abs=error_m)


def distance_m(a: tuple[float, ...], b: tuple[float, ...], t: float) -> float:
    (pa, pb) = (WGS84.Direct(lat, lon, trk, gs * t) for lat, lon, trk, gs in (a, b))
    return float(WGS84.Inverse(pa["lat2"], pa["lon2"], pb["lat2"], pb["lon2"])["s12"])


@pytest.mark.parametrize(
    ("horizon_s", "meeting_s"), [(120.0, 70.0), *((1800.0, meeting_s) for meeting_s in range(100, 1800, 100))]
)
def test_a_loss_begins_and_ends_on_the_limit(horizon_s, meeting_s):
    for lat, lon, trk in places(8):
        other = WGS84.Direct(lat, lon, trk + 110.0, 3000.0)
        starts = []
        for at, track, gs in (((lat, lon), trk, 250.0), ((other["lat2"], other["lon2"]), trk + 80.0, 180.0)):
            back = WGS84.Direct(*at, track + 180.0, gs * meeting_s)
            starts.append((back["lat2"], back["lon2"], back["azi2"] + 180.0, gs))
        a, b = starts
        found = met(aircraft(*a, horizon_s=horizon_s), aircraft(*b, horizon_s=horizon_s), horizon_s)
        assert 0.0 < found.t_in_s < found.tcpa_s < found.t_out_s
        for edge_s in (found.t_in_s, found.t_out_s):
            if edge_s < horizon_s:
                assert distance_m(a, b, edge_s) == pytest.approx(SEPARATION_M - 1e-3, abs=1e-5)
        assert found.dcpa_m == pytest.approx(distance_m(a, b, found.tcpa_s), abs=1e-5)
        for near_s in (-0.5, 0.5):
            assert found.dcpa_m < distance_m(a, b, found.tcpa_s + near_s)


def test_only_the_first_of_two_losses_is_told_and_the_closer_of_two_meetings():
    # apart along the equator at 250 m/s each; they meet again on the other side of the Earth, after 22 hours
    horizon_s = 84_000.0
    a, b = (0.0, 0.05, 90.0, SPEED_MS), (0.0, 0.0, 270.0, SPEED_MS)
    found = met(aircraft(*a, horizon_s=horizon_s), aircraft(*b, horizon_s=horizon_s), horizon_s)
    apart_m = math.radians(0.05) * A_M
    assert found.now_m == pytest.approx(apart_m, abs=1e-4)
    assert found.t_in_s == 0.0
    assert found.t_out_s == pytest.approx((SEPARATION_M - 1e-3 - apart_m) / (2.0 * SPEED_MS), abs=1e-6)
    around_m = 2.0 * math.pi * A_M
    assert found.tcpa_s == pytest.approx((around_m - apart_m) / (2.0 * SPEED_MS), abs=1e-3)
    assert found.dcpa_m < 1.0


def test_two_that_part_are_nearest_now():
    there = WGS84.Direct(40.0, 8.0, 70.0, 20_000.0)
    found = met(aircraft(40.0, 8.0, 250.0, SPEED_MS), aircraft(there["lat2"], there["lon2"], 70.0, SPEED_MS))
    assert found.tcpa_s == 0.0
    assert found.dcpa_m == found.now_m == pytest.approx(20_000.0, abs=1e-5)
    assert math.isnan(found.t_in_s)


def test_two_in_one_place_are_no_distance_apart():
    found = met(aircraft(40.0, 8.0, 70.0, SPEED_MS), aircraft(40.0, 8.0, 70.0, SPEED_MS))
    assert found == (0.0, 0.0, 0.0, HORIZON_S, 0.0)


@pytest.mark.parametrize("horizon_s", [120.0, 500.0, 1800.0])
def test_one_far_behind_the_other_at_one_speed_keeps_its_distance_everywhere(horizon_s):
    for lat, lon, trk in [*places(30), (89.9, 0.0, 0.0), (45.0, 0.0, 0.0), (0.0, 0.0, 45.0)]:
        there = WGS84.Direct(lat, lon, trk, -TRAIL_M)
        a = aircraft(lat, lon, trk, SPEED_MS, horizon_s=horizon_s)
        b = aircraft(there["lat2"], there["lon2"], there["azi2"], SPEED_MS, horizon_s=horizon_s)
        found = met(a, b, horizon_s)
        assert (found.tcpa_s, found.dcpa_m) == (0.0, found.now_m)


@pytest.mark.parametrize("level_s", [700.0, 1300.0, 1650.0])
def test_a_loss_late_in_a_long_horizon_is_found(level_s):
    # side by side, 3 km apart; one comes down from far above and levels off next to the other
    horizon_s = 1800.0
    there = WGS84.Direct(40.0, 8.0, 160.0, 3000.0)
    a = aircraft(40.0, 8.0, 70.0, SPEED_MS, horizon_s=horizon_s)
    b = aircraft(
        there["lat2"], there["lon2"], 70.0, SPEED_MS + 0.5, 30_000.0 + 20.0 * level_s, -20.0, level_s,
        horizon_s=horizon_s,
    )  # fmt: skip
    found = met(a, b, horizon_s)
    assert (found.t_in_s, found.t_out_s) == pytest.approx((level_s - 50.0, horizon_s), abs=1e-6)


HEIGHTS = [
    # a: altitude, climb, level-off; b: the same; from, to
    ((1000.0, 0.0, math.inf), (0.0, 0.0, math.inf), None),
    ((1000.0 - 0.5e-6, 0.0, math.inf), (0.0, 0.0, math.inf), None),
    ((1000.0 - 1e-6, 0.0, math.inf), (0.0, 0.0, math.inf), None),
    ((1000.0 - 1.25e-6, 0.0, math.inf), (0.0, 0.0, math.inf), (0.0, 120.0)),
    ((-999.0, 0.0, math.inf), (0.0, 0.0, math.inf), (0.0, 120.0)),
    ((-1001.0, 0.0, math.inf), (0.0, 0.0, math.inf), None),
    ((math.nan, 50.0, math.inf), (0.0, 0.0, math.inf), (0.0, 120.0)),
    ((math.nan, 50.0, 10.0), (0.0, 0.0, math.inf), (0.0, 120.0)),
    ((3000.0, -50.0, math.inf), (0.0, 0.0, math.inf), (40.0, 80.0)),
    ((-3000.0, 50.0, math.inf), (0.0, 0.0, math.inf), (40.0, 80.0)),
    ((0.0, 0.0, math.inf), (3000.0, -50.0, math.inf), (40.0, 80.0)),
    ((3000.0, -30.0, math.inf), (0.0, 20.0, math.inf), (40.0, 80.0)),
    ((500.0, 50.0, math.inf), (0.0, 0.0, math.inf), (0.0, 10.0)),
    ((5500.0, -50.0, math.inf), (0.0, 0.0, math.inf), (90.0, 120.0)),
    ((9500.0, -50.0, math.inf), (0.0, 0.0, math.inf), None),
    ((1500.0, 50.0, math.inf), (0.0, 0.0, math.inf), None),
    # levels off 500 ft above the other: stays too close
    ((3000.0, -50.0, 50.0), (0.0, 0.0, math.inf), (40.0, 120.0)),
    # before it is near, and exactly at the limit
    ((3000.0, -50.0, 30.0), (0.0, 0.0, math.inf), None),
    ((3000.0, -50.0, 40.0), (0.0, 0.0, math.inf), None),
    # the other goes on through the first after that has levelled off
    ((3000.0, -50.0, 30.0), (0.0, 50.0, math.inf), (20.0, 50.0)),
    # both level off, one after the other; then nothing changes
    ((3000.0, -50.0, 30.0), (0.0, 25.0, 60.0), (80.0 / 3.0, 120.0)),
    ((3500.0, -50.0, 30.0), (0.0, 25.0, 60.0), (40.0, 120.0)),
    ((4000.0, -50.0, 30.0), (0.0, 25.0, 60.0), None),
    # within the limit, apart, and together again: the time between counts
    ((0.0, 50.0, 40.0), (0.0, 20.0, 100.0), (0.0, 120.0)),
    ((0.0, 50.0, 40.0), (0.0, 10.0, 100.0), (0.0, 25.0)),
    # a level-off at or after the end of the horizon is none
    ((3000.0, -50.0, 120.0), (0.0, 0.0, 120.0), (40.0, 80.0)),
    ((3000.0, -50.0, 70.0), (0.0, 0.0, 70.0), (40.0, 120.0)),
    ((3000.0, -50.0, 90.0), (0.0, 0.0, 500.0), (40.0, 80.0)),
    # from level flight at once
    ((3000.0, -50.0, 0.0), (0.0, 0.0, math.inf), None),
    ((900.0, -50.0, 0.0), (0.0, 50.0, 60.0), (0.0, 38.0)),
]


@pytest.mark.parametrize(("a", "b", "expected"), HEIGHTS)
def test_from_when_to_when_two_are_vertically_too_close(a, b, expected):
    rows = blank(State, 2)
    for row, (alt_ft, climb_fts, level_s) in zip(rows, (a, b), strict=True):
        row["alt_ft"], row["climb_fts"], row["level_s"] = alt_ft, climb_fts, level_s
    for one, other in ((rows[0], rows[1]), (rows[1], rows[0])):
        first, last = vertical_window(one, other, VERTICAL_FT, HORIZON_S)
        assert (not first < last) == (expected is None)
        if expected:
            assert (first, last) == pytest.approx(expected, abs=1e-6)


def test_in_a_short_horizon_two_at_different_levels_are_never_too_close():
    rows = blank(State, 2)
    for row, alt_ft in zip(rows, (0.0, 3000.0), strict=True):
        row["alt_ft"], row["climb_fts"], row["level_s"] = alt_ft, 10.0, 0.25
    first, last = vertical_window(rows[0], rows[1], VERTICAL_FT, 0.5)
    assert not first < last


@pytest.mark.parametrize(("t_s", "gap_ft"), [(0.0, 500.0), (10.0, 800.0), (20.0, 1100.0), (30.0, 900.0), (40.0, 800.0)])
def test_the_height_between_two_follows_climbs_and_level_offs(t_s, gap_ft):
    # a climbs 50 ft/s for 20 s, b 20 ft/s for 35 s
    rows = blank(State, 2)
    for row, values in zip(rows, ((1500.0, 50.0, 20.0), (1000.0, 20.0, 35.0)), strict=True):
        row["alt_ft"], row["climb_fts"], row["level_s"] = values
    assert altitude_gap(rows[0], rows[1], t_s) == gap_ft
    assert altitude_gap(rows[1], rows[0], t_s) == -gap_ft


IN_S, OUT_S = 120.0 - SEPARATION_M / 500.0, 120.0 + SEPARATION_M / 500.0


@pytest.mark.parametrize(
    ("climb_fts", "expected"),
    # head on from 60 km at 250 m/s each, from 3000 ft above: vertically too close from 2000 ft to 4000 ft below that
    [
        (-50.0, None), (-40.0, None), (-35.0, (IN_S, 4000.0 / 35.0)), (-25.0, (IN_S, OUT_S)),
        (-16.0, (125.0, OUT_S)), (-14.0, None),
    ],
)  # fmt: skip
def test_both_minima_must_be_lost_at_once(climb_fts, expected):
    horizon_s = 150.0
    there = WGS84.Direct(40.0, 8.0, 70.0, 60_000.0)
    a = aircraft(40.0, 8.0, 70.0, SPEED_MS, horizon_s=horizon_s)
    facing = there["lat2"], there["lon2"], there["azi2"] + 180.0
    b = aircraft(*facing, SPEED_MS, 33_000.0, climb_fts, horizon_s=horizon_s)
    found = met(a, b, horizon_s)
    assert (found.tcpa_s, found.dcpa_m) == pytest.approx((120.0, 0.0), abs=1e-4)
    if expected:
        assert (found.t_in_s, found.t_out_s) == pytest.approx(expected, abs=1e-4)
    else:
        assert math.isnan(found.t_in_s)
        assert math.isnan(found.t_out_s)
