"""One evaluation from flights to figures: plan, run, judge; baseline, false alarms, shifts and limits.

`study` knows nothing of files or terminals; command.py gives it flights and folds and writes down what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.evaluation.attacks.catalogue import Attack, catalogue
from watchkeeper.evaluation.protocol.baseline import judge_baseline
from watchkeeper.evaluation.protocol.bound import Bound, bounds
from watchkeeper.evaluation.protocol.cases import OURS, Judged, judged, not_attacked, plan
from watchkeeper.evaluation.protocol.clean import FalseAlarms, Shift, clean_only, false_alarms, shifts
from watchkeeper.evaluation.protocol.figures import GroupFigures, Macro, group_figures
from watchkeeper.evaluation.protocol.metrics import FAILED_BELOW
from watchkeeper.evaluation.protocol.noise_floor import Floor, floor
from watchkeeper.evaluation.protocol.river import RiverFigures
from watchkeeper.evaluation.protocol.run import Through, prove_independent, run
from watchkeeper.evaluation.protocol.search import Detectable, alarm_recall, smallest
from watchkeeper.evaluation.protocol.splits import Material
from watchkeeper.evaluation.protocol.until_end import Lasting, until_end
from watchkeeper.evaluation.shared.bootstrap import RESAMPLES, SEED
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame

COLUMNS = {
    **dict.fromkeys(("group", "attack", "family"), TEXT), "magnitude": NUMBER, "cases": COUNT, "failed": FLAG,
    **dict.fromkeys(("auroc", "recall_1", "recall_5", "event_recall_1", "latency_ms"), NUMBER),
    **dict.fromkeys(("alarm_recall", "alarm_latency_ms"), NUMBER),
}  # fmt: skip


SHORT, TO_THE_END = "half a minute", "until the end"


class Failure(msgspec.Struct, frozen=True):
    """An attack that is not found: recall at 1 % under one half, epoch level."""

    group: str
    attack: str
    recall_1: float
    event_recall_1: float
    alarm_recall: float
    lasts: str = SHORT


class Result(msgspec.Struct, frozen=True):
    """results/metrics.json. The failures come first."""

    failures: list[Failure]
    false_alarms: list[FalseAlarms]
    shift: list[Shift]
    minimum_detectable: list[Detectable]
    noise_floor: list[Floor]
    """Of the test flights, without any attack: what is smaller cannot be told from it."""
    bounds: list[Bound]
    """What any detector could call within 10 s by the flights' own noise, and what was called."""
    groups: dict[str, GroupFigures]
    baseline: dict[str, GroupFigures]
    not_attacked: dict[str, Macro]
    """The same windows of the clean flights: what the averages are when nothing happens."""
    settings: dict[str, Any]
    left_out: list[str]
    """Cases that would not have changed a sample."""
    lasting: Lasting | None = None
    """The same attacks until the end of the flight."""
    notes: list[str] = []
    """Flights that are not part of it, and why."""
    river: RiverFigures | None = None
    """What online models add; only where it was asked for."""

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per group of flights and attack: how well it is found."""
        rows = [
            {
                "group": group.group, "attack": row.attack, "family": row.family, "magnitude": row.magnitude,
                "cases": row.cases, "failed": row.attack in group.failures, "auroc": row.epoch.auroc,
                "recall_1": row.epoch.recall_1, "recall_5": row.epoch.recall_5,
                "event_recall_1": row.event.recall_1, "latency_ms": row.event.latency_ms,
                "alarm_recall": row.event.alarm_recall, "alarm_latency_ms": row.event.alarm_latency_ms,
            }
            for group in self.groups.values()
            for row in group.attacks
        ]  # fmt: skip
        return rows_frame(rows, COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """All figures, ready for JSON: what `--out` writes."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def study(
    material: Material,
    profiles: dict[str, Config],
    profile: str,
    attacks: Sequence[Attack],
    *,
    repeats: int = 3,
    strict: bool = True,
    search: bool = True,
    lasting: bool = True,
    through: Through | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Result:
    """Evaluate the detector of this profile; `profiles` are all configurations, for their false alarms.

    `say` hears what is done next.
    """
    config = profiles[profile]
    n = config.detectors.gps_imu.debounce.n
    chosen = plan(list(material.flights.values()), material.tested, attacks, repeats)
    say(f"{len(material.flights)} flights, clean and with attacks: {len(chosen.variants):,} runs")
    traces = run(config, chosen.variants, strict=strict, through=through)
    say("some of them alone: is the score the same?")
    proven = prove_independent(config, chosen.variants, traces, strict=strict)
    ours = judged(OURS, chosen, traces)
    peer = judge_baseline(chosen)
    groups, baseline = (
        {name: group_figures(name, found, folds, attacks, n) for name, folds in material.groups.items()}
        for found in (ours, peer)
    )
    say("clean flights in other profiles, and with other sensors")
    clean = {profile: ours.clean} | {
        name: clean_only(material, other, strict=strict) for name, other in profiles.items() if name != profile
    }
    shifted = shifts(material, ours, config, strict=strict)
    lasted: Lasting | None = None
    if lasting:
        say("attacks until the end of the flight")
        lasted = until_end(material, ours, config, attacks, strict=strict, through=through)
    if search:
        say("the smallest magnitude that is found, family by family")
    recall = alarm_recall(config, material.tested, repeats, strict=strict, through=through)
    tested = [flight.id for flight in material.tested]
    return Result(
        failures=[
            *(failure for figures in groups.values() for failure in _failures(figures)),
            *(msgspec.structs.replace(f, lasts=TO_THE_END) for f in (_failures(lasted.figures) if lasted else ())),
        ],
        false_alarms=[
            false_alarms(name, profiles[name].detectors.gps_imu.debounce.n, [clean[name][f] for f in tested])
            for name in profiles
        ],
        shift=shifted,
        minimum_detectable=smallest(recall) if search else [],
        noise_floor=[floor(flight) for flight in material.tested],
        bounds=bounds(material.tested, ours.cases),
        groups=groups,
        baseline=baseline,
        not_attacked={
            name: group_figures(name, not_attacked(ours), folds, attacks, n).macro
            for name, folds in material.groups.items()
        },
        settings=_settings(config, profile, attacks, repeats, strict)
        | _remarks(ours)
        | {"run_alone_and_equal": proven, "threshold_from": _threshold_from(material)},
        left_out=[f"{attack} in {flight}, repeat {repeat}" for attack, flight, repeat in chosen.untouched],
        lasting=lasted,
        notes=list(material.notes),
    )


def _threshold_from(material: Material) -> str:
    if material.splits is not None:
        return "clean validation flights alone"
    return "all other flights, clean: each flight is left out in turn, because there is no third split"


def _remarks(found: Judged) -> dict[str, int]:
    """Cases that could not be found for a reason that is not the attack: they count as missed all the same."""
    cases = [case for same in found.cases.values() for case in same]
    starts = {name: float(clean.t[0]) if len(clean.t) else np.inf for name, clean in found.clean.items()}
    return {
        "cases": len(cases),
        "cases_with_an_alarm_already_on": sum(case.already_on for case in cases),
        "cases_in_the_warm_up": sum(case.t_start < starts[case.flight_id] for case in cases),
    }


def _failures(figures: GroupFigures) -> list[Failure]:
    rows = {row.attack: row for row in figures.attacks}
    return [
        Failure(
            figures.group,
            name,
            rows[name].epoch.recall_1 or 0.0,
            rows[name].event.recall_1 or 0.0,
            rows[name].event.alarm_recall or 0.0,
        )
        for name in figures.failures
    ]


def _settings(config: Config, profile: str, attacks: Sequence[Attack], repeats: int, strict: bool) -> dict[str, Any]:
    known = catalogue()
    return {
        "profile": profile,
        "debounce": msgspec.to_builtins(config.detectors.gps_imu.debounce),
        "features": "strict" if strict else "ahrs",
        "score": "detector score over its own threshold; infinite where silence is over its threshold, minus infinite "
        "where nothing was said",
        "calibration": "99 % and 95 % quantile of the clean epochs of the flights that set the threshold, without the "
        "warm-up",
        "failed_below": FAILED_BELOW,
        "bootstrap": {"resamples": RESAMPLES, "cluster": "flight", "seed": SEED},
        "repeats": repeats,
        "onset": msgspec.to_builtins(known.onset),
        "attacks": len(attacks),
        "families": len({attack.family for attack in attacks}),
        "seeds": {attack.name: attack.seed for attack in attacks},
    }
