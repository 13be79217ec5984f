"""The trade-off of the conflict alarms: what other counts and thresholds would have given, from one run's evidence.

A point is one rule: N epochs in a row at or over a threshold; everything else about the debouncing is as configured.
The thresholds are those of a loss that is near, and rise with the time to it as the configured one does. They are
probabilities where the scores are (all within 0 … 1, as is the configured threshold), and otherwise multiples of the
configured one.
"""

from __future__ import annotations

import msgspec

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog, Rebounce
from watchkeeper.evaluation.alarms.verdicts import Figures, Truth, figures, judge

COUNTS = (1, 3, 5, 10)
PROBABILITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MULTIPLES = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class Point(msgspec.Struct, frozen=True):
    """One rule and what it gives. Shares and times of nothing are None."""

    n: int
    m: int
    threshold: float
    alarms: int
    pairs_nuisance_share: float | None
    nuisance_share: float | None
    missed_eligible_share: float | None
    late_eligible_share: float | None
    warning_median_s: float | None
    warning_p10_s: float | None


class Curve(msgspec.Struct, frozen=True):
    """The configured rule's point, as the pipeline itself gave it, and the points of all others by (n, threshold)."""

    configured: Point
    points: list[Point]
    probability: bool
    """Whether the thresholds are probabilities."""


def trade_off(log: EvidenceLog, rule: Debounce, truth: Truth, own: Figures) -> Curve:
    """The curve around the figures `own` of the configured rule."""
    probability = log.threshold <= 1.0 and log.score_max <= 1.0
    values = PROBABILITIES if probability else tuple(log.threshold * k for k in MULTIPLES)
    # without any evidence the threshold is unknown and no rule raises anything
    thresholds = sorted({*values, log.threshold}) if log.score_max > 0.0 else []
    rebounce = Rebounce(log, rule)
    points = []
    for n in sorted({*COUNTS, rule.n}):
        for threshold, alarms in zip(thresholds, rebounce.alarms(n, n, thresholds), strict=True):
            points.append(_point(n, n, threshold, figures(*judge(alarms, truth), truth.sky)))
    return Curve(_point(rule.n, rule.m, log.threshold, own), points, probability)


def _point(n: int, m: int, threshold: float, f: Figures) -> Point:
    return Point(
        n, m, threshold, f.alarms, f.pairs_nuisance_share, f.nuisance_share,
        f.missed_eligible_share, f.late_eligible_share, f.warning_median_s, f.warning_p10_s,
    )  # fmt: skip
