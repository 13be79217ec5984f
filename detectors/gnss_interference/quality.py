"""What each aircraft says about its own position, against what it used to say. Used by detector.py.

Two categories of ADS-B (DO-260B) grade a position, larger is better:

    NACp  accuracy: 95 % of errors are below    11: 3 m    10: 10 m  9: 30 m  8: 93 m   7: 185 m  …  1: 10 NM
    NIC   integrity: containment radius below   11: 7.5 m  10: 25 m  9: 75 m  8: 185 m  7: 370 m  …  1: 20 NM

and 0 is worse or unknown.

Of each an aircraft has a level: what it reports while it is well, quick to rise and slow to fall. It has collapsed
while it reports less than the minimum and at least `drop` less than its level; nothing is learned meanwhile, unless
that lasts for `accept_s`. An aircraft whose level is below the minimum has nothing to lose and takes no part. Reports
without these fields, or from the ground, are not looked at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.detectors.gnss_interference import GnssInterference
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.gnss_interference.constants import CLOSE, PARKED_KT, RISE_S
from watchkeeper.detectors.kernels.records import blank, take_over
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB

CATEGORIES = 2


class Level:
    """One category of one aircraft (detectors/kernels/records.py)."""

    level: float = math.nan
    since_t: float = math.nan
    """Since when it has one."""
    seen_t: float = math.nan
    """Last report."""
    low_t: float = math.nan
    """Since when it has been low; NaN: it is not."""


class Rules(NamedTuple):
    """Thresholds as the kernels take them; see config/detectors/gnss_interference.py."""

    floors: tuple[float, float]
    """Minimum of each category."""
    drop: float
    past_s: float
    min_past_s: float
    accept_s: float


class Quality:
    """The levels of the whole fleet, and who has collapsed."""

    def __init__(self, cfg: GnssInterference, fleet: Fleet) -> None:
        self._fleet = fleet
        self._levels: NDArray[Any] = blank(Level, (fleet.capacity, CATEGORIES))
        # room for `heard`: who can tell something now, the time of the report, and whether it is a collapse
        self._slot: I4 = np.empty(fleet.capacity, np.int32)
        self._seen_t: F8 = np.empty(fleet.capacity)
        self._low: Bool = np.empty(fleet.capacity, bool)
        self.retune(cfg)

    def retune(self, cfg: GnssInterference) -> None:
        """Take new thresholds."""
        self._cfg = cfg
        floors = float(cfg.nacp_min), float(cfg.nic_min)
        self._rules = Rules(floors, float(cfg.drop), cfg.past_s, cfg.min_past_s, cfg.accept_s)

    def heard(self, t: float) -> tuple[I4, F8, Bool]:
        """Aircraft with a past and a fresh report at time t: slots (ascending), time of the report, collapsed."""
        levels = self._levels[: self._fleet.high]
        n = _heard(t - self._cfg.max_age_s, self._rules, levels, self._slot, self._seen_t, self._low)
        return self._slot[:n], self._seen_t[:n], self._low[:n]

    def take(self, samples: Samples) -> None:
        """Compare each report with the level before it, then learn from it."""
        _take(samples.slot, samples.t, samples.data, self._fleet.away, self._rules, self._levels)

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._levels[slots] = blank(Level, 1)

    def snapshot(self) -> dict[str, Any]:
        """The levels."""
        return {"levels": self._levels[: self._fleet.high]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        take_over(self._levels, state["levels"])


@njit(cache=True)
def _take(slot: I4, t: F8, data: F8, away: tuple[float, float], rules: Rules, levels: NDArray[Any]) -> None:
    left_t, back_t = away
    for i in range(slot.size):
        ground = data[ADSB.on_ground, i]
        if ground == 1.0 or (np.isnan(ground) and data[ADSB.gs_kt, i] < PARKED_KT):
            continue
        for q in range(CATEGORIES):
            x = data[ADSB.nacp if q == 0 else ADSB.nic, i]
            if np.isnan(x):
                continue
            s, floor = levels[slot[i], q], rules.floors[q]
            # time in which we were not running is nobody's silence
            gap_s = t[i] - s.seen_t - max(0.0, back_t - max(s.seen_t, left_t))
            if np.isnan(s.level) or gap_s > rules.past_s:
                s.level, s.since_t, s.low_t = x, t[i], np.nan
            else:
                young = t[i] - s.since_t < rules.min_past_s
                if not young and s.level >= floor and x < floor and s.level - x >= rules.drop:
                    if np.isnan(s.low_t):
                        s.low_t = t[i]
                    elif t[i] - s.low_t > rules.accept_s:
                        s.level, s.since_t, s.low_t = x, t[i], np.nan
                else:
                    s.low_t = np.nan
                    if abs(x - s.level) < CLOSE:
                        s.level = x
                    else:
                        tau_s = RISE_S if young or x > s.level else rules.past_s
                        s.level += (x - s.level) * (1.0 - np.exp(-gap_s / tau_s))
            s.seen_t = t[i]


@njit(cache=True)
def _heard(oldest: float, rules: Rules, levels: NDArray[Any], slot: I4, seen_t: F8, low: Bool) -> int:
    n = 0
    for a in range(levels.shape[0]):
        seen = -np.inf
        collapsed = False
        for q in range(CATEGORIES):
            s = levels[a, q]
            # NaN, an aircraft without a level, fails every comparison
            if s.seen_t >= oldest and s.level >= rules.floors[q] and s.seen_t - s.since_t >= rules.min_past_s:
                seen = max(seen, s.seen_t)
                collapsed = collapsed or not np.isnan(s.low_t)
        if seen > -np.inf:
            slot[n], seen_t[n], low[n] = a, seen, collapsed
            n += 1
    return n
