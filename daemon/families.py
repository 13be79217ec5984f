"""Prometheus metric families under our prefix, for the `metrics()` of each part of the daemon.

Every label comes from a closed set (streams, reasons, alarm kinds, severities, states), or from the configuration, and
every series exists from the start, so that a rate is right from its first second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

# What a part contributes: called at each scrape, it reads and counts nothing.
Collect = Callable[[], Iterable[Metric]]


def gauge(name: str, doc: str, value: float) -> Metric:
    """A figure of now."""
    return GaugeMetricFamily(f"watchkeeper_{name}", doc, value=value)


def total(name: str, doc: str, value: float) -> Metric:
    """A count since the start."""
    return CounterMetricFamily(f"watchkeeper_{name}", doc, value=value)


def gauges_by(labels: list[str], name: str, doc: str) -> GaugeMetricFamily:
    """Figures of now, to be filled by `add_metric`."""
    return GaugeMetricFamily(f"watchkeeper_{name}", doc, labels=labels)


def totals_by(labels: list[str], name: str, doc: str) -> CounterMetricFamily:
    """Counts since the start, to be filled by `add_metric`."""
    return CounterMetricFamily(f"watchkeeper_{name}", doc, labels=labels)
