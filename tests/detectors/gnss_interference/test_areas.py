"""Cells and areas of gnss_interference: counted right anywhere on Earth, connected, and each with a name that lasts."""

from __future__ import annotations

import copy
from itertools import pairwise

import h3.api.basic_int as h3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from watchkeeper.detectors.gnss_interference.areas import Area, Areas, name_of
from watchkeeper.detectors.gnss_interference.cells import Cells, components
from watchkeeper.detectors.gnss_interference.constants import NEWS_SHARE

HOME = h3.latlng_to_cell(50.0, 8.0, 4)
PENTAGON = min(h3.get_pentagons(4))
HOLD_S = 60.0


def by_scipy(cells: list[int]) -> set[frozenset[int]]:
    """Connected components by SciPy, neighbours by H3's own distance."""
    touching = [(i, j) for i, a in enumerate(cells) for j, b in enumerate(cells) if h3.are_neighbor_cells(a, b)]
    i, j = np.array(touching, int).reshape(-1, 2).T
    n, label = connected_components(coo_array((np.ones(len(i)), (i, j)), (len(cells), len(cells))), directed=False)
    return {frozenset(c for c, of in zip(cells, label, strict=True) if of == k) for k in range(n)}


def patches(middle: int, rings: int = 3) -> st.SearchStrategy[set[int]]:
    return st.sets(st.sampled_from(sorted(h3.grid_disk(middle, rings))), max_size=25)


def line(n: int) -> list[int]:
    """Cells in a row."""
    far = max(h3.grid_ring(HOME, n - 1))
    cells = h3.grid_path_cells(HOME, far)
    assert len(cells) == n
    assert all(h3.are_neighbor_cells(a, b) for a, b in pairwise(cells))
    return list(cells)


def ranked(cells: list[int]) -> dict[int, tuple[float, int]]:
    """All equally affected, but the first most of all."""
    return {cell: (1.0 - 0.01 * i, 3) for i, cell in enumerate(cells)}


def extents(areas: Areas) -> dict[str, set[int]]:
    return {area.name: set(area.cells) for area in areas.areas}


@given(st.one_of(patches(HOME), patches(PENTAGON), patches(h3.latlng_to_cell(90.0, 0.0, 4))))
@settings(max_examples=150, deadline=None)
def test_components_are_those_that_scipy_finds(cells):
    found = components(cells)
    assert {frozenset(group) for group in found} == by_scipy(sorted(cells))
    assert found == sorted(sorted(group) for group in found)


@given(st.lists(st.tuples(patches(HOME, 2), st.sampled_from([1.0, 20.0, 70.0])), max_size=12))
@settings(max_examples=150, deadline=None)
def test_areas_are_connected_apart_and_hold_exactly_the_cells_affected_lately(steps):
    areas, t = Areas(), 1000.0
    last: dict[int, float] = {}
    for cells, dt in steps:
        t += dt
        before = extents(areas)
        ended = areas.update(t, dict.fromkeys(cells, (1.0, 3)), HOLD_S)
        # a held part that has lost its area is given up before its time; nothing else may be missing
        last = {c: at for c, at in last.items() if t - at <= HOLD_S} | dict.fromkeys(cells, t)
        now = extents(areas)
        held = set().union(*now.values())
        assert cells <= held <= last.keys()
        assert len(held) == sum(map(len, now.values()))
        assert {frozenset(extent) for extent in now.values()} == by_scipy(sorted(held))
        last = {c: at for c, at in last.items() if c in held}
        assert ended.keys() == before.keys() - now.keys()
        for name in before.keys() & now.keys():
            assert before[name] & now[name]
        for name, why in ended.items():
            assert (why == "merged") == bool(before[name] & held)
        fresh = Areas()
        fresh.restore(copy.deepcopy(areas.snapshot()))
        assert fresh.areas == areas.areas


def test_a_name_is_that_of_the_worst_cell_and_stays_while_the_area_moves_away_from_it():
    cells = line(12)
    areas = Areas()
    areas.update(0.0, ranked(cells[:3]), HOLD_S)
    for step in range(1, 10):
        assert areas.update(70.0 * step, ranked(cells[step + 2 : step - 1 : -1]), HOLD_S) == {}
        assert extents(areas) == {name_of(cells[0]): set(cells[step : step + 3])}


def test_of_areas_that_meet_the_oldest_goes_on():
    cells = line(9)
    areas = Areas()
    areas.update(0.0, ranked(cells[6:7]), HOLD_S)
    areas.update(10.0, ranked(cells[6:7]) | ranked(cells[:4]), HOLD_S)
    assert len(areas.areas) == 2
    assert areas.update(20.0, ranked(cells), HOLD_S) == {name_of(cells[0]): "merged"}
    assert extents(areas) == {name_of(cells[6]): set(cells)}


def test_the_larger_part_of_one_that_splits_keeps_the_name():
    cells = line(9)
    areas = Areas()
    areas.update(0.0, ranked(cells), HOLD_S)
    parts = cells[:2], cells[3:]
    areas.update(30.0, ranked(parts[0]) | ranked(parts[1]), HOLD_S)
    assert len(areas.areas) == 1, "what lies between is still held"
    assert areas.update(70.0, ranked(parts[0]) | ranked(parts[1]), HOLD_S) == {}
    # the small part holds the cell that the name comes from, so it is called after its other cell
    assert extents(areas) == {name_of(cells[0]): set(parts[1]), name_of(cells[1]): set(parts[0])}


def test_a_part_that_is_only_held_does_not_take_the_name_from_one_that_is_affected():
    cells = line(9)
    areas = Areas()
    areas.update(0.0, ranked(cells), HOLD_S)
    areas.update(30.0, ranked(cells[:2] + cells[3:]), HOLD_S)
    areas.update(70.0, ranked(cells[:2]), HOLD_S)
    assert extents(areas) == {name_of(cells[0]): set(cells[:2])}


def test_a_single_cell_that_breaks_off_where_its_old_area_was_named_still_has_a_name():
    cells = line(5)
    areas = Areas()
    areas.update(0.0, ranked(cells), HOLD_S)
    areas.update(70.0, ranked(cells[:1] + cells[2:]), HOLD_S)
    names = {name: extent for name, extent in extents(areas).items() if extent == {cells[0]}}
    assert len(names) == 1
    assert name_of(cells[0]) not in names


def test_an_area_ends_when_its_last_cell_is_given_up_and_time_away_does_not_count():
    areas, away = Areas(), (15.0, 5000.0)
    areas.update(0.0, ranked([HOME]), HOLD_S)
    assert areas.update(5005.0, {}, HOLD_S, away) == {}
    assert areas.update(5046.0, {}, HOLD_S, away) == {name_of(HOME): "faded"}
    assert areas.areas == []


def test_growth_and_shrinkage_are_remembered_for_a_minute_and_much_of_either_is_news():
    cells = line(12)
    areas = Areas()
    areas.update(0.0, ranked(cells[:10]), 0.0)
    (area,) = areas.areas
    assert [area.is_news(), area.is_news()] == [True, False]
    areas.update(100.0, ranked(cells[1:11]), 0.0)
    (area,) = areas.areas
    assert (set(area.left_t), [c for c in area.cells if area.since_t[c] == 100.0]) == ({cells[0]}, [cells[10]])
    assert not area.is_news(), f"two cells of ten are not more than {NEWS_SHARE:.0%}"
    areas.update(161.0, ranked(cells[2:12]), 0.0)
    (area,) = areas.areas
    assert set(area.left_t) == {cells[1]}
    assert area.is_news()


def test_the_table_of_areas_is_bounded():
    apart = [min(h3.grid_ring(HOME, 4 * i)) for i in range(1, 6)]
    areas = Areas(3)
    areas.update(0.0, ranked(apart), HOLD_S)
    assert (len(areas.areas), areas.refused) == (3, 2)
    areas.adopt("h3-x", 0.0, 0.0, [HOME])
    assert len(areas.areas) == 3


def test_an_adopted_area_goes_on_under_its_name_unless_it_is_known_already():
    cells = line(4)
    areas = Areas()
    areas.adopt(name_of(cells[3]), 5.0, 30.0, cells)
    areas.adopt(name_of(cells[3]), 5.0, 30.0, [HOME])
    assert areas.areas == [
        Area(name_of(cells[3]), 5.0, dict.fromkeys(cells, 30.0), dict.fromkeys(cells, 30.0), {}, frozenset(cells))
    ]
    assert areas.update(40.0, ranked(cells[:1]), HOLD_S) == {}
    assert list(extents(areas)) == [name_of(cells[3])]


PLACES = {"mid": (50.0, 8.0), "antimeridian": (-17.0, 180.0), "pole": (89.9, 40.0), "south": (-89.5, -100.0)}


@pytest.mark.parametrize("resolution", [2, 4, 6])
@pytest.mark.parametrize("place", PLACES)
def test_the_census_is_that_of_putting_every_aircraft_into_its_cell(place, resolution):
    rng = np.random.default_rng(resolution)
    cells = Cells(resolution)
    spread_deg = 4.0 * cells.edge_km / 111.0
    lat0, lon0 = PLACES[place]
    for _ in range(30):
        n = 150
        # around the place, on a tangent plane, so that poles and the antimeridian are crossed
        x, y = rng.normal(0.0, np.radians(spread_deg), (2, n))
        up = np.array([np.cos(np.radians(lat0)), 0.0, np.sin(np.radians(lat0))])
        p = up + y[:, None] * np.array([-up[2], 0.0, up[0]]) + x[:, None] * np.array([0.0, 1.0, 0.0])
        p /= np.linalg.norm(p, axis=1)[:, None]
        lat = np.degrees(np.arcsin(p[:, 2]))
        lon = (np.degrees(np.arctan2(p[:, 1], p[:, 0])) + lon0 + 180.0) % 360.0 - 180.0
        low = rng.random(n) < np.where(x > 0.0, 0.8, 0.1)
        t = rng.uniform(0.0, 100.0, n)
        found = cells.census(lat, lon, t, low, [], 3, 0.5)
        at = np.array([h3.latlng_to_cell(*each, resolution) for each in zip(lat, lon, strict=True)])
        near: dict[int, int] = {}
        for cell in at[low].tolist():
            for other in h3.grid_disk(cell, 1):
                near[other] = near.get(other, 0) + 1
        interest = {o for cell, k in near.items() if k >= 3 for o in h3.grid_disk(cell, 1)} & set(at.tolist())
        assert found.aircraft == {cell: int((at == cell).sum()) for cell in interest}
        assert found.collapsed == {cell: int((at[low] == cell).sum()) for cell in interest}
        assert found.newest_t == {cell: float(t[at == cell].max()) for cell in interest}
        assert found.affected
        for part in components(found.affected):
            assert sum(found.collapsed.get(cell, 0) for cell in part) >= 3
        for cell in found.affected:
            assert found.collapsed.get(cell, 0) >= 0.5 * found.aircraft.get(cell, 0)


def test_names_that_are_no_cells_of_this_resolution_are_not_taken_for_any():
    names = [
        h3.int_to_str(HOME),
        h3.int_to_str(h3.cell_to_parent(HOME)),
        "",
        "zz",
        "-1",
        "84",
        7,
        None,
        "8" * 15,
        "f" * 15,
    ]
    assert Cells(4).named(names) == {HOME}
