"""What is true at each step of an episode: conflict, deliberate commands, separation. Vectorised over steps and pairs.

One kernel runs over all steps. Who takes part in a conflict, how near two will come and what a deliberate command is
are decided by the functions that `intent` uses live (detectors/kernels/pairs.py). Separation now is the haversine
distance of every pair, arrived or not, because two aircraft at one waypoint are still close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.approach import State, state_of
from watchkeeper.detectors.kernels.pairs import (
    EARTH_NM,
    Nearest,
    Reach,
    bearing_deg,
    conflicting,
    haversine_nm,
    level,
    look,
    navigation,
    significant,
    threat_m,
)
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit

_RAD = math.pi / 180.0


@dataclass(frozen=True, slots=True)
class Series:
    """Per step unless said otherwise."""

    conflict: Bool
    """Some pair will come closer than the minimum within the horizon."""
    dcpa_nm: F8
    """Smallest DCPA of any pair; inf: there is none."""
    intervening: Bool
    """Some command is at or over the thresholds."""
    acting: Bool
    """Some command is deliberate: over the thresholds, no navigation, and there is a threat."""
    acting_agent: Bool
    """The same, [step, agent]."""
    separation_nm: F8
    """Smallest horizontal distance of any pair; inf: there is none."""
    lost: Bool
    """Some pair is closer than both minima."""
    level_nm: F8
    """Smallest horizontal distance of a pair that is not separated vertically; inf: there is none."""
    nearest_nm: F8
    """[step, agent]: to the nearest other agent that is not separated vertically; inf: there is none."""


def series_of(
    episode: Episode, *, horizon_s: float, separation_nm: float, vertical_ft: float, action_thresh: tuple[float, float]
) -> Series:
    """Look at every step."""
    e, (steps, agents) = episode, episode.lat.shape
    conflict, intervening, acting = np.zeros((3, steps), bool)
    acting_agent = np.zeros((steps, agents), bool)
    dcpa_nm, separation, level_nm = np.full((3, steps), np.inf)
    nearest = np.full((steps, agents), np.inf)
    _look_at_all(
        Flown(
            e.lat, e.lon, e.alt_ft, e.heading_deg, e.speed_kt, e.turn_deg, e.faster_kt, e.way_lat, e.way_lon,
            e.arrived, e.controlled,
        ),
        Reach(horizon_s, vertical_ft, math.inf),
        Limits(separation_nm * NM_M, threat_m(separation_nm), *action_thresh),
        Seen(conflict, dcpa_nm, intervening, acting_agent),
    )  # fmt: skip
    _separations(e.lat, e.lon, e.alt_ft, e.controlled, vertical_ft, separation, level_nm, nearest)
    np.any(acting_agent, axis=1, out=acting)
    return Series(
        conflict, dcpa_nm, intervening, acting, acting_agent, separation, level_nm < separation_nm, level_nm, nearest
    )


class Flown(NamedTuple):
    """The columns of an episode that the kernel reads, [step, agent]."""

    lat: F8
    lon: F8
    alt_ft: F8
    heading_deg: F8
    speed_kt: F8
    turn_deg: F8
    faster_kt: F8
    way_lat: F8
    way_lon: F8
    arrived: Bool
    controlled: Bool


class Limits(NamedTuple):
    """What is a conflict, what a threat, and what more than trimming."""

    separation_m: float
    threat_m: float
    min_turn_deg: float
    min_faster_kt: float


class Seen(NamedTuple):
    """The columns of a Series that the kernel fills."""

    conflict: Bool
    dcpa_nm: F8
    intervening: Bool
    acting_agent: Bool


def _look_at_all(flown: Flown, reach: Reach, limits: Limits, seen: Seen) -> None:
    agents = flown.lat.shape[1]
    _look_with(flown, reach, limits, seen, blank(State, agents), blank(Nearest, agents))


@njit(cache=True)
def _look_with(
    flown: Flown, reach: Reach, limits: Limits, seen: Seen, state: NDArray[Any], nearest: NDArray[Any]
) -> None:
    lat, lon, heading, turn, faster = flown.lat, flown.lon, flown.heading_deg, flown.turn_deg, flown.faster_kt
    steps, agents = lat.shape
    order = np.empty(agents, np.int64)
    for k in range(steps):
        n = 0
        for a in range(agents):
            if significant(turn[k, a], faster[k, a], limits.min_turn_deg, limits.min_faster_kt):
                seen.intervening[k] = True
            if math.isnan(lat[k, a]) or flown.arrived[k, a]:
                continue
            state_of(lat[k, a], lon[k, a], heading[k, a], flown.speed_kt[k, a] * KT_MS, 0.0, state[a])
            state[a].alt_ft = flown.alt_ft[k, a]
            order[n] = a
            n += 1
        look(order[:n], state, flown.controlled[k], reach, nearest)
        for m in range(n):
            a = order[m]
            dcpa_m = nearest[a].dcpa_m
            seen.dcpa_nm[k] = min(seen.dcpa_nm[k], dcpa_m / NM_M)
            if conflicting(dcpa_m, limits.separation_m):
                seen.conflict[k] = True
            acts = significant(turn[k, a], faster[k, a], limits.min_turn_deg, limits.min_faster_kt)
            if dcpa_m <= limits.threat_m and acts:
                towards = bearing_deg(lat[k, a], lon[k, a], flown.way_lat[k, a], flown.way_lon[k, a])
                seen.acting_agent[k, a] = not navigation(turn[k, a], heading[k, a], towards)


@njit(cache=True)
def _separations(
    lat: F8, lon: F8, alt_ft: F8, controlled: Bool, vertical_ft: float, any_nm: F8, level_nm: F8, nearest_nm: F8
) -> None:
    steps, agents = lat.shape
    # the chord between unit vectors gives the haversine distance without a sine per pair
    unit = np.empty((agents, 3))
    for k in range(steps):
        for a in range(agents):
            flat = math.cos(lat[k, a] * _RAD)
            unit[a, 0], unit[a, 1] = flat * math.cos(lon[k, a] * _RAD), flat * math.sin(lon[k, a] * _RAD)
            unit[a, 2] = math.sin(lat[k, a] * _RAD)
        for a in range(agents):
            if math.isnan(lat[k, a]):
                continue
            for b in range(a + 1, agents):
                if math.isnan(lat[k, b]) or not (controlled[k, a] or controlled[k, b]):
                    continue
                x, y, z = unit[a, 0] - unit[b, 0], unit[a, 1] - unit[b, 1], unit[a, 2] - unit[b, 2]
                apart = 2.0 * EARTH_NM * math.asin(min(1.0, 0.5 * math.sqrt(x * x + y * y + z * z)))
                any_nm[k] = min(any_nm[k], apart)
                if level(alt_ft[k, a], alt_ft[k, b], vertical_ft):
                    level_nm[k] = min(level_nm[k], apart)
                    nearest_nm[k, a], nearest_nm[k, b] = min(nearest_nm[k, a], apart), min(nearest_nm[k, b], apart)


@njit(cache=True)
def ways_nm(lat: F8, lon: F8, way_lat: F8, way_lon: F8) -> tuple[F8, F8]:
    """[agent]: the path over all its positions; the direct way from the first to its last waypoint (NaN: none)."""
    steps, agents = lat.shape
    path, direct = np.zeros(agents), np.full(agents, np.nan)
    for a in range(agents):
        first = before = last = -1
        for k in range(steps):
            if not math.isnan(way_lat[k, a]):
                last = k
            if math.isnan(lat[k, a]):
                continue
            if before < 0:
                first = k
            else:
                path[a] += haversine_nm(lat[before, a], lon[before, a], lat[k, a], lon[k, a])
            before = k
        if first >= 0 and last >= 0:
            direct[a] = haversine_nm(lat[first, a], lon[first, a], way_lat[last, a], way_lon[last, a])
    return path, direct
