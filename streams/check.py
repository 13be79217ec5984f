"""The one check that every sample passes once, whatever source it came from: time, required fields, finiteness, range.

    sound(kind, columns, refuse) -> Columns     one kind, for sources that can say which of their rows is bad
    checked(batch, refused) -> CheckedBatch     a whole batch; one that is checked already passes untouched

The codec and the readers of tables call `sound`: they send what fails to the dead-letter topic, or name its row. The
pipeline calls `checked` for batches from anywhere else, a log or a user's program, and judges nothing that is not a
CheckedBatch. Both give angles in one convention: lon in [-180, 180), trk_deg in [0, 360).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from watchkeeper.streams.batch import F8, I8, U1, Batch, Bool, CheckedBatch, Columns
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, FIELDS, FIX_MIN, GPS_POSITIONS, T_MAX, T_MIN, Drop, Kind, field_bounds

OK = 0
# What each code means; the order decides which is reported when several apply.
REASONS: tuple[str, ...] = ("", Drop.TIME, Drop.FINITE, Drop.RANGE, Drop.MISSING)
_TIME, _FINITE, _RANGE, _MISSING = 1, 2, 3, 4
_TURN_DEG = 360.0

# Gets one code per sample: OK, or an index into REASONS. Called only when there is something to refuse.
Refuse = Callable[[U1], None]
# Gets how many samples of a kind were refused for a reason.
Refused = Callable[[Kind, str, int], None]


class _Rules(NamedTuple):
    """What the kernel holds the fields of a kind against; `either` are pairs of which one must be whole.

    Unless a field of `excuses` is below its limit in `excused`: a receiver without a fix has no position.
    """

    lo: F8
    hi: F8
    least: F8
    required: Bool
    either: I8
    excuses: I8
    excused: F8


def _rules(kind: Kind) -> _Rules:
    lo, hi, required = field_bounds(kind)
    least = np.array([f.least for f in FIELDS[kind]])
    either = np.array([[COLUMN[kind][name] for name in pair] for pair in GPS_POSITIONS] if kind is Kind.GPS else [])
    excuses = {COLUMN[kind]["fix"]: FIX_MIN, COLUMN[kind]["sats"]: 1.0} if kind is Kind.GPS else {}
    return _Rules(
        np.array(lo), np.array(hi), least, np.array(required), either.astype(np.int64).reshape(-1, 2),
        np.array(list(excuses), np.int64), np.array(list(excuses.values())),
    )  # fmt: skip


_RULES = {kind: _rules(kind) for kind in Kind}


def checked(batch: Batch, refused: Refused = lambda _kind, _reason, _n: None) -> CheckedBatch:
    """The samples that can be judged; `refused` is told how many of the others there are, by reason."""
    if isinstance(batch, CheckedBatch):
        return batch

    def count(kind: Kind, codes: U1) -> None:
        for code in np.unique(codes[codes != OK]).tolist():
            refused(kind, REASONS[code], int((codes == code).sum()))

    kinds = {kind: sound(kind, cols, partial(count, kind)) for kind, cols in batch.kinds.items()}
    kept = {k: c for k, c in kinds.items() if len(c)}
    return CheckedBatch(batch.ids, kept, batch.vias, batch.callsigns, batch.called_t)


def sound(kind: Kind, cols: Columns, refuse: Refuse) -> Columns:
    """The samples of one kind that can be judged, angles in one convention; the same columns when all is well."""
    codes = np.zeros(len(cols), np.uint8)
    # kernels are compiled for one memory layout; most batches have it already
    _check(cols.t, np.ascontiguousarray(cols.data), _RULES[kind], codes)
    if codes.any():
        refuse(codes)
        cols = cols.take(codes == OK)
    data = _wrap(kind, cols.data)
    return cols if data is cols.data else Columns(cols.seq, cols.vid, cols.via, cols.t, data)


def _wrap(kind: Kind, data: F8) -> F8:
    """The data with angles in one convention; the same array when they are already."""
    for name, lo in (("lon", -180.0), ("trk_deg", 0.0)):
        c = COLUMN[kind].get(name)
        # an angle that is in range keeps its bits, whatever shares the batch: cutting a log elsewhere changes nothing
        if c is not None and (out := (data[c] < lo) | (data[c] >= lo + _TURN_DEG)).any():
            data = data.copy()
            turned = (data[c, out] - lo) % _TURN_DEG + lo
            # a hair below a full turn is rounded to one
            data[c, out] = np.where(turned < lo + _TURN_DEG, turned, lo)
    return data


@njit(cache=True)
def _check(t: F8, data: F8, rules: _Rules, codes: U1) -> None:
    lo, hi, least, required, either = rules.lo, rules.hi, rules.least, rules.required, rules.either
    for i in range(t.size):
        if not (T_MIN <= t[i] <= T_MAX):
            codes[i] = _TIME
    for f in range(data.shape[0]):
        for i in range(t.size):
            x = data[f, i]
            if np.isnan(x):
                if required[f] and codes[i] == OK:
                    codes[i] = _MISSING
            elif not (lo[f] <= x <= hi[f]) or 0.0 < abs(x) < least[f]:
                worse = _FINITE if np.isinf(x) else _RANGE
                if codes[i] == OK or codes[i] > worse:
                    codes[i] = worse
    if either.shape[0] > 0:
        for i in range(t.size):
            whole = False
            for k in range(either.shape[0]):
                if not (np.isnan(data[either[k, 0], i]) or np.isnan(data[either[k, 1], i])):
                    whole = True
            for k in range(rules.excuses.size):
                whole |= data[rules.excuses[k], i] < rules.excused[k]
            if not whole and codes[i] == OK:
                codes[i] = _MISSING
