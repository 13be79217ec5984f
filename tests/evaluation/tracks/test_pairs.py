"""Which trajectories are compared: cells by the documented formula, order within them, drops, and the antimeridian."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.evaluation.tracks.pairs import Grid, grid_over, match
from watchkeeper.evaluation.tracks.set import Tracks


def tracks(*lines: list[tuple[float, float]]) -> Tracks:
    points = np.array([point for line in lines for point in line], float).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, lines)])
    return Tracks(Path("x"), [str(k) for k in range(len(lines))], points[:, 0], points[:, 1], starts)


def test_a_cell_has_the_documented_number():
    # 2.5 degrees of latitude in cells of 1: ceil(2.5) + 1 = 4 high; ceil(5 / 1) + 1 = 6 wide
    grid = Grid(10.0, 20.0, 12.5, 25.0, 1.0)
    assert (grid.height, grid.width) == (4, 6)
    lat, lon = np.array([10.0, 10.99, 11.0, 12.5, 12.5]), np.array([20.0, 20.99, 21.0, 25.0, 20.0])
    # x * 4 + y:           0     0      1 * 4 + 1   5 * 4 + 2   2
    assert grid.cells(lat, lon).tolist() == [0, 0, 5, 22, 2]
    assert not grid.outside(lat, lon).any()


def test_points_outside_count_as_in_the_nearest_cell_and_are_told():
    grid = Grid(10.0, 20.0, 12.5, 25.0, 1.0)
    lat, lon = np.array([-80.0, 80.0, 11.0, 11.0]), np.array([22.0, 22.0, 3.0, 90.0])
    assert grid.cells(lat, lon).tolist() == [2 * 4 + 0, 2 * 4 + 3, 0 * 4 + 1, 5 * 4 + 1]
    assert grid.outside(lat, lon).all()


def test_the_grid_covers_the_real_ones_alone_so_that_cells_mean_the_same_for_every_model():
    real = tracks([(1.0, 1.0), (3.0, 3.0)])
    near, far = tracks([(1.0, 1.0), (3.0, 3.0)]), tracks([(1.0, 1.0), (50.0, 50.0), (3.0, 3.0)])
    grids = [match(real, gen, grid_over(real, 0.5)) for gen in (near, far)]
    assert grids[0].od.tolist() == grids[1].od.tolist() == [[0, 4 * 5 + 4]]
    assert [matching.clamped_gen for matching in grids] == [0, 0], "only the ends are looked up"
    assert match(real, tracks([(0.0, 1.0), (9.0, 3.0)]), grid_over(real, 0.5)).clamped_gen == 1


def test_within_an_origin_and_destination_the_first_goes_with_the_first():
    there, back = [(1.0, 1.0), (2.0, 2.0)], [(2.0, 2.0), (1.0, 1.0)]
    real, gen = tracks(there, back, there, there), tracks(back, there, there, back, back)
    matching = match(real, gen, grid_over(real, 0.1))
    assert matching.pairs.tolist() == [[0, 1], [1, 0], [2, 2]], "min(3, 2) there, min(1, 3) back"


def test_short_ones_are_dropped_and_counted_and_numbers_stay_those_of_the_file():
    line = [(1.0, 1.0), (2.0, 2.0)]
    real, gen = tracks(line[:1], [], line), tracks(line[:1], line)
    matching = match(real, gen, grid_over(real, 0.1))
    assert (matching.dropped_real, matching.dropped_gen) == (2, 1)
    assert matching.pairs.tolist() == [[2, 1]]


def test_the_points_of_dropped_ones_do_not_stretch_the_grid():
    real = tracks([(1.0, 1.0), (2.0, 2.0)], [(80.0, 80.0)])
    assert grid_over(real, 1.0) == Grid(1.0, 1.0, 2.0, 2.0, 1.0)


def test_nothing_of_enough_points_gives_no_pair():
    matching = match(tracks([(1.0, 1.0)]), tracks([(1.0, 1.0)]), grid_over(tracks([(1.0, 1.0)]), 0.1))
    assert matching.pairs.shape == (0, 2)


def test_across_the_antimeridian_the_grid_is_small_and_has_one_numbering():
    real = tracks([(0.0, 179.5), (0.0, -179.5)])
    grid = grid_over(real, 0.25)
    assert (grid.lon_min, grid.lon_max, grid.width) == (179.5, 180.5, 5)
    names = np.array([180.0, -180.0, 540.0, -179.75, 180.25])
    assert grid.cells(np.zeros(5), names).tolist() == [2, 2, 2, 3, 3]


# Binary fractions, so that turning the Earth by whole degrees rounds nothing and no point changes its cell.
places = st.tuples(st.integers(-40, 40), st.integers(-40, 40)).map(lambda p: (p[0] / 64.0, p[1] / 64.0))
lines = st.lists(st.lists(places, min_size=2, max_size=4), min_size=1, max_size=6)


@given(lines, lines, st.integers(-180, 180))
def test_turning_the_earth_changes_no_pair_and_no_cell(real, gen, by_deg):
    def turned(some):
        return tracks(*([(lat, (lon + by_deg + 180.0) % 360.0 - 180.0) for lat, lon in line] for line in some))

    before = match(tracks(*real), tracks(*gen), grid_over(tracks(*real), 0.25))
    after = match(turned(real), turned(gen), moved(grid_over(tracks(*real), 0.25), by_deg))
    assert after.pairs.tolist() == before.pairs.tolist()
    assert after.od.tolist() == before.od.tolist()


def moved(grid: Grid, by_deg: int) -> Grid:
    return Grid(grid.lat_min, grid.lon_min + by_deg, grid.lat_max, grid.lon_max + by_deg, grid.size_deg)


@given(st.lists(places, min_size=2, max_size=10), st.integers(-180, 180))
def test_one_line_that_crosses_the_antimeridian_has_the_same_extent_there(line, by_deg):
    here = grid_over(tracks(line), 0.25)
    there = grid_over(tracks([(lat, (lon + by_deg + 180.0) % 360.0 - 180.0) for lat, lon in line]), 0.25)
    assert (there.width, there.height) == (here.width, here.height)


@pytest.mark.parametrize("lon", [-180.0, -0.001, 0.0, 179.999, 359.0])
def test_a_longitude_has_one_cell_however_it_is_counted(lon):
    grid = Grid(0.0, -180.0, 10.0, 180.0, 0.01)
    assert grid.cells(np.array([5.0]), np.array([lon])) == grid.cells(np.array([5.0]), np.array([lon - 360.0]))
