"""Distance and closest approach: values worked out by hand, a library that others wrote, and a search over time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import haversine_distances

from second.geometry import State, bearing_deg, drift_deg, haversine_nm, tcpa_dcpa, vertically_apart, wrapped_deg

# A sphere on which one degree is 60 NM.
ROUND_KM = 60.0 * 1.852 * 180.0 / math.pi
NM = 1.0 / 60.0

states = st.builds(
    State,
    lat=st.floats(51.0, 53.0),
    lon=st.floats(3.0, 5.0),
    heading_deg=st.floats(0.0, 360.0),
    speed_kt=st.floats(100.0, 500.0),
)


def test_distances_and_bearings_by_hand():
    assert haversine_nm(0.0, 10.0, 0.0, 11.0, ROUND_KM) == pytest.approx(60.0)
    assert haversine_nm(0.0, 0.0, 90.0, 33.0, ROUND_KM) == pytest.approx(5400.0)
    assert haversine_nm(0.0, 179.5, 0.0, -179.5, ROUND_KM) == pytest.approx(60.0)
    assert bearing_deg(0.0, 0.0, 1.0, 0.0) == pytest.approx(0.0)
    assert bearing_deg(0.0, 0.0, 0.0, 1.0) == pytest.approx(90.0)
    assert bearing_deg(0.0, 0.0, 0.0, -1.0) == pytest.approx(270.0)
    assert [wrapped_deg(angle) for angle in (190.0, -190.0, 350.0, 180.0)] == [-170.0, 170.0, -10.0, -180.0]
    assert drift_deg(350.0, 0.0, 0.0, (0.0, 1.0)) == pytest.approx(100.0)


@given(states, states)
def test_distance_is_the_one_of_scikit_learn(one: State, other: State):
    theirs = haversine_distances(np.radians([[one.lat, one.lon], [other.lat, other.lon]]))[0, 1]
    assert haversine_nm(one.lat, one.lon, other.lat, other.lon, 1.852) == pytest.approx(theirs, abs=1e-12)


def test_head_on():
    # 20 NM apart, closing at 600 kt = 1/6 NM/s: they meet after 120 s.
    own, other = State(0.0, 0.0, 90.0, 300.0), State(0.0, 20 * NM, 270.0, 300.0)
    assert tcpa_dcpa(own, other, 200.0, ROUND_KM) == pytest.approx((120.0, 0.0), abs=1e-9)
    # After a horizon of 60 s, 10 NM are left.
    assert tcpa_dcpa(own, other, 60.0, ROUND_KM) == pytest.approx((60.0, 10.0))


def test_moving_apart_is_closest_now():
    own, other = State(0.0, 0.0, 270.0, 300.0), State(0.0, 3 * NM, 90.0, 300.0)
    assert tcpa_dcpa(own, other, 120.0, ROUND_KM) == pytest.approx((0.0, 3.0))


def test_crossing():
    # r = (10, 0) NM, v = (-300, -300) kt: t = 10 * 300 / (2 * 300^2) h = 60 s; there r = (5, -5).
    own, other = State(0.0, 0.0, 0.0, 300.0), State(0.0, 10 * NM, 270.0, 300.0)
    assert tcpa_dcpa(own, other, 120.0, ROUND_KM) == pytest.approx((60.0, math.sqrt(50.0)))


def test_same_velocity_is_closest_now():
    own, other = State(0.0, 0.0, 45.0, 300.0), State(3 * NM, 4 * NM, 45.0, 300.0)
    assert tcpa_dcpa(own, other, 120.0, ROUND_KM) == pytest.approx((0.0, 5.0), rel=1e-6)


@given(states, states)
def test_symmetric_in_the_two(one: State, other: State):
    assert tcpa_dcpa(one, other, 120.0, ROUND_KM) == pytest.approx(tcpa_dcpa(other, one, 120.0, ROUND_KM), abs=1e-6)


@given(states, states)
def test_no_time_within_the_horizon_is_closer(one: State, other: State):
    middle = math.cos(math.radians((one.lat + other.lat) / 2.0))
    times_h = np.linspace(0.0, 120.0, 121) / 3600.0

    def flown(state: State) -> tuple[np.ndarray, np.ndarray]:
        track = math.radians(state.heading_deg)
        return (
            60.0 * state.lon * middle + state.speed_kt * math.sin(track) * times_h,
            60.0 * state.lat + state.speed_kt * math.cos(track) * times_h,
        )

    (x1, y1), (x2, y2) = flown(one), flown(other)
    distances = np.hypot(x2 - x1, y2 - y1)
    tcpa_s, dcpa_nm = tcpa_dcpa(one, other, 120.0, ROUND_KM)
    assert dcpa_nm <= distances.min() + 1e-9
    # Steps of a second, at most 1000 kt: the search misses the minimum by less than 0.14 NM.
    assert dcpa_nm >= distances.min() - 0.14
    assert 0.0 <= tcpa_s <= 120.0


def test_vertical_minimum_needs_both_altitudes():
    low, high = State(0.0, 0.0, 0.0, 0.0, 30000.0), State(0.0, 0.0, 0.0, 0.0, 31000.0)
    unknown = State(0.0, 0.0, 0.0, 0.0)
    assert vertically_apart(low, high, 1000.0)
    assert not vertically_apart(low, high, 1000.1)
    assert not vertically_apart(low, unknown, 1000.0)
