"""The pair kernel of the metrics against the daemon's exact one, and its pieces against libraries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyproj import Geod

from watchkeeper.detectors.kernels.approach import State, approach, scratch, state_of
from watchkeeper.detectors.kernels.pairs import (
    EARTH_NM,
    Nearest,
    Reach,
    bearing_deg,
    closest,
    drift_deg,
    haversine_nm,
    in_order,
    level,
    look,
    navigation,
    significant,
)
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import KT_MS, NM_M, direct

HORIZON_S = 120.0
SPHERE = Geod(a=EARTH_NM * NM_M, b=EARTH_NM * NM_M)
angles = st.floats(0.0, 360.0)
speeds = st.floats(0.0, 600.0)


def state(lat: float, lon: float, trk: float, gs_kt: float, ahead_s: float = 0.0) -> Any:
    out = blank(State, 1)[0]
    out["alt_ft"], out["climb_fts"] = 35_000.0, 0.0
    state_of(lat, lon, trk, gs_kt * KT_MS, ahead_s, out)
    return out


@settings(deadline=None)  # the first call compiles
@given(st.floats(-80.0, 80.0), st.floats(-180.0, 180.0), angles, st.floats(0.0, 60.0), angles, angles, speeds, speeds)
def test_it_agrees_with_the_exact_kernel_to_two_metres(lat, lon, azimuth, apart_nm, trk_a, trk_b, gs_a, gs_b):
    lat_b, lon_b, _ = direct(lat, lon, azimuth, apart_nm * NM_M)
    a, b = (lat, lon, trk_a, gs_a), (lat_b, lon_b, trk_b, gs_b)
    tcpa_s, dcpa_m = closest(state(*a), state(*b), HORIZON_S)
    middle = state(*a, 0.5 * HORIZON_S), state(*b, 0.5 * HORIZON_S)
    exact_t, exact_d, *_, now_m = approach(*middle, HORIZON_S, 5.0 * NM_M, 1000.0, scratch())
    assert dcpa_m == pytest.approx(exact_d, abs=2.0)
    # the moment is only as sharp as the minimum: where nothing changes, any moment is the nearest
    if abs(now_m - exact_d) > 500.0:
        assert tcpa_s == pytest.approx(exact_t, abs=1.0)


@settings(deadline=None)  # the first call compiles
@given(st.floats(-89.0, 89.0), st.floats(-180.0, 180.0), angles, speeds, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_it_is_symmetric(lat, lon, trk, gs, dlat, dlon):
    a, b = state(lat, lon, trk, gs), state(max(-90.0, min(90.0, lat + dlat)), lon + dlon, trk + 130.0, 400.0)
    assert closest(a, b, HORIZON_S) == pytest.approx(closest(b, a, HORIZON_S), abs=1e-6)


def test_parting_pairs_are_nearest_now_and_later_ones_at_the_horizon():
    a, b = state(0.0, 0.0, 270.0, 450.0), state(0.0, 0.05, 90.0, 450.0)
    assert closest(a, b, HORIZON_S)[0] == 0.0
    a, b = state(0.0, 0.0, 90.0, 450.0), state(0.0, 1.5, 270.0, 450.0)  # 90 NM: they need six minutes
    t, d = closest(a, b, HORIZON_S)
    assert t == HORIZON_S
    assert d / NM_M == pytest.approx(1.5 * 60.108 - 30.0, abs=0.01)


def test_side_by_side_nothing_ever_changes():
    a, b = state(10.0, 20.0, 0.0, 400.0), state(10.0, 20.1, 0.0, 400.0)
    _, d = closest(a, b, HORIZON_S)
    assert d == pytest.approx(10_957.0, abs=3.0)  # 0.1 degrees at 10.2 N, where they are two minutes later
    same = state(10.0, 20.0, 0.0, 0.0)
    assert closest(same, same, HORIZON_S) == (0.0, 0.0)


def test_antipodes_do_no_harm():
    t, d = closest(state(0.0, 0.0, 90.0, 400.0), state(0.0, 180.0, 90.0, 400.0), HORIZON_S)
    assert math.isfinite(t)
    assert d > 12e6


@settings(deadline=None)  # the first call compiles
@given(st.floats(-89.0, 89.0), st.floats(-180.0, 180.0), st.floats(-89.0, 89.0), st.floats(-180.0, 180.0))
def test_distance_and_bearing_on_the_sphere_are_those_of_pyproj(lat1, lon1, lat2, lon2):
    azimuth, _, metres = SPHERE.inv(lon1, lat1, lon2, lat2)
    assert haversine_nm(lat1, lon1, lat2, lon2) * NM_M == pytest.approx(metres, abs=1.0)
    assume(1_000.0 < metres < 19_000_000.0)
    assert drift_deg(bearing_deg(lat1, lon1, lat2, lon2), azimuth) < 0.01


def test_small_questions():
    assert drift_deg(350.0, 10.0) == drift_deg(10.0, 350.0) == 20.0
    assert significant(3.0, 0.0, 3.0, 5.0)
    assert not significant(math.nan, math.nan, 3.0, 5.0)
    assert navigation(5.0, 0.0, 90.0)
    assert not navigation(5.0, 0.0, math.nan)
    assert not navigation(5.0, math.nan, 90.0)
    assert level(1000.0, 1999.0, 1000.0)
    assert not level(1000.0, 2000.0, 1000.0)
    assert level(math.nan, 2000.0, 1000.0)


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 10_000), st.booleans())
def test_sorting_and_reach_change_nothing_that_matters(seed, everyone):
    rng = np.random.default_rng(seed)
    n = 30
    lat, lon = 50.0 + rng.uniform(-1.5, 1.5, n), 8.0 + rng.uniform(-2.0, 2.0, n)
    states = blank(State, n)
    for i in range(n):
        states[i] = state(lat[i], lon[i], rng.uniform(0, 360), rng.uniform(200, 500))
    states["alt_ft"], controlled = rng.choice([33e3, 34e3, math.nan], n), np.full(n, everyone) | (rng.random(n) < 0.2)
    threat_m, arrived = 6.0 * NM_M, rng.random(n) < 0.2
    results = []
    for order, reach in (
        (in_order(n), math.inf),
        (np.argsort(states["z_m"], kind="stable"), threat_m + 2.0 * HORIZON_S * 500.0 * KT_MS),
    ):
        nearest = blank(Nearest, n)
        look(order, states, controlled, arrived, Reach(HORIZON_S, 1000.0, reach), nearest)
        near, threat = nearest["dcpa_m"] <= threat_m, nearest["threat_dcpa_m"] <= threat_m
        results.append(
            (
                *(column.tolist() for column in (near, nearest["dcpa_m"][near], nearest["other"][near])),
                *(column.tolist() for column in (threat, nearest["threat_dcpa_m"][threat], nearest["threat"][threat])),
            )
        )
    assert results[0] == results[1]


def test_arrived_aircraft_threaten_and_are_in_no_conflict():
    # b is nearest to a, but has arrived: the conflict is with c, the threat is b
    states = blank(State, 3)
    for i, lon in enumerate((0.0, 2.0 / 60.0, 4.0 / 60.0)):
        states[i] = state(0.0, lon, 90.0, 300.0)
    nearest, everyone = blank(Nearest, 3), np.ones(3, bool)
    reach = Reach(HORIZON_S, 1000.0, math.inf)
    look(in_order(3), states, everyone, np.array([False, True, False]), reach, nearest)
    assert nearest["other"].tolist() == [2, -1, 0]
    assert nearest["threat"].tolist()[0] == nearest["threat"].tolist()[2] == 1
    assert nearest["dcpa_m"][1] == math.inf
    assert nearest["threat_dcpa_m"] == pytest.approx(2.0 * NM_M, rel=0.01)
    assert nearest["dcpa_m"][0] == pytest.approx(4.0 * NM_M, rel=0.01)


def test_the_plane_at_the_first_aircraft_is_almost_that_at_the_midpoint():
    a, b = state(50.0, 8.0, 90.0, 450.0), state(50.3, 8.4, 180.0, 450.0)
    middle, first, second = closest(a, b, HORIZON_S), closest(a, b, HORIZON_S, 0.0), closest(b, a, HORIZON_S, 0.0)
    assert first == pytest.approx(middle, rel=1e-3)
    assert len({middle[1], first[1], second[1]}) == 3
