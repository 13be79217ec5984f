"""Exact intervals of counted events."""

from __future__ import annotations

from scipy.stats import chi2

from watchkeeper.evaluation.shared.bootstrap import Interval


def poisson_95(count: int) -> Interval:
    """The exact 95 % interval of a Poisson mean of which `count` events were seen (Garwood).

    >>> [round(end, 2) for end in poisson_95(0)], [round(end, 2) for end in poisson_95(3)]
    ([0.0, 3.69], [0.62, 8.77])
    """
    low = float(chi2.ppf(0.025, 2 * count)) / 2.0 if count else 0.0
    return low, float(chi2.ppf(0.975, 2 * count + 2)) / 2.0
