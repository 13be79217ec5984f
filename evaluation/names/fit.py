"""Fit the names' model: a multinomial logistic regression with a ridge, over patterns at several ages.

Every attack that raises an alarm gives its pattern at AGES_S after the alarm. Families count alike however many of
their attacks are found, and so do simulated and recorded flights. L-BFGS from zero on a convex loss: the same flights
give the same coefficients.

A ridge makes a model less sure than it could be, and few flights make it surer than it should be. So probabilities are
calibrated: every part of the flights is predicted by a model of the others, and the power of the probabilities that
is best there, for the patterns that have lasted, multiplies the coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from watchkeeper.config.schema import Config
from watchkeeper.detectors.gps_imu.naming.pattern import NAMES, WIDTH, Pattern, features, grow, likely
from watchkeeper.detectors.gps_imu.state import CHANNELS
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.evaluation.attacks.catalogue import Attack
from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.names.truth import NAME_OF
from watchkeeper.evaluation.protocol.cases import plan
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.run import Through, Trace, run
from watchkeeper.streams.batch import F8, I8

AGES_S = (0.0, 2.0, 4.0, 8.0, 16.0)
# Ridge on the standardised coefficients. Chosen by leave-one-flight-out on six recordings: 0.01 was right as often and
# less sure than it could be.
RIDGE = 0.003
# Added to a feature's deviation: channels that hardly ever speak must not count for more than they say.
LEAST_DEVIATION = 0.05
ITERATIONS = 300
# Patterns from this age on calibrate: the name that stands for long is the one that is acted on. Chosen.
LASTED_S = 8.0
# Parts of the flights, each of which is left out once to calibrate, and the range of the power. Chosen.
PARTS = 5
POWERS = (0.5, 3.0)


@dataclass(frozen=True, slots=True)
class Example:
    """The pattern of one attack at one age."""

    flight: str
    family: str
    age_s: float
    name: int
    seen: F8


def examples(
    flights: Sequence[Flight], attacks: Sequence[Attack], config: Config, repeats: int, through: Through | None = None
) -> list[Example]:
    """Run the attacks, and look at the patterns of those that raise an alarm."""
    named = [attack for attack in attacks if attack.family in NAME_OF]
    chosen = plan((), flights, named, repeats)
    threshold = config.detectors.gps_imu.threshold
    traces = run(config, chosen.variants, through=through, channels=CHANNELS)
    return [e for v, trace in zip(chosen.variants, traces, strict=True) for e in _of(v, trace, threshold)]


def _of(variant: Variant, trace: Trace, threshold: float) -> list[Example]:
    made = variant.injection
    assert made is not None
    assert trace.sigma is not None
    raised = [at for kind, at, _ in trace.alarms if kind == "gps_imu" and made.t_start <= at <= made.t_end]
    if not raised or any(at < made.t_start < until for _, at, until in trace.alarms):
        return []
    family, number = made.attack.family, NAMES.index(NAME_OF[made.attack.family])
    waiting, found = list(AGES_S), []
    row = blank(Pattern, 1)[0]
    for k in np.flatnonzero(np.isfinite(trace.ratio)).tolist():
        grown = grow(row, trace.t[k], bool(trace.ratio[k] >= 1.0), trace.sigma[k] / threshold)
        while waiting and trace.t[k] >= raised[0] + waiting[0]:
            age_s = waiting.pop(0)
            if grown:
                seen = np.empty(WIDTH)
                features(row, seen)
                found.append(Example(variant.flight.id, family, age_s, number, seen))
    return found


def balanced(rows: Sequence[Example]) -> F8:
    """Weights by which families count alike; their sum is 1."""
    _, family, count = np.unique([row.family for row in rows], return_inverse=True, return_counts=True)
    weight: F8 = 1.0 / count[family]
    weight /= weight.sum()
    return weight


def fit(seen: F8, name: I8, weight: F8) -> F8:
    """Coefficients by [feature and constant, name]."""
    mean, deviation = seen.mean(axis=0), seen.std(axis=0) + LEAST_DEVIATION
    scaled = np.column_stack(((seen - mean) / deviation, np.ones(len(seen))))
    truth = np.eye(len(NAMES))[name]

    def loss(flat: F8) -> tuple[float, F8]:
        table = flat.reshape(scaled.shape[1], len(NAMES))
        logit = scaled @ table
        logit -= logit.max(axis=1, keepdims=True)
        p = np.exp(logit)
        p /= p.sum(axis=1, keepdims=True)
        slope = scaled.T @ ((p - truth) * weight[:, None])
        slope[:-1] += 2.0 * RIDGE * table[:-1]
        cost = -float(weight @ np.log(np.maximum((p * truth).sum(axis=1), 1e-300)))
        return cost + RIDGE * float((table[:-1] ** 2).sum()), slope.ravel()

    start = np.zeros(scaled.shape[1] * len(NAMES))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    table: F8 = found.reshape(scaled.shape[1], len(NAMES))
    table[:-1] /= deviation[:, None]
    table[-1] -= mean @ table[:-1]
    # a constant for all names changes nothing
    table -= table.mean(axis=1, keepdims=True)
    rounded: F8 = np.round(table, 4) + 0.0
    return rounded


def power(rows: Sequence[Example], weight: F8) -> float:
    """The power of the probabilities that is best on flights that had no part in the fit.

    Falls back on all ages where no pattern is old enough.
    """
    lasted = np.array([row.age_s >= LASTED_S for row in rows])
    counted = weight * (lasted if lasted.any() else 1.0)
    ids = sorted({row.flight for row in rows})
    part = np.array([ids.index(row.flight) % PARTS for row in rows])
    seen, name = np.array([row.seen for row in rows]), np.array([row.name for row in rows])
    logs = np.empty((len(rows), len(NAMES)))
    for k in np.unique(part).tolist():
        out = part == k
        if out.all():
            return 1.0  # nothing to leave out
        train_seen, train_name, train_weight = seen[~out], name[~out], weight[~out]
        table = fit(train_seen, train_name, train_weight / train_weight.sum())
        logs[out] = np.log(
            np.maximum(probabilities([r for r, left in zip(rows, out, strict=True) if left], table), 1e-9)
        )

    def loss(times: float) -> float:
        total = np.log(np.exp(times * logs).sum(axis=1))
        return float(counted @ (total - times * logs[np.arange(len(name)), name]))

    return float(minimize_scalar(loss, bounds=POWERS, method="bounded", options={"xatol": 1e-3}).x)


def probabilities(rows: Sequence[Example], table: F8) -> F8:
    """By [example, name]."""
    out = np.empty((len(rows), len(NAMES)))
    for row, p in zip(rows, out, strict=True):
        likely(row.seen, table, p)
    return out


def source(table: F8, flights: Sequence[str], count: int) -> str:
    """The module that holds the coefficients."""
    labels = [f"{part} {channel}" for part in ("mean", "peak", "first", "over") for channel in CHANNELS]
    lines = [
        f"    ({', '.join(f'{value:.4f}' for value in row)}),  # {label}"
        for row, label in zip(table.tolist(), [*labels, "age", "constant"], strict=True)
    ]
    listed = ", ".join(f'"{name}"' for name in flights) + ","
    wrapped = fill(listed, 100, initial_indent="    ", subsequent_indent="    ")
    return f"""\
\"\"\"Coefficients of the names (pattern.py), by feature and constant in the order of NAMES.

Written by `watchkeeper evaluate names --fit`, from {count:,} patterns of attacks in the flights of FITTED; recipes of
simulated flights are in config/splits.json. Not by hand.
\"\"\"

from __future__ import annotations

# fmt: off
FITTED = (
{wrapped}
)
COEFFICIENTS: tuple[tuple[float, ...], ...] = (
{chr(10).join(lines)}
)
"""
