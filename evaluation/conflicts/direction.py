"""Which way a conflict metric is better, for words such as "worse", and which metrics a comparison shows first.

Metrics that are neither, such as the number of steps in conflict, are not listed. Used by shifts/ and shift_matrix/.
"""

from __future__ import annotations

import math

HIGHER, LOWER = "higher", "lower"
BETTER = {
    **dict.fromkeys((
        "tp", "precision", "recall", "f1_score", "min_separation_nm", "min_CPA_nm", "path_efficiency",
        "waypoint_reached_ratio", "reward_total", "num_interventions_matched", "escape_improve_hits",
    ), HIGHER),
    **dict.fromkeys((
        "fp", "fn", "ghost_conflict", "missed_conflict", "num_los_events", "total_los_duration",
        "total_extra_path_nm", "avg_extra_path_nm", "avg_extra_path_ratio", "num_interventions_false",
        "resolution_fail_rate", "los_failure_rate", "oscillation_rate", "unwanted_interventions",
        "excess_alert_time_s", "num_collision_events",
    ), LOWER),
}  # fmt: skip
HEADLINES = (
    "f1_score", "precision", "recall", "ghost_conflict", "missed_conflict", "min_separation_nm", "num_los_events",
    "waypoint_reached_ratio",
)  # fmt: skip


def worse(metric: str, difference: float) -> bool | None:
    """Whether a difference is one for the worse; None where the metric has no better side, or nothing differs.

    >>> worse("f1_score", -0.1), worse("num_los_events", -1.0), worse("flight_time_s", 5.0)
    (True, False, None)
    """
    if metric not in BETTER or math.isnan(difference) or difference == 0.0:
        return None
    return (difference < 0.0) == (BETTER[metric] == HIGHER)
