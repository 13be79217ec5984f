"""Faults put into one signal of a vehicle: what a sensor, a wire or a part that fails makes of a healthy series.

Sizes are in the signal's own units of restlessness: 1.48 times the median distance from its mean over 5 s, so that a
fault of "6" is as hard to see on a battery as on a gyroscope.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from watchkeeper.streams.batch import F8

# A fault lasts so long, and so many values of a signal that comes seldom.
FAULT_S, FAULT_VALUES = 30.0, 24
JUMP, DRIFT, NOISE = 6.0, 10.0, 4.0
MEAN_S = 5.0


def restlessness(x: F8, rate_hz: float) -> float:
    """The usual distance of a series from its own mean over some seconds."""
    there = x[~np.isnan(x)]
    width = max(3, round(MEAN_S * rate_hz))
    mean = np.convolve(np.pad(there, (width // 2, width - 1 - width // 2), "edge"), np.ones(width) / width, "valid")
    return max(1.4826 * float(np.median(np.abs(there - mean))), 1e-3 * float(np.std(there)), 1e-12)


def _stuck(x: F8, rows: slice, _size: float, _rng: np.random.Generator) -> None:
    before = x[: rows.start]
    x[rows] = np.where(np.isnan(x[rows]), np.nan, before[~np.isnan(before)][-1])


def _jump(x: F8, rows: slice, size: float, rng: np.random.Generator) -> None:
    x[rows] += JUMP * size * rng.choice([-1.0, 1.0])


def _drift(x: F8, rows: slice, size: float, rng: np.random.Generator) -> None:
    n = rows.stop - rows.start
    x[rows] += DRIFT * size * rng.choice([-1.0, 1.0]) * np.arange(1, n + 1) / n


def _noise(x: F8, rows: slice, size: float, rng: np.random.Generator) -> None:
    x[rows] += rng.normal(0.0, NOISE * size, rows.stop - rows.start)


def _decoupled(x: F8, rows: slice, _size: float, rng: np.random.Generator) -> None:
    """The signal's own past, from some other time: the right kind of numbers, and no relation to anything else."""
    n = rows.stop - rows.start
    start = int(rng.integers(0, rows.start - n))
    past = x[start : start + n][::-1]
    x[rows] = np.where(np.isnan(x[rows]), np.nan, np.where(np.isnan(past), np.nanmedian(past), past))


FAULTS: dict[str, Callable[[F8, slice, float, np.random.Generator], None]] = {
    "stuck": _stuck, "jump": _jump, "drift": _drift, "noise": _noise, "decoupling": _decoupled,
}  # fmt: skip
