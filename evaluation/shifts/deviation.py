"""How far tracks lie from those of the baseline: DTW and Hausdorff distance per agent, in metres.

The distances are those of `evaluate tracks` (tracks/distance.py), worked out on unit vectors. The shifted agent is off
by its own shift already. `*_less_own_m` has that subtracted: its track is moved on the sphere so that it begins where
the baseline's does, and for a shift of heading turned back by as much. What remains is what it did otherwise. For speed
and waypoint nothing is subtracted: they leave the beginning as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np

from watchkeeper.evaluation.shifts.flown import Flown, Pair, ShiftKey
from watchkeeper.evaluation.tracks.distance import DTW, EDR_EPS_M, HAUSDORFF, RADIUS_KM, compare, unit_vectors
from watchkeeper.streams.batch import F8, I8


class Deviation(msgspec.Struct, frozen=True):
    """One agent of a shifted episode compared with the same agent of its baseline."""

    target_agent: str
    shift_type: str
    shift_value: float | str
    seed: str
    agent: str
    is_target: bool
    points_baseline: int
    points_shifted: int
    start_m: float
    """How far apart the two tracks begin."""
    dtw_m: float
    """The sum of distances along the best alignment: it grows with the number of points."""
    dtw_per_point_m: float
    """Over the mean number of points of the two tracks."""
    hausdorff_m: float
    dtw_less_own_m: float
    dtw_per_point_less_own_m: float
    hausdorff_less_own_m: float


def deviations(key: ShiftKey, pairs: Iterable[Pair]) -> tuple[list[Deviation], list[str]]:
    """One row per pair of episodes and agent that both have, and what could not be compared."""
    rows: list[Deviation] = []
    notes: list[str] = []
    for shifted, baseline in pairs:
        both = [agent for agent in baseline.ids if agent in shifted.ids]
        if key.agent not in both:
            notes.append(f"{shifted.file}: {shifted.name}: no agent {key.agent!r} in it and in its baseline")
        if len(both) < len(set(baseline.ids) | set(shifted.ids)):
            notes.append(f"{shifted.file}: {shifted.name}: agents that its baseline does not have, or the reverse")
        rows += _episode(key, shifted, baseline, both)
    return rows, notes


def _episode(key: ShiftKey, shifted: Flown, baseline: Flown, agents: list[str]) -> list[Deviation]:
    tracks = [(agent, _track(baseline, agent), _track(shifted, agent)) for agent in agents]
    tracks = [track for track in tracks if len(track[1]) and len(track[2])]
    turned_deg = key.size if key.kind == "heading" and isinstance(key.size, float) else 0.0
    base = [a for _, a, _ in tracks]
    moved = [_moved(b, a[0], turned_deg) if agent == key.agent else b for agent, a, b in tracks]
    raw, less_own = _distances_m(base, [b for _, _, b in tracks]), _distances_m(base, moved)
    rows = []
    for k, (agent, a, b) in enumerate(tracks):
        points = 0.5 * (len(a) + len(b))
        hausdorff, dtw, own_hausdorff, own_dtw = (
            float(found[k, what]) for found in (raw, less_own) for what in (HAUSDORFF, DTW)
        )
        figures = dtw, dtw / points, hausdorff, own_dtw, own_dtw / points, own_hausdorff
        mine = agent == key.agent
        rows.append(Deviation(*key, shifted.seed, agent, mine, len(a), len(b), _apart_m(a[0], b[0]), *figures))
    return rows


def _track(flown: Flown, agent: str) -> F8:
    """The positions of an agent as unit vectors, [n, 3]."""
    column = flown.ids.index(agent)
    there = ~np.isnan(flown.lat[:, column])
    return unit_vectors(flown.lat[there, column], flown.lon[there, column])


def _distances_m(first: list[F8], second: list[F8]) -> F8:
    """Distances of the tracks pair by pair, [pair, HAUSDORFF … EDR], in metres but for EDR."""
    out = np.full((len(first), 3), np.nan)
    if first:
        same: I8 = np.repeat(np.arange(len(first), dtype=np.int64)[:, None], 2, axis=1)
        sides = [(np.concatenate(side), _starts(side)) for side in (first, second)]
        compare(*sides[0], *sides[1], same, EDR_EPS_M / 1000.0, out)
        out[:, (HAUSDORFF, DTW)] *= 1000.0
    return out


def _starts(tracks: list[F8]) -> I8:
    return np.concatenate(([0], np.cumsum([len(track) for track in tracks]))).astype(np.int64)


def _apart_m(a: F8, b: F8) -> float:
    return 2000.0 * RADIUS_KM * math.asin(min(1.0, 0.5 * float(np.linalg.norm(a - b))))


def _moved(track: F8, start: F8, turned_deg: float) -> F8:
    """The track moved on the sphere so that it begins at `start`, and turned back to the left by `turned_deg` there."""
    if turned_deg == 0.0 and np.array_equal(track[0], start):
        return track
    c, s = math.cos(math.radians(turned_deg)), math.sin(math.radians(turned_deg))
    # columns up, north, east: what was at bearing b is at bearing b - turned
    turn = np.array(((1.0, 0.0, 0.0), (0.0, c, s), (0.0, -s, c)))
    moved: F8 = track @ _frame(track[0]) @ turn.T @ _frame(start).T
    return moved


def _frame(up: F8) -> F8:
    """Up, north and east at a point of the sphere, as columns; at a pole north is along the meridian of Greenwich."""
    east = np.array((-up[1], up[0], 0.0))
    length = float(np.linalg.norm(east))
    east = east / length if length > 0.0 else np.array((0.0, 1.0, 0.0))
    return np.stack((up, np.cross(up, east), east), axis=1)
