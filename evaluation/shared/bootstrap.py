"""Cluster bootstrap: 95 % intervals by drawing whole flights with replacement, because epochs of one flight are kin.

`weights` says how often each flight is in each resample; a statistic is then a weighted sum over flights, so hundreds
of resamples cost as little as one. With few flights the intervals are wide and coarse, and that is the truth about
them.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.streams.batch import F8

RESAMPLES = 1000
SEED = 4
Interval = tuple[float, float]


def weights(flights: int, resamples: int = RESAMPLES, seed: int = SEED) -> F8:
    """[resample, flight]: how often each flight was drawn; every row adds up to the number of flights."""
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn: F8 = rng.multinomial(flights, np.full(flights, 1.0 / flights), size=resamples).astype(np.float64)
    return drawn


def ratio(drawn: F8, part: F8, whole: F8) -> F8:
    """Sum of parts over sum of wholes in each resample, for values by flight; NaN where the whole is nothing."""
    return over(drawn @ part, drawn @ whole)


def auroc(drawn: F8, wins: F8, positives: F8, negatives: F8) -> F8:
    """Area under the pooled ROC curve in each resample.

    `wins[i, j]` counts the pairs of a positive of flight i and a negative of flight j that are in the right order, a
    tie as a half: the area is their share of all pairs (Mann and Whitney).
    """
    right = np.einsum("bi,ij,bj->b", drawn, wins, drawn)
    return over(right, (drawn @ positives) * (drawn @ negatives))


def interval(values: F8) -> Interval | None:
    """The middle 95 % of the resamples; None when there are none."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, (0.025, 0.975)).tolist()
    return low, high


def over(part: F8, whole: F8) -> F8:
    """Part over whole, NaN where the whole is 0."""
    safe = np.where(whole > 0.0, whole, np.nan)
    quotient: F8 = part / safe
    return quotient
