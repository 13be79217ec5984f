"""Ticks without samples: who is asked in one that runs all the same (detectors/engine/quiet.py)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind

T0 = 1e9


def aircraft(*times: float) -> Batch:
    t = T0 + np.array(times)
    place = {"lat": 50.0 + 0.0 * t, "lon": 1e-6 * (t - T0), "alt_ft": 30_000.0 + 0.0 * t}
    return Batch(["KLM1"], {Kind.ADSB: columns_of(Kind.ADSB, np.zeros(len(t), np.int32), t, place)})


def asked(pipeline: Pipeline) -> Counter[str]:
    """How often each detector is asked from now on, in ticks without samples."""
    counts: Counter[str] = Counter()

    def counted(name: str, step: Any, window: Window) -> list[Evidence]:
        counts[name] += not window.samples
        found: list[Evidence] = step(window)
        return found

    for fence in pipeline.guard.fences:
        fence.step = partial(counted, fence.name, fence.step)  # type: ignore[method-assign]
    return counts


def test_a_tick_that_runs_because_a_vehicle_fell_silent_asks_no_detector_that_has_nothing_to_do() -> None:
    pipeline = Pipeline(DEFAULT)
    counts = asked(pipeline)
    pipeline.feed(aircraft(*np.arange(0.0, 2000.0, 200.0)))
    pipeline.finish()
    # the vehicle is looked at 60 s after each of the ten reports, and when the last of them is over
    assert pipeline.ticks >= 19
    assert counts == Counter()
    (code,) = {int(code) for code in pipeline.guard.coverage.code[:, 0]} - {0}
    assert code != 0


def test_an_observer_of_evidence_sees_every_detector_in_every_tick_that_runs() -> None:
    empty: list[float] = []
    pipeline = Pipeline(DEFAULT, on_evidence=lambda window, _: None if window.samples else empty.append(window.t))
    counts = asked(pipeline)
    pipeline.feed(aircraft(*np.arange(0.0, 2000.0, 200.0)))
    pipeline.finish()
    assert len(empty) >= 9
    assert set(counts.values()) == {len(empty)}


def test_whoever_falls_silent_without_a_tick_of_its_own_is_silent_from_the_right_moment_on() -> None:
    rested, every = Pipeline(DEFAULT), Pipeline(DEFAULT, every_tick=True)
    for pipeline in (rested, every):
        pipeline.feed(aircraft(0.0, 5.0, 500.0))
        pipeline.reach(T0 + 700.0)
    assert rested.ticks < 20 < every.ticks
    for name in ("code", "since_t", "judged"):
        np.testing.assert_array_equal(getattr(rested.guard.coverage, name), getattr(every.guard.coverage, name))
