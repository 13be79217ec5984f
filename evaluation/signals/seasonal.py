"""Signals with a season, for the ablation of river's forecast of it: a wave and the strokes of a pump.

Each vehicle has four signals of one value a second and one period. `settings_of` names the seasons of all of them,
which is what a user would put into the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from watchkeeper.config.detectors.signal import Season
from watchkeeper.config.schema import Config
from watchkeeper.evaluation.signals.series import Vehicle
from watchkeeper.streams.batch import F8

PERIODS_S = (24, 96)
SECONDS, SIGNALS = 3000, 4


def seasonal(vehicles: int, seed: int) -> Iterator[Vehicle]:
    """So many vehicles of each period."""
    rng = np.random.Generator(np.random.PCG64(seed))
    t = np.arange(float(SECONDS))
    for period_s in PERIODS_S:
        for k in range(vehicles):
            names = tuple(f"p{period_s}.{'wave' if n % 2 else 'stroke'}{n}" for n in range(SIGNALS))
            values = np.array([_values(t / period_s + rng.random(), rng, wave=bool(n % 2)) for n in range(SIGNALS)])
            yield Vehicle(f"{period_s} s/{k}", names, t, values)


def _values(phase: F8, rng: np.random.Generator, *, wave: bool) -> F8:
    part = phase % 1.0
    if wave:
        shape = 10.0 * np.sin(2.0 * np.pi * phase) + 3.0 * np.sin(4.0 * np.pi * phase + 1.0)
    else:
        shape = np.where(part < 0.3, 10.0, 0.0) + 4.0 * np.maximum(0.0, np.sin(6.0 * np.pi * phase)) * (part > 0.6)
    return 20.0 + shape + np.cumsum(rng.normal(0.0, 0.005, len(phase))) + rng.normal(0.0, 0.5, len(phase))


def settings_of(config: Config) -> Config:
    """The same with the seasons named."""
    seasons = tuple(Season(names=(f"p{p}.*",), period_s=float(p), steps=p) for p in PERIODS_S)
    signal = msgspec.structs.replace(config.detectors.signal, seasons=seasons)
    return msgspec.structs.replace(config, detectors=msgspec.structs.replace(config.detectors, signal=signal))
