"""The straight line: which losses it would have announced how long before, and which alarms it was on the side of.

For a pair at a full second: both fly on as they did in the last BASE_S, horizontally and vertically, and lose
separation within the look-ahead or not. That is the probe that every better prediction is compared with, computed from
the cleaned tracks of flights.py with none of the detectors' code. Called by verdicts.py and breakdown.py.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.evaluation.alarms.flights import Sky
from watchkeeper.streams.batch import F8, I8

# Velocity and climb are what an aircraft did in this time: two reports of a feed that sends every 5 s.
BASE_S = 10


class Tracks:
    """Where each aircraft of a sky was, by name and full second; `minima` by row of the sky, in m and ft."""

    def __init__(self, sky: Sky, minima: tuple[F8, F8]) -> None:
        self._sky = sky
        self._minima = minima
        self._bounds: I8 = np.searchsorted(sky.aircraft, np.arange(len(sky.ids) + 1))
        self.number = {name: i for i, name in enumerate(sky.ids)}

    def row(self, name: str, second: int) -> int:
        """The row of the sky, or -1 where it was nowhere."""
        who = self.number.get(name, -1)
        if who < 0:
            return -1
        start, stop = self._bounds[who], self._bounds[who + 1]
        at = int(start + np.searchsorted(self._sky.second[start:stop], second))
        return at if at < stop and self._sky.second[at] == second else -1

    def altitude_ft(self, name: str, second: int) -> float:
        """Altitude then; NaN if unknown."""
        at = self.row(name, second)
        return float(self._sky.alt_ft[at]) if at >= 0 else math.nan

    def motion(self, name: str, second: int) -> tuple[F8, F8] | None:
        """Position (Earth-centred, m) with altitude (ft) at a second, and their rates; None where that is unknown."""
        now, before = self.row(name, second), self.row(name, second - BASE_S)
        if now < 0 or before < 0:
            return None
        sky = self._sky
        here, there = (np.append(sky.xyz_m[row], sky.alt_ft[row]) for row in (now, before))
        return here, (here - there) / BASE_S

    def needed(self, pair: tuple[str, str], second: int) -> tuple[float, float]:
        """The minima of a pair where both are then: the larger ones of the two, in m and ft."""
        rows = [self.row(name, second) for name in pair]
        return max(float(self._minima[0][row]) for row in rows), max(float(self._minima[1][row]) for row in rows)


def time_to_loss_s(tracks: Tracks, pair: tuple[str, str], second: int, horizon_s: float) -> float:
    """When a straight line loses separation, in seconds from then; NaN if it does not within the horizon."""
    one, other = (tracks.motion(name, second) for name in pair)
    if one is None or other is None:
        return math.nan
    gap, rate = one[0] - other[0], one[1] - other[1]
    separation_m, vertical_ft = tracks.needed(pair, second)
    h0, h1 = _inside(gap[:3], rate[:3], separation_m)
    v0, v1 = _inside(gap[3:], rate[3:], vertical_ft)
    begin, end = max(h0, v0, 0.0), min(h1, v1, horizon_s)
    return begin if begin < end else math.nan


def _inside(gap: F8, rate: F8, radius: float) -> tuple[float, float]:
    """From when to when gap + t * rate is shorter than the radius; an empty range if never, or if it is unknown."""
    a, b, c = float(rate @ rate), float(gap @ rate), float(gap @ gap) - radius * radius
    if math.isnan(a + b + c):
        return math.inf, -math.inf
    if a == 0.0:
        return (-math.inf, math.inf) if c < 0.0 else (math.inf, -math.inf)
    root = b * b - a * c
    if root <= 0.0:
        return math.inf, -math.inf
    return (-b - math.sqrt(root)) / a, (-b + math.sqrt(root)) / a
