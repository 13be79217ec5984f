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

from typing import Any

import numpy as np

from watchkeeper.config.detectors.gnss_interference import GnssInterference
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

# A level follows a better report, and a young one any report, with this time constant: one good report among poor ones
# is no good past.
RISE_S = 30.0
# Less than this from a report the level is there: most aircraft say the same all day, and an exponential is slow.
CLOSE = 0.01
# Slower than this without an on-ground flag counts as parked.
PARKED_KT = 30.0

_NACP, _NIC, _GS, _GROUND = (COLUMN[Kind.ADSB][name] for name in ("nacp", "nic", "gs_kt", "on_ground"))
# Per aircraft and category: level, since when it has one, last report, since when it has been low (NaN: it is not).
_LEVEL, _SINCE, _SEEN, _LOW_SINCE = range(4)
CATEGORIES, STATE = 2, 4


class Quality:
    """The levels of the whole fleet, and who has collapsed."""

    def __init__(self, cfg: GnssInterference, fleet: Fleet) -> None:
        self._fleet = fleet
        self._state: F8 = np.full((fleet.capacity, CATEGORIES, STATE), np.nan)
        # room for `heard`: who can tell something now, the time of the report, and whether it is a collapse
        self._slot: I4 = np.empty(fleet.capacity, np.int32)
        self._seen_t: F8 = np.empty(fleet.capacity)
        self._low: Bool = np.empty(fleet.capacity, bool)
        self.retune(cfg)

    def retune(self, cfg: GnssInterference) -> None:
        """Take new thresholds."""
        self._cfg = cfg
        self._floor = np.array([cfg.nacp_min, cfg.nic_min], np.float64)

    def heard(self, t: float) -> tuple[I4, F8, Bool]:
        """Aircraft with a past and a fresh report at time t: slots (ascending), time of the report, collapsed."""
        cfg = self._cfg
        n = _heard(
            t - cfg.max_age_s, cfg.min_past_s, self._floor, self._state[: self._fleet.high],
            self._slot, self._seen_t, self._low,
        )  # fmt: skip
        return self._slot[:n], self._seen_t[:n], self._low[:n]

    def take(self, samples: Samples) -> None:
        """Compare each report with the level before it, then learn from it."""
        cfg = self._cfg
        left_t, back_t = self._fleet.away
        _take(
            samples.slot, samples.t, samples.data, left_t, back_t,
            self._floor, cfg.drop, cfg.past_s, cfg.min_past_s, cfg.accept_s, self._state,
        )  # fmt: skip

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._state[slots] = np.nan

    def snapshot(self) -> dict[str, Any]:
        """The levels."""
        return {"state": self._state[: self._fleet.high]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        saved = state["state"]
        self._state[: len(saved)] = saved


@njit(cache=True)
def _take(
    slot: I4, t: F8, data: F8, left_t: float, back_t: float,
    floor: F8, drop: float, past_s: float, min_past_s: float, accept_s: float, state: F8,
) -> None:  # fmt: skip
    for i in range(slot.size):
        ground = data[_GROUND, i]
        if ground == 1.0 or (np.isnan(ground) and data[_GS, i] < PARKED_KT):
            continue
        for q in range(CATEGORIES):
            x = data[_NACP if q == 0 else _NIC, i]
            if np.isnan(x):
                continue
            s = state[slot[i], q]
            # time in which we were not running is nobody's silence
            gap_s = t[i] - s[_SEEN] - max(0.0, back_t - max(s[_SEEN], left_t))
            if np.isnan(s[_LEVEL]) or gap_s > past_s:
                s[_LEVEL], s[_SINCE], s[_LOW_SINCE] = x, t[i], np.nan
            else:
                young = t[i] - s[_SINCE] < min_past_s
                if not young and s[_LEVEL] >= floor[q] and x < floor[q] and s[_LEVEL] - x >= drop:
                    if np.isnan(s[_LOW_SINCE]):
                        s[_LOW_SINCE] = t[i]
                    elif t[i] - s[_LOW_SINCE] > accept_s:
                        s[_LEVEL], s[_SINCE], s[_LOW_SINCE] = x, t[i], np.nan
                else:
                    s[_LOW_SINCE] = np.nan
                    if abs(x - s[_LEVEL]) < CLOSE:
                        s[_LEVEL] = x
                    else:
                        tau_s = RISE_S if young or x > s[_LEVEL] else past_s
                        s[_LEVEL] += (x - s[_LEVEL]) * (1.0 - np.exp(-gap_s / tau_s))
            s[_SEEN] = t[i]


@njit(cache=True)
def _heard(oldest: float, min_past_s: float, floor: F8, state: F8, slot: I4, seen_t: F8, low: Bool) -> int:
    n = 0
    for a in range(state.shape[0]):
        seen = -np.inf
        collapsed = False
        for q in range(CATEGORIES):
            s = state[a, q]
            # NaN, an aircraft without a state, fails every comparison
            if s[_SEEN] >= oldest and s[_LEVEL] >= floor[q] and s[_SEEN] - s[_SINCE] >= min_past_s:
                seen = max(seen, s[_SEEN])
                collapsed = collapsed or not np.isnan(s[_LOW_SINCE])
        if seen > -np.inf:
            slot[n], seen_t[n], low[n] = a, seen, collapsed
            n += 1
    return n
