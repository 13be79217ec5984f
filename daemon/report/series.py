"""Columns as the page's script reads them: numbers of 16 bits between the least and the greatest value, as base64.

The least and the greatest value of a line are in it exactly; between them a step is a 65,534th of the range. What was
joined to save room is still an envelope: the lowest and the highest value of each bin.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.daemon.report.gather.envelope import Envelope
from watchkeeper.streams.batch import F8, I8

ABSENT, STEPS = 65_535, 65_534
# Digits of a time in the page: a millisecond.
TIME_DIGITS = 3
Wide = NDArray[np.floating[Any]]


def line(envelope: Envelope, column: str, row: int, bins: int) -> dict[str, Any] | None:
    """One column of one vehicle in at most so many bins; None when it was never heard."""
    c = envelope.columns.index(column)
    if row >= envelope.rows or not np.isfinite(envelope.hi[c, row]).any():
        return None
    used = int(np.flatnonzero(envelope.count[row])[-1]) + 1
    lo, hi, width_s = envelope.lo[c, row, :used], envelope.hi[c, row, :used], float(envelope.width_s[row])
    while len(lo) > bins:
        lo, hi, width_s = _joined(lo, np.fmin), _joined(hi, np.fmax), 2.0 * width_s
    least, most = float(np.nanmin(lo)), float(np.nanmax(hi))
    packed = {
        "t": round(float(envelope.origin_t[row]), TIME_DIGITS),
        "w": width_s,
        "min": least,
        "max": most,
        "lo": _packed(lo, least, most),
    }
    # a bin with one sample, or with equal ones, is a point
    if not np.array_equal(lo, hi, equal_nan=True):
        packed["hi"] = _packed(hi, least, most)
    return packed


def track(envelope: Envelope, row: int, every: int = 1) -> dict[str, Any] | None:
    """The positions of one vehicle, of each `every`-th bin the first; None when there are none."""
    if row >= envelope.rows:
        return None
    filled = np.flatnonzero(np.isfinite(envelope.first[:, row]).all(axis=0))
    _, first = np.unique(filled // every, return_index=True)
    # the last one is where the track ends
    at: I8 = np.union1d(filled[first], filled[-1:]).astype(np.int64)
    if not len(at):
        return None
    box = []
    packed: dict[str, Any] = {}
    for name, values in zip(("x", "y"), envelope.first[:, row, at], strict=True):
        box += [float(values.min()), float(values.max())]
        packed[name] = _packed(values, box[-2], box[-1])
    return {
        "t": round(float(envelope.origin_t[row]), TIME_DIGITS),
        "w": float(envelope.width_s[row]),
        "i": _base64(at),
        "box": [round(edge, 3) for edge in box],
        **packed,
    }


def points(envelope: Envelope, row: int) -> int:
    """How many positions of a vehicle there are."""
    return int(np.isfinite(envelope.first[0, row]).sum()) if row < envelope.rows else 0


def _joined(values: Wide, choose: Any) -> Wide:
    if len(values) % 2:
        values = np.append(values, np.nan)
    joined: Wide = choose(values[::2], values[1::2])
    return joined


def _packed(values: Wide | F8, least: float, most: float) -> str:
    scale = STEPS / (most - least) if most > least else 0.0
    steps = np.where(np.isfinite(values), np.clip(np.rint((values - least) * scale), 0, STEPS), ABSENT)
    return _base64(steps)


def _base64(numbers: NDArray[Any]) -> str:
    return b64encode(numbers.astype("<u2").tobytes()).decode()
