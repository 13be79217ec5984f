"""Closest approach and pair search agree with geographiclib and brute force, everywhere on Earth.

The oracle below is slow and shares nothing with the kernel: geographiclib moves the aircraft and measures, bisection
on the range rate finds the minimum, every pair is tried.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.conflict.minima import Minima
from watchkeeper.detectors.conflict.search import Scan
from watchkeeper.detectors.kernels import approach as cpa
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import KT_MS, NM_M

WGS84 = Geodesic.WGS84
EN_ROUTE = Minima(horizon_s=120.0, separation_m=5 * NM_M, vertical_ft=1000.0)
TERMINAL = Minima(horizon_s=60.0, separation_m=3 * NM_M, vertical_ft=1000.0)
DRONES = Minima(horizon_s=20.0, separation_m=0.02 * NM_M, vertical_ft=50.0)
FAR_AHEAD = Minima(horizon_s=900.0, separation_m=5 * NM_M, vertical_ft=1000.0)

# An aircraft is (lat, lon, track [deg], ground speed [kt], altitude [ft], climb [ft/min]).
Aircraft = tuple[float, float, float, float, float, float]


def moved(aircraft: Aircraft, t: float) -> dict[str, float]:
    lat, lon, trk, gs_kt = aircraft[:4]
    return WGS84.Direct(lat, lon, trk, gs_kt * KT_MS * t)


def distance_and_rate(a: Aircraft, b: Aircraft, t: float) -> tuple[float, float]:
    """Geodesic distance at t, and its rate by the first variation of arc length."""
    pa, pb = moved(a, t), moved(b, t)
    line = WGS84.Inverse(pa["lat2"], pa["lon2"], pb["lat2"], pb["lon2"])
    along_a = a[3] * KT_MS * math.cos(math.radians(pa["azi2"] - line["azi1"]))
    along_b = b[3] * KT_MS * math.cos(math.radians(pb["azi2"] - line["azi2"]))
    return line["s12"], along_b - along_a


def relative_speed_ms(a: Aircraft, b: Aircraft) -> float:
    """Difference of the velocities after carrying one to the other along the line between them."""
    line = WGS84.Inverse(a[0], a[1], b[0], b[1])
    ta, tb = math.radians(a[2] - line["azi1"]), math.radians(b[2] - line["azi2"])
    return KT_MS * math.hypot(a[3] * math.cos(ta) - b[3] * math.cos(tb), a[3] * math.sin(ta) - b[3] * math.sin(tb))


def closest(a: Aircraft, b: Aircraft, t0: float, t1: float) -> tuple[float, float]:
    """Time and distance of closest approach in [t0, t1]."""
    best_t, best_m = t0, distance_and_rate(a, b, t0)[0]
    knots = np.linspace(t0, t1, 2 + int((t1 - t0) / 120.0)).tolist()
    for k in range(len(knots) - 1):
        lo, hi = knots[k], knots[k + 1]
        t = hi
        if distance_and_rate(a, b, lo)[1] < 0.0 < distance_and_rate(a, b, hi)[1]:
            while hi - lo > 1e-9:
                t = 0.5 * (lo + hi)
                lo, hi = (t, hi) if distance_and_rate(a, b, t)[1] < 0.0 else (lo, t)
        distance_m = distance_and_rate(a, b, t)[0]
        if distance_m < best_m:
            best_t, best_m = t, distance_m
    return best_t, best_m


def brute_force(fleet: list[Aircraft], minima: Minima) -> tuple[set[tuple[int, int]], float]:
    """All pairs that lose separation, and by how many metres the narrowest case was decided."""
    pairs, narrowest_m = set(), math.inf
    limit_m = minima.separation_m - cpa.ON_LIMIT_M
    for (i, a), (j, b) in combinations(enumerate(fleet), 2):
        now_m = WGS84.Inverse(a[0], a[1], b[0], b[1])["s12"]
        if now_m > minima.separation_m + (a[3] + b[3]) * KT_MS * minima.horizon_s:
            continue
        dz, climb = b[4] - a[4], (b[5] - a[5]) / 60.0
        if climb == 0.0:
            t0, t1 = (0.0, minima.horizon_s) if abs(dz) < minima.vertical_ft else (1.0, 0.0)
        else:
            ends = sorted(((-minima.vertical_ft - dz) / climb, (minima.vertical_ft - dz) / climb))
            t0, t1 = max(0.0, ends[0]), min(minima.horizon_s, ends[1])
        if not t0 < t1:
            continue
        nearest_m = now_m if relative_speed_ms(a, b) < cpa.STILL_MS else closest(a, b, t0, t1)[1]
        narrowest_m = min(narrowest_m, abs(nearest_m - limit_m))
        if nearest_m < limit_m:
            pairs.add((i, j))
    return pairs, narrowest_m


def state(aircraft: Aircraft, horizon_s: float) -> Any:
    lat, lon, trk, gs_kt, alt_ft, vs_fpm = aircraft
    out = blank(cpa.State, 1)[0]
    cpa.state_of(lat, lon, trk, gs_kt * KT_MS, 0.5 * horizon_s, out)
    out["alt_ft"], out["climb_fts"] = alt_ft, vs_fpm / 60.0
    return out


def approach(a: Aircraft, b: Aircraft, minima: Minima = EN_ROUTE) -> cpa.Approach:
    h = minima.horizon_s
    return cpa.approach(state(a, h), state(b, h), h, minima.separation_m, minima.vertical_ft, cpa.scratch())


def search(fleet: list[Aircraft], minima: Minima, max_pairs: int = 10_000) -> tuple[set[tuple[int, int]], Scan]:
    scan = Scan(len(fleet), max_pairs)
    for i, aircraft in enumerate(fleet):
        scan.slot[i], scan.state[i] = i, state(aircraft, minima.horizon_s)
    found = scan.run(len(fleet), minima)
    pairs = [(min(a, b), max(a, b)) for a, b in scan.pairs[["a", "b"]][:found].tolist()]
    assert len(set(pairs)) == len(pairs), "a pair was reported twice"
    return set(pairs), scan


PLACES = st.one_of(
    st.tuples(st.floats(-90.0, 90.0), st.floats(-180.0, 180.0)),
    st.tuples(st.sampled_from([-90.0, 90.0, -89.99, 89.95]), st.floats(-180.0, 180.0)),
    st.tuples(st.floats(-80.0, 80.0), st.sampled_from([-180.0, 180.0, 179.999, -179.95])),
)
ANGLES = st.floats(0.0, 360.0)


@st.composite
def encounters(draw: st.DrawFn, horizon_s: float) -> tuple[Aircraft, Aircraft]:
    """Two aircraft that come near each other at some time around the horizon."""
    lat, lon = draw(PLACES)
    t = draw(st.floats(-0.1, 1.2)) * horizon_s
    miss = WGS84.Direct(lat, lon, draw(ANGLES), draw(st.floats(0.0, 30_000.0)))
    both = []
    for at_lat, at_lon in ((lat, lon), (miss["lat2"], miss["lon2"])):
        back, gs_kt = draw(ANGLES), draw(st.floats(0.0, 700.0))
        start = WGS84.Direct(at_lat, at_lon, back, gs_kt * KT_MS * t)
        both.append((start["lat2"], start["lon2"], start["azi2"] + 180.0, gs_kt, 30_000.0, 0.0))
    return both[0], both[1]


@given(encounters(120.0))
@settings(max_examples=150, deadline=None)
def test_closest_approach_is_exact_and_symmetric(pair: tuple[Aircraft, Aircraft]) -> None:
    a, b = pair
    tcpa_s, dcpa_m, t_in, t_out, now_m = approach(a, b)
    assert np.array_equal(approach(b, a), (tcpa_s, dcpa_m, t_in, t_out, now_m), equal_nan=True)
    assert now_m == pytest.approx(WGS84.Inverse(a[0], a[1], b[0], b[1])["s12"], abs=1e-4)
    assume(relative_speed_ms(a, b) > 10 * KT_MS)
    true_t, true_m = closest(a, b, 0.0, 120.0)
    assert dcpa_m == pytest.approx(true_m, abs=1e-4)
    assert tcpa_s == pytest.approx(true_t, abs=1e-3)
    assert (true_m < EN_ROUTE.separation_m - cpa.ON_LIMIT_M) == (not math.isnan(t_in)) or abs(true_m - 9260.0) < 0.01
    for edge in (t_in, t_out):  # a loss begins and ends on the limit, or at the ends of the horizon
        if 0.0 < edge < 120.0:
            assert distance_and_rate(a, b, edge)[0] == pytest.approx(EN_ROUTE.separation_m, abs=2e-3)


@given(encounters(1800.0))
@settings(max_examples=15, deadline=None)
def test_half_an_hour_ahead_it_is_exact_still(pair: tuple[Aircraft, Aircraft]) -> None:
    a, b = pair
    assume(relative_speed_ms(a, b) > 10 * KT_MS)
    tcpa_s, dcpa_m, *_ = approach(a, b, Minima(1800.0, 9260.0, 1000.0))
    true_t, true_m = closest(a, b, 0.0, 1800.0)
    assert dcpa_m == pytest.approx(true_m, abs=1e-3)
    assert tcpa_s == pytest.approx(true_t, abs=1e-3)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Minima, list[Aircraft]]:
    """A cluster of aircraft wide enough that some meet and some do not."""
    minima, gs_kt, level_ft = draw(
        st.sampled_from(
            [
                (EN_ROUTE, (0.0, 600.0), 1000.0),
                (EN_ROUTE, (300.0, 5000.0), 500.0),  # several grids at once
                (TERMINAL, (100.0, 300.0), 500.0),
                (DRONES, (0.0, 40.0), 20.0),
                (FAR_AHEAD, (300.0, 550.0), 1000.0),
            ]
        )
    )
    lat, lon = draw(PLACES)
    reach_m = minima.separation_m + minima.horizon_s * KT_MS * gs_kt[1]
    fleet = []
    for _ in range(draw(st.integers(2, 14))):
        at = WGS84.Direct(lat, lon, draw(ANGLES), draw(st.floats(0.0, 1.5)) * reach_m)
        climb_fpm = draw(st.sampled_from([0.0, 0.0, 64.0, -1500.0, 2500.0]))
        alt_ft = 10_000.0 + level_ft * draw(st.integers(0, 6)) + 25.0 * draw(st.sampled_from([0, 0, 1, -1]))
        fleet.append((at["lat2"], at["lon2"], draw(ANGLES), draw(st.floats(*gs_kt)), alt_ft, climb_fpm))
    return minima, fleet


def check_scene(scene: tuple[Minima, list[Aircraft]]) -> None:
    minima, fleet = scene
    expected, narrowest_m = brute_force(fleet, minima)
    assume(narrowest_m > 1e-4)  # closer than that the oracle cannot tell either
    assert search(fleet, minima)[0] == expected


@given(scenes())
@settings(max_examples=100, deadline=None)
def test_pairs_are_those_of_brute_force(scene: tuple[Minima, list[Aircraft]]) -> None:
    check_scene(scene)


@pytest.mark.long
@given(scenes())
@settings(max_examples=1000, deadline=None)
def test_pairs_are_those_of_brute_force_in_a_thousand_scenes(scene: tuple[Minima, list[Aircraft]]) -> None:
    check_scene(scene)


@pytest.mark.parametrize(("n", "area_km2"), [(3000, 300.0), (3000, 5.0), (20_000, 300.0)])
def test_large_fleet_finds_what_a_straight_line_over_all_pairs_finds(n: int, area_km2: float) -> None:
    # All pairs of a big fleet by NumPy, in chords instead of arcs: pairs it cannot decide within 60 m are left out.
    rng = np.random.default_rng(n)
    side_deg = math.sqrt(n * area_km2) / 111.2
    scan = Scan(n, 500_000)
    for i in range(n):
        lat, lon = 88.0 + rng.uniform(-1, 1), rng.uniform(-180, 180)
        if i % 2:
            lat, lon = rng.uniform(-0.5, 0.5, 2) * side_deg + (45.0, 180.0)
        row = (lat, lon, rng.uniform(0, 360), rng.uniform(100, 550), 1000.0 * rng.integers(0, 41), 0.0)
        scan.slot[i], scan.state[i] = i, state(row, 120.0)
    found = scan.run(n, EN_ROUTE)
    pairs = {(min(a, b), max(a, b)) for a, b in scan.pairs[["a", "b"]][:found].tolist()}
    assert len(pairs) == found > 50

    surely, perhaps = set(), set()
    r, v = (
        np.stack([scan.state[name][:n] for name in names], axis=1)
        for names in (("x_m", "y_m", "z_m"), ("vx_ms", "vy_ms", "vz_ms"))
    )
    alt = scan.state["alt_ft"][:n]
    for level in np.unique(alt):
        rows = np.flatnonzero(alt == level)
        for i in rows:
            others = rows[rows > i]
            dr, dv = r[others] - r[i], v[others] - v[i]
            t = np.clip(-(dr * dv).sum(1) / np.maximum((dv * dv).sum(1), 1e-9), -60.0, 60.0)
            d = np.linalg.norm(dr + dv * t[:, None], axis=1)
            surely |= {(i, j) for j in others[d < 9200.0]}
            perhaps |= {(i, j) for j in others[d < 9320.0]}
    assert surely <= pairs <= perhaps


@pytest.mark.parametrize("speeds_kt", [(450.0, 450.0), (120.0, 600.0), (690.0, 3000.0), (4900.0, 4900.0)])
@pytest.mark.parametrize("meeting_s", [0.0, EN_ROUTE.horizon_s])
def test_pairs_at_the_very_edge_of_reach_are_found(speeds_kt: tuple[float, float], meeting_s: float) -> None:
    # 300 pairs all over the Earth, head on, 1 m inside the minimum at the first or last moment of the horizon: at
    # mid-horizon they are as far apart as a pair can be, and lie across cell borders in every way.
    rng = np.random.default_rng(7)
    fleet: list[Aircraft] = []
    for k in range(300):
        lat, lon, line = math.degrees(math.asin(rng.uniform(-1, 1))), rng.uniform(-180, 180), rng.uniform(0, 360)
        other = WGS84.Direct(lat, lon, line, EN_ROUTE.separation_m - 1.0)
        away = meeting_s == 0.0
        for at_lat, at_lon, outward, gs_kt in (
            (lat, lon, line + 180.0, speeds_kt[0]),
            (other["lat2"], other["lon2"], other["azi2"], speeds_kt[1]),
        ):
            start = WGS84.Direct(at_lat, at_lon, outward, gs_kt * KT_MS * meeting_s)
            track = start["azi2"] if away else start["azi2"] + 180.0
            fleet.append((start["lat2"], start["lon2"], track, gs_kt, 2000.0 * k, 0.0))
    assert search(fleet, EN_ROUTE)[0] == {(2 * k, 2 * k + 1) for k in range(300)}


def test_overflow_is_counted_and_never_written() -> None:
    rng = np.random.default_rng(0)
    crowd = [(50.0 + rng.normal(0, 0.01), 8.0, 90.0, 400.0, 30_000.0, 0.0) for _ in range(30)]
    pairs, scan = search(crowd, EN_ROUTE, max_pairs=100)
    assert len(pairs) == 100
    assert scan.overflow == 30 * 29 // 2 - 100


def test_nobody_and_one_alone_have_no_conflict() -> None:
    scan = Scan(1, 10)
    assert scan.run(0, EN_ROUTE) == 0
    assert search([(50.0, 8.0, 90.0, 400.0, 30_000.0, 0.0)], EN_ROUTE)[0] == set()


def in_trail(place: tuple[float, float], track: float, apart_m: float, gs_kt: float) -> list[Aircraft]:
    """Two on one geodesic at one speed: the distance along it never changes."""
    ahead = WGS84.Direct(*place, track, apart_m)
    return [
        (*place, track, gs_kt, 30_000.0, 0.0),
        (ahead["lat2"], ahead["lon2"], ahead["azi2"], gs_kt, 30_000.0, 0.0),
    ]


@given(PLACES, ANGLES, st.floats(0.0, 600.0))
@settings(max_examples=100, deadline=None)
def test_exactly_five_miles_in_trail_is_separated_and_two_metres_less_is_not(
    place: tuple[float, float], track: float, gs_kt: float
) -> None:
    assert search(in_trail(place, track, 5 * NM_M, gs_kt), EN_ROUTE)[0] == set()
    assert search(in_trail(place, track, 5 * NM_M - 2.0, gs_kt), EN_ROUTE)[0] == {(0, 1)}


@given(st.floats(-85.0, 85.0), st.sampled_from([90.0, 270.0]), st.floats(0.0, 600.0))
@settings(max_examples=50, deadline=None)
def test_exactly_five_miles_abeam_on_parallel_tracks_is_separated(lat: float, track: float, gs_kt: float) -> None:
    other = WGS84.Direct(lat, 8.0, 0.0, 5 * NM_M)
    fleet = [(lat, 8.0, track, gs_kt, 30_000.0, 0.0), (other["lat2"], other["lon2"], track, gs_kt, 30_000.0, 0.0)]
    assert search(fleet, EN_ROUTE)[0] == set()


@given(st.integers(-40, 1800), st.integers(-60, 60))
def test_exactly_a_thousand_feet_is_separated_in_steps_of_25_feet(step: int, above: int) -> None:
    low = (50.0, 8.0, 90.0, 450.0, 25.0 * step, 0.0)
    high = (50.01, 8.0, 270.0, 450.0, 25.0 * (step + above), 0.0)
    assert (search([low, high], EN_ROUTE)[0] == {(0, 1)}) == (abs(25.0 * above) < 1000.0)


def test_vertical_and_horizontal_loss_must_coincide() -> None:
    east = (0.0, -0.5, 90.0, 450.0, 30_000.0, 0.0)  # 60 NM apart, head on: they meet after 240 s
    minima = Minima(300.0, 5 * NM_M, 1000.0)
    tcpa_s, _, t_in, t_out, _ = approach(east, (0.0, 0.5, 270.0, 450.0, 30_000.0, 0.0), minima)
    meeting_s = math.radians(0.5) * 6_378_137.0 / (450.0 * KT_MS)
    assert (tcpa_s, t_in, t_out) == pytest.approx((meeting_s, meeting_s - 20.0, meeting_s + 20.0), abs=1e-5)
    # climbing through from 5,000 ft below at 3,000 ft/min, it is too close vertically from 80 s to 120 s only
    early = (0.0, 0.5, 270.0, 450.0, 25_000.0, 3000.0)
    assert math.isnan(approach(east, early, minima)[2])
    # at 1,250 ft/min, from 192 s to 288 s; from 9,500 ft below at 2,500 ft/min, from 204 s to 252 s
    assert approach(east, (0.0, 0.5, 270.0, 450.0, 25_000.0, 1250.0), minima)[2:4] == pytest.approx((t_in, t_out))
    assert approach(east, (0.0, 0.5, 270.0, 450.0, 20_500.0, 2500.0), minima)[2:4] == pytest.approx((t_in, 252.0))


def test_results_of_a_pair_that_is_lost_now_and_one_that_will_be() -> None:
    here = (50.0, 8.0, 90.0, 400.0, 30_000.0, 0.0)
    near = (50.05, 8.0, 90.0, 400.0, 30_500.0, 0.0)  # 3 NM abeam, same velocity: no relative motion
    _, scan = search([here, near], EN_ROUTE)
    found = ["tcpa_s", "t_in_s", "t_out_s", "vsep_ft", "lost"]
    assert scan.pairs[0][found].tolist() == (0.0, 0.0, 120.0, 500.0, True)
    assert scan.pairs["dcpa_m"][0] == pytest.approx(WGS84.Inverse(50.0, 8.0, 50.05, 8.0)["s12"], abs=1e-6)
    meeting = WGS84.Direct(50.0, 8.0, 90.0, 20 * NM_M)
    _, scan = search(
        [here, (meeting["lat2"], meeting["lon2"], meeting["azi2"] + 180.0, 400.0, 30_000.0, 0.0)], EN_ROUTE
    )
    found = ["tcpa_s", "dcpa_m", "t_in_s"]
    assert scan.pairs[0][found].tolist() == pytest.approx((90.0, 0.0, 67.5), abs=1e-4)
    assert not scan.pairs["lost"][0]


def test_unknown_altitude_is_separated_from_nobody_by_height() -> None:
    a = (50.0, 8.0, 90.0, 400.0, math.nan, 0.0)
    b = (50.05, 8.0, 90.0, 400.0, 39_000.0, 500.0)
    pairs, scan = search([a, b], EN_ROUTE)
    assert pairs == {(0, 1)}
    assert math.isnan(scan.pairs["vsep_ft"][0])


@pytest.mark.parametrize("fast", [5, 200])
def test_fast_traffic_in_its_own_level_meets_everybody_else(fast: int) -> None:
    # A few in a coarser level are compared with all, many are looked up by cell; each meets one slow aircraft.
    rng = np.random.default_rng(fast)
    fleet: list[Aircraft] = []
    for k in range(fast):
        lat, lon, alt_ft = rng.uniform(-60, 60), rng.uniform(-180, 180), 3000.0 * k
        away = WGS84.Direct(lat, lon, rng.uniform(0, 360), 2000.0 * KT_MS * 100.0)
        fleet.append((lat, lon, 0.0, 10.0, alt_ft, 0.0))
        fleet.append((away["lat2"], away["lon2"], away["azi2"] + 180.0, 2000.0, alt_ft, 0.0))
    assert search(fleet, EN_ROUTE)[0] == {(2 * k, 2 * k + 1) for k in range(fast)}
