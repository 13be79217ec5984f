"""Daemon health: does it keep up, do alarms leave in time, does state reach the disk?"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import GOOD_BAD, NONE_SOME, Query, board, graph, listing, number, section

RATE = "[$__rate_interval]"


def _latency(share: float, legend: str) -> Query:
    buckets = "sum by (le) (rate(watchkeeper_alarm_latency_seconds_bucket{@}[5m]))"
    return Query(f"histogram_quantile({share}, {buckets})", legend)


def build() -> Dashboard:
    """The dashboard."""
    made = board("watchkeeper-health", "Watchkeeper / Daemon health", "Throughput, latency, queues and resources.")
    section(
        made, "",
        number("Scraped", "Prometheus reaches the daemon", Query('min(up{@, job="watchkeeper"})'), steps=GOOD_BAD,
               words={"0": "no", "1": "yes"}),
        number("Broker", "Connected and subscribed", Query("min(watchkeeper_mqtt_connected{@})"), steps=GOOD_BAD,
               words={"0": "away", "1": "connected"}),
        number("Messages", "Received a second", Query(f"sum(rate(watchkeeper_messages_total{{@}}{RATE}))"), unit="cps"),
        number("Alarm latency, p99", "From the message that causes an alarm to the broker's confirmation",
               _latency(0.99, ""), unit="s", steps=((None, "green"), (0.5, "red"))),
        number("Lost unread", "Messages dropped because the queue was full, last hour",
               Query("sum(increase(watchkeeper_queue_dropped_total{@}[1h]))"), steps=NONE_SOME),
        number("Up for", "Since the start of the process",
               Query('min(time() - process_start_time_seconds{@, job="watchkeeper"})'), unit="s"),
    )  # fmt: skip
    section(
        made, "Flow",
        graph("Throughput", "Messages in, samples accepted, ticks",
              Query(f"sum(rate(watchkeeper_messages_total{{@}}{RATE}))", "messages"),
              Query(f"sum(rate(watchkeeper_samples_total{{@}}{RATE}))", "samples"),
              Query(f"sum(rate(watchkeeper_ticks_total{{@}}{RATE}))", "ticks"), unit="cps"),
        graph("Waiting", "Messages for the pipeline, samples for their tick, events for the broker's confirmation",
              Query("sum(watchkeeper_queue_depth{@})", "messages"),
              Query("sum(watchkeeper_pending_samples{@})", "samples"),
              Query("sum(watchkeeper_outbox_depth{@})", "alarm events")),
        graph("Alarm latency", "From arrival to the broker's confirmation, over five minutes",
              _latency(0.5, "p50"), _latency(0.95, "p95"), _latency(0.99, "p99"), unit="s"),
        graph("Time", "Newest sample behind the wall clock, and ticks behind the newest sample",
              Query("max(time() - watchkeeper_event_timestamp_seconds{@})", "behind the world"),
              Query("max(watchkeeper_watermark_lag_seconds{@})", "watermark lag"), unit="s", floor=False),
    )  # fmt: skip
    section(
        made, "What went wrong",
        graph("Given up", "Increase over five minutes: any of these deserves a look",
              Query("sum(increase(watchkeeper_queue_dropped_total{@}[5m]))", "messages unread"),
              Query("sum(increase(watchkeeper_mqtt_dropped_total{@}[5m]))", "outgoing messages"),
              Query("sum(increase(watchkeeper_outbox_dropped_total{@}[5m]))", "events replaced"),
              Query("sum(increase(watchkeeper_alarms_refused_total{@}[5m]))", "alarms refused"),
              Query("sum(increase(watchkeeper_journal_errors_total{@}[5m]))", "journal errors"),
              Query("sum(increase(watchkeeper_mqtt_reconnects_total{@}[5m]))", "reconnects")),
        graph("Longest stalls", "Of the event loop: the pump's longest turn so far, the last snapshot",
              Query("max(watchkeeper_pump_slice_max_seconds{@})", "pump"),
              Query("max(watchkeeper_snapshot_stall_seconds{@})", "snapshot"), unit="s"),
    )  # fmt: skip
    section(
        made, "Sources and sinks",
        listing("Sources", "Receivers and vehicles that are read without the broker; empty without any",
                Query("watchkeeper_source_connected{@}"), width=8),
        graph("Sinks: waiting", "Alarm events that webhooks and Alertmanager have not taken; empty without any",
              Query("watchkeeper_sink_queue_depth{@}", "{{sink}} {{instance}}"), width=8),
        graph("Sinks: delivered and failed", "Failures are repeated, what is refused or dropped is not",
              Query(f"sum by (sink) (rate(watchkeeper_sink_delivered_total{{@}}{RATE}))", "{{sink}} delivered"),
              Query(f"sum by (sink) (rate(watchkeeper_sink_failures_total{{@}}{RATE}))", "{{sink}} failed"),
              Query(f"sum by (sink) (rate(watchkeeper_sink_refused_total{{@}}{RATE}))", "{{sink}} refused"),
              Query(f"sum by (sink) (rate(watchkeeper_sink_dropped_total{{@}}{RATE}))", "{{sink}} dropped"),
              unit="cps", width=8),
    )  # fmt: skip
    section(
        made, "Resources",
        graph("CPU", "Cores",
              Query(f'rate(process_cpu_seconds_total{{@, job="watchkeeper"}}{RATE})', "{{instance}}"), width=6),
        graph("Memory", "Resident", Query('process_resident_memory_bytes{@, job="watchkeeper"}', "{{instance}}"),
              unit="bytes", width=6),
        graph("On disk", "Journal and snapshot", Query("sum(watchkeeper_journal_bytes{@})", "journal"),
              Query("sum(watchkeeper_snapshot_bytes{@})", "snapshot"), unit="bytes", width=6),
        graph("Open files", "Of the process", Query('process_open_fds{@, job="watchkeeper"}', "{{instance}}"), width=6),
        listing("Builds", "What runs where", Query("watchkeeper_build_info{@}"), hidden=("Value",)),
    )  # fmt: skip
    return made
