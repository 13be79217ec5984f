"""What is reported: a row per attack, and averages in which every attack, or every family, counts the same.

All shares are 0 to 1, times in ms, `_95` the cluster-bootstrap interval over flights. Latencies run from the onset to
the epoch (or alarm) that caught the attack, over those that were caught, and in GPS epochs: 1 is the first attacked
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from watchkeeper.evaluation.attacks.catalogue import Attack
from watchkeeper.evaluation.protocol.cases import Judged
from watchkeeper.evaluation.protocol.metrics import FAILED_BELOW, Counts, Group
from watchkeeper.evaluation.protocol.splits import Fold
from watchkeeper.evaluation.shared import bootstrap
from watchkeeper.evaluation.shared.bootstrap import Interval
from watchkeeper.streams.batch import F8


class Epochs(msgspec.Struct, frozen=True):
    """Epoch level."""

    auroc: float | None
    auroc_95: Interval | None
    auroc_within: float | None
    """Mean over flights of each flight's own area: without what differs from flight to flight."""
    recall_1: float | None
    recall_1_95: Interval | None
    recall_5: float | None
    recall_5_95: Interval | None
    f1: float | None
    """At the 1 % threshold, against all clean epochs of the group."""


class Events(msgspec.Struct, frozen=True):
    """Event level: N epochs in a row over the calibrated threshold, and `alarm_*` for the pipeline's own alarms."""

    auroc: float | None
    recall_1: float | None
    recall_1_95: Interval | None
    recall_5: float | None
    f1: float | None
    latency_ms: float | None
    latency_epochs: float | None
    alarm_recall: float | None
    alarm_recall_95: Interval | None
    alarm_latency_ms: float | None
    alarm_latency_epochs: float | None


class AttackFigures(msgspec.Struct, frozen=True):
    """One attack in one group of flights."""

    attack: str
    family: str
    magnitude: float
    cases: int
    epoch: Epochs
    event: Events


class Macro(msgspec.Struct, frozen=True):
    """Means over attacks."""

    attacks: int
    auroc: float
    auroc_95: Interval | None
    recall_1: float
    recall_1_95: Interval | None
    recall_5: float
    recall_5_95: Interval | None
    f1: float
    event_auroc: float
    event_recall_1: float
    event_recall_1_95: Interval | None
    alarm_recall: float
    alarm_recall_95: Interval | None


class FlightFigures(msgspec.Struct, frozen=True):
    """One clean flight, judged with thresholds that others gave."""

    flight: str
    airframe: str
    calibrated_on: tuple[str, ...]
    epochs: int
    warmup_epochs: int
    unscored_epochs: int
    threshold_1: float
    threshold_5: float
    fpr_1: float | None
    fpr_5: float | None
    recall_1: float
    """Mean over attacks."""


class GroupFigures(msgspec.Struct, frozen=True):
    """Everything about one group of flights."""

    group: str
    flights: list[FlightFigures]
    fpr_1: float
    fpr_1_95: Interval | None
    fpr_5: float
    fpr_5_95: Interval | None
    windows_1: float
    """Event level: clean windows of 30 s in which N epochs in a row were over the 1 % threshold."""
    recall_1_std: float
    """Standard deviation of the flights' recall: the variance of the cross-validation."""
    macro: Macro
    by_family: Macro
    """The same with every family counting once."""
    best: str
    worst: str
    """By recall at 1 %, ties by area."""
    failures: list[str]
    """Attacks with a recall at 1 % under one half, epoch level."""
    attacks: list[AttackFigures]


def group_figures(name: str, found: Judged, folds: Sequence[Fold], attacks: Sequence[Attack], n: int) -> GroupFigures:
    """All figures of a group."""
    group = Group(name, found, folds, n)
    counted = [(attack, group.count(found.cases.get(attack.name, ()))) for attack in attacks]
    counted = [(attack, counts) for attack, counts in counted if counts.events.sum()]
    rows = [_row(attack, counts, group) for attack, counts in counted]
    by_flight = np.nanmean([bootstrap.over(c.caught_1, c.positives) for _, c in counted], axis=0)
    ranked = sorted(rows, key=lambda row: (row.epoch.recall_1 or 0.0, row.epoch.auroc or 0.0))
    return GroupFigures(
        group=name,
        flights=[_flight(group, fold, k, by_flight) for fold in folds for k in fold.test],
        fpr_1=float(group.false_1.sum() / group.negatives.sum()),
        fpr_1_95=bootstrap.interval(bootstrap.ratio(group.drawn, group.false_1, group.negatives)),
        fpr_5=float(group.false_5.sum() / group.negatives.sum()),
        fpr_5_95=bootstrap.interval(bootstrap.ratio(group.drawn, group.false_5, group.negatives)),
        windows_1=float(group.windows_1.sum() / max(group.windows.sum(), 1.0)),
        recall_1_std=float(np.nanstd(by_flight)),
        macro=_macro(rows, counted, group, by_family=False),
        by_family=_macro(rows, counted, group, by_family=True),
        best=ranked[-1].attack,
        worst=ranked[0].attack,
        failures=[row.attack for row in rows if (row.epoch.recall_1 or 0.0) < FAILED_BELOW],
        attacks=rows,
    )


def _flight(group: Group, fold: Fold, flight: str, recall_1: F8) -> FlightFigures:
    i = group.flights.index(flight)
    clean, (one, five) = group.clean[i], group.thresholds[flight]
    return FlightFigures(
        flight, clean.airframe, fold.calibrate, len(clean.score), clean.warmup_epochs, clean.unscored_epochs, one, five,
        _share(group.false_1[i], group.negatives[i]), _share(group.false_5[i], group.negatives[i]),
        float(recall_1[i]),
    )  # fmt: skip


def _row(attack: Attack, c: Counts, g: Group) -> AttackFigures:
    own = np.diag(c.wins), c.positives * g.negatives
    within = bootstrap.over(*own)
    epoch = Epochs(
        auroc=_share(c.wins.sum(), c.positives.sum() * g.negatives.sum()),
        auroc_95=bootstrap.interval(bootstrap.auroc(g.drawn, c.wins, c.positives, g.negatives)),
        auroc_within=float(np.nanmean(within)),
        recall_1=_share(c.caught_1.sum(), c.positives.sum()),
        recall_1_95=bootstrap.interval(bootstrap.ratio(g.drawn, c.caught_1, c.positives)),
        recall_5=_share(c.caught_5.sum(), c.positives.sum()),
        recall_5_95=bootstrap.interval(bootstrap.ratio(g.drawn, c.caught_5, c.positives)),
        f1=_f1(c.caught_1.sum(), g.false_1.sum(), c.positives.sum()),
    )
    event = Events(
        auroc=_share(c.event_wins.sum(), c.events.sum() * g.windows.sum()),
        recall_1=_share(c.events_1.sum(), c.events.sum()),
        recall_1_95=bootstrap.interval(bootstrap.ratio(g.drawn, c.events_1, c.events)),
        recall_5=_share(c.events_5.sum(), c.events.sum()),
        f1=_f1(c.events_1.sum(), g.windows_1.sum(), c.events.sum()),
        latency_ms=_median(c.latency_s, 1000.0),
        latency_epochs=_median(c.latency_epochs),
        alarm_recall=_share(c.alarms.sum(), c.events.sum()),
        alarm_recall_95=bootstrap.interval(bootstrap.ratio(g.drawn, c.alarms, c.events)),
        alarm_latency_ms=_median(c.alarm_s, 1000.0),
        alarm_latency_epochs=_median(c.alarm_epochs),
    )
    return AttackFigures(attack.name, attack.family, attack.magnitude, int(c.events.sum()), epoch, event)


def _macro(
    rows: Sequence[AttackFigures], counted: Sequence[tuple[Attack, Counts]], g: Group, *, by_family: bool
) -> Macro:
    families = [row.family for row in rows]
    # weights of the attacks in the mean: equal, or equal for each family and then within it
    sizes = {family: families.count(family) for family in families}
    weight = np.array([1.0 / (sizes[f] * len(sizes)) if by_family else 1.0 / len(rows) for f in families])

    def mean(of: Callable[[AttackFigures], float | None]) -> float:
        values = [of(row) for row in rows]
        return float(sum(w * (v or 0.0) for w, v in zip(weight.tolist(), values, strict=True)))

    def spread(of: Callable[[Counts], F8]) -> Interval | None:
        resampled = np.array([of(counts) for _, counts in counted])
        present = np.isfinite(resampled)
        total = (weight[:, None] * np.where(present, resampled, 0.0)).sum(axis=0)
        return bootstrap.interval(bootstrap.over(total, (weight[:, None] * present).sum(axis=0)))

    return Macro(
        attacks=len(rows),
        auroc=mean(lambda r: r.epoch.auroc),
        auroc_95=spread(lambda c: bootstrap.auroc(g.drawn, c.wins, c.positives, g.negatives)),
        recall_1=mean(lambda r: r.epoch.recall_1),
        recall_1_95=spread(lambda c: bootstrap.ratio(g.drawn, c.caught_1, c.positives)),
        recall_5=mean(lambda r: r.epoch.recall_5),
        recall_5_95=spread(lambda c: bootstrap.ratio(g.drawn, c.caught_5, c.positives)),
        f1=mean(lambda r: r.epoch.f1),
        event_auroc=mean(lambda r: r.event.auroc),
        event_recall_1=mean(lambda r: r.event.recall_1),
        event_recall_1_95=spread(lambda c: bootstrap.ratio(g.drawn, c.events_1, c.events)),
        alarm_recall=mean(lambda r: r.event.alarm_recall),
        alarm_recall_95=spread(lambda c: bootstrap.ratio(g.drawn, c.alarms, c.events)),
    )


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _f1(caught: float, false: float, positives: float) -> float | None:
    total = caught + positives + false
    return float(2.0 * caught / total) if total > 0 else None


def _median(values: Sequence[float], unit: float = 1.0) -> float | None:
    return float(np.median(values)) * unit if values else None
