"""Encounters: two aircraft that come near each other, and how near, in units of the minima that hold for them.

The scaled separation of a pair in a second is the larger of horizontal distance over horizontal minimum and altitude
difference over vertical minimum: below 1 separation is lost, at 2 they are twice as far as they must be in one of the
two ways. An encounter is a run of seconds with a scaled separation below FAR; runs of one pair less than MERGE_S apart
are one. It is `cut` when its least is at a second at which one of the two came into view or left it: the true least was
that or less, and is not known. Positions and minima are those of `evaluate alarms`. Called by api.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.evaluation.alarms.flights import Sky
from watchkeeper.evaluation.alarms.truth import MERGE_S, minima
from watchkeeper.streams.batch import F8, I8

FAR = 2.0
# Seconds that are looked at together: enough to be quick, and few enough for the memory of a dense sky.
CHUNK_S = 300
# The least of an encounter that is in the first or last second in view is at its edge.
EDGE_S = 1


class Encounter(NamedTuple):
    """One encounter: who, when they were closest, how close by the scaled separation, and whether more is unknown."""

    pair: tuple[str, str]
    t: int
    least: float
    cut: bool


def encounters(sky: Sky, separation_nm: float, vertical_ft: float, zones: Sequence[Zone] = ()) -> list[Encounter]:
    """All encounters in order of time."""
    rows = [piece for piece in _near(sky, minima(sky, separation_nm, vertical_ft, zones)) if len(piece[0])]
    if not rows:
        return []
    a, b, t, scaled = (np.concatenate(columns) for columns in zip(*rows, strict=True))
    order = np.lexsort((t, b, a))
    a, b, t, scaled = a[order], b[order], t[order], scaled[order]
    new = np.append(True, (np.diff(a) != 0) | (np.diff(b) != 0) | (np.diff(t) >= MERGE_S))
    starts = np.flatnonzero(new)
    first_t, last_t = _in_view(sky)
    found = []
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(t)], strict=True):
        at = start + int(np.argmin(scaled[start:stop]))
        one, other, when = int(a[at]), int(b[at]), int(t[at])
        edge = any(
            when - _since(first_t[who], when) < EDGE_S or _until(last_t[who], when) - when < EDGE_S
            for who in (one, other)
        )
        x, y = sorted((sky.ids[one], sky.ids[other]))
        found.append(Encounter((x, y), when, float(scaled[at]), edge))
    return sorted(found, key=lambda encounter: (encounter.t, encounter.pair))


def _near(sky: Sky, own: tuple[F8, F8]) -> Iterator[tuple[I8, I8, I8, F8]]:
    """Pairs and seconds with a scaled separation below FAR, in pieces: two aircraft, the second, the separation."""
    own_m, own_ft = own
    reach_m = FAR * float(own_m.max(initial=1.0))
    by_time = np.argsort(sky.second, kind="stable")
    second = sky.second[by_time]
    edges = np.searchsorted(second, np.arange(second.min(initial=0), second.max(initial=0) + CHUNK_S + 1, CHUNK_S))
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = by_time[start:stop]
        if len(rows) < 2:
            continue
        # time is the fourth axis, stretched so far that only rows of one second can be neighbours
        stretch_m = (sky.second[rows] - sky.second[rows].min()) * (4.0 * reach_m)
        near = cKDTree(np.column_stack((sky.xyz_m[rows], stretch_m))).query_pairs(reach_m, output_type="ndarray")
        i, k = rows[near[:, 0]], rows[near[:, 1]]
        apart_m = np.linalg.norm(sky.xyz_m[i] - sky.xyz_m[k], axis=1)
        apart_ft = np.abs(sky.alt_ft[i] - sky.alt_ft[k])
        scaled = np.maximum(apart_m / np.maximum(own_m[i], own_m[k]), apart_ft / np.maximum(own_ft[i], own_ft[k]))
        kept = scaled < FAR  # not where an altitude is unknown
        one, other = sky.aircraft[i[kept]].astype(np.int64), sky.aircraft[k[kept]].astype(np.int64)
        yield np.minimum(one, other), np.maximum(one, other), sky.second[i[kept]], scaled[kept]


def _in_view(sky: Sky) -> tuple[list[I8], list[I8]]:
    """Of each aircraft the first and the last seconds of the times in which it is in view."""
    first, last = [], []
    order = np.lexsort((sky.second, sky.aircraft))
    bounds = np.searchsorted(sky.aircraft[order], np.arange(len(sky.ids) + 1))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        t = sky.second[order[start:stop]]
        breaks = np.flatnonzero(np.diff(t) > 1)
        first.append(t[np.append(0, breaks + 1)] if len(t) else t)
        last.append(t[np.append(breaks, len(t) - 1)] if len(t) else t)
    return first, last


def _since(first_t: I8, t: int) -> int:
    return int(first_t[np.searchsorted(first_t, t, side="right") - 1])


def _until(last_t: I8, t: int) -> int:
    return int(last_t[np.searchsorted(last_t, t)])
