"""What clean flights show: false alarms by profile, and false positives where sensors or airframe are others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from scipy.stats import chi2

from watchkeeper.config.schema import Config
from watchkeeper.evaluation.attacks.flight import airframe_of
from watchkeeper.evaluation.protocol.cases import OURS, Clean, Judged, judged, plan
from watchkeeper.evaluation.protocol.metrics import NOMINAL, threshold
from watchkeeper.evaluation.protocol.run import run
from watchkeeper.evaluation.protocol.shifts import SHIFTS
from watchkeeper.evaluation.protocol.splits import MIXED, Material
from watchkeeper.evaluation.shared.bootstrap import Interval


class FalseAlarms(msgspec.Struct, frozen=True):
    """Debounced alarms on clean test flights."""

    profile: str
    n: int
    alarms: int
    hours: float
    per_hour: float
    per_hour_95: Interval
    """Exact for a Poisson count."""
    by_flight: dict[str, int]


class Shift(msgspec.Struct, frozen=True):
    """Clean flights of another kind, with thresholds and settings as they were."""

    shift: str
    flights: list[str]
    fpr_1: float
    fpr_5: float
    worst_fpr_1: float
    alarms: int
    per_hour: float


def clean_only(material: Material, config: Config, *, strict: bool) -> dict[str, Clean]:
    """The test flights under another configuration."""
    chosen = plan(material.tested, (), (), 0)
    return judged(OURS, chosen, run(config, chosen.variants, strict=strict)).clean


def false_alarms(profile: str, n: int, clean: Sequence[Clean]) -> FalseAlarms:
    """Count them."""
    alarms, hours = sum(len(c.alarms) for c in clean), sum(c.hours for c in clean)
    low = float(chi2.ppf(0.025, 2 * alarms)) / 2.0 if alarms else 0.0
    high = float(chi2.ppf(0.975, 2 * alarms + 2)) / 2.0
    by_flight = {c.flight_id: len(c.alarms) for c in clean}
    # a detector that says nothing has watched no hour
    hours = hours or np.nan
    return FalseAlarms(profile, n, alarms, hours, alarms / hours, (low / hours, high / hours), by_flight)


def shifts(material: Material, ours: Judged, config: Config, *, strict: bool) -> list[Shift]:
    """Other sensors, made from the test flights; flights simulated that way; and another class of airframe."""
    folds = {flight: fold for fold in material.groups[MIXED] for flight in fold.test}
    made = [replace(make(f), id=f"{name} {f.id}") for name, make in SHIFTS.items() for f in material.tested]
    chosen = plan(made, (), (), 0)
    clean = judged(OURS, chosen, run(config, chosen.variants, strict=strict)).clean
    rows = [
        _shift(name, ours, [(clean[f"{name} {f.id}"], folds[f.id].calibrate) for f in material.tested])
        for name in SHIFTS
    ]
    calibrating = tuple(dict.fromkeys(f for fold in material.groups[MIXED] for f in fold.calibrate))
    rows += [_shift(flight, ours, [(ours.clean[flight], calibrating)]) for flight in material.shifted]
    classes = sorted({flight.airframe for flight in material.tested})
    for held in classes if len(classes) > 1 else ():
        others = tuple(f for f in calibrating if airframe_of(f) != held)
        own = [(ours.clean[f.id], others) for f in material.tested if f.airframe == held]
        rows.append(_shift(f"{held}, calibrated on the other classes", ours, own))
    return rows


def _shift(name: str, ours: Judged, cases: Sequence[tuple[Clean, tuple[str, ...]]]) -> Shift:
    """Clean flights, each with the flights that calibrate for it."""
    false = np.array(
        [
            [(clean.score > threshold((ours.clean[f] for f in calibrate), rate)).sum() for rate in NOMINAL]
            for clean, calibrate in cases
        ]
    )
    epochs = np.array([len(clean.score) for clean, _ in cases])
    rates = false.sum(axis=0) / max(int(epochs.sum()), 1)
    return Shift(
        shift=name,
        flights=[clean.flight_id.removeprefix(f"{name} ") for clean, _ in cases],
        fpr_1=float(rates[0]),
        fpr_5=float(rates[1]),
        worst_fpr_1=float((false[:, 0] / np.maximum(epochs, 1)).max()),
        alarms=(alarms := sum(len(clean.alarms) for clean, _ in cases)),
        per_hour=alarms / (sum(clean.hours for clean, _ in cases) or np.nan),
    )
