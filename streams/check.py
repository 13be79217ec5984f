"""The one check that every sample passes, whatever source it came from: time, required fields, finiteness, range.

Called by the codec (which sends what fails to the dead-letter topic) and by the pipeline (which trusts no log, and
then calls `wrap` so that detectors see angles in one convention: lon in [-180, 180), trk_deg in [0, 360)).
"""

from __future__ import annotations

import numpy as np

from watchkeeper.streams.batch import F8, I8, U1, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, GPS_POSITIONS, T_MAX, T_MIN, Drop, Kind, field_bounds

OK = 0
# What each code of `check` means; the order decides which is reported when several apply.
REASONS: tuple[str, ...] = ("", Drop.TIME, Drop.FINITE, Drop.RANGE, Drop.MISSING)
_TIME, _FINITE, _RANGE, _MISSING = 1, 2, 3, 4


def _rules(kind: Kind) -> tuple[F8, F8, Bool, I8]:
    lo, hi, required = field_bounds(kind)
    either = np.array([[COLUMN[kind][name] for name in pair] for pair in GPS_POSITIONS] if kind is Kind.GPS else [])
    return np.array(lo), np.array(hi), np.array(required), either.astype(np.int64).reshape(-1, 2)


_RULES = {kind: _rules(kind) for kind in Kind}


def check(kind: Kind, t: F8, data: F8) -> U1:
    """One code per sample: OK, or an index into REASONS."""
    codes = np.zeros(len(t), np.uint8)
    # kernels are compiled for one memory layout; most batches have it already
    _check(t, np.ascontiguousarray(data), *_RULES[kind], codes)
    return codes


def wrap(kind: Kind, data: F8) -> F8:
    """The data with angles in one convention; the same array when they are already."""
    for name, lo in (("lon", -180.0), ("trk_deg", 0.0)):
        c = COLUMN[kind].get(name)
        if c is not None and ((data[c] < lo) | (data[c] >= lo + 360.0)).any():
            data = data.copy()
            data[c] = (data[c] - lo) % 360.0 + lo
    return data


@njit(cache=True)
def _check(t: F8, data: F8, lo: F8, hi: F8, required: Bool, either: I8, codes: U1) -> None:
    for i in range(t.size):
        if not (T_MIN <= t[i] <= T_MAX):
            codes[i] = _TIME
    for f in range(data.shape[0]):
        for i in range(t.size):
            x = data[f, i]
            if np.isnan(x):
                if required[f] and codes[i] == OK:
                    codes[i] = _MISSING
            elif not (lo[f] <= x <= hi[f]):
                worse = _FINITE if np.isinf(x) else _RANGE
                if codes[i] == OK or codes[i] > worse:
                    codes[i] = worse
    if either.shape[0] > 0:
        for i in range(t.size):
            whole = False
            for k in range(either.shape[0]):
                if not (np.isnan(data[either[k, 0], i]) or np.isnan(data[either[k, 1], i])):
                    whole = True
            if not whole and codes[i] == OK:
                codes[i] = _MISSING
