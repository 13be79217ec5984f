"""What is kept of a vehicle, as whole numbers: each layer's columns with their quantum, and the rounding.

    track       place, altitude, speed, track, vertical speed, and the highest score over its threshold
    scores      one column per alarm kind: the highest score over its threshold since the sample before
    residuals   one column per channel of `gps_imu`: the largest distance since the sample before

A value is kept as the nearest multiple of its quantum, so it is off by half a quantum at most. UNKNOWN stands for NaN.
What is beyond LARGEST multiples is kept as LARGEST. A layer is known by its name and its columns: another version's
columns make another layer, and both can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I4

UNKNOWN = -(2**31)
# 180 degrees are 1.8e9 of the smallest places; with UNKNOWN this is every number of 32 bits.
LARGEST = 2**31 - 1


class Column(msgspec.Struct, frozen=True, array_like=True):
    """One column: its name (with the unit), what 1 stands for, and, where numbers stand for words, the words."""

    name: str
    quantum: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """The columns of one kind of sample."""

    name: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    def values(self, whole: I4) -> dict[str, F8]:
        """Rows [column, sample] as numbers by name."""
        return {c.name: measured(whole[i], c.quantum) for i, c in enumerate(self.columns)}


SCORE_QUANTUM = 0.01


def track(kinds: Sequence[str]) -> Layer:
    """The picture's own columns. `y`, `x`: 1e-7 degrees or centimetres, as in live/picture.py; `worst` is a kind."""
    return Layer(
        "track",
        (
            Column("y", 1.0),
            Column("x", 1.0),
            Column("alt_m", 0.1),
            Column("speed_mps", 0.1),
            Column("track_deg", 0.1),
            Column("climb_mps", 0.05),
            Column("score", SCORE_QUANTUM),
            Column("worst", 1.0, tuple(kinds)),
            Column("frame", 1.0),
            Column("ground", 1.0),
        ),
    )


def ratios(name: str, columns: Sequence[str]) -> Layer:
    """A layer of scores or distances."""
    return Layer(name, tuple(Column(column, SCORE_QUANTUM) for column in columns))


def whole(values: NDArray[Any], quantum: float) -> I4:
    """Multiples of the quantum; NaN becomes UNKNOWN.

    >>> whole(np.array([0.26, -0.1, np.nan]), 0.1).tolist()
    [3, -1, -2147483648]
    """
    with np.errstate(invalid="ignore"):
        scaled = np.clip(np.rint(values.astype(np.float64) / quantum), -LARGEST, LARGEST)
    numbers: I4 = np.where(np.isnan(scaled), UNKNOWN, scaled).astype(np.int32)
    return numbers


def measured(numbers: I4, quantum: float) -> F8:
    """The reverse."""
    values: F8 = np.where(numbers == UNKNOWN, np.nan, numbers * quantum)
    return values
