"""The figures that the project has promised, and whether they were reached. Read from a result, never tuned to it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from watchkeeper.evaluation.protocol.report.words import percent
from watchkeeper.evaluation.protocol.splits import MIXED
from watchkeeper.evaluation.protocol.study import Result

BALANCED = "balanced"


class Bar(msgspec.Struct, frozen=True):
    """One promise."""

    what: str
    asked: str
    seen: str
    met: bool


def bars(result: Result) -> list[Bar]:
    """All promises that the result can speak to."""
    return [*_rates(result), *_averages(result), *_attacks(result), *_alarms(result)]


def _rates(result: Result) -> Iterator[Bar]:
    # a flight of which nothing was said has no rate, and has not kept it
    rates = {f.flight: math.inf if f.fpr_1 is None else f.fpr_1 for f in result.groups[MIXED].flights}
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    seen = f"{percent(rates[low], 2)} ({low}) to {percent(rates[high], 2)} ({high})"
    met = rates[low] >= 0.005 and rates[high] <= 0.02
    yield Bar("realised FPR at nominal 1 %, every held-out flight", "0.5 % to 2 %", seen, met)


def _averages(result: Result) -> Iterator[Bar]:
    if "quad" in result.groups:
        m = result.groups["quad"].macro
        yield Bar("quads, mean over the catalogue: AUROC", "0.93", f"{m.auroc:.3f}", m.auroc >= 0.93)
        yield Bar("quads, mean over the catalogue: recall at 1 %", "75 %", percent(m.recall_1, 1), m.recall_1 >= 0.75)
    m = result.groups[MIXED].macro
    yield Bar("mixed, mean over the catalogue: recall at 1 %", "60 %", percent(m.recall_1, 1), m.recall_1 >= 0.60)


def _attacks(result: Result) -> Iterator[Bar]:
    rows = {row.attack: row for row in result.groups[MIXED].attacks}

    def recall(*names: str) -> float | None:
        """The least of several attacks."""
        return min((rows[name].event.alarm_recall or 0.0 for name in names if name in rows), default=None)

    if (share := recall("gps_bias_5m")) is not None:
        epochs = rows["gps_bias_5m"].epoch.recall_1 or 0.0
        yield Bar(
            "5 m step: alarm raised", "90 %", f"{percent(share)} ({percent(epochs)} of epochs at 1 %)", share >= 0.9
        )
    steps = [name for name, row in rows.items() if row.family == "gps_bias" and row.magnitude >= 10.0]
    if (share := recall(*steps)) is not None:
        late = max(rows[name].event.alarm_latency_epochs or 99.0 for name in steps)
        seen = f"{percent(share)}, {late:g} epochs"
        yield Bar(
            "steps of 10 m and more: alarm, median latency", "100 %, 5 epochs", seen, share == 1.0 and late <= 5.0
        )
    if (share := recall("gps_drift_0.5mps")) is not None:
        late_ms = rows["gps_drift_0.5mps"].event.alarm_latency_ms
        seen = f"{percent(share)}, {(late_ms or 0.0) / 1000.0:.1f} s"
        met = share >= 0.95 and late_ms is not None and late_ms <= 6000.0
        yield Bar("drift of 0.5 m/s: alarm, median latency", "95 %, 6 s", seen, met)
    for name, how in (("", "GPS alone"), ("_ramp", "rising over 10 s"), ("_imu", "GPS and IMU agree")):
        if (share := recall(f"coordinated{name}_2mps")) is not None:
            yield Bar(f"coordinated 2 m/s, {how}: alarm", "60 %", percent(share), share >= 0.6)
    gone = ("gps_dropout", "imu_dropout", "link_loss", "gps_freeze", "imu_stuck")
    if (share := recall(*gone)) is not None:
        named = ", ".join(f"{percent(rows[n].event.alarm_recall)} {n}" for n in gone if n in rows)
        yield Bar("dropout, freeze and stuck IMU: alarm", "100 %", named, share == 1.0)


def _alarms(result: Result) -> Iterator[Bar]:
    for found in result.false_alarms:
        if found.profile == BALANCED:
            seen = f"{found.per_hour:.2f} ({found.alarms} in {found.hours:.2f} h)"
            yield Bar("false alarms per clean hour, balanced", "1", seen, found.per_hour <= 1.0)
