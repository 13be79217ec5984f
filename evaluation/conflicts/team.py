"""The team's part of the recomputed reward: a potential of the whole airspace, its change, and who is to answer for it.

Separations in NM. `least`: one value in [0, 1] from the least separation of all pairs, 0 up to the separation minimum
and 1 from twice that on. `sum`: the document's formula, everybody's separation to the nearest summed up. Called by
reward.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from watchkeeper.evaluation.conflicts.series import Series
from watchkeeper.streams.batch import F8, Bool


class Shaping(NamedTuple):
    """Coefficients of the shaping term."""

    weight: float
    gamma: float
    ema: float
    cap: float


def team_part(series: Series, collects: Bool, separation_nm: float, potential: str, c: Shaping) -> F8:
    """[step, agent]: the shaped change of the potential, by each agent's share of the pairs in violation.

    Shares average 1 over those that collect, so the sum over agents does not depend on them; without a violation
    everybody has the same. An episode without any pair has no team.
    """
    if not np.isfinite(series.level_nm).any():
        return np.zeros(collects.shape)
    if potential == "least":
        # where nobody is near anybody the separation is infinite, and the potential at its best
        value = np.clip(series.level_nm / separation_nm - 1.0, 0.0, 1.0)
    else:
        value = np.where(collects & np.isfinite(series.nearest_nm), series.nearest_nm, 0.0).sum(axis=1)
    violations = np.where(collects, series.violations, 0)
    blame = np.where(violations.any(axis=1, keepdims=True), violations, collects)
    mean = blame.sum(axis=1, keepdims=True) / np.maximum(collects.sum(axis=1, keepdims=True), 1)
    part: F8 = c.weight * _shaped(value, c)[:, None] * blame / np.where(mean > 0.0, mean, 1.0)
    return part


def _shaped(potential: F8, c: Shaping) -> F8:
    """The potential's discounted change, smoothed and capped; the first is from the potential itself."""
    before = np.concatenate((potential[:1], potential[:-1]))
    smooth, shaped = 0.0, np.zeros(len(potential))
    for k, change in enumerate((c.gamma * potential - before).tolist()):
        smooth = (1.0 - c.ema) * smooth + c.ema * change
        shaped[k] = min(max(smooth, -c.cap), c.cap)
    return shaped
