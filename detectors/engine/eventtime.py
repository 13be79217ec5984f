"""Event time: decides for each arriving sample whether it is on time, late, or of a clock that is off.

Pure bookkeeping, used by the pipeline only. Every decision depends on the samples' own times and their order of
arrival, one by one, so it is the same for any chunking of the input.

Time is cut into ticks: tick k ends at k * tick_s and its window is ((k-1) * tick_s, k * tick_s]. With M the fleet's
time (senders/line.py: no single sender can move it), every tick that ends before M - wait is closed; the wait is
lateness_s, more while many senders lag. What becomes of a sample:
- accepted, at its own time with the known offset of its sender taken off;
- late: it belongs to a closed tick. Dropped;
- clock: its sender's clock jumps about. Dropped;
- time_jump: it is too far ahead of M, or more than max_jump_s behind. It is held. If a sample on the line arrives next,
  what was held is dropped: somebody's clock is wrong, and senders/ learns by how much. If instead most senders are
  held, agreeing with each other (those that go back or are alone for jump_confirm_s), or nobody else speaks for a
  while, then time itself has jumped: forward (a gap in the input) the samples are let in, backward (a simulation was
  restarted) the pipeline starts a new era.

`notes` says once per tick which senders are off; the detector `clock` makes alarms of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.senders.line import (
    ACCEPT,
    ALONE_LEAST_S,
    ALONE_REPORTS,
    DOUBT_N,
    HELD,
    LATE,
    NEARER,
    REFUSED,
    RESUME,
    REVIEW,
    STRAY,
    admit,
    on_line,
)
from watchkeeper.detectors.engine.senders.majority import review
from watchkeeper.detectors.engine.senders.records import DEEP_S, PROVEN, Arrived, Judged, Rules, closed_tick
from watchkeeper.detectors.engine.senders.strays import blame, join_run, new_run, stray
from watchkeeper.detectors.engine.senders.table import SenderTable
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import Drop, Kind

__all__ = ["ACCEPT", "HELD", "LATE", "REFUSED", "EventClock", "HeldSample", "Verdict", "closed_tick", "tick_of"]

# Held samples are kept to be let in later; a longer run than this before confirmation is cut at its old end.
HELD_MAX = 10_000
# Samples that come this many max_jump_s apart can still agree: a lone vehicle may report once in five minutes.
SPARSE = 10
# Where most senders are not heard any more, those that are left must go on alone so long, and so often, to be believed;
# six times as long if they go back by minutes, which may be what a link had kept back.
ALONE_S, ALONE_SAMPLES, ALONE_BACK = 10.0, 5, 6.0
# So many samples, for each second between reports of the others, if they do not go on at the pace that is known of
# them; and ten times as many as one sender usually sends between two samples of others: a clock that runs away is no
# silence of the others.
ROUGH_SAMPLES, ROUGH_ROWS, ROUGH_MAX = 30, 10, 1000


@dataclass(frozen=True, slots=True)
class HeldSample:
    """One sample set aside: enough to let it in later, at the time t that its sender means."""

    kind: Kind
    name: str
    via: str
    t: float
    data: F8
    callsign: str = ""


@dataclass(slots=True)
class Verdict:
    """What becomes of a batch: for each sample its time, offset taken off, and ACCEPT, LATE, HELD or REFUSED.

    `resets` are the sample numbers before which a new era begins; `released` are held samples (number of the
    sample at whose arrival they were let in, their own row) to be treated as accepted just before it.
    """

    codes: U1
    t: F8
    resets: list[int] = field(default_factory=list)
    released: list[tuple[int, HeldSample]] = field(default_factory=list)
    shifted: bool = False
    """Whether any time differs from that of the sample."""


class EventClock:
    """The fleet's time, the closed ticks, every sender's clock, and the samples held because time may have jumped."""

    def __init__(self, time: Time, capacity: int) -> None:
        self.tick_s = time.tick_s
        self.held: list[HeldSample] = []
        self.retune(time)
        self._table = SenderTable(capacity, time.lateness_s)

    def retune(self, time: Time) -> None:
        """Take new limits; tick_s needs a restart because ticks are numbered by it."""
        self.lateness_s = time.lateness_s
        self.max_jump_s = time.max_jump_s
        self.jump_confirm_s = time.jump_confirm_s
        self._rules = Rules(self.tick_s, time.lateness_s, time.max_jump_s, time.clock_tolerance_s)

    @property
    def t_max(self) -> float:
        """The fleet's time; -inf before the first sample."""
        return float(self._table.now["t"])

    @property
    def closed(self) -> int:
        """The newest closed tick."""
        return int(self._table.now["closed"])

    def admit(
        self,
        t: F8,
        names: list[str],
        who: I4,
        via: I4,
        row: Callable[[int, float], HeldSample],
        drop: Callable[[Kind, str], None],
    ) -> Verdict:
        """Judge samples in arrival order: sample i is of the vehicle `names[who[i]]` and came by gateway `via[i]`.

        `row(i, t)` fetches sample i with another time, `drop` counts a held sample given up.
        """
        verdict = Verdict(np.zeros(len(t), np.uint8), np.empty(len(t)))
        table, judged = self._table, Judged(verdict.codes, verdict.t)
        number = table.numbers(names, who)[who]
        i = 0
        while i < len(t):
            table.now["held"] = len(self.held)
            arrived = Arrived(t, number, via)
            i, why = admit(arrived, i, table.senders, table.high, table.now, self._rules, judged)
            if why == STRAY:
                resets = len(verdict.resets)
                self._suspect(i, number[i], row(i, float(verdict.t[i])), verdict, drop)
                if len(verdict.resets) > resets:
                    number = self._table.numbers(names, who[i:])[who]
                i += 1
            elif why == REVIEW:
                self._table.note(self._rules)
            elif why in (RESUME, NEARER):
                self._resume(i, float(verdict.t[i]), names[who[i]], verdict, drop, decided=why == RESUME)
        verdict.shifted = bool(self._table.now["off"]) and bool((verdict.t != t).any())
        return verdict

    def _suspect(
        self, i: int, sender: int, sample: HeldSample, verdict: Verdict, drop: Callable[[Kind, str], None]
    ) -> None:
        """A sample that is too far from the fleet's time: of a clock that is off, or the first of a new time."""
        table, now, record = self._table, self._table.now, self._table.senders[sender]
        newest = max(now["t"], now["leader_t"])
        if record["unsteady"]:
            verdict.codes[i] = REFUSED
            stray(record, sample.t - newest, now, self._rules)
            blame(record, now)
            return
        verdict.codes[i] = HELD
        join_run(record, sample.t, now)
        self.held.append(sample)
        oldest_t = now["held_t"] if len(self.held) > 1 else np.inf
        now["held_t"] = min(oldest_t, sample.t) if sample.t > now["t"] else oldest_t
        if len(self.held) > HELD_MAX:
            self._drop(self.held.pop(0), drop)
        # another gap, and nobody has contradicted those before it
        gap = now["active"] <= 1 and record["n"] > 0 and now["run_senders"] == 1 and self._is_gap(sample.t)
        agree = table.agree(sample.t, self.lateness_s, self._older_s(sample.t, record), sender)
        if gap or self._jumped(agree):
            names = table.names_of(agree)
            back = sample.t < now["t"]
            far_s = np.inf if now["run_ordered"] else max(self.max_jump_s, now["reach_s"])
            self._give_up_but(
                lambda held: held.name in names and abs(held.t - sample.t) <= far_s and (back or self._is_open(held.t)),
                drop,
            )
            if back:
                verdict.resets.append(i)
                table.begin(self.lateness_s)
            self._let_in(i, self.held, verdict)
        # while there is but one other, which of the two is right may be seen soon
        elif stray(record, sample.t - newest, now, self._rules):
            table.note(self._rules)
            if not now["confirmed"]:
                self._give_up_but(lambda held: held.name != sample.name, drop)

    def _older_s(self, t: float, record: Any) -> float:
        """Samples of others agree with one of time t if they are at most this much older."""
        now = self._table.now
        if t > now["t"] and now["run_ordered"] and 2 * record["run_n"] <= len(self.held) + 1:
            # reports that are rare: senders take turns, and each goes on from the one before
            return np.inf
        return max(float(now["reach_s"]), DEEP_S)

    def _is_gap(self, t: float) -> bool:
        """Whether a sample ahead is far from the one before it."""
        return len(self.held) > 1 and self.t_max < self.held[-2].t < t - SPARSE * self.max_jump_s

    def _is_open(self, t: float) -> bool:
        """Whether the tick of this time is not closed yet."""
        return int(np.ceil(t / self.tick_s)) > self.closed

    def _give_up_but(self, keep: Callable[[HeldSample], bool], drop: Callable[[Kind, str], None]) -> None:
        """Drop what is held, apart from some."""
        kept = [held for held in self.held if keep(held)]
        self.held = [held for held in self.held if not keep(held)]
        self.give_up(drop)
        self.held = kept

    def _let_in(self, i: int, held: list[HeldSample], verdict: Verdict, *, move: bool = True) -> None:
        """Time has got as far as these, at the arrival of sample i."""
        verdict.released += [(i, sample) for sample in held]
        self.held = []
        self._jump(held, move=move)

    def _resume(
        self, i: int, t: float, name: str, verdict: Verdict, drop: Callable[[Kind, str], None], *, decided: bool
    ) -> None:
        """A sample on the line has arrived: what is held was no jump, unless time has got as far as that with it.

        If that is not decided, only what time has got as far as is let in.
        """
        now = self._table.now
        # what is within reach from here would have been taken had it come after this one
        last_t = t + max(self._rules.tolerance_s, float(now["reach_s"]))
        let_in = [held for held in self.held if now["t"] < held.t <= last_t]
        rest = [held for held in self.held if not now["t"] < held.t <= last_t]
        self._doubt_lone(name)
        # one sender against another, or against those that come back: nothing of the other is given up yet
        others = {held.name for held in rest}
        if decided:
            others = (self._with_lone(rest) if now["confirmed"] else others) - {name}
        undecided = [held for held in rest if held.name in others]
        self.held = [held for held in rest if held.name not in others]
        self.give_up(drop)
        self._let_in(i, let_in, verdict, move=False)
        self.held, now["resumed"] = undecided, True
        now["held_t"] = min((held.t for held in undecided if held.t > now["t"]), default=np.inf)
        if decided and now["confirmed"]:
            new_run(now)
        else:
            # those of whom nothing is held any more have no part in a jump
            self._table.leave_run({held.name for held in let_in} - others)

    def _doubt_lone(self, name: str) -> None:
        """Somebody is back: was one sender heard alone meanwhile, off the line from its first sample on?"""
        now, first = self._table.now, self.held[0]
        number = self._table.number(first.name)
        if number < 0 or now["doubt"] or name in {held.name for held in self.held}:
            return
        record = self._table.senders[number]
        trusted = record["n"] > PROVEN and not record["named"] and not record["unsteady"]
        last_t = max(held.t for held in self.held if held.name == first.name)
        # nobody else was heard since but those who agree, and it goes on at its own pace
        agree = all(first.t <= held.t <= last_t + self._rules.tolerance_s for held in self.held)
        alone = agree and now["row"] >= len(self.held) and now["run_smooth"] and now["active"] > 2
        long_s = max(ALONE_LEAST_S, ALONE_REPORTS * float(now["every_s"]))
        if trusted and alone and first.t > now["t"] and last_t - first.t >= long_s:
            now["doubt"], now["doubt_n"], now["doubt_t"] = number + 1, DOUBT_N, last_t

    def _with_lone(self, held: list[HeldSample]) -> set[str]:
        """The sender that was heard alone, while others may be behind it, and those who agree with it."""
        now = self._table.now
        newest_t = {sample.name: sample.t for sample in held}
        lone_t = newest_t.get(self._table.name_of(int(now["doubt"]) - 1), np.inf) if now["doubt"] else np.inf
        return {name for name, t in newest_t.items() if abs(t - lone_t) <= DEEP_S}

    def _jumped(self, agree: Bool) -> bool:
        """Whether the senders that agree have the new time: they are most of all, or nobody else speaks."""
        now = self._table.now
        votes, active = self._table.votes(agree)
        names = self._table.names_of(agree)
        mine = self.held if now["run_senders"] == votes else [held for held in self.held if held.name in names]
        behind_s, span_s = now["t"] - mine[-1].t, mine[-1].t - mine[0].t
        if votes > now["active"] - active:
            # forward at once; back only if they go on, because a broker may deliver again what is seconds old
            at_once = votes > 1 and (behind_s < 0.0 or not now["confirmed"])
            return at_once or span_s >= self.jump_confirm_s
        n = min(len(mine), int(now["row"]))
        if n < ALONE_SAMPLES or self._most_others(names) > votes:
            return False
        span_s = mine[-1].t - mine[-n].t
        if behind_s < 0.0 and now["run_smooth"]:
            return bool(span_s >= max(ALONE_S, self.jump_confirm_s, 3.0 * now["every_s"]))
        rough = max(ROUGH_SAMPLES * max(1.0, now["every_s"]), ROUGH_ROWS * now["row_usual"])
        if votes == 1 and now["active"] > 1 and n < min(rough, ROUGH_MAX):
            return False
        patience = ALONE_BACK if 0.0 < behind_s < SPARSE * self.max_jump_s else 1.0
        return span_s >= patience * max(ALONE_S, self.jump_confirm_s)

    def _most_others(self, names: Set[str]) -> int:
        """How many other senders of held samples agree with each other, at most."""
        newest_t = np.sort(list({held.name: held.t for held in self.held if held.name not in names}.values()))
        return int((np.searchsorted(newest_t, newest_t + DEEP_S, "right") - np.arange(len(newest_t))).max(initial=0))

    def _jump(self, held: list[HeldSample], *, move: bool) -> None:
        """These are on the line now, and the fleet's time if it moves with them."""
        names = [sample.name for sample in held]
        numbers = self._table.numbers(names, np.arange(len(names), dtype=np.int32))
        now = self._table.now
        newest_t: dict[str, float] = {}
        for number, sample in zip(numbers.tolist(), held, strict=True):
            lead_s = 0.0 if now["t"] == -np.inf else min(sample.t - now["t"], now["reach_s"])
            sender = self._table.senders[number]
            on_line(sender, sample.t, lead_s, int(sender["via"]) - 1, now)
            # it was no stray after all
            sender["strays"] = 0.0
            sender["odd"] = False
            if move:
                newest_t[sample.name] = max(sample.t, newest_t.get(sample.name, -np.inf))
            elif sample.t > now["leader_t"] > -np.inf:
                via = int(sender["via"]) - 1
                voter = -1 - via if now["gateways_vote"] and via >= 0 else number + 1
                now["leader"], now["leader_voter"], now["leader_t"], now["compared"] = number + 1, voter, sample.t, 0
        if not move:
            return
        new_run(now)
        # as far as two have got, where there are two
        now["t"] = max(now["t"], sorted(newest_t.values())[-2:][0])
        now["leader"], now["leader_voter"], now["leader_t"] = 0, 0, -np.inf
        review(self._table.senders, self._table.high, now, self._rules)
        now["closed"] = max(int(now["closed"]), closed_tick(now["t"], self.tick_s, now["wait_s"]))

    def give_up(self, drop: Callable[[Kind, str], None]) -> None:
        """Drop what is held: the input has ended."""
        for held in self.held:
            self._drop(held, drop)
        self.held = []

    def _drop(self, held: HeldSample, drop: Callable[[Kind, str], None]) -> None:
        behind_s = self.t_max - held.t
        drop(held.kind, Drop.LATE if 0.0 < behind_s <= self.max_jump_s + self.lateness_s else Drop.TIME_JUMP)

    def own_t(self, t: F8, names: list[str], who: I4) -> F8:
        """The times that the senders of these samples mean: known offsets taken off."""
        offset_s: F8 = self._table.senders["offset_s"][self._table.numbers(names, who)]
        return t - offset_s[who]

    def reach(self, t: float) -> None:
        """The fleet's time is t at least, whatever the senders here say."""
        self._table.now["t"] = max(self.t_max, t)

    @property
    def noted_t(self) -> float:
        """The time of the first note that waits; inf when there is none."""
        return min((note.t for note in self._table.notes), default=np.inf)

    def take_notes(self, era: int, t: float) -> list[ClockNote]:
        """The notes up to t of an era; they are not given twice."""
        return self._table.take_notes(era, t)

    def hear(self, notes: Iterable[ClockNote]) -> None:
        """Notes that were made elsewhere."""
        self._table.notes += notes

    def all_notes(self) -> list[ClockNote]:
        """Every note that waits, for those who take notes elsewhere; they are not given twice."""
        notes, self._table.notes = self._table.notes, []
        return notes

    def forget_gateways(self, numbers: I4) -> None:
        """See SenderTable."""
        self._table.forget_gateways(numbers)

    def gauges(self) -> dict[str, float]:
        """See SenderTable."""
        return self._table.gauges()

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        held = [[int(h.kind), h.name, h.via, h.t, h.data, h.callsign] for h in self.held]
        return {"tick_s": self.tick_s, "table": self._table.snapshot(), "held": held}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot. ValueError: of another version."""
        self._table.restore(state["table"])
        self.held = [HeldSample(Kind(kind), *rest) for kind, *rest in state["held"]]


@njit(cache=True)
def tick_of(t: F8, tick_s: float) -> I8:
    """The tick whose window contains each time."""
    k = np.empty(t.size, np.int64)
    for i in range(t.size):
        k[i] = int(np.ceil(t[i] / tick_s))
    return k
