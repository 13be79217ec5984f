"""Prometheus metrics, read from the running parts at the moment of the scrape; nothing is counted twice.

Every label comes from a closed set (streams, reasons, alarm kinds, severities, states) and every series exists from
the start, so that a rate is right from its first second. docs/metrics.md describes each; a test keeps it complete.
"""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from watchkeeper.config.guests import section_of
from watchkeeper.daemon.intake.deadletter import NO_STREAM
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.catalog import detector_kinds, gauges, kinds
from watchkeeper.streams.messages import Drop, Kind

if TYPE_CHECKING:
    from watchkeeper.daemon.app import App

STREAMS: tuple[str, ...] = (*(kind.word for kind in Kind), NO_STREAM)
STATES: tuple[str, ...] = (RAISED, UPDATED, CLEARED)
PERCENTILES: tuple[str, ...] = ("50", "95", "99")
# From a message that is judged at once to a broker that is slow to confirm.
LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The registry of one daemon."""

    def __init__(self, app: App) -> None:
        self.registry = CollectorRegistry()
        self.latency = Histogram(
            "watchkeeper_alarm_latency_seconds",
            "From the arrival of the message that caused an alarm event to the broker's confirmation of the event",
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(_Reader(app))


class _Reader(Collector):
    """Reads the parts of the app when Prometheus asks."""

    def __init__(self, app: App) -> None:
        self._app = app

    def describe(self) -> Iterable[Metric]:
        """Nothing is read before the app runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._stream()
        yield from self._alarms()
        yield from self._detectors()
        yield from self._machinery()

    def _stream(self) -> Iterator[Metric]:
        app = self._app
        pipeline, intake = app.pipeline, app.intake
        yield _gauge("vehicles", "Vehicles in the fleet table", len(pipeline.fleet))
        samples = _counter("samples", "Samples accepted", ["stream"])
        for stream in STREAMS[:-1]:
            samples.add_metric([stream], pipeline.samples[stream])
        yield samples
        drops = _counter("drops", "Payloads and samples refused", ["stream", "reason"])
        counts: Counter[tuple[str, str]] = Counter(app.letters.counts)
        counts.update(pipeline.drops)
        counts[NO_STREAM, Drop.QUEUE_FULL] += intake.dropped
        for stream in STREAMS:
            for reason in Drop.ALL:
                drops.add_metric([stream, reason], counts[stream, reason])
        yield drops
        yield _total("messages", "Messages received from the broker", intake.received)
        yield _gauge("queue_depth", "Messages waiting for the pipeline", len(intake))
        yield _total("queue_dropped", "Messages dropped unread because the queue was full", intake.dropped)
        t_max, watermark = pipeline.t_max, pipeline.watermark
        yield _gauge("event_timestamp_seconds", "Time of the newest sample, in its own clock", _finite(t_max))
        lag = t_max - watermark if math.isfinite(t_max) and math.isfinite(watermark) else math.nan
        yield _gauge("watermark_lag_seconds", "Newest sample's time minus the end of the last tick that ran", lag)
        yield _gauge("pending_samples", "Samples waiting for their tick", pipeline.pending)
        yield _total("ticks", "Looks at the whole fleet", pipeline.ticks)

    def _alarms(self) -> Iterator[Metric]:
        app = self._app
        active = Counter((e.kind, e.severity) for e in app.pipeline.active.values())
        gauge = GaugeMetricFamily(
            "watchkeeper_alarms_active", "Alarms that are active now", labels=["kind", "severity"]
        )
        for kind in kinds():
            for severity in SEVERITIES:
                gauge.add_metric([kind, severity], active[kind, severity])
        yield gauge
        yield _total("alarms_refused", "Alarms not raised because the alarm table was full", app.pipeline.book.refused)
        events = _counter("alarm_events", "Alarm events recorded", ["kind", "state"])
        for kind in kinds():
            for state in STATES:
                events.add_metric([kind, state], app.router.events[kind, state])
        yield events

    def _detectors(self) -> Iterator[Metric]:
        found = self._app.pipeline.gauges()
        scores = GaugeMetricFamily(
            "watchkeeper_score",
            "Percentile of the scores of the last tick with evidence",
            labels=["kind", "percentile"],
        )
        for kind in kinds():
            for percentile in PERCENTILES:
                scores.add_metric([kind, percentile], found.pop(f"{kind}_score_p{percentile}", math.nan))
        yield scores
        threshold = GaugeMetricFamily(
            "watchkeeper_score_threshold", "Scores from here on count towards an alarm", labels=["kind"]
        )
        for name, declared in detector_kinds().items():
            threshold.add_metric([name], declared.threshold(section_of(self._app.config, "detectors", name)))
        yield threshold
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        # what is declared is shown although the detector may be off: dashboards and rules ask for it
        for key, (name, gauge) in sorted(gauges().items()):
            if name not in families:
                family = CounterMetricFamily if gauge.counter else GaugeMetricFamily
                labels = [gauge.label[0]] if gauge.label else []
                families[name] = family(f"watchkeeper_{name}", gauge.help, labels=labels)
            value = found.get(key, 0.0 if gauge.counter else math.nan)
            families[name].add_metric([gauge.label[1]] if gauge.label else [], value)
        yield from families.values()

    def _sources(self) -> Iterator[Metric]:
        connected = GaugeMetricFamily("watchkeeper_source_connected", "1 while a source delivers", labels=["source"])
        samples = _counter("source_samples", "Samples that a source delivered", ["source"])
        refused = _counter("source_refused", "Messages of a source that were not used", ["source", "reason"])
        for live in self._app.sources:
            url = live.source.url
            connected.add_metric([url], live.connected)
            samples.add_metric([url], live.samples)
            for reason, count in sorted(live.refused.items()):
                refused.add_metric([url, reason], count)
        yield from (connected, samples, refused)

    def _sinks(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily(
            "watchkeeper_sink_queue_depth", "Alarm events that a sink's receiver has not taken", labels=["sink"]
        )
        delivered = _counter("sink_delivered", "Alarm events that a sink's receiver has taken", ["sink"])
        failures = _counter("sink_failures", "Attempts to deliver that will be repeated", ["sink"])
        refused = _counter("sink_refused", "Alarm events that a sink's receiver will not have", ["sink"])
        dropped = _counter("sink_dropped", "Alarm events that left a sink's full queue", ["sink"])
        healthy = GaugeMetricFamily(
            "watchkeeper_sink_healthy", "1 while a sink can be relied on; /readyz says why not", labels=["sink"]
        )
        for sink in self._app.router.sinks:
            healthy.add_metric([sink.name], not sink.health())
            depth.add_metric([sink.name], sink.waiting)
            delivered.add_metric([sink.name], sink.delivered)
            failures.add_metric([sink.name], sink.failures)
            refused.add_metric([sink.name], sink.refused)
            dropped.add_metric([sink.name], sink.dropped)
        yield from (healthy, depth, delivered, failures, refused, dropped)

    def _machinery(self) -> Iterator[Metric]:
        app = self._app
        journal, snapshots = app.journal, app.snapshots
        mqtt = next((sink for sink in app.router.sinks if sink.name == "mqtt"), None)
        yield _gauge("mqtt_connected", "1 while connected to the broker and subscribed", app.transport.connected)
        yield _total("mqtt_reconnects", "Connections to the broker after the first", app.transport.reconnects)
        yield _total("mqtt_dropped", "Outgoing messages given up, dead letters mostly", app.transport.dropped)
        yield from self._sources()
        yield from self._sinks()
        yield _gauge("ready", "1 while /readyz says yes", not app.not_ready())
        yield _gauge("outbox_depth", "Alarm events that the broker has not confirmed", mqtt.waiting if mqtt else 0)
        yield _total("outbox_dropped", "Alarm events replaced by later ones", mqtt.dropped if mqtt else 0)
        repeats = app.router.first.repeats if app.router.first else 0
        yield _total("alarm_repeats", "Events of a restart that were known already", repeats)
        yield _total("deadletters_suppressed", "Bad payloads counted but not shown", app.letters.suppressed)
        yield _gauge("journal_bytes", "Size of the journal", journal.size_bytes if journal else 0)
        yield _total("journal_errors", "Appends to the journal that failed", journal.errors if journal else 0)
        yield _total("journal_torn_lines", "Torn last lines cut off at the start", journal.torn if journal else 0)
        yield _gauge("snapshot_bytes", "Size of the last snapshot", snapshots.bytes if snapshots else 0)
        yield _gauge(
            "snapshot_stall_seconds",
            "Time that the event loop stood still for the last snapshot",
            snapshots.stall_s if snapshots else 0,
        )
        yield _gauge("page_viewers", "Live pages that are open", len(app.live.viewers))
        yield _total("page_refused", "Live pages turned away because there were too many", app.live.turned_away)
        yield _total("page_resyncs", "Times that a slow live page was sent all alarms again", app.live.resyncs)
        yield _total("page_stalled", "Live pages cut off because they took nothing", app.live.slow)
        yield _gauge("pump_slice_max_seconds", "Longest turn of the pump so far", app.pump.slowest_slice_s)
        reloads = _counter("reloads", "Configuration reloads", ["result"])
        for result in ("applied", "refused"):
            reloads.add_metric([result], app.reloads[result])
        yield reloads
        info = GaugeMetricFamily("watchkeeper_build_info", "Constant 1", labels=["version", "python", "transport"])
        info.add_metric([app.version, platform.python_version(), app.config.broker.transport], 1)
        yield info


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _gauge(name: str, doc: str, value: float) -> Metric:
    return GaugeMetricFamily(f"watchkeeper_{name}", doc, value=value)


def _total(name: str, doc: str, value: float) -> Metric:
    return CounterMetricFamily(f"watchkeeper_{name}", doc, value=value)


def _counter(name: str, doc: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"watchkeeper_{name}", doc, labels=labels)
