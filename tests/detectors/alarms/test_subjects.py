"""Subjects: who has which cell, for vehicles, pairs and places; tables are bounded and survive a snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import FleetLimits
from watchkeeper.detectors.alarms.subjects import Pairs, Places, Subjects, Vehicles
from watchkeeper.detectors.base import Evidence, full
from watchkeeper.detectors.fleet.fleet import Fleet


def evidence(a: list[int], b: list[int] | None = None, places: tuple[str, ...] = ()) -> Evidence:
    n = len(a)
    zero = full(n, 0.0)
    slots = None if b is None else np.array(b, np.int32)
    return Evidence("x", np.array(a, np.int32), zero, zero, zero, zero, zero.astype(np.uint8), b=slots, places=places)


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet(FleetLimits(max_vehicles=6))
    for name in ("e", "d", "c", "b", "a"):
        fleet.slot_for(name)
    return fleet


def test_cells_of_pairs_are_reused_bounded_and_survive_a_snapshot(fleet):
    pairs = Pairs(fleet, 2)
    assert pairs.cells(evidence([1, 3, 0], [2, 4, 4])).tolist() == [0, 1, -1]
    assert pairs.refused == 1
    pairs.release(np.array([0], np.int32))
    assert pairs.cells(evidence([0], [4])).tolist() == [0]
    assert pairs.of_vehicles(np.array([4], np.int32)).tolist() == [0, 1]
    assert pairs.of_vehicles(np.array([3], np.int32)).tolist() == [1]
    copy = Pairs(fleet, 2)
    copy.restore(pairs.snapshot())
    assert copy.cell_of == pairs.cell_of


def test_cells_of_places_are_reused_bounded_and_survive_a_snapshot():
    places = Places(2)
    assert places.cells(evidence([0, 1, 2, 0], places=("x", "y", "z"))).tolist() == [0, 1, -1, 0]
    assert places.refused == 1
    places.release(np.array([0], np.int32))
    assert places.find(("x",)) == -1
    assert places.cells(evidence([0, 1], places=("y", "z"))).tolist() == [1, 0]
    copy = Places(2)
    copy.restore(places.snapshot())
    assert (copy.cell_of, copy.high) == (places.cell_of, places.high)
    copy.release(copy.watched())
    again = Places(2)
    again.restore(copy.snapshot())
    assert again.cells(evidence([0, 1], places=("p", "q"))).tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize("names", [("c",), ("b", "d"), ("h3-841f8bbffffffff",)])
def test_a_subject_claimed_after_a_restart_is_the_one_that_evidence_finds(fleet, names):
    kinds: dict[tuple[str, ...], Subjects] = {("c",): Vehicles(fleet), ("b", "d"): Pairs(fleet, 4)}
    subjects = kinds.get(names) or Places()
    cell = subjects.claim(names, 77.0)
    assert cell >= 0
    assert subjects.find(names) == cell
    assert subjects.names(cell) == names
    if isinstance(subjects, Places):
        assert subjects.cells(evidence([0], places=names)).tolist() == [cell]
        assert len(fleet) == 5
    else:
        slots = [fleet.slot_of[name] for name in names]
        assert subjects.cells(evidence(slots[:1], slots[1:] or None)).tolist() == [cell]
        assert fleet.expected_t[slots].tolist() == [77.0] * len(slots)


def test_a_full_fleet_has_no_room_for_an_old_alarm(fleet):
    fleet.slot_for("f")
    assert Vehicles(fleet).claim(("g",), 1.0) == -1
    assert Pairs(fleet, 4).claim(("a", "g"), 1.0) == -1


def test_a_vehicle_that_leaves_takes_no_place_with_it():
    places = Places()
    places.cells(evidence([0], places=("x",)))
    assert places.of_vehicles(np.arange(6, dtype=np.int32)).tolist() == []
