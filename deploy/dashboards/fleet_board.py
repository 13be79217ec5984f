"""Fleet overview: what is out there, what is wrong with it, and can the picture be relied on?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import GOOD_BAD, NONE_SOME, Query, board, graph, number, section


def build() -> Dashboard:
    """The dashboard."""
    made = board("watchkeeper-fleet", "Watchkeeper / Fleet overview", "Vehicles, alarms and input of the whole fleet.")
    section(
        made, "",
        number("Watching", "1 while alarms can be relied on", Query("min(watchkeeper_ready{@})"), steps=GOOD_BAD,
               words={"0": "no", "1": "yes"}),
        number("Vehicles", "In the fleet table", Query("sum(watchkeeper_vehicles{@})")),
        number("Active alarms", "Of every kind; symptoms count with their incident",
               Query("sum(watchkeeper_alarms_without_symptoms{@})")),
        number("Warnings", "Active alarms of the highest severity",
               Query('sum(watchkeeper_alarms_without_symptoms{@, severity="warning"})'), steps=NONE_SOME),
        number("Open incidents", "Alarms with one cause are one incident", Query("sum(watchkeeper_incidents_open{@})")),
        number("Behind the world", "Wall clock minus the newest sample's own time",
               Query("max(time() - watchkeeper_event_timestamp_seconds{@})"), unit="s", decimals=1,
               steps=((None, "green"), (5.0, "orange"), (30.0, "red"))),
    )  # fmt: skip
    section(
        made, "Alarms",
        graph("Active alarms by kind", "After debouncing",
              Query("sum by (kind) (watchkeeper_alarms_active{@})", "{{kind}}"), stacked=True),
        graph("Active alarms by severity", "After debouncing",
              Query("sum by (severity) (watchkeeper_alarms_without_symptoms{@})", "{{severity}}"), stacked=True),
        graph("Alarms raised", "In the last five minutes, by kind",
              Query('sum by (kind) (increase(watchkeeper_alarm_events_total{@, state="raised"}[5m]))', "{{kind}}")),
        graph("Open incidents by diagnosis", "What the diagnosis takes for their cause",
              Query("sum by (type) (watchkeeper_incidents_diagnosed{@})", "{{type}}"), stacked=True),
    )  # fmt: skip
    section(
        made, "Input",
        graph("Vehicles", "In the fleet table, by daemon", Query("watchkeeper_vehicles{@}", "{{instance}}"), width=8),
        graph("Samples", "Accepted, by stream",
              Query("sum by (stream) (rate(watchkeeper_samples_total{@}[$__rate_interval]))", "{{stream}}"),
              unit="cps", width=8),
        graph("Refused", "Payloads and samples that were not used, by reason",
              Query("sum by (reason) (rate(watchkeeper_drops_total{@}[$__rate_interval]))", "{{reason}}"),
              unit="cps", width=8),
    )  # fmt: skip
    return made
