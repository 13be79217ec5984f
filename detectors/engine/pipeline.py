"""The one Pipeline: everything between a checked batch and an alarm event. The daemon, replay and evaluation drive it.

    feed(batch) -> events        samples as they arrive; runs every tick that this closes
    advance(t) -> events         time goes on without samples (live only), so that silence is noticed
    reach(t) -> events           time has definitely reached t, and nothing older will come
    take(batch), run(tick)       of a part (part.py): samples that were admitted elsewhere, and ticks one by one
    accept(vehicle) -> events    a person takes a lasting state as normal
    finish() -> events           the input has ended: run the ticks up to the newest sample
    snapshot() / restore()       the whole state, between calls: what follows is the same to the byte
    away()                       we were not running: the time until the next sample is not judged

Synchronous, single-threaded, no I/O, no wall clock. For one sequence of samples the events are the same bytes,
however it is cut into batches. Ticks in which nothing can change are left out (quiet.py), however long they last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent
from watchkeeper.detectors.alarms.subjects import Pairs, Places, Subjects, Vehicles
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import AcceptingDetector, Detector, Evidence, Window
from watchkeeper.detectors.clock.alarms import ClockAlarms
from watchkeeper.detectors.clock.declaration import CLOCK
from watchkeeper.detectors.coverage.declaration import WATCH
from watchkeeper.detectors.declaration import AlarmKind
from watchkeeper.detectors.engine import state
from watchkeeper.detectors.engine.admission import RESET, by_kind, one_by_one
from watchkeeper.detectors.engine.arrivals import Arrivals
from watchkeeper.detectors.engine.eventtime import EventClock, Verdict, closed_tick, tick_of
from watchkeeper.detectors.engine.gateways import Gateways
from watchkeeper.detectors.engine.guard import Guard
from watchkeeper.detectors.engine.part import WHOLE, Part
from watchkeeper.detectors.engine.quiet import EVICT_EVERY_S, TIDY_EVERY_S, quiet_until, wakes
from watchkeeper.detectors.engine.room import make_room
from watchkeeper.detectors.engine.window import Block, Pending, samples_of
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.incidents import Incidents, link_stats
from watchkeeper.detectors.sentence import spoken
from watchkeeper.streams.batch import I4, Batch, CheckedBatch, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.messages import Drop, Kind
from watchkeeper.streams.periods import periods_over, reaches

OnEvidence = Callable[[Window, list[Evidence]], None]
NEVER = -(2**62)


class Pipeline:
    """See the module's docstring."""

    def __init__(
        self, config: Config, *, on_evidence: OnEvidence | None = None, every_tick: bool = False, part: Part = WHOLE
    ) -> None:
        self.config = config
        # which of the work is done here
        self.part = part
        # each tick's evidence before debouncing, for observers such as the live page; may be set at any time
        self.on_evidence = on_evidence
        # run ticks in which nothing can change as well, for observers who count scores; alarms are the same
        self.every_tick = every_tick
        self.drops: Counter[tuple[str, str]] = Counter()
        self.samples: Counter[str] = Counter()
        self.ticks = 0
        # a new one begins when time goes back for good
        self._era = 0
        # vehicles that were forgotten early, because the fleet was full
        self.crowded_out = 0
        self.book = AlarmBook(config.alarms, spoken)
        self._begin()

    def _begin(self) -> None:
        """An empty fleet at an unknown time."""
        config = self.config
        self.fleet = Fleet(config.fleet)
        self.book.called = self.fleet.callsigns
        self.clock = EventClock(config.time, config.fleet.max_vehicles + config.limits.max_gateways)
        self.guard = Guard(config, self.fleet, self.book, self.part)
        self.watches = {
            kind.name: self.watch_over(kind, detector)
            for detector in self.detectors
            for kind in detector.declaration.kinds
            if self._section(kind.name).enabled
        }
        self.clock_alarms = ClockAlarms(config.detectors.clock, self.book)
        self.gateway_table = Gateways()
        self.incidents = self.no_incidents()
        self._pending = {kind: Pending(kind) for kind in Kind}
        # what was restored without its past: detector, `<kind> alarms` or `incidents`, to the reason in words
        self.cold: dict[str, str] = {}
        self._declare()
        # the last tick that ran, and the last that is closed for good (advance() may be ahead)
        self._done = self._stream_done = NEVER
        # until when nothing can change without samples; None: not asked since the last tick
        self._quiet_until: float | None = None
        self._away = False
        self._last_t = -np.inf
        self._gone: list[str] = []
        if not self.part.gathers:
            self.fleet.follow_callsigns()

    def watch_over(self, kind: AlarmKind, detector: Detector) -> Watch:
        """A watch over one alarm kind that has seen nothing yet."""
        return Watch(kind, self._section(kind.name).debounce, self._subjects(detector), self.book)

    def no_incidents(self) -> Incidents | None:
        """Incidents, none open so far; None when they are switched off. A diagnosis rests on link statistics."""
        links = link_stats(self.detectors) if self.config.diagnosis.enabled and self.part.gathers else None
        if links is None:
            return None
        incidents = Incidents(self.config, self.fleet, links, self.book, self.gateway_table.number)
        incidents.on_error = self.guard.incident_failed
        return incidents

    def _section(self, kind: str) -> Any:
        """The settings of an alarm kind."""
        return section_of(self.config, "detectors", kind)

    def _declare(self) -> None:
        """Make the vehicles and gateways known that the configuration names, heard or not."""
        self.fleet.declare(self.config.topology, self.part.has)
        self.gateway_table.declare(self.fleet.declared.gateways, self.config.limits.max_gateways)

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
        self.gateway_table.know(batch.vias, self.config.limits.max_gateways)
        via = self.gateway_table.translate(batch.vias, arrivals.via)
        verdict = self.clock.admit(arrivals.t, batch.ids, arrivals.vid, via, arrivals.held, self._drop)
        if verdict.resets or verdict.released:
            return self._feed_jump(arrivals, verdict)
        for kind, cols in by_kind(arrivals, verdict, self._drop):
            self._accept(batch, kind, cols, moved=verdict.shifted)
        return self._run(self.clock.closed)

    def advance(self, t: float) -> list[AlarmEvent]:
        """Event time has reached t although no sample says so.

        The ticks this runs are provisional: if the stream goes on from before t (a simulator was paused, a link
        was down), time goes back to the stream and no sample is lost. Evidence is not counted twice, because its
        epochs are not new.
        """
        if self._away:
            return []
        newest_t = self.clock.t_max
        t = min(max(t, newest_t), newest_t + self.config.time.gap_skip_s)
        return self._ticks(closed_tick(t, self.clock.tick_s, self.clock.lateness_s))

    def reach(self, t: float) -> list[AlarmEvent]:
        """Time has definitely reached t, and nothing older will come: run every tick that ends at or before t.

        For those who know more than the samples here: the driver of one shard of a fleet, or of a fleet that may be
        quiet. Samples of these ticks that come all the same are late.
        """
        self.clock.reach(t)
        tick = periods_over(t, self.clock.tick_s)
        if self._done == NEVER and not self.pending:
            # the first tick ever: whoever is declared is expected from here on
            self._done = self._stream_done = tick - 1
        return self._run(tick)

    def take(self, batch: CheckedBatch, *, moved: bool = False) -> None:
        """Samples that were admitted elsewhere; `reach` runs their ticks. `moved`: their times were corrected."""
        self.gateway_table.know(batch.vias, self.config.limits.max_gateways)
        for kind, cols in batch.kinds.items():
            self._accept(batch, kind, cols, moved=moved)

    def begin(self, first: int) -> None:
        """The first tick of all is this one, whether or not a sample here belongs to it."""
        if self._done == NEVER:
            self._done = self._stream_done = first - 1

    def run(self, tick: int, *, provisional: bool = False) -> Iterator[tuple[int, list[AlarmEvent], bool]]:
        """Run the ticks up to this one, as `reach` does, or as `advance` does if that is provisional.

        Gives each tick with its events, and whether the tick after it is left out, or not known yet.
        """
        if provisional:
            yield from self._each_tick(tick)
            return
        self.clock.reach(tick * self.clock.tick_s)
        self._done = self._stream_done
        yield from self._each_tick(tick)
        self._stream_done = self._done

    def hear(self, notes: Iterable[ClockNote]) -> None:
        """Notes about senders' clocks that were made elsewhere."""
        self.clock.hear(notes)

    def end_era(self, last_t: float) -> list[AlarmEvent]:
        """Time went back for good after this time: all alarms end, and everything begins again. Its ticks have run."""
        events: list[AlarmEvent] = []
        for watch in self.watches.values():
            events += watch.end(last_t, "clock_reset")
        events += self.guard.alarms.end(last_t, "clock_reset")
        events += self.clock_alarms.end(last_t, "clock_reset")
        if self.incidents is not None:
            events += self.incidents.end(last_t, "clock_reset")
        clock, gateways = self.clock, self.gateway_table.snapshot()
        self._era += 1
        self._begin()
        self.clock = clock
        # numbers stay what they are: samples that wait have them
        self.gateway_table.restore(gateways)
        self._declare()
        return in_order(events)

    @property
    def done(self) -> int:
        """The last tick that ran."""
        return self._done

    def take_gone(self) -> list[str]:
        """The vehicles of a part that were forgotten since this was last asked."""
        gone, self._gone = self._gone, []
        return gone

    def accept(self, vehicle: str) -> list[AlarmEvent]:
        """A person accepts a lasting state of this vehicle, such as a position that moved away: its alarm ends."""
        slot = self.fleet.slot_of.get(vehicle, -1)
        events: list[AlarmEvent] = []
        for fence in self.guard.fences if slot >= 0 else []:
            detector = fence.detector
            if isinstance(detector, AcceptingDetector) and fence.ask("accept", partial(detector.accept, slot)):
                kinds = {kind.name for kind in detector.declaration.kinds}
                self.guard.wake()
                for watch in (watch for kind, watch in self.watches.items() if kind in kinds):
                    events += watch.accept(slot, self.watermark)
        if events and self.incidents is not None:
            events += self.incidents.step(self.watermark, events)
        return events

    def finish(self) -> list[AlarmEvent]:
        """Run the ticks up to and including the newest sample: the input has ended."""
        self.clock.give_up(self._drop)
        newest = max([self.clock.t_max, *(pending.last_t for pending in self._pending.values() if pending.n)])
        return self._run(int(np.ceil(newest / self.clock.tick_s))) if newest > -np.inf else []

    @property
    def under_way(self) -> bool:
        """Whether something that was fed is judged elsewhere. Here nothing is: a call gives all of its events."""
        return False

    def settle(self) -> list[AlarmEvent]:
        """The events of what is under way."""
        return []

    # -- intake ---------------------------------------------------------------------------------------------

    def _accept(self, batch: CheckedBatch, kind: Kind, cols: Columns, *, moved: bool = True) -> None:
        """Give the samples their slots and let them wait for their tick. `moved`: their times are not the batch's."""
        fleet = self.fleet
        if len(cols.t) and cols.t.min() <= self._stream_done * self.clock.tick_s:
            # its tick is over: time was said to have reached it
            late = tick_of(cols.t, self.clock.tick_s) <= self._stream_done
            self._drop(kind, Drop.LATE, int(late.sum()))
            cols = cols.take(~late)
        via = self.gateway_table.expect(batch.vias, cols.via, cols.t)
        # one dictionary look-up per name at C speed; only newcomers cost Python time
        slot_of_vid = np.array(list(map(fleet.slot_of.get, batch.ids, repeat(-1))), np.int32)
        if (slot_of_vid < 0).any():
            source = np.full(len(batch.ids), -2)
            source[cols.vid] = via
            for vid in np.flatnonzero((source > -2) & (slot_of_vid < 0)).tolist():
                slot_of_vid[vid] = fleet.slot_for(batch.ids[vid], int(source[vid]))
        if batch.callsigns:
            fleet.call(batch, cols, moved=moved)
        slot = fleet.expect(slot_of_vid, cols.vid, cols.t)
        block = Block(slot, via, cols.t, cols.data)
        if (full := slot < 0).any():
            self._drop(kind, Drop.FLEET_FULL, int(full.sum()))
            block = block.take(np.flatnonzero(~full))
        room = self.config.limits.pending_samples - self.pending
        if len(block.t) > room:
            self._drop(kind, Drop.QUEUE_FULL, len(block.t) - room)
            block = block.take(slice(room))
        self.samples[kind.word] += len(block.t)
        self._pending[kind].add(block)

    def _feed_jump(self, arrivals: Arrivals, verdict: Verdict) -> list[AlarmEvent]:
        """A batch in which time itself jumped."""
        events: list[AlarmEvent] = []
        for found in one_by_one(arrivals, verdict, self._drop):
            if found is RESET:
                events += self._new_era()
            else:
                self._accept(*found)
        return events + self._run(self.clock.closed)

    def _new_era(self) -> list[AlarmEvent]:
        """Time went backward for good (a simulation was restarted): end everything and start afresh."""
        last = max((p.last_t for p in self._pending.values() if p.n), default=self._last_t)
        events = self._run(int(np.ceil(last / self.clock.tick_s))) if last > -np.inf else []
        return events + self.end_era(last)

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
        return [event for _, events, _ in self._each_tick(tick) for event in events]

    def _each_tick(self, tick: int) -> Iterator[tuple[int, list[AlarmEvent], bool]]:
        """Run them one by one: tick, its events, and whether the one after it is left out or not known yet."""
        if tick <= self._done:
            return
        tick_s = self.clock.tick_s
        windows: dict[int, dict[Kind, Block]] = {}
        for kind, pending in self._pending.items():
            for k, block in pending.cut(tick, tick_s).items():
                windows.setdefault(k, {})[kind] = block
        if self._done == NEVER:
            # the first tick ever is the first with a sample
            if not windows:
                return
            self._done = min(windows) - 1
        busy = iter([*sorted(windows), tick + 1])
        next_busy = next(busy)

        def next_from(k: int) -> int:
            """The first tick from k on in which something can happen."""
            return k if k >= next_busy else min(next_busy, max(k, wakes(self._nothing_until(k * tick_s), tick_s)))

        k = next_from(self._done + 1)
        while k <= tick:
            while next_busy <= k:
                next_busy = next(busy)
            events = self._tick(k * tick_s, windows.get(k, {}))
            after = next_from(k + 1)
            yield k, events, after != k + 1 or after > tick
            k = after
        self._done = tick

    def _nothing_until(self, t: float) -> float:
        """Until when ticks without samples, of which one ends at t, change nothing."""
        left_t, back_t = self.fleet.away
        if left_t < t <= back_t:
            return back_t + 0.5 * self.clock.tick_s
        if self.every_tick:
            return t
        if self._quiet_until is None:
            self._quiet_until = quiet_until(self)
        return self._quiet_until

    def _tick(self, t: float, blocks: dict[Kind, Block]) -> list[AlarmEvent]:
        self._quiet_until = None
        samples = {
            kind: samples_of(kind, block, self.fleet.high, lambda n, kind=kind: self._drop(kind, Drop.DUPLICATE, n))  # type: ignore[misc]
            for kind, block in blocks.items()
        }
        for rows in samples.values():
            self.fleet.ingest(rows)
            self.gateway_table.hear(rows.via, t)
            self._last_t = max(self._last_t, float(rows.t.max()))
        self.fleet.use_callsigns(t)
        if self.fleet.declared.any:
            self.fleet.declared.expect(t, self.fleet.high)
        window = Window(t, samples)
        evidence = self.guard.step(window, everybody=self.every_tick or self.on_evidence is not None)
        if self.guard.restarted and self.incidents is not None and (links := link_stats(self.detectors)) is not None:
            self.incidents.follow(links)
        if self.on_evidence is not None:
            self.on_evidence(window, evidence)
        events: list[AlarmEvent] = []
        for found in evidence:
            # a kind that is switched off has no watch
            if found.kind in self.watches:
                events += self.watches[found.kind].step(found, t)
        if self.guard.worked:
            named = {found.kind for found in evidence}
            for kind, watch in self.watches.items():
                if kind not in named:
                    events += watch.step(None, t)
        events += self.guard.settle(t, self.watches)
        notes = self.clock.take_notes(self._era, t)
        self.guard.mark_clocks(notes)
        if self.part.gathers:
            events += self.clock_alarms.step(t, notes, self.gateways)
        if reaches(t, self.clock.tick_s, TIDY_EVERY_S):
            for watch in self.watches.values():
                watch.tidy(t)
        if reaches(t, self.clock.tick_s, EVICT_EVERY_S):
            events += self._evict(t)
        if self.part.gathers:
            events += make_room(self, t)
        # slots are no order: who has which depends on how the input was cut and spread
        events = in_order(events)
        if self.incidents is not None:
            events = in_order(events + self.incidents.step(t, events))
        self.ticks += 1
        return events

    def _subjects(self, detector: Detector) -> Subjects:
        subjects = detector.declaration.subjects
        if subjects == "pair":
            return Pairs(self.fleet, self.config.detectors.conflict.max_pairs)
        return Places() if subjects == "place" else Vehicles(self.fleet)

    def _evict(self, t: float) -> list[AlarmEvent]:
        return self.forget(self.fleet.idle(t), t)

    def forget(self, slots: I4, t: float) -> list[AlarmEvent]:
        """These vehicles are gone: their alarms end, and nothing is known of them any more."""
        if not len(slots):
            return []
        events = [event for watch in self.watches.values() for event in watch.forget(slots, t)]
        events += self.guard.forget(slots, t)
        if not self.part.gathers:
            self._gone += [self.fleet.ids[slot] for slot in slots.tolist()]
        self.fleet.forget(slots, t)
        return events

    # -- looking in from outside ----------------------------------------------------------------------------

    @property
    def detectors(self) -> list[Detector]:
        """The detectors that are on; each stands behind a fence, see guard.py."""
        return self.guard.detectors

    @property
    def active(self) -> dict[tuple[str, tuple[str, ...]], AlarmEvent]:
        """The active alarms: (kind, subjects) to the last event."""
        return self.book.active

    @property
    def watched(self) -> set[str]:
        """The alarm kinds that can be raised with these settings."""
        others = {
            CLOCK: self.config.detectors.clock.enabled and self.part.gathers,
            INCIDENT: self.incidents is not None,
        }
        return {*self.watches, WATCH} | {kind for kind, on in others.items() if on}

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
        """The gateways by number: declared ones first, then those that samples came through; "" for a free number."""
        return self.gateway_table.names

    @property
    def pending(self) -> int:
        """Samples waiting for their tick."""
        return sum(pending.n for pending in self._pending.values())

    def gauges(self) -> dict[str, float]:
        """Figures of every detector, `<detector>_<figure>`, and the latest scores' quantiles per alarm kind."""
        found = self.guard.gauges()
        found |= {f"{CLOCK}_{key}": value for key, value in self.clock.gauges().items()}
        if self.incidents is not None:
            found |= {f"incident_{key}": value for key, value in self.incidents.gauges().items()}
            found |= {f"topology_{key}": value for key, value in self.incidents.network.gauges().items()}
        for kind, watch in self.watches.items():
            scores = watch.scores[np.isfinite(watch.scores)]
            for q in (0.5, 0.95, 0.99):
                found[f"{kind}_score_p{q * 100:.0f}"] = float(np.quantile(scores, q)) if len(scores) else np.nan
        return found

    # -- life beyond one process ----------------------------------------------------------------------------

    def retune(self, config: Config) -> None:
        """Take new thresholds without losing state. Sizes, ticks and the set of detectors stay as they are."""
        self.config = config
        self._quiet_until = None
        self._declare()
        self.clock.retune(config.time)
        self.book.retune(config.alarms)
        self.guard.retune(config)
        self.clock_alarms.retune(config.detectors.clock)
        if self.incidents is not None:
            self.incidents.retune(config)
        for kind, watch in self.watches.items():
            watch.debouncer.retune(self._section(kind).debounce)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as nested dicts of arrays and plain values. Arrays may be views: encode before feeding on."""
        return state.snapshot(self)

    def restore(self, saved: dict[str, Any]) -> None:
        """Take over a snapshot: what follows is, to the byte, what would have followed without.

        A part that cannot be used starts without its past; `cold` says which and why. Where the vehicles, their samples
        or the time cannot be used (another tick length, damaged) this raises, and the pipeline is to be thrown away.
        """
        self._begin()
        state.restore(self, saved)

    def away(self) -> None:
        """We were not running: the time until the next sample is not judged, for nobody was silent then."""
        self._away = True

    def restore_alarms(self, events: Iterable[AlarmEvent]) -> None:
        """Make the active alarms those that a journal says are active: it knows better than an older snapshot."""
        self.guard.wake()
        state.agree_with_journal(self, events)


def in_order(events: list[AlarmEvent]) -> list[AlarmEvent]:
    """The events of one tick in the order in which they are told."""
    return sorted(events, key=lambda e: (e.t, e.kind, e.subjects, e.t_raised))
