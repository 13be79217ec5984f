"""The one Pipeline: everything between a checked batch and an alarm event. The daemon, replay and evaluation drive it.

    feed(batch) -> events        samples as they arrive; runs every tick that this closes
    advance(t) -> events         time goes on without samples (live only), so that silence is noticed
    finish() -> events           the input has ended: run the ticks up to the newest sample
    snapshot() / restore()       the whole state, between calls

Synchronous, single-threaded, no I/O, no wall clock. For one sequence of samples the events are the same bytes,
however it is cut into batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import numpy as np

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, AlarmBook, AlarmEvent
from watchkeeper.detectors.alarms.subjects import Pairs, Places, Subjects, Vehicles
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import Detector, Evidence, PlaceDetector, Window
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.arrivals import Arrivals, single
from watchkeeper.detectors.engine.eventtime import ACCEPT, LATE, EventClock, HeldSample, Verdict, closed_tick
from watchkeeper.detectors.engine.gateways import Gateways
from watchkeeper.detectors.engine.window import Block, Pending, samples_of
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.incidents import Incidents, link_stats
from watchkeeper.streams.batch import Batch, CheckedBatch, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.messages import Drop, Kind

OnEvidence = Callable[[Window, list[Evidence]], None]
# How often vehicles unheard of are looked for, in seconds of event time.
EVICT_EVERY_S = 10.0
NEVER = -(2**62)


class Pipeline:
    """See the module's docstring."""

    def __init__(self, config: Config, *, on_evidence: OnEvidence | None = None) -> None:
        self.config = config
        # each tick's evidence before debouncing, for observers such as the live page; may be set at any time
        self.on_evidence = on_evidence
        self.drops: Counter[tuple[str, str]] = Counter()
        self.samples: Counter[str] = Counter()
        self.ticks = 0
        self.book = AlarmBook(config.alarms)
        self._begin()

    def _begin(self) -> None:
        """An empty fleet at an unknown time."""
        config = self.config
        self.fleet = Fleet(config.fleet)
        self.clock = EventClock(config.time)
        self.detectors: list[Detector] = [
            make(config, self.fleet)
            for make in REGISTRY.values()
            if any(self._section(kind.name).enabled for kind in make.declaration.kinds)
        ]
        self._watches = {
            kind.name: Watch(kind.name, self._section(kind.name).debounce, self._subjects(detector), self.book)
            for detector in self.detectors
            for kind in detector.declaration.kinds
            if self._section(kind.name).enabled
        }
        # a diagnosis rests on link statistics
        links = link_stats(self.detectors) if config.diagnosis.enabled else None
        self.incidents = None if links is None else Incidents(config, self.fleet, links, self.book)
        self._pending = {kind: Pending(kind) for kind in Kind}
        self._gateways = Gateways()
        self._declare()
        # the last tick that ran, and the last that the samples themselves have closed (advance() may be ahead)
        self._done = self._stream_done = NEVER
        self._away = False
        self._last_t = -np.inf
        self._evict_at = -np.inf

    def _section(self, kind: str) -> Any:
        """The settings of an alarm kind."""
        return section_of(self.config, "detectors", kind)

    def _declare(self) -> None:
        """Make the vehicles and gateways known that the configuration names, heard or not."""
        self.fleet.declare(self.config.topology)
        self._gateways.know(self.fleet.declared.gateways, self.config.limits.max_gateways)

    # -- what drives it -------------------------------------------------------------------------------------

    def feed(self, batch: Batch) -> list[AlarmEvent]:
        """Take in samples in arrival order and run every tick that this closes.

        A batch that does not come checked (a log's, a simulator's, a user's) is checked here: there is no other way in.
        """
        if not isinstance(batch, CheckedBatch):
            batch = checked(batch, self._drop)
        if not batch.kinds:
            return []
        arrivals = Arrivals(batch)
        if self._away:
            back = (int(np.ceil(arrivals.t.min() / self.clock.tick_s)) - 1) * self.clock.tick_s
            self.fleet.away, self._away = (self.clock.t_max, max(back, self.clock.t_max)), False
        verdict = self.clock.admit(arrivals.t, arrivals.held, self._drop)
        if verdict.resets or verdict.released:
            return self._feed_jump(batch, arrivals, verdict)
        for kind, cols in batch.kinds.items():
            codes = verdict.codes[arrivals.place[kind]]
            if codes.any():
                self._drop(kind, Drop.LATE, int((codes == LATE).sum()))
                cols = cols.take(codes == ACCEPT)  # noqa: PLW2901
            self._accept(batch, kind, cols)
        return self._run(self.clock.closed)

    def advance(self, t: float) -> list[AlarmEvent]:
        """Event time has reached t although no sample says so.

        The ticks this runs are provisional: if the stream goes on from before t (a simulator was paused, a link
        was down), time goes back to the stream and no sample is lost. Evidence is not counted twice, because its
        epochs are not new.
        """
        if self._away:
            return []
        return self._ticks(closed_tick(max(t, self.clock.t_max), self.clock.tick_s, self.clock.lateness_s))

    def finish(self) -> list[AlarmEvent]:
        """Run the ticks up to and including the newest sample: the input has ended."""
        self.clock.give_up(self._drop)
        if self.clock.t_max == -np.inf:
            return []
        return self._run(int(np.ceil(self.clock.t_max / self.clock.tick_s)))

    # -- intake ---------------------------------------------------------------------------------------------

    def _accept(self, batch: CheckedBatch, kind: Kind, cols: Columns) -> None:
        """Give the samples their slots and let them wait for their tick."""
        fleet = self.fleet
        # one dictionary look-up per name at C speed; only newcomers cost Python time
        slot_of_vid = np.array(list(map(fleet.slot_of.get, batch.ids, repeat(-1))), np.int32)
        if (slot_of_vid < 0).any():
            used = np.zeros(len(batch.ids), bool)
            used[cols.vid] = True
            for vid in np.flatnonzero(used & (slot_of_vid < 0)).tolist():
                slot_of_vid[vid] = fleet.slot_for(batch.ids[vid])
        if batch.callsigns:
            fleet.call(batch.callsigns)
        slot = fleet.expect(slot_of_vid, cols.vid, cols.t)
        self._gateways.know(batch.vias, self.config.limits.max_gateways)
        block = Block(slot, self._gateways.translate(batch.vias, cols.via), cols.t, cols.data)
        if (full := slot < 0).any():
            self._drop(kind, Drop.FLEET_FULL, int(full.sum()))
            block = block.take(np.flatnonzero(~full))
        room = self.config.limits.pending_samples - self.pending
        if len(block.t) > room:
            self._drop(kind, Drop.QUEUE_FULL, len(block.t) - room)
            block = block.take(slice(room))
        self.samples[kind.word] += len(block.t)
        self._pending[kind].add(block)

    def _feed_jump(self, batch: CheckedBatch, arrivals: Arrivals, verdict: Verdict) -> list[AlarmEvent]:
        """A batch in which time itself jumped: sample by sample, because order matters now and it is rare."""
        events: list[AlarmEvent] = []
        released: dict[int, list[HeldSample]] = {}
        for at, held in verdict.released:
            released.setdefault(at, []).append(held)
        for i, code in enumerate(verdict.codes.tolist()):
            if i in verdict.resets:
                events += self._new_era()
            for held in released.get(i, []):
                self._accept(*single(held))
            if code == ACCEPT:
                kind, row = arrivals.where(i)
                self._accept(batch, kind, batch.kinds[kind].take(np.array([row])))
            elif code == LATE:
                self._drop(arrivals.where(i)[0], Drop.LATE)
        return events + self._run(self.clock.closed)

    def _new_era(self) -> list[AlarmEvent]:
        """Time went backward for good (a simulation was restarted): end everything and start afresh."""
        last = max((p.last_t for p in self._pending.values() if p.n), default=self._last_t)
        events = self._run(int(np.ceil(last / self.clock.tick_s))) if last > -np.inf else []
        for watch in self._watches.values():
            events += watch.end(last, "clock_reset")
        if self.incidents is not None:
            events += self.incidents.end(last, "clock_reset")
        clock = self.clock
        self._begin()
        self.clock = clock
        return events

    def _drop(self, kind: Kind, reason: str, n: int = 1) -> None:
        if n:
            self.drops[kind.word, reason] += n

    # -- ticks ----------------------------------------------------------------------------------------------

    def _run(self, tick: int) -> list[AlarmEvent]:
        """Run all ticks that the samples have closed."""
        self._done = self._stream_done
        events = self._ticks(tick)
        self._stream_done = self._done
        return events

    def _ticks(self, tick: int) -> list[AlarmEvent]:
        """Run all ticks up to the given one that have not run yet."""
        if tick <= self._done:
            return []
        tick_s = self.clock.tick_s
        windows: dict[int, dict[Kind, Block]] = {}
        for kind, pending in self._pending.items():
            for k, block in pending.cut(tick, tick_s).items():
                windows.setdefault(k, {})[kind] = block
        events: list[AlarmEvent] = []
        if self._done == NEVER:
            # the first tick ever is the first with a sample
            if not windows:
                return []
            self._done = min(windows) - 1
        busy = sorted(windows)
        k = self._done + 1
        while k <= tick:
            away = self.fleet.away[0] < k * tick_s <= self.fleet.away[1]
            if k not in windows and (away or k * tick_s - self._last_t > self.config.time.gap_skip_s):
                k = next((b for b in busy if b > k), tick + 1)
                continue
            events += self._tick(k * tick_s, windows.get(k, {}))
            k += 1
        self._done = tick
        return events

    def _tick(self, t: float, blocks: dict[Kind, Block]) -> list[AlarmEvent]:
        samples = {
            kind: samples_of(kind, block, self.fleet.high, lambda n, kind=kind: self._drop(kind, Drop.DUPLICATE, n))  # type: ignore[misc]
            for kind, block in blocks.items()
        }
        for rows in samples.values():
            self.fleet.ingest(rows)
            self._last_t = max(self._last_t, float(rows.t.max()))
        if self.fleet.declared.any:
            self.fleet.declared.expect(t, self.fleet.high)
        window = Window(t, samples)
        evidence = [found for detector in self.detectors for found in detector.step(window)]
        if self.on_evidence is not None:
            self.on_evidence(window, evidence)
        events: list[AlarmEvent] = []
        for found in evidence:
            events += self._watches[found.kind].step(found, t)
        named = {found.kind for found in evidence}
        for kind, watch in self._watches.items():
            if kind not in named:
                events += watch.step(None, t)
        if t >= self._evict_at:
            events += self._evict(t)
            self._evict_at = t + EVICT_EVERY_S
        if self.incidents is not None:
            events += self.incidents.step(t, events, self._gateways.number)
        self.ticks += 1
        events.sort(key=lambda e: (e.t, e.kind, e.subjects, e.t_raised))
        return events

    def _subjects(self, detector: Detector) -> Subjects:
        subjects = detector.declaration.subjects
        if subjects == "pair":
            return Pairs(self.fleet, self.config.detectors.conflict.max_pairs)
        return Places() if subjects == "place" else Vehicles(self.fleet)

    def _evict(self, t: float) -> list[AlarmEvent]:
        slots = self.fleet.idle(t)
        if not len(slots):
            return []
        events = [event for watch in self._watches.values() for event in watch.forget(slots, t, "forgotten")]
        for detector in self.detectors:
            detector.forget(slots)
        self.fleet.forget(slots, t)
        return events

    # -- looking in from outside ----------------------------------------------------------------------------

    @property
    def active(self) -> dict[tuple[str, tuple[str, ...]], AlarmEvent]:
        """The active alarms: (kind, subjects) to the last event."""
        return self.book.active

    @property
    def watched(self) -> set[str]:
        """The alarm kinds that can be raised with these settings."""
        return {*self._watches} | ({INCIDENT} if self.incidents is not None else set())

    @property
    def t_max(self) -> float:
        """The newest sample's time; -inf before the first."""
        return self.clock.t_max

    @property
    def watermark(self) -> float:
        """The end of the last tick that ran; -inf before the first."""
        return self._done * self.clock.tick_s if self._done != NEVER else -np.inf

    @property
    def gateways(self) -> list[str]:
        """The gateways that are declared, then those that samples came through, in the order of their numbers."""
        return list(self._gateways.number)

    @property
    def pending(self) -> int:
        """Samples waiting for their tick."""
        return sum(pending.n for pending in self._pending.values())

    def gauges(self) -> dict[str, float]:
        """Figures of every detector, `<detector>_<figure>`, and the latest scores' quantiles per alarm kind."""
        found = {f"{d.declaration.name}_{key}": value for d in self.detectors for key, value in d.gauges().items()}
        if self.incidents is not None:
            found |= {f"incident_{key}": value for key, value in self.incidents.gauges().items()}
            found |= {f"topology_{key}": value for key, value in self.incidents.network.gauges().items()}
        for kind, watch in self._watches.items():
            scores = watch.scores[np.isfinite(watch.scores)]
            for q in (0.5, 0.95, 0.99):
                found[f"{kind}_score_p{q * 100:.0f}"] = float(np.quantile(scores, q)) if len(scores) else np.nan
        return found

    # -- life beyond one process ----------------------------------------------------------------------------

    def retune(self, config: Config) -> None:
        """Take new thresholds without losing state. Sizes, ticks and the set of detectors stay as they are."""
        self.config = config
        self._declare()
        self.clock.retune(config.time)
        self.book.retune(config.alarms)
        for detector in self.detectors:
            detector.retune(config)
        if self.incidents is not None:
            self.incidents.retune(config)
        for kind, watch in self._watches.items():
            watch.debouncer.retune(self._section(kind).debounce)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as nested dicts of arrays and plain values. Arrays may be views: encode before feeding on."""
        return {
            "clock": self.clock.snapshot(),
            "done": self._stream_done,
            "last_t": self._last_t,
            "evict_at": self._evict_at,
            "fleet": self.fleet.snapshot(),
            "pending": {kind.word: pending.snapshot() for kind, pending in self._pending.items()},
            "vias": self.gateways,
            "detectors": {d.declaration.name: d.snapshot() for d in self.detectors},
            "watches": {kind: watch.snapshot() for kind, watch in self._watches.items()},
            "alarms": list(self.book.active.values()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. A snapshot with another tick length is refused with ValueError.

        The time between the snapshot and the next sample is not judged: nobody was silent then, we were away.
        """
        if state["clock"]["tick_s"] != self.clock.tick_s:
            raise ValueError(f"snapshot has tick_s {state['clock']['tick_s']}, configured is {self.clock.tick_s}")
        self._begin()
        self.clock.restore(state["clock"])
        self._done = self._stream_done = state["done"]
        self._last_t, self._evict_at = state["last_t"], state["evict_at"]
        self.fleet.restore(state["fleet"])
        for kind, pending in self._pending.items():
            pending.restore(state["pending"][kind.word])
        self._gateways = Gateways(state["vias"])
        self._declare()
        for detector in self.detectors:
            if (name := detector.declaration.name) in state["detectors"]:
                detector.restore(state["detectors"][name])
        for kind, saved in state["watches"].items():
            if kind in self._watches:
                self._watches[kind].restore(saved)
        for event in state["alarms"]:
            if event.kind in self._watches:
                self.book.adopt(event)
        if self.incidents is not None:
            self.incidents.reopen(state["alarms"], self._gateways.number)
        self._away = True

    def restore_alarms(self, events: Iterable[AlarmEvent]) -> None:
        """Make the active alarms those that a journal says are active: it knows better than an older snapshot."""
        last = {event.id: event for event in events}
        active = {(e.kind, e.subjects): e for e in last.values() if e.state != CLEARED and e.kind in self._watches}
        for kind, subjects in self.book.active.keys() - active.keys():
            if kind != INCIDENT:
                self._watches[kind].disown(subjects)
            del self.book.active[kind, subjects]
        makers = {kind.name: detector for detector in self.detectors for kind in detector.declaration.kinds}
        for (kind, subjects), event in active.items():
            if not self._watches[kind].adopt(event):
                continue
            self.book.adopt(event)
            if isinstance(maker := makers[kind], PlaceDetector):
                maker.adopt(subjects[0], event.t_onset, event.t, event.evidence)
        if self.incidents is not None:
            self.incidents.reopen(last.values(), self._gateways.number)
