"""The evaluation itself: thresholds from the clean series, then every fault in every signal.

A method's threshold for a signal is the 99 % quantile of its scores on the clean series after `WARM_S`: the realised
share of false positives is 1 % for every method and signal, whatever its scores mean. A fault is found if RUN values in
a row are over the threshold while it lasts; RUN in a row on the clean series are a false alarm.

"As shipped" is the alarm itself: raised or updated by the whole pipeline while the fault lasts, naming its signal,
where the clean series says nothing of it in the same time. Its false alarms are those that the clean vehicle raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.evaluation.signals import methods
from watchkeeper.evaluation.signals.faults import FAULT_S, FAULT_VALUES, FAULTS, restlessness
from watchkeeper.evaluation.signals.series import Vehicle
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.frames.write import NUMBER, TEXT, Backend, rows_frame
from watchkeeper.streams.signals import as_name

WARM_S = 60.0
TAIL = 0.01
RUN = 3
COLUMNS = {"vehicle": TEXT, "signal": TEXT, "fault": TEXT, "method": TEXT, "latency_s": NUMBER}


class Outcome(msgspec.Struct, frozen=True):
    """One fault in one signal; `latency_s` by method, None where it was not found."""

    vehicle: str
    signal: str
    fault: str
    latency_s: dict[str, float | None]


class Clean(msgspec.Struct, frozen=True):
    """One signal without a fault: hours judged, and false alarms by method."""

    vehicle: str
    signal: str
    hours: float
    false_alarms: dict[str, int]
    share: dict[str, float]


class Quiet(msgspec.Struct, frozen=True):
    """One vehicle without a fault, as shipped: hours heard, and alarms of any of its signals."""

    vehicle: str
    hours: float
    alarms: int


class Result(msgspec.Struct, frozen=True):
    """All of it."""

    outcomes: list[Outcome]
    clean: list[Clean]
    quiet: list[Quiet]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per fault and method; `latency_s` is absent where the method did not find it."""
        rows = [
            {**msgspec.to_builtins(one), "method": method, "latency_s": latency_s}
            for one in self.outcomes
            for method, latency_s in one.latency_s.items()
        ]
        return rows_frame(rows, COLUMNS, backend)


def evaluate(
    vehicles: Sequence[Vehicle], config: Config = DEFAULT, *, seed: int = 1, river: bool = False, most: int = 1000,
    told: Callable[[str], None] = lambda _: None,
) -> Result:  # fmt: skip
    """Judge every vehicle; at most so many signals of each.

    >>> from watchkeeper.evaluation.signals.series import simulated
    >>> found = evaluate(simulated(1, 300.0, seed=2), most=2)
    >>> len(found.outcomes), sorted(found.outcomes[0].latency_s)
    (10, ['ewma', 'ours', 'ours, as shipped'])
    """
    result = Result([], [], [])
    for number, vehicle in enumerate(vehicles):
        told(f"{vehicle.name}: {len(vehicle.names)} signals, {vehicle.t[-1]:.0f} s")
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        _judge(vehicle, config, rng, result, river=river, most=most)
    return result


def _judge(
    vehicle: Vehicle, config: Config, rng: np.random.Generator, result: Result, *, river: bool, most: int
) -> None:
    rate_hz = 1.0 / float(vehicle.t[1] - vehicle.t[0])
    length = max(round(FAULT_S * rate_hz), FAULT_VALUES)
    steps = len(vehicle.t)
    first = max(steps // 2, round(WARM_S * rate_hz) + length)
    if first + length >= steps:
        return
    chosen = [
        k for k, name in enumerate(vehicle.names) if _judgeable(vehicle.values[k]) and name not in ("armed", "mode")
    ]
    chosen = chosen[:most]
    cases = [(k, fault) for k in chosen for fault in FAULTS]
    variants = np.repeat(vehicle.values[None], 1 + len(cases), axis=0)
    spans = []
    for v, (k, fault) in enumerate(cases, 1):
        start = int(rng.integers(first, steps - length))
        rows = slice(start, start + length)
        FAULTS[fault](variants[v, k], rows, restlessness(vehicle.values[k], rate_hz), rng)
        spans.append(rows)
    scores = {"ours": methods.ours(vehicle, variants, config)}
    told = methods.shipped(vehicle, variants, config)
    heard_s = float(np.minimum(np.diff(vehicle.t[~np.isnan(vehicle.values).all(axis=0)]), WARM_S).sum())
    result.quiet.append(Quiet(vehicle.name, heard_s / 3600.0, sum(state == "raised" for _, state, _ in told[0])))
    plain = _plain(river=river)
    for k in chosen:
        of_clean = {"ours": scores["ours"][0, k]}
        of_clean |= {name: score(vehicle, vehicle.values[k], k) for name, score in plain.items()}
        judged = ~np.isnan(vehicle.values[k]) & (vehicle.t >= WARM_S)
        limit = {name: _threshold(found[judged]) for name, found in of_clean.items()}
        of_clean |= _together(of_clean, limit)
        limit |= {name: _threshold(of_clean[name][judged]) for name in of_clean if name not in limit}
        alarms = {name: _runs(found[judged] > limit[name]) for name, found in of_clean.items()}
        share = {name: float(np.mean(found[judged] > limit[name])) for name, found in of_clean.items()}
        # without the times at which it did not come
        hours = float(np.minimum(np.diff(vehicle.t[judged]), WARM_S).sum()) / 3600.0
        name = as_name(vehicle.names[k])
        result.clean.append(Clean(vehicle.name, vehicle.names[k], hours, alarms, share))
        for v, ((which, fault), rows) in enumerate(zip(cases, spans, strict=True), 1):
            if which != k:
                continue
            found = {"ours": scores["ours"][v, k]}
            found |= {name: score(vehicle, variants[v, k], k) for name, score in plain.items()}
            found |= _together(found, limit)
            there = np.flatnonzero(~np.isnan(variants[v, k, rows])) + rows.start
            latency = {name: _latency(vehicle.t, there, own_scores > limit[name]) for name, own_scores in found.items()}
            span = (float(vehicle.t[rows.start]), float(vehicle.t[rows.stop - 1]))
            latency["ours, as shipped"] = None if _told(told[0], name, span) is not None else _told(told[v], name, span)
            result.outcomes.append(Outcome(vehicle.name, vehicle.names[k], fault, latency))


def _told(alarms: list[tuple[float, str, frozenset[str]]], name: str, span: tuple[float, float]) -> float | None:
    """From the onset to the first alarm that names the signal; None without one in this time."""
    first, last = span
    times = [t - first for t, state, names in alarms if first <= t <= last and state != "cleared" and name in names]
    return min(times, default=None)


def _together(found: dict[str, F8], limit: dict[str, float]) -> dict[str, F8]:
    """What each of river's models adds to ours: the larger of both scores, each over its own threshold."""
    own = found["ours"] / max(limit["ours"], 1e-12)
    return {
        f"ours + {name}": np.maximum(own, scores / max(limit[name], 1e-12))
        for name, scores in found.items()
        if name.startswith("river")
    }


def _judgeable(x: F8) -> bool:
    there = x[~np.isnan(x)]
    return len(there) > 100 and float(np.mean(np.diff(there) != 0.0)) > 0.2


Score = Callable[[Vehicle, F8, int], F8]


def _plain(*, river: bool) -> dict[str, Score]:
    def alone(make: Callable[[F8, F8], Any]) -> Score:
        def scores(vehicle: Vehicle, x: F8, _k: int) -> F8:
            there = ~np.isnan(x)
            found = np.zeros(len(x))
            found[there] = list(make(vehicle.t[there], x[there]))
            return found

        return scores

    def linear(vehicle: Vehicle, x: F8, k: int) -> F8:
        there = ~np.isnan(x)
        found = np.zeros(len(x))
        others = np.delete(vehicle.values, k, axis=0)[:, there]
        found[there] = list(methods.river_linear(others, x[there]))
        return found

    known: dict[str, Score] = {"ewma": alone(methods.ewma)}
    if river:
        known["river: half-space trees"] = alone(methods.river_trees())
        known["river: Holt"] = alone(methods.river_holt())
        known["river: linear"] = linear
    return known


def _threshold(scores: F8) -> float:
    return float(np.quantile(scores, 1.0 - TAIL))


def _runs(over: Bool, n: int = RUN) -> int:
    """How many times n values in a row are over."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], over, [False]]).astype(np.int8)))
    return int(((ends[1::2] - ends[::2]) >= n).sum())


def _latency(t: F8, rows: Any, over: Bool, n: int = RUN) -> float | None:
    """From the onset to the n-th value in a row that is over; None when there are not so many."""
    run = 0
    for row in rows.tolist():
        run = run + 1 if over[row] else 0
        if run >= n:
            return float(t[row] - t[rows[0]])
    return None
