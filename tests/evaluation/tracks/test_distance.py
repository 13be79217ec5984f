"""Hausdorff, DTW and EDR: hand-worked values, libraries that others wrote, and the axioms that each obeys."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Proj
from scipy.spatial.distance import directed_hausdorff
from sklearn.metrics.pairwise import haversine_distances
from tslearn.metrics import dtw_path_from_metric

from watchkeeper.evaluation.tracks.command import dtw_km, edr, hausdorff_km, haversine_km

RADIUS_KM = 6371.0088
DEG_KM = RADIUS_KM * math.pi / 180.0


def walk(rng: np.random.Generator, n: int, step_deg: float = 0.01, start: tuple[float, float] = (48.0, 2.0)):
    return np.array(start) + np.cumsum(rng.normal(0.0, step_deg, (n, 2)), axis=0)


def scipy_hausdorff(a: np.ndarray, b: np.ndarray) -> float:
    return max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])


def latitudes() -> st.SearchStrategy[float]:
    return st.floats(-90.0, 90.0, allow_nan=False)


def longitudes() -> st.SearchStrategy[float]:
    return st.floats(-180.0, 180.0, allow_nan=False)


tracks = st.lists(st.tuples(latitudes(), longitudes()), min_size=1, max_size=12).map(np.array)
# Steps of 60 m: near enough that eps of 100 m matches some points and not others.
near_tracks = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(-4, 4)).map(lambda p: (50.0 + p[0] * 5.4e-4, 8.0 + p[1] * 5.4e-4)),
    min_size=1,
    max_size=8,
).map(np.array)


# One degree along the equator or a meridian is R pi / 180.
#
#   a:  0 --- 1 --- 2        b:  0 --- 1 --- 2 --- 3 --- 4   (degrees east)
#
def on_equator(*degrees: float) -> np.ndarray:
    return np.array([(0.0, lon) for lon in degrees])


def test_haversine_by_hand():
    assert haversine_km((0.0, 0.0), (0.0, 1.0)) == pytest.approx(DEG_KM, rel=1e-12)
    assert haversine_km((0.0, 0.0), (90.0, 77.0)) == pytest.approx(90.0 * DEG_KM, rel=1e-12)
    assert haversine_km((10.0, 20.0), (-10.0, -160.0)) == pytest.approx(180.0 * DEG_KM, rel=1e-8)
    assert haversine_km((-33.0, 180.0), (-33.0, -180.0)) == 0.0


def test_hausdorff_is_the_farthest_point_of_either_side():
    # every point of a is on b, but 4 lies 2 degrees beyond the last point of a
    assert hausdorff_km(on_equator(0, 1, 2), on_equator(0, 1, 2, 3, 4)) == pytest.approx(2.0 * DEG_KM, rel=1e-12)
    assert hausdorff_km(on_equator(0, 1, 2, 3, 4), on_equator(0, 1, 2)) == pytest.approx(2.0 * DEG_KM, rel=1e-12)


def test_dtw_is_the_cheapest_alignment():
    # 0-0, 1-1, 2-2, 2-3, 2-4 costs 0 + 0 + 0 + 1 + 2
    assert dtw_km(on_equator(0, 1, 2), on_equator(0, 1, 2, 3, 4)) == pytest.approx(3.0 * DEG_KM, rel=1e-12)
    # a single point is held against every point of the other: 1 + 0 + 1
    assert dtw_km(on_equator(1), on_equator(0, 1, 2)) == pytest.approx(2.0 * DEG_KM, rel=1e-12)


def test_edr_counts_edits_over_the_longer_length():
    # 0, 1, 2 match, 3 and 4 are inserted: 2 of 5
    assert edr(on_equator(0, 1, 2), on_equator(0, 1, 2, 3, 4)) == pytest.approx(2 / 5)
    # nothing matches: three substitutions
    assert edr(on_equator(0, 1, 2), on_equator(10, 11, 12)) == 1.0


def test_edr_matches_strictly_nearer_than_eps():
    a, b = np.array([(50.0, 8.0)]), np.array([(50.0, 8.001)])
    apart_m = 1000.0 * haversine_km(a[0], b[0])
    assert edr(a, b, apart_m) == 1.0, "exactly eps is no match"
    assert edr(a, b, math.nextafter(apart_m, math.inf)) == 0.0
    assert edr(a, a, 0.0) == 1.0, "not even a point itself is nearer than 0"
    assert edr(a, -a, 3e7) == 0.0, "nothing on Earth is 30,000 km away"


def test_hausdorff_equals_scipy_on_the_points_in_space():
    # projected to the sphere in three dimensions, where SciPy measures chords: an arc is 2 R asin(chord / 2 R)
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, b = walk(rng, rng.integers(1, 80), 0.3), walk(rng, rng.integers(1, 80), 0.3)
        lat, lon = (np.radians(np.concatenate((a, b))[:, k]) for k in (0, 1))
        xyz = RADIUS_KM * np.column_stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)))
        chord = scipy_hausdorff(xyz[: len(a)], xyz[len(a) :])
        assert hausdorff_km(a, b) == pytest.approx(2.0 * RADIUS_KM * math.asin(chord / 2.0 / RADIUS_KM), rel=1e-12)


def test_hausdorff_equals_scipy_on_a_map():
    # azimuthal equidistant around the middle: within 15 km of it lengths are true to (15 km / R)² / 6, a millionth
    rng = np.random.default_rng(2)
    to_map = Proj(f"+proj=aeqd +lat_0=48 +lon_0=2 +R={1000.0 * RADIUS_KM}")
    for _ in range(200):
        a, b = walk(rng, rng.integers(2, 60), 0.002), walk(rng, rng.integers(2, 60), 0.002)
        flat = [np.column_stack(to_map(track[:, 1], track[:, 0])) / 1000.0 for track in (a, b)]
        assert np.abs(np.concatenate(flat)).max() < 15.0
        assert hausdorff_km(a, b) == pytest.approx(scipy_hausdorff(*flat), rel=1e-7)


def test_hausdorff_equals_scipy_along_a_great_circle_exactly():
    # along the equator the projection is one number, R times the longitude, and has no distortion at all
    rng = np.random.default_rng(3)
    for _ in range(200):
        lons = [rng.uniform(-40.0, 40.0, rng.integers(1, 40)) for _ in range(2)]
        flat = [DEG_KM * lon[:, np.newaxis] for lon in lons]
        assert hausdorff_km(*(on_equator(*lon) for lon in lons)) == pytest.approx(scipy_hausdorff(*flat), rel=1e-12)


def test_dtw_equals_tslearn_on_a_thousand_pairs():
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(1000):
        a, b = walk(rng, rng.integers(1, 60)), walk(rng, rng.integers(1, 60))
        matrix = RADIUS_KM * haversine_distances(np.radians(a), np.radians(b))
        _, expected = dtw_path_from_metric(matrix, metric="precomputed")
        worst = max(worst, abs(dtw_km(a, b) - expected) / expected)
    assert worst < 1e-11


def edr_by_definition(a: np.ndarray, b: np.ndarray, eps_m: float) -> float:
    """Chen, Özsu and Oria's recursion as it is written, with the distance of another library."""
    near = 1000.0 * RADIUS_KM * haversine_distances(np.radians(a), np.radians(b)) < eps_m

    @cache
    def edits(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(edits(i - 1, j - 1) + (not near[i - 1, j - 1]), edits(i - 1, j) + 1, edits(i, j - 1) + 1)

    return edits(len(a), len(b)) / max(len(a), len(b))


@given(near_tracks, near_tracks, st.sampled_from((30.0, 65.0, 100.0, 130.0)))
def test_edr_equals_its_definition(a, b, eps_m):
    assert edr(a, b, eps_m) == pytest.approx(edr_by_definition(a, b, eps_m), abs=1e-15)


@given(tracks, tracks)
def test_all_three_are_symmetric(a, b):
    assert hausdorff_km(a, b) == pytest.approx(hausdorff_km(b, a), rel=1e-12)
    assert dtw_km(a, b) == pytest.approx(dtw_km(b, a), rel=1e-12)
    assert edr(a, b) == edr(b, a)


@given(tracks)
def test_a_trajectory_is_at_no_distance_from_itself(a):
    assert (hausdorff_km(a, a), dtw_km(a, a), edr(a, a)) == (0.0, 0.0, 0.0)


@given(tracks, tracks, tracks)
def test_hausdorff_obeys_the_triangle_inequality(a, b, c):
    assert hausdorff_km(a, c) <= hausdorff_km(a, b) + hausdorff_km(b, c) + 1e-6


@given(tracks, tracks)
def test_dtw_is_at_least_hausdorff_and_edr_at_least_the_difference_in_length(a, b):
    # every point is aligned with something, which is no nearer than its nearest
    assert dtw_km(a, b) >= hausdorff_km(a, b) * (1.0 - 1e-12)
    longer = max(len(a), len(b))
    assert abs(len(a) - len(b)) / longer <= edr(a, b) <= 1.0


@given(near_tracks, near_tracks, st.floats(-400.0, 400.0))
@settings(max_examples=200)
def test_nothing_changes_when_the_earth_is_turned(a, b, by_deg):
    # also across the antimeridian, and where longitudes are counted beyond it
    turned = [track + np.array((0.0, by_deg)) for track in (a, b)]
    assert hausdorff_km(*turned) == pytest.approx(hausdorff_km(a, b), abs=1e-9)
    assert dtw_km(*turned) == pytest.approx(dtw_km(a, b), abs=1e-8)
    assert edr(*turned) == edr(a, b)


@given(tracks, tracks)
def test_nothing_changes_when_both_are_travelled_backwards(a, b):
    assert hausdorff_km(a[::-1], b[::-1]) == pytest.approx(hausdorff_km(a, b), rel=1e-12)
    assert dtw_km(a[::-1], b[::-1]) == pytest.approx(dtw_km(a, b), rel=1e-12)
    assert edr(a[::-1], b[::-1]) == edr(a, b)


@given(tracks, tracks)
def test_hausdorff_does_not_know_in_which_order_points_were_visited(a, b):
    shuffled = np.random.default_rng(5).permutation(a)
    assert hausdorff_km(shuffled, b) == pytest.approx(hausdorff_km(a, b), rel=1e-12)


@pytest.mark.parametrize(
    ("track", "words"),
    [
        ([], "shape"),
        ([1.0, 2.0], "shape"),
        ([(1.0, 2.0, 3.0)], "shape"),
        ([(1.0, 2.0), (math.nan, 2.0)], "point 1 is not finite"),
        ([(1.0, 2.0), (91.0, 2.0)], "point 1: latitude"),
    ],
)
def test_what_is_no_trajectory_is_named(track, words):
    for distance in (hausdorff_km, dtw_km, edr):
        with pytest.raises(ValueError, match=words):
            distance(track, [(0.0, 0.0)])


@pytest.mark.parametrize("eps_m", [-1.0, math.nan, math.inf])
def test_eps_must_be_a_length(eps_m):
    with pytest.raises(ValueError, match="eps_m"):
        edr([(0.0, 0.0)], [(0.0, 0.0)], eps_m)
