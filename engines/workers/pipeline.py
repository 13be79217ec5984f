"""A Pipeline whose operators run in processes of their own, for a daemon: the same calls, the same alarms.

    pipeline = SpreadPipeline(config, 4)     restore(snapshot), start(), feed(batch) … as of a Pipeline, close()
    pipeline.settle()                        the events of what is under way; feed() gives those of earlier batches
    pipeline.check()                         WorkerError: a worker has ended or failed

Front and Merge are here (workers.py). Observers, such as the live page and the history, read the fleet, the coverage
and the evidence that the workers show about once a second (view.py). A worker that dies is an error of every call
after that: nothing goes on half blind, and whoever runs this starts again from the last snapshot and the input since.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Window
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.clock.declaration import CLOCK
from watchkeeper.detectors.coverage.declaration import WATCH
from watchkeeper.detectors.engine.part import Part
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.engines.workers.view import SeenGuard, Shown
from watchkeeper.engines.workers.workers import Workers
from watchkeeper.streams.batch import Batch

# What is shown: no detector runs here, and no sample is admitted here.
SEEN = Part("seen", alone=False, across=False, gathers=False)
# How often the workers show what there is to see, in seconds of the wall clock.
VIEW_S = 1.0


class SpreadPipeline(Pipeline):
    """See the module's docstring."""

    def __init__(self, config: Config, workers: int, now: Callable[[], float] = time.monotonic) -> None:
        self.workers = Workers(config, workers, start=False)
        self.workers.on_views, self.workers.on_end = self._show, self._end
        self._now, self._view_s, self._view_ticks = now, -math.inf, -1
        self._views: list[dict[str, Any]] = []
        super().__init__(config, part=SEEN)
        self._follow()

    def _begin(self) -> None:
        super()._begin()
        guard = SeenGuard(self.config, self.fleet, self.book, self.part)
        guard.said = self._views
        self.guard = guard
        self._shown = Shown(self.fleet, guard)

    def _follow(self) -> None:
        """What is known of the whole fleet is known by Front and Merge."""
        front, merge = self.workers.front, self.workers.merge
        self.clock, self.gateway_table, self.samples = front.clock, front.gateways, front.samples
        self.book, self.incidents, self.clock_alarms = merge.book, merge.incidents, merge.clock_alarms
        self._done = merge.done
        repeated = Counter({(kind, why): n for view in self._views for kind, why, n in view["drops"]})
        self.drops = front.drops + repeated
        self.crowded_out = front.crowded_out

    # -- processes ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the workers, with what was restored; returns when they are ready."""
        self.workers.start()

    def close(self) -> None:
        """End the workers."""
        self.workers.close()

    def check(self) -> None:
        """WorkerError: a worker has ended or failed."""
        self.workers.check()

    # -- what drives it -------------------------------------------------------------------------------------

    def feed(self, batch: Batch) -> list[AlarmEvent]:
        """See Pipeline; the events are those of earlier batches."""
        return self._told(self.workers.feed(batch) + self._look())

    def advance(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._told(self.workers.advance(t) + self._look())

    def reach(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._told(self.workers.reach(t) + self._look())

    def accept(self, vehicle: str) -> list[AlarmEvent]:
        """See Pipeline; with the events of everything before it."""
        return self._told(self.workers.accept(vehicle) + self.workers.settle())

    def finish(self) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._told(self.workers.finish() + self._look() + self.workers.settle())

    @property
    def under_way(self) -> bool:
        """See Pipeline; what there is to see and was not shown yet counts too."""
        return self.workers.under_way or self._view_is_due

    def settle(self) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._told(self._look() + self.workers.settle())

    def away(self) -> None:
        """See Pipeline."""
        self.workers.away()

    def _told(self, events: list[AlarmEvent]) -> list[AlarmEvent]:
        self.ticks = self.workers.ticks
        self._follow()
        return events

    @property
    def _view_is_due(self) -> bool:
        return self._now() >= self._view_s + VIEW_S and self.workers.ticks != self._view_ticks

    def _look(self) -> list[AlarmEvent]:
        """Have the workers show what there is to see, now and then."""
        if not self._view_is_due:
            return []
        self._view_s, self._view_ticks = self._now(), self.workers.ticks
        return self.workers.look()

    def _end(self) -> None:
        """Time went back for good: it is another fleet."""
        self._begin()

    def _show(self, views: list[dict[str, Any]]) -> None:
        self._views[:] = views
        evidence = self._shown.put(views, self.workers.merge.scene.fleet.callsigns)
        self._follow()
        if self.on_evidence is not None:
            self.on_evidence(Window(self.watermark, {}), evidence)

    # -- looking in from outside ----------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """See Pipeline."""
        return self.workers.front.waiting

    @property
    def watched(self) -> set[str]:
        """See Pipeline."""
        kinds = {kind.name for detector in REGISTRY.values() for kind in detector.declaration.kinds}
        found = {kind for kind in kinds if section_of(self.config, "detectors", kind).enabled} | {WATCH}
        others = {CLOCK: self.config.detectors.clock.enabled, INCIDENT: self.incidents is not None}
        return found | {kind for kind, on in others.items() if on}

    def gauges(self) -> dict[str, float]:
        """Of all workers together: sums; of quantiles of scores the highest."""
        found: dict[str, float] = {}
        for view in self._views:
            for key, value in view["gauges"].items():
                if value == value:  # noqa: PLR0124  not NaN
                    is_score, before = "_score_p" in key, found.get(key)
                    found[key] = value if before is None else max(before, value) if is_score else before + value
        found |= {f"{CLOCK}_{key}": value for key, value in self.clock.gauges().items()}
        if self.incidents is not None:
            found |= {f"incident_{key}": value for key, value in self.incidents.gauges().items()}
            found |= {f"topology_{key}": value for key, value in self.incidents.network.gauges().items()}
        return found

    # -- life beyond one process ----------------------------------------------------------------------------

    def retune(self, config: Config) -> None:
        """See Pipeline."""
        self.config = config
        self.workers.retune(config)

    def snapshot(self) -> dict[str, Any]:
        """See Pipeline; nothing may be under way: `settle` first."""
        return {"stages": self.workers.dump(), "ticks": self.ticks}

    def restore(self, saved: dict[str, Any]) -> None:
        """See Pipeline; before `start`. The number of workers may be another."""
        self.workers.load(saved["stages"])
        self.workers.ticks = self.ticks = saved["ticks"]
        self._follow()

    def restore_alarms(self, events: Iterable[AlarmEvent]) -> None:
        """Alarms that the workers do not have cannot be given to them: they end, and are raised again if they last."""
