"""The fleet: slots are reused, rings wrap, an absent field does not erase a known one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import FleetLimits
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind


def feed(fleet: Fleet, kind: Kind, slot: list[int], t: list[float], **fields: list[float]) -> None:
    data = np.full((len(FIELDS[kind]), len(t)), np.nan)
    for name, values in fields.items():
        data[COLUMN[kind][name]] = values
    fleet.ingest(Samples(kind, np.array(slot, np.int32), np.array(t), data, np.full(len(t), -1, np.int32)))


def test_a_report_without_a_speed_keeps_the_speed_known_before_and_its_age():
    fleet = Fleet(FleetLimits(max_vehicles=4))
    slot = fleet.slot_for("a")
    feed(fleet, Kind.ADSB, [slot, slot], [1.0, 2.0], lat=[50, 51], lon=[8, 8], gs_kt=[400, np.nan])
    gs, lat = COLUMN[Kind.ADSB]["gs_kt"], COLUMN[Kind.ADSB]["lat"]
    assert fleet.value[Kind.ADSB][gs, slot] == 400
    assert fleet.value_t[Kind.ADSB][gs, slot] == 1.0
    assert fleet.value[Kind.ADSB][lat, slot] == 51
    assert fleet.last_t[Kind.ADSB, slot] == 2.0


@given(st.lists(st.integers(1, 9), max_size=12))
@settings(max_examples=50, deadline=None)
def test_a_ring_holds_the_newest_samples_in_order(sizes):
    fleet = Fleet(FleetLimits(max_vehicles=2, ring_gps=8))
    slot = fleet.slot_for("a")
    written: list[float] = []
    for size in sizes:
        t = [len(written) + i + 1.0 for i in range(size)]
        feed(fleet, Kind.GPS, [slot] * size, t, gps_x=t)
        written += t
    times, data = fleet.ring[Kind.GPS].history(slot)
    assert times.tolist() == written[-8:]
    assert data[0].tolist() == written[-8:]


def test_slots_are_capped_reused_lowest_first_and_come_back_clean():
    fleet = Fleet(FleetLimits(max_vehicles=3, evict_idle_s=10.0))
    assert [fleet.slot_for(n) for n in "abcd"] == [0, 1, 2, -1]
    for slot in range(3):
        fleet.expect(np.array([slot], np.int32), np.zeros(1, np.int32), np.array([5.0 * slot]))
        feed(fleet, Kind.ADSB, [slot], [5.0 * slot], lat=[1.0], lon=[2.0])
    assert fleet.idle(15.5).tolist() == [0, 1]
    fleet.forget(np.array([0, 1], np.int32), 15.5)
    assert [fleet.slot_for(n) for n in "de"] == [0, 1]
    assert np.isnan(fleet.value[Kind.ADSB][0, 0])
    assert fleet.count[Kind.ADSB, 0] == 0
    assert len(fleet.ring[Kind.ADSB].history(0)[0]) == 0


def test_a_vehicle_with_samples_on_the_way_is_forgotten_but_keeps_its_slot():
    fleet = Fleet(FleetLimits(max_vehicles=3, evict_idle_s=10.0))
    slot = fleet.slot_for("a")
    feed(fleet, Kind.ADSB, [slot], [1.0], lat=[1.0], lon=[2.0])
    fleet.expect(np.array([slot], np.int32), np.zeros(1, np.int32), np.array([21.0]))
    fleet.forget(fleet.idle(20.0), 20.0)
    assert fleet.slot_of == {"a": slot}
    assert fleet.count[Kind.ADSB, slot] == 0


def test_a_snapshot_comes_back_whole():
    fleet = Fleet(FleetLimits(max_vehicles=5))
    for name in "abc":
        fleet.slot_for(name)
    feed(fleet, Kind.IMU, [0, 2, 2], [1.0, 1.0, 2.0], imu_ax=[1, 2, 3])
    fleet.forget(np.array([1], np.int32), 100.0)
    copy = Fleet(FleetLimits(max_vehicles=5))
    copy.restore(fleet.snapshot())
    assert copy.slot_of == {"a": 0, "c": 2}
    assert copy.slot_for("new") == 1
    for mine, own in zip(copy.ring[Kind.IMU].history(2), fleet.ring[Kind.IMU].history(2), strict=True):
        np.testing.assert_array_equal(mine, own)
    np.testing.assert_array_equal(copy.value[Kind.IMU], fleet.value[Kind.IMU])


@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=12, unique=True), st.data())
def test_pairs_are_ordered_by_whole_ids_however_long(ids: list[str], data: st.DataObject) -> None:
    fleet = Fleet(FleetLimits(max_vehicles=16))
    slots = [fleet.slot_for(name) for name in ids]
    pairs = data.draw(
        st.lists(st.lists(st.sampled_from(slots), min_size=2, max_size=2, unique=True), unique_by=frozenset)
    )
    a, b = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    first, second, rows = fleet.order_pairs(a, b)
    named = [(fleet.ids[i], fleet.ids[j]) for i, j in zip(first, second, strict=True)]
    assert named == sorted((min(ids[i], ids[j]), max(ids[i], ids[j])) for i, j in pairs)
    assert [{a[k], b[k]} for k in rows] == [{i, j} for i, j in zip(first, second, strict=True)]
