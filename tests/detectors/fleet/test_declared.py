"""What is declared about vehicles, by slot: known before it was heard, kept while it is not."""

from __future__ import annotations

import numpy as np

from watchkeeper.config.schema import FleetLimits
from watchkeeper.config.topology import DeclaredVehicles, Topology
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.messages import FIELDS, Kind

TOPOLOGY = Topology(
    vehicles=(
        DeclaredVehicles(names=("uav-*",), gateway="gw-1"),
        DeclaredVehicles(names=("uav-7", "rover"), gateway="gw-2", sensors=("gps",)),
        DeclaredVehicles(names=("*",)),
    )
)


def made(topology: Topology = TOPOLOGY) -> Fleet:
    fleet = Fleet(FleetLimits(max_vehicles=8, evict_idle_s=10.0))
    fleet.declare(topology)
    return fleet


def hear(fleet: Fleet, name: str, t: float, kind: Kind = Kind.GPS) -> int:
    slot = fleet.slot_for(name)
    slots = np.array([slot], np.int32)
    fleet.ingest(Samples(kind, slots, np.array([t]), np.zeros((len(FIELDS[kind]), 1)), np.array([-1], np.int32)))
    return slot


def test_a_vehicle_s_own_name_counts_before_any_pattern_and_of_patterns_the_first() -> None:
    declared = made().declared
    assert declared.table_for("uav-7") is TOPOLOGY.vehicles[1]
    assert declared.table_for("uav-8") is TOPOLOGY.vehicles[0]
    assert declared.table_for("other") is TOPOLOGY.vehicles[2]
    # a gateway reports on itself, and is no vehicle whatever a pattern says
    assert declared.table_for("gw-1") is None


def test_who_is_declared_by_name_has_a_slot_before_it_was_heard_and_who_fits_a_pattern_when_it_is() -> None:
    fleet = made()
    assert set(fleet.slot_of) == {"uav-7", "rover"}
    slot = fleet.slot_of["rover"]
    assert fleet.declared.gateway_of(slot) == "gw-2"
    assert np.flatnonzero(fleet.declared.streams[:, slot]).tolist() == [Kind.GPS]
    heard = hear(fleet, "uav-1", 5.0)
    assert fleet.declared.gateway_of(heard) == "gw-1"
    assert not fleet.declared.kept[heard]
    # a gateway's own report makes it no vehicle
    assert not fleet.declared.named[hear(fleet, "pi", 5.0, Kind.LINK)]


def test_nobody_declared_by_name_is_forgotten_however_long_it_is_silent() -> None:
    fleet = made()
    slot = hear(fleet, "uav-1", 5.0)
    fleet.expected_t[slot] = 5.0
    assert fleet.idle(100.0).tolist() == [slot]
    fleet.forget(fleet.idle(100.0), 100.0)
    assert set(fleet.slot_of) == {"uav-7", "rover"}
    # whoever gets the slot next inherits nothing
    assert fleet.slot_for("pi") == slot
    assert not fleet.declared.streams[:, slot].any()
    assert fleet.declared.gateway_of(slot) == ""


def test_expected_since_the_first_tick_and_not_anew_after_a_restart_or_a_reload() -> None:
    fleet = made()
    fleet.declared.expect(3.0, fleet.high)
    fleet.declared.expect(4.0, fleet.high)
    slot = fleet.slot_of["rover"]
    assert fleet.declared.since_t[slot] == 3.0
    fresh = made()
    fresh.restore(fleet.snapshot())
    fresh.declare(TOPOLOGY)
    assert fresh.declared.since_t[fresh.slot_of["rover"]] == 3.0
    more = Topology(vehicles=(DeclaredVehicles(names=("new", "rover")),))
    fresh.declare(more)
    fresh.declared.expect(9.0, fresh.high)
    since_t = {name: float(fresh.declared.since_t[fresh.slot_of[name]]) for name in ("rover", "new")}
    assert since_t == {"rover": 3.0, "new": 9.0}
    # who is no longer declared is forgotten like anybody else
    assert fresh.idle(100.0).tolist() == [fresh.slot_of["uav-7"]]


def test_gateways_by_anybody_s_numbers() -> None:
    fleet = made()
    slot = fleet.slot_of["rover"]
    assert fleet.declared.gateways == ["gw-1", "gw-2"]
    assert fleet.declared.numbers({"other": 0, "gw-2": 1})[slot] == 1
    assert fleet.declared.numbers({})[slot] == -1


def test_without_a_declaration_nothing_is_expected() -> None:
    fleet = made(Topology())
    slot = hear(fleet, "uav-1", 5.0)
    assert not fleet.declared.any
    assert not fleet.declared.named[slot]
    assert fleet.snapshot()["since_t"] is None
