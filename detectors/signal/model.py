"""The model of one signal: what its next value should be, how far off it is, and what it learns from it.

    judge(signal, t, x, settled, cfg)      score a value against what was learned before; no learning
    learn(signal, t, x, settled, cfg)      follow it, if it is believed

Holt's level and trend forecast the value; what they miss is held against its usual size, and every statistic against
its own running 99 % quantile, so that a signal which is restless by nature is not called anomalous for it. The quick
statistics (noise, mean error, quick mean) always follow, for they are what is judged; what is usual is learned from
values that are believed only.
"""

from __future__ import annotations

import math
from typing import Any

from watchkeeper.detectors.signal.state import (
    AHEAD,
    CHANGES_FEW,
    CHANGES_MIN,
    CHANGES_SHARE,
    CLIP,
    DISAGREES,
    DOUBT,
    DRIFT,
    GAP_CLIP,
    JUMP,
    MARGINS,
    NOISE_CLIP,
    NOISIER,
    ONE_SIDE,
    Q_AGREE,
    Q_DRIFT,
    Q_JUMP,
    Q_LEAST,
    Q_NOISE,
    QUANTILE_NEW,
    QUANTILE_STEP,
    ROUNDING,
    SLOW,
    STUCK,
    TAIL,
    VALUES_MIN,
    Settings,
)
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def gain(dt: float, memory_s: float) -> float:
    """The weight of a value that stands for dt in a mean that forgets with this time constant."""
    return 1.0 - math.exp(-dt / memory_s)


@njit(cache=True)
def least(s: Any, x: float) -> float:
    """What an error is at least: what the signal counts in, and the rounding of numbers of its size."""
    counted: float = s.quantum if s.quantum < math.inf else 0.0
    rounding: float = ROUNDING * max(abs(x), abs(s.level)) + 1e-300
    return max(counted, rounding)


@njit(cache=True)
def judge(s: Any, t: float, x: float, settled: bool, cfg: Settings) -> None:
    """Set score, bits and expectation; the quick statistics follow the value."""
    dt = t - s.t
    ahead_s = min(t - s.level_t, AHEAD * cfg.level_s)
    s.expected = s.level + s.trend * ahead_s
    tiny = least(s, x)
    error, step = max(s.error, tiny), max(s.step, tiny)
    off = (x - s.expected) / (error + s.roam * (t - s.level_t))
    fast = gain(dt, cfg.fast_s)
    stepped = min(abs(x - s.x) / step, NOISE_CLIP)
    s.noise += fast * (stepped * stepped - s.noise)
    s.bias += fast * (min(max(off, -2.0 * CLIP), 2.0 * CLIP) - s.bias)
    # a single wild value is no drift
    s.quick += gain(dt, 2.0 * cfg.fast_s) * min(max(x - s.quick, -CLIP * error), CLIP * error)
    s.wild += fast * (abs(x - s.quick) - s.wild)
    same_s = t - s.same_t if x == s.x else 0.0
    if not settled or not s.judged or s.learned_s < cfg.learn_s or s.n < VALUES_MIN or s.changes < CHANGES_FEW:
        return
    jump = abs(off) / (MARGINS[Q_JUMP] * cfg.margin * s.quantile[Q_JUMP])
    drift = abs(s.quick - s.slow) / max(s.apart, tiny) / (MARGINS[Q_DRIFT] * cfg.margin * s.quantile[Q_DRIFT])
    if s.learned_s < SLOW * cfg.memory_s:
        drift = 0.0
    noise = math.sqrt(s.noise) / (MARGINS[Q_NOISE] * cfg.margin * s.quantile[Q_NOISE])
    agree = abs(s.off) / (MARGINS[Q_AGREE] * cfg.margin * s.quantile[Q_AGREE])
    stuck = 0.0
    if s.changes >= CHANGES_MIN and s.changes >= CHANGES_SHARE * s.n:
        stuck = same_s / max(cfg.stuck_s, 3.0 * s.same_s, 5.0 * s.interval_s)
    if math.isnan(s.odd_t) and max(jump, drift, noise) >= 1.0:
        s.crept = jump < 1.0 and drift >= 1.0
    bits = 0
    if noise >= 1.0 and abs(s.bias) < ONE_SIDE * CLIP:
        bits |= NOISIER
    if jump >= 1.0 and bits == 0:
        bits |= DRIFT if s.crept else JUMP
    if drift >= 1.0 and bits == 0:
        bits |= DRIFT
    if stuck >= 1.0:
        bits |= STUCK
    if agree >= 1.0 and bits & (JUMP | DRIFT | NOISIER) == 0:
        bits |= DISAGREES
    s.bits |= bits
    s.score = max(s.score, jump, drift, noise, stuck, agree)


@njit(cache=True)
def quantiles(s: Any, t: float, x: float, memory_s: float) -> None:
    """The running quantiles follow the statistics of this value."""
    tiny = least(s, x)
    up = (QUANTILE_STEP if s.learned_s >= memory_s else QUANTILE_NEW) * min(t - s.t, 1.0)
    down = up * TAIL
    for q in range(len(Q_LEAST)):
        if q == Q_JUMP:
            u = abs(x - s.expected) / (max(s.error, tiny) + s.roam * (t - s.level_t))
        elif q == Q_DRIFT:
            u = abs(s.quick - s.slow) / max(s.apart, tiny)
        elif q == Q_NOISE:
            u = math.sqrt(s.noise)
        else:
            u = abs(s.off)
        s.quantile[q] = max(Q_LEAST[q], s.quantile[q] * math.exp(up if u > s.quantile[q] else -down))


@njit(cache=True)
def learn(s: Any, t: float, x: float, settled: bool, cfg: Settings) -> None:
    """The value is believed: level, trend and what is usual follow it."""
    dt = t - s.t
    off = x - s.expected
    a, b = gain(dt, cfg.level_s), gain(dt, cfg.memory_s)
    if not settled:
        # a new state has a level of its own
        s.level, s.quick, s.slow, s.trend, s.bias, s.noise = x, x, x, 0.0, 0.0, 1.0
    else:
        before = s.level
        s.level = s.expected + a * off
        s.trend += gain(dt, 5.0 * cfg.level_s) * ((s.level - before) / max(t - s.level_t, dt) - s.trend)
        # the first values are worth more: a mean, until there is a memory's worth of them
        c = max(b, min(1.0, dt / max(s.learned_s + dt, 1e-9)))
        # one wild value must not teach much; the first ones, and those of a number that never moved before, may
        known, tiny = s.n > VALUES_MIN and s.changes >= CHANGES_FEW, least(s, x)
        s.error += c * (min(abs(off), CLIP * max(s.error, tiny) if known else abs(off)) - s.error)
        s.step += c * (min(abs(x - s.x), CLIP * max(s.step, tiny) if known else abs(x - s.x)) - s.step)
        s.roam += c * (abs(s.trend) - s.roam)
        apart = abs(s.quick - s.slow)
        if known and apart > max(s.apart, tiny) * s.quantile[Q_DRIFT]:
            c *= DOUBT
        s.slow += c * (x - s.slow)
        s.apart += c * (apart - s.apart)
        s.learned_s += min(dt, 5.0)
    s.level_t = t


@njit(cache=True)
def keep_time(s: Any, t: float, x: float, cfg: Settings) -> None:
    """Intervals, gaps, and how long the value stays the same: of every value, believed or not."""
    dt = t - s.t
    if math.isnan(s.interval_s):
        s.interval_s = dt
    s.interval_s += gain(min(dt, 10.0 * s.interval_s), 0.25 * cfg.memory_s) * (
        min(dt, GAP_CLIP * s.interval_s) - s.interval_s
    )
    fade = math.exp(-dt / (10.0 * cfg.memory_s))
    s.gap_s = max(s.gap_s * fade, dt)
    if x != s.x:
        s.same_s = max(s.same_s * fade, t - s.same_t)
        s.same_t = t
        s.changes += 1
        s.quantum = min(s.quantum, abs(x - s.x))


@njit(cache=True)
def begin(s: Any, t: float, x: float) -> None:
    """The first value of a signal."""
    s.level = s.quick = s.slow = s.expected = x
    s.level_t = s.same_t = t


@njit(cache=True)
def settle_for(s: Any, t: float, x: float) -> None:
    """What has lasted so long is normal from now on; its statistics have a wider tail than was known."""
    s.level = s.quick = s.slow = x
    s.level_t, s.trend, s.bias, s.noise, s.off = t, 0.0, 0.0, 1.0, 0.0
    s.error, s.step, s.apart = max(s.error, s.wild), max(s.step, s.wild), max(s.apart, s.wild)
    for q in range(len(Q_LEAST)):
        s.quantile[q] *= 1.2
    s.pair[0] = 0.0
    s.odd_t = math.nan
