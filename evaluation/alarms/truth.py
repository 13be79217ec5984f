"""Losses of separation as a log itself shows them: which pairs really came too close, and when.

Independent of the detectors: positions come from flights.py, and one k-d tree over place and time finds who was near
whom. In each full second a pair has lost separation when its horizontal distance is less than the minimum and its
altitudes differ by less than the vertical one; exactly a minimum is separated, and an unknown altitude is no loss. The
minima are those of the first configured zone that holds an aircraft, or the general ones; of a pair the larger count.

A loss is a run of at least MIN_RUN_S such seconds. Runs of one pair with less than MERGE_S between the last second of
one and the first of the next are one loss. A loss is `eligible` (a detector can be held to it) when both aircraft had
been reporting position and velocity for the LEAD_S before it: each of the two had been heard at or before the
beginning of that time and from then on without a gap over MAX_SILENCE_S, or over USUAL_INTERVALS of the log's usual
report interval where that is longer. It is `marginal` when the vertical minimum was undercut by no more than STEPS_FT:
altitudes come in steps of 25 ft, so two aircraft that keep levels 1,000 ft apart read 975 or 950 ft now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial import cKDTree

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.evaluation.alarms.flights import Flight, Sky
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.geo import NM_M, WGS84_A_M, WGS84_B_M, ecef

MIN_RUN_S = 3
MERGE_S = 60
LEAD_S = 30.0
MAX_SILENCE_S = 10.0
USUAL_INTERVALS = 1.5
STEPS_FT = 50.0

# Two points on the ellipsoid are a little further apart along it than through it. This radius gives the difference to
# a hundredth of itself, which is 0.01 mm at 5 NM.
_RADIUS_M = 0.5 * (WGS84_A_M + WGS84_B_M)


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss of separation. `t_start` and `t_end` are its first and last second; the minima are over its seconds."""

    pair: tuple[str, str]
    t_start: float
    t_end: float
    min_sep_nm: float
    min_vsep_ft: float
    eligible: bool
    marginal: bool


def losses(sky: Sky, separation_nm: float, vertical_ft: float, zones: Sequence[Zone] = ()) -> list[Loss]:
    """All losses in order of their beginning."""
    first, second, t, sep_nm, vsep_ft, short_ft = lost_seconds(sky, separation_nm, vertical_ft, zones)
    limit_s = max(MAX_SILENCE_S, USUAL_INTERVALS * sky.interval_s)
    found: list[Loss] = []
    pair = first * len(sky.ids) + second
    for run in _runs(pair, t):
        a, b = int(first[run[0][0]]), int(second[run[0][0]])
        t_start, t_end = float(t[run[0][0]]), float(t[run[-1][1] - 1])
        rows = np.concatenate([np.arange(start, stop) for start, stop in run])
        x, y = sorted((sky.ids[a], sky.ids[b]))
        eligible = all(_reported(sky.flights[who], t_start, limit_s) for who in (a, b))
        closest = float(sep_nm[rows].min()), float(vsep_ft[rows].min())
        found.append(Loss((x, y), t_start, t_end, *closest, eligible, bool(short_ft[rows].max() <= STEPS_FT)))
    return sorted(found, key=lambda loss: (loss.t_start, loss.pair))


def lost_seconds(
    sky: Sky, separation_nm: float, vertical_ft: float, zones: Sequence[Zone] = ()
) -> tuple[I8, I8, I8, F8, F8, F8]:
    """Every pair in every second in which its separation is lost, sorted by pair and time.

    The two aircraft (indices into `sky.ids`, the smaller first), the second, the separations in NM and ft, and by how
    much the vertical minimum is undercut.
    """
    own_m, own_ft = minima(sky, separation_nm, vertical_ft, zones)
    separation_m = float(own_m.max(initial=separation_nm * NM_M))
    # time is the fourth axis, stretched so far that only rows of one second can be neighbours
    place = np.column_stack((sky.xyz_m, (sky.second - sky.second.min(initial=0)) * (4.0 * separation_m)))
    pairs: I8 = cKDTree(place).query_pairs(separation_m, output_type="ndarray").reshape(-1, 2)
    i, k = pairs[:, 0], pairs[:, 1]
    chord_m = np.linalg.norm(sky.xyz_m[i] - sky.xyz_m[k], axis=1)
    arc_m = chord_m * (1.0 + (chord_m / _RADIUS_M) ** 2 / 24.0)
    vsep_ft = np.abs(sky.alt_ft[i] - sky.alt_ft[k])
    short_ft = np.maximum(own_ft[i], own_ft[k]) - vsep_ft
    lost = np.flatnonzero((arc_m < np.maximum(own_m[i], own_m[k])) & (short_ft > 0.0))
    a, b = sky.aircraft[i[lost]].astype(np.int64), sky.aircraft[k[lost]].astype(np.int64)
    a, b, t = np.minimum(a, b), np.maximum(a, b), sky.second[i[lost]]
    order = np.lexsort((t, b, a))
    lost = lost[order]
    return a[order], b[order], t[order], arc_m[lost] / NM_M, vsep_ft[lost], short_ft[lost]


def minima(sky: Sky, separation_nm: float, vertical_ft: float, zones: Sequence[Zone]) -> tuple[F8, F8]:
    """For each row the horizontal minimum in metres and the vertical one in feet."""
    own_m, own_ft = np.full(len(sky.second), separation_nm * NM_M), np.full(len(sky.second), vertical_ft)
    # backwards, so that the first zone of the file has the last word
    for zone in reversed(zones):
        inside = (sky.alt_ft >= zone.floor_ft) & (sky.alt_ft < zone.ceiling_ft)
        if zone.lat is not None and zone.lon is not None:
            chord_m = np.linalg.norm(sky.xyz_m - np.array(ecef(zone.lat, zone.lon)), axis=1)
            # the rim is off by a third of a per cent of the difference between chord and arc: 1 cm at 60 NM
            inside &= 2.0 * _RADIUS_M * np.arcsin(np.minimum(0.5 * chord_m / _RADIUS_M, 1.0)) <= zone.radius_nm * NM_M
        own_m[inside], own_ft[inside] = zone.volume.separation_nm * NM_M, zone.volume.vertical_ft
    return own_m, own_ft


def _runs(pair: I8, t: I8) -> list[list[tuple[int, int]]]:
    """For each loss its runs as ranges of rows: long enough, and those of a pair that are close together in one."""
    starts = np.flatnonzero(np.append(True, (np.diff(pair) != 0) | (np.diff(t) != 1))[: len(t)])
    merged: list[list[tuple[int, int]]] = []
    for start, stop in pairwise([*starts.tolist(), len(t)]):
        if stop - start < MIN_RUN_S:
            continue
        before = merged[-1][-1][1] - 1 if merged else -1
        if merged and pair[before] == pair[start] and t[start] - t[before] < MERGE_S:
            merged[-1].append((start, stop))
        else:
            merged.append([(start, stop)])
    return merged


def _reported(flight: Flight, t_start: float, limit_s: float) -> bool:
    """Whether position and velocity came steadily in the LEAD_S before t_start."""
    for t in (flight.pos_t, flight.velocity_t):
        heard = t[: np.searchsorted(t, t_start, side="right")]
        known = int(np.searchsorted(heard, t_start - LEAD_S, side="right")) - 1
        if known < 0 or np.diff(np.append(heard[known:], t_start)).max() > limit_s:
            return False
    return True
