"""How safe the traffic was: events per flight hour against a target level of safety, and how near aircraft came.

Takes the metrics of episodes, as `conflicts()` gives them or as dictionaries with the same names. Rates are per flight
hour of an aircraft, distances in NM. Called by api.py; docs/evaluation/conflicts.md says what each figure means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2

from watchkeeper.evaluation.shared.bootstrap import weights
from watchkeeper.streams.batch import F8

# Collisions per flight hour and dimension that ICAO accepts en route (Annex 11, Doc 9689).
TARGET_PER_HOUR = 5e-9
# What is counted, by the metric that counts it. The target is one for collisions.
LOSS, COLLISION = "loss of separation", "collision"
EVENTS = {LOSS: "num_los_events", COLLISION: "num_collision_events"}
RATES = ("events", "flight_hours", "per_hour", "low_95", "high_95", "target_per_hour")
MET, MISSED, OPEN = "met", "missed", "not shown"
_CURVE_POINTS = 121

Metrics = Mapping[str, float]


def risk(episodes: Sequence[Metrics], target_per_hour: float = TARGET_PER_HOUR) -> list[dict[str, Any]]:
    """One row per kind of event: count, hours, the rate with its exact Poisson interval, target and verdict.

    The target is one for collisions. It is met if the whole interval is at or below it, missed if all of it is above,
    and otherwise not shown.

    >>> quiet = {"num_los_events": 1, "num_collision_events": 0, "flight_hours": 100.0}
    >>> [(row["per_hour"], row["verdict"]) for row in risk([quiet], target_per_hour=0.04)]
    [(0.01, ''), (0.0, 'met')]
    """
    if not 0.0 < target_per_hour < math.inf:
        raise ValueError(f"target_per_hour is {target_per_hour!r}, expected a number above 0")
    hours = math.fsum(metrics["flight_hours"] for metrics in episodes)
    rows = []
    for event, metric in EVENTS.items():
        count = int(sum(metrics[metric] for metrics in episodes))
        low, high = (limit / hours if hours > 0.0 else math.nan for limit in poisson_95(count))
        judged = event == COLLISION
        rows.append(
            {
                "event": event,
                "events": count,
                "flight_hours": hours,
                "per_hour": count / hours if hours > 0.0 else math.nan,
                "low_95": low,
                "high_95": high,
                "target_per_hour": target_per_hour if judged else math.nan,
                "verdict": _verdict(low, high, target_per_hour) if judged else "",
            }
        )
    return rows


def poisson_95(count: int) -> tuple[float, float]:
    """The exact (Garwood) 95 % interval of a Poisson mean of which this many were seen."""
    low = float(chi2.ppf(0.025, 2 * count)) / 2.0 if count else 0.0
    return low, float(chi2.ppf(0.975, 2 * count + 2)) / 2.0


def survival(episodes: Sequence[Metrics], up_to_nm: float) -> list[dict[str, Any]]:
    """The share of episodes whose least separation is more than each distance, with a pointwise 95 % bootstrap band.

    Whole episodes are drawn with replacement. Those without a pair have no least separation and are left out.
    """
    least = np.array([metrics["min_separation_nm"] for metrics in episodes], np.float64)
    least = least[np.isfinite(least)]
    if not len(least):
        return []
    at = np.linspace(0.0, up_to_nm, _CURVE_POINTS)
    farther: F8 = (least[:, None] > at[None, :]).astype(np.float64)
    low, high = np.quantile(weights(len(least)) @ farther / len(least), (0.025, 0.975), axis=0)
    columns = (at, farther.mean(axis=0), low, high)
    names = ("separation_nm", "survival", "low_95", "high_95")
    return [dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True)]


def _verdict(low: float, high: float, target: float) -> str:
    return MET if high <= target else MISSED if low > target else OPEN
