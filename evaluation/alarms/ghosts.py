"""Pairs of ids that are one aircraft: an address that no aircraft has as its own, next to the one that sends it.

A ground station sends what its radar sees, and what other data links carry (TIS-B, ADS-R), to everyone, under addresses
that are not the aircraft's own; receivers write these with a `~`. Where the aircraft itself is heard too, it is there
twice, as a pair that has apparently lost separation. It is none, whatever the minima.

Found from positions alone, with none of the detectors' code: one of the two ids begins with `~`, and in the seconds
in which both are known they were never further apart than TOGETHER_NM. Used by api.py.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from watchkeeper.evaluation.alarms.flights import Sky
from watchkeeper.streams.geo import NM_M

# Receivers write an address that is not the aircraft's own with this in front.
NOT_OWN = "~"
# Two addresses of one aircraft are apart by the age of the older report: 5 s at 120 kt, and the error of a radar.
TOGETHER_NM = 0.35


def ghosts(sky: Sky) -> set[tuple[str, str]]:
    """The pairs of ids, sorted, that are one aircraft."""
    own = np.array([not name.startswith(NOT_OWN) for name in sky.ids], bool)
    if own.all():
        return set()
    rows = np.flatnonzero(np.isin(sky.second, np.unique(sky.second[~own[sky.aircraft]])))
    place = np.column_stack((sky.xyz_m[rows], (sky.second[rows] - sky.second.min()) * (4.0 * TOGETHER_NM * NM_M)))
    near = cKDTree(place).query_pairs(TOGETHER_NM * NM_M, output_type="ndarray").reshape(-1, 2)
    a, b = sky.aircraft[rows[near[:, 0]]].astype(np.int64), sky.aircraft[rows[near[:, 1]]].astype(np.int64)
    key, together_s = np.unique(np.minimum(a, b) * len(sky.ids) + np.maximum(a, b), return_counts=True)
    found = set()
    for pair, seconds in zip(key.tolist(), together_s.tolist(), strict=True):
        i, k = divmod(pair, len(sky.ids))
        both = np.intersect1d(sky.second[sky.aircraft == i], sky.second[sky.aircraft == k], assume_unique=True)
        if not (own[i] and own[k]) and seconds == len(both):
            x, y = sorted((sky.ids[i], sky.ids[k]))
            found.add((x, y))
    return found
