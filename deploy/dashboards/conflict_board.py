"""Conflicts: how many, how soon, how close; and does the controller see them?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import NONE_SOME, Query, board, graph, number, section

SOON: tuple[tuple[float | None, str], ...] = ((None, "red"), (60.0, "orange"), (120.0, "green"))
EVENTS = 'watchkeeper_alarm_events_total{@, kind=~"conflict|los", state!="updated"}'


def build() -> Dashboard:
    """The dashboard."""
    made = board("watchkeeper-conflicts", "Watchkeeper / Conflicts", "Predicted and actual losses of separation.")
    section(
        made, "",
        number("Pairs in conflict", "Now, before debouncing", Query("sum(watchkeeper_conflict_pairs{@})")),
        number("Separation lost", "Pairs below the minima now", Query("sum(watchkeeper_conflict_pairs_los{@})"),
               steps=NONE_SOME),
        number("Next closest approach", "Smallest time to closest approach among pairs in conflict",
               Query("min(watchkeeper_conflict_min_tcpa_seconds{@})"), unit="s", steps=SOON, decimals=0),
        number("Closest distance", "Smallest predicted distance at closest approach",
               Query("min(watchkeeper_conflict_min_dcpa_meters{@}) / 1852"), unit="suffix: NM", decimals=2),
        number("Largest probability", "Of a loss of separation, over all pairs",
               Query("max(watchkeeper_conflict_max_probability{@})"), unit="percentunit",
               steps=((None, "green"), (0.5, "red"))),
        number("Aircraft judged", "Heard well enough", Query("sum(watchkeeper_conflict_aircraft{@})")),
    )  # fmt: skip
    section(
        made, "",
        graph("Pairs", "Before debouncing; overflow: beyond max_pairs, not followed",
              Query("sum(watchkeeper_conflict_pairs{@})", "in conflict"),
              Query("sum(watchkeeper_conflict_pairs_los{@})", "separation lost"),
              Query("sum(watchkeeper_conflict_pairs_overflow{@})", "overflow")),
        graph("Active alarms", "Predicted (conflict) and actual (los) losses, by severity",
              Query('sum by (kind, severity) (watchkeeper_alarms_active{@, kind=~"conflict|los"})',
                    "{{kind}} {{severity}}"), stacked=True),
        graph("Time to closest approach", "The smallest among pairs in conflict; nothing without a conflict",
              Query("min(watchkeeper_conflict_min_tcpa_seconds{@})", "smallest TCPA"), unit="s"),
        graph("Distance at closest approach", "The smallest among pairs in conflict",
              Query("min(watchkeeper_conflict_min_dcpa_meters{@})", "smallest DCPA"), unit="lengthm"),
        graph("Probability of a loss", "Percentiles over the pairs of the last tick, and the threshold",
              Query('max by (percentile) (watchkeeper_score{@, kind="conflict"})', "p{{percentile}}"),
              Query('max(watchkeeper_score_threshold{@, kind="conflict"})', "threshold"), unit="percentunit"),
        graph("Alarms raised and cleared", "In the last five minutes",
              Query(f"sum by (kind, state) (increase({EVENTS}[5m]))", "{{kind}} {{state}}")),
    )  # fmt: skip
    section(
        made, "The controller",
        graph("Commands and conflicts", "Ghosts act on no conflict; missed conflicts are left alone",
              Query("sum(watchkeeper_intent_vehicles{@})", "under control"),
              Query("sum(watchkeeper_intent_ghosts{@})", "ghosts"),
              Query("sum(watchkeeper_intent_missed{@})", "missed"), width=8),
        graph("Precision and recall", "Over all steps so far; 0 without alerts or conflicts",
              Query("watchkeeper_intent_precision{@}", "precision {{instance}}"),
              Query("watchkeeper_intent_recall{@}", "recall {{instance}}"), unit="percentunit", width=8),
        graph("Verdicts", "tp: acted upon, fp: no conflict, fn: left alone",
              Query('sum by (verdict) (watchkeeper_intent_verdicts{@, verdict!="tn"})', "{{verdict}}"), width=8),
    )  # fmt: skip
    return made
