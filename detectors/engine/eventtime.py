"""Event time: decides for each arriving sample whether it is on time, late, or from a clock that jumped.

Pure bookkeeping, used by the pipeline only. Every decision depends on the samples' own times and their order of
arrival, one by one, so it is the same for any chunking of the input.

Time is cut into ticks: tick k ends at k * tick_s and its window is ((k-1) * tick_s, k * tick_s]. With M the newest
time seen, every tick that ends before M - lateness_s is closed. Rules, each with its counter:
- late: the sample belongs to a closed tick. Dropped.
- time_jump: the sample is more than max_jump_s ahead of M, or as far behind. It is held. If an ordinary sample
  arrives next, what was held is dropped: somebody's clock is wrong. If instead the held samples go on alone,
  agreeing with each other, for jump_confirm_s, then time itself has jumped: forward (a gap in the input) they are
  let in, backward (a simulation was restarted) the pipeline starts a new era.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watchkeeper.config.schema import Time
from watchkeeper.streams.batch import F8, I8, U1
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Drop, Kind

ACCEPT, LATE, HELD = 0, 1, 2
# Held samples are kept to be let in later; a longer run than this before confirmation is cut at its old end.
HELD_MAX = 10_000
# Samples that come this many max_jump_s apart can still agree: a lone vehicle may report once in five minutes.
SPARSE = 10


@dataclass(slots=True)
class Verdict:
    """What becomes of a batch: for each sample ACCEPT, LATE or HELD; and what happened at which sample.

    `resets` are the sample numbers before which a new era begins; `released` are held samples (number of the
    sample at whose arrival they were let in, their own row) to be treated as accepted just before it.
    """

    codes: U1
    resets: list[int] = field(default_factory=list)
    released: list[tuple[int, HeldSample]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HeldSample:
    """One sample set aside: enough to let it in later."""

    kind: Kind
    name: str
    t: float
    data: F8


class EventClock:
    """The newest time, the closed ticks, and the samples held because their clock may have jumped."""

    def __init__(self, time: Time) -> None:
        self.tick_s = time.tick_s
        self.retune(time)
        self.t_max = -np.inf
        self.held: list[HeldSample] = []

    def retune(self, time: Time) -> None:
        """Take new limits; tick_s needs a restart because ticks are numbered by it."""
        self.lateness_s = time.lateness_s
        self.max_jump_s = time.max_jump_s
        self.jump_confirm_s = time.jump_confirm_s

    @property
    def closed(self) -> int:
        """The newest closed tick."""
        return closed_tick(self.t_max, self.tick_s, self.lateness_s)

    def admit(self, t: F8, row: Callable[[int], HeldSample], drop: Callable[[Kind, str], None]) -> Verdict:
        """Judge samples in arrival order. `row(i)` fetches sample i, `drop` counts a held sample given up."""
        verdict = Verdict(np.zeros(len(t), np.uint8))
        i = 0
        while i < len(t):
            start = i
            self.t_max, i = _admit(t, i, self.t_max, self.tick_s, self.lateness_s, self.max_jump_s, verdict.codes)
            if i > start and self.held:
                self.give_up(drop)
            if i < len(t):
                self._suspect(i, row(i), verdict, drop)
                i += 1
        return verdict

    def _suspect(self, i: int, sample: HeldSample, verdict: Verdict, drop: Callable[[Kind, str], None]) -> None:
        verdict.codes[i] = HELD
        if self.held:
            # does it go on from the last one, on the same side of the present?
            step = sample.t - self.held[-1].t
            same_side = (sample.t > self.t_max) == (self.held[-1].t > self.t_max)
            if not same_side or not -self.lateness_s <= step <= SPARSE * self.max_jump_s:
                self.give_up(drop)
        self.held.append(sample)
        if len(self.held) > HELD_MAX:
            drop(self.held.pop(0).kind, Drop.TIME_JUMP)
        if sample.t - self.held[0].t < self.jump_confirm_s:
            return
        if sample.t < self.t_max:
            verdict.resets.append(i)
        self.t_max = max(h.t for h in self.held)
        verdict.released += [(i, held) for held in self.held]
        self.held = []

    def give_up(self, drop: Callable[[Kind, str], None]) -> None:
        """Drop what is held: an ordinary sample has arrived, or the input has ended."""
        for held in self.held:
            drop(held.kind, Drop.TIME_JUMP)
        self.held = []

    def snapshot(self) -> dict[str, Any]:
        """Held samples are not kept: at worst a jump is confirmed a little later."""
        return {"t_max": self.t_max, "tick_s": self.tick_s}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.t_max = state["t_max"]


@njit(cache=True)
def closed_tick(t_max: float, tick_s: float, lateness_s: float) -> int:
    """The newest tick that ends before t_max - lateness_s; a very small number before the first sample."""
    if t_max == -np.inf:
        return -(2**62)
    return int(np.ceil((t_max - lateness_s) / tick_s)) - 1


@njit(cache=True)
def tick_of(t: F8, tick_s: float) -> I8:
    """The tick whose window contains each time."""
    k = np.empty(t.size, np.int64)
    for i in range(t.size):
        k[i] = int(np.ceil(t[i] / tick_s))
    return k


@njit(cache=True)
def _admit(
    t: F8, start: int, t_max: float, tick_s: float, lateness_s: float, max_jump_s: float, codes: U1
) -> tuple[float, int]:
    """Judge samples from `start` until one looks like a clock jump; the new t_max and where it stopped."""
    closed = closed_tick(t_max, tick_s, lateness_s)
    for i in range(start, t.size):
        x = t[i]
        if x > t_max:
            if x > t_max + max_jump_s and t_max > -np.inf:
                return t_max, i
            t_max = x
            closed = closed_tick(t_max, tick_s, lateness_s)
        elif int(np.ceil(x / tick_s)) <= closed:
            if x < t_max - max_jump_s - lateness_s:
                return t_max, i
            codes[i] = LATE
    return t_max, t.size
