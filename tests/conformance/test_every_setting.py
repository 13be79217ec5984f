"""Every setting of every detector: one that says it is live works at once as if the daemon had been restarted with it.

A pipeline plays its detector's scenario. In the middle it is retuned to another value of one setting; a second pipeline
with that value from its start takes over a snapshot at the same moment. From there on both give the same scores and
alarms. A setting that cannot keep this says that it waits for a restart.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec
import pytest

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.config.detectors.kinds import KindMinima
from watchkeeper.config.guests import SETTINGS, build, default, values_of
from watchkeeper.config.loader import rising
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.config.section import Section, Setting
from watchkeeper.daemon.reload import merge
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import REGISTRY, discover
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.states import StateEncoder, decode_state

discover()
BASE: Config = msgspec.structs.replace(default(), fleet=FleetLimits(max_vehicles=400))
# A table for each setting that takes an array of them.
TABLES: dict[type[Section], dict[str, Any]] = {
    Zone: {"name": "here", "separation_nm": 3.0, "vertical_ft": 500.0},
    KindMinima: {"between": ("drone", "glider"), "separation_nm": 3.0, "vertical_ft": 500.0},
}
# How much of a detector's scenario is played after the change, in batches of about a second.
AFTER = 28


def live_settings() -> list[tuple[str, str]]:
    return [
        (name, key)
        for name, detector in sorted(REGISTRY.items())
        for section, _ in detector.declaration.sections()
        for key, setting in sorted(SETTINGS.items())
        if key.startswith(f"detectors.{section}.") and setting.live
    ]


def other(setting: Setting, now: Any) -> Any:
    """A value that is allowed, is not the present one, and makes a difference where one can be made."""
    if setting.table is not None:
        return (TABLES[setting.table],)
    if setting.kind is bool:
        return not now
    if setting.kind is tuple:
        return tuple(choice for choice in setting.choices if choice not in now)[:2]
    if setting.choices:
        return next(choice for choice in setting.choices if choice != now)
    more = setting.kind(now * 3 if now else (setting.low + min(setting.high, setting.low + 10)) / 2)
    value = more if more <= setting.high else setting.kind(max(setting.low, now / 3))
    return value if value != now else setting.kind(setting.low)


def changed(key: str) -> Config:
    values = values_of(BASE)
    values[key] = other(SETTINGS[key], values[key])
    for chain in rising():
        if key in chain:
            at = chain.index(key)
            for name in chain[:at]:
                values[name] = min(values[name], values[key])
            for name in chain[at + 1 :]:
                values[name] = max(values[name], values[key])
    return build(values)


@cache
def scene(name: str) -> list[Batch]:
    return list(REGISTRY[name].declaration.scenario.batches())


@cache
def cut(name: str) -> int:
    """The batch before which the setting changes: shortly before the detector raises its first alarm."""
    kinds = {kind.name for kind in REGISTRY[name].declaration.kinds}
    pipeline = Pipeline(BASE)
    for i, batch in enumerate(scene(name)):
        if any(event.kind in kinds for event in pipeline.feed(batch)):
            return max(1, i - 2)
    raise AssertionError(f"the scenario of {name} raises no alarm")


class Run:
    """A pipeline, and all that it says as bytes."""

    def __init__(self, config: Config) -> None:
        self.pipeline = Pipeline(config, on_evidence=self._note)
        self.said: list[bytes] = []

    def _note(self, window: Window, evidence: list[Evidence]) -> None:
        for ev in evidence:
            numbers = {key: column.tobytes() for key, column in ev.numbers.items()}
            self.said.append(repr((window.t, ev.kind, ev.score.tobytes(), ev.threshold.tobytes(), numbers)).encode())

    def feed(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.said += [encode_event(event) for event in self.pipeline.feed(batch)]


@cache
def before(name: str) -> bytes:
    """The state after the first part of a detector's scene, as the daemon saves it."""
    run = Run(BASE)
    run.feed(scene(name)[: cut(name)])
    return bytes(StateEncoder().encode(run.pipeline.snapshot()))


def restored(name: str, config: Config) -> Run:
    state = decode_state(before(name))
    run = Run(config)
    run.pipeline.restore(state)
    return run


@cache
def after(name: str, key: str) -> list[bytes]:
    """What a daemon says that was restarted with another value of the setting; with no key, with the same."""
    run = restored(name, changed(key) if key else BASE)
    run.feed(scene(name)[cut(name) : cut(name) + AFTER])
    return [*run.said, repr(run.pipeline.gauges()).encode()]


@pytest.mark.parametrize(("name", "key"), live_settings())
def test_retuned_equals_restarted(name: str, key: str) -> None:
    config, taken, waiting = merge(BASE, changed(key))
    assert key in taken
    assert not waiting
    run = restored(name, BASE)
    run.pipeline.retune(config)
    run.feed(scene(name)[cut(name) : cut(name) + AFTER])
    assert [*run.said, repr(run.pipeline.gauges()).encode()] == after(name, key)


def graded(told: list[dict[str, Any]], kind: str) -> set[str]:
    return {event["severity"] for event in told if event["kind"] == kind}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_good_part_of_the_settings_makes_a_difference(name: str) -> None:
    """A value that changes nothing proves nothing about reloading."""
    keys = [key for known, key in live_settings() if known == name]
    assert after(name, ""), "it says something after a restart"
    # alarms that are all as severe as one another never rise
    told = [json.loads(said) for said in after(name, "") if said.startswith(b'{"')]
    keys = [key for key in keys if not key.endswith(".debounce.rise_s") or len(graded(told, key.split(".")[1])) > 1]
    telling = [key for key in keys if after(name, key) != after(name, "")]
    assert len(telling) >= 0.4 * len(keys), f"these change nothing: {sorted(set(keys) - set(telling))}"
