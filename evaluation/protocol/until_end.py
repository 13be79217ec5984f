"""Attacks that last until the flight ends: is a lie still called one minutes later?

Every attack of the study once more in every flight that is judged, one onset each, early enough to last for minutes
where the flight is long enough, and without an end. The figures are those of the attacks of half a minute, and three
more: epochs over the threshold after the first minute, how much of that time an alarm was up, and whether one was up
when the flight ended. Flight by flight, so that all of it fits into memory. Called by study.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.evaluation.attacks.catalogue import Attack
from watchkeeper.evaluation.protocol.cases import Case, Judged, judged, plan
from watchkeeper.evaluation.protocol.figures import GroupFigures, group_figures
from watchkeeper.evaluation.protocol.run import Through, Trace, run
from watchkeeper.evaluation.protocol.splits import MIXED, Material
from watchkeeper.streams.batch import Bool

# From here on an attack is late: the filters have had the time to follow it.
LATE_S = 60.0


class Late(msgspec.Struct, frozen=True):
    """One attack after its first minute; shares are 0 to 1, None where no case lasted so long."""

    attack: str
    cases: int
    lasted_s: float
    """Mean time from the onset to the flight's end."""
    recall_1: float | None
    """Late epochs over the 1 % threshold."""
    alarm_up: float | None
    """Late epochs during which an alarm was up."""
    alarm_at_end: float
    """Cases in which an alarm was up at the last fix."""


class Lasting(msgspec.Struct, frozen=True):
    """All attacks until the end of the flight."""

    late_s: float
    figures: GroupFigures
    late: list[Late]
    left_out: list[str]
    """Cases that would not have changed a sample."""


def until_end(
    material: Material,
    ours: Judged,
    config: Config,
    attacks: Sequence[Attack],
    *,
    strict: bool,
    through: Through | None = None,
) -> Lasting:
    """Run them, and judge them with the thresholds and the clean epochs of the study."""
    cases: dict[str, list[Case]] = {}
    up: dict[tuple[str, str], Bool] = {}
    left_out: list[str] = []
    for flight in material.tested:
        chosen = plan((), [flight], attacks, 1, until_end=True)
        left_out += [f"{attack} in {name}" for attack, name, _ in chosen.untouched]
        if not chosen.variants:
            continue
        traces = run(config, chosen.variants, strict=strict, through=through)
        for name, same in judged(ours.name, chosen, traces).cases.items():
            cases.setdefault(name, []).extend(same)
        for variant, trace in zip(chosen.variants, traces, strict=True):
            if (made := variant.injection) is not None:
                up[made.attack.name, flight.id] = _up(trace)[made.gps_rows]
    found = Judged(ours.name, ours.clean, cases)
    n = config.detectors.gps_imu.debounce.n
    figures = group_figures(MIXED, found, material.groups[MIXED], attacks, n)
    levels = {flight.flight: flight.threshold_1 for flight in figures.flights}
    rows = [_late(attack.name, cases[attack.name], up, levels) for attack in attacks if attack.name in cases]
    return Lasting(LATE_S, figures, rows, left_out)


def _up(trace: Trace) -> Bool:
    """Whether an alarm was up at each epoch."""
    found = np.zeros(len(trace.t), bool)
    for _, raised, cleared in trace.alarms:
        found |= (trace.t >= raised) & (trace.t < cleared)
    return found


def _late(name: str, cases: Sequence[Case], up: dict[tuple[str, str], Bool], levels: dict[str, float]) -> Late:
    over = np.concatenate([case.score > levels[case.flight_id] for case in cases])
    alarmed = np.concatenate([up[name, case.flight_id] for case in cases])
    late = np.concatenate([case.t - case.t_start >= LATE_S for case in cases])
    recall_1, alarm_up = (float(what[late].mean()) if late.any() else None for what in (over, alarmed))
    ends = [bool(up[name, case.flight_id][-1]) for case in cases]
    lasted_s = float(np.mean([case.t[-1] - case.t_start for case in cases]))
    return Late(name, len(cases), lasted_s, recall_1, alarm_up, float(np.mean(ends)))
