"""Lossless state: a pipeline restored from a snapshot is the same, attribute by attribute, as the one that was saved.

Every detector's scenario is played, of this project and of other packages. An attribute that a snapshot forgets is
found here the moment it exists; one that is no state is named in its detector's declaration (`scratch`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from deep import differences
from golden.replays import CONFIG as SMALL
from golden.replays import GOLDEN, restarted

from watchkeeper.config.schema import FleetLimits
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.catalog import REGISTRY, discover
from watchkeeper.detectors.engine.pipeline import Pipeline

discover()
CONFIG = msgspec.structs.replace(SMALL, fleet=FleetLimits(max_vehicles=200))


def distinct() -> list[str]:
    """Detectors by name, one for each scenario: several have the same, and all of them are on."""
    found = {}
    for name, detector in REGISTRY.items():
        scenario = detector.declaration.scenario
        found.setdefault((scenario.seconds, *next(iter(scenario.batches())).ids), name)
    return sorted(found.values())


# what the detectors' own scenarios lack: incidents of every stage, and clocks that jump
SCENES = {name: REGISTRY[name].declaration.scenario.batches for name in distinct()} | {
    f"golden {name}": GOLDEN[name] for name in ("cut", "jumps", "latency", "spoof")
}


def scratch(pipeline: Pipeline) -> frozenset[str]:
    """Paths of attributes that are no state."""
    # `_covered` has the fences by another name, and which name is followed first depends on the hash seed
    # `_quiet_until` follows from everything else and is asked again: it is kept where the last ticks were left out
    paths = {".guard._restarts", ".guard._covered", "._quiet_until"}
    # so is who rests until when
    paths |= {".guard._rests", ".guard._looks_t", ".guard.worked"}
    # that no alarm is active is found out by looking
    paths |= {f".watches['{kind}'].debouncer._none_active" for kind in pipeline.watches}
    for i, fence in enumerate(pipeline.guard.fences):
        # errors that were logged are logged again by another process; the last two are the detector by other names
        paths |= {f".guard.fences[{i}].{name}" for name in ("_logged", "restarts", "_resting", "covering")}
        paths |= {f".guard.fences[{i}].detector.{name}" for name in fence.detector.declaration.scratch}
    return frozenset(paths)


def asked_again(path: str) -> bool:
    """What the fleet remembers of questions about its own columns; it is found by many names."""
    return path.partition(":")[0].endswith(("._sent", "._stays_t"))


@pytest.mark.parametrize("name", sorted(SCENES))
def test_nothing_is_missing_in_a_snapshot(name: str) -> None:
    pipeline = Pipeline(CONFIG)
    for i, batch in enumerate(SCENES[name]()):
        pipeline.feed(batch)
        if i % 23 == 22:
            if i % 2:
                pipeline.advance(pipeline.t_max + 3.5)
            fresh = restarted(pipeline, CONFIG)
            assert [path for path in differences(pipeline, fresh, scratch(pipeline)) if not asked_again(path)] == []
            assert list(differences(pipeline.gauges(), fresh.gauges())) == []


@cache
def half(name: str) -> dict[str, Any]:
    """A snapshot from the middle of a detector's scenario."""
    pipeline = Pipeline(CONFIG)
    scenario = REGISTRY[name].declaration.scenario
    for _, batch in zip(range(scenario.seconds // 2), scenario.batches(), strict=False):
        pipeline.feed(batch)
    return copy.deepcopy(pipeline.snapshot())


def parts_of(state: Any) -> list[tuple[Any, Any]]:
    """Every place in a nested state, as (container, key)."""
    places = list(state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ())
    return [(state, key) for key, _ in places] + [place for _, item in places for place in parts_of(item)]


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "gone": lambda _: None,
    "a word": lambda _: "word",
    "one too many dimensions": lambda x: x[None] if isinstance(x, np.ndarray) else [x],
    "other numbers": lambda x: x.astype("c16") if isinstance(x, np.ndarray) and not x.dtype.names else {},
}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_state_of_another_version_is_refused_for_its_detector_alone(name: str) -> None:
    state = copy.deepcopy(half(name))
    state["detectors"][name]["version"] = 0
    pipeline = Pipeline(CONFIG)
    pipeline.restore(state)
    assert list(pipeline.cold) == [name]
    assert "version 0" in pipeline.cold[name]
    cold = next(d for d in pipeline.detectors if d.declaration.name == name)
    skip = frozenset(f".{path}" for path in cold.declaration.scratch)
    # an area goes on from its alarm, as after a start from the journal alone
    skip |= {"._fleet", ".stats._fleet", "._quality._fleet", "._areas.areas"}
    assert list(differences(cold, REGISTRY[name](CONFIG, pipeline.fleet), skip)) == []
    assert len(pipeline.fleet) == len(state["fleet"]["ids"])


@pytest.mark.parametrize("name", sorted(REGISTRY))
@pytest.mark.parametrize("damages", [pytest.param(len(DAMAGES), marks=pytest.mark.long), 1])
def test_a_damaged_state_never_raises_and_harms_its_detector_alone(name: str, damages: int) -> None:
    batch = next(iter(REGISTRY[name].declaration.scenario.batches()))
    ways = list(DAMAGES.values())
    for i in range(len(parts_of(half(name)["detectors"][name]["state"]))):
        for k in range(damages):
            state = copy.deepcopy(half(name))
            container, key = parts_of(state["detectors"][name]["state"])[i]
            container[key] = ways[(i + k) % len(ways)](container[key])
            pipeline = Pipeline(CONFIG)
            pipeline.restore(state)
            assert set(pipeline.cold) <= {name}
            pipeline.feed(batch)
            pipeline.finish()


@pytest.mark.parametrize("name", distinct())
def test_ticks_that_are_left_out_change_no_alarm(name: str) -> None:
    """What a detector says of being quiet (`Resting`) is true: with gaps in its scenario, and a long one at the end."""
    found, ticks = [], []
    for every_tick in (True, False):
        pipeline = Pipeline(CONFIG, every_tick=every_tick)
        batches = (batch for i, batch in enumerate(REGISTRY[name].declaration.scenario.batches()) if i % 60 < 35)
        events = [event for batch in batches for event in pipeline.feed(batch)] + pipeline.reach(pipeline.t_max + 150.0)
        found.append([encode_event(event) for event in events])
        ticks.append(pipeline.ticks)
    assert found[0] == found[1]
    assert ticks[1] < ticks[0]
