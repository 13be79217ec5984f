"""Every registered detector keeps the contract of detectors/base.py. A new one is tested the moment it exists."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import REGISTRY, discover
from watchkeeper.detectors.declaration import fields_of
from watchkeeper.detectors.engine.window import Block, Pending, samples_of
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import Kind

CONFIG = Config(fleet=FleetLimits(max_vehicles=400))
discover()


@cache
def scene(name: str) -> list[Batch]:
    return list(REGISTRY[name].declaration.scenario.batches())


@pytest.fixture
def traffic(name: str) -> list[Batch]:
    return scene(name)


@pytest.fixture
def half(name: str) -> int:
    """Ticks up to the middle of the scene."""
    return REGISTRY[name].declaration.scenario.seconds // 2


class World:
    """A fleet and one detector, fed tick by tick from batches; `offset` shifts every vehicle's slot."""

    def __init__(self, name: str, traffic: list[Batch], offset: int = 0) -> None:
        self.fleet = Fleet(CONFIG.fleet)
        for i in range(offset):
            self.fleet.slot_for(f"nobody{i}")
        self.detector = REGISTRY[name](CONFIG, self.fleet)
        self.pending = {kind: Pending(kind) for kind in Kind}
        for batch in traffic:
            for kind, cols in batch.kinds.items():
                slots = np.array([self.fleet.slot_for(name) for name in batch.ids], np.int32)
                self.pending[kind].add(Block(slots[cols.vid], cols.via, cols.t, cols.data))
        self.blocks: dict[int, dict[Kind, Block]] = {}
        for kind, pending in self.pending.items():
            for k, block in pending.cut(2**40, 1.0).items():
                self.blocks.setdefault(k, {})[kind] = block

    def windows(self) -> Iterator[Window]:
        for k in sorted(self.blocks):
            samples: dict[Kind, Samples] = {}
            for kind, block in self.blocks[k].items():
                samples[kind] = samples_of(kind, block, self.fleet.high, lambda n: None)
                self.fleet.ingest(samples[kind])
                for array in (samples[kind].t, samples[kind].data, samples[kind].slot):
                    array.flags.writeable = False
            yield Window(float(k), samples)


def by_name(fleet: Fleet, found: list[Evidence]) -> list[tuple]:
    """Evidence as plain values with names instead of slots."""
    rows = []
    for ev in found:
        for i in range(len(ev)):
            ids = ev.places or fleet.ids
            subject = tuple(sorted([ids[ev.a[i]]] + ([ids[ev.b[i]]] if ev.b is not None else [])))
            numbers = tuple((k, v[i].tobytes()) for k, v in ev.numbers.items())
            details = repr(ev.details[i] if ev.details else None)
            rows.append(
                (ev.kind, subject, ev.t[i], ev.epoch[i], ev.score[i].tobytes(), int(ev.severity[i]), numbers, details)
            )
    return sorted(rows)


pytestmark = pytest.mark.parametrize("name", sorted(REGISTRY))


def test_evidence_is_well_formed_and_there_is_some(name, traffic):
    world = World(name, traffic)
    declared = world.detector.declaration
    kinds = {kind.name: kind for kind in declared.kinds}
    rows = anomalous = 0
    for window in world.windows():
        for ev in world.detector.step(window):
            kind = kinds[ev.kind]
            assert (ev.b is not None) == (declared.subjects == "pair")
            fields = {field.name for field in fields_of(kind.facts)}
            assert ev.numbers.keys() <= fields, "every number of the evidence is declared, with unit and meaning"
            assert {key for row in ev.details for key in row} <= fields
            assert set(ev.causes) <= set(kind.causes), "every cause is declared, with its meaning"
            assert len(set(ev.places)) == len(ev.places)
            assert len(ev.details) in {0, len(ev)}
            columns = [ev.t, ev.epoch, ev.score, ev.threshold, ev.severity, *ev.numbers.values()]
            assert {len(c) for c in columns} == {len(ev)}
            assert np.isfinite(ev.score).all()
            assert (ev.threshold > 0).all()
            assert (ev.severity <= 2).all()
            assert (ev.epoch <= window.t).all()
            assert (ev.t <= window.t).all()
            if not ev.sparse:
                order = np.lexsort((ev.epoch, ev.a))
                assert (order == np.arange(len(ev))).all()
            rows += len(ev)
            anomalous += int((ev.score >= ev.threshold).sum())
    assert rows > 0
    assert anomalous > 0, "the scenario excites its detector"
    assert all(isinstance(v, float) for v in world.detector.gauges().values())
    assert set(world.detector.gauges()) == {gauge.name for gauge in declared.gauges}


def test_scores_do_not_depend_on_which_slot_a_vehicle_has(name, traffic):
    low, high = World(name, traffic), World(name, traffic, offset=37)
    for a, b in zip(low.windows(), high.windows(), strict=True):
        assert by_name(low.fleet, low.detector.step(a)) == by_name(high.fleet, high.detector.step(b))


def test_a_restored_detector_goes_on_as_if_nothing_had_happened(name, traffic, half):
    world, other = World(name, traffic), World(name, traffic)
    for i, (a, b) in enumerate(zip(world.windows(), other.windows(), strict=True)):
        if i == half:
            fresh = REGISTRY[name](CONFIG, other.fleet)
            fresh.restore(copy.deepcopy(other.detector.snapshot()))
            other.detector = fresh
        expected = by_name(world.fleet, world.detector.step(a))
        assert by_name(other.fleet, other.detector.step(b)) == expected


def test_a_forgotten_slot_starts_like_a_new_one(name, traffic, half):
    world, fresh = World(name, traffic), World(name, traffic)
    everyone = np.arange(world.fleet.high, dtype=np.int32)
    for i, (a, b) in enumerate(zip(world.windows(), fresh.windows(), strict=True)):
        if i == half:
            world.detector.forget(everyone)
            fresh.detector = REGISTRY[name](CONFIG, fresh.fleet)
        found, expected = world.detector.step(a), fresh.detector.step(b)
        if i >= half and name != "gps_imu":  # its model is shared by the fleet and rightly remembers
            assert by_name(world.fleet, found) == by_name(fresh.fleet, expected)


def test_new_thresholds_do_not_touch_state(name, traffic):
    world, other = World(name, traffic), World(name, traffic)
    for i, (a, b) in enumerate(zip(world.windows(), other.windows(), strict=True)):
        if i % 10 == 5:
            other.detector.retune(CONFIG)
        assert by_name(world.fleet, world.detector.step(a)) == by_name(other.fleet, other.detector.step(b))
