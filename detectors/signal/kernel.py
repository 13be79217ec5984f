"""One window of values through their signals, and what is found of each vehicle.

    find(…)      the row of each value; -1 where its name is new, -2 where its vehicle may have no more
    follow(…)    score and learn each value, and write down the findings: at most one for each vehicle and time

A vehicle's alarm is about one signal at a time, its lead: the first that is over the threshold, until it is no more.
Counting epochs so means N values in a row of the same signal: fifty signals that are each odd for a moment are none.
"""

from __future__ import annotations

import math
from typing import Any

from watchkeeper.detectors.signal.model import begin, judge, keep_time, learn, quantiles, settle_for
from watchkeeper.detectors.signal.partner import compare, learn_pair
from watchkeeper.detectors.signal.state import (
    ARMED,
    BEYOND,
    CHANGES_FEW,
    DISAGREES,
    MODE,
    NAMED_S,
    RANGE,
    RHYTHM,
    TOGETHER,
    TOGETHER_SHARE,
    Settings,
)
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import NAME_COLUMNS, SIGNAL
from watchkeeper.streams.signals import LABEL_MIN

_VALUE, _NAME = SIGNAL.value, SIGNAL.name_0


@njit(cache=True)
def find(slot: I4, data: F8, signals: Any, vehicles: Any, most: int, rows: I4) -> int:
    """The row of each value; how many were not found."""
    missing = 0
    for i in range(slot.size):
        vehicle = vehicles[slot[i]]
        rows[i] = -1
        row = vehicle.at
        for _ in range(vehicle.signals):
            row = signals[row].after
            name, same = signals[row].name, True
            for c in range(NAME_COLUMNS):
                if name[c] != data[_NAME + c, i]:
                    same = False
                    break
            if same:
                rows[i] = vehicle.at = row
                break
        if rows[i] < 0:
            missing += 1
            if vehicle.signals >= most:
                rows[i] = -2
    return missing


@njit(cache=True)
def _others_inside(s: Any, vehicle: Any, signals: Any) -> bool:
    """Whether another signal with the same limits is within them now."""
    row = s.after
    for _ in range(vehicle.signals - 1):
        other = signals[row]
        if other.group == s.group and other.low <= other.now <= other.high:
            return True
        row = other.after
    return False


@njit(cache=True)
def _value(s: Any, row: int, vehicle: Any, t: float, x: float, signals: Any, cfg: Settings) -> None:
    """One value: score first, learn after."""
    armed = vehicle.armed > 0.5
    s.score, s.bits, s.taken, s.fresh = 0.0, 0, False, True
    if s.armed_only and not armed:
        s.inside = False
    elif s.low <= x <= s.high:
        s.inside = True
    elif (s.inside or not s.armed_only) and (s.group < 0 or _others_inside(s, vehicle, signals)):
        s.bits, s.score = RANGE, BEYOND
    if s.n == 0:
        begin(s, t, x)
    elif abs(x) < LABEL_MIN:
        settled = t - vehicle.since_t >= cfg.settle_s
        explained = compare(s, t, x, signals, cfg)
        judge(s, t, x, settled, cfg)
        beyond = s.bits & ~RANGE
        if s.bits == DISAGREES:
            s.expected = explained
        believed = beyond == 0
        if not believed and math.isnan(s.odd_t):
            s.odd_t = t
        if not believed and t - s.odd_t >= cfg.relearn_s:
            settle_for(s, t, x)
            believed = s.taken = True
            s.score, s.bits = 0.0, s.bits & RANGE
            if s.bits:
                s.score = BEYOND
        if settled and (believed or s.run < cfg.patience):
            quantiles(s, t, x, cfg.memory_s)
        keep_time(s, t, x, cfg)
        if believed:
            s.odd_t = math.nan
            learn(s, t, x, settled, cfg)
            if settled:
                learn_pair(s, row, t, x, signals, cfg)
    s.run = s.run + 1 if s.score >= 1.0 else 0
    s.t, s.x, s.n = t, x, s.n + 1


@njit(cache=True)
def _write(out: Any, slot: int, row: int, t: float, vehicle: Any, signals: Any) -> None:
    out.slot, out.row, out.t = slot, row, t
    out.mode, out.armed = vehicle.mode, vehicle.armed
    out.news, out.taken = False, vehicle.taken
    out.severity, out.bits = 0, 0
    out.score, out.value, out.expected, out.usual, out.off = 0.0, math.nan, math.nan, math.nan, math.nan
    if row < 0 and t - vehicle.last_t <= NAMED_S:
        out.row = vehicle.last
    if row >= 0:
        vehicle.last, vehicle.last_t = row, t
        s = signals[row]
        out.score, out.bits, out.value, out.expected = s.score, s.bits, s.x, s.expected
        out.usual, out.off, out.taken = s.error, s.off, s.taken or vehicle.taken
        if s.bits & RANGE:
            out.severity = s.grade


@njit(cache=True)
def _worse(a: Any, b: Any) -> bool:
    """Known limits before everything else, by their severity; then the score."""
    known, other = a.bits & RANGE, b.bits & RANGE
    if known and other and a.grade != b.grade:
        return a.grade > b.grade  # type: ignore[no-any-return]
    return known > other or (known == other and a.score > b.score)  # type: ignore[no-any-return]


@njit(cache=True)
def _missed(vehicle: Any, signals: Any, cfg: Settings) -> int:
    """The signal of a vehicle that is missed most while others go on; -1: none. One gone for long is learned anew."""
    worst, most, row = -1, 1.0, vehicle.first
    for _ in range(vehicle.signals):
        s = signals[row]
        if s.judged and s.learned_s >= cfg.learn_s:
            limit_s = max(cfg.gap_s, 5.0 * s.interval_s, 2.0 * s.gap_s)
            late = (vehicle.t - s.t) / limit_s
            if late >= 1.0:
                s.score, s.bits, s.expected, s.fresh = late, RHYTHM, s.level, True
                if vehicle.t - s.t >= limit_s + cfg.relearn_s:
                    s.score, s.bits, s.learned_s, s.taken = 0.0, 0, 0.0, True
                elif late >= most:
                    most, worst = late, row
        row = s.after
    return worst


@njit(cache=True)
def _together(vehicle: Any, signals: Any, cfg: Settings) -> bool:
    """Whether so many of a vehicle's signals are odd that it is the vehicle; they are then taken as normal."""
    odd, judged, row = 0, 0, vehicle.first
    for _ in range(vehicle.signals):
        s = signals[row]
        if s.judged and s.learned_s >= cfg.learn_s and s.changes >= CHANGES_FEW:
            judged += 1
            odd += not math.isnan(s.odd_t)
        row = s.after
    if odd < max(TOGETHER, TOGETHER_SHARE * judged):
        return False
    for _ in range(vehicle.signals):
        s = signals[row]
        if not math.isnan(s.odd_t):
            settle_for(s, s.t, s.x)
            s.taken, s.run = True, 0
            s.bits &= RANGE
            s.score = BEYOND if s.bits else 0.0
        row = s.after
    vehicle.since_t = vehicle.t
    return True


@njit(cache=True)
def _states(rows: I4, data: F8, start: int, stop: int, t: float, vehicle: Any, signals: Any) -> None:
    """Whether it is armed and in which mode, and what partners will be held against, before anything is judged."""
    for k in range(start, stop):
        if rows[k] >= 0:
            s, x = signals[rows[k]], data[_VALUE, k]
            if not t <= s.now_t:
                s.now, s.now_t = x, t
            role = s.role
            if role == ARMED and vehicle.armed != x:
                vehicle.armed, vehicle.since_t = x, t
            elif role == MODE and vehicle.mode != x:
                vehicle.mode, vehicle.since_t = x, t


@njit(cache=True)
def follow(slot: I4, t: F8, data: F8, rows: I4, tables: Any, cfg: Settings, out: Any) -> int:
    """All values of a window, sorted by (slot, t); how many findings there are, at most two for each value."""
    signals, vehicles, counts = tables
    n, found, i = slot.size, 0, 0
    while i < n:
        own, begun = slot[i], found
        vehicle = vehicles[own]
        quiet = False
        while i < n and slot[i] == own:
            # what has one time
            stop, now = i, t[i]
            while stop < n and slot[stop] == own and t[stop] == now:
                stop += 1
            vehicle.t = max(vehicle.t, now)
            _states(rows, data, i, stop, now, vehicle, signals)
            for k in range(i, stop):
                if rows[k] >= 0:
                    s = signals[rows[k]]
                    if s.n > 0 and now <= s.t:
                        counts[0].duplicates += 1
                    else:
                        _value(s, rows[k], vehicle, now, data[_VALUE, k], signals, cfg)
            told = False
            lead = vehicle.lead
            if lead >= 0 and signals[lead].fresh and signals[lead].bits != RHYTHM:
                over = signals[lead].score >= 1.0
                _write(out[found], own, lead if over or signals[lead].taken else -1, now, vehicle, signals)
                found, told = found + 1, True
                if not over:
                    vehicle.lead, vehicle.taken = -1, signals[lead].taken
            best, news = -1, False
            for k in range(i, stop):
                if rows[k] >= 0 and signals[rows[k]].fresh:
                    s = signals[rows[k]]
                    s.fresh = False
                    news = news or (s.run == cfg.patience and rows[k] != vehicle.lead)
                    if s.score >= 1.0 and (best < 0 or _worse(s, signals[best])):
                        best = rows[k]
            if told and best >= 0 and vehicle.lead >= 0 and signals[best].bits & ~signals[vehicle.lead].bits & RANGE:
                # a known limit need not be counted again
                vehicle.lead = best
                _write(out[found - 1], own, best, now, vehicle, signals)
            if vehicle.lead < 0 and best >= 0:
                vehicle.lead, vehicle.taken = best, False
                if not told:
                    _write(out[found], own, best, now, vehicle, signals)
                    found, told = found + 1, True
            if told:
                out[found - 1].news = news
            quiet = not told
            i = stop
        if _together(vehicle, signals, cfg) and vehicle.lead >= 0 and signals[vehicle.lead].score < 1.0:
            vehicle.lead, vehicle.taken = -1, True
            if found > begun and out[found - 1].t == t[i - 1]:
                _write(out[found - 1], own, -1, t[i - 1], vehicle, signals)
        missed, last_t = _missed(vehicle, signals, cfg), t[i - 1]
        lead = vehicle.lead
        gone = lead >= 0 and signals[lead].bits == RHYTHM
        if lead >= 0 and missed < 0 and signals[lead].taken:
            gone, vehicle.lead, vehicle.taken = False, -1, True
        if missed >= 0 and (lead < 0 or gone):
            vehicle.lead, vehicle.taken = missed, False
        # one finding for each vehicle and time
        if found == begun or (quiet and out[found - 1].t < last_t):
            if vehicle.lead >= 0 and signals[vehicle.lead].bits == RHYTHM:
                _write(out[found], own, vehicle.lead, last_t, vehicle, signals)
                found += 1
            elif vehicle.lead < 0:
                _write(out[found], own, -1, last_t, vehicle, signals)
                found += 1
    return found
