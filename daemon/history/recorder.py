"""From the pipeline to the history: takes the fleet's columns every few seconds, as columns, and hands them on.

    pipeline ─ on_evidence ─▶ Recorder ─ jobs ─▶ Writer ─▶ the file

A sample of a vehicle has the time of its report, not that of the tick; only vehicles with a newer report are sampled,
every `period_s`, those with an alarm every `alarm_period_s`. Pairs are noted with the samples, and at once when one
comes that may be alarmed, so that the moment of an alarm shows it. When the writer does not keep up, samples become
rarer: twice, four, eight times `period_s`. Nothing here raises: what goes wrong is counted, said and left out.

Eras: a pipeline whose clock went back for good has a new fleet, which begins a new era. After a restart the last era of
the file goes on, unless time is behind its end by more than a clock may jump.
"""

from __future__ import annotations

import logging
import math
import time

import msgspec
import numpy as np

from watchkeeper.daemon.history import writing
from watchkeeper.daemon.history.blocks import BUCKET_S, Rows, bucket_of
from watchkeeper.daemon.history.layers import Layer, track, whole
from watchkeeper.daemon.history.peaks import Peaks
from watchkeeper.daemon.history.tables import code_of
from watchkeeper.daemon.history.writer import Writer
from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.scores import Scores
from watchkeeper.daemon.outputs.coverage import coverage_of
from watchkeeper.detectors.alarms.events import TIME_DIGITS, UPDATED, AlarmEvent
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.reasons import Code
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool

log = logging.getLogger(__name__)

# Changes of what is watched that one sample writes; the others follow with the next.
WATCH_AT_ONCE = 200
# From here on the queue is called full, and samples become rarer; each further eighth doubles the period again.
PRESSED, STEP, RAREST = 0.5, 0.125, 8
NOT_SAID = 255
NO_PAIRS: I8 = np.empty(0, np.int64)


class Recorder:
    """Samples one pipeline. `take` is an observer of its evidence, `note` of its alarm events."""

    def __init__(self, pipeline: Pipeline, writer: Writer, resume: tuple[int, float] | None) -> None:
        self._pipeline = pipeline
        self._writer = writer
        self.failures = 0
        self.samples = 0
        # while old input is put through the pipeline again, what is in the file already is left out
        self.reliving = False
        self.era, self._resume_t = resume if resume is not None else (_new_era(0), -math.inf)
        self._before: tuple[int, float] | None = None
        self._reached_t = -math.inf
        self._fleet: object = None
        # when everybody was last sampled, and those with an alarm
        self._full_t, self._hot_t = -math.inf, -math.inf
        self._alarms_changed = True

    @property
    def scores(self) -> Scores | None:
        """The newest scores; None before the first tick."""
        return self._scores if self._fleet is not None else None

    # -- alarms ---------------------------------------------------------------------------------------------

    def note(self, event: AlarmEvent) -> int:
        """The era of an event; vehicles with alarms are sampled more often from now on."""
        if event.state != UPDATED:
            self._alarms_changed = True
        slack_s = self._pipeline.config.time.max_jump_s
        if self._before is not None and event.t > self._reached_t + slack_s and event.t <= self._before[1] + slack_s:
            return self._before[0]
        return self.era

    # -- samples --------------------------------------------------------------------------------------------

    def take(self, window: Window, evidence: list[Evidence]) -> None:
        """One tick. Never raises."""
        try:
            self._take(window.t, window, evidence)
        except Exception:
            self.failures += 1
            if self.failures == 1:
                log.exception("history: a tick was not recorded")

    def _take(self, t: float, window: Window, evidence: list[Evidence]) -> None:
        if self._pipeline.fleet is not self._fleet:
            self._begin(t)
        self._scores.take(window, evidence)
        self._peaks.take(evidence)
        if not self._caught_up(t):
            return
        self._reached_t = max(self._reached_t, t)
        self._writer.era, self._writer.t = self.era, self._reached_t
        settings = self._writer.settings
        period_s = settings.period_s * self._rarer()
        everybody = not self._full_t <= t < self._full_t + period_s
        some = not self._hot_t <= t < self._hot_t + settings.alarm_period_s
        conflicts = next((found for found in evidence if found.kind == "conflict"), None)
        if not everybody and not (some and self._hot_slots().any()):
            if conflicts is not None and self._rarer() == 1 and self._new_pair(conflicts):
                self._name(t)
                self._pair(t)
            return
        self._name(t)
        if everybody:
            self._full_t = t
            self._watch(t)
        self._hot_t = t
        self._sample(t, everybody=everybody)
        if conflicts is not None:
            self._pair(t)
        else:
            self._pairs = NO_PAIRS

    def _begin(self, t: float) -> None:
        """A fleet that was not seen before: the first one, or that of a new era."""
        fleet = self._pipeline.fleet
        if self._fleet is not None and self._reached_t > -math.inf:
            self._before = (self.era, self._reached_t)
            self.era, self._reached_t, self._resume_t = _new_era(self.era), t, -math.inf
        self._fleet = fleet
        self._scores, self._peaks = Scores(fleet.capacity), Peaks(fleet.capacity)
        self._track = track(self._scores.kinds)
        self._ids: list[str] = []
        self._callsigns: list[str] = []
        self._codes: I8 = np.zeros(fleet.capacity, np.int64)
        self._told_ms: F8 = np.full(fleet.capacity, -np.inf)
        self._hot: Bool = np.zeros(fleet.capacity, np.bool_)
        self._alarms_changed = True
        # the pairs that were noted last, by slots
        self._pairs = NO_PAIRS
        self._full_t, self._hot_t = -math.inf, -math.inf
        self._said: U1 = np.full(self._pipeline.guard.coverage.code.shape, NOT_SAID, np.uint8)

    def _caught_up(self, t: float) -> bool:
        """False while time is where the file has been already."""
        behind_s = self._resume_t - t
        if behind_s < 0.0:
            return True
        if self.reliving or behind_s <= self._pipeline.config.time.max_jump_s:
            return False
        self.era, self._resume_t = _new_era(self.era), -math.inf
        return True

    def _rarer(self) -> int:
        over = self._writer.pressure - PRESSED
        return 1 if over < 0.0 else min(2 << int(over / STEP), RAREST)

    def _hot_slots(self) -> Bool:
        if self._alarms_changed:
            self._alarms_changed = False
            slot_of = self._pipeline.fleet.slot_of
            named = {name for _, subjects in self._pipeline.active for name in subjects}
            self._hot[:] = False
            self._hot[[slot_of[name] for name in named if name in slot_of]] = True
        return self._hot

    def _sample(self, t: float, *, everybody: bool) -> None:
        enu = self._pipeline.config.frames.local == "enu"
        columns = picture.vehicles(self._pipeline.fleet, self._scores, t, enu=enu)
        slot: I8 = columns["slot"].astype(np.int64)
        told_ms = np.rint((t - columns["age_s"].astype(np.float64)) * 1000.0)
        chosen = told_ms > self._told_ms[slot]
        if not everybody:
            chosen &= self._hot_slots()[slot]
        slots = np.arange(self._pipeline.fleet.high) if everybody else np.flatnonzero(self._hot_slots())
        slot, told_ms = slot[chosen], told_ms[chosen]
        self._told_ms[slot] = told_ms
        data = np.stack([whole(columns[c.name][chosen], c.quantum) for c in self._track.columns])
        self._put(t, self._track, slot, told_ms, data)
        peaks = self._peaks
        for layer, table in ((peaks.score_layer, peaks.scores), (peaks.residual_layer, peaks.residuals)):
            if layer is not None and len(layer.columns):
                some, values = peaks.drain(table, slots)
                self._put(t, layer, some, np.full(len(some), t * 1000.0), whole(values, layer.columns[0].quantum))

    def _put(self, t: float, layer: Layer, slot: I8, told_ms: F8, data: I4) -> None:
        if len(slot):
            t_ms = (told_ms - bucket_of(t) * BUCKET_S * 1000.0).astype(np.int32)
            self._writer.put(writing.frame(self.era, t, layer, Rows(self._codes[slot], t_ms, data)))
            self.samples += len(slot)

    def _pair(self, t: float) -> None:
        columns = picture.pairs(self._scores)
        slots = {name: columns[name].astype(np.int64) for name in ("pair_a", "pair_b")}
        self._pairs = _pair_keys(slots["pair_a"], slots["pair_b"])
        codes = {name: self._codes[slot] for name, slot in slots.items()}
        # an alarm's time has as many digits: who asks for its moment finds this
        at = round(t, TIME_DIGITS)
        self._writer.put(writing.pairs(self.era, at, picture.encode({}, {**columns, **codes})))

    def _new_pair(self, conflicts: Evidence) -> bool:
        """Whether a pair is over its threshold that was not noted last time."""
        over = conflicts.score >= conflicts.threshold
        if conflicts.b is None or not over.any():
            return False
        return not np.isin(_pair_keys(conflicts.a[over], conflicts.b[over]), self._pairs).all()

    def _name(self, t: float) -> None:
        """Note who came, or is called otherwise now."""
        fleet = self._pipeline.fleet
        ids = fleet.ids[: fleet.high]
        callsigns = [name or "" for name in map(fleet.callsigns.get, ids)]
        if ids == self._ids and callsigns == self._callsigns:
            return
        before, called = len(self._ids), {}
        for slot, (name, callsign) in enumerate(zip(ids, callsigns, strict=True)):
            if slot < before and name == self._ids[slot] and callsign == self._callsigns[slot]:
                continue
            if slot >= before or name != self._ids[slot]:
                self._codes[slot] = code_of(name) if name else 0
                self._told_ms[slot] = -np.inf
                self._said[:, slot] = NOT_SAID
            if name:
                called[name] = callsign
        self._ids, self._callsigns = ids, callsigns
        if called:
            self._writer.put(writing.names(called, t))

    def _watch(self, t: float) -> None:
        """Note of whom something else is watched now."""
        fleet, code = self._pipeline.fleet, self._pipeline.guard.coverage.code[:, : self._pipeline.fleet.high]
        differs = (code != self._said[:, : fleet.high]).any(axis=0) & (code != Code.NOT_APPLICABLE).any(axis=0)
        slots = np.flatnonzero(differs & (self._codes[: fleet.high] != 0))[:WATCH_AT_ONCE]
        if len(slots):
            self._said[:, slots] = code[:, slots]
            told = [(fleet.ids[s], msgspec.json.encode(coverage_of(self._pipeline, s))) for s in slots.tolist()]
            self._writer.put(writing.watched(self.era, t, told))


def _pair_keys(a: I4 | I8, b: I4 | I8) -> I8:
    """Pairs of slots as numbers."""
    return (a.astype(np.int64) << 32) | b.astype(np.int64)


def _new_era(before: int) -> int:
    """A number for an era, later ones larger, without looking into the file: milliseconds of the wall clock."""
    return max(int(time.time() * 1000.0), before + 1)
