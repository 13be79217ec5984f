"""The smallest attack of each family that is still found: bisection on its magnitude.

An attack counts as detectable when the pipeline raises an alarm in at least half of the cases (flights and repeats).
The search runs between the two ends that the catalogue gives, on a logarithmic scale, until they are within a tenth. It
takes detection to grow with the magnitude; where it does not, the result is one of the crossings. All families are
searched at the same time, one run of the pipeline per step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.evaluation.attacks.catalogue import Attack, catalogue
from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.protocol.cases import judged, plan
from watchkeeper.evaluation.protocol.run import Through, run

DETECTABLE = 0.5
CLOSE = 1.1
# Given a list of attacks, the share of cases found of each.
Recall = Callable[[Sequence[Attack]], dict[str, float]]


class Detectable(msgspec.Struct, frozen=True):
    """The result for one family; no magnitude when even the strongest end was missed or the weakest found."""

    family: str
    unit: str
    magnitude: float | None
    bracket: tuple[float, float]
    """Missed at the first, found at the second."""
    note: str


def smallest(recall: Recall) -> list[Detectable]:
    """Search all families that have a range."""
    known = catalogue()
    ends: dict[str, tuple[float, float]] = {}
    for name, family in known.families.items():
        if family.search is not None:
            weak, strong = family.search if family.stronger == "larger" else family.search[::-1]
            ends[name] = (weak, strong)
    at_weak = _ask(recall, {f: weak for f, (weak, _) in ends.items()})
    at_strong = _ask(recall, {f: strong for f, (_, strong) in ends.items()})
    open_ = {f: ends[f] for f in ends if not at_weak[f] and at_strong[f]}
    while wide := {f: e for f, e in open_.items() if max(e) / min(e) > CLOSE}:
        middle = {f: math.sqrt(weak * strong) for f, (weak, strong) in wide.items()}
        found = _ask(recall, middle)
        for f, (weak, strong) in wide.items():
            open_[f] = (weak, middle[f]) if found[f] else (middle[f], strong)
    results: list[Detectable] = []
    for f, (weak, strong) in ends.items():
        unit = known.families[f].unit
        if f in open_:
            results.append(Detectable(f, unit, open_[f][1], open_[f], "found in half of the cases or more"))
        elif at_weak[f]:
            results.append(Detectable(f, unit, None, (weak, strong), "found even at the weak end"))
        else:
            results.append(Detectable(f, unit, None, (weak, strong), "missed even at the strong end"))
    return results


def _ask(recall: Recall, sizes: dict[str, float]) -> dict[str, bool]:
    attacks = {f: catalogue().sized(f, size) for f, size in sizes.items()}
    found = recall(list(attacks.values()))
    # an attack that changes no sample anywhere is not found
    return {f: found.get(attack.name, 0.0) >= DETECTABLE for f, attack in attacks.items()}


def alarm_recall(
    config: Config, flights: Sequence[Flight], repeats: int, *, strict: bool, through: Through | None
) -> Recall:
    """Recall by the pipeline's own alarms on these flights."""

    def recall(attacks: Sequence[Attack]) -> dict[str, float]:
        chosen = plan(flights, flights, attacks, repeats)
        cases = judged("", chosen, run(config, chosen.variants, strict=strict, through=through)).cases
        whole = len(flights) * repeats
        # a case that would not have changed a sample is part of the whole: an attack without effect is not found
        return {name: sum(case.alarm_t is not None for case in same) / whole for name, same in cases.items()}

    return recall
