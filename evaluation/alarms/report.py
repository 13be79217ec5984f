"""The evaluation of the alarms in words: the table, the list of losses and alarms, the trade-off. Plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from watchkeeper.evaluation.alarms.curve import Curve, Point
from watchkeeper.evaluation.alarms.verdicts import EARLY_S, IN_VIEW_S, MEDIAN_S

if TYPE_CHECKING:
    from watchkeeper.evaluation.alarms.api import Evaluation

NONE = "–"


def figures_table(e: Evaluation) -> str:
    """The figures, one a line."""
    f, c = e.figures, e.config.detectors.conflict
    rule = c.debounce
    above = f"; above {e.min_alt_ft:,.0f} ft" if e.min_alt_ft else ""
    severities = ", ".join(f"{n:,} {severity}" for severity, n in e.severity.items())
    first = " ".join(f"{n:,}" for n in e.first_severity.values())
    losses = f"{f.losses_eligible:,} eligible, {f.losses_marginal:,} marginal"
    missed = f"{percent(f.missed_eligible_share)} of {f.losses_eligible:,}; {f.missed_eligible_marginal:,} marginal"
    late = f"{percent(f.late_eligible_share)} of {f.losses_eligible:,}; {f.late_eligible_marginal:,} marginal"
    delay = f"; by {seconds(f.late_eligible_median_s)}, at worst {seconds(f.late_eligible_worst_s)}"
    in_view = (
        f"{percent(f.late_or_missed_in_view_share)} of {f.losses_in_view:,} with both in view for {IN_VIEW_S:.0f} s"
    )
    nuisance = f"no loss followed; {f.alarms_valid:,} valid; {f.nuisance_undecided:,} out of sight too soon to tell"
    early = f"{f.early_eligible:,} had {EARLY_S:.0f} s or more, {f.in_view_eligible:,} were in view by then"
    lines = [
        (
            "flight hours",
            f"{e.flight_hours:,.1f}",
            f"{e.aircraft:,} aircraft, a report every {e.interval_s:g} s{above}",
        ),
        (
            "losses of separation",
            f"{f.losses:,}",
            f"under {c.separation_nm:g} NM and {c.vertical_ft:,.0f} ft; {losses}",
        ),
        ("pairs alarmed", f"{f.pairs_alarmed:,}", f"{f.pairs_nuisance:,} of them never lost separation"),
        ("nuisance share, pairs", percent(f.pairs_nuisance_share), interval(f.pairs_nuisance_share_95)),
        ("nuisance share, alarms", percent(f.nuisance_share), interval(f.nuisance_share_95)),
        ("missed, eligible", f"{f.missed_eligible:,}", f"{missed}; {f.missed_all:,} of all {f.losses:,}"),
        (
            "late, eligible",
            f"{f.late_eligible:,}",
            f"{late}{delay if f.late_eligible else ''}; {f.late_all:,} of all {f.losses:,}",
        ),
        (
            "late or missed, in view",
            f"{f.late_in_view + f.missed_in_view:,}",
            f"{in_view}; {f.late_in_view:,} late, {f.missed_in_view:,} missed",
        ),
        (
            "warned by 30 s, in view",
            percent(f.warned_in_view_share),
            f"of these; {percent(f.warned_fully_share)} of all losses by 30 s or all the time in view",
        ),
        (
            "warning time, in view",
            seconds(f.warning_in_view_median_s),
            f"median over those in view for {MEDIAN_S:.0f} s, late ones below 0",
        ),
        ("warning time, median", seconds(f.warning_median_s), f"over {f.foreseen:,} losses foreseen"),
        ("warning time, 10th pct", seconds(f.warning_p10_s), "nine in ten had more"),
        (
            "warning time, eligible",
            seconds(f.warning_eligible_median_s),
            f"median over all {f.losses_eligible:,}, late ones below 0; {early}",
        ),
        ("alarms", f"{f.alarms:,}", f"{rule.n} of {rule.m} epochs; {severities}"),
        ("first grade", first, "advisory, caution, warning when raised"),
        ("alarms per flight hour", NONE if f.alarms_per_flight_hour is None else f"{f.alarms_per_flight_hour:.2f}", ""),
        (
            "nuisance alarms",
            f"{f.nuisance:,}",
            f"{nuisance}; {per_hour(f.nuisance_per_hour)} an hour",
        ),
        (
            "second addresses",
            f"{len(e.ghosts):,}",
            f"pairs of ids that are one aircraft; {e.ghosts_alarmed:,} of them alarmed",
        ),
    ]
    return "\n".join(f"{name:24}{value:>9}   {note}".rstrip() for name, value, note in lines)


def pair_lines(e: Evaluation) -> Iterator[str]:
    """Every loss and every alarm with its verdict; times in seconds since the log began."""
    yield f"{'':6}{'pair':22}{'from':>9}{'to':>9}  verdict"
    for v in e.losses:
        loss = v.loss
        marks = f"{'' if loss.eligible else ', not eligible'}{', marginal' if loss.marginal else ''}"
        warned = (
            "" if v.warning_s is None else f" by {v.warning_s:.0f} s" if v.warning_s >= 0 else f" {-v.warning_s:.0f} s"
        )
        yield (
            f"{'loss':6}{'~'.join(loss.pair):22}{loss.t_start - e.t_first:9.0f}{loss.t_end - e.t_first:9.0f}  "
            f"{v.verdict}{warned}; closest {loss.min_sep_nm:.2f} NM, {loss.min_vsep_ft:.0f} ft; "
            f"in view {v.in_view_s:.0f} s{marks}"
        )
    for w in e.alarms:
        alarm = w.alarm
        end = NONE if alarm.t_cleared is None else f"{alarm.t_cleared - e.t_first:.0f}"
        mark = ", undecided" if w.undecided else ""
        yield (
            f"{'alarm':6}{'~'.join(alarm.pair):22}{alarm.t_raised - e.t_first:9.0f}{end:>9}  "
            f"{w.verdict}{mark}; {alarm.severity}"
        )


def curve_table(curve: Curve) -> str:
    """The trade-off, one rule a line; the configured one is marked."""
    name = "probability" if curve.probability else "score"
    head = (
        f"{'':10}{'':13}{'':8}{'nuisance share':>18}{'eligible losses':>18}{'warning time':>18}\n"
        f"{'N in a row':>10}{name:>13}{'alarms':>8}{'pairs':>9}{'alarms':>9}{'missed':>9}{'late':>9}"
        f"{'median':>9}{'10th pct':>9}"
    )
    own = curve.configured
    points = [_line(point, own) for point in curve.points]
    if own.n != own.m:
        points.append(f"{_line(own, own)} ({own.n} of {own.m})")
    return "\n".join((head, *points))


def _line(point: Point, own: Point) -> str:
    mark = "  configured" if (point.n, point.m, point.threshold) == (own.n, own.m, own.threshold) else ""
    return (
        f"{point.n:>10}{point.threshold:>13.3g}{point.alarms:>8,}"
        f"{percent(point.pairs_nuisance_share):>9}{percent(point.nuisance_share):>9}"
        f"{percent(point.missed_eligible_share):>9}{percent(point.late_eligible_share):>9}"
        f"{seconds(point.warning_median_s):>9}{seconds(point.warning_p10_s):>9}{mark}"
    )


def percent(share: float | None) -> str:
    """A share in per cent."""
    return NONE if share is None else f"{100.0 * share:.1f} %"


def interval(bounds: tuple[float, float] | None) -> str:
    """A 95 % interval in per cent; nothing when there is none."""
    return f"95 % interval {percent(bounds[0])} to {percent(bounds[1])}" if bounds else ""


def per_hour(value: float | None) -> str:
    """A rate with two digits."""
    return NONE if value is None else f"{value:.2f}"


def seconds(value_s: float | None) -> str:
    """A time in whole seconds."""
    return NONE if value_s is None else f"{value_s:.0f} s"
