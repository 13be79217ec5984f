"""One clock that is wrong in any way among twenty good ones: what the others send is taken as if it were not there.

Which samples are taken, and at what time, is all that alarms depend on. The fleet reports at 5, 2, 1 or 0.2 Hz, with or
without gateways; the offender is heard first, in between or ten seconds later, as often as the others or more often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from watchkeeper.config.schema import Time
from watchkeeper.detectors.engine.eventtime import ACCEPT, EventClock, HeldSample
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import Kind

T0 = 1.7e9
HONEST = 20
NAMES = [*(f"h{k}" for k in range(HONEST)), "bad"]
Rng = np.random.Generator


def offset(rng: Rng, t: F8) -> F8:
    return t + rng.choice([20.0, 3600.0, -3600.0, rng.uniform(6.0, 30.0), rng.uniform(-30.0, -6.0), 1e5, -1e9])


def creep(rng: Rng, t: F8) -> F8:
    return t + rng.choice([1.0, 2.0, 3.0, 10.0, 29.0, 31.0, 100.0, -3.0, -29.0]) * np.arange(len(t))


def jitter(rng: Rng, t: F8) -> F8:
    size_s = rng.choice([10.0, 20.0, 29.0, 60.0, 3600.0])
    return t + rng.uniform(-size_s, size_s, len(t))


def walk(rng: Rng, t: F8) -> F8:
    return t + np.cumsum(rng.normal(0.0, rng.choice([0.1, 0.3, 1.0, 10.0]), len(t)))


def runs_fast(rng: Rng, t: F8) -> F8:
    return t[0] + rng.choice([0.5, 0.9, 1.1, 2.0, 10.0]) * (t - t[0])


def slowly(rng: Rng, t: F8) -> F8:
    return t + rng.choice([0.01, 0.03, 0.1, 0.3, -0.01, -0.1]) * np.arange(len(t))


def steps(rng: Rng, t: F8) -> F8:
    return t + rng.choice([2.0, 5.0, 20.0, 3600.0, -5.0, -3600.0]) * (np.arange(len(t)) > rng.integers(len(t)))


# Those that are far off must be named within so many seconds of their second sample. With a report every five seconds
# these are two reports, and the second of them must first arrive, and two others must speak after it: a second more.
FAR_S, ANSWER_S = 10.0, 1.0
# No further off than this is right as far as the fleet can see: a delay of lateness_s, and the gaps between reports.
# Where fewer than two of the samples until then are further off, the time runs from the second one that is: some of
# those that jitter are right by chance, and one that creeps by a second per report begins with the right time.
OFF_S = 2.0
FAR: dict[str, Callable[[Rng, F8], F8]] = {"offset": offset, "creep": creep, "jitter": jitter}
ANY = FAR | {"walk": walk, "runs_fast": runs_fast, "slowly": slowly, "steps": steps}


class Scene(NamedTuple):
    who: I4
    via: I4
    t: F8
    due_t: float
    """The true time when the offender must have been named, if it is far off."""


def due(times: F8, wrong: F8) -> float:
    """When an offender must have been named that sends at these times, with those for them."""
    wait_s = max(FAR_S, 2.0 * (times[1] - times[0]) + ANSWER_S)
    second_t = times[1]
    off = times[np.abs(wrong - times) > OFF_S]
    if len(off) > 1 and off[1] > second_t + wait_s - ANSWER_S:
        second_t = off[1]
    return float(second_t + wait_s)


def scene(how: Callable[[Rng, F8], F8], seed: int) -> Scene:
    """All samples in order of arrival."""
    rng = np.random.default_rng(seed)
    period_s, delay_s = rng.choice([0.2, 0.5, 1.0, 5.0]), rng.choice([0.05, 0.1, 0.3])
    gateways = rng.choice([0, 2, 4])
    end_s = 60.0 if period_s < 5.0 else 120.0
    arrival, who, t = [], [], []
    for k in range(HONEST):
        times = T0 + rng.uniform(0.0, period_s) + np.arange(0.0, end_s, period_s)
        arrival.append(times + rng.uniform(0.0, delay_s, len(times)))
        who.append(np.full(len(times), k))
        t.append(times)
    late = rng.choice(["first", "between", "late"])
    every_s = min(period_s, rng.choice([period_s, 1.0, 0.5]))
    begin_s = 0.0 if late == "first" else rng.uniform(0.0, period_s) + 10.0 * (late == "late")
    times = T0 + begin_s + np.arange(0.0, end_s - 20.0, every_s)
    arrives = np.sort(times + rng.uniform(0.0, delay_s, len(times)))
    if late == "first":
        arrives[0] = 0.0
    arrival.append(arrives)
    who.append(np.full(len(times), HONEST))
    wrong = how(rng, times)
    t.append(wrong)
    order = np.argsort(np.concatenate(arrival), kind="stable")
    senders = np.concatenate(who)[order].astype(np.int32)
    via = (senders % gateways if gateways else np.full(len(senders), -1)).astype(np.int32)
    return Scene(senders, via, np.concatenate(t)[order], due(times, wrong))


def judge(who: I4, via: I4, t: F8, cuts: list[int]) -> tuple[list[tuple[bool, float]], list[ClockNote]]:
    """Of each sample whether it was taken, and at what time; and the notes."""
    clock, eras = EventClock(Time(), 64), 1
    taken = [(False, 0.0)] * len(t)
    for start, stop in zip([0, *cuts], [*cuts, len(t)], strict=True):

        def row(i: int, at: float, start: int = start) -> HeldSample:
            return HeldSample(Kind.GPS, NAMES[who[start + i]], "", at, np.array([float(start + i)]))

        part = slice(start, stop)
        verdict = clock.admit(t[part], NAMES, who[part], via[part], row, lambda _kind, _why: None)
        for i, (code, at) in enumerate(zip(verdict.codes.tolist(), verdict.t.tolist(), strict=True)):
            taken[start + i] = (code == ACCEPT, at if code == ACCEPT else 0.0)
        for _, held in verdict.released:
            taken[int(held.data[0])] = (True, held.t)
        eras += len(verdict.resets)
    return taken, [note for era in range(eras) for note in clock.take_notes(era, np.inf)]


def check(name: str, seed: int) -> None:
    who, via, t, due_t = scene(ANY[name], seed)
    honest = who < HONEST
    found, notes = judge(who, via, t, [])
    alone, _ = judge(who[honest], via[honest], t[honest], [])
    assert [sample for sample, good in zip(found, honest, strict=True) if good] == alone
    assert {note.name for note in notes if note.offset_s or note.unsteady or note.late} <= {"bad"}
    if name in FAR:
        assert min(note.t for note in notes) <= due_t
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(t), 30)).tolist()
    assert judge(who, via, t, cuts) == (found, notes)


@pytest.mark.parametrize("name", sorted(ANY))
def test_the_others_are_taken_as_if_it_were_not_there(name: str) -> None:
    for seed in range(6):
        check(name, seed)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ANY))
def test_the_others_are_taken_for_many_seeds(name: str) -> None:
    for seed in range(1000, 1300):
        check(name, seed)
