"""What river's online models add to `gps_imu`, by the protocol's own rules: `watchkeeper evaluate protocol --river`.

Each variant (a flight, clean or attacked) is judged by models of its own that have seen nothing else, in river's order:
score first, learn after, nothing that is over the threshold is learned.

- half-space trees over the channels, alone or with a vote next to the score;
- a running quantile of the score (what QuantileFilter keeps) in place of the calibrated levels;
- ADWIN on the score: does it tell a change of the vehicle from a manoeuvre?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.gps_imu.model.fleet import ResidualModel
from watchkeeper.detectors.gps_imu.state import CHANNELS, SCALED
from watchkeeper.evaluation.attacks.catalogue import Attack
from watchkeeper.evaluation.protocol.cases import OURS, Plan, judged, plan
from watchkeeper.evaluation.protocol.figures import group_figures
from watchkeeper.evaluation.protocol.run import Through, Trace, run
from watchkeeper.evaluation.protocol.splits import MIXED, Material
from watchkeeper.streams.batch import F8

# The running quantile says nothing before it has seen this many epochs, a minute of a common receiver.
QUANTILE, QUANTILE_EPOCHS = 0.99, 300


class RiverRow(msgspec.Struct, frozen=True):
    """One way to score, by the rules of the protocol: mixed flights, thresholds held out, one onset per attack."""

    name: str
    fpr_low: float
    fpr_high: float
    """Realised rate at nominal 1 % of the flight with the lowest and the highest."""
    runs: int
    """N epochs in a row over the detector's own threshold on clean flights: what would be false alarms."""
    auroc: float
    recall_1: float
    event_recall_1: float


class RiverFigures(msgspec.Struct, frozen=True):
    """The table, and how often ADWIN speaks."""

    rows: list[RiverRow]
    adwin_per_clean_hour: float
    adwin_in_attacks: float
    """Share of attacks during which it spoke."""


def river_study(
    material: Material, config: Config, attacks: Sequence[Attack], *, strict: bool, through: Through | None = None
) -> RiverFigures:
    """Run every attack once and score it in each way. ImportError without river (extra `river`)."""
    chosen = plan(list(material.flights.values()), material.tested, attacks, 1)
    threshold = config.detectors.gps_imu.threshold
    shipped = run(config, chosen.variants, strict=strict, through=through, channels=CHANNELS[:SCALED])
    trees = [_trees(trace, threshold) for trace in shipped]
    plain = run(_without_levels(config), chosen.variants, strict=strict, through=through)
    ways = {
        "as shipped": [trace.ratio for trace in shipped],
        "half-space trees have a vote": [np.fmax(t.ratio, tree) for t, tree in zip(shipped, trees, strict=True)],
        "half-space trees alone": trees,
        "no levels per vehicle": [trace.ratio for trace in plain],
        "running quantile in place of the levels": [_by_quantile(trace.ratio) for trace in plain],
    }
    rows = []
    for name, ratios in ways.items():
        traces = [replace(trace, ratio=ratio) for trace, ratio in zip(shipped, ratios, strict=True)]
        rows.append(_row(name, material, config, chosen, traces, attacks))
    return RiverFigures(rows, *_adwin(chosen, shipped))


def _row(
    name: str, material: Material, config: Config, chosen: Plan, traces: list[Trace], attacks: Sequence[Attack]
) -> RiverRow:
    n = config.detectors.gps_imu.debounce.n
    found = judged(OURS, chosen, traces)
    figures = group_figures(MIXED, found, material.groups[MIXED], attacks, n)
    rates = [flight.fpr_1 or 0.0 for flight in figures.flights]
    runs = sum(_runs(clean.score >= 1.0, n) for clean in found.clean.values())
    macro = figures.macro
    return RiverRow(name, min(rates), max(rates), runs, macro.auroc, macro.recall_1, macro.event_recall_1)


def _runs(over: np.ndarray, n: int) -> int:
    """How often n in a row are over."""
    edges = np.diff(np.concatenate(([0], over.astype(np.int8), [0])))
    return int(np.sum(np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0) >= n))


def _without_levels(config: Config) -> Config:
    section = msgspec.structs.replace(config.detectors.gps_imu, learn_scale=False)
    return msgspec.structs.replace(config, detectors=msgspec.structs.replace(config.detectors, gps_imu=section))


def _each(ratio: F8, judge: Callable[[int], float]) -> F8:
    """`judge` called for every epoch that was scored, in order."""
    found = np.full(len(ratio), np.nan)
    for i in np.flatnonzero(np.isfinite(ratio)).tolist():
        found[i] = judge(i)
    return found


def _trees(trace: Trace, threshold: float) -> F8:
    """How unusual each epoch is to a model of this vehicle alone, over the threshold."""
    assert trace.sigma is not None
    found = np.full(len(trace.ratio), np.nan)
    scored = np.isfinite(trace.ratio)
    sigma = np.ascontiguousarray(trace.sigma[scored], np.float64)
    found[scored] = ResidualModel(CHANNELS[:SCALED]).judge(sigma, trace.ratio[scored] < 1.0) / threshold
    return found


def _by_quantile(ratio: F8) -> F8:
    """Each score over the running quantile of those before it that were not over it."""
    from river import stats  # noqa: PLC0415 - an extra, and slow to import

    quantile, seen = stats.Quantile(QUANTILE), 0

    def judge(i: int) -> float:
        nonlocal seen
        level = quantile.get() if seen >= QUANTILE_EPOCHS else None
        # what is far over the quantile is not learned; a little over it must be, or it would only fall
        if level is None or ratio[i] < 2.0 * level:
            quantile.update(float(ratio[i]))
            seen += 1
        return float(ratio[i]) / level if level else 0.0

    return _each(ratio, judge)


def _adwin(chosen: Plan, traces: Sequence[Trace]) -> tuple[float, float]:
    """Changes that it sees per hour of clean flight, and the share of attacks in which it sees one."""
    from river import drift  # noqa: PLC0415 - an extra, and slow to import

    spoken, hours, attacked, caught = 0, 0.0, 0, 0
    for variant, trace in zip(chosen.variants, traces, strict=True):
        # river's signatures are only partly typed
        window: Any = drift.ADWIN()  # type: ignore[no-untyped-call]
        at: list[float] = []
        scored = np.flatnonzero(np.isfinite(trace.ratio)).tolist()
        for i in scored:
            window.update(min(float(trace.ratio[i]), 2.0))
            if window.drift_detected:
                at.append(float(trace.t[i]))
        if variant.injection is None:
            spoken += len(at)
            hours += float(trace.t[scored[-1]] - trace.t[scored[0]]) / 3600.0 if scored else 0.0
        else:
            attacked += 1
            caught += any(t >= variant.injection.t_start for t in at)
    return spoken / hours if hours else np.nan, caught / attacked if attacked else np.nan
