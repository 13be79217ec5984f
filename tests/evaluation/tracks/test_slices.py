"""Match rates, and figures by time of day and by place: what is in which slice, and that slices add up to the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.evaluation.tracks.api import evaluate
from watchkeeper.evaluation.tracks.pairs import Grid
from watchkeeper.evaluation.tracks.rates import match_rates
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.evaluation.tracks.slices import Slicing
from watchkeeper.streams.logs.source import LogError

GRID = Grid(0.0, 0.0, 1.0, 1.0, 0.1)


def tracks(*lines: list[tuple[float, float]], hours: list[float] | None = None) -> Tracks:
    """Lines that begin at these hours of the day, with a point a minute."""
    points = np.array([point for line in lines for point in line], float).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, lines)])
    t = None
    if hours is not None:
        t = np.concatenate(
            [hour * 3600.0 + 60.0 * np.arange(len(line)) for hour, line in zip(hours, lines, strict=True)]
        )
    return Tracks(Path("x.csv"), [str(k) for k in range(len(lines))], points[:, 0], points[:, 1], starts, t)


def test_match_rates_by_hand():
    real = [(0, (1, 2)), (1, (1, 2)), (2, (3, 4))]
    #             a real trip   both ends, no trip   origin only    destination only   neither     the trip again
    gen = [(0, (1, 2)), (1, (1, 4)), (2, (3, 9)), (3, (9, 4)), (4, (8, 8)), (5, (1, 2))]
    found = match_rates(real, gen)
    counts = {name: getattr(found, name).matched for name in found.__struct_fields__}
    assert counts == {"origin": 4, "destination": 4, "both": 3, "pair": 2, "distinct_pairs": 1}
    assert found.distinct_pairs.total == 5, "one of the six is there twice"
    assert (found.origin.total, found.origin.rate) == (6, pytest.approx(4 / 6))
    assert match_rates(real, []).pair.rate is None


ends = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12).map(lambda ods: list(enumerate(ods)))


@given(ends, ends)
def test_rates_are_nested_and_a_copy_matches_everywhere(real, gen):
    found = match_rates(real, gen)
    assert found.pair.matched <= found.both.matched <= min(found.origin.matched, found.destination.matched)
    copy = match_rates(real, real)
    assert all(rate.matched == rate.total for rate in (copy.origin, copy.destination, copy.both, copy.pair))


THERE, BACK = [(0.05, 0.05), (0.95, 0.95)], [(0.95, 0.95), (0.05, 0.05)]
BENT = [(0.05, 0.05), (0.05, 0.95), (0.95, 0.95)]


def names(result) -> list[tuple[str, str, int, int, int]]:
    return [(s.by, s.name, s.real, s.generated, s.comparisons) for s in result.summary.slices]


def test_the_hour_of_the_start_decides_and_a_comparison_is_in_its_real_ones_slice():
    real, gen = tracks(THERE, BACK, hours=[5.99, 6.0]), tracks(BENT, BACK, hours=[23.0, 30.0])
    result = evaluate(real, gen, grid=GRID, slicing=Slicing(("time",)))
    assert names(result) == [
        ("time", "00:00-06:00", 1, 0, 1),
        ("time", "06:00-12:00", 1, 1, 1),
        ("time", "18:00-24:00", 0, 1, 0),
    ]
    night, morning, late = result.summary.slices
    assert night.metrics["dtw_km"] > 0.0
    assert morning.metrics["dtw_km"] == 0.0
    assert (late.metrics, late.divergences["distance_km"].jsd) == ({}, None)
    assert late.match_rates.pair.rate == 1.0, "the ends are those of all real ones"


def test_local_time_is_an_offset_from_utc_and_hours_are_a_choice():
    real = tracks(THERE, hours=[20.0])
    result = evaluate(real, real, grid=GRID, slicing=Slicing(("time",), hours=3, utc_offset_h=8.0))
    assert names(result) == [("time", "03:00-06:00", 1, 1, 1)]


def test_quarters_of_the_grid_by_origin():
    real = tracks(THERE, BACK, [(0.95, 0.05), (0.05, 0.05)], [(0.05, 0.95), (0.05, 0.05)])
    result = evaluate(real, real, grid=GRID, slicing=Slicing(("place",)))
    assert [name for _, name, *_ in names(result)] == ["south-west", "south-east", "north-west", "north-east"]
    assert [s.comparisons for s in result.summary.slices] == [1, 1, 1, 1]


def test_around_a_centre():
    near, inner, far, away = (0.5, 0.5), (0.51, 0.5), (0.9, 0.9), (0.1, 0.1)
    real = tracks([near, inner], [near, far], [far, near], [far, away], [away, far])
    result = evaluate(real, real, grid=GRID, slicing=Slicing(("place",), centre=(0.5, 0.5, 5.0)))
    assert {s.name: s.real for s in result.summary.slices} == {
        "elsewhere": 2, "from the centre": 1, "to the centre": 1, "within the centre": 1,
    }  # fmt: skip


def test_too_few_points_are_in_no_slice():
    real = tracks(THERE, [(0.5, 0.5)], [], hours=[1.0, 2.0, 3.0])
    result = evaluate(real, real, grid=GRID, slicing=Slicing(("time", "place")))
    assert names(result) == [("time", "00:00-06:00", 1, 1, 1), ("place", "south-west", 1, 1, 1)]


spots = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
many = st.lists(st.tuples(st.lists(spots, min_size=2, max_size=4), st.floats(0.0, 23.9)), min_size=1, max_size=8).map(
    lambda some: tracks(*(line for line, _ in some), hours=[hour for _, hour in some])
)


@given(many, many)
def test_slices_of_a_kind_add_up_to_the_whole(real, gen):
    result = evaluate(real, gen, grid=Grid(0.0, 0.0, 1.0, 1.0, 0.5), slicing=Slicing(("time", "place")), jobs=1)
    for by in ("time", "place"):
        own = [s for s in result.summary.slices if s.by == by]
        assert sum(s.real for s in own) == len(real)
        assert sum(s.generated for s in own) == len(gen)
        assert sum(s.comparisons for s in own) == result.summary.comparisons
        assert sum(s.match_rates.pair.matched for s in own) == result.summary.match_rates.pair.matched
        assert sum(s.divergences["step_min"].gen_values for s in own) == int((gen.lengths - 1).sum())


def test_without_times_there_are_no_slices_of_the_day():
    with pytest.raises(LogError, match=r"x\.csv: no times in it"):
        evaluate(tracks(THERE, hours=[1.0]), tracks(THERE), grid=GRID, slicing=Slicing(("time",)))
