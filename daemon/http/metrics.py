"""Prometheus metrics, read from the running parts at the moment of the scrape; nothing is counted twice.

Each part says its own (`metrics()`, or a function next to it) and the daemon lists them in `Metrics.parts`; here they
are only put one after the other. Below are the collectors of parts that do not know Prometheus. docs/metrics.md
describes each metric; a test keeps it complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from watchkeeper.daemon.families import Collect, gauge, gauges_by, total, totals_by
from watchkeeper.daemon.outputs.base import Sink
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.router import AlarmRouter
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED
from watchkeeper.detectors.catalog import kinds
from watchkeeper.streams.mqtt.transport import Transport

log = logging.getLogger(__name__)

# Distinct errors that are remembered as logged.
LOGGED = 20
STATES: tuple[str, ...] = (RAISED, UPDATED, CLEARED)
# From a message that is judged at once to a broker that is slow to confirm.
LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The registry of one daemon. `parts` are asked at each scrape; add to them at any time."""

    def __init__(self) -> None:
        self.parts: list[Collect] = []
        self.registry = CollectorRegistry()
        self.latency = Histogram(
            "watchkeeper_alarm_latency_seconds",
            "From the arrival of the message that caused an alarm event to the broker's confirmation of the event",
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(_Reader(self.parts))


class _Reader(Collector):
    """Asks the parts when Prometheus asks."""

    def __init__(self, parts: list[Collect]) -> None:
        self._parts = parts
        self._logged: set[str] = set()

    def describe(self) -> Iterable[Metric]:
        """Nothing is read before the daemon runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families; a part that raises is left out, and logged once for each error."""
        for part in self._parts:
            try:
                families = list(part())
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
                if words not in self._logged and len(self._logged) < LOGGED:
                    self._logged.add(words)
                    log.exception("metrics left out")
                continue
            yield from families


def transport_metrics(transport: Transport) -> Iterator[Metric]:
    """The connection to the broker."""
    yield gauge(
        "mqtt_connected", "1 while connected to the broker and subscribed", transport.connected and not transport.deaf
    )
    yield total("mqtt_reconnects", "Connections to the broker after the first", transport.reconnects)
    yield total("mqtt_dropped", "Outgoing messages given up, dead letters mostly", transport.dropped)
    refused = totals_by(["reason"], "mqtt_refused", "Subscriptions and messages that the broker refused, by its reason")
    for reason, count in transport.refused.items():
        refused.add_metric([reason], count)
    yield refused


def router_metrics(router: AlarmRouter) -> Iterator[Metric]:
    """Alarm events on their way out."""
    events = totals_by(["kind", "state"], "alarm_events", "Alarm events recorded")
    for kind in kinds():
        for state in STATES:
            events.add_metric([kind, state], router.events[kind, state])
    yield events
    yield from _sinks(router.sinks)
    mqtt = next((sink for sink in router.sinks if sink.name == "mqtt"), None)
    yield gauge("outbox_depth", "Alarm events that the broker has not confirmed", mqtt.waiting if mqtt else 0)
    yield total("outbox_dropped", "Alarm events replaced by later ones", mqtt.dropped if mqtt else 0)
    repeats = router.first.repeats if router.first else 0
    yield total("alarm_repeats", "Events of a restart that were known already", repeats)


def _sinks(sinks: Sequence[Sink]) -> Iterator[Metric]:
    healthy = gauges_by(["sink"], "sink_healthy", "1 while a sink can be relied on; /readyz says why not")
    depth = gauges_by(["sink"], "sink_queue_depth", "Alarm events that a sink's receiver has not taken")
    delivered = totals_by(["sink"], "sink_delivered", "Alarm events that a sink's receiver has taken")
    failures = totals_by(["sink"], "sink_failures", "Attempts to deliver that will be repeated")
    refused = totals_by(["sink"], "sink_refused", "Alarm events that a sink's receiver will not have")
    dropped = totals_by(["sink"], "sink_dropped", "Alarm events that left a sink's full queue")
    for sink in sinks:
        healthy.add_metric([sink.name], not sink.health())
        depth.add_metric([sink.name], sink.waiting)
        delivered.add_metric([sink.name], sink.delivered)
        failures.add_metric([sink.name], sink.failures)
        refused.add_metric([sink.name], sink.refused)
        dropped.add_metric([sink.name], sink.dropped)
    yield from (healthy, depth, delivered, failures, refused, dropped)


def journal_metrics(journal: Journal | None) -> Iterator[Metric]:
    """The alarm journal; zeros without one."""
    yield gauge("journal_bytes", "Size of the journal", journal.size_bytes if journal else 0)
    yield total("journal_errors", "Appends to the journal that failed", journal.errors if journal else 0)
    past = journal.past if journal else None
    yield total("journal_torn_lines", "Torn last lines cut off at the start", past.torn if past else 0)
    yield total("journal_damaged_lines", "Lines found damaged or missing at the start", past.damaged if past else 0)
