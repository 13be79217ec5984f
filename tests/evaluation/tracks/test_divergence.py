"""Jensen-Shannon divergence of length, duration and radius: SciPy's, by hand, and what the quantities are."""

from __future__ import annotations

import doctest
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from watchkeeper.evaluation.tracks import divergence as module
from watchkeeper.evaluation.tracks import rates
from watchkeeper.evaluation.tracks.command import haversine_km
from watchkeeper.evaluation.tracks.divergence import divergence, divergences, histograms, jensen_shannon, measured
from watchkeeper.evaluation.tracks.set import Tracks

DEG_KM = 6371.0088 * math.pi / 180.0


def tracks(*lines: list[tuple[float, float]], t: list[float] | None = None) -> Tracks:
    points = np.array([point for line in lines for point in line], float).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, lines)])
    names = [str(k) for k in range(len(lines))]
    return Tracks(Path("x"), names, points[:, 0], points[:, 1], starts, None if t is None else np.array(t, float))


positive = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60).map(np.array)


@given(positive, positive)
def test_it_is_the_square_of_scipys_distance_on_the_same_histograms(real, gen):
    _, p, q = histograms(real, gen)
    assert divergence(real, gen).jsd == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-12)
    assert 0.0 <= divergence(real, gen).jsd <= math.log(2.0) + 1e-12


@given(positive, positive)
def test_the_bins_are_those_of_the_pipeline_and_no_value_falls_out(real, gen):
    edges, p, q = histograms(real, gen)
    assert (p.sum(), q.sum()) == (len(real), len(gen))
    if real.max() > 0.0:
        assert edges.tolist() == [*np.linspace(0.0, real.max(), 100).tolist(), math.inf]
        assert len(p) == 100


def test_by_hand():
    # real: half in the first bin, half at the maximum, which is in the open one; generated: all in the first.
    # p = (1/2, 1/2), q = (1, 0), m = (3/4, 1/4)
    expected = 0.5 * (0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)) + 0.5 * math.log(1.0 / 0.75)
    found = divergence(np.array([0.0, 99.0]), np.array([0.5, 0.5, 0.5]))
    assert found.jsd == pytest.approx(expected, rel=1e-14)
    assert (found.real_mean, found.gen_mean, found.real_values, found.gen_values) == (49.5, 0.5, 2, 3)


def test_equal_is_nothing_and_apart_is_ln_2():
    values = np.array([1.0, 2.0, 3.0])
    assert divergence(values, values).jsd == 0.0
    assert divergence(np.array([1.0, 1.0]), np.array([7.0])).jsd == 0.0, "the largest real one and beyond are one bin"
    assert divergence(np.array([10.0, 20.0]), np.array([1.0, 12.0])).jsd == pytest.approx(math.log(2.0))
    assert divergence(np.array([0.0, 0.0]), np.array([3.0])).jsd == pytest.approx(math.log(2.0)), "all real ones 0"
    assert jensen_shannon(np.array([2, 2]), np.array([30, 30])) == 0.0, "shares, not counts"


def test_without_values_on_one_side_there_is_none():
    found = divergence(np.array([1.0]), np.array([]))
    assert (found.jsd, found.real_mean, found.gen_mean) == (None, 1.0, None)


def test_the_quantities_of_a_way_along_the_equator():
    # 0, 1 and 3 degrees east at 0, 60 and 300 s: mean position at 4/3 degrees; the single point is left out
    found = measured(tracks([(0.0, 0.0), (0.0, 1.0), (0.0, 3.0)], [(5.0, 5.0)], t=[0.0, 60.0, 300.0, 7.0]))
    off = np.array([4.0, 1.0, 5.0]) / 3.0
    assert found["distance_km"].values.tolist() == pytest.approx([3.0 * DEG_KM])
    assert found["step_min"].values.tolist() == [1.0, 4.0]
    assert found["trip_min"].values.tolist() == [5.0]
    assert found["radius_km"].values.tolist() == pytest.approx([off.mean() * DEG_KM])
    assert found["gyration_km"].values.tolist() == pytest.approx([math.sqrt((off**2).mean()) * DEG_KM])


places = st.tuples(st.floats(-60.0, 60.0), st.floats(-179.0, 179.0))
lines = st.lists(st.lists(places, min_size=1, max_size=6), min_size=1, max_size=5)


@given(lines)
def test_lengths_and_radii_are_sums_of_haversines_whoever_else_is_in_the_file(some):
    found = measured(tracks(*some))
    used = [(k, line) for k, line in enumerate(some) if len(line) > 1]
    if not used:
        assert found == {}
        return
    assert found["distance_km"].owner.tolist() == [k for k, _ in used]
    for at, (_, line) in enumerate(used):
        way = sum(haversine_km(a, b) for a, b in pairwise(line))
        assert found["distance_km"].values[at] == pytest.approx(way, rel=1e-9, abs=1e-9)
        assert found["radius_km"].values[at] <= found["gyration_km"].values[at] * (1.0 + 1e-12)


def test_nothing_happens_at_the_antimeridian():
    here = measured(tracks([(10.0, 1.0), (10.5, 2.0), (10.0, 3.0)]))
    there = measured(tracks([(10.0, 179.0), (10.5, -180.0), (10.0, -179.0)]))
    for name in ("distance_km", "radius_km", "gyration_km"):
        assert there[name].values == pytest.approx(here[name].values, rel=1e-9)


def test_without_times_on_one_side_durations_are_not_compared():
    timed, bare = tracks([(0.0, 0.0), (0.0, 1.0)], t=[0.0, 9.0]), tracks([(0.0, 0.0), (0.0, 1.0)])
    assert list(divergences(measured(timed), measured(timed))) == list(module.QUANTITIES)
    assert list(divergences(measured(timed), measured(bare))) == ["distance_km", "radius_km", "gyration_km"]


def test_chosen_trajectories_alone_are_compared():
    real = measured(tracks([(0.0, 0.0), (0.0, 1.0)], [(0.0, 0.0), (0.0, 5.0)], t=[0.0, 60.0, 0.0, 600.0]))
    chosen = np.array([False, True]), np.array([True, False])
    found = divergences(real, real, chosen)
    assert (found["trip_min"].real_mean, found["trip_min"].gen_mean) == (10.0, 1.0)
    assert (found["step_min"].real_values, found["distance_km"].gen_mean) == (1, pytest.approx(DEG_KM))


@pytest.mark.parametrize("documented", [module, rates])
def test_the_examples_in_the_docstrings_run(documented):
    found = doctest.testmod(documented)
    assert (found.failed, found.attempted > 0) == (0, True)
