"""Strangers cannot fill a table for good: honest newcomers get in, those in use keep their places, alarms stay."""

from __future__ import annotations

import numpy as np

from watchkeeper.config.loader import load
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.room import full
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import Drop, Kind


def pipeline(**limits: int) -> Pipeline:
    fleet = {"max_vehicles": limits.get("vehicles", 100)}
    others = {name: {"enabled": False} for name in ("gnss_interference", "intent", "kinematics", "conflict", "los")}
    return Pipeline(
        load(None, env={}, overrides={"fleet": fleet, "limits": {"max_gateways": limits.get("gateways", 64)},
                                      "detectors": others, "diagnosis": {"enabled": False}})
    )  # fmt: skip


def reports(t: float, names: list[str], vias: list[str] | None = None, kind: Kind = Kind.ADSB) -> Batch:
    n = max(len(names), len(vias or []))
    values = {"lat": np.full(n, 50.0), "lon": 8.0 + np.arange(n) / 10}
    via = np.full(n, -1, np.int32) if vias is None else np.arange(n, dtype=np.int32) % len(vias)
    cols = columns_of(kind, np.arange(n, dtype=np.int32) % len(names), t + np.arange(n) / 1e4, values, via=via)
    return Batch(names, {kind: cols}, vias or [])


HONEST = [f"h{k}" for k in range(20)]


def test_one_sample_strangers_do_not_shut_newcomers_out() -> None:
    watch = pipeline(vehicles=100)
    for t in range(10):
        watch.feed(reports(t, HONEST))
    assert full(watch) == []
    for t in range(10, 60):
        watch.feed(reports(t, [f"stranger{t}-{k}" for k in range(70)]))
        watch.feed(reports(t + 0.1, HONEST))
        if t >= 30:
            watch.feed(reports(t + 0.2, ["newcomer"]))
            assert "full" in full(watch)[0]
    assert {*HONEST, "newcomer"} <= watch.fleet.slot_of.keys()
    assert len(watch.fleet) <= 100
    assert watch.crowded_out > 0
    assert watch.drops["adsb", Drop.FLEET_FULL] > 1000
    assert watch.fleet.count[Kind.ADSB, watch.fleet.slot_of["newcomer"]] > 20


def test_those_in_use_stay_and_the_rest_is_refused_and_said() -> None:
    watch = pipeline(vehicles=30)
    busy = [f"v{k}" for k in range(40)]
    for t in range(40):
        watch.feed(reports(t, busy))
    assert list(watch.fleet.slot_of) == busy[:30]
    assert watch.drops["adsb", Drop.FLEET_FULL] == 10 * 40
    assert full(watch) == ["the fleet is full: vehicles beyond 30 are not watched (max_vehicles)"]


def test_a_vehicle_with_an_alarm_stays_and_ends_only_when_it_is_forgotten_for_good() -> None:
    watch = pipeline(vehicles=40)
    events = []
    for t in range(120):
        events += watch.feed(reports(t, HONEST if t < 60 else HONEST[1:], kind=Kind.GPS))
        if t > 60:
            events += watch.feed(reports(t + 0.5, [f"s{t}-{k}" for k in range(15)]))
    raised = [e for e in events if e.kind == "silence" and e.subjects == (HONEST[0],)]
    assert raised[0].state == "raised"
    assert "cleared" not in [e.state for e in raised]
    assert HONEST[0] in watch.fleet.slot_of


def test_gateways_keep_their_numbers_and_strangers_names_leave() -> None:
    watch = pipeline(gateways=64)
    masts = ["north", "south"]
    for t in range(10):
        watch.feed(reports(t, HONEST, masts))
    numbers = {name: watch.gateway_table.number[name] for name in masts}
    for t in range(10, 60):
        watch.feed(reports(t, HONEST, masts))
        watch.feed(reports(t + 0.1, ["x"], [f"fake{t}-{k}" for k in range(200)]))
        if t >= 40:
            watch.feed(reports(t + 0.2, ["y"], ["east"]))
    assert {name: watch.gateway_table.number[name] for name in masts} == numbers
    assert "east" in watch.gateway_table.number
    assert watch.gateway_table.refused > 1000
    assert len(watch.gateways) <= 64
    for t in range(60, 70):
        watch.feed(reports(t, HONEST, masts))
    assert len(watch.gateway_table.number) <= 60
    assert full(watch) == []


def test_who_leaves_does_not_depend_on_batches() -> None:
    parts = []
    for t in range(340):
        parts += [reports(t + k / 100, [name], ["mast"]) for k, name in enumerate(HONEST[:1])]
        parts += [reports(t + 0.3 + k / 1000, [f"s{t}-{k}"], [f"g{t}-{k}"]) for k in range(1)]
    whole, other = pipeline(vehicles=320, gateways=320), pipeline(vehicles=320, gateways=320)
    expected = [e for part in parts for e in whole.feed(part)]
    found = []
    for at in range(0, len(parts), 4):
        found += other.feed(join(parts[at : at + 4]))
        other.gateway_table.restore(decode_state(bytes(StateEncoder().encode(other.gateway_table.snapshot()))))
    assert [e.id for e in found] == [e.id for e in expected]
    assert set(other.fleet.slot_of) == set(whole.fleet.slot_of)
    assert set(other.gateway_table.number) == set(whole.gateway_table.number)
    assert whole.crowded_out > 0


def test_one_source_cannot_take_all_the_room_that_is_made() -> None:
    """A thousand names through one gateway, again and again: a newcomer through another one gets in."""
    watch = pipeline(vehicles=400)
    flood = [f"s{k}" for k in range(1000)]
    met: set[str] = set()
    for t in range(30):
        watch.feed(reports(t, flood, ["loud"]))
        if t >= 5:
            watch.feed(reports(t + 0.5, ["quiet"], ["mast"]))
        met |= watch.fleet.slot_of.keys()
    assert len(watch.fleet) <= 400
    assert "quiet" in met
