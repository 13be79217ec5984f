"""The pipeline's metrics: what it has taken in, how far its time is, its alarms, scores and detectors' gauges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from watchkeeper.daemon.families import gauge, gauges_by, total, totals_by
from watchkeeper.daemon.intake.deadletter import NO_STREAM
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.catalog import detector_kinds, gauges, kinds, threshold
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.reasons import NAMES
from watchkeeper.detectors.incidents.fold import without_symptoms
from watchkeeper.streams.messages import Drop, Kind

STREAMS: tuple[str, ...] = tuple(kind.word for kind in Kind)
PERCENTILES: tuple[str, ...] = ("50", "95", "99")


def drop_metrics(*counts: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """What was refused by (stream, reason), added up over the parts that refuse."""
    family = totals_by(["stream", "reason"], "drops", "Payloads and samples refused")
    for stream in (*STREAMS, NO_STREAM):
        for reason in Drop.ALL:
            family.add_metric([stream, reason], sum(part.get((stream, reason), 0) for part in counts))
    yield family


def pipeline_metrics(pipeline: Pipeline, active: Callable[[], Iterable[AlarmEvent]]) -> Iterator[Metric]:
    """All but what it refused, see `drop_metrics`; `active` are its alarms and those about the daemon."""
    yield gauge("vehicles", "Vehicles in the fleet table", len(pipeline.fleet))
    yield total("vehicles_crowded_out", "Vehicles forgotten early: the fleet was nearly full", pipeline.crowded_out)
    gateways = pipeline.gateway_table
    yield gauge("gateways", "Gateways in the table", len(gateways.number))
    yield total("gateways_refused", "Names of gateways that found no room", gateways.refused)
    samples = totals_by(["stream"], "samples", "Samples accepted")
    for stream in STREAMS:
        samples.add_metric([stream], pipeline.samples[stream])
    yield samples
    t_max, watermark = pipeline.t_max, pipeline.watermark
    newest = t_max if math.isfinite(t_max) else math.nan
    yield gauge("event_timestamp_seconds", "Time of the newest sample, in its own clock", newest)
    lag = t_max - watermark if math.isfinite(t_max) and math.isfinite(watermark) else math.nan
    yield gauge("watermark_lag_seconds", "Newest sample's time minus the end of the last tick that ran", lag)
    yield gauge("pending_samples", "Samples waiting for their tick", pipeline.pending)
    yield total("ticks", "Looks at the whole fleet", pipeline.ticks)
    yield from _alarms(pipeline, list(active()))
    yield from _detectors(pipeline)
    yield from _coverage(pipeline)


def _coverage(pipeline: Pipeline) -> Iterator[Metric]:
    guard = pipeline.guard
    family = gauges_by(["detector", "reason"], "coverage", "Vehicles that a detector judges, or does not and why")
    for detector, counts in guard.coverage.counts().items():
        for reason in NAMES:
            family.add_metric([detector, reason], counts.get(reason, 0))
    yield family
    failures = totals_by(["detector", "method"], "detector_failures", "Times that a detector, or an incident, raised")
    for (detector, method), n in sorted(guard.failures().items()):
        failures.add_metric([detector, method], n)
    yield failures
    yield gauge(
        "coverage_alarms_refused", "Vehicles without a `watch` alarm: there are max_alarms", guard.alarms.refused
    )


def _alarms(pipeline: Pipeline, active: list[AlarmEvent]) -> Iterator[Metric]:
    shown = [
        ("alarms_active", "Alarms that are active now, each symptom of an incident too", active),
        (
            "alarms_without_symptoms",
            "Active alarms; those that an incident explains count with it",
            without_symptoms(active),
        ),
    ]
    for name, help_, events in shown:
        counts = Counter((e.kind, e.severity) for e in events)
        family = gauges_by(["kind", "severity"], name, help_)
        for kind in kinds():
            for severity in SEVERITIES:
                family.add_metric([kind, severity], counts[kind, severity])
        yield family
    yield total("alarms_refused", "Alarms not raised because the alarm table was full", pipeline.book.refused)


def _detectors(pipeline: Pipeline) -> Iterator[Metric]:
    found = pipeline.gauges()
    scores = gauges_by(["kind", "percentile"], "score", "Percentile of the scores of the last tick with evidence")
    for kind in kinds():
        for percentile in PERCENTILES:
            scores.add_metric([kind, percentile], found.pop(f"{kind}_score_p{percentile}", math.nan))
    yield scores
    thresholds = gauges_by(["kind"], "score_threshold", "Lowest score that can count towards an alarm")
    for name, declared in detector_kinds().items():
        thresholds.add_metric([name], threshold(declared, pipeline.config))
    yield thresholds
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    # what is declared is shown although the detector may be off: dashboards and rules ask for it
    for key, (name, declared_gauge) in sorted(gauges().items()):
        label = declared_gauge.label
        if name not in families:
            make = totals_by if declared_gauge.counter else gauges_by
            families[name] = make([label[0]] if label else [], name, declared_gauge.help)
        value = found.get(key, 0.0 if declared_gauge.counter else math.nan)
        families[name].add_metric([label[1]] if label else [], value)
    yield from families.values()
