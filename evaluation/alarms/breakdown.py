"""Where and how far ahead the alarms are good: by look-ahead time, and by airspace.

By look-ahead: of the losses before which both were in view for that long, the share that had been alarmed by then, and
the share that a straight line would have shown then (probe.py). And of the alarms that predicted a loss so far
ahead, how many were true, valid or nuisances. By airspace: the same figures as for the whole log, in bands of altitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from watchkeeper.evaluation.alarms.probe import time_to_loss_s
from watchkeeper.evaluation.alarms.verdicts import (
    FORESEEN,
    IN_VIEW_S,
    NUISANCE,
    TRUE,
    VALID,
    AlarmVerdict,
    LossVerdict,
    Truth,
    wilson,
)

LOOK_AHEAD_S = (0, 10, 20, 30, 45, 60, 90, 120)
# Circuits and approaches, terminal areas, the climb to and descent from cruise, cruise.
BANDS_FT = (-math.inf, 3_000.0, 10_000.0, 24_500.0, math.inf)


class LookAhead(msgspec.Struct, frozen=True):
    """Losses in view by then, and how many of them were alarmed, or shown by a straight line; alarms that said so."""

    ahead_s: float
    losses: int
    alarmed: int
    straight: int
    predicted: int
    true: int
    valid: int
    nuisance: int


class Airspace(msgspec.Struct, frozen=True):
    """The figures of one band of altitude. Pairs count where they were first alarmed, losses where they began."""

    floor_ft: float | None
    ceiling_ft: float | None
    losses: int
    in_view: int
    late_or_missed: int
    pairs_alarmed: int
    pairs_nuisance: int
    pairs_nuisance_share_95: tuple[float, float] | None
    alarms: int
    nuisance_alarms: int


def by_look_ahead(alarms: Sequence[AlarmVerdict], losses: Sequence[LossVerdict], truth: Truth) -> list[LookAhead]:
    """One row per look-ahead time."""
    rows = []
    for ahead_s, next_s in pairwise([*LOOK_AHEAD_S, math.inf]):
        if ahead_s > truth.horizon_s:
            break
        in_view = [v for v in losses if v.in_view_s >= max(ahead_s, IN_VIEW_S)]
        said = [
            v.verdict for v in alarms if v.alarm.predicted_s is not None and ahead_s <= v.alarm.predicted_s < next_s
        ]
        rows.append(
            LookAhead(
                ahead_s,
                losses=len(in_view),
                alarmed=sum(v.verdict == FORESEEN and (v.warning_s or 0.0) >= ahead_s for v in in_view),
                straight=sum(_straight(v, ahead_s, truth) for v in in_view),
                predicted=len(said),
                true=said.count(TRUE),
                valid=said.count(VALID),
                nuisance=said.count(NUISANCE),
            )
        )
    return rows


def _straight(v: LossVerdict, ahead_s: float, truth: Truth) -> bool:
    second = int(v.loss.t_start - max(ahead_s, 1.0))
    return not math.isnan(time_to_loss_s(truth.tracks, v.loss.pair, second, truth.horizon_s))


def by_airspace(alarms: Sequence[AlarmVerdict], losses: Sequence[LossVerdict], truth: Truth) -> list[Airspace]:
    """One row per band of altitude in which there was anything: that of the lower of the two aircraft."""
    lost = {v.loss.pair for v in losses}
    level_of = [_level_ft(v.loss.pair, v.loss.t_start, truth) for v in losses]
    raised = [_level_ft(v.alarm.pair, v.alarm.t_raised, truth) for v in alarms]
    first: dict[tuple[str, str], float] = {}
    for v, level_ft in zip(alarms, raised, strict=True):
        first.setdefault(v.alarm.pair, level_ft)
    rows = []
    for floor_ft, ceiling_ft in pairwise(BANDS_FT):
        here = [v for v, level_ft in zip(losses, level_of, strict=True) if floor_ft <= level_ft < ceiling_ft]
        said = [v for v, level_ft in zip(alarms, raised, strict=True) if floor_ft <= level_ft < ceiling_ft]
        pairs = [pair for pair, level_ft in first.items() if floor_ft <= level_ft < ceiling_ft]
        in_view = [v for v in here if v.in_view_s >= IN_VIEW_S]
        nuisance = sum(pair not in lost for pair in pairs)
        if here or said:
            rows.append(
                Airspace(
                    floor_ft if math.isfinite(floor_ft) else None,
                    ceiling_ft if math.isfinite(ceiling_ft) else None,
                    losses=len(here),
                    in_view=len(in_view),
                    late_or_missed=sum(v.verdict != FORESEEN for v in in_view),
                    pairs_alarmed=len(pairs),
                    pairs_nuisance=nuisance,
                    pairs_nuisance_share_95=wilson(nuisance, len(pairs)) if pairs else None,
                    alarms=len(said),
                    nuisance_alarms=sum(v.verdict != TRUE for v in said),
                )
            )
    return rows


def _level_ft(pair: tuple[str, str], t: float, truth: Truth) -> float:
    """Altitude of the lower aircraft; below all if neither is known."""
    levels = [truth.tracks.altitude_ft(name, int(t)) for name in pair]
    known = [level for level in levels if not math.isnan(level)]
    return min(known, default=-1e9)
