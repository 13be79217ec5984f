"""Alarms against losses of separation: which alarm was followed by one, which loss was foreseen, and by how long.

Used by `evaluate alarms` for the alarms that the pipeline raised and, along the trade-off curve, for those that it
would have raised with another rule. All times are event time in seconds. docs/evaluation/alarms.md has the definitions.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from watchkeeper.evaluation.alarms.flights import MAX_GAP_S, Flight, Sky
from watchkeeper.evaluation.alarms.probe import Tracks, time_to_loss_s
from watchkeeper.evaluation.alarms.truth import Loss

# An alarm that was cleared up to this long before the loss still warned of it.
GRACE_S = 30.0
# A warning this long before leaves time to act and to see that it helped.
EARLY_S = 45.0
# Losses before which both were in view for so long should be warned of, and by so much.
IN_VIEW_S = 30.0
# Half of those in view for so long should be warned of by as much: what a terminal algorithm at Dallas/Fort Worth gave.
MEDIAN_S = 38.0
TRUE, VALID, NUISANCE = "true", "valid", "nuisance"
FORESEEN, LATE, MISSED = "foreseen", "late", "missed"


class Alarm(msgspec.Struct, frozen=True):
    """One alarm from raised to cleared (None: still active when the log ends)."""

    pair: tuple[str, str]
    t_raised: float
    t_cleared: float | None
    severity: str = ""
    """The worst it reached; unknown for alarms that were only worked out."""
    first: str = ""
    """Its severity when it was raised."""
    predicted_s: float | None = None
    """The time to loss that it said when it was raised."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What alarms are held against."""

    sky: Sky
    losses: Sequence[Loss]
    horizon_s: float
    tracks: Tracks


@dataclass(frozen=True, slots=True)
class AlarmVerdict:
    """An alarm and what became of it."""

    alarm: Alarm
    verdict: str
    undecided: bool
    """No loss followed, and its pair was not seen to the end of the horizon."""


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """A loss and whether it was foreseen. `warning_s` is negative when the alarm came late, None without one."""

    loss: Loss
    verdict: str
    warning_s: float | None
    in_view_s: float
    """How long before the loss both had come into view; nobody can warn earlier."""


class Figures(msgspec.Struct, frozen=True):
    """The figures of merit, as they go to JSON. A share or time of nothing is None."""

    losses: int
    losses_eligible: int
    losses_marginal: int
    foreseen: int
    missed_all: int
    missed_eligible: int
    missed_eligible_marginal: int
    missed_eligible_share: float | None
    late_all: int
    late_all_median_s: float | None
    late_all_worst_s: float | None
    late_eligible: int
    late_eligible_marginal: int
    late_eligible_share: float | None
    late_eligible_median_s: float | None
    late_eligible_worst_s: float | None
    losses_in_view: int
    """Losses before which both were in view for IN_VIEW_S or more, steadily or not."""
    late_in_view: int
    missed_in_view: int
    late_or_missed_in_view_share: float | None
    warned_in_view_share: float | None
    """Of these, those warned of by IN_VIEW_S or more."""
    warning_in_view_median_s: float | None
    """Over the losses in view for MEDIAN_S or more, late ones below 0; None if half of them were missed."""
    warned_fully_share: float | None
    """Of all losses, those warned of by IN_VIEW_S or for all the time that both were in view but two reports."""
    pairs_alarmed: int
    pairs_nuisance: int
    pairs_nuisance_share: float | None
    pairs_nuisance_share_95: tuple[float, float] | None
    alarms: int
    alarms_true: int
    alarms_valid: int
    """Right when raised: a straight line led to a loss, which did not come."""
    nuisance: int
    nuisance_share: float | None
    nuisance_share_95: tuple[float, float] | None
    nuisance_undecided: int
    warning_median_s: float | None
    warning_p10_s: float | None
    warning_eligible_median_s: float | None
    """Over all eligible losses, late ones below 0; None if half of them were missed."""
    early_eligible: int
    in_view_eligible: int
    """Eligible losses warned of EARLY_S before or earlier, and those that were in view by then."""
    alarms_per_flight_hour: float | None
    nuisance_per_hour: float | None
    """Nuisance alarms over the hours that the log lasts."""


def judge(alarms: Sequence[Alarm], truth: Truth) -> tuple[list[AlarmVerdict], list[LossVerdict]]:
    """A verdict for every alarm and for every loss."""
    alarms_of, losses_of = defaultdict(list), defaultdict(list)
    for alarm in alarms:
        alarms_of[alarm.pair].append(alarm)
    for loss in truth.losses:
        losses_of[loss.pair].append(loss)
    number = truth.tracks.number
    return (
        [_judge_alarm(alarm, losses_of[alarm.pair], truth, number) for alarm in alarms],
        [_judge_loss(loss, alarms_of[loss.pair], _in_view_s(loss, truth.sky, number)) for loss in truth.losses],
    )


def _judge_alarm(alarm: Alarm, losses: Iterable[Loss], truth: Truth, number: dict[str, int]) -> AlarmVerdict:
    flights = [truth.sky.flights[number[name]] for name in alarm.pair]
    foreseeable = alarm.t_raised + truth.horizon_s
    until = max(_cleared(alarm), foreseeable)
    if any(loss.t_start <= until and loss.t_end >= alarm.t_raised for loss in losses):
        return AlarmVerdict(alarm, TRUE, undecided=False)
    seen_until = min(float(flight.pos_t.max(initial=-math.inf)) for flight in flights)
    ahead_s = time_to_loss_s(truth.tracks, alarm.pair, int(alarm.t_raised), truth.horizon_s)
    verdict = NUISANCE if math.isnan(ahead_s) else VALID
    return AlarmVerdict(alarm, verdict, undecided=seen_until < foreseeable)


def _judge_loss(loss: Loss, alarms: Iterable[Alarm], in_view_s: float) -> LossVerdict:
    before = [a for a in alarms if a.t_raised <= loss.t_start and _cleared(a) >= loss.t_start - GRACE_S]
    if before:
        return LossVerdict(loss, FORESEEN, loss.t_start - min(alarm.t_raised for alarm in before), in_view_s)
    during = [alarm for alarm in alarms if loss.t_start < alarm.t_raised <= loss.t_end]
    if during:
        return LossVerdict(loss, LATE, loss.t_start - min(alarm.t_raised for alarm in during), in_view_s)
    return LossVerdict(loss, MISSED, None, in_view_s)


def _in_view_s(loss: Loss, sky: Sky, number: dict[str, int]) -> float:
    return loss.t_start - max(_seen_since(sky.flights[number[name]], loss.t_start) for name in loss.pair)


def _seen_since(flight: Flight, t: float) -> float:
    """When the aircraft came into view for the last time before t: its first position, or that after a long gap."""
    heard = flight.pos_t[flight.pos_t <= t]
    breaks = np.flatnonzero(np.diff(heard) > MAX_GAP_S)
    return float(heard[breaks[-1] + 1 if len(breaks) else 0]) if len(heard) else t


def _cleared(alarm: Alarm) -> float:
    return math.inf if alarm.t_cleared is None else alarm.t_cleared


def figures(alarms: Sequence[AlarmVerdict], losses: Sequence[LossVerdict], sky: Sky) -> Figures:
    """The figures of all verdicts together."""
    eligible = sum(v.loss.eligible for v in losses)
    missed = [v for v in losses if v.verdict == MISSED]
    missed_eligible = [v for v in missed if v.loss.eligible]
    late = [v for v in losses if v.verdict == LATE]
    late_eligible = [v for v in late if v.loss.eligible]
    delays_s = [-v.warning_s for v in late if v.warning_s is not None]
    delays_eligible_s = [-v.warning_s for v in late_eligible if v.warning_s is not None]
    warnings_s = [v.warning_s for v in losses if v.verdict == FORESEEN and v.warning_s is not None]
    of_eligible_s = [-math.inf if v.warning_s is None else v.warning_s for v in losses if v.loss.eligible]
    typical_s = _median(of_eligible_s)
    pairs = {v.alarm.pair for v in alarms}
    pairs_nuisance = len(pairs - {v.loss.pair for v in losses})
    nuisance = [v for v in alarms if v.verdict != TRUE]
    in_view = [v for v in losses if v.in_view_s >= IN_VIEW_S]
    unwarned = Counter(v.verdict for v in in_view)
    long_s = [-math.inf if v.warning_s is None else v.warning_s for v in losses if v.in_view_s >= MEDIAN_S]
    median_s = _median(long_s)
    return Figures(
        losses=len(losses),
        losses_eligible=eligible,
        losses_marginal=sum(v.loss.marginal for v in losses),
        foreseen=len(warnings_s),
        missed_all=len(missed),
        missed_eligible=len(missed_eligible),
        missed_eligible_marginal=sum(v.loss.marginal for v in missed_eligible),
        missed_eligible_share=_over(len(missed_eligible), eligible),
        late_all=len(late),
        late_all_median_s=_median(delays_s),
        late_all_worst_s=max(delays_s, default=None),
        late_eligible=len(late_eligible),
        late_eligible_marginal=sum(v.loss.marginal for v in late_eligible),
        late_eligible_share=_over(len(late_eligible), eligible),
        late_eligible_median_s=_median(delays_eligible_s),
        late_eligible_worst_s=max(delays_eligible_s, default=None),
        losses_in_view=len(in_view),
        late_in_view=unwarned[LATE],
        missed_in_view=unwarned[MISSED],
        late_or_missed_in_view_share=_over(unwarned[LATE] + unwarned[MISSED], len(in_view)),
        warned_in_view_share=_over(sum(_warned(v, IN_VIEW_S) for v in in_view), len(in_view)),
        warning_in_view_median_s=median_s if median_s is not None and math.isfinite(median_s) else None,
        warned_fully_share=_over(
            sum(_warned(v, min(IN_VIEW_S, v.in_view_s - 2.0 * sky.interval_s)) for v in losses), len(losses)
        ),
        pairs_alarmed=len(pairs),
        pairs_nuisance=pairs_nuisance,
        pairs_nuisance_share=_over(pairs_nuisance, len(pairs)),
        pairs_nuisance_share_95=wilson(pairs_nuisance, len(pairs)) if pairs else None,
        alarms=len(alarms),
        alarms_true=len(alarms) - len(nuisance),
        alarms_valid=sum(v.verdict == VALID for v in nuisance),
        nuisance=len(nuisance),
        nuisance_share=_over(len(nuisance), len(alarms)),
        nuisance_share_95=wilson(len(nuisance), len(alarms)) if alarms else None,
        nuisance_undecided=sum(v.undecided for v in nuisance),
        warning_median_s=_median(warnings_s),
        warning_p10_s=float(np.percentile(warnings_s, 10)) if warnings_s else None,
        warning_eligible_median_s=typical_s if typical_s is not None and math.isfinite(typical_s) else None,
        early_eligible=sum(warning_s >= EARLY_S for warning_s in of_eligible_s),
        in_view_eligible=sum(v.loss.eligible and v.in_view_s >= EARLY_S for v in losses),
        alarms_per_flight_hour=_over(len(alarms), sky.hours),
        nuisance_per_hour=_over(len(nuisance), sky.lasts_h),
    )


def _warned(v: LossVerdict, by_s: float) -> bool:
    return v.verdict == FORESEEN and v.warning_s is not None and v.warning_s >= by_s


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def wilson(part: int, whole: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a share; the default z gives 95 %."""
    share, z2 = part / whole, z * z
    middle = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    half = z / (1 + z2 / whole) * math.sqrt(share * (1 - share) / whole + z2 / (4 * whole * whole))
    return max(0.0, middle - half), min(1.0, middle + half)
