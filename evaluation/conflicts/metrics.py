"""The 31 metrics of an episode, and a few others, from its columns and series. Definitions: the docs page.

Names and formulas are those of docs/evaluation/conflicts.md. A metric of nothing is NaN where "nothing" must not look
like "perfect" or "collided"; shares whose document divides by max(1, …) are 0 then.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.kernels.windows import Matching, steps_of
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.reward import FASTER_UNIT_KT, TURN_UNIT_DEG, recomputable, reward_parts
from watchkeeper.evaluation.conflicts.series import Series, ways_nm
from watchkeeper.streams.batch import F8, Bool

METRICS = (
    "tp", "fp", "fn", "tn", "precision", "recall", "f1_score", "ghost_conflict", "missed_conflict",
    "min_separation_nm", "num_los_events", "total_los_duration", "num_conflict_steps",
    "alert_duty_cycle", "alerts_per_min", "total_alert_time_s", "avg_lead_time_s",
    "flight_time_s", "total_path_length_nm", "path_efficiency", "waypoint_reached_ratio",
    "total_extra_path_nm", "avg_extra_path_nm", "avg_extra_path_ratio",
    "num_interventions", "num_interventions_matched", "num_interventions_false",
    "resolution_fail_rate", "los_failure_rate", "oscillation_rate", "reward_total",
)  # fmt: skip
# What the document gives a second method or another name for, and the figure an operator means.
BESIDE = ("alerts_per_min_from_steps", "alert_onsets_per_min", "min_CPA_nm")
# A typical scenario takes this long; path_efficiency compares with it.
EXPECTED_S = 300.0
# A mean heading command smaller than this has no direction.
DEADZONE_DEG = 2.0


def detection(m: Matching) -> dict[str, float]:
    """Who was detected."""
    precision, recall = m.tp / max(1, m.tp + m.fp), m.tp / max(1, m.tp + m.fn)
    return {
        "tp": m.tp,
        "fp": m.fp,
        "fn": m.fn,
        "tn": m.quiet_steps,
        "precision": precision,
        "recall": recall,
        "f1_score": 2.0 * precision * recall / max(1e-9, precision + recall),
        "ghost_conflict": m.fp / max(1, m.fp + m.quiet_steps),
        "missed_conflict": m.fn / max(1, m.fn + m.tp),
    }


def safety(s: Series) -> dict[str, float]:
    """How close they came."""
    starts = s.lost & ~np.concatenate(([False], s.lost[:-1]))
    return {
        "min_separation_nm": _least(s.separation_nm),
        "num_los_events": int(np.count_nonzero(starts)),
        "total_los_duration": int(np.count_nonzero(s.lost)),
        "num_conflict_steps": int(np.count_nonzero(s.conflict)),
        "min_CPA_nm": _least(s.dcpa_nm),
    }


def alerting(e: Episode, m: Matching) -> dict[str, float]:
    """How much alarm there was."""
    on = int(np.count_nonzero(m.alert))
    onsets = int(np.count_nonzero(m.alert & ~np.concatenate(([False], m.alert[:-1]))))
    alert_s, flight_s = on * e.step_s, _flight_s(e)
    return {
        "alert_duty_cycle": on / len(m.alert) if len(m.alert) else 0.0,
        "alerts_per_min": alert_s / max(1.0, flight_s / 60.0),
        "total_alert_time_s": alert_s,
        "avg_lead_time_s": float(np.mean(m.leads)) * e.step_s if m.leads else math.nan,
        "alerts_per_min_from_steps": on * 60.0 / e.step_s,
        "alert_onsets_per_min": onsets / (flight_s / 60.0) if flight_s > 0.0 else math.nan,
    }


def efficiency(e: Episode) -> dict[str, float]:
    """How far they flew; agents that nobody commands are not counted."""
    mine = e.controlled.any(axis=0) & e.present.any(axis=0)
    path_nm, direct_nm = ways_nm(e.lat, e.lon, e.way_lat, e.way_lon)
    flight_s = _flight_s(e)
    way = mine & ~np.isnan(direct_nm)
    n = max(1, int(way.sum()))
    extra_nm = float(np.maximum(0.0, path_nm[way] - direct_nm[way]).sum())
    return {
        "flight_time_s": flight_s,
        "total_path_length_nm": float(path_nm[mine].sum()),
        "path_efficiency": min(1.0, EXPECTED_S / max(1.0, flight_s)),
        "waypoint_reached_ratio": float(np.count_nonzero(e.completed & mine)) / max(1, int(mine.sum())),
        "total_extra_path_nm": extra_nm,
        "avg_extra_path_nm": extra_nm / n,
        "avg_extra_path_ratio": float((path_nm[way] / np.maximum(1e-6, direct_nm[way]) - 1.0).sum()) / n,
    }


def behaviour(s: Series, m: Matching) -> dict[str, float]:
    """Whether commands came when there was something to act upon."""
    total = int(np.count_nonzero(s.intervening))
    right = int(np.count_nonzero(s.intervening & s.conflict & m.alert))
    return {
        "num_interventions": total,
        "num_interventions_matched": right,
        "num_interventions_false": total - right,
    }


def resolution(e: Episode, s: Series, m: Matching, separation_nm: float, window_s: float) -> dict[str, float]:
    """What became of the conflicts that were acted upon. One that lasts to the end has no time after it to judge."""
    later = steps_of(window_s, e.step_s)
    failed, judged, lost = 0, 0, 0
    for g, _ in m.pairs:
        start, end = m.truth[g]
        after = s.level_nm[end : end + later]
        if len(after):
            judged += 1
            failed += not after.min() > separation_nm
        lost += bool(s.lost[start:end].any())
    return {
        "resolution_fail_rate": failed / judged if judged else math.nan,
        "los_failure_rate": lost / len(m.pairs) if m.pairs else math.nan,
    }


def oscillation(e: Episode) -> float:
    """How restless the commands are: reversals of the mean heading command, and total variation of both commands."""
    turn, faster = _mean_command(e.turn_deg), _mean_command(e.faster_kt)
    if len(turn) < 2:
        return 0.0
    active = (np.abs(turn[:-1]) >= DEADZONE_DEG) & (np.abs(turn[1:]) >= DEADZONE_DEG)
    flips = np.count_nonzero(active & (np.sign(turn[:-1]) != np.sign(turn[1:]))) / max(1, int(active.sum()))
    jitter = np.abs(np.diff(turn)).mean() / TURN_UNIT_DEG + np.abs(np.diff(faster)).mean() / FASTER_UNIT_KT
    return float(0.5 * (flips + jitter / 2.0))


def reward(e: Episode, s: Series, separation_nm: float) -> tuple[float, str]:
    """The sum of all rewards, and where it comes from: recorded, recomputed or none (NaN)."""
    if (~np.isnan(e.reward)).any():
        return float(np.nansum(e.reward)), "recorded"
    if recomputable(e):
        return float(sum(part.sum() for part in reward_parts(e, s, separation_nm).values())), "recomputed"
    return math.nan, "none"


def _least(values: F8) -> float:
    """The smallest; NaN when there is no pair at any step."""
    found = float(values.min(initial=math.inf))
    return found if math.isfinite(found) else math.nan


def _flight_s(e: Episode) -> float:
    return float(e.t[-1] - e.t[0]) if len(e.t) > 1 else 0.0


def _mean_command(command: F8) -> F8:
    """Per step over the agents that are commanded; 0 where nobody is."""
    given: Bool = ~np.isnan(command)
    mean: F8 = np.where(given, command, 0.0).sum(axis=1) / np.maximum(given.sum(axis=1), 1)
    return mean
