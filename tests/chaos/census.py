"""A detector that only counts: which samples of which vehicle the pipeline has judged. It is state like any other.

It comes back from a snapshot with everything that the snapshot contains, so that at the end it knows which samples the
daemon has used in the life that counts: those of a process that was killed before its state was kept are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Flag, Section
from watchkeeper.detectors.base import Evidence, Window, register, unregister
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, simulated
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import I4
from watchkeeper.streams.messages import Kind

COUNTED = (Kind.ADSB, Kind.GPS)


class CensusSettings(Section, frozen=True):
    """Nothing to set."""

    enabled: Flag = True
    debounce: Debounce = field(default_factory=Debounce)


class Census:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = Declaration(
        name="census",
        help="samples that were judged",
        settings=CensusSettings,
        subjects="vehicle",
        kinds=(
            AlarmKind(name="census", help="never raised", facts=Facts, say=lambda _subjects, _facts: "", causes={}),
        ),
        gauges=(),
        scenario=simulated("head-on", 10),
    )

    def __init__(self, _config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self.seen: set[tuple[str, float]] = set()

    def step(self, window: Window) -> list[Evidence]:
        for kind in COUNTED:
            if (samples := window.samples.get(kind)) is not None:
                names = (self._fleet.ids[slot] for slot in samples.slot.tolist())
                self.seen.update(zip(names, np.round(samples.t, 3).tolist(), strict=True))
        return []

    def forget(self, slots: I4) -> None:
        pass

    def retune(self, config: Config) -> None:
        pass

    def gauges(self) -> dict[str, float]:
        return {}

    def snapshot(self) -> dict[str, Any]:
        names, times = zip(*sorted(self.seen), strict=True) if self.seen else ((), ())
        return {"names": list(names), "times": np.array(times, float)}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen = set(zip(state["names"], np.round(state["times"], 3).tolist(), strict=True))


def counted(pipeline: Pipeline) -> set[tuple[str, float]]:
    """Vehicle and time of every sample that this pipeline has judged."""
    return next(detector.seen for detector in pipeline.detectors if isinstance(detector, Census))


@contextmanager
def registered() -> Iterator[None]:
    """While this lasts, every pipeline has a census."""
    register(Census)
    try:
        yield
    finally:
        unregister("census")
