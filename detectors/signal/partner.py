"""Two signals of a vehicle that agree: which is the partner of which, and whether they still do.

Each signal has at most one partner, the one that explains it best by a straight line, and tries the vehicle's others
one after the other, for a while each: two sets of moments a signal, however many there are. Moments are means that
forget: weight, both means, both variances, covariance.
"""

from __future__ import annotations

import math
from typing import Any

from watchkeeper.detectors.signal.model import gain
from watchkeeper.detectors.signal.state import (
    AGREE_R2,
    AGREED,
    BETTER_R2,
    CHANGES_SHARE,
    HOPELESS,
    HOPELESS_R2,
    PARTNER_AGE,
    Q_AGREE,
    ROUNDING,
    Settings,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def _explained(m: F8) -> float:
    """The share of the variance that a straight line explains."""
    return m[4] * m[4] / (m[3] * m[5]) if m[3] > 0.0 and m[5] > 0.0 else 0.0


@njit(cache=True)
def _take(m: F8, x: float, y: float, dt: float, memory_s: float) -> None:
    if m[0] == 0.0:
        m[1], m[2], m[3], m[4], m[5] = x, y, 0.0, 0.0, 0.0
    a = max(gain(dt, memory_s), dt / (m[0] + dt))
    dx, dy = x - m[1], y - m[2]
    m[1] += a * dx
    m[2] += a * dy
    m[3] = (1.0 - a) * (m[3] + a * dx * dx)
    m[4] = (1.0 - a) * (m[4] + a * dx * dy)
    m[5] = (1.0 - a) * (m[5] + a * dy * dy)
    m[0] = min(m[0] + dt, memory_s)


@njit(cache=True)
def _speaks(p: Any, t: float) -> bool:
    return p.n > 1 and t - p.now_t <= PARTNER_AGE * p.interval_s and math.isnan(p.odd_t)


@njit(cache=True)
def compare(s: Any, t: float, x: float, signals: Any, cfg: Settings) -> float:
    """Let `off` follow what the partner does not explain; the value that it does explain, NaN without one."""
    m = s.pair
    if s.partner < 0 or m[0] < AGREED * cfg.learn_s or _explained(m) < AGREE_R2 or not _speaks(signals[s.partner], t):
        s.off *= math.exp(-(t - s.t) / cfg.fast_s)
        return math.nan
    slope = m[4] / m[5]
    expected: float = m[1] + slope * (signals[s.partner].now - m[2])
    tiny = ROUNDING * max(abs(x), abs(m[1])) + 1e-300
    usual = max(math.sqrt(max(m[3] - slope * m[4], 0.0)), tiny)
    s.off += gain(t - s.t, cfg.fast_s) * (min(max((x - expected) / usual, -30.0), 30.0) - s.off)
    return expected


@njit(cache=True)
def learn_pair(s: Any, row: int, t: float, x: float, signals: Any, cfg: Settings) -> None:
    """Both sets of moments follow; a better partner takes the place of the one there is."""
    dt = t - s.t
    # what the partner does not explain must not become what it explains
    if s.partner >= 0 and _speaks(signals[s.partner], t) and abs(s.off) <= s.quantile[Q_AGREE]:
        _take(s.pair, x, signals[s.partner].now, dt, cfg.memory_s)
    if s.tried < 0:
        s.tried, s.tried_t = s.after, t
        s.trial[0] = 0.0
    tried, other = signals[s.tried], _explained(s.trial)
    # a number that seldom changes agrees with any other for a while
    able = s.tried not in (row, s.partner) and tried.judged and tried.changes >= CHANGES_SHARE * tried.n
    hopeless = s.trial[0] >= HOPELESS * cfg.learn_s and other < HOPELESS_R2
    if not able or hopeless or s.trial[0] >= cfg.learn_s or t - s.tried_t > 3.0 * cfg.learn_s:
        mine = _explained(s.pair) if s.partner >= 0 else 0.0
        if able and s.trial[0] >= cfg.learn_s and other >= AGREE_R2 and other > mine + BETTER_R2:
            s.partner, s.off = s.tried, 0.0
            for i in range(len(s.pair)):
                s.pair[i] = s.trial[i]
        s.tried, s.tried_t = tried.after, t
        s.trial[0] = 0.0
    elif _speaks(tried, t):
        _take(s.trial, x, tried.now, dt, cfg.memory_s)
