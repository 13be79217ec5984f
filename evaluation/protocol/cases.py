"""From traces to what is judged: the scores of clean epochs, and cases (one attack in one flight).

Rules, the same for clean and attacked flights:
- The score of an epoch is the detector's score over the detector's own threshold at that epoch (so 1 is its own idea of
  an anomaly, whatever its threshold does from vehicle to vehicle).
- An epoch at which `silence` was over its threshold scores infinity: the stream stopped and that was noticed.
- An epoch without any score, because the fix was lost or the detector said nothing, scores minus infinity: not
detected.
- Warm-up, the epochs before a clean flight's first score, is no negative and is counted. An attack in it is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from watchkeeper.evaluation.attacks.catalogue import Attack, inject
from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.run import Trace
from watchkeeper.streams.batch import F8

OURS = "watchkeeper"


@dataclass(frozen=True, slots=True)
class Clean:
    """The clean run of a flight after its warm-up."""

    flight_id: str
    airframe: str
    t: F8
    score: F8
    warmup_epochs: int
    unscored_epochs: int
    alarms: tuple[tuple[str, float], ...]
    """Kind and time of every alarm."""

    @property
    def hours(self) -> float:
        """From the first score to the last fix."""
        return float(self.t[-1] - self.t[0]) / 3600.0 if len(self.t) else 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One attack in one flight."""

    attack: Attack
    flight_id: str
    repeat: int
    t_start: float
    t: F8
    score: F8
    alarm_t: float | None
    """When an alarm was first raised during the attack."""
    already_on: bool
    """Whether an alarm from before the onset was still up: nothing could be raised, so the attack counts as missed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything that one detector said."""

    name: str
    clean: dict[str, Clean]
    cases: dict[str, list[Case]]
    """By attack."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: every flight clean, and with every attack as often as there are repeats."""

    variants: list[Variant]
    repeats: list[int]
    untouched: list[tuple[str, str, int]]
    """Attack, flight and repeat that would not have changed any sample, and are left out."""


def plan(
    flights: Sequence[Flight],
    attacked: Sequence[Flight],
    attacks: Sequence[Attack],
    repeats: int,
    *,
    until_end: bool = False,
) -> Plan:
    """The variants: all flights clean, and those named with attacks."""
    variants, numbers, untouched = [Variant(flight) for flight in flights], [0] * len(flights), []
    for flight in attacked:
        for attack in attacks:
            for repeat in range(repeats):
                made = inject(attack, flight, repeat=repeat, until_end=until_end)
                if made.touched:
                    variants.append(Variant(flight, made))
                    numbers.append(repeat)
                else:
                    untouched.append((attack.name, flight.id, repeat))
    return Plan(variants, numbers, untouched)


def judged(name: str, chosen: Plan, traces: Sequence[Trace]) -> Judged:
    """The traces as clean flights and cases."""
    clean: dict[str, Clean] = {}
    cases: dict[str, list[Case]] = {}
    for variant, repeat, trace in zip(chosen.variants, chosen.repeats, traces, strict=True):
        if variant.injection is None:
            clean[variant.flight.id] = _clean(variant.flight, trace)
        else:
            cases.setdefault(variant.injection.attack.name, []).append(_case(variant, repeat, trace))
    return Judged(name, clean, cases)


def not_attacked(found: Judged) -> Judged:
    """The same cases as they would have been without the attacks: scores and alarms of the clean flights."""
    cases = {name: [_without(case, found.clean[case.flight_id]) for case in same] for name, same in found.cases.items()}
    return replace(found, cases=cases)


def _without(case: Case, clean: Clean) -> Case:
    score = np.full(len(case.t), -np.inf)
    at = np.searchsorted(clean.t, case.t)
    known = (at < len(clean.t)) & np.isin(case.t, clean.t)
    score[known] = clean.score[at[known]]
    raised = [t for _, t in clean.alarms if case.t_start <= t <= case.t[-1]]
    return replace(case, score=score, alarm_t=min(raised, default=None))


def scores(trace: Trace) -> F8:
    """The score of every epoch, by the rules above."""
    said = np.where(np.isnan(trace.ratio), -np.inf, trace.ratio)
    score: F8 = np.where(trace.silent, np.inf, said)
    return score


def _clean(flight: Flight, trace: Trace) -> Clean:
    scored = np.isfinite(trace.ratio)
    first = int(np.argmax(scored)) if scored.any() else len(scored)
    alarms = tuple((kind, raised) for kind, raised, _ in trace.alarms if raised <= flight.end)
    return Clean(
        flight.id, flight.airframe, trace.t[first:], scores(trace)[first:], first, int((~scored[first:]).sum()), alarms
    )


def _case(variant: Variant, repeat: int, trace: Trace) -> Case:
    made = variant.injection
    assert made is not None
    rows = made.gps_rows
    raised = [at for _, at, _ in trace.alarms if made.t_start <= at <= made.t_end]
    already = any(at < made.t_start < until for _, at, until in trace.alarms)
    return Case(
        made.attack, variant.flight.id, repeat, made.t_start, trace.t[rows], scores(trace)[rows],
        min(raised, default=None), already,
    )  # fmt: skip
