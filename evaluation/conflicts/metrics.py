"""The 31 metrics of an episode, and a few others, from its columns and series. Definitions: the docs page.

Names and formulas are those of docs/evaluation/conflicts.md. A metric of nothing is NaN where "nothing" must not look
like "perfect" or "collided"; shares whose document divides by max(1, …) are 0 then.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.kernels.windows import Matching, steps_of
from watchkeeper.evaluation.conflicts.distances import ways_nm
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.reward import NOT_IN_A_LOG, recomputable, reward_parts
from watchkeeper.evaluation.conflicts.series import Series
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
# What the document gives a second method or another name for, the figure an operator means, and further names of the
# project that it documents.
BESIDE = (
    "alerts_per_min_from_steps", "alert_onsets_per_min", "min_CPA_nm", "num_lead_times",
    "tn_pct", "unwanted_interventions", "excess_alert_time_s", "avg_alert_dcpa_nm", "avg_alert_tcpa_s",
    "escape_improve_hits", "num_collision_events", "flight_hours",
)  # fmt: skip
# A typical scenario takes this long; path_efficiency compares with it.
EXPECTED_S = 300.0


def detection(m: Matching) -> dict[str, float]:
    """Who was detected."""
    precision, recall = m.tp / max(1, m.tp + m.fp), m.tp / max(1, m.tp + m.fn)
    return {
        "tp": m.tp,
        "fp": m.fp,
        "fn": m.fn,
        "tn": m.quiet_steps,
        "tn_pct": m.quiet_steps / max(1, m.steps),
        "precision": precision,
        "recall": recall,
        "f1_score": 2.0 * precision * recall / max(1e-9, precision + recall),
        "ghost_conflict": m.fp / max(1, m.fp + m.quiet_steps),
        "missed_conflict": m.fn / max(1, m.fn + m.tp),
    }


def safety(s: Series, collision_nm: float, *, span: bool) -> dict[str, float]:
    """How close they came; with `span` a loss of separation of n steps lasts n - 1."""
    events = _runs(s.lost)
    return {
        "min_separation_nm": _least(s.separation_nm),
        "num_los_events": events,
        "total_los_duration": int(np.count_nonzero(s.lost)) - (events if span else 0),
        "num_collision_events": _runs(s.level_nm < collision_nm),
        "num_conflict_steps": int(np.count_nonzero(s.conflict)),
        "min_CPA_nm": _least(s.dcpa_nm),
    }


def alerting(e: Episode, m: Matching, flight_s: float) -> dict[str, float]:
    """How much alarm there was."""
    on = int(np.count_nonzero(m.alert))
    alert_s = on * e.step_s
    return {
        "alert_duty_cycle": on / len(m.alert) if len(m.alert) else 0.0,
        "alerts_per_min": alert_s / max(1.0, flight_s / 60.0),
        "total_alert_time_s": alert_s,
        "avg_lead_time_s": float(np.mean(m.leads)) * e.step_s if m.leads else 0.0,
        "num_lead_times": len(m.leads),
        "alerts_per_min_from_steps": on * 60.0 / e.step_s,
        "alert_onsets_per_min": _runs(m.alert) / (flight_s / 60.0) if flight_s > 0.0 else math.nan,
    }


def efficiency(e: Episode, flight_s: float, *, of_none: float) -> dict[str, float]:
    """How far they flew; agents that nobody commands are not counted. `of_none`: a mean over no agents."""
    mine = e.controlled.any(axis=0) & e.present.any(axis=0)
    path_nm, direct_nm = ways_nm(e.lat, e.lon, e.way_lat, e.way_lon)
    way = mine & ~np.isnan(direct_nm)
    n = int(way.sum())
    extra_nm = float(np.maximum(0.0, path_nm[way] - direct_nm[way]).sum())
    return {
        "flight_time_s": flight_s,
        "flight_hours": int(np.count_nonzero(e.present & e.controlled)) * e.step_s / 3600.0,
        "total_path_length_nm": float(path_nm[mine].sum()),
        "path_efficiency": min(1.0, EXPECTED_S / max(1.0, flight_s)),
        "waypoint_reached_ratio": float(np.count_nonzero(e.completed & mine)) / max(1, int(mine.sum())),
        "total_extra_path_nm": extra_nm,
        "avg_extra_path_nm": extra_nm / n if n else of_none,
        "avg_extra_path_ratio": float((path_nm[way] / np.maximum(1e-6, direct_nm[way]) - 1.0).mean()) if n else of_none,
    }


def resolution(e: Episode, s: Series, m: Matching, separation_nm: float, window_s: float) -> dict[str, float]:
    """What became of the conflicts that were acted upon.

    One that lasts to the end of the episode has no time after it; it is judged on the episode's last `window_s`.
    """
    later, steps = steps_of(window_s, e.step_s), len(s.level_nm)
    failed, lost = 0, 0
    for g, _ in m.pairs:
        start, end = m.truth[g]
        judged = slice(end, end + later) if end < steps else slice(max(0, steps - later), steps)
        failed += not s.level_nm[judged].min(initial=math.inf) > separation_nm
        lost += bool(s.lost[start:end].any())
    n = len(m.pairs)
    return {
        "resolution_fail_rate": failed / n if n else math.nan,
        "los_failure_rate": lost / n if n else math.nan,
    }


def reward(e: Episode, s: Series, separation_nm: float, team_potential: str) -> tuple[float, str]:
    """The sum of all rewards, and where it comes from: recorded, recomputed (except for …) or none (NaN)."""
    if (~np.isnan(e.reward)).any():
        return float(np.nansum(e.reward)), "recorded"
    if recomputable(e):
        parts = reward_parts(e, s, separation_nm, team_potential)
        return float(sum(part.sum() for part in parts.values())), f"recomputed, except: {NOT_IN_A_LOG}"
    return math.nan, "none"


def _runs(flag: Bool) -> int:
    """How often it begins to be set."""
    return int(np.count_nonzero(flag & ~np.concatenate(([False], flag[:-1]))))


def _least(values: F8) -> float:
    """The smallest; NaN when there is no pair at any step."""
    found = float(values.min(initial=math.inf))
    return found if math.isfinite(found) else math.nan
