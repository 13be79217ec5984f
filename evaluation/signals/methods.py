"""The methods that are compared: each gives every value of every signal a score, learning as it goes.

ours         the detector `signal`, by its own kernels; `shipped` is its alarms, through the whole pipeline
ewma         distance from an exponential mean over its exponential deviation
river: …     river's models (extra `river`): half-space trees on the value alone, Holt's forecast, and a linear model
             of the vehicle's other signals; of the last two the residual over its own deviation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.signal.declaration import SUFFIX
from watchkeeper.detectors.signal.detector import SignalDetector
from watchkeeper.evaluation.signals.series import Vehicle
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.messages import NAME_COLUMNS, SIGNAL, Kind
from watchkeeper.streams.signals import as_name, name_columns

EWMA_S = 30.0
# When a series begins, for what wants Unix time.
T0 = 1_700_000_000.0


def ours(vehicle: Vehicle, variants: F8, config: Config) -> F8:
    """Scores of every signal in every variant of a vehicle: variants[v, k, i] to scores of the same shape."""
    many, signals, steps = variants.shape
    limits = FleetLimits(max_vehicles=max(many, 1))
    fleet = Fleet(limits)
    detector = SignalDetector(config, fleet)
    for v in range(many):
        fleet.slot_for(str(v))
    names = name_columns([as_name(name) for name in vehicle.names])
    scores = np.zeros(variants.shape)
    rows = np.empty((many, signals), np.int64)
    known = False
    for i in range(steps):
        values = variants[:, :, i]
        slot, which = np.nonzero(~np.isnan(values))
        if not len(slot):
            continue
        data = np.empty((1 + NAME_COLUMNS, len(slot)))
        data[SIGNAL.value], data[SIGNAL.name_0 :] = values[slot, which], names[:, which]
        t, via = np.full(len(slot), float(vehicle.t[i])), np.full(len(slot), -1, np.int32)
        detector.step(
            Window(float(vehicle.t[i]), {Kind.SIGNAL: Samples(Kind.SIGNAL, slot.astype(np.int32), t, data, via)})
        )
        if not known:
            known = _places(detector, vehicle, rows)
        if known:
            scores[:, :, i] = np.where(np.isnan(values), 0.0, detector.table.signals["score"][rows])
    return scores


def shipped(vehicle: Vehicle, variants: F8, config: Config) -> list[list[tuple[float, str, frozenset[str]]]]:
    """Alarms of every variant through the whole pipeline, with its own thresholds and debouncing: time, state, signals.

    Each variant is a vehicle of its own, so that what it says is what a daemon would have said.
    """
    many = len(variants)
    pipeline = Pipeline(msgspec.structs.replace(config, fleet=FleetLimits(max_vehicles=max(many, 1))))
    ids = [f"v{v}" for v in range(many)]
    place = {name: v for v, name in enumerate(ids)}
    names = name_columns([as_name(name) for name in vehicle.names])
    found: list[list[tuple[float, str, frozenset[str]]]] = [[] for _ in ids]

    def keep(events: list[AlarmEvent]) -> None:
        for event in events:
            if event.kind == "signal":
                told = {event.evidence.get("signal"), event.evidence.get("partner"), *event.evidence.get("also", ())}
                names_told = frozenset(str(name).removesuffix(SUFFIX) for name in told - {None, ""})
                found[place[event.subjects[0]]].append((event.t, event.state, names_told))

    for i, t in enumerate(vehicle.t.tolist()):
        slot, which = np.nonzero(~np.isnan(variants[:, :, i]))
        if len(slot):
            n = len(slot)
            data = np.concatenate([variants[slot, which, i].reshape(1, -1), names[:, which]])
            cols = Columns(np.arange(n), slot.astype(np.int32), np.full(n, -1, np.int32), np.full(n, T0 + t), data)
            keep(pipeline.feed(Batch(ids, {Kind.SIGNAL: cols})))
    keep(pipeline.finish())
    return [[(t - T0, state, told) for t, state, told in own] for own in found]


def _places(detector: SignalDetector, vehicle: Vehicle, rows: Any) -> bool:
    """Where each signal of each variant is in the table, once all have come."""
    names = [as_name(name) for name in vehicle.names]
    for v in range(len(rows)):
        found = {detector.table.name(row): row for row in detector.table.rows_of(v)}
        if len(found) < len(names):
            return False
        rows[v] = [found[name] for name in names]
    return True


def ewma(t: F8, x: F8) -> Iterator[float]:
    """The usual z-score."""
    mean, square, before = math.nan, 0.0, math.nan
    for now, value in zip(t.tolist(), x.tolist(), strict=True):
        if math.isnan(mean):
            mean, before = value, now
            yield 0.0
            continue
        off = value - mean
        yield abs(off) / math.sqrt(square) if square > 0.0 else 0.0
        a = 1.0 - math.exp(-(now - before) / EWMA_S)
        mean += a * off
        square = (1.0 - a) * (square + a * off * off)
        before = now


def river_trees() -> Callable[[F8, F8], Iterator[float]]:
    """Half-space trees on each value alone, scaled to its own range."""
    from river import anomaly, preprocessing  # noqa: PLC0415  extra `river`

    def scores(_t: F8, x: F8) -> Iterator[float]:
        scale: Any = preprocessing.MinMaxScaler()
        trees: Any = anomaly.HalfSpaceTrees(n_trees=10, height=6, window_size=60, seed=1)
        for value in x.tolist():
            scale.learn_one({"x": value})
            scaled = scale.transform_one({"x": value})
            yield float(trees.score_one(scaled))
            trees.learn_one(scaled)

    return scores


def river_holt() -> Callable[[F8, F8], Iterator[float]]:
    """Holt's forecast of river, its residual over its own exponential deviation."""
    from river import time_series  # noqa: PLC0415  extra `river`

    def scores(_t: F8, x: F8) -> Iterator[float]:
        make: Any = time_series.HoltWinters
        model = make(alpha=0.3, beta=0.1)
        square = 0.0
        for n, value in enumerate(x.tolist()):
            # its own forecast needs a few values to begin with
            off = value - model.forecast(1)[0] if n > 3 else 0.0
            yield abs(off) / math.sqrt(square) if square > 0.0 else 0.0
            square += 0.03 * (off * off - square)
            model.learn_one(value)

    return scores


def river_linear(others: F8, x: F8) -> Iterator[float]:
    """A linear model of the vehicle's other signals (others[k, i]), its residual over its own deviation."""
    from river import linear_model, optim, preprocessing  # noqa: PLC0415  extra `river`

    model = preprocessing.StandardScaler() | linear_model.LinearRegression(optimizer=optim.SGD(0.01))
    square, mean, spread = 0.0, 0.0, 0.0
    for i, value in enumerate(x.tolist()):
        seen = {k: v for k, v in enumerate(others[:, i].tolist()) if v == v}  # noqa: PLR0124
        scaled = (value - mean) / math.sqrt(spread) if spread > 0.0 else 0.0
        off = min(max(scaled - model.predict_one(seen), -50.0), 50.0)
        yield abs(off) / math.sqrt(square) if square > 0.0 else 0.0
        square += 0.03 * (off * off - square)
        model.learn_one(seen, min(max(scaled, -20.0), 20.0))
        mean += 0.01 * (value - mean)
        spread += 0.01 * ((value - mean) ** 2 - spread)
