"""Every detector, from its declaration: alarms, scores against the threshold, and its own figures."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import Query, board, graph, section

from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Gauge


def build() -> Dashboard:
    """The dashboard."""
    made = board("watchkeeper-detectors", "Watchkeeper / Detectors", "What each detector finds, scores and counts.")
    section(
        made, "",
        graph("Active alarms by kind", "After debouncing; kinds of installed packages are shown as well",
              Query("sum by (kind) (watchkeeper_alarms_active{@})", "{{kind}}"), stacked=True, width=24),
    )  # fmt: skip
    for detector in REGISTRY.values():
        declared = detector.declaration
        section(made, declared.name, *map(_scores, declared.kinds), *_figures(declared))
    return made


def _scores(kind: AlarmKind) -> timeseries.Panel:
    return graph(
        f"Scores: {kind.name}", f"{kind.help.capitalize()}: percentiles of the last tick, and the threshold",
        Query(f'max by (percentile) (watchkeeper_score{{@, kind="{kind.name}"}})', "p{{percentile}}"),
        Query(f'max(watchkeeper_score_threshold{{@, kind="{kind.name}"}})', "threshold"),
    )  # fmt: skip


def _figures(declared: Declaration) -> Iterator[timeseries.Panel]:
    by_metric: dict[str, Gauge] = {gauge.metric_of(declared.name): gauge for gauge in declared.gauges}
    for metric, gauge in by_metric.items():
        name = f"watchkeeper_{metric}" + ("" if metric.endswith("_total") or not gauge.counter else "_total")
        series = f"rate({name}{{@}}[1m])" if gauge.counter else f"{name}{{@}}"
        legend = f"{{{{{gauge.label[0]}}}}}" if gauge.label else "{{instance}}"
        title = metric.removeprefix(f"{declared.name}_").replace("_", " ")
        yield graph(f"{declared.name}: {title}", gauge.help, Query(series, legend), width=6)
