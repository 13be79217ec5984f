"""Metrics of what the controller commanded: interventions, the threats it acted upon, and how restless it was.

Angles in degrees, speeds in knots, distances in NM. Called by detector.py; docs/evaluation/conflicts.md defines each.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.kernels.windows import Matching
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.reward import FASTER_UNIT_KT, TURN_UNIT_DEG
from watchkeeper.evaluation.conflicts.series import Series
from watchkeeper.streams.batch import F8, Bool

# A mean heading command smaller than this has no direction; one of exactly this size has.
DEADZONE_DEG = 2.0


def interventions(s: Series, m: Matching) -> dict[str, float]:
    """Whether commands came when there was something to act upon."""
    total = int(np.count_nonzero(s.intervening))
    right = int(np.count_nonzero(s.intervening & s.conflict & m.alert))
    return {
        "num_interventions": total,
        "num_interventions_matched": right,
        "num_interventions_false": total - right,
        "unwanted_interventions": m.fp,
    }


def alerts(e: Episode, s: Series, m: Matching) -> dict[str, float]:
    """Time of alerts that match no conflict, and the threats that alerts answer."""
    matched = {a for _, a in m.pairs}
    unmatched = [end - start for a, (start, end) in enumerate(m.alerts) if a not in matched]
    shown = m.alert & (s.cause[:, 0] >= 0)
    return {
        "excess_alert_time_s": sum(unmatched) * e.step_s,
        "avg_alert_dcpa_nm": float(s.cause_nm[shown].mean()) if shown.any() else 0.0,
        "avg_alert_tcpa_s": float(s.cause_s[shown].mean()) if shown.any() else 0.0,
        "escape_improve_hits": int(np.count_nonzero(s.escaped)),
    }


def oscillation(e: Episode) -> float:
    """Half of the share of reversals plus half of the mean total variation.

    Reversals are those of the mean signed heading command; variation is that of the means of the absolute commands.
    """
    turn = _mean_command(e.turn_deg)
    if len(turn) < 2:
        return 0.0
    active = (np.abs(turn[:-1]) >= DEADZONE_DEG) & (np.abs(turn[1:]) >= DEADZONE_DEG)
    flips = np.count_nonzero(active & (np.sign(turn[:-1]) != np.sign(turn[1:]))) / max(1, int(active.sum()))
    turn_size, faster_size = _mean_command(np.abs(e.turn_deg)), _mean_command(np.abs(e.faster_kt))
    jitter = np.abs(np.diff(turn_size)).mean() / TURN_UNIT_DEG + np.abs(np.diff(faster_size)).mean() / FASTER_UNIT_KT
    return float(0.5 * (flips + jitter / 2.0))


def _mean_command(command: F8) -> F8:
    """Per step over the agents that are commanded; 0 where nobody is."""
    given: Bool = ~np.isnan(command)
    mean: F8 = np.where(given, command, 0.0).sum(axis=1) / np.maximum(given.sum(axis=1), 1)
    return mean
