"""Split leakage: one flight in two splits, by name or by content under another name.

Two flights are the same when they share IMU samples to four decimals (a copy, a cut, a shifted clock), or when their
turning looks the same at some lag (a copy with fresh noise on it). Flights that are truly different share neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy.signal import correlate

from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.attacks.scene import RATE, RAW
from watchkeeper.evaluation.protocol.splits import Splits
from watchkeeper.streams.batch import F8, I8

# Share of the shorter flight's samples that occur in the other, and correlation of their turning.
SAME_SAMPLES, SAME_TURNING = 0.05, 0.8
DECIMALS = 4
BIN_S = 0.2


def split_leaks(splits: Splits, flights: Sequence[Flight] = ()) -> list[str]:
    """What breaks the rule, one line each; with flights also their contents."""
    found = splits.overlaps()
    of = {flight: name for name, ids in splits.splits.items() for flight in ids}
    found += [f"flight {flight.id!r} is in no split" for flight in flights if flight.id not in of]
    return found + list(_same([flight for flight in flights if flight.id in of], of))


def turn_leaks(flights: Sequence[Flight]) -> list[str]:
    """The same for flights that are left out in turn: each is apart from all others."""
    return list(_same(flights, {flight.id: "" for flight in flights}))


def _same(flights: Sequence[Flight], of: Mapping[str, str]) -> Iterator[str]:
    """Pairs in different splits (or in none, which have no name) that are one flight."""
    prints = {flight.id: (_samples(flight), _turning(flight)) for flight in flights}
    for a, b in combinations(flights, 2):
        if of[a.id] and of[a.id] == of[b.id]:
            continue
        (samples_a, turning_a), (samples_b, turning_b) = prints[a.id], prints[b.id]
        shared = len(np.intersect1d(samples_a, samples_b, assume_unique=True)) / max(
            1, min(len(samples_a), len(samples_b))
        )
        alike = _alike(turning_a, turning_b)
        where = " and ".join(f"{f.id!r} ({of[f.id]})" if of[f.id] else repr(f.id) for f in (a, b))
        if shared > SAME_SAMPLES:
            yield f"{where} share {shared:.0%} of their IMU samples: one flight under two names"
        elif alike > SAME_TURNING:
            yield f"{where} turn alike (correlation {alike:.2f}): one flight under two names"


def _samples(flight: Flight) -> I8:
    """A number for each different IMU sample."""
    rows = np.ascontiguousarray(np.round(flight.imu.data[RAW], DECIMALS).T + 0.0)
    # mix the six values of a row into one number; equal rows give equal numbers, others hardly ever do
    mixed = np.zeros(len(rows), np.uint64)
    for word in rows.view(np.uint64).T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed).view(np.int64)


def _turning(flight: Flight) -> F8:
    """Size of the angular rate by bins of time, mean 0 and length 1."""
    t, rate = flight.imu.t - flight.imu.t[0], np.linalg.norm(flight.imu.data[RATE], axis=0)
    number = (t / BIN_S).astype(np.int64)
    mean = np.bincount(number, rate) / np.maximum(np.bincount(number), 1)
    mean -= mean.mean()
    unit: F8 = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return unit


def _alike(a: F8, b: F8) -> float:
    return float(correlate(a, b, method="fft").max())
