"""The first stage: every sample is checked, admitted and counted once, before the fleet is spread over operators.

    feed(batch) -> Turn       as Pipeline.feed; the turn goes to every operator and to Merge, samples or not
    reach(t), advance(t), finish(), away()      as those of a Pipeline
    dump() -> bytes, load(bytes)

One clock for all: what is late, whose clock is off and when a tick is over is judged here, so that it does not depend
on who shares an operator with whom. The caps of the whole fleet (vehicles, gateways, samples that wait) are kept here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.admission import RESET, by_kind, one_by_one
from watchkeeper.detectors.engine.arrivals import Arrivals
from watchkeeper.detectors.engine.eventtime import EventClock, Verdict, tick_of
from watchkeeper.detectors.engine.gateways import Gateways
from watchkeeper.detectors.engine.pipeline import NEVER
from watchkeeper.detectors.engine.quiet import EVICT_EVERY_S
from watchkeeper.detectors.engine.senders.records import closed_tick
from watchkeeper.detectors.fleet.crowd import room_for
from watchkeeper.detectors.fleet.declared import Declared
from watchkeeper.engines.roster import Roster
from watchkeeper.engines.steps import Clock, Spread, Turn
from watchkeeper.streams.batch import I4, Batch, Bool, CheckedBatch, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import Drop, Kind
from watchkeeper.streams.periods import periods_over

EVERY_KIND = frozenset(Kind)
Placed = tuple[CheckedBatch | None, I4, Bool]
"""Samples, the operator of vehicles of each name, and whether the operator of the fleet gets it too."""
NOTHING: Placed = (None, np.empty(0, np.int32), np.empty(0, bool))


class Front:
    """See the module's docstring; `shards` is the number of operators of vehicles."""

    def __init__(self, config: Config, shards: int) -> None:
        self.config, self.shards = config, shards
        self.drops: Counter[tuple[str, str]] = Counter()
        self.samples: Counter[str] = Counter()
        self.clock = EventClock(config.time, config.fleet.max_vehicles + config.limits.max_gateways)
        self.gateways = Gateways()
        self._declared = Declared(config.topology, 1).gateways
        self.gateways.declare(self._declared, config.limits.max_gateways)
        self._needed = kinds_across(config)
        self._number = 0
        self._away = False
        # vehicles that had to make room
        self.crowded_out = 0
        # the first and the last time of all samples that were admitted
        self.span = (np.inf, -np.inf)
        self._begin()

    def _begin(self) -> None:
        """Nobody was heard yet, in this era."""
        self.roster = Roster(self.config)
        # samples that wait by tick, the first tick of all, the newest sample, the last tick that is over for good
        self._waiting: Counter[int] = Counter()
        self._first: int | None = None
        self._began = False
        self._last_t = -np.inf
        self._over = NEVER
        # the last tick that `advance` has told, until the stream closes one
        self._ahead = NEVER
        self._evicted = 0

    # -- what drives it -------------------------------------------------------------------------------------

    def feed(self, batch: Batch) -> Turn:
        """Admit samples in arrival order, and tell which ticks this closes."""
        if not isinstance(batch, CheckedBatch):
            batch = checked(batch, self._drop)
        if not batch.kinds:
            return self._turn([])
        arrivals = Arrivals(batch)
        away = self._back(arrivals) if self._away else None
        self.gateways.know(batch.vias, self.config.limits.max_gateways)
        via = self.gateways.translate(batch.vias, arrivals.via)
        verdict = self.clock.admit(arrivals.t, batch.ids, arrivals.vid, via, arrivals.held, self._drop)
        if verdict.resets or verdict.released:
            return self._turn(self._jump(arrivals, verdict, away))
        kinds = {kind: self._accept(batch, kind, cols) for kind, cols in by_kind(arrivals, verdict, self._drop)}
        placed = self._placed(batch.having(kinds))
        return self._turn([_spread(placed, self._clock(self.clock.closed, away), moved=verdict.shifted)])

    def advance(self, t: float) -> Turn:
        """Event time has reached t although no sample says so; it may come back."""
        if self._away:
            return self._turn([])
        newest_t = self.clock.t_max
        t = min(max(t, newest_t), newest_t + self.config.time.gap_skip_s)
        tick = closed_tick(t, self.clock.tick_s, self.clock.lateness_s)
        first = self._start(tick)
        if not self._began or tick <= max(self._ahead, self._over):
            return self._turn([])
        self._ahead = tick
        notes, gateways = self._notes()
        return self._turn([_spread(NOTHING, Clock(None, notes, gateways, first, tick, provisional=True))])

    def reach(self, t: float) -> Turn:
        """Time has definitely reached t."""
        self.clock.reach(t)
        tick = periods_over(t, self.clock.tick_s)
        if not self._began and self._first is None:
            self._first = tick
        return self._turn([_spread(NOTHING, self._clock(tick, None))])

    def finish(self) -> Turn:
        """The input has ended: run the ticks up to and including the newest sample."""
        self.clock.give_up(self._drop)
        newest = max(self.clock.t_max, self._last_t if self._waiting else -np.inf)
        tick = int(np.ceil(newest / self.clock.tick_s)) if newest > -np.inf else NEVER
        return self._turn([_spread(NOTHING, self._clock(tick, None))])

    def accept(self, vehicle: str) -> Turn:
        """A person accepts a lasting state of this vehicle."""
        return self._turn([_spread(NOTHING, Clock(accept=vehicle))])

    def retune(self, config: Config) -> None:
        """Take new settings. Sizes and ticks stay as they are."""
        self.config = config
        self.clock.retune(config.time)
        self._declared = Declared(config.topology, 1).gateways
        self.gateways.declare(self._declared, config.limits.max_gateways)
        self.roster.declare(config)

    @property
    def waiting(self) -> int:
        """Samples whose tick is not over."""
        return self._waiting.total()

    def away(self) -> None:
        """We were not running: the time until the next sample is not judged."""
        self._away = True

    # -- intake ---------------------------------------------------------------------------------------------

    def _back(self, arrivals: Arrivals) -> tuple[float, float]:
        self._away = False
        back = (int(np.ceil(arrivals.t.min() / self.clock.tick_s)) - 1) * self.clock.tick_s
        return self.clock.t_max, max(back, self.clock.t_max)

    def _accept(self, batch: CheckedBatch, kind: Kind, cols: Columns) -> Columns:
        """The samples that find room, through gateways that are known."""
        if not len(cols):
            return cols
        ticks = tick_of(cols.t, self.clock.tick_s)
        if ticks.min() <= self._over:
            late = ticks <= self._over
            self._drop(kind, Drop.LATE, int(late.sum()))
            cols, ticks = cols.take(~late), ticks[~late]
        via = self.gateways.expect(batch.vias, cols.via, cols.t)
        if batch.vias and (strange := (via < 0) & (cols.via >= 0)).any():
            cols = replace(cols, via=np.where(strange, np.int32(-1), cols.via))
        slot = self.roster.slots(batch.ids, cols.vid, via, cols.t)
        if (full := slot < 0).any():
            self._drop(kind, Drop.FLEET_FULL, int(full.sum()))
            cols, ticks = cols.take(~full), ticks[~full]
        room = self.config.limits.pending_samples - self._waiting.total()
        if len(cols) > room:
            self._drop(kind, Drop.QUEUE_FULL, len(cols) - room)
            cols, ticks = cols.take(np.arange(room)), ticks[:room]
        self.samples[kind.word] += len(cols)
        if len(cols):
            numbers, counts = np.unique(ticks, return_counts=True)
            self._waiting.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
            self._last_t = max(self._last_t, float(cols.t.max()))
            self.span = (min(self.span[0], float(cols.t.min())), max(self.span[1], self._last_t))
            if not self._began:
                self._first = int(numbers[0]) if self._first is None else min(self._first, int(numbers[0]))
        if kind in self._needed:
            # the operator of the fleet gets all that this vehicle sends from now on
            self.roster.across[slot[slot >= 0]] = True
        return cols

    def _jump(self, arrivals: Arrivals, verdict: Verdict, away: tuple[float, float] | None) -> list[Spread]:
        """A batch in which time itself jumped: an end of everything wherever time goes back."""
        steps: list[Spread] = []
        held: list[Batch] = []

        def whole() -> Placed:
            found = join(held) if held else None
            held.clear()
            # who is across is known until the end of the era: before `_end`
            return self._placed(
                None if found is None else CheckedBatch(found.ids, found.kinds, found.vias, found.callsigns)
            )

        for found in one_by_one(arrivals, verdict, self._drop):
            if found is RESET:
                steps.append(_spread(whole(), self._end(away), moved=True))
                away = None
            else:
                batch, kind, cols = found
                held.append(batch.having({kind: self._accept(batch, kind, cols)}))
        steps.append(_spread(whole(), self._clock(self.clock.closed, away), moved=True))
        return steps

    def _drop(self, kind: Kind, reason: str, n: int = 1) -> None:
        if n:
            self.drops[kind.word, reason] += n

    # -- time -----------------------------------------------------------------------------------------------

    def _clock(self, tick: int, away: tuple[float, float] | None) -> Clock:
        """Every tick up to this one is over."""
        first = self._start(tick)
        notes, gateways = self._notes()
        if not self._began or tick <= self._over:
            return Clock(away, notes, gateways, first)
        self._over, self._ahead = tick, NEVER
        for k in [k for k in self._waiting if k <= tick]:
            del self._waiting[k]
        return Clock(away, notes, gateways, first, tick, forget=self._tidy(tick))

    def _start(self, tick: int) -> int | None:
        """The first tick of all, if it is over with this one and was not told before."""
        if self._began or self._first is None or self._first > tick:
            return None
        self._began = True
        self._over = self._first - 1
        return self._first

    def _end(self, away: tuple[float, float] | None) -> Clock:
        """Time has gone back for good: run what there is, and begin again."""
        last_t = self._last_t
        tick = int(np.ceil(last_t / self.clock.tick_s)) if last_t > -np.inf else NEVER
        clock = replace(self._clock(tick, away), forget=(), end_t=last_t)
        self._begin()
        return clock

    def _tidy(self, tick: int) -> tuple[str, ...]:
        """Who has left by now, and who has to leave."""
        t = tick * self.clock.tick_s
        if (turn := periods_over(t, EVICT_EVERY_S)) > self._evicted:
            self._evicted = turn
            self.roster.evict(t)
        limit = self.config.limits.max_gateways
        self.gateways.door.tick(limit - len(self.gateways.number), limit)
        gone = tuple(self.roster.make_room(t)) if len(self.roster) > room_for(self.roster.capacity) else ()
        self.crowded_out += len(gone)
        return gone

    def _notes(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        notes = tuple(self.clock.all_notes())
        return notes, tuple(self.gateways.names) if notes else ()

    # -- for the operators ----------------------------------------------------------------------------------

    def _placed(self, batch: CheckedBatch | None) -> Placed:
        """The samples, and to which operators their vehicles belong."""
        if batch is None or not batch.kinds:
            return NOTHING
        bucket, across = self.roster.places(batch.ids)
        return batch, bucket % np.int32(self.shards), across

    def _turn(self, steps: list[Spread]) -> Turn:
        self._number += 1
        return Turn(self._number, self.shards, steps)

    # -- life beyond one process ----------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The whole state."""
        state = {
            "clock": self.clock.snapshot(), "gateways": self.gateways.snapshot(), "roster": self.roster.snapshot(),
            "drops": [[kind, reason, n] for (kind, reason), n in self.drops.items()], "samples": dict(self.samples),
            "crowded_out": self.crowded_out, "number": self._number, "away": self._away,
            "waiting": list(self._waiting.items()), "first": self._first, "began": self._began,
            "last_t": self._last_t, "over": self._over, "evicted": self._evicted, "span": list(self.span),
        }  # fmt: skip
        return bytes(StateEncoder().encode(state))

    def load(self, dump: bytes) -> None:
        """Take over a dump, whatever the number of operators was. ValueError: it has another tick length."""
        state = decode_state(dump)
        if state["clock"]["tick_s"] != self.clock.tick_s:
            raise ValueError(f"state has tick_s {state['clock']['tick_s']}, configured is {self.clock.tick_s}")
        self.clock.restore(state["clock"])
        self.gateways.restore(state["gateways"])
        self.gateways.declare(self._declared, self.config.limits.max_gateways)
        self.roster.restore(state["roster"])
        self.drops = Counter({(kind, reason): n for kind, reason, n in state["drops"]})
        self.samples = Counter(state["samples"])
        self._number, self._away, self.crowded_out = state["number"], state["away"], state["crowded_out"]
        self._waiting = Counter(dict(state["waiting"]))
        self._first, self._began = state["first"], state["began"]
        self._last_t, self._over, self._evicted = state["last_t"], state["over"], state["evicted"]
        self.span = (state["span"][0], state["span"][1])


def _spread(placed: Placed, clock: Clock, *, moved: bool = False) -> Spread:
    return Spread(*placed, moved, clock)


def kinds_across(config: Config) -> frozenset[Kind]:
    """The streams that detectors need which judge vehicles by each other; all of them where one does not say."""
    needed: set[Kind] = set()
    for detector in REGISTRY.values():
        declaration = detector.declaration
        for kind in declaration.kinds if not declaration.alone else ():
            if section_of(config, "detectors", kind.name).enabled:
                needed |= {stream for group in kind.needs for stream in group} or EVERY_KIND
    return frozenset(needed)
